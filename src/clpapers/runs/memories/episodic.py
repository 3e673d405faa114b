"""Episodic memories: a few items of each class of each task."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import torch

from clpapers.randomness import generator
from clpapers.runs.learner import Setting


def uniform(seen: np.ndarray, per_class: int, rng: np.random.Generator) -> np.ndarray:
    """A uniform sample, like a reservoir of the class at the end of its task."""
    return rng.choice(seen, min(per_class, len(seen)), replace=False)


def ring(seen: np.ndarray, per_class: int, rng: np.random.Generator) -> np.ndarray:
    """The last items, like a ring buffer of the class at the end of its task."""
    return seen[-per_class:]


WRITES = {"uniform": uniform, "ring": ring}


class EpisodicMemory:
    """The memories of each completed task of S streams, planned in advance from labels and random draws.

    Parameters
    ----------
    per_class: items of a class in the memory of a task, 1 or more; a class with fewer items keeps all.
    write: how they are chosen, a key of `WRITES`.

    items, labels: int64 [S, tasks, m]; m does not depend on stack mates.
    valid: bool [S, tasks, m], false for repetitions where classes have too few items.
    counts: int64 [S, tasks], items of each task.

    Raises ValueError for tasks that do not follow one another, and for less than one item for each class.
    """

    def __init__(self, setting: Setting, per_class: int, write: str):
        labels, tasks = setting.labels.cpu().numpy(), setting.tasks.cpu().numpy()
        if tasks[:, 0].any() or not np.isin(np.diff(tasks), [0, 1]).all():
            raise ValueError("an episodic memory needs tasks that follow one another")
        if per_class < 1:
            raise ValueError("budget.memory: fewer than one item for each class of each task")
        self.setting, device = setting, setting.items.device
        classes = int(setting.task_classes.sum(dim=2).max())
        self.size = min(per_class * classes, int(np.bincount(tasks[0]).max()))
        kept = [
            self._positions(
                x, y, np.searchsorted(task, np.arange(setting.task_count + 1)), per_class, WRITES[write], seed
            )
            for x, y, task, seed in zip(setting.items.cpu().numpy(), labels, tasks, setting.seeds)
        ]
        self.counts = np.array([[len(each) for each in of_seed] for of_seed in kept])
        slots = np.array([[np.resize(each, self.size) for each in of_seed] for of_seed in kept])  # repeats in turn
        positions = torch.from_numpy(slots).to(device).flatten(1)
        shape = (len(kept), setting.task_count, self.size)
        self.items, self.labels = (each.gather(1, positions).view(shape) for each in (setting.items, setting.labels))
        self.valid = torch.from_numpy(np.arange(self.size) < self.counts[..., None]).to(device)

    @staticmethod
    def _positions(
        items: np.ndarray, labels: np.ndarray, edges: np.ndarray, per_class: int, write: Callable, seed: int
    ) -> list[np.ndarray]:
        """The stream positions kept of each task j, class by class, among edges[j] … edges[j+1]-1.

        An item that comes in several epochs counts once, at its last position.
        """
        rng, kept = generator(seed, "memory"), []
        for start, end in pairwise(edges):
            _, back = np.unique(items[start:end][::-1], return_index=True)
            last = np.sort(end - 1 - back)
            y = labels[last]
            each = [write(last[y == c], per_class, rng) for c in np.unique(y)]
            kept.append(np.concatenate([edges[:0], *each]))
        return kept

    def read(self, slots: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
        """Images [S, k, C, H, W], labels [S, k] and competing classes [S, k, K] in slots [S, k], task·m + slot.

        The classes that competed in an item's task compete again; None where all do.
        """
        x = self.setting.images(self.items.flatten(1).gather(1, slots))
        allowed = None
        if self.setting.masks is not None:
            rows = torch.arange(len(slots), device=slots.device)[:, None]
            allowed = self.setting.task_classes[rows, slots // self.size]
        return x, self.labels.flatten(1).gather(1, slots), allowed

    def of_task(self, tasks: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Slots [S, m] of the whole memory of one task a seed, `tasks` [S], and weights [S, m] that sum to one."""
        slots = tasks[:, None] * self.size + torch.arange(self.size, device=tasks.device)
        valid = self.valid[torch.arange(len(tasks), device=tasks.device), tasks].to(self.setting.images.dtype)
        return slots, valid / valid.sum(dim=1, keepdim=True)
