"""Incremental 1-nearest-neighbour."""

import contextlib
from collections.abc import Iterator, Sequence

import torch

from clpapers.runs.learner import Learner, Observed, Setting
from clpapers.runs.nearest import best_of_classes, squared_distances

DECLARATION = {"options": {}, "keeps": "keeps every item", "own_nets": True, "answers_first": False, "grows": True}


class NN1(Learner):
    """1NN (`streaming`, section 3): store every vector and its label; the nearest vector's label is the answer.

    Distances are squared Euclidean; among equally near vectors the earliest wins. Vectors are the items' pixels or
    features, scaled as in the cell. It needs no net, and does not predict stream items.
    """

    def __init__(self, setting: Setting):
        super().__init__(setting)
        self.vectors: list[torch.Tensor] = []  # [S, n, D] in parts, joined for an evaluation
        self.labels: list[torch.Tensor] = []  # [S, n], likewise

    def observe(self, t: int, x: torch.Tensor, y: torch.Tensor) -> Observed:
        self.vectors.append(x.flatten(2))
        self.labels.append(y)
        return Observed()

    @contextlib.contextmanager
    def evaluation(self) -> Iterator[None]:
        self.vectors, self.labels = ([torch.cat(parts, dim=1)] for parts in (self.vectors, self.labels))
        yield

    @torch.no_grad()
    def scores(self, x: torch.Tensor, tasks: torch.Tensor) -> torch.Tensor:
        """Minus each class's smallest squared distance; -∞ for classes not seen."""
        seeds = zip(x.flatten(2), self.vectors[0], self.labels[0])
        return torch.stack([best_of_classes(-squared_distances(x, v), y, self.classes) for x, v, y in seeds])

    def confidence(self, scores: torch.Tensor) -> torch.Tensor:
        """Minus the squared distance to the nearest vector."""
        return scores.amax(dim=2)

    def needed_to_answer(self) -> object:
        return self.vectors

    def uncounted(self) -> Sequence[object]:
        return [self.vectors]  # `memory_use` counts them

    def memory_use(self, s: int) -> dict:
        stored = self.stored(torch.cat([y[s] for y in self.labels]))
        return stored | {"bytes": sum(v[s].nbytes for v in self.vectors)}
