"""The one source of randomness: a generator for each seed and purpose."""

from zlib import crc32

import numpy as np


def generator(seed: int, purpose: str) -> np.random.Generator:
    """The generator that `seed` owns for `purpose` ("stf timestamps", "init", "replay", …).

    Purposes are spawned from the seed by name, not drawn from it in turn. So the numbers of one purpose depend on no
    other: neither on which others exist nor on how much they have consumed. Whoever draws for a new reason invents a
    new purpose. `seed` is a non-negative integer; a negative one raises ValueError.
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(crc32(purpose.encode()),)))
