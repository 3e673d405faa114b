"""Dark experience replay++ (DER++)."""

import numpy as np
import torch

from clpapers.runs.learner import Observed, Replay, Setting
from clpapers.runs.losses import cross_entropy
from clpapers.runs.memories import Draw, Draws

# The authors' choice for class-incremental CIFAR-10 with a memory of 200 items, then of 500: `seq-cifar10`, `derpp` in
# utils/best_args.py of github.com/aimagelab/mammoth. They go with SGD at 0.03, batches of 32 from stream and memory and
# 50 epochs a task; here the paper that it is compared in sets those. The defaults are the choice for 500 items.
DECLARATION = {
    "options": {
        "alpha": {"type": "number", "minimum": 0, "default": 0.2, "examples": [0.1, 0.2]},
        "beta": {"type": "number", "minimum": 0, "default": 0.5, "examples": [0.5, 0.5]},
    }
}


class DERpp(Replay):
    """DER++. Buzzega et al. 2020, Dark experience for general continual learning: a strong, simple baseline.

    The loss is ℓ(h(x), y) + α·‖z' - h(x')‖² + β·ℓ(h(x''), y''), with the mean over items and, as in the authors' code,
    over logits. Stream batch x, and x' and x'', go through the net one after the other.

    memory: reservoir of items with the logits z that the net gave them when they came, before it learnt them; written
    after the step.  replay: uniform, two independent draws, as soon as the memory holds an item.

    Parameters
    ----------
    alpha: weight of the squared distance to the stored logits on one draw.
    beta: weight of the cross-entropy on the other draw.
    """

    def __init__(self, setting: Setting, *, alpha: float, beta: float):
        super().__init__(setting)
        self.alpha, self.beta = alpha, beta
        size, plans = setting.budget["replay_batch"], self.memory.plans
        self.dark = Draws(self.memory, size, purpose="replay logits")
        self.labelled = Draws(self.memory, size, purpose="replay labels")
        self.slots = torch.from_numpy(plans).to(setting.items.device)
        self.slots[self.slots < 0] = self.memory.capacity  # the spare one, of items that are not kept
        self.kept = (plans >= 0).any(axis=0)
        self.seeds = torch.arange(len(plans), device=self.slots.device)
        self.remembered = torch.zeros(
            (*self.memory.item.shape, self.classes), dtype=setting.images.dtype, device=self.slots.device
        )

    def observe(self, t: int, x: torch.Tensor, y: torch.Tensor) -> Observed:
        logits = self.net(x)
        loss = stream_loss = cross_entropy(logits, y)
        dark, labelled = self.dark(t), self.labelled(t)
        if dark is not None:
            loss = loss + self.alpha * self.distance(self.net(dark.x), dark)
            loss = loss + self.beta * cross_entropy(self.net(labelled.x), labelled.y, labelled.weight)
        self.step(loss)
        self.remember(t, logits.detach())
        return Observed(stream_loss, logits)

    def distance(self, logits: torch.Tensor, draw: Draw) -> torch.Tensor:
        """Each seed's mean squared distance [S] of logits [S, k, K] from those remembered of a draw."""
        stored = self.remembered[self.seeds[:, None], draw.slots]
        each = (logits - stored).square().mean(dim=2)
        return each.mean(dim=1) if draw.weight is None else (each * draw.weight).sum(dim=1)

    def remember(self, t: int, logits: torch.Tensor) -> None:
        """Write the items of stream batch t that the memory keeps, and their logits [S, B, K]."""
        now = self.setting.step(t)
        for i in np.flatnonzero(self.kept[now]):  # in turn: of two items of a batch in one slot, the later stays
            self.remembered[self.seeds, self.slots[:, now.start + i]] = logits[:, i]
        self.memory.write(t)
