"""The testing events along a stream: when they are, what they count, and that they change no learning."""

import json
import math

import numpy as np
import pytest
import torch
from tiny import CPU, DOMAINS, OPTIONS, SPLIT, cell, stream

from clpapers.runs import loop
from clpapers.runs.evaluation.events import auroc
from clpapers.runs.learner import Learner
from clpapers.streams import orders


def spec_of(every, learner="single", net="mlp", **options):
    spec = cell(learner, OPTIONS[learner], net, **{"batch": 1} | options)
    spec["evaluation"] |= {"every": every, "points": 1}
    return spec


def events(data, streams, every, *given, **options):
    """The events of each seed."""
    return [r["events"] for r in loop.train(spec_of(every, *given, **options), data, streams, CPU)]


# --- the area under the ROC curve ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("positive", "negative", "area"),
    [
        ([2, 3], [0, 1], 1),
        ([0, 1], [2, 3], 0),
        ([1, 1], [1], 1 / 2),
        ([1], [1, 0], 3 / 4),  # a tie and a win
        ([3, 1], [2, 1], 5 / 8),  # wins 2 and 1, or loses and ties: (2 + 1/2) of 4
        ([math.inf], [0.5], 1),
        ([1, 2], [], math.nan),
        ([], [1, 2], math.nan),
        ([1, 2], [math.nan], math.nan),
    ],
)
def test_auroc_by_hand(positive, negative, area):
    assert auroc(*(np.array(each, dtype=float) for each in (positive, negative))) == pytest.approx(area, nan_ok=True)


def pairs(positive, negative):
    """The share of pairs that lie in order, ties half."""
    return np.mean([(a > b) + (a == b) / 2 for a in positive for b in negative])


@pytest.mark.parametrize("levels", [3, 10, 10**6])
def test_auroc_is_a_count_of_pairs(levels):
    rng = np.random.default_rng(levels)
    for _ in range(20):
        p, n = (rng.integers(levels, size=rng.integers(1, 40)) / levels for _ in range(2))
        assert auroc(p, n) == pytest.approx(pairs(p, n), abs=1e-12)


# --- events ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("every", "batch", "times"),
    [
        (20, 1, [20, 40, 53]),
        (53, 1, [53]),
        (99, 1, [53]),
        (1, 1, list(range(1, 54))),
        (12, 5, [15, 25, 40, 50, 53]),  # a batch is not cut up
        (2, 5, [5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 53]),
    ],
)
def test_they_are_due_after_so_many_items_and_at_the_end(every, batch, times, data, streams):
    (found,) = events(data, {0: streams[0]}, every, batch=batch)
    assert found["time"] == times
    assert {len(found[key]) for key in found.keys() - {"total"}} == {len(times)}


@pytest.mark.parametrize("net", ["mlp", "cnn"])
def test_each_is_the_last_test_of_a_run_that_stops_there(net, data, streams):
    """On all test items, all classes competing; with the bytes that it holds then."""
    (found,) = events(data, {0: streams[0]}, 20, "er", net)
    for k, time in enumerate(found["time"]):
        (stopped,) = loop.train(spec_of(20, "er", net), data, {0: stream(streams[0].indices[:time])}, CPU)
        assert found["correct"][k] == stopped["test"]["none"]["correct"]
        assert found["total"] == stopped["test"]["none"]["total"] == [6] * 4
        assert stopped["events"] == {key: v if key == "total" else v[: k + 1] for key, v in found.items()}
        assert found["learner_bytes"][k] == stopped["learner_bytes"]
    assert found["learner_bytes"][0] == found["learner_bytes"][2]  # the memory is full of 20 items


def test_a_memory_is_weighed_as_it_is_filled(data, streams):
    for found in events(data, streams, 6, "er"):
        held = [each["training"] for each in found["learner_bytes"]]
        assert np.diff(held).tolist() == [6 * 192] * 2 + [2 * 192] + [0] * 5


def test_seen_are_the_classes_that_came(data, chunked):
    for seed, found in enumerate(events(data, chunked, 7, order=SPLIT)):
        labels = data.train_y[chunked[seed].indices]
        for time, seen, area in zip(found["time"], found["seen"], found["unknown_auroc"], strict=True):
            assert seen == [bool((labels[:time] == c).any()) for c in range(4)]
            assert (area is None) == all(seen)


PIXEL = """
    def scores(self, x, tasks):
        assert not self.net.training
        return (x[..., :1, 0, 0] * 4).round().expand(-1, -1, 4)

    def confidence(self, scores):
        return scores[..., 2]
"""


def test_a_confidence_tells_classes_that_came_from_those_that_did_not(data, written):
    """Here it is the first pixel of an image, in few levels; counted pair by pair, and in evaluation mode."""
    streams = {seed: orders.make(SPLIT, data.train_y, seed) for seed in (0, 3)}
    results = loop.train(spec_of(30, order=SPLIT) | {"learner": written(PIXEL)}, data, streams, CPU)
    pixel, areas = np.round((data.test_x[:, 0, 0, 0] / 127.5 - 1) * 4), set()
    for found in (result["events"] for result in results):
        assert found["time"] == [30, 60, 90, 120]
        for seen, area in zip(found["seen"][:2], found["unknown_auroc"]):
            known = np.array(seen)[data.test_y]
            assert area == pytest.approx(pairs(pixel[known], pixel[~known]), abs=1e-6)
            areas.add(area)
    assert len(areas) > 1


def test_the_confidence_of_logits_is_the_largest_probability():
    logits = torch.tensor([[[0.0, math.log(3), -math.inf], [5.0, 5.0, 5.0]]])
    torch.testing.assert_close(Learner.confidence(None, logits), torch.tensor([[3 / 4, 1 / 3]]))


@pytest.mark.parametrize("order", [SPLIT, DOMAINS])
def test_they_change_no_learning(order, data):
    """The learner does not know when they are."""
    streams = {seed: orders.make(order, data.train_y, seed, 192) for seed in (0, 1)}
    without = spec_of(7, order=order, batch=3)
    del without["evaluation"]["every"]
    usual, ends = loop.train(without, data, streams, CPU), []
    for every in (7, 31):
        results = loop.train(spec_of(every, order=order, batch=3), data, streams, CPU)
        json.dumps(results, allow_nan=False)
        ends.append([r["events"].pop("correct")[-1] for r in results])
        assert [r for r in results if r.pop("events")] == usual
    assert ends[0] == ends[1] == [r["test"]["none"]["correct"] for r in usual]
