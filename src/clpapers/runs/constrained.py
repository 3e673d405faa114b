"""Steps constrained by episodic memories: the common part of GEM, S-GEM and A-GEM."""

from collections.abc import Callable, Sequence

import numpy as np
import torch

from clpapers.runs.learner import Learner, Observed, Setting
from clpapers.runs.losses import cross_entropy
from clpapers.runs.memories.episodic import EpisodicMemory
from clpapers.runs.optimizers import gradients


class Constrained(Learner):
    """A learner whose step must not raise its loss on the memories of completed tasks, to first order.

    The budget's memory is divided equally among all classes of all tasks. The loss on it is taken in training mode and
    updates the running statistics of batch norm, as the stream does. Subclasses define the `references`, and the `dual`
    where these are several.
    """

    def __init__(self, setting: Setting, write: str):
        super().__init__(setting)
        per_class = setting.budget["memory"] // int(setting.task_classes[0].sum())
        self.memory = EpisodicMemory(setting, per_class, write)
        starts = np.concatenate([[0], setting.ends[:-1]])
        self.task = setting.tasks[0].cpu().numpy()[starts]  # [T], also the number of tasks completed before
        shape = (len(setting.seeds), setting.task_count)
        self.violations = torch.zeros(shape, dtype=torch.int64, device=setting.items.device)

    def references(self, t: int) -> list[torch.Tensor]:
        """G, the gradients that constrain step t of a task after the first: [S, k, p] a parameter."""
        raise NotImplementedError

    def dual(self, along: torch.Tensor, gram: torch.Tensor) -> torch.Tensor:
        """The multipliers v [S, k] for `project`; by default `closest`, for one constraint."""
        return closest(along, gram)

    def graph_key(self, t: int) -> int:
        return int(self.task[t])

    def observe(self, t: int, x: torch.Tensor, y: torch.Tensor) -> Observed:
        references = self.references(t) if self.task[t] else None
        logits = self.net(x)
        loss = self.loss(t, logits, y)
        self.optimizer.gradient(loss)
        if references is not None:
            rows = self.rows(gradients(self.parameters))
            gradient, violated = project(rows, references, self.dual, if_needed=not self.static)
            self.violations[:, self.task[t]] += violated
            for parameter, new in zip(self.parameters, gradient):
                parameter.grad = new.view_as(parameter)
        self.optimizer.step()
        return Observed(loss, logits)

    def reference(
        self, x: torch.Tensor, y: torch.Tensor, allowed: torch.Tensor | None, weight: torch.Tensor | None
    ) -> tuple[torch.Tensor, ...]:
        """The gradient of the mean loss on items from the memory: one tensor a parameter, of its shape."""
        logits = self.net(x)
        loss = cross_entropy(logits if allowed is None else logits.masked_fill(~allowed, -torch.inf), y, weight)
        return torch.autograd.grad(loss.sum(), self.parameters)

    def rows(self, gradient: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """A gradient as [S, p] a parameter."""
        return [g.reshape(len(self.violations), -1) for g in gradient]

    def memory_use(self, s: int) -> dict:
        return self.stored(self.memory.labels[s][self.memory.valid[s]])

    def report(self, s: int) -> dict:
        """For each task `violations`, its projected steps, and `memory`, its items in the memory."""
        return {"violations": self.violations[s].tolist(), "memory": self.memory.counts[s].tolist()}


def closest(along: torch.Tensor, gram: torch.Tensor) -> torch.Tensor:
    """The multiplier of the closest gradient under one constraint, `agem`, eq. 11: -(g·g_ref)/(g_ref·g_ref), [S, 1]."""
    return -along / gram.squeeze(2)


def project(
    gradient: Sequence[torch.Tensor],
    references: Sequence[torch.Tensor],
    dual: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    *,
    if_needed: bool = True,
) -> tuple[list[torch.Tensor], torch.Tensor]:
    """g + Gᵀv for the seeds where a reference points away from the gradient (`agem`, section 4).

    Parameters
    ----------
    gradient, references: g, [S, p] a parameter, and G, [S, k, p] a parameter.
    dual: gives v [S, k] for Gg [S, k] and GGᵀ [S, k, k].
    if_needed: whether v is computed only where some seed needs it.

    Returns the new gradient, and whether any element of Gg was negative, bool [S]. A seed with a v that is not finite,
    by divergence or a zero reference, keeps its gradient.
    """
    along = sum((g[:, None] @ rows.mT).squeeze(1) for rows, g in zip(references, gradient))
    assert isinstance(along, torch.Tensor)
    violated = (along < 0).any(dim=1)
    if if_needed and not violated.any():
        return list(gradient), violated
    gram = sum(rows @ rows.mT for rows in references)
    assert isinstance(gram, torch.Tensor)
    v = dual(along, gram)
    moved = (violated & v.isfinite().all(dim=1))[:, None]
    new = [torch.where(moved, g + (v[:, None] @ rows).squeeze(1), g) for rows, g in zip(references, gradient)]
    return new, violated
