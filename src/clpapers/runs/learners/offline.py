"""The offline learner, the ideal that streaming learners are compared with."""

import numpy as np
import torch

from clpapers.randomness import generator
from clpapers.runs.learner import Learner, Observed, Setting
from clpapers.runs.losses import cross_entropy
from clpapers.runs.scenario import ScenarioError

DECLARATION = {
    "options": {
        "epochs": {"type": "integer", "minimum": 1, "examples": [3]},
        "batch": {"type": "integer", "minimum": 1, "examples": [7]},
    },
    "keeps": "all items so far",
    "looks": False,
    "own_nets": True,
}


class Offline(Learner):
    """Offline (`streaming`, eq. 1): for a test a fresh net is trained on all of the stream so far, many times over.

    memory: all items. Nothing is trained in a step. What a net draws depends on how much it learns from, not on the
    tests before.

    Parameters
    ----------
    epochs, batch: how a net is trained by the budget's optimiser, items shuffled afresh in each epoch. The last batch
        is as large as the others, with items of the one before, as in ExStream's code.
    """

    def __init__(self, setting: Setting, *, epochs: int, batch: int):
        super().__init__(setting)
        self.epochs, self.batch = epochs, batch
        self.seen = 0  # items
        self.learnt: int | None = None  # by the net, where there is one yet

    def observe(self, t: int, x: None, y: None) -> Observed:
        self.seen = self.setting.step(t).stop
        return Observed()

    def prepare(self) -> None:
        """Train a net, unless nothing has come since the last one. Before anything comes it stays as it begins."""
        if self.learnt == self.seen:
            return
        n, setting, purpose = self.seen, self.setting, f"offline after {self.seen}"
        if n == 1 and setting.spec.get("batch_norm"):
            raise ScenarioError("net.batch_norm: nothing can be learnt from one item; test later, or take false")
        self.net, rngs = setting.net(purpose), [generator(seed, f"{purpose} items") for seed in setting.seeds]
        optimizer, batch = self.optimize(list(self.net.parameters())), self.batch
        for _ in range(self.epochs):
            order = torch.from_numpy(np.stack([rng.permutation(n) for rng in rngs])).to(setting.items.device)
            for start in range(0, n, batch):
                chosen = order[:, max(min(start, n - batch), 0) : start + batch]
                logits = self.net(setting.images(setting.items.gather(1, chosen)))
                optimizer.descend(cross_entropy(logits, setting.labels.gather(1, chosen)))
        optimizer.zero_grad()
        self.learnt = n

    def memory_use(self, s: int) -> dict:
        return self.stored(self.setting.labels[s, : self.seen])
