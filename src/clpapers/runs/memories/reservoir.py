"""Reservoir sampling (Vitter 1985, Algorithm R): a uniform sample of the stream so far."""

import numpy as np


def plan(labels: np.ndarray, capacity: int, rng: np.random.Generator) -> np.ndarray:
    """The slot of each stream item, -1 where it is not kept.

    Item number n (from 1) is kept with probability capacity/n, in a uniformly drawn slot. Labels [n] do not matter.
    """
    number = np.arange(len(labels))
    drawn = rng.integers(0, number + 1)
    slots = np.where(drawn < capacity, drawn, -1)
    slots[:capacity] = number[:capacity]
    return slots
