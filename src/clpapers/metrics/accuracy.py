"""Accuracies of one run: final, per class, online, and information retention along the stream."""

import base64
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike


def final_accuracy(correct: ArrayLike, total: ArrayLike) -> np.ndarray:
    """Fraction of all test items answered correctly, from counts per class `[..., C]`."""
    return np.sum(correct, axis=-1) / np.sum(total, axis=-1)


def per_class_accuracy(correct: ArrayLike, total: ArrayLike) -> np.ndarray:
    """Mean of the classes' accuracies, from counts `[..., C]`; classes without test items are left out."""
    correct, total = np.asarray(correct, float), np.asarray(total, float)
    fraction = np.divide(correct, total, out=np.full(np.broadcast(correct, total).shape, np.nan), where=total > 0)
    return np.nanmean(fraction, axis=-1)


def online_accuracy(correct: ArrayLike, items: int) -> float:
    """Fraction of the stream's `items` answered correctly before they were learnt; `correct [steps]`, by batch."""
    return float(np.sum(correct) / items)


def seen(position: ArrayLike, time: ArrayLike) -> np.ndarray:
    """Whether each probe was seen before each evaluation: bool `[P, N]`, from positions `[N]` and items seen `[P]`."""
    return np.asarray(position)[None, :] < np.asarray(time)[:, None]


def unpack(packed: Sequence[str], position: ArrayLike, time: ArrayLike) -> np.ndarray:
    """Decode a run's probe answers into bool `[P, N]`, False where a probe has not been seen yet.

    packed: P base64 strings of `np.packbits` of bool `[number of probes with position < time[p]]`.
    position: int `[N]`, ascending positions of the probes in the stream.
    time: int `[P]`: stream items seen at each evaluation.

    Raises `ValueError` where a string's number of bytes does not fit its evaluation's number of probes.
    """
    mask = seen(position, time)
    correct = np.zeros_like(mask)
    for row, (text, count) in enumerate(zip(packed, mask.sum(axis=1), strict=True)):
        bits = np.frombuffer(base64.b64decode(text), np.uint8)
        if len(bits) != -(-count // 8):
            raise ValueError(f"evaluation {row}: {len(bits)} bytes of answers for {count} probes")
        correct[row, :count] = np.unpackbits(bits, count=count)
    return correct


def information_retention(correct: ArrayLike, position: ArrayLike, time: ArrayLike) -> np.ndarray:
    """IR_t, the accuracy at each evaluation on the stream so far (Cai et al. 2021): float `[P]`.

    Probes, a fixed uniform sample of the stream's items, estimate it without bias. NaN where none was seen yet.

    correct: bool `[P, N]`, answers in eval mode. position: int `[N]`. time: int `[P]`, items seen.
    """
    past = seen(position, time)
    count = past.sum(axis=1)
    hits = (np.asarray(correct, bool) & past).sum(axis=1)
    return np.divide(hits, count, out=np.full(len(count), np.nan), where=count > 0)


def average_information_retention(correct: ArrayLike, position: ArrayLike, time: ArrayLike) -> float:
    """Mean of IR_t over the evaluations at which a probe was seen."""
    return float(np.nanmean(information_retention(correct, position, time)))
