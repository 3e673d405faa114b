"""A method that grows with every task."""

import torch

from clpapers import Learner, Observed

DECLARATION = {"options": {}, "uses": ["changes"], "grows": True}


class Mine(Learner):
    def __init__(self, setting):
        super().__init__(setting)
        self.more = []

    def task_change(self, t):
        sizes = len(self.setting.seeds), 1, self.classes
        self.more.append(torch.zeros(sizes, dtype=self.setting.images.dtype, device=self.setting.items.device))

    def scores(self, x, tasks):
        return self.net(x) + sum(self.more)

    def observe(self, t, x, y):
        logits = self.net(x) + sum(self.more)
        loss = self.loss(t, logits, y)
        self.step(loss)
        for each in self.more:
            each += 1e-3
        return Observed(loss, logits)
