"""A method that looks at the tasks of items: a bias of its own for each."""

import torch

from clpapers import Learner, Observed

DECLARATION = {"options": {}, "uses": ["changes", "tasks"], "answers_by_task": True}


class Mine(Learner):
    def __init__(self, setting):
        super().__init__(setting)
        self.bias = torch.zeros_like(setting.task_classes, dtype=setting.images.dtype).requires_grad_()
        self.seeds = torch.arange(len(setting.seeds), device=setting.items.device)[:, None]
        self.optimizer = self.optimize([*self.parameters, self.bias])

    def scores(self, x, tasks):
        return self.net(x) + self.bias[self.seeds, tasks]

    def observe(self, t, x, y):
        logits = self.scores(x, self.setting.tasks[:, self.setting.step(t)])
        loss = self.loss(t, logits, y)
        self.step(loss)
        return Observed(loss, logits)
