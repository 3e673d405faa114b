"""Orders: their slugs and the streams they make."""

import math
import re
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from clpapers.streams import orders
from clpapers.streams.chunks import (
    chunks_of_classes,
    class_of_output,
    class_order,
    domains_of_classes,
    output_labels,
    outputs_at_test,
    overlapping_classes,
)

SPLIT = {"name": "split", "tasks": 5}
STF = {"name": "stf", "mu_sigma": math.sqrt(1 / 12) / 5}
OVERLAPPING = {"name": "split_overlapping", "first": 2, "last": 7, "tasks": 5, "per_task": 3}
PIXELS = {"name": "permuted_pixels", "tasks": 3}
LABELS = np.repeat(np.arange(10), 100)
UNEQUAL = np.repeat(np.arange(10), np.arange(91, 101))


def chunks(stream, values=None):
    """The items of each chunk, or their values."""
    return np.split(stream.indices if values is None else values[stream.indices], stream.boundaries)


def sizes_of(parts):
    return [len(part) for part in parts]


# --- slugs -------------------------------------------------------------------------------------------------------

many, lengths = st.integers(1, 10**9), st.none() | st.integers(1, 10**9)


def options(*names, **values):
    return st.fixed_dictionaries({"name": st.sampled_from(names), **values})


valid_orders = st.one_of(
    options("stf", mu_sigma=st.floats(1e-300, 0.4999), length=lengths),
    options("dominant", "dominant_ordered", share=st.floats(1e-300, 0.99999), length=lengths),
    options("offline", items=many, length=lengths),
    options("split", "split_ordered", "permuted_pixels", tasks=many, length=lengths, epochs=many, cycles=many),
    options("permuted_pixels", tasks=many, cycles=many, unpermuted_first=st.booleans(), once=st.booleans()),
    options("permuted_pixels", tasks=many, random_state=many),
    options("split_two", tasks=many, length=lengths),
    options("instances", burst=lengths, length=lengths),
    options("random", length=lengths),
)
KEYS = {
    "stf": ("mu_sigma", float),
    "dominant": ("share", float),
    "dominant_ordered": ("share", float),
    "offline": ("items", int),
    "instances": ("burst", lambda text: None if text is None else int(text)),
}  # the others': tasks
FORM = re.compile(
    r"([a-z_]+)(?:-([0-9.]+(?:e-[0-9]+)?))?(?:-n(?P<length>[0-9]+))?(?:-e(?P<epochs>[0-9]+))?(?:-c(?P<cycles>[0-9]+))?"
    r"(?P<unpermuted_first>-unpermuted_first)?(?P<once>-once)?(?:-r(?P<random_state>[0-9]+))?"
)


@given(valid_orders)
def test_a_slug_holds_the_whole_order(order):
    found = FORM.fullmatch(orders.slug(order))
    read = {key: text.startswith("-") or int(text) for key, text in found.groupdict().items() if text is not None}
    key, convert = KEYS.get(found[1], ("tasks", int))
    own = {} if found[1] == "random" else {key: convert(found[2])}
    assert {"name": found[1], "length": None} | own | read == orders.canonical(order)


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (STF, "stf-0.057735"),
        (STF | {"mu_sigma": 0.0577350269, "length": 2000}, "stf-0.057735-n2000"),
        ({"name": "split_range", "first": 15, "last": 99, "tasks": 17, "random_state": 7}, "split_range-15-99-17-r7"),
        ({"epochs": 10} | OVERLAPPING, "split_overlapping-2-7-5-3-e10"),
        (SPLIT | {"random_state": 2, "renumbered": True}, "split-5-r2-renumbered"),
        ({"cycles": 5, "epochs": 2, "name": "split_ordered", "tasks": 5}, "split_ordered-5-e2-c5"),
        ({"name": "split_domains", "tasks": 5, "items": 640}, "split_domains-5-i640"),
        ({"once": True, "name": "permuted_pixels", "tasks": 2, "cycles": 3}, "permuted_pixels-2-c3-once"),
        ({"name": "instances", "burst": 20, "length": 50}, "instances-20-n50"),
    ],
)
def test_slugs(order, expected):
    assert orders.slug(order) == expected


def test_importing_the_slugs_is_cheap():
    heavy = "{'scipy', 'torch', 'pandas', 'matplotlib'} & set(sys.modules)"
    code = f"import sys; from clpapers.streams.orders import slug; sys.exit(str({heavy}) if {heavy} else 0)"
    subprocess.run([sys.executable, "-c", code], check=True)


# --- all orders --------------------------------------------------------------------------------------------------

ONCE = [
    STF,
    {"name": "split", "tasks": 3},
    {"name": "split_two", "tasks": 3},
    {"name": "split_ordered", "tasks": 3},
    {"name": "dominant", "share": 0.55},
    {"name": "random"},
]  # these visit every item once
AGAIN = [PIXELS, {"name": "offline", "items": 2500}]


@pytest.mark.parametrize("labels", [LABELS, LABELS.astype(np.uint8), np.random.default_rng(0).permutation(LABELS)])
@pytest.mark.parametrize("length", [None, 1000, 250])
@pytest.mark.parametrize("order", ONCE)
def test_every_order_makes_a_stream(order, length, labels):
    stream = orders.make(order | {"length": length}, labels, seed=7)
    n = length or 1000
    assert stream.indices.dtype == stream.boundaries.dtype == np.int64
    assert stream.timestamps.shape == stream.indices.shape == (n,)
    assert len({*stream.indices} & {*range(1000)}) == n
    assert (np.diff(stream.timestamps) >= 0).all()
    assert stream.class_parameters.shape == (10, 4)
    assert np.isfinite(stream.class_parameters).all() == (order["name"] == "stf")
    assert (stream.transforms.shape, stream.seed) == ((0, 0), 7)


@pytest.mark.parametrize("length", [None, 200])
@pytest.mark.parametrize("order", ONCE + AGAIN)
def test_the_seed_decides(order, length):
    first, again, other = (orders.make(order | {"length": length}, LABELS, seed, pixels=9) for seed in (0, 0, 1))
    for name in ("indices", "timestamps", "class_parameters", "transforms"):
        np.testing.assert_array_equal(getattr(first, name), getattr(again, name))
    assert (first.indices != other.indices).any()


@pytest.mark.parametrize(
    "order",
    [
        {"name": "random"},
        {"name": "split", "tasks": 2},
        {"name": "split_overlapping", "first": 0, "last": 3, "tasks": 2, "per_task": 3},
        {"name": "dominant", "share": 0.4},
    ],
)
def test_items_are_iid_inside_a_chunk(order):
    labels = np.repeat(np.arange(4), 3000)
    stream = orders.make(order, labels, 0)
    for chunk in chunks(stream, labels):
        table = stats.contingency.crosstab(chunk, np.arange(chunk.size) * 10 // chunk.size).count
        assert stats.chi2_contingency(table).pvalue > 1e-3
    np.testing.assert_allclose(stream.timestamps * stream.indices.size, np.arange(stream.indices.size))


def binomial_distance(order, size, among, trials=200):
    """How often each of some items stands among the first `size` of a stream, against a binomial's normal limit."""
    drawn = np.zeros(1000)
    for seed in range(trials):
        drawn[orders.make(order, LABELS, seed).indices[:size]] += 1
    share = size / len(among)
    assert drawn[among].sum() == trials * size
    return stats.kstest(drawn[among], stats.norm(trials * share, math.sqrt(trials * share * (1 - share))).cdf).statistic


def test_subset_is_uniform_and_the_same_in_every_order():
    assert binomial_distance({"name": "random", "length": 250}, 250, range(1000)) < 0.08
    every, recorded = [*ONCE, *AGAIN, {"name": "instances", "burst": 7}], (np.arange(1000), np.arange(1000))
    subsets = [np.unique(orders.make(order | {"length": 250}, LABELS, 3, 4, recorded).indices) for order in every]
    for subset in subsets:
        np.testing.assert_array_equal(subset, subsets[0])


# --- tasks of classes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tasks", [1, 3, 4, 5, 10])
@pytest.mark.parametrize("name", ["split", "split_two"])
def test_streams_of_disjoint_classes_share_one_class_order_cut_into_near_equal_tasks(name, tasks):
    for seed in range(5):
        dealt = class_order(SPLIT, 10, seed)
        assert sorted(dealt.tolist()) == list(range(10))
        classes = chunks(orders.make({"name": name, "tasks": tasks}, UNEQUAL, seed), UNEQUAL)
        expected = np.array_split(dealt, tasks) * (2 if name == "split_two" else 1)
        assert [set(part) for part in classes] == [set(part) for part in expected]


def test_split_range_is_split_of_some_of_the_classes():
    order = {"name": "split_range", "first": 4, "last": 8, "tasks": 2}
    stream = orders.make(order, UNEQUAL, 2)
    assert sorted(stream.indices) == np.flatnonzero((UNEQUAL >= 4) & (UNEQUAL <= 8)).tolist()
    of_class = chunks_of_classes(order, 10, 2)
    np.testing.assert_array_equal(of_class >= 0, (np.arange(10) >= 4) & (np.arange(10) <= 8))
    np.testing.assert_array_equal(of_class[UNEQUAL[stream.indices]], stream.chunk)
    assert len({chunks_of_classes(order, 10, seed).tobytes() for seed in range(20)}) > 5


def test_ordered_classes_are_cut_as_they_are_numbered():
    """Whatever the seed; of unequal sizes the larger come first."""
    for seed in range(3):
        stream = orders.make({"name": "split_ordered", "tasks": 4}, LABELS, seed)
        assert [sorted(set(classes)) for classes in chunks(stream, LABELS)] == [[0, 1, 2], [3, 4, 5], [6, 7], [8, 9]]


def test_split_two_serves_the_classes_twice_in_disjoint_random_halves():
    stream = orders.make({"name": "split_two", "tasks": 5}, UNEQUAL, 2)
    assert sorted(stream.indices.tolist()) == list(range(UNEQUAL.size))
    sizes = np.array([np.bincount(classes, minlength=10) for classes in chunks(stream, UNEQUAL)])
    assert np.isin(sizes[:5] - sizes[5:], [0, 1]).all()  # the larger half first
    assert binomial_distance({"name": "split_two", "tasks": 5}, 500, range(1000)) < 0.08


@pytest.mark.parametrize("cycles", [1, 2])
@pytest.mark.parametrize("seed", range(10))
def test_overlapping_tasks_share_classes_and_no_item_and_have_outputs_of_their_own(seed, cycles):
    order = OVERLAPPING | {"cycles": cycles}
    stream, drawn = orders.make(order, UNEQUAL, seed), overlapping_classes(order, 10, seed)
    assert drawn.shape == (5, 3)
    times = np.bincount(drawn.ravel(), minlength=10)
    assert times.max() > 1  # 15 outputs of 6 classes
    assert np.unique(stream.indices).size * cycles == stream.indices.size == np.isin(UNEQUAL, drawn).sum() * cycles
    for classes, mine in zip(chunks(stream, UNEQUAL), np.tile(drawn, (cycles, 1)), strict=True):
        sizes = np.bincount(classes, minlength=10)
        assert (np.flatnonzero(sizes) == np.sort(mine)).all()
        shares = np.bincount(UNEQUAL)[mine] / times[mine]
        assert (np.abs(sizes[mine] - shares) < 1).all()  # as equal as can be
    outputs = output_labels(order, UNEQUAL[stream.indices], stream.chunk, 10, seed)
    np.testing.assert_array_equal(outputs // 3, stream.chunk % 5)  # task · per_task + place
    np.testing.assert_array_equal(class_of_output(order, 10, seed), drawn.ravel())
    np.testing.assert_array_equal(drawn.ravel()[outputs], UNEQUAL[stream.indices])


def test_classes_of_overlapping_tasks_are_drawn_alike_and_anew():
    drawn = np.stack([overlapping_classes(OVERLAPPING, 10, seed) for seed in range(400)])
    assert (np.sort(drawn, axis=2)[..., 1:] > np.sort(drawn, axis=2)[..., :-1]).all()  # distinct in a task
    for task in range(5):
        assert stats.chisquare(np.bincount(drawn[:, task].ravel(), minlength=8)[2:]).pvalue > 1e-3
    shared = [len(np.intersect1d(first, second)) for first, second, *_ in drawn]
    assert np.mean(shared) == pytest.approx(3 * 3 / 6, abs=0.15)  # hypergeometric: tasks are independent
    fewer = overlapping_classes(OVERLAPPING | {"tasks": 2}, 10, 7)
    np.testing.assert_array_equal(fewer, drawn[7][:2])  # whatever comes later
    np.testing.assert_array_equal(overlapping_classes(OVERLAPPING, 50, 7), drawn[7])  # and whatever else there is


def test_items_of_a_recurring_class_are_dealt_at_random():
    """Of the 100 items of a class with two tasks, half go to each; over seeds, any item goes to either."""
    order = {"name": "split_overlapping", "first": 3, "last": 3, "tasks": 2, "per_task": 1}
    assert binomial_distance(order, 50, range(300, 400)) < 0.2


@pytest.mark.parametrize(("tasks", "ends"), [(3, [4, 7]), (5, [2, 4, 6, 8])])
def test_outputs_of_domains_are_places_within_a_task(tasks, ends):
    """The tasks and the order of items are those of `split`; a class has the place at which it was dealt."""
    order, split = {"name": "split_domains", "tasks": tasks}, {"name": "split", "tasks": tasks}
    stream = orders.make(order, LABELS, 3)
    assert stream.indices.tolist() == orders.make(split, LABELS, 3).indices.tolist()
    outputs = output_labels(order, LABELS[stream.indices], stream.chunk, 10, 3)
    of_task = np.split(class_order(split, 10, 3), ends)
    for task, classes in enumerate(of_task):
        for place, c in enumerate(classes):
            assert set(outputs[LABELS[stream.indices] == c].tolist()) == {place}
            found = outputs_at_test(order, np.array([c]), 10, 3)
            assert [each.tolist() for each in found] == [[0], [place], [task]]
    assert len(class_of_output(order, 10, 3)) == max(sizes_of(of_task))


@pytest.mark.parametrize("absent", [3, 0, 1])
@pytest.mark.parametrize("name", ["split", "split_two", "split_ordered", "split_range"])
def test_chunks_are_those_of_the_declared_classes_whichever_have_items(name, absent):
    """Of four classes one has no item: the chunk of each other class is what an oracle says, at every seed."""
    order = {"name": name, "tasks": 2} | ({"first": 0, "last": 3} if name == "split_range" else {})
    labels = np.repeat([c for c in range(4) if c != absent], 20)
    for seed in range(20):
        made = orders.make(order, labels, seed, classes=4)
        assert len(made.class_parameters) == 4
        assert (made.chunk % 2 == chunks_of_classes(order, 4, seed)[labels[made.indices]]).all()


# --- repetitions -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("epochs", "cycles", "length"), [(3, 1, None), (3, 1, 400), (1, 3, None), (2, 3, None)])
@pytest.mark.parametrize(
    "order",
    [
        {"name": "split", "tasks": 3},
        {"name": "split_ordered", "tasks": 4},
        {"name": "split_range", "first": 1, "last": 8, "tasks": 2},
        OVERLAPPING,
        {"name": "permuted_pixels", "tasks": 2},
    ],
)
def test_every_epoch_of_a_task_comes_before_the_next_task_and_all_tasks_in_each_cycle(order, epochs, cycles, length):
    """The first time as without repetitions; then the same tasks in the same order, shuffled afresh."""
    order, options = order | {"length": length}, {"epochs": epochs, "cycles": cycles}
    once, made = orders.make(order, UNEQUAL, 3, 9), orders.make(order | options, UNEQUAL, 3, 9)
    n = epochs * cycles * once.indices.size
    assert (made.timestamps == np.arange(n) / n).all()
    np.testing.assert_array_equal(made.transforms, once.transforms)
    first, parts = chunks(once), chunks(made)
    assert sizes_of(parts) == cycles * [epochs * size for size in sizes_of(first)]
    for task, items in enumerate(first):
        visits = np.concatenate(parts[task :: len(first)]).reshape(epochs * cycles, -1)
        np.testing.assert_array_equal(visits[0], items)
        assert (np.sort(visits) == np.sort(items)).all()
        assert len(np.unique(visits, axis=0)) == len(visits)


@pytest.mark.parametrize("order", [{"name": "split", "tasks": 3}, {"name": "split_domains", "tasks": 3}])
@pytest.mark.parametrize("items", [150, 1000, 1])
def test_a_task_of_so_many_items_is_epoch_after_epoch_of_it_cut_off(order, items):
    once, cut = orders.make(order, LABELS, 3), orders.make(order | {"items": items}, LABELS, 3)
    assert cut.boundaries.tolist() == [items, 2 * items]
    for whole, part in zip(chunks(once), chunks(cut), strict=True):
        assert part[: whole.size].tolist() == whole[:items].tolist()
        for start in range(0, items, whole.size):
            epoch = part[start : start + whole.size].tolist()
            assert len({*epoch} & {*whole.tolist()}) == len(epoch)


@pytest.mark.parametrize(("items", "length"), [(2500, None), (2000, None), (700, None), (2500, 400), (1, None)])
def test_offline_is_epoch_after_epoch(items, length):
    stream = orders.make({"name": "offline", "items": items, "length": length}, LABELS, 0)
    n = length or 1000
    assert stream.indices.shape == stream.timestamps.shape == (items,)
    assert stream.boundaries.size == 0
    epochs = np.split(stream.indices, np.arange(n, items, n))
    assert [np.unique(epoch).size for epoch in epochs] == sizes_of(epochs)  # each without repetition
    whole = [epoch.tolist() for epoch in epochs if epoch.size == n]
    assert all(sorted(epoch) == sorted(whole[0]) for epoch in whole)
    assert len({tuple(epoch) for epoch in whole}) == len(whole)


# --- dominant classes, permuted pixels, draws of other authors ---------------------------------------------------


@pytest.mark.parametrize("name", ["dominant", "dominant_ordered"])
def test_dominant_of_equal_classes_is_55_and_5_percent(name):
    """The k-th chunk is that of the seed's k-th class, or of class k."""
    labels = np.repeat(np.arange(10), 600)  # a hundredth of MNIST
    stream = orders.make({"name": name, "share": 0.55}, labels, 1)
    assert sorted(stream.indices.tolist()) == list(range(6000))
    np.testing.assert_array_equal(stream.boundaries, np.arange(600, 6000, 600))  # the 6k of MNIST
    dealt = class_order(SPLIT, 10, 1) if name == "dominant" else range(10)
    for dominant, classes in zip(dealt, chunks(stream, labels)):
        np.testing.assert_array_equal(np.bincount(classes), np.where(np.arange(10) == dominant, 330, 30))


@pytest.mark.parametrize("share", [0.3, 0.55, 0.999999])
def test_dominant_of_unequal_classes_uses_every_item_once(share):
    stream, dealt = orders.make({"name": "dominant", "share": share}, UNEQUAL, 4), class_order(SPLIT, 10, 4)
    assert sorted(stream.indices.tolist()) == list(range(UNEQUAL.size))
    sizes = np.array([np.bincount(classes, minlength=10) for classes in chunks(stream, UNEQUAL)])
    np.testing.assert_array_equal(sizes[range(10), dealt], np.rint(np.bincount(UNEQUAL)[dealt] * share))
    for dominant, of_class in zip(np.argsort(dealt), sizes.T):
        assert np.ptp(np.delete(of_class, dominant)) <= 1


def test_dominant_of_one_class_is_one_chunk():
    stream = orders.make({"name": "dominant", "share": 0.55}, np.zeros(20, dtype=int), 0)
    assert sorted(stream.indices.tolist()) == list(range(20))
    assert stream.boundaries.size == 0


@pytest.mark.parametrize("length", [None, 200])
def test_permuted_pixels_passes_over_all_items_for_each_domain(length):
    stream = orders.make(PIXELS | {"tasks": 4, "length": length}, LABELS, 0, pixels=28 * 28)
    n = length or 1000
    np.testing.assert_array_equal(stream.boundaries, [n, 2 * n, 3 * n])
    passes = stream.indices.reshape(4, n)
    assert (np.sort(passes) == np.unique(stream.indices)).all()
    assert len(np.unique(passes, axis=0)) == 4  # freshly shuffled
    assert stream.timestamps.shape == (4 * n,)
    assert (np.sort(stream.transforms) == np.arange(784)).all()
    assert len(np.unique(np.vstack([stream.transforms, np.arange(784)]), axis=0)) == 5  # the first is permuted too


@pytest.mark.parametrize(("length", "sizes"), [(None, [334, 333, 333]), (200, [67, 67, 66]), (3, [1, 1, 1])])
def test_permuted_pixels_once_shares_all_items_out_among_the_domains(length, sizes):
    every, stream = (
        orders.make(PIXELS | {"length": length, "once": once}, LABELS, 0, pixels=50) for once in (False, True)
    )
    assert sizes_of(chunks(stream)) == sizes
    np.testing.assert_array_equal(stream.indices, every.indices[: sum(sizes)])  # each item once
    np.testing.assert_array_equal(stream.transforms, every.transforms)


def test_domains_depend_neither_on_how_many_there_are_nor_on_the_first():
    """With `random_state` as the code of A-GEM: one generator a seed shuffles a fresh list of the pixels a task."""
    usual, five, first, drawn = (
        orders.make(PIXELS | options, LABELS, 2, pixels=50)
        for options in ({}, {"tasks": 5}, {"unpermuted_first": True}, {"random_state": 1234})
    )
    np.testing.assert_array_equal(usual.transforms, five.transforms[:3])
    np.testing.assert_array_equal(usual.indices, five.indices[:3000])
    np.testing.assert_array_equal(first.transforms, [np.arange(50), *usual.transforms[1:]])
    np.testing.assert_array_equal(first.indices, usual.indices)
    np.testing.assert_array_equal(drawn.indices, usual.indices)
    rng = np.random.RandomState(1236)
    for permutation in drawn.transforms:
        pixels = list(range(50))
        rng.shuffle(pixels)
        assert permutation.tolist() == pixels


def test_random_state_deals_the_classes_of_a_range_as_an_array_shuffled_by_that_generator():
    """As the code of A-GEM: seeded anew a run, it shuffles the range first of all and cuts tasks of equal size."""
    order = {"name": "split_range", "first": 2, "last": 9, "tasks": 4, "random_state": 1234}
    rng, dealt = np.random.RandomState(1236), np.arange(2, 10)
    rng.shuffle(dealt)
    found = [{*task.tolist()} for task in chunks(orders.make(order, LABELS, 2), LABELS)]
    assert found == [{*pair} for pair in dealt.reshape(4, 2).tolist()]
    assert chunks_of_classes(order, 10, 2)[dealt].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize("name", ["split", "split_domains"])
def test_renumbered_the_generator_draws_the_place_of_each_class(name):
    """As the code of van de Ven et al.: class y becomes label p[y], and two labels are a task."""
    order = {"name": name, "tasks": 5, "random_state": 2, "renumbered": True}
    place = np.random.RandomState(5).permutation(10)
    found = [{*task.tolist()} for task in chunks(orders.make(order, LABELS, 3), LABELS)]
    assert found == [{*np.flatnonzero(place // 2 == task).tolist()} for task in range(5)]
    task, within = domains_of_classes(order, 10, 3)
    assert (task.tolist(), within.tolist()) == ((place // 2).tolist(), (place % 2).tolist())


# --- bursts of instances -----------------------------------------------------------------------------------------

INSTANCE = np.repeat(np.arange(30), np.tile([50, 30, 20], 10))  # three of each class, of unequal length
FRAME = np.random.default_rng(1).permutation(1000)  # no item lies where its frame would be; and frames may be missed


def recorded_stream(burst, length=None, seed=0):
    order = {"name": "instances", "burst": burst, "length": length}
    return orders.make(order, LABELS, seed, recorded=(INSTANCE, FRAME))


@pytest.mark.parametrize("length", [None, 300])
@pytest.mark.parametrize("burst", [None, 1, 7, 20, 50, 1000])
def test_bursts_are_whole_in_recorded_order_and_come_once(burst, length):
    stream = recorded_stream(burst, length)
    n = length or 1000
    assert np.unique(stream.indices).size == stream.indices.size == n
    expected = []
    for instance in range(30):
        shown = sorted((item for item in stream.indices if INSTANCE[item] == instance), key=lambda item: FRAME[item])
        expected += [tuple(shown[start : start + (burst or n)]) for start in range(0, len(shown), burst or n)]
    assert sorted(map(tuple, chunks(stream))) == sorted(expected)


def test_categories_come_again_and_no_burst_in_the_order_of_the_data():
    classes = LABELS[[burst[0] for burst in chunks(recorded_stream(20))]]
    assert classes.size == 60
    assert np.count_nonzero(np.diff(classes)) > 44  # 9 if no category came again; 53.1 expected in random order
    assert (np.sort(classes) != classes).any()


@pytest.mark.parametrize(
    ("order", "group"),
    [(SPLIT, LABELS), ({"name": "random"}, LABELS), ({"name": "instances", "burst": None}, INSTANCE)],
)
def test_every_class_and_every_burst_comes_first_as_often_as_any_other(order, group):
    first = [group[orders.make(order, LABELS, seed, recorded=(INSTANCE, FRAME)).indices[0]] for seed in range(600)]
    assert stats.chisquare(np.bincount(first, minlength=group[-1] + 1)).pvalue > 0.001
