"""Optimisers on top of PyTorch's functions.

`torch.optim`'s classes do the same, but import the whole compiler: two seconds a job, more than many a run.
"""

from collections.abc import Iterable

import torch
from torch.optim.adam import adam

from clpapers.runs.losses import backward


def gradients(parameters: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    """The gradients of parameters, which all have one after a backward pass."""
    found = []
    for parameter in parameters:
        assert parameter.grad is not None  # left out, it would move all behind it to other parameters
        found.append(parameter.grad)
    return found


class SGD:
    """Stochastic gradient descent, without decay.

    momentum: μ of v ← μ·v + g, v the direction of the step, from v = 0.
    clip: the largest value of a gradient's element, of either sign; None leaves gradients as they are.
    """

    def __init__(
        self, parameters: Iterable[torch.Tensor], learning_rate: float, momentum: float = 0.0, clip: float | None = None
    ):
        self.parameters, self.learning_rate, self.momentum, self.clip = list(parameters), learning_rate, momentum, clip
        self.velocities = [torch.zeros_like(p) for p in self.parameters] if momentum else []

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    def gradient(self, loss: torch.Tensor) -> None:
        """Set the parameters' `grad` to each member's own gradient of its loss [S]."""
        self.zero_grad()
        backward(loss)

    def descend(self, loss: torch.Tensor) -> None:
        """One step on the members' losses [S]."""
        self.gradient(loss)
        self.step()

    @torch.no_grad()
    def step(self) -> None:
        """One step down the parameters' gradients."""
        along: list[torch.Tensor] | tuple[torch.Tensor, ...] = gradients(self.parameters)
        if self.clip is not None:
            along = torch._foreach_clamp_max(torch._foreach_clamp_min(along, -self.clip), self.clip)
        if self.momentum:
            torch._foreach_mul_(self.velocities, self.momentum)
            torch._foreach_add_(self.velocities, along)
            along = self.velocities
        torch._foreach_add_(self.parameters, along, alpha=-self.learning_rate)


class Adam(SGD):
    """Adam (Kingma & Ba 2015) with its usual β₁ = 0.9, unless given, β₂ = 0.999 and ε = 1e-8."""

    def __init__(self, parameters: Iterable[torch.Tensor], learning_rate: float, beta1: float = 0.9):
        super().__init__(parameters, learning_rate)
        self.beta1 = beta1
        self.means, self.squares = ([torch.zeros_like(p) for p in self.parameters] for _ in range(2))
        self.steps = [torch.zeros((), device=p.device) for p in self.parameters]

    @torch.no_grad()
    def step(self) -> None:
        adam(
            self.parameters,
            gradients(self.parameters),
            self.means,
            self.squares,
            [],
            self.steps,
            fused=True,
            amsgrad=False,
            beta1=self.beta1,
            beta2=0.999,
            lr=self.learning_rate,
            weight_decay=0.0,
            eps=1e-8,
            maximize=False,
        )


OPTIMIZERS: dict[str, type[SGD]] = {"sgd": SGD, "adam": Adam}
