"""Predictions of each stream batch before it is learnt."""

import numpy as np
import torch

from clpapers.runs.evaluation.answers import best, number

STEPS_AT_ONCE = 100  # steps


class Online:
    """The nets' predictions and losses on each stream batch before they learn it, or their losses alone.

    A step only notes them; notes are reduced a block of steps at a time.
    """

    def __init__(self, labels: torch.Tensor, ends: np.ndarray):
        self.labels, self.starts = labels, np.concatenate([[0], ends[:-1]])
        self.notes: list[tuple[torch.Tensor | None, torch.Tensor | None]] = []  # loss [S], logits [S, B, K] a step
        self.losses: list[torch.Tensor] = []  # a block each: [S, steps]
        self.predicted: list[torch.Tensor] = []  # a block each: classes, `best`, [S, items]

    def take(self, loss: torch.Tensor | None, logits: torch.Tensor | None = None) -> None:
        """Note a step; None for the loss where there is none, and for logits of no prediction."""
        if loss is not None or logits is not None:
            self.notes.append((_detached(loss), _detached(logits)))
        if len(self.notes) == STEPS_AT_ONCE:
            self.reduce()

    def reduce(self) -> None:
        """Reduce the notes to losses and predicted classes."""
        if self.notes:
            losses, logits = zip(*self.notes)
            if losses[0] is not None:
                self.losses.append(torch.stack(losses, dim=1))
            if logits[0] is not None:
                self.predicted.append(best(torch.cat(logits, dim=1)))
            self.notes.clear()

    def result(self, s: int) -> dict:
        """Items right and mean loss of each step so far, of seed number s; null where no logits were noted."""
        self.reduce()
        if not self.predicted:
            return {"correct": None, "loss": None}
        predicted = torch.cat([block[s] for block in self.predicted])
        right = (predicted == self.labels[s, : len(predicted)]).cpu().numpy()
        return {
            "correct": np.add.reduceat(right, self.starts[self.starts < len(right)], dtype=int).tolist(),
            "loss": [number(value) for value in torch.cat([block[s] for block in self.losses]).tolist()]
            if self.losses
            else None,
        }

    def unanswered(self, s: int) -> int:
        """The number of stream items without an answer, of the stack's seed number s."""
        self.reduce()
        return sum(int((block[s] < 0).sum()) for block in self.predicted)

    def diverged(self, s: int) -> int | None:
        """The first step at which the loss of the stack's seed number s was not finite; None if there is none."""
        self.reduce()
        if not self.losses:
            return None
        finite = torch.cat([block[s] for block in self.losses]).isfinite()
        return None if finite.all() else int(finite.long().argmin())


def _detached(value: torch.Tensor | None) -> torch.Tensor | None:
    return None if value is None else value.detach()
