"""Learning without forgetting, as van de Ven et al. 2022 have it."""

import copy

import torch

from clpapers import Method

DECLARATION = {
    "options": {
        "strength": {"enum": ["one", "by_count", "by_task"], "default": "one"},
        "temperature": {"type": "number", "exclusiveMinimum": 0, "default": 2.0},
    }
}


class LwF(Method):
    """LwF. Li & Hoiem 2016; van de Ven, Tuytelaars & Tolias 2022, with the weights of the authors' code (e6d795a).

    The net from before the task answers the new images, too. A step adds the cross-entropy with its answers to the
    usual one. Both answers are softened by a temperature.

    strength: `one`, over all outputs, weight 1 (class-incremental); `by_count`, over all outputs, times the number of
        past tasks (domain-incremental); `by_task`, the sum of one term for each past task, over its classes
        (task-incremental).
    """

    def __init__(self, strength: str = "one", temperature: float = 2.0):
        self.strength, self.temperature = strength, temperature
        self.teacher = None
        self.tasks = []  # the classes of each past task
        self.classes_now = set()

    def begin_task(self):
        if self.classes_now:
            self.tasks.append(sorted(self.classes_now))
            self.teacher = copy.deepcopy(self.net).requires_grad_(False).eval()
        self.classes_now = set()

    def observe(self, x, y):
        self.classes_now |= set(y.tolist())
        logits = self.net(x)
        loss = self.loss(logits, y)
        if self.teacher is not None:
            with torch.no_grad():
                before = self.teacher(x)
            if self.strength == "by_task":
                loss = loss + sum(self.distance(logits[:, own], before[:, own]) for own in self.tasks)
            else:
                weight = len(self.tasks) if self.strength == "by_count" else 1
                loss = loss + weight * self.distance(logits, before)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return logits

    def distance(self, logits, before):
        """The cross-entropy of softened answers with those before, of logits [B, K] each."""
        before = (before / self.temperature).softmax(dim=1)
        return -(before * (logits / self.temperature).log_softmax(dim=1)).sum(dim=1).mean()
