"""A method of one seed and plain tensors: a memory, task changes and answers of its own."""

import torch.nn.functional as F

from clpapers import Method


class Mine(Method):
    def __init__(self, *, weight: float = 0.5):
        self.weight, self.tasks = weight, 0

    def begin_task(self):
        self.tasks += 1

    def observe(self, x, y):
        loss = F.cross_entropy(self.net(x), y)
        if len(self.memory):
            old_x, old_y = self.memory.draw()
            loss = loss + self.weight * F.cross_entropy(self.net(old_x), old_y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.memory.add(x, y)

    def predict(self, x):
        return self.net(x) / self.tasks
