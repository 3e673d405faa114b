"""The offline learner, the ideal for streaming learners."""

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
    "uses_batch": False,
    "own_nets": True,
    "repeats": ["epochs"],
}


class Offline(Learner):
    """Offline (`streaming`, eq. 1): for a test a fresh net is trained on all of the stream so far, in several epochs.

    memory: all items. Steps train nothing. A net's random draws depend on its number of items, not on earlier tests.

    Parameters
    ----------
    epochs, batch: of a net's training by the budget's optimiser; each epoch shuffles items afresh. The last batch is
        filled up with items of the one before, as in ExStream's code.
    """

    def __init__(self, setting: Setting, *, epochs: int, batch: int):
        super().__init__(setting)
        self.epochs, self.batch = epochs, batch
        self.seen = 0  # items seen
        self.learnt: int | None = None  # items behind the net; None before the first

    def observe(self, t: int, x: torch.Tensor | None, y: torch.Tensor | None) -> Observed:
        self.seen = self.setting.step(t).stop
        return Observed()

    def prepare(self) -> None:
        """Train a net, unless nothing has come since the last one. Before the first item it stays untrained."""
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
