"""Gradient episodic memory."""

from collections.abc import Sequence

import numpy as np
import torch

from clpapers.runs.constrained import Constrained
from clpapers.runs.learner import Setting

DECLARATION = {
    "options": {
        "margin": {"type": "number", "minimum": 0, "examples": [0.5]},
        "ridge": {"type": "number", "exclusiveMinimum": 0, "examples": [0.001]},
        "write": {"enum": ["uniform", "ring"], "examples": ["ring"]},
    },
    "uses": ["changes", "tasks", "competing"],
    "memory_of_classes": True,
    "tasks_once": True,
}


class GEM(Constrained):
    """GEM. Lopez-Paz & Ranzato 2017, eqs. 8-11, as in its authors' code; `agem`, eqs. 7 and 8.

    memory: per task, read once the task is completed.  constraints: the loss on the whole memory of each such task.

    Parameters
    ----------
    margin: the lower bound of all multipliers once a constraint is violated; 0 in the paper, 0.5 in its code.
    ridge: added to the diagonal of GGᵀ to make the program strictly convex; 0.001 in the authors' code.
    write: `ring` as in the authors' code, or `uniform`, as A-GEM's.
    """

    def __init__(self, setting: Setting, *, margin: float, ridge: float, write: str):
        super().__init__(setting, write)
        self.margin, self.ridge = margin, ridge
        self.held: list[tuple] = []  # arguments of `reference` for each completed task, with images gathered once

    def task_change(self, t: int) -> None:
        while len(self.held) < self.task[t]:
            slots, weight = self.memory.of_task(torch.full_like(self.violations[:, 0], len(self.held)))
            self.held.append((*self.memory.read(slots), weight))
        s, k = len(self.violations), len(self.held)
        self.gradients = [p.new_empty(s, k, p.numel() // s) for p in self.parameters]

    def uncounted(self) -> Sequence[object]:
        return [self.held]  # images, which `memory_use` counts

    def references(self, t: int) -> list[torch.Tensor]:
        """Pass each task separately: one pass would be no faster and would mix the tasks' batch-norm statistics."""
        for k, held in enumerate(self.held):
            gradient = self.reference(*held)
            torch._foreach_copy_([rows[:, k].view(g.shape) for rows, g in zip(self.gradients, gradient)], gradient)
        return self.gradients

    def dual(self, along: torch.Tensor, gram: torch.Tensor) -> torch.Tensor:
        pairs = zip(along.double().cpu().numpy(), gram.double().cpu().numpy())
        return torch.from_numpy(np.stack([multipliers(*pair, self.margin, self.ridge) for pair in pairs])).to(along)


def multipliers(along: np.ndarray, gram: np.ndarray, margin: float, ridge: float) -> np.ndarray:
    """The v ≥ margin that minimises ½·vᵀ(GGᵀ + ridge·I)v + (Gg)ᵀv, for Gg [k] and GGᵀ [k, k].

    NaN where no constraint is violated, or where no finite solution exists.
    """
    import quadprog  # only this learner needs it

    none = np.full_like(along, np.nan)
    if not (along < 0).any() or not (np.isfinite(along).all() and np.isfinite(gram).all()):
        return none
    identity = np.eye(len(along))
    hessian = (gram + gram.T) / 2 + ridge * identity  # rounding leaves the product not quite symmetric
    try:
        return quadprog.solve_qp(hessian, -along, identity, np.full_like(along, margin))[0]
    except ValueError:  # numbers so large that rounding makes the matrix indefinite
        return none
