"""Class-balancing reservoir sampling (Chrysakis & Moens, ICML 2020, Algorithm 1)."""

from collections import Counter

import numpy as np

from clpapers.runs.memories import Members


def plan(labels: np.ndarray, capacity: int, rng: np.random.Generator) -> np.ndarray:
    """The slot of each stream item, -1 where it is not kept.

    In a filled memory, an item of a class that was never the largest evicts a random item of the largest class. An item
    of a class that once was the largest ("full") replaces a random item of its own class with probability m_c/n_c.
    These are the class's stored and seen items, the present one included. Tied largest classes count as one and all
    become full.
    """
    members, full = Members(), set()
    seen: Counter[int] = Counter()
    slots = np.full(len(labels), -1)
    for i, c in enumerate(labels.tolist()):
        seen[c] += 1
        if members.total < capacity:
            slots[i] = members.add(c, members.total)
        elif c not in full:
            slots[i] = members.add(c, members.evict(members.largest(), rng))
        elif rng.random() < members.count(c) / seen[c]:
            slots[i] = members.add(c, members.evict([c], rng))
            continue  # the class counts are as before
        else:
            continue
        if members.total == capacity:
            full.update(members.largest())
    return slots
