"""The beginning of a run is that of its result; other weights and a limit of time do what they should."""

import pytest
import tiny

from clpapers.runs.beginning import begin
from clpapers.runs.loop import train


def both(learner, data, steps, *, seeds=2, **options):
    """The beginnings of a learner's runs, and their whole results, by seed."""
    spec, streams = tiny.course(learner, tiny.OPTIONS[learner], "mlp", data, seeds)
    whole = {each["seed"]: each for each in train(spec, data, streams, tiny.CPU)}
    return begin(spec, data, streams, steps, **options), whole


@pytest.mark.parametrize("learner", ["er", "ewc", "gem"])
def test_first_steps_are_those_of_the_whole_run(learner, data):
    begun, whole = both(learner, data, 7)
    assert begun
    for seed, entry in begun.items():
        for key in ("loss", "correct"):
            assert entry["online"][key] == whole[seed]["online"][key][:7]
            assert len(entry["online"][key]) == 7


def test_a_learner_of_whole_tasks_begins_with_the_loss_of_its_first_task(data):
    """Whatever it repeats is done once, as this loss is of before."""
    begun, whole = both("vcl", data, 7)
    assert [entry["online"]["loss"] for entry in begun.values()] == [
        whole[seed]["online"]["loss"][:1] for seed in begun
    ]


def test_a_learner_without_losses_begins_with_its_first_answers(data):
    begun, whole = both("random", data, 1, answers=True)
    for seed, entry in begun.items():
        assert whole[seed]["online"]["loss"] is None
        (first,) = entry["probes"]["correct"]
        assert first == whole[seed]["probes"]["correct"][0]


def test_other_weights_give_other_losses_that_are_near_at_first(data):
    begun, _ = both("er", data, 3)
    nudged, _ = both("er", data, 3, nudge=1e-3)
    for seed in begun:
        one, other = (of[seed]["online"]["loss"] for of in (begun, nudged))
        assert one != other
        assert one == pytest.approx(other, rel=0.05)


@pytest.mark.parametrize("endless", [0, 1])
def test_what_takes_too_long_is_ended_with_what_there_is(endless, data, written):
    """A step computes without end."""
    spec, streams = tiny.course("single", {}, "mlp", data, 1)
    spec["learner"] = written(
        f"    def observe(self, t, x, y):\n        while t == {endless}:\n            pass\n"
        "        return super().observe(t, x, y)\n"
    )
    assert [len(found["online"]["loss"]) for found in begin(spec, data, streams, 3, seconds=0.3).values()] == [
        1
    ] * endless


def test_answers_before_the_first_step_tell_nothing_of_training(data):
    """The tests of a task before its steps; with other steps the first answers after them differ."""
    spec, streams = tiny.course("multi_task", tiny.OPTIONS["multi_task"], "mlp", data, 1)
    spec["evaluation"]["shots"] = 1
    found = []
    for rate in (0.0001, 50.0):
        spec["budget"]["learning_rate"] = rate
        found.append(begin(spec, data, streams, 1, answers=True))
    assert found[0] != found[1]
