"""A learner's answers to each batch before it learns it, and when its losses are no numbers any more."""

import json

import pytest
from tiny import CPU, METHODS, OPTIONS, RANDOM, cell

from clpapers.runs import loop
from clpapers.streams import orders


@pytest.fixture(scope="module")
def long(data):
    """Streams of 120 steps of an item each, more than are reduced at once."""
    return {seed: orders.make(RANDOM, data.train_y, seed) for seed in range(2)}


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


def test_a_learner_may_look_and_say_nothing_of_what_comes(data, long, written):
    spec = cell("single", {}, "mlp", batch=1)
    spec["evaluation"] |= {"every": 20, "points": 1}
    usual = loop.train(spec, data, long, CPU)
    spec["learner"] = written(
        "    def observe(self, t, x, y):\n        super().observe(t, x, y)\n        return Observed()\n"
    )
    for result, other in zip(loop.train(spec, data, long, CPU), usual, strict=True):
        assert result["online"] == {"correct": None, "loss": None}
        assert result["diverged"] is None
        assert result["events"]["correct"] == other["events"]["correct"]
        assert len(other["online"]["correct"]) == len(other["online"]["loss"]) == 120


LOSSES = """
    losses = None

    def observe(self, t, x, y):
        said = super().observe(t, x, y)
        self.losses = [*(self.losses or []), said.loss]
        return said

    def report(self, s):
        return {"finite": [bool(loss[s].isfinite()) for loss in self.losses]}
"""


@pytest.mark.parametrize("learner", ["multi_task", "gdumb"])
@pytest.mark.parametrize("batch", [1, 5])
def test_the_divergence_of_a_learner_that_does_not_look_is_dated_too(learner, batch, data, long, written):
    """Its first loss that is no finite number; what it said online stays unknown."""
    spec = cell(learner, OPTIONS[learner], "mlp", batch=batch, learning_rate=1e30)
    spec["learner"] = written(LOSSES, learner) | OPTIONS[learner]
    for result in loop.train(spec, data, long, CPU):
        assert 0 < result["diverged"] == result["learner"]["finite"].index(False) < result["steps"]
        assert result["online"] == {"correct": None, "loss": None}
    for well in loop.train(cell(learner, OPTIONS[learner], "mlp"), data, long, CPU):
        assert well["diverged"] is None


def test_what_trains_nothing_never_diverges(data, streams):
    assert all(result["diverged"] is None for result in loop.train(cell("random", {}, "mlp"), data, streams, CPU))
