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

STF = {"name": "stf", "mu_sigma": math.sqrt(1 / 12) / 5}
LABELS = np.repeat(np.arange(10), 100)

lengths = st.none() | st.integers(1, 10**9)
valid_orders = st.one_of(
    st.fixed_dictionaries({"name": st.just("stf"), "mu_sigma": st.floats(1e-300, 0.4999), "length": lengths}),
    st.fixed_dictionaries({"name": st.just("split"), "tasks": st.integers(1, 10**9), "length": lengths}),
    st.fixed_dictionaries({"name": st.just("random"), "length": lengths}),
)


@given(valid_orders, valid_orders)
def test_slugs_are_equal_only_where_orders_are(a, b):
    assert (orders.slug(a) == orders.slug(b)) == (orders.canonical(a) == orders.canonical(b))


@given(valid_orders)
def test_a_slug_holds_the_whole_order(order):
    form = r"(stf|split|random)(?:-([0-9.]+(?:e-[0-9]+)?))?(?:-n([0-9]+))?"
    name, value, length = re.fullmatch(form, orders.slug(order)).groups()
    read = {"name": name, "length": None if length is None else int(length)}
    if name != "random":
        key, convert = {"stf": ("mu_sigma", float), "split": ("tasks", int)}[name]
        read[key] = convert(value)
    assert read == orders.canonical(order)


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (STF, "stf-0.057735"),
        (STF | {"mu_sigma": 0.0577350269, "length": 2000}, "stf-0.057735-n2000"),
        (STF | {"mu_sigma": 1e-7}, "stf-1e-07"),
        ({"name": "split", "tasks": 5, "length": None}, "split-5"),
        ({"name": "split", "tasks": 1234567}, "split-1234567"),
        ({"name": "random", "length": 500}, "random-n500"),
        ({"name": "random"}, "random"),
    ],
)
def test_slugs(order, expected):
    assert orders.slug(order) == expected


@pytest.mark.parametrize(
    ("order", "complaint"),
    [
        ({}, "name: None is not one of stf, split, random"),
        ({"name": "rnd"}, "name: 'rnd' is not one of"),
        ({"name": "stf"}, "mu_sigma is missing"),
        ({"name": "random", "tasks": 3}, "'tasks' is not one of length"),
        ({"name": "split", "tasks": 0}, "tasks: 0 is not a whole number"),
        ({"name": "split", "tasks": 2.0}, "tasks: 2.0 is not a whole number"),
        ({"name": "random", "length": True}, "length: True is not a whole number"),
        ({"name": "random", "length": 0}, "length: 0 is not a whole number"),
        *[
            (STF | {"mu_sigma": bad}, "mu_sigma: .* number inside")
            for bad in (0, 0.5, 0.49999999, -1, "0.1", None, True)
        ],
        (STF | {"mu_sigma": math.nan}, "mu_sigma: nan is not"),
    ],
)
def test_bad_orders_are_refused(order, complaint):
    for use in (orders.slug, orders.canonical, lambda order: orders.make(order, LABELS, 0)):
        with pytest.raises(ValueError, match=complaint):
            use(order)


def test_importing_the_slugs_is_cheap():
    heavy = "{'scipy', 'torch', 'pandas', 'matplotlib'} & set(sys.modules)"
    code = f"import sys; from clpapers.streams.orders import slug; sys.exit(str({heavy}) if {heavy} else 0)"
    subprocess.run([sys.executable, "-c", code], check=True)


ALL = [STF, {"name": "split", "tasks": 3}, {"name": "random"}]


@pytest.mark.parametrize("labels", [LABELS, LABELS.astype(np.uint8), np.random.default_rng(0).permutation(LABELS)])
@pytest.mark.parametrize("length", [None, 1000, 250])
@pytest.mark.parametrize("order", ALL)
def test_every_order_makes_a_stream(order, length, labels):
    stream = orders.make(order | {"length": length}, labels, seed=7)
    n = length or 1000
    assert stream.indices.dtype == stream.boundaries.dtype == np.int64
    assert stream.timestamps.shape == stream.indices.shape == (n,)
    assert len(np.unique(stream.indices)) == n
    assert stream.indices.min() >= 0
    assert stream.indices.max() < 1000
    assert (np.diff(stream.timestamps) >= 0).all()
    assert stream.class_parameters.shape == (10, 4)
    assert np.isfinite(stream.class_parameters).all() == (order["name"] == "stf")
    assert stream.seed == 7


@pytest.mark.parametrize("length", [None, 200])
@pytest.mark.parametrize("order", ALL)
def test_the_seed_decides(order, length):
    first, again, other = (orders.make(order | {"length": length}, LABELS, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.indices, again.indices)
    np.testing.assert_array_equal(first.timestamps, again.timestamps)
    np.testing.assert_array_equal(first.class_parameters, again.class_parameters)
    assert (first.indices != other.indices).any()


def test_mu_sigma_counts_to_six_digits():
    a, b = (orders.make({"name": "stf", "mu_sigma": m}, LABELS, 0) for m in (0.0577350269, 0.05773501))
    np.testing.assert_array_equal(a.timestamps, b.timestamps)


def test_subset_is_uniform_and_the_same_in_every_order():
    drawn = np.zeros(1000)
    for seed in range(200):
        drawn[orders.make({"name": "random", "length": 250}, LABELS, seed).indices] += 1
    assert stats.kstest(drawn, stats.norm(50, math.sqrt(200 * 0.25 * 0.75)).cdf).statistic < 0.08  # binomial
    subsets = [np.sort(orders.make(order | {"length": 250}, LABELS, 3).indices) for order in ALL]
    np.testing.assert_array_equal(subsets[0], subsets[1])
    np.testing.assert_array_equal(subsets[0], subsets[2])


def test_class_parameters_do_not_depend_on_the_length():
    whole, part = (orders.make(STF | {"length": length}, LABELS, 5) for length in (None, 100))
    np.testing.assert_array_equal(whole.class_parameters, part.class_parameters)


def test_random_is_stationary():
    stream = orders.make({"name": "random"}, np.repeat(np.arange(5), 4000), 0)
    table = stats.contingency.crosstab(stream.indices // 4000, np.arange(20_000) // 2000).count
    assert stats.chi2_contingency(table).pvalue > 1e-3
    np.testing.assert_array_equal(stream.timestamps[:3], [0, 1 / 20_000, 2 / 20_000])
    assert stream.boundaries.size == 0


@pytest.mark.parametrize(
    ("tasks", "sizes"), [(1, [10]), (3, [4, 3, 3]), (5, [2] * 5), (4, [3, 3, 2, 2]), (10, [1] * 10)]
)
def test_split_deals_disjoint_classes(tasks, sizes):
    labels = np.repeat(np.arange(10), np.arange(10, 110, 10))
    stream = orders.make({"name": "split", "tasks": tasks}, labels, 1)
    assert len(stream.boundaries) == tasks - 1
    dealt = [np.unique(task) for task in np.split(labels[stream.indices], stream.boundaries)]
    assert [len(classes) for classes in dealt] == sizes
    assert sorted(np.concatenate(dealt).tolist()) == list(range(10))  # disjoint, and so the boundaries are right


def test_split_deals_at_random():
    first = [orders.make({"name": "split", "tasks": 5}, LABELS, seed).indices[0] // 100 for seed in range(300)]
    assert stats.chisquare(np.bincount(first, minlength=10)).pvalue > 1e-3


def test_split_is_iid_inside_a_task():
    labels = np.repeat(np.arange(4), 3000)
    stream = orders.make({"name": "split", "tasks": 2}, labels, 0)
    for task in np.split(labels[stream.indices], stream.boundaries):
        table = stats.contingency.crosstab(task, np.arange(6000) // 600).count
        assert stats.chi2_contingency(table).pvalue > 1e-3


@pytest.mark.parametrize(
    ("order", "labels", "complaint"),
    [
        ({"name": "random", "length": 1001}, LABELS, "length: 1001 is more than the training split's 1000"),
        ({"name": "split", "tasks": 11}, LABELS, "tasks: 11 is more than the 10 classes"),
        ({"name": "split", "tasks": 5, "length": 2}, LABELS, "tasks: one of 5 has no item among 2"),
        ({"name": "random"}, LABELS - 1, "labels: not"),
        ({"name": "random"}, LABELS.astype(float), "labels: not"),
        ({"name": "random"}, LABELS[:0], "labels: not"),
        ({"name": "random"}, LABELS.reshape(10, 100), "labels: not"),
    ],
)
def test_what_cannot_be_made_is_refused(order, labels, complaint):
    with pytest.raises(ValueError, match=complaint):
        orders.make(order, labels, 0)
