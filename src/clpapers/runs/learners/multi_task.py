"""Multi-task learning, the upper bound."""

import numpy as np
import torch

from clpapers.randomness import generator
from clpapers.runs.learner import Learner, Observed, Setting
from clpapers.runs.losses import cross_entropy

DECLARATION = {
    "options": {"classes": {"enum": ["all", "of_task"], "default": "all", "examples": ["all", "of_task"]}},
    "keeps": "all tasks at once",
    "uses_batch": False,
    "static": True,
    "where": {"classes": {"of_task": {"uses": ["tasks", "competing"]}}},
}


class MultiTask(Learner):
    """MULTI-TASK. `agem`, section 6: one pass over the data of all tasks, shuffled.

    Not lifelong learning, but its upper bound. Steps are as of the stream, with other items.

    Parameters
    ----------
    classes: what competes in training: `all` classes, as in the authors' code; or, where the oracle's tasks restrict
        training, for each item the classes `of_task`, its own.
    """

    def __init__(self, setting: Setting, *, classes: str = "all"):
        super().__init__(setting)
        n = setting.items.shape[1]
        shuffled = np.stack([generator(seed, "multi-task items").permutation(n) for seed in setting.seeds])
        order = torch.from_numpy(shuffled).to(setting.items.device)
        self.items, self.labels = setting.items.gather(1, order), setting.labels.gather(1, order)
        self.tasks = setting.tasks.gather(1, order) if classes == "of_task" and setting.masks is not None else None

    def observe(self, t: int, x: torch.Tensor | None, y: torch.Tensor | None) -> Observed:
        logits = self.net(self.setting.images(self.setting.columns(self.items, t)))
        if self.tasks is not None:
            tasks = self.setting.columns(self.tasks, t)
            rows = torch.arange(len(tasks), device=tasks.device)[:, None]
            logits = logits.masked_fill(~self.setting.task_classes[rows, tasks], -torch.inf)
        loss = cross_entropy(logits, self.setting.columns(self.labels, t))
        self.step(loss)
        return Observed(loss)
