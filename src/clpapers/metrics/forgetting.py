"""Example forgetting (Toneva et al. 2019): how often a learnt example is lost again."""

import numpy as np
from numpy.typing import ArrayLike


def _answers(correct: ArrayLike, seen: ArrayLike | None) -> tuple[np.ndarray, np.ndarray]:
    correct = np.asarray(correct, bool)
    seen = np.ones_like(correct) if seen is None else np.broadcast_to(np.asarray(seen, bool), correct.shape)
    return correct & seen, seen


def forgetting_events(correct: ArrayLike, seen: ArrayLike | None = None) -> np.ndarray:
    """Transitions from correct to incorrect between consecutive evaluations: int `[..., N]`.

    correct: bool `[..., T, N]`, the answer to example n at evaluation t.
    seen: bool, broadcastable to the same shape: whether the example had been shown by then (None: always). A
        transition counts only between two evaluations after that.
    """
    correct, seen = _answers(correct, seen)
    lost = correct[..., :-1, :] & ~correct[..., 1:, :] & seen[..., 1:, :]
    return lost.sum(axis=-2)


def never_learnt(correct: ArrayLike, seen: ArrayLike | None = None) -> np.ndarray:
    """Examples shown but never answered correctly: bool `[..., N]`; arguments as `forgetting_events`."""
    correct, seen = _answers(correct, seen)
    return np.asarray(seen.any(axis=-2) & ~correct.any(axis=-2))


def unforgettable_fraction(correct: ArrayLike, seen: ArrayLike | None = None) -> np.ndarray:
    """Fraction `[...]` of the shown examples that were learnt at some point and never forgotten afterwards.

    Arguments as `forgetting_events`. NaN where no example was ever shown.
    """
    correct, seen = _answers(correct, seen)
    kept = correct.any(axis=-2) & (forgetting_events(correct, seen) == 0)
    shown = seen.any(axis=-2).sum(axis=-1)
    return np.divide(kept.sum(axis=-1), shown, out=np.full(shown.shape, np.nan), where=shown > 0)
