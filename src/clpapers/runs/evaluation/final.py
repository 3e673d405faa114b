"""The test after the last step, under each restriction."""

from collections.abc import Sequence

import numpy as np
import torch

from clpapers.randomness import generator
from clpapers.runs.evaluation.answers import answered, mark, whole_test
from clpapers.runs.evaluation.protocol import Evaluator
from clpapers.runs.images import Images
from clpapers.runs.learner import Learner
from clpapers.runs.scenario import Scenario, restrictions_at_test


class FinalTest(Evaluator):
    """The test split after the last step, under each restriction that a cell is evaluated under.

    These are `scenario.restrictions_at_test`. images: the test items.
    """

    def __init__(self, cell: dict, scenarios: Sequence[Scenario], images: Images):
        steps = len(scenarios[0].ends)
        super().__init__({steps - 1: steps})
        self.cell, self.scenarios, self.images = cell, scenarios, images

    def test(self, t: int, learner: Learner) -> list[dict]:
        """For each seed `{restriction: {"correct", "total", "chance"}}`."""
        items, labels, tasks = whole_test(self.scenarios, self.images.pixels.device)
        outputs = self.scenarios[0].outputs
        given = [restrictions_at_test(self.cell, c) for c in self.scenarios]
        masks = {
            view: None if mask is None else torch.from_numpy(np.array([g[view] for g in given])).to(labels.device)
            for view, mask in given[0].items()
        }
        allowed = masks
        if learner.past_tasks_frozen:  # by columns up to the last task's of a batch
            order = tasks.argsort(dim=1, stable=True)
            items, labels, tasks = (each.gather(1, order) for each in (items, labels, tasks))
            allowed = {
                view: mask if mask is None else mask.take_along_dim(order[..., None], dim=1)
                for view, mask in masks.items()
            }
        truth = labels.cpu().numpy()
        answers = answered(learner, self.images, items, tasks, allowed)
        found = {view: mark(answers[view], truth, self.unanswered) for view in masks}
        return [
            {
                view: {
                    "correct": np.bincount(y[found[view][s]], minlength=outputs).tolist(),
                    "total": np.bincount(y, minlength=outputs).tolist(),
                    "chance": 1 / outputs if mask is None else float((1 / mask[s].sum(dim=1)).mean()),
                }
                for view, mask in masks.items()
            }
            for s, y in enumerate(truth)
        ]

    def result(self, s: int) -> dict:
        """In `test`, under each restriction: items right and in total, by class, and the chance level."""
        return {"test": self.taken[0][s]}


def test_items(count: int, most: int | None) -> np.ndarray:
    """The test items to evaluate, ascending: all, or a uniform subset of `most`, the same for every run."""
    if most is None or most >= count:
        return np.arange(count)
    return np.sort(generator(0, "test subset").permutation(count)[:most])
