"""Answers: of finite scores alone, in batches whose maps stay in a CPU's cache, and of all items once."""

import json
from math import inf, nan

import numpy as np
import pytest
import torch
from tiny import CPU, SPLIT, Kept, Killed, cell

from clpapers.runs import loop
from clpapers.runs.evaluation import answers
from clpapers.runs.images import Images
from clpapers.runs.learner import Observed
from clpapers.runs.learners.single import Single
from clpapers.streams import orders


@pytest.mark.parametrize(
    ("side", "channels", "size"), [(28, 1, 391), (32, 3, 100), (64, 3, 25), (224, 3, 10), (2, 1, 500)]
)
def test_a_batch_has_as_many_values_whatever_the_images(side, channels, size):
    """100 × 32 × 32 × 3 = 307,200 values, but 10 to 500 images."""
    images = Images(np.zeros((1, side, side, channels), np.uint8), "unit", torch.device("cpu"), torch.float32)
    batches = list(answers._batches(images, 2 * size + 1))
    assert [each.stop - each.start for each in batches] == [size] * 3
    assert [each.start for each in batches] == [0, size, 2 * size]


@pytest.mark.parametrize("classes", [4, 40])  # fewer than a processor adds up at once, and more
@pytest.mark.parametrize(
    ("scores", "answer"),
    [
        ([0.5, 2.0, 1.0, 2.0], 1),  # the first of the largest
        ([-inf, -3.0, -inf, -4.0], 1),  # classes of score -∞ do not compete
        ([nan, nan, nan, nan], -1),
        ([-inf, -inf, -inf, -inf], -1),
        ([nan, 2.0, 1.0, 0.0], -1),  # in no order with the others
        ([2.0, 1.0, 0.0, nan], -1),
        ([inf, 2.0, 1.0, 0.0], -1),
        ([inf, nan, -inf, 0.0], -1),
    ],
)
def test_an_answer_has_a_finite_score_and_none_beside_it_is_unordered(scores, answer, classes):
    rows = torch.tensor(scores + [-inf] * (classes - len(scores))).expand(3, 2, classes)
    assert answers.best(rows).tolist() == [[answer] * 2] * 3


def test_only_items_that_are_asked_are_right_or_counted():
    unanswered = np.array([5, 0])
    given, labels = np.array([[1, -1, -1], [0, 2, 1]]), np.array([[1, 0, 1], [1, 2, 1]])
    asked = np.array([[True, True, False], [True, False, True]])
    assert answers.mark(given, labels, unanswered, asked).tolist() == [[True, False, False], [False, False, True]]
    assert unanswered.tolist() == [6, 0]


EVERYTHING = {"shots": 2, "every": 30, "points": 3, "probes": 17}


@pytest.fixture
def silent(monkeypatch):
    """Have SINGLE's scores be this value from step 4 on, in training and in tests, for the class of each item too."""

    def of(value, classes=slice(None)):
        observe, scores = Single.observe, Single.scores

        def observed(self, t, x, y):
            loss, logits = observe(self, t, x, y)
            self.late = t >= 4
            return Observed(loss, put(logits) if self.late else logits)

        def scored(self, x, tasks):
            return put(scores(self, x, tasks)) if getattr(self, "late", False) else scores(self, x, tasks)

        def put(given):
            return given.index_fill(2, torch.arange(given.shape[2])[classes], value)

        monkeypatch.setattr(Single, "observe", observed)
        monkeypatch.setattr(Single, "scores", scored)

    return of


def trained(data, seeds, checkpoint=None):
    spec = cell("single", {}, "mlp", order=SPLIT, batch=4)
    spec["evaluation"] |= EVERYTHING
    streams = {seed: orders.make(SPLIT, data.train_y, seed) for seed in seeds}
    return loop.train(spec, data, streams, CPU, checkpoint=checkpoint)


@pytest.mark.parametrize(
    ("value", "classes"), [(nan, slice(None)), (-inf, slice(None)), (nan, slice(0, 1)), (inf, slice(0, 1))]
)
def test_what_has_no_answer_is_nowhere_right_and_counted(data, silent, value, classes):
    """The first task has 60 items; from item 16 on nothing is answered. Probes: 17, of which some came before."""
    silent(value, classes)
    (result,) = trained(data, [0])
    assert sum(result["online"]["correct"][4:]) == 0
    assert np.sum(result["test"]["none"]["correct"]) == 0
    assert np.sum(result["events"]["correct"]) == 0
    assert all(set(text) <= {"A", "="} for text in result["probes"]["correct"])
    assert np.sum(result["tasks"]["open"]) == 0
    assert result["unanswered"]["online"] == len(data.train_y) - 4 * 4
    assert result["unanswered"]["tests"] > len(data.test_y)


def test_finite_scores_leave_no_trace_of_a_count(data):
    assert all("unanswered" not in result for result in trained(data, range(2)))


def test_answers_that_lack_are_counted_alike_alone_stacked_and_after_a_kill(data, silent, tmp_path, monkeypatch):
    silent(nan)
    monkeypatch.setattr(loop, "undecided", lambda *given: True)
    together = trained(data, range(3))
    for seed, result in enumerate(together):
        (alone,) = trained(data, [seed])
        for section in ("unanswered", "test", "probes", "tasks", "events"):
            assert alone[section] == result[section]
        assert alone["online"]["correct"] == result["online"]["correct"]
    with pytest.raises(Killed):
        trained(data, range(3), Kept(tmp_path / "run.json", 20))
    resumed = trained(data, range(3), Kept(tmp_path / "run.json", 10**9))
    assert json.dumps(resumed) == json.dumps(together)
