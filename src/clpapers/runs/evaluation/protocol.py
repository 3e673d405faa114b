"""What every evaluator is: when its tests are due, how one is taken, and what a seed's result says of them."""

from collections.abc import Mapping

from clpapers.runs.learner import Learner


class Evaluator:
    """Tests of one kind on S seeds, taken while the seeds train.

    steps: the steps that its tests go with, ascending, each with the number that the test needs of it.
    before: whether a test comes before its step, when the learner knows of a task change but not yet of the batch.
    taken: what each test found, in their order: numbers, arrays, and lists, tuples and dictionaries of these. It is the
        evaluator's whole state; everything else follows from the cell and its streams.
    """

    before = False

    def __init__(self, steps: Mapping[int, int]):
        self.steps, self.taken = steps, []

    def due(self, t: int) -> bool:
        """Whether a test goes with step t."""
        return t in self.steps

    def take(self, t: int, learner: Learner) -> None:
        """Take the test that goes with step t, inside `learner.evaluation()`."""
        self.taken.append(self.test(t, learner))

    def test(self, t: int, learner: Learner) -> object:
        """What the test that goes with step t finds."""
        raise NotImplementedError

    def result(self, s: int) -> dict[str, dict]:
        """The entries that the result of the stack's seed number s gets, ready for JSON; evaluators may share one."""
        raise NotImplementedError
