"""The beginning of a run is that of its result; other weights and a limit of time do what they should."""

import pytest
import tiny

from clpapers.runs.beginning import begin
from clpapers.runs.loop import train


def begun(learner, data, steps, **options):
    """The beginnings of a learner's runs, by seed."""
    spec, streams = tiny.course(learner, tiny.OPTIONS[learner], "mlp", data)
    return begin(spec, data, streams, steps, **options)


def whole(learner, data):
    """The whole results of the same runs, by seed."""
    spec, streams = tiny.course(learner, tiny.OPTIONS[learner], "mlp", data)
    return {each["seed"]: each for each in train(spec, data, streams, tiny.CPU)}


@pytest.mark.parametrize(("learner", "taken"), [("er", 7), ("ewc", 7), ("gem", 7), ("vcl", 1)])
def test_first_steps_are_those_of_the_whole_run(learner, taken, data):
    """A learner of whole tasks takes the first; whatever it repeats is done once, as its loss is of before."""
    found, expected = begun(learner, data, 7), whole(learner, data)
    assert found  # of the first stack
    for seed, entry in found.items():
        assert len(entry["online"]["loss"]) == taken
        for key, values in entry["online"].items():
            assert values == (expected[seed]["online"][key] or [])[:taken] or values is expected[seed]["online"][key]


def test_a_learner_without_losses_begins_with_its_first_answers(data):
    expected = whole("random", data)
    for seed, entry in begun("random", data, 1, answers=True).items():
        assert expected[seed]["online"]["loss"] is None
        assert entry["probes"]["correct"] == expected[seed]["probes"]["correct"][:1]


def test_other_weights_give_other_losses_that_are_near_at_first(data):
    of, nudged = (begun("er", data, 3, nudge=nudge) for nudge in (0.0, 1e-3))
    for seed, entry in of.items():
        one, other = entry["online"]["loss"], nudged[seed]["online"]["loss"]
        assert one != other
        assert one == pytest.approx(other, rel=0.05)


@pytest.mark.parametrize("endless", [0, 1])
def test_what_takes_too_long_is_ended_with_what_there_is(endless, data, written):
    """A step computes without end."""
    spec, streams = tiny.course("single", {}, "mlp", data, 1)
    begin(spec, data, streams, 3)  # all that is loaded once
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
