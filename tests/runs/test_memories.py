"""What memories keep and what replay draws from them."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from tiny import CPU

from clpapers.runs.images import Images
from clpapers.runs.memories import (
    Draws,
    Memory,
    _last_writes,
    class_balanced,
    greedy,
    reservoir,
    uniform_draws,
    weighted_draws,
)

POLICIES = {"reservoir": reservoir.plan, "class_balanced": class_balanced.plan, "greedy": greedy.plan}


def contents(slots, capacity):
    """The stream positions a memory holds after all items were offered, item by item."""
    held = {}
    for position, slot in enumerate(slots):
        if slot >= 0:
            held[int(slot)] = position
    assert all(0 <= slot < capacity for slot in held)
    return held


def labels_held(policy, labels, capacity, seed=0):
    slots = POLICIES[policy](labels, capacity, np.random.default_rng(seed))
    return np.bincount(labels[list(contents(slots, capacity).values())], minlength=labels.max() + 1)


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=40, deadline=None)
@given(labels=st.lists(st.integers(0, 4), min_size=1, max_size=80), capacity=st.integers(1, 30), seed=st.integers(0, 9))
def test_every_policy(policy, labels, capacity, seed):
    """Slots lie in range, are first taken in order, and everything is kept while there is room for its class."""
    slots = POLICIES[policy](np.array(labels), capacity, np.random.default_rng(seed))
    assert slots.min() >= -1
    filled = 0
    for slot in slots:
        assert slot <= filled
        filled = max(filled, slot + 1)
    assert len(contents(slots, capacity)) == filled
    if policy != "greedy":
        assert filled == min(capacity, len(labels))


@pytest.mark.parametrize(("policy", "items", "capacity"), [("reservoir", 40, 10), ("class_balanced", 20, 5)])
def test_of_one_class_every_item_is_equally_likely_to_be_held(policy, items, capacity):
    """Each of 40 items ends in a memory of 10 with probability 1/4 (Vitter 1985)."""
    labels, rng, trials, counts = np.zeros(items, dtype=int), np.random.default_rng(1), 4000, np.zeros(items)
    for _ in range(trials):
        counts[list(contents(POLICIES[policy](labels, capacity, rng), capacity).values())] += 1
    assert counts.sum() == trials * capacity
    # inclusion indicators within a trial are negatively correlated: variance of a count is trials·p·(1-p)
    z = (counts - trials / 4) / np.sqrt(trials * 0.25 * 0.75)
    assert stats.chi2.sf((z**2).sum() * (items - 1) / items, items - 1) > 1e-3


def test_class_balanced_on_a_skewed_stream():
    """Classes of 500, 50 and 5 items in a memory of 30: all five of the rare class, the rest evenly shared."""
    labels = np.random.default_rng(0).permutation(np.repeat([0, 1, 2], [500, 50, 5]))
    held = labels_held("class_balanced", labels, 30)
    assert held[2] == 5
    assert abs(held[0] - held[1]) <= 1
    assert held.sum() == 30
    skewed = labels_held("reservoir", labels, 30)
    assert skewed[0] > 20


def test_class_balanced_by_hand():
    """Capacity 2, classes 0 0 1 1: item 2 must evict one 0; then both classes are full and tie."""
    for seed in range(20):
        slots = class_balanced.plan(np.array([0, 0, 1, 1]), 2, np.random.default_rng(seed))
        assert list(slots[:2]) == [0, 1]
        assert slots[2] in (0, 1)
        assert slots[3] in (-1, slots[2])  # replaces the other 1, or is dropped: never the 0
    fates = [class_balanced.plan(np.array([0, 0, 1, 1]), 2, np.random.default_rng(s))[3] >= 0 for s in range(400)]
    assert 160 < sum(fates) < 240  # kept with probability m_c/n_c = 1/2


def test_only_a_class_that_led_in_a_filled_memory_is_full():
    """Capacity 3, classes 0 1 1 0: class 0 led at first, but class 1 as the memory was filled. So a 1 gives way."""
    for seed in range(20):
        slots = class_balanced.plan(np.array([0, 1, 1, 0]), 3, np.random.default_rng(seed))
        assert list(slots[:3]) == [0, 1, 2]
        assert slots[3] in (1, 2)


def test_of_a_batchs_items_for_one_slot_the_last_is_written():
    """In batches of three; slot 9 is the spare one. A GPU scatters in any order."""
    slots = np.array([0, 1, 0, -1, 1, 0])
    assert _last_writes(slots, np.array([3, 6]), 9).tolist() == [9, 1, 0, 9, 1, 0]


def test_greedy_by_hand():
    """Capacity 4. Class 0 fills it; class 1 is new and evicts a 0, and is taken up to the quota of 4/2."""
    labels = np.array([0, 0, 0, 0, 0, 1, 1, 1, 0, 2, 2])
    slots = greedy.plan(labels, 4, np.random.default_rng(0))
    assert list(slots[:5]) == [0, 1, 2, 3, -1]
    assert (slots[5:7] >= 0).all()
    assert [slot >= 0 for slot in slots[7:]] == [False, False, True, False]  # class 2 is new; the quota is then 4 // 3
    assert sorted(labels_held("greedy", labels, 4)) == [1, 1, 2]


def test_of_tied_largest_classes_each_item_is_as_likely_to_go():
    labels = np.array([0, 0, 1, 1, 2])
    gone = [greedy.plan(labels, 4, np.random.default_rng(seed))[4] for seed in range(800)]
    assert stats.chisquare(np.bincount(gone, minlength=4)).pvalue > 1e-3


def test_uniform_draws():
    counts = np.array([0, 3, 5, 8, 8])
    draws = uniform_draws(counts, 5, np.random.default_rng(0))
    assert draws.shape == (5, 5)
    assert sorted(draws[1]) == [0, 0, 1, 1, 2]  # fewer than five: all in turn
    for t in (2, 3, 4):
        assert len(set(draws[t])) == 5
        assert draws[t].max() < counts[t]
    many = uniform_draws(np.full(8000, 6), 3, np.random.default_rng(1))
    sets, tally = np.unique(np.sort(many, axis=1), axis=0, return_counts=True)
    assert len(sets) == 20  # every 3-subset of 6
    assert stats.chisquare(tally).pvalue > 1e-3


UNEQUAL = np.array([8, 16, 20, 21, 29, 37, 45, 53])  # what batches of 8 leave of chunks of 20, 1 and 32 items


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("ends", [np.array([*range(8, 53, 8), 53]), UNEQUAL], ids=["equal", "unequal"])
@pytest.mark.parametrize("keep_pixels", [False, True])
def test_memory_holds_what_items_one_by_one_would_leave(keep_pixels, policy, ends, data):
    """Batched writes with repeated slots end in the same contents as the plan, item by item.

    Item d·N + i is image i through permutation d, of each seed its own, whether the memory holds it or its index.
    """
    rng = np.random.default_rng(0)
    permutations = [np.stack([rng.permutation(192) for _ in range(2)]) for _ in range(2)]
    images = Images(data.train_x, "unit", CPU, torch.float64, permutations)
    items = np.stack([rng.permutation(240)[:53] for _ in range(2)])
    given = torch.from_numpy(items), torch.from_numpy(data.train_y[items % 120])
    memory = Memory(policy, 6, images, *given, ends, [0, 1], keep_pixels=keep_pixels)
    for t, end in enumerate(ends):
        memory.write(t)
        x, y = memory.read(torch.arange(6).expand(2, -1))
        for s in range(2):
            held = contents(memory.plans[s][:end], 6)
            assert memory.counts[s, t + 1] == len(held)
            for slot, position in held.items():
                domain, i = divmod(items[s, position], 120)
                pixels = data.train_x[i].flatten()[permutations[s][domain]].reshape(8, 8, 3) / 255
                np.testing.assert_allclose(x[s, slot], pixels.transpose(2, 0, 1))
                assert (memory.item[s, slot], y[s, slot]) == (items[s, position], data.train_y[i])


@pytest.mark.parametrize(
    ("labels", "slots", "ends", "counts", "slot", "shares"),
    [
        # class 1 comes in a batch of one, and weighs half at once
        (
            [0] * 9 + [1] + [0] * 20,
            [*range(10), *[-1] * 20],
            [5, 9, 10, 15, 20, 25, 30],
            [0, 5, 9, 10, 10, 10, 10],
            9,
            [0, 0, 0, 0.5, 0.5, 0.5, 0.5],
        ),
        # of slots with classes 0, 0 and 1 the last is drawn half of the time, although the batch puts class 1 into one
        ([0, 0, 1, 1], [0, 1, 2, 0], [3, 4], [0, 3], 2, [0, 0.5]),
    ],
    ids=["unequal", "before the writes"],
)
def test_a_weighted_draw_weighs_the_memory_as_it_is_before_the_step(labels, slots, ends, counts, slot, shares):
    given, rng = [np.array(each) for each in (slots, labels, ends, counts)], np.random.default_rng(0)
    drawn = np.stack([weighted_draws(*given, 1, rng)[:, 0] for _ in range(1000)])
    found = (drawn == slot).mean(axis=0)
    assert found == pytest.approx(np.array(shares), abs=4 * np.sqrt(0.25 / 1000))
    assert (found[np.array(shares) == 0] == 0).all()


def test_draws_before_and_after_the_write(data):
    images = Images(data.train_x, "unit", CPU, torch.float64)
    items = torch.arange(20)[None]
    labels = torch.from_numpy(data.train_y)[items]
    memory = Memory("reservoir", 100, images, items, labels, np.array([5, 10, 15, 20]), [0])
    before, after = Draws(memory, 4), Draws(memory, 8, after_write=True)
    assert before(0) is None
    memory.write(0)
    draw = after(0)
    assert draw.weight.tolist() == [[0.2] * 5 + [0.0] * 3]
    assert draw.slots.tolist() == [[0, 1, 2, 3, 4, 100, 100, 100]]  # repetitions write to the spare slot
    draw = before(1)
    assert draw.weight is None
    torch.testing.assert_close(draw.x, images(memory.item.gather(1, draw.slots)))
