"""The protocol of evaluators: when tests are due, how one is taken, and their entries in a seed's result."""

from collections.abc import Mapping

import numpy as np

from clpapers.runs.learner import Learner


class Evaluator:
    """Tests of one kind on S seeds, taken while the seeds train.

    steps: the steps with a test, ascending, each with a number that the test needs.
    before: whether a test comes before its step, when the learner knows of a task change but not yet of the batch.
    taken: the findings, test by test: numbers, arrays, and lists, tuples and dictionaries of these. When all tests are
        settled, they and `unanswered` are the evaluator's whole state. All else follows from the cell and its streams.
    unanswered: int64 [S], the items without an answer in the tests of all evaluators.
    waiting: the data of tests that were due and are yet to be settled.
    """

    before = False
    unanswered: np.ndarray

    def __init__(self, steps: Mapping[int, int]):
        self.steps = steps
        self.taken: list = []
        self.waiting: list = []

    def has_test(self, t: int) -> bool:
        """Whether step t has a test."""
        return t in self.steps

    def take(self, t: int, learner: Learner) -> None:
        """Take the test of step t, inside `learner.evaluation()`."""
        self.taken.append(self.test(t, learner))

    def settle(self, learner: Learner) -> None:
        """Take the tests that wait, inside `learner.evaluation()`."""

    def test(self, t: int, learner: Learner) -> object:
        """The findings of the test of step t."""
        raise NotImplementedError

    def result(self, s: int) -> dict[str, dict]:
        """Entries in the result of the stack's seed number s, ready for JSON; evaluators may share one."""
        raise NotImplementedError
