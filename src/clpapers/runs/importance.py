"""The common part of learners that hold important parameters in place.

Importances are lists of tensors, one a parameter and shaped like it.
"""

import torch

from clpapers.runs.optimizers import SGD, gradients

Tensors = list[torch.Tensor] | tuple[torch.Tensor, ...]
EPSILON = 1e-32  # makes equal importances 0


class RunningFisher:
    """The running diagonal of the Fisher information, as in the code of Chaudhry et al. 2019 (`agem`).

    Squared gradients of the batches' mean losses are summed, and just before every K-th step of a task
    F ← (1 - α)·F + α·sum/K, from F = 0. So a task's first interval has K - 1 squares, and its last step never counts.

    Parameters
    ----------
    interval: K. decay: α, the share of F that an interval replaces.
    """

    def __init__(self, parameters: Tensors, interval: int, decay: float):
        self.interval, self.decay = interval, decay
        self.value, self.sum = zeros(parameters), zeros(parameters)

    def updates_before(self, step: int) -> bool:
        """Whether an update comes before this step of a task, counted from 0."""
        return (step + 1) % self.interval == 0

    def update(self) -> None:
        """Update F by the sum, and keep the sum."""
        torch._foreach_mul_(self.value, 1 - self.decay)
        torch._foreach_add_(self.value, self.sum, alpha=self.decay / self.interval)

    def clear(self) -> None:
        """Forget the sum."""
        torch._foreach_zero_(self.sum)

    def add(self, gradients: Tensors) -> None:
        """Add a step's squares to the sum."""
        torch._foreach_addcmul_(self.sum, gradients, gradients)


def zeros(parameters: Tensors) -> list[torch.Tensor]:
    """Zeros of the parameters' shapes."""
    return [torch.zeros_like(p) for p in parameters]


def values(parameters: Tensors) -> list[torch.Tensor]:
    """Copies of the parameters' values."""
    return [p.detach().clone() for p in parameters]


def pull(parameters: Tensors, importance: Tensors, centre: Tensors, strength: float) -> None:
    """Add the gradient of strength/2 · Σ importance·(θ - centre)² to the parameters' `grad`."""
    moved = torch._foreach_sub([p.detach() for p in parameters], centre)
    torch._foreach_addcmul_(gradients(parameters), importance, moved, value=strength)


def step_along(path: Tensors, gradient: Tensors, parameters: Tensors, optimizer: SGD) -> None:
    """Take the optimiser's step Δθ, and add its gain along a gradient g to the path: ω += -g·Δθ."""
    before = values(parameters)
    optimizer.step()
    step = torch._foreach_sub([p.detach() for p in parameters], before)
    torch._foreach_addcmul_(path, gradient, step, value=-1)


def min_max(importance: Tensors, seeds: int) -> list[torch.Tensor]:
    """Each seed's importances, over all its parameters, shifted and scaled to [0, 1]."""
    low, high = torch.cat([v.reshape(seeds, -1) for v in importance], dim=1).aminmax(dim=1, keepdim=True)
    return [((v.reshape(seeds, -1) - low) / (high - low + EPSILON)).view_as(v) for v in importance]
