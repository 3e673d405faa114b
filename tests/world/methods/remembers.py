"""A method that keeps a memory of classes."""

from clpapers import Observed, Replay
from clpapers.runs.losses import cross_entropy
from clpapers.runs.memories import Draws

DECLARATION = {"options": {}, "memory_of_classes": True, "keeps": "some items"}


class Mine(Replay):
    policy = "class_balanced"

    def __init__(self, setting):
        super().__init__(setting)
        self.replay = Draws(self.memory, setting.budget["replay_batch"])

    def observe(self, t, x, y):
        logits, drawn = self.net(x), self.replay(t)
        loss = total = self.loss(t, logits, y)
        if drawn is not None:
            total = loss + cross_entropy(self.net(drawn.x), drawn.y, drawn.weight)
        self.step(total)
        self.memory.write(t)
        return Observed(loss, logits)
