"""A method that restricts the classes that compete, with values to search."""

from clpapers import Learner, Observed

DECLARATION = {
    "options": {"weight": {"type": "number", "default": 0.5}},
    "uses": ["competing"],
    "grid": {"learner.weight": [0.5, 1.0]},
}


class Mine(Learner):
    def __init__(self, setting, *, weight):
        super().__init__(setting)
        self.weight = weight

    def observe(self, t, x, y):
        logits = self.net(x)
        loss = self.loss(t, logits, y)
        self.step(self.weight * loss)
        return Observed(loss, logits)
