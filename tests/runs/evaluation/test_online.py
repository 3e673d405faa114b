"""What a learner says of each batch before it learns it, and when its losses are no numbers any more."""

import json

import pytest
from tiny import CPU, METHODS, OPTIONS, cell

from clpapers.runs import loop
from clpapers.runs.evaluation import online
from clpapers.runs.learner import Observed
from clpapers.runs.learners.gdumb import GDumb
from clpapers.runs.learners.multi_task import MultiTask
from clpapers.runs.learners.single import Single


@pytest.mark.parametrize("learner", [name for name, m in METHODS.items() if m.uses_batch and not m.answers_first])
def test_nothing_is_said_online_by_who_says_nothing(learner, data, streams):
    for result in loop.train(cell(learner, OPTIONS[learner], "mlp", batch=1), data, streams, CPU):
        assert result["online"] == {"correct": None, "loss": None}
        assert result["diverged"] is None
        assert result["steps"] == 53


def test_diverged_losses_become_null(data, streams):
    result = loop.train(cell("er", {"forward": "separate"}, "mlp", learning_rate=1e30), data, streams, CPU)[0]
    assert None in result["online"]["loss"]
    json.dumps(result, allow_nan=False)


@pytest.mark.parametrize("block", [2, 100])
def test_a_learner_may_look_and_say_nothing_of_what_comes(block, data, streams, monkeypatch):
    observe, looked = Single.observe, []

    def silent(self, t, x, y):
        looked.append(x.shape[1])
        observe(self, t, x, y)
        return Observed()

    spec = cell("single", {}, "mlp", batch=1)
    spec["evaluation"] |= {"every": 20, "points": 1}
    usual = loop.train(spec, data, streams, CPU)
    monkeypatch.setattr(online, "STEPS_AT_ONCE", block)
    monkeypatch.setattr(Single, "observe", silent)
    for result, other in zip(loop.train(spec, data, streams, CPU), usual, strict=True):
        assert result["online"] == {"correct": None, "loss": None}
        assert result["diverged"] is None
        assert result["events"] == other["events"]
        assert other["online"]["correct"] is not None
    assert sum(looked) == 53


@pytest.mark.parametrize(("learner", "options"), [(MultiTask, {}), (GDumb, {"memory_batch": 8})])
@pytest.mark.parametrize("block", [2, 100])
def test_the_divergence_of_a_learner_that_does_not_look_is_dated_too(
    data, streams, monkeypatch, learner, options, block
):
    """Its first loss that is no finite number; what it said online stays unknown."""
    name = "multi_task" if learner is MultiTask else "gdumb"
    losses, observe = [], learner.observe
    monkeypatch.setattr(online, "STEPS_AT_ONCE", block)
    monkeypatch.setattr(learner, "observe", lambda *given: (losses.append(observe(*given)), losses[-1])[1])
    results = loop.train(cell(name, options, "mlp", learning_rate=1e30), data, streams, CPU)
    assert all(0 < result["diverged"] < result["steps"] for result in results)
    for s, result in enumerate(results):
        finite = [bool(said.loss[s].isfinite()) for said in losses]
        assert result["diverged"] == finite.index(False)
        assert result["online"] == {"correct": None, "loss": None}
    for well in loop.train(cell(name, options, "mlp"), data, streams, CPU):
        assert well["diverged"] is None


def test_what_trains_nothing_never_diverges(data, streams):
    for result in loop.train(cell("random", {}, "mlp"), data, streams, CPU):
        assert result["diverged"] is None
