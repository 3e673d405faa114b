"""Replay memories.

A memory's content depends on labels and random draws, never on the net. So each policy (one a file, `plan(labels,
capacity, rng) -> slots`) decides the slot of every stream item before the first step, and every replay draw is made
then too. A training step only gathers and scatters by indices that are already on the device.
"""

import contextlib
import dataclasses
import importlib
from collections.abc import Sequence

import numpy as np
import torch

from clpapers.randomness import generator
from clpapers.runs.device_step import columns, row, unordered
from clpapers.runs.images import Images


class Members:
    """The slots of each class, for planning a class-balancing policy."""

    def __init__(self) -> None:
        self._slots: dict[int, list[int]] = {}
        self.total = 0

    @property
    def classes(self) -> int:
        """The number of classes stored."""
        return sum(bool(slots) for slots in self._slots.values())

    def count(self, c: int) -> int:
        """The number of items stored of class c."""
        return len(self._slots.get(c, ()))

    def largest(self) -> list[int]:
        """The classes with most items, more than one in a tie."""
        most = max(map(len, self._slots.values()))
        return [c for c, slots in self._slots.items() if len(slots) == most]

    def add(self, c: int, slot: int) -> int:
        """Put an item of class c into a free slot; returns the slot."""
        self._slots.setdefault(c, []).append(slot)
        self.total += 1
        return slot

    def evict(self, classes: Sequence[int], rng: np.random.Generator) -> int:
        """Free the slot of a uniformly drawn item of some classes of equal size; returns the slot."""
        size = self.count(classes[0])
        which, where = divmod(int(rng.integers(len(classes) * size)), size)
        slots = self._slots[classes[which]]
        slots[where], slots[-1] = slots[-1], slots[where]
        self.total -= 1
        return slots.pop()


def uniform_draws(counts: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """For each step, `size` distinct slots of the `counts[t]` filled ones, every set equally likely: [T] → [T, size].

    Floyd's algorithm, for all steps at once. Where fewer than `size` slots are filled, all of them repeat in turn.
    """
    uniform = rng.random((len(counts), size))
    chosen = np.empty((len(counts), size), dtype=np.int64)
    for i in range(size):
        last = counts - size + i
        drawn = (uniform[:, i] * (last + 1)).astype(np.int64)
        taken = (chosen[:, :i] == drawn[:, None]).any(axis=1)
        chosen[:, i] = np.where(taken, last, drawn)
    short = counts < size
    chosen[short] = np.arange(size) % np.maximum(counts[short], 1)[:, None]
    return chosen


def weighted_draws(
    slots: np.ndarray, labels: np.ndarray, ends: np.ndarray, counts: np.ndarray, size: int, rng: np.random.Generator
) -> np.ndarray:
    """As `uniform_draws`, but with probability proportional to 1/(items stored of the item's class).

    The weighted replay of CBRS: drawn without replacement, as the slots with the largest log-weight plus Gumbel noise.
    The plan `slots` [n] of a stream with `labels` [n] gives the memory's labels.
    """
    label_in_slot = np.full(slots.max() + 1, -1)
    chosen = np.zeros((len(counts), size), dtype=np.int64)
    for t, count in enumerate(counts):
        if count >= size:
            stored = label_in_slot[:count]
            weight = -np.log(np.bincount(stored)[stored])
            chosen[t] = np.argpartition(weight + rng.gumbel(size=count), count - size)[count - size :]
        elif count:
            chosen[t] = np.arange(size) % count
        now = slice(ends[t - 1] if t else 0, ends[t])
        kept = slots[now] >= 0
        label_in_slot[slots[now][kept]] = labels[now][kept]
    return chosen


def _last_writes(slots: np.ndarray, ends: np.ndarray, spare: int) -> np.ndarray:
    """`slots` [n], with `spare` for items not kept or overwritten by a later item of the same batch."""
    step = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
    order = np.lexsort((np.arange(len(slots)), slots, step))  # by step, then slot, then time
    last = np.ones(len(slots), dtype=bool)
    last[order[:-1]] = (np.diff(step[order]) != 0) | (np.diff(slots[order]) != 0)
    return np.where((slots >= 0) & last, slots, spare)


@dataclasses.dataclass
class Draw:
    """A replay batch: images [S, k, C, H, W], labels [S, k], slots [S, k], and weights [S, k] that sum to one a seed.

    `weight` is None where all items count equally. Where a memory holds fewer than k items, repetitions of weight zero
    fill the batch, so that a seed's batch does not depend on its stack mates' memories. The `slots` are distinct, and
    repetitions have the spare slot, so that edited items can be written back.
    """

    x: torch.Tensor
    y: torch.Tensor
    slots: torch.Tensor
    weight: torch.Tensor | None

    def writing(self) -> contextlib.AbstractContextManager:
        """Inside, to write to the slots does not wait for a GPU, where all are distinct."""
        return unordered() if self.weight is None else contextlib.nullcontext()


class Memory:
    """The memories of S seeds, filled by one policy along S streams.

    Parameters
    ----------
    policy: a module of this package.
    capacity: of a memory, in items.
    items, labels: the streams, int64 [S, n], on the training device.
    ends: int64 [T], stream items seen after each step; step t writes items ends[t-1] … ends[t]-1.
    keep_pixels: whether to hold images, for learners that edit them, instead of indices.
    """

    def __init__(
        self,
        policy: str,
        capacity: int,
        images: Images,
        items: torch.Tensor,
        labels: torch.Tensor,
        ends: np.ndarray,
        seeds: Sequence[int],
        *,
        keep_pixels: bool = False,
    ):
        self.images, self.items, self.labels, self.ends, self.seeds = images, items, labels, ends, seeds
        self.capacity, s, device = capacity, len(items), items.device
        plan = importlib.import_module(f"{__name__}.{policy}").plan
        streams = labels.cpu().numpy()
        self.plans = np.stack([plan(y, capacity, generator(seed, "memory")) for y, seed in zip(streams, seeds)])
        filled = np.maximum.accumulate(self.plans, axis=1) + 1  # slots fill in order
        self.counts = np.concatenate([np.zeros((s, 1), dtype=np.int64), filled[:, ends - 1]], axis=1)
        writes = np.stack([_last_writes(slots, ends, capacity) for slots in self.plans])
        self._writes = torch.from_numpy(writes).to(device)
        self._keeps = np.logical_or.reduceat((writes < capacity).any(axis=0), np.concatenate([[0], ends[:-1]]))  # [T]
        self.whole = np.ones(len(ends), dtype=bool)  # whether all replay batches of a step are full
        self.item = torch.zeros((s, capacity + 1), dtype=torch.int64, device=device)  # one spare
        self.label = torch.zeros_like(self.item)
        self._rows = torch.arange(s, device=device)[:, None]
        self.pixels = images(self.item) if keep_pixels else None
        self.steps = 0  # steps written

    def write(self, t: int) -> None:
        """Store the items of stream batch t that the policy keeps; late in a stream it mostly keeps none."""
        self.steps = t + 1
        if not self._keeps[t]:
            return
        slots, items, labels = (columns(each, t, self.ends) for each in (self._writes, self.items, self.labels))
        with self.distinct(t):
            self.item.scatter_(1, slots, items)
            self.label.scatter_(1, slots, labels)
            if self.pixels is not None:
                self.pixels[self._rows, slots] = self.images(items)

    def graph_key(self, t: int) -> bool | None:
        """Whether step t keeps an item; None where a replay batch is not full (`Learner.graph_key`)."""
        return bool(self._keeps[t]) if self.whole[t] else None

    def distinct(self, t: int) -> contextlib.AbstractContextManager:
        """Inside, step t writes to distinct slots, but for the spare one, which only batches that are not full read."""
        return unordered() if self.whole[t] else contextlib.nullcontext()

    def replace(self, slots: torch.Tensor, pixels: torch.Tensor) -> None:
        """Overwrite the images of distinct slots [S, k] by `pixels` [S, k, C, H, W]."""
        assert self.pixels is not None  # with `keep_pixels`
        self.pixels[self._rows, slots] = pixels

    def read(self, slots: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The images [S, k, C, H, W] and labels [S, k] in slots [S, k]."""
        x = self.images(self.item.gather(1, slots)) if self.pixels is None else self.pixels[self._rows, slots]
        return x, self.label.gather(1, slots)

    def count(self, seed: int) -> int:
        """The number of items stored so far in the memory of the stack's seed number `seed`."""
        return int(self.counts[seed, self.steps])

    @property
    def bytes_an_item(self) -> int:
        """Bytes of one stored image: of the data set's type, or of the edited pixels."""
        return (self.images.pixels[0] if self.pixels is None else self.pixels[0, 0]).nbytes


class Draws:
    """All replay draws of a run: `size` distinct items a step, uniformly or weighted by class, made in advance.

    `after_write` lets the draw of step t include the batch of step t.
    """

    def __init__(
        self,
        memory: Memory,
        size: int,
        *,
        purpose: str = "replay",
        after_write: bool = False,
        weighted: bool = False,
    ):
        if weighted and after_write:
            raise ValueError("weighted draws are made before the step's items are written")
        self.memory = memory
        self.counts = memory.counts[:, 1:] if after_write else memory.counts[:, :-1]
        draws = []
        for s, seed in enumerate(memory.seeds):
            rng = generator(seed, purpose)
            if weighted:
                labels = memory.labels[s].cpu().numpy()
                draws.append(weighted_draws(memory.plans[s], labels, memory.ends, self.counts[s], size, rng))
            else:
                draws.append(uniform_draws(self.counts[s], size, rng))
        device = memory.item.device
        self.slots = torch.from_numpy(np.stack(draws, axis=1)).to(device)  # [T, S, k]
        valid = np.arange(size) < self.counts[..., None]
        weight = valid / np.maximum(valid.sum(axis=-1, keepdims=True), 1)
        short = ~valid.all(axis=(0, 2))
        self._weight = {
            int(t): torch.from_numpy(weight[:, t]).to(device, memory.images.dtype) for t in np.flatnonzero(short)
        }
        self._empty = np.asarray(~valid.any(axis=(0, 2)))
        memory.whole &= ~short

    def __call__(self, t: int) -> Draw | None:
        """The replay batch of step t; None while all memories are empty."""
        if self._empty[t]:
            return None
        slots, weight = row(self.slots, t), self._weight.get(t)
        x, y = self.memory.read(slots)
        return Draw(x, y, slots if weight is None else slots.where(weight > 0, self.memory.capacity), weight)
