"""Class frequencies along a stream, and the prevalence of the most frequent class."""

import numpy as np
from numpy.typing import ArrayLike


def class_frequency(labels: ArrayLike, classes: int, chunks: int) -> np.ndarray:
    """Relative frequency of each class in near-equal chunks of a stream: float `[chunks, classes]`.

    labels: int `[n]`, in stream order. Chunk sizes differ by at most one item.

    Raises `ValueError` where the stream has fewer items than chunks.
    """
    labels = np.asarray(labels)
    if len(labels) < chunks:
        raise ValueError(f"{len(labels)} stream items cannot fill {chunks} chunks; ask for fewer chunks")
    chunk = np.arange(len(labels)) * chunks // len(labels)
    counts = np.bincount(chunk * classes + labels, minlength=chunks * classes).reshape(chunks, classes)
    return counts / counts.sum(axis=1, keepdims=True)


def prevalence(frequency: ArrayLike) -> np.ndarray:
    """Frequency `[chunks]` of each chunk's most frequent class, from all classes' `[chunks, classes]`."""
    return np.max(frequency, axis=-1)


def chunk_times(chunks: int) -> np.ndarray:
    """Centres `[chunks]` of near-equal chunks, as fractions of the stream."""
    return (np.arange(chunks) + 0.5) / chunks
