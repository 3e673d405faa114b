"""Tests along the stream: how right the learner is after every n items, and whether it knows what it has not seen."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from clpapers.runs.course import Course
from clpapers.runs.evaluation import judged, number, whole_test
from clpapers.runs.holdings import learner_bytes
from clpapers.runs.images import Images
from clpapers.runs.learner import Learner


class EventTests:
    """The testing events of S seeds (`streaming`, section 2.1), each of the whole test split, all outputs competing.

    They are due after the steps that complete `every` items more, and after the last. The learner does not know when.

    Parameters
    ----------
    images: the test items.
    """

    def __init__(self, every: int, courses: Sequence[Course], images: Images):
        self.images, ends = images, courses[0].ends
        due = np.flatnonzero(np.diff(ends // every, prepend=0))
        self.steps = {int(t): int(ends[t]) for t in (*due, len(ends) - 1)}  # step → items seen after it
        self.items, self.labels, self.tasks = whole_test(courses, images.pixels.device)
        self.truth = self.labels.cpu().numpy()
        self.first = np.full((len(courses), courses[0].outputs), np.iinfo(int).max)  # where each class first comes
        for mine, c in zip(self.first, courses):
            present, position = np.unique(c.labels, return_index=True)
            mine[present] = position
        self.times: list[int] = []  # an event each, as the following
        self.seen: list[np.ndarray] = []  # bool [S, K]
        self.correct: list[np.ndarray] = []  # int64 [S, K]
        self.areas: list[list[float]] = []  # a seed each
        self.bytes: list[list[dict[str, int]]] = []

    def take(self, t: int, learner: Learner) -> None:
        """Take the tests that are due after step t, inside `learner.evaluation()`."""
        right, confidence = judged(learner, self.images, self.items, self.labels, self.tasks)
        seen = self.first < self.steps[t]
        known = np.take_along_axis(seen, self.truth, axis=1)
        self.times.append(self.steps[t])
        self.seen.append(seen)
        self.correct.append(np.stack([self._per_class(y[mine]) for y, mine in zip(self.truth, right)]))
        self.areas.append([auroc(sure[of], sure[~of]) for sure, of in zip(confidence, known)])
        self.bytes.append([learner_bytes(learner, s) for s in range(len(seen))])

    def _per_class(self, labels: np.ndarray) -> np.ndarray:
        return np.bincount(labels, minlength=self.first.shape[1])

    def result(self, s: int) -> dict:
        """Of the stack's seed number s, event by event: items seen, test items right per class, which classes came.

        `unknown_auroc` is how well the learner's confidence tells test items of classes that came from those of
        classes that did not (`auroc`); null where there are none of either. `learner_bytes` is what it holds.
        """
        return {
            "time": self.times,
            "correct": [each[s].tolist() for each in self.correct],
            "total": self._per_class(self.truth[s]).tolist(),
            "seen": [each[s].tolist() for each in self.seen],
            "unknown_auroc": [number(each[s]) for each in self.areas],
            "learner_bytes": [each[s] for each in self.bytes],
        }


def auroc(positive: np.ndarray, negative: np.ndarray) -> float:
    """The area under the ROC curve: the chance that a random positive lies above a random negative; a tie is half.

    positive, negative: float [P] and [N]. By ranks, as the statistic of Mann & Whitney (1947) over P·N; NaN where P or
    N is 0, and where a value is NaN.
    """
    values, p, n = np.concatenate([positive, negative]), len(positive), len(negative)
    if not (p and n) or np.isnan(values).any():
        return math.nan
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = counts.cumsum() - (counts - 1) / 2  # of tied values the mean
    return float((ranks[place[:p]].sum() - p * (p + 1) / 2) / (p * n))
