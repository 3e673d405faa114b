"""The greedy class-balancing sampler of GDumb (Prabhu et al., ECCV 2020, Algorithm 1)."""

import numpy as np

from clpapers.runs.memories import Members


def plan(labels: np.ndarray, capacity: int, rng: np.random.Generator) -> np.ndarray:
    """The slot of each stream item, -1 where it is not kept.

    The quota is ⌊capacity/classes stored⌋. An item is kept if its class is new or holds less than the quota. In a
    filled memory it evicts a random item of the largest class (tied classes count as one).
    """
    members = Members()
    slots = np.full(len(labels), -1)
    for i, c in enumerate(labels.tolist()):
        if members.count(c) and members.count(c) >= capacity // members.classes:
            continue
        slot = members.total if members.total < capacity else members.evict(members.largest(), rng)
        slots[i] = members.add(c, slot)
    return slots
