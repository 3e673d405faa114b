"""Answers: of finite scores alone, in batches whose maps stay in a CPU's cache, and of all items once."""

import json
from math import inf, nan
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tiny import CPU, SPLIT, Kept, Killed, cell

from clpapers.runs import loop
from clpapers.runs.evaluation import answers
from clpapers.runs.images import Images


@pytest.mark.parametrize(
    ("side", "channels", "size"), [(28, 1, 391), (32, 3, 100), (64, 3, 25), (224, 3, 10), (2, 1, 500)]
)
def test_a_batch_has_as_many_values_whatever_the_images(side, channels, size):
    """100 × 32 × 32 × 3 = 307,200 values, but 10 to 500 images."""
    images = Images(np.zeros((1, side, side, channels), np.uint8), "unit", CPU, torch.float32)
    items, sizes = torch.zeros(1, 2 * size + 1, dtype=torch.int64), []
    learner = SimpleNamespace(outside=False, scores=lambda x, tasks: sizes.append(x.shape[1]) or torch.zeros(*x.shape))
    answers.answered(learner, images, items, items, {"none": None})
    assert sizes == [size, size, 1]


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


SILENT = """
    late = False

    def put(self, scores):
        return scores.index_fill(2, torch.arange(scores.shape[2])[{classes}], {value}) if self.late else scores

    def observe(self, t, x, y):
        loss, logits = super().observe(t, x, y)
        self.late = t >= 4
        return Observed(loss, self.put(logits))

    def scores(self, x, tasks):
        return self.put(super().scores(x, tasks))
"""


@pytest.fixture
def trained(data, chunked, written):
    """Train SINGLE on some seeds; from step 4 on its scores are a value, in training and in tests."""

    def of(seeds, value=None, classes=":", checkpoint=None):
        spec = cell("single", {}, "mlp", order=SPLIT, batch=4)
        spec["evaluation"] |= {"shots": 2, "every": 30, "points": 3, "probes": 17}
        if value is not None:
            spec["learner"] = written(SILENT.format(value=value, classes=classes))
        return loop.train(spec, data, {seed: chunked[seed] for seed in seeds}, CPU, checkpoint=checkpoint)

    return of


@pytest.mark.parametrize(("value", "classes"), [("math.nan", ":"), ("-math.inf", ":"), ("math.inf", ":1")])
def test_what_has_no_answer_is_nowhere_right_and_counted(data, trained, value, classes):
    """The first task has 60 items; from item 16 on nothing is answered. Probes: 17, of which some came before."""
    (result,) = trained([0], value, classes)
    assert sum(result["online"]["correct"][4:]) == 0
    assert np.sum(result["test"]["none"]["correct"]) == 0
    assert np.sum(result["events"]["correct"]) == 0
    assert all(set(text) <= {"A", "="} for text in result["probes"]["correct"])
    assert np.sum(result["tasks"]["open"]) == 0
    assert result["unanswered"]["online"] == len(data.train_y) - 4 * 4
    assert result["unanswered"]["tests"] > len(data.test_y)


def test_finite_scores_leave_no_trace_of_a_count(trained):
    assert all("unanswered" not in result for result in trained(range(2)))


def test_answers_that_lack_are_counted_alike_alone_stacked_and_after_a_kill(trained, tmp_path):
    together = trained(range(3), "math.nan")
    for seed, result in enumerate(together):
        (alone,) = trained([seed], "math.nan")
        for section in ("unanswered", "test", "probes", "tasks", "events"):
            assert alone[section] == result[section]
        assert alone["online"]["correct"] == result["online"]["correct"]
    with pytest.raises(Killed):
        trained(range(3), "math.nan", checkpoint=Kept(tmp_path / "run.json", 20))
    resumed = trained(range(3), "math.nan", checkpoint=Kept(tmp_path / "run.json", 10**9))
    assert json.dumps(resumed) == json.dumps(together)
