"""All evaluators of one run."""

import itertools
from collections.abc import Sequence

import numpy as np

from clpapers.runs.clock import Clock
from clpapers.runs.evaluation.events import Events
from clpapers.runs.evaluation.final import FinalTest
from clpapers.runs.evaluation.memory import MemoryAccuracy
from clpapers.runs.evaluation.probes import Probes
from clpapers.runs.evaluation.protocol import Evaluator
from clpapers.runs.evaluation.tasks import LearningCurves, TaskAccuracy, TaskItems, TaskUncertainty
from clpapers.runs.images import Images
from clpapers.runs.learner import Learner
from clpapers.runs.memories.episodic import EpisodicMemory
from clpapers.runs.scenario import Scenario


class Evaluation:
    """The evaluators that a cell asks for.

    Evaluators of one of the `sessions` that are due together share one preparation of the learner (`Learner.prepare`);
    a learner that draws nets for a test draws new ones for the next session.

    Parameters
    ----------
    images: the test items.
    findings: those so far, by the evaluators' names; filled as the run goes on.
    unanswered: int64 [S], test items without an answer so far; counted up as the run goes on.
    """

    def __init__(
        self,
        cell: dict,
        scenarios: Sequence[Scenario],
        learner: Learner,
        images: Images,
        findings: dict[str, list],
        unanswered: np.ndarray,
    ):
        options, self.learner = cell["evaluation"], learner
        self.sessions: list[list[Evaluator]] = []
        if "shots" in options:
            tasks = TaskItems(cell, scenarios, images, unanswered)
            accuracy = TaskAccuracy(tasks)
            self.sessions.append([accuracy, LearningCurves(options["shots"], tasks)])
            if hasattr(learner, "uncertainty"):
                self.sessions[-1].append(TaskUncertainty(tasks))
            memory = getattr(learner, "memory", None)
            if isinstance(memory, EpisodicMemory) and cell["oracle"]["name"] == "chunks":
                self.sessions[-1].append(MemoryAccuracy(memory, accuracy.steps))
        if "every" in options:
            self.sessions.append([Events(options["every"], scenarios, images)])
        self.sessions.append([Probes(options, learner.setting), FinalTest(cell, scenarios, images)])
        self.evaluators = list(itertools.chain.from_iterable(self.sessions))
        for evaluator in self.evaluators:
            evaluator.taken = findings.setdefault(type(evaluator).__name__, [])
            evaluator.unanswered = unanswered
        self.tested = {t for evaluator in self.evaluators for t in evaluator.steps}

    def misfit(self, step: int) -> str:
        """The first mistake in the findings of tests up to a step; empty where there are as many as were due."""
        for each in self.evaluators:
            due = sum(each.has_test(t) for t in range(step))
            if not isinstance(each.taken, list) or len(each.taken) != due:
                return f"its findings of {type(each).__name__} are not of {due} tests"
        return ""

    def take(self, t: int, clock: Clock, *, before: bool = False) -> None:
        """Take all tests that are due after step t, or `before` it. Preparations for them count as training time."""
        if t not in self.tested:
            return
        for session in self.sessions:
            due = [evaluator for evaluator in session if evaluator.before == before and evaluator.has_test(t)]
            if due:
                self.learner.prepare()
                with clock.testing(), self.learner.evaluation():
                    for evaluator in due:
                        evaluator.take(t, self.learner)

    def settle(self, clock: Clock) -> None:
        """Take the tests that wait; then all tests that were due have findings."""
        waiting = [each for each in self.evaluators if each.waiting]
        if waiting:
            with clock.testing(), self.learner.evaluation():
                for each in waiting:
                    each.settle(self.learner)

    def result(self, s: int) -> dict[str, dict]:
        """The entries of all evaluators in the result of the stack's seed number s."""
        found: dict[str, dict] = {}
        for evaluator in self.evaluators:
            for key, value in evaluator.result(s).items():
                found.setdefault(key, {}).update(value)
        return found
