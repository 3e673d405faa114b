"""Multi-task learning, the upper bound."""

import numpy as np
import torch

from clpapers.randomness import generator
from clpapers.runs.learner import Learner, Observed, Setting
from clpapers.runs.losses import cross_entropy

DECLARATION = {"options": {}, "keeps": "all tasks at once", "uses_batch": False, "static": True}


class MultiTask(Learner):
    """MULTI-TASK. `agem`, section 6: one pass over the data of all tasks, shuffled.

    Not lifelong learning, but its upper bound. Steps are as of the stream, with other items. All classes compete in
    training, as in the authors' code.
    """

    def __init__(self, setting: Setting):
        super().__init__(setting)
        n = setting.items.shape[1]
        shuffled = np.stack([generator(seed, "multi-task items").permutation(n) for seed in setting.seeds])
        order = torch.from_numpy(shuffled).to(setting.items.device)
        self.items, self.labels = setting.items.gather(1, order), setting.labels.gather(1, order)

    def observe(self, t: int, x: torch.Tensor | None, y: torch.Tensor | None) -> Observed:
        logits = self.net(self.setting.images(self.setting.columns(self.items, t)))
        loss = cross_entropy(logits, self.setting.columns(self.labels, t))
        self.step(loss)
        return Observed(loss)
