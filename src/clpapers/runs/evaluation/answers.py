"""A learner's answers to test items: right or wrong, and how uncertain."""

import collections
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from clpapers.runs import contracts
from clpapers.runs.images import Images
from clpapers.runs.learner import Learner
from clpapers.runs.scenario import Scenario

BATCH, FEWEST = 500, 10  # images a batch
# Values of a batch's images, between these bounds. A CPU's cache then holds the maps of 100 images of 32 × 32 in
# colour (the reduced ResNet-18). The number is the same on every CPU, as batches may decide the last bit.
VALUES = {"cpu": 100 * 3 * 32 * 32, "cuda": BATCH * 3 * 64 * 64}


def best(scores: torch.Tensor) -> torch.Tensor:
    """The class that scores [..., K] answer with, int64 [...]: the one of the largest score; -1 for no answer.

    An answer needs a finite score. A class of score -∞ does not compete. A row with a NaN or +∞ has no answer, whatever
    else it holds: such a score stands in no order with the others, and processors differ in which of the two they find.
    """
    answerable = (scores < torch.inf).all(dim=-1) & (scores > -torch.inf).any(dim=-1)
    return scores.argmax(dim=-1).where(answerable, -1)


def mark(
    answers: np.ndarray, labels: np.ndarray, unanswered: np.ndarray, counted: np.ndarray | bool = True
) -> np.ndarray:
    """Whether answers (`best`) are the labels, where items are `counted`; all bool or int64 [S, N].

    Adds the number of items without an answer to `unanswered`, int64 [S].
    """
    unanswered += ((answers < 0) & counted).sum(axis=1)
    return (answers == labels) & counted


def whole_test(scenarios: Sequence[Scenario], device: torch.device) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Items, labels and tasks of the test of S scenarios, int64 [S, N]: all items, once for each pixel permutation."""
    m, repeats = len(scenarios[0].test_items), scenarios[0].repeats()
    domain = np.arange(repeats).repeat(m)
    items = np.tile([c.test_items for c in scenarios], repeats) + domain * m
    labels = np.tile([c.test_labels for c in scenarios], repeats)
    tasks = np.stack([domain if repeats > 1 else c.tasks.test for c in scenarios])
    on_device = [torch.from_numpy(each).to(device) for each in (items, labels, tasks)]
    return on_device[0], on_device[1], on_device[2]


@torch.no_grad()
def answered(
    learner: Learner,
    images: Images,
    items: torch.Tensor,
    tasks: torch.Tensor,
    masks: Mapping[str, torch.Tensor | None],
    *,
    confidence: bool = False,
) -> dict[str, np.ndarray]:
    """The outputs that a learner answers each seed's items with (`best`), inside `learner.evaluation()`.

    items, tasks: [S, N]. masks: bool [S, N, K], the classes that compete for each item, or None for all.
    Returns int64 [S, N] for each mask. With `confidence` also the learner's, float [S, N], with all classes competing.
    """
    found: dict[str, list[torch.Tensor]] = collections.defaultdict(list)
    for now in _batches(images, items.shape[1]):
        scores = checked(learner, images(items[:, now]), tasks[:, now])
        for name, mask in masks.items():
            allowed = scores if mask is None else scores.masked_fill(~mask[:, now], -torch.inf)
            found[name].append(best(allowed))
        if confidence:
            found["confidence"].append(learner.confidence(scores))
    return {name: torch.cat(parts, dim=1).cpu().numpy() for name, parts in found.items()}


@torch.no_grad()
def answered_by(
    snapshots: Sequence[object], learner: Learner, images: Images, items: torch.Tensor, mask: torch.Tensor
) -> np.ndarray:
    """The outputs that n snapshots of a learner answer with (`best`), inside its `evaluation()`: int64 [n, S, N].

    items, mask: as of `answered`.
    """
    parts = []
    for now in _batches(images, items.shape[1]):
        scores = learner.scores_of(snapshots, images(items[:, now]))
        parts.append(best(scores.masked_fill(~mask[:, now], -torch.inf)))
    return torch.cat(parts, dim=2).cpu().numpy()


@torch.no_grad()
def uncertainties(learner: Learner, images: Images, items: torch.Tensor) -> np.ndarray:
    """A learner's `uncertainty` of each seed's items [S, N], inside `learner.evaluation()`: float [S, N]."""
    parts = [learner.uncertainty(images(items[:, now])) for now in _batches(images, items.shape[1])]
    return torch.cat(parts, dim=1).cpu().numpy()


def checked(learner: Learner, x: torch.Tensor, tasks: torch.Tensor) -> torch.Tensor:
    """A learner's scores [S, B, K] of images; of a method from outside checked, with tasks where it declares them."""
    if not learner.outside:
        return learner.scores(x, tasks)
    told: Any = tasks if "tasks" in learner.uses else contracts.Undeclared("tasks", "tasks")
    return contracts.checked_scores(learner.scores(x, told), (*x.shape[:2], learner.classes), type(learner).scores)


def _batches(images: Images, count: int) -> Iterator[slice]:
    batch = max(FEWEST, min(BATCH, VALUES[images.pixels.device.type] // images.pixels[0].numel()))
    return (slice(start, start + batch) for start in range(0, count, batch))


def number(value: float) -> float | None:
    """A number as results hold it: six significant digits; None where it is not finite."""
    return float(f"{value:.6g}") if math.isfinite(value) else None
