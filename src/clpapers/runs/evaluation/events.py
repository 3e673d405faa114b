"""Tests along the stream: accuracy after every n items, and detection of classes not yet seen."""

import math
from collections.abc import Sequence

import numpy as np

from clpapers.runs.evaluation.answers import answered, mark, number, whole_test
from clpapers.runs.evaluation.protocol import Evaluator
from clpapers.runs.footprint import learner_bytes
from clpapers.runs.images import Images
from clpapers.runs.learner import Learner
from clpapers.runs.scenario import Scenario


class Events(Evaluator):
    """The testing events of S seeds (`streaming`, section 2.1), each of the whole test split, all outputs competing.

    One is due after each step that completes another `every` items, and after the last. images: the test items.
    """

    def __init__(self, every: int, scenarios: Sequence[Scenario], images: Images):
        ends = scenarios[0].ends
        due = np.flatnonzero(np.diff(ends // every, prepend=0))
        super().__init__({int(t): int(ends[t]) for t in (*due, len(ends) - 1)})  # step → items seen after it
        self.images = images
        self.items, labels, self.tasks = whole_test(scenarios, images.pixels.device)
        self.truth = labels.cpu().numpy()
        self.first = np.full((len(scenarios), scenarios[0].outputs), np.iinfo(int).max)  # first position of each class
        for row, c in zip(self.first, scenarios):
            present, position = np.unique(c.labels, return_index=True)
            row[present] = position

    def test(self, t: int, learner: Learner) -> tuple[np.ndarray, np.ndarray, list[float], list[dict[str, int]]]:
        """Classes seen, bool [S, K], items right, int64 [S, K], and each seed's area (`auroc`) and bytes."""
        found = answered(learner, self.images, self.items, self.tasks, {"none": None}, confidence=True)
        answers, confidence = found.values()
        seen = self.first < self.steps[t]
        known = np.take_along_axis(seen, self.truth, axis=1)
        right = mark(answers, self.truth, self.unanswered)
        correct = np.stack([self._per_class(y[own]) for y, own in zip(self.truth, right)])
        areas = [auroc(sure[of], sure[~of]) for sure, of in zip(confidence, known)]
        return seen, correct, areas, [learner_bytes(learner, s) for s in range(len(seen))]

    def _per_class(self, labels: np.ndarray) -> np.ndarray:
        return np.bincount(labels, minlength=self.first.shape[1])

    def result(self, s: int) -> dict:
        """In `events`, event by event: items seen, test items right per class, and the classes seen.

        `unknown_auroc` measures how well the learner's confidence separates test items of classes seen from the others
        (`auroc`); null where either are missing. `learner_bytes` is the footprint.
        """
        seen, correct, areas, footprints = ([each[s] for each in column] for column in zip(*self.taken))
        return {
            "events": {
                "time": list(self.steps.values()),
                "correct": [each.tolist() for each in correct],
                "total": self._per_class(self.truth[s]).tolist(),
                "seen": [each.tolist() for each in seen],
                "unknown_auroc": [number(area) for area in areas],
                "learner_bytes": footprints,
            }
        }


def auroc(positive: np.ndarray, negative: np.ndarray) -> float:
    """The area under the ROC curve: how often a random positive lies above a random negative; ties count half.

    positive, negative: float [P] and [N]. The statistic of Mann & Whitney (1947) over P·N; NaN where P or N is 0 or a
    value is NaN.
    """
    from scipy.stats import mannwhitneyu  # here, since most runs have no such test, and it takes a second

    if not (len(positive) and len(negative)):
        return math.nan
    u = mannwhitneyu(positive.astype(float), negative.astype(float), method="asymptotic").statistic
    return float(u / (len(positive) * len(negative)))
