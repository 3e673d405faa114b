"""iCaRL, online."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator

import numpy as np
import torch
import torch.nn.functional as F

from clpapers.runs.learners import Learner, Setting


class ICaRL(Learner):
    """iCaRL. Rebuffi et al. 2017, algorithms 1-5, online as in `rules`, 3.3 and A.5: exemplars change at each batch.

    Step: binary cross-entropy on the batch and all exemplars. The target of a class that was known at the last task
    change, and is not in the batch, is σ(z̃/T), z̃ the logit of the net as it was then; of any other, one or zero.
    Then, for each class in the batch, herding picks m = ⌊budget / classes seen⌋ exemplars (at least one) anew from
    those it had and the batch; the other classes keep their first m. Prediction: the nearest mean of a class's
    exemplars, in the normalised features below the head.

    Parameters
    ----------
    temperature: T.
    """

    stackable = False  # classes differ in their number of exemplars, and so do seeds

    def __init__(self, setting: Setting, *, temperature: float):
        super().__init__(setting)
        self.temperature, self.budget = temperature, setting.budget["memory"]
        self.exemplars: dict[int, torch.Tensor] = {}  # class → item indices, best first
        self.old = None  # the net at the last task change, and which classes it knew
        self.known = torch.zeros(self.classes, dtype=torch.bool, device=setting.items.device)

    def task_change(self, t: int) -> None:
        if self.old is None:
            self.old = copy.deepcopy(self.net).requires_grad_(False).eval()
        self.old.load_state_dict(self.net.state_dict())
        self.known[list(self.exemplars)] = True

    def observe(self, t: int, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        b, all_x, all_y = x.shape[1], x, y
        if self.exemplars:
            stored = torch.cat(list(self.exemplars.values()))[None]
            all_x = torch.cat([x, self.setting.images(stored)], dim=1)
            all_y = torch.cat([y, self.labels_of_exemplars()[None]], dim=1)
        logits = self.net(all_x)
        loss = self.binary_cross_entropy(t, logits, self.targets(all_x, all_y, y)).sum(dim=2)
        self.step(loss.mean(dim=1))
        self.choose(self.setting.items[0, self.setting.step(t)], y[0])
        return loss[:, :b].mean(dim=1), logits[:, :b]

    def labels_of_exemplars(self) -> torch.Tensor:
        """The class of each exemplar, in the order of the memory."""
        classes = torch.tensor(list(self.exemplars), device=self.known.device)
        counts = torch.tensor([len(items) for items in self.exemplars.values()], device=self.known.device)
        return classes.repeat_interleave(counts)

    @torch.no_grad()
    def targets(self, x: torch.Tensor, y: torch.Tensor, present: torch.Tensor) -> torch.Tensor:
        """[1, B, K]: what the old net says of the classes that it knew, unless they are present; else one-hot."""
        target = F.one_hot(y, self.classes).to(x.dtype)
        if self.old is not None:
            distilled = self.known.clone()
            distilled[present.flatten()] = False
            target[..., distilled] = torch.sigmoid(self.old(x)[..., distilled] / self.temperature)
        return target

    def binary_cross_entropy(self, t: int, logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Of each item and output, [1, B, K]; zero for classes that do not compete."""
        each = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
        mask = self.mask(t)
        return each if mask is None else each * mask[:, None]

    @torch.no_grad()
    def choose(self, items: torch.Tensor, y: torch.Tensor) -> None:
        """Herd the batch's classes anew, and shorten the others."""
        present = y.unique().tolist()
        m = max(self.budget // len({*self.exemplars, *present}), 1)
        none = items[:0]
        pools = [self.pool(self.exemplars.get(c, none), items[y == c]) for c in present]
        features = self.features(torch.cat(pools)).cpu().numpy()
        for c, pool in zip(present, pools):
            mine, features = features[: len(pool)], features[len(pool) :]
            self.exemplars[c] = pool[torch.from_numpy(herd(mine, m)).to(pool.device)]
        for c in self.exemplars:
            self.exemplars[c] = self.exemplars[c][:m]

    @staticmethod
    def pool(old: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
        """Both, an item that the stream shows again only once."""
        both = torch.cat([old, new])
        return both if len(both.unique()) == len(both) else both.unique()

    def features(self, items: torch.Tensor) -> torch.Tensor:
        """Normalised features [N, d] of items [N], in evaluation mode."""
        training = self.net.training
        features = self.net.eval().features(self.setting.images(items[None]))[0]
        self.net.train(training)
        return F.normalize(features, dim=1)

    @contextlib.contextmanager
    def evaluation(self) -> Iterator[None]:
        with super().evaluation(), torch.no_grad():
            features = self.features(torch.cat(list(self.exemplars.values())))
            each = features.split([len(items) for items in self.exemplars.values()])
            self.means = F.normalize(torch.stack([mine.mean(dim=0) for mine in each]), dim=1)
            yield

    def scores(self, x: torch.Tensor, tasks: torch.Tensor) -> torch.Tensor:
        """Minus the squared distance to each class's mean; -∞ for a class without exemplars."""
        distances = torch.cdist(F.normalize(self.net.features(x)[0], dim=1), self.means).square()
        scores = x.new_full((1, x.shape[1], self.classes), -torch.inf)
        scores[0, :, list(self.exemplars)] = -distances
        return scores

    def needed_to_answer(self) -> object:
        return self.net, self.means

    def memory_use(self, s: int) -> dict:
        counts = [len(self.exemplars.get(c, ())) for c in range(self.classes)]
        return {"items": sum(counts), "bytes": sum(counts) * self.setting.images.pixels[0].numel(), "per_class": counts}


def herd(features: np.ndarray, m: int) -> np.ndarray:
    """Algorithm 4: positions of m of the features [N, d], each bringing their mean nearest to that of all."""
    inner = features @ features.T
    towards, squares = inner.mean(axis=1), inner.diagonal() / 2
    chosen, sum_ = np.empty(min(m, len(features)), dtype=np.int64), np.zeros(len(features), features.dtype)
    free = np.zeros(len(features), features.dtype)
    for k in range(len(chosen)):
        # ‖(k+1)·μ - Σ chosen - f‖²/2, less what is the same for all f, with its sign turned
        best = int(np.argmax((k + 1) * towards - sum_ - squares + free))
        chosen[k], free[best] = best, -np.inf
        sum_ += inner[best]
    return chosen
