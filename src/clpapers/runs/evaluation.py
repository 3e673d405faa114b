"""What a learner answers: whether it classifies items rightly."""

from __future__ import annotations

import numpy as np
import torch

from clpapers.runs.images import Images
from clpapers.runs.learners import Learner

BATCH = 500  # images of up to 64 × 64 in colour; of larger ones as many as have as many values
VALUES = BATCH * 3 * 64 * 64


@torch.no_grad()
def classified(
    learner: Learner,
    images: Images,
    items: torch.Tensor,
    labels: torch.Tensor,
    tasks: torch.Tensor,
    masks: dict[str, torch.Tensor | None],
) -> dict[str, np.ndarray]:
    """Whether each seed's items are classified rightly, inside `learner.evaluation()`.

    items, labels, tasks: [S, N]. masks: bool [S, N, K], the classes that compete for each item, or None for all.
    Returns bool [S, N] for each mask.
    """
    right: dict[str, list[torch.Tensor]] = {view: [] for view in masks}
    batch = min(BATCH, VALUES // images.pixels[0].numel())
    for start in range(0, items.shape[1], batch):
        now = slice(start, start + batch)
        scores = learner.scores(images(items[:, now]), tasks[:, now])
        for view, mask in masks.items():
            allowed = scores if mask is None else scores.masked_fill(~mask[:, now], -torch.inf)
            right[view].append(allowed.argmax(dim=2) == labels[:, now])
    return {view: torch.cat(parts, dim=1).cpu().numpy() for view, parts in right.items()}
