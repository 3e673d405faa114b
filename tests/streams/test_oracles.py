"""Oracles: appendix B of `rules` by hand, what each says, and the trigger."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from clpapers.streams import chunks, oracles, orders
from clpapers.streams.chunks import chunks_of_classes
from clpapers.streams.restrictions import evaluation_partition
from clpapers.streams.stream import batches

# Appendix B's data sequence D, its second class 3 read as the 8 that is missing.
SEQUENCE = [3, 9, 1, 2, 4, 0, 5, 8, 6, 7]
SPLIT = {"name": "split", "tasks": 5}
DOM = {"name": "dominant_tasks", "shares": [0.2, 0.3, 0.5]}
LABELS = np.repeat(np.arange(10), 40)
TEST_LABELS = np.repeat(np.arange(10), 30)


def sets(of_class, names=range(10)):
    """The classes of each task, by other names."""
    return [{names[c] for c in np.flatnonzero(of_class == task)} for task in range(of_class.max() + 1)]


def split(tasks, **options):
    return {"name": "split", "tasks": tasks, **options}


def told(oracle, order=SPLIT, seed=1, pixels=None):
    stream = orders.make(order, LABELS, seed, pixels)
    return stream, oracles.identify(oracle, order, stream, LABELS[stream.indices], TEST_LABELS, 10, seed)


def test_appendix_b_aligned_tasks():
    """The k-th class of an order that takes them as they are numbered has the name of the sequence's k-th."""
    order = {"name": "split_ordered", "tasks": 5}
    d = sets(chunks_of_classes(order, 10, 0), SEQUENCE)
    assert d == [{3, 9}, {1, 2}, {4, 0}, {5, 8}, {6, 7}]
    two, five, seven = (sets(oracles.task_of_class(split(n), order, 10, 0), SEQUENCE) for n in (2, 5, 7))
    assert two == [{3, 9, 1, 2, 4}, {0, 5, 8, 6, 7}]  # chunks 1, 2 and half of 3
    assert five == d
    assert [len(task) for task in seven] == [2, 2, 2, 1, 1, 1, 1]  # 4 classes identified, 6 in 3 sets
    assert seven[:3] == d[:3]


@pytest.mark.parametrize("oracle", [split(10, aligned=False), DOM])
def test_the_tasks_of_data_oracle_and_evaluation_are_independent(oracle):
    """D, I and J of td_es_ed."""

    def three(seed):
        data, tasks = chunks_of_classes(split(10), 100, seed), oracles.task_of_class(oracle, SPLIT, 100, seed)
        return data, tasks, evaluation_partition("independent", oracle, SPLIT, 100, seed)

    drawn = np.array([three(seed) for seed in range(100)])
    for one, other in ((0, 1), (1, 2), (0, 2)):
        table = stats.contingency.crosstab(drawn[:, one].ravel(), drawn[:, other].ravel()).count
        assert stats.chi2_contingency(table).pvalue > 1e-3


@pytest.mark.parametrize("aligned", [True, False])
@given(st.data())
def test_split_cuts_one_order_into_near_equal_tasks(aligned, data):
    classes = data.draw(st.integers(1, 40))
    tasks = data.draw(st.integers(1, classes))
    sizes = np.bincount(oracles.task_of_class(split(tasks, aligned=aligned), SPLIT, classes, 3))
    assert sizes.tolist() == [len(part) for part in np.array_split(np.arange(classes), tasks)]


@pytest.mark.parametrize(("classes", "sizes"), [(10, [2, 3, 5]), (100, [20, 30, 50]), (3, [1, 1, 1]), (4, [1, 1, 2])])
def test_dominant_tasks_are_a_fifth_three_tenths_and_half(classes, sizes):
    of_class = oracles.task_of_class(DOM, SPLIT, classes, 0)
    assert np.bincount(of_class).tolist() == sizes


@pytest.mark.parametrize("oracle", [split(3), split(5, aligned=False), DOM])
@pytest.mark.parametrize("order", [SPLIT, {"name": "offline", "items": 900}, {"name": "dominant", "share": 0.55}])
def test_tasks_of_classes_reach_every_item(oracle, order):
    stream, said = told(oracle, order)
    assert said.tasks == said.of_class.max() + 1 == len(said.task_classes)
    np.testing.assert_array_equal(said.train, said.of_class[LABELS[stream.indices]])
    np.testing.assert_array_equal(said.test, said.of_class[TEST_LABELS])
    assert sets(said.of_class) == [set(np.flatnonzero(row).tolist()) for row in said.task_classes]


@pytest.mark.parametrize("name", ["none", "entropy", "mixed"])
def test_oracles_that_say_nothing(name):
    stream, said = told({"name": name, "tasks": 15})
    assert (said.tasks, said.of_class, said.task_classes.tolist()) == (1, None, [[True] * 10])
    assert said.train.tolist() == [0] * stream.indices.size
    assert said.test.tolist() == [0] * TEST_LABELS.size


def test_random_tasks_are_uniform_and_of_each_example():
    stream, said = told({"name": "random_tasks", "tasks": 15}, {"name": "offline", "items": 6000})
    assert (said.tasks, said.of_class, said.task_classes.tolist()) == (15, None, [[True] * 10] * 15)
    for tasks, labels in ((said.train, LABELS[stream.indices]), (said.test, TEST_LABELS)):
        assert tasks.max() < 15
        assert stats.chi2_contingency(stats.contingency.crosstab(labels, tasks).count).pvalue > 1e-3
    assert stats.chisquare(np.bincount(said.train)).pvalue > 1e-3
    _, again = told({"name": "random_tasks", "tasks": 15})
    np.testing.assert_array_equal(again.test, said.test)  # whatever the stream


@pytest.mark.parametrize("cycles", [1, 2])
def test_chunks_are_tasks_that_recur_in_each_cycle(cycles):
    """Three domains, and two tasks of classes; the task changes at each boundary."""
    stream, said = told({"name": "chunks"}, {"name": "permuted_pixels", "tasks": 3, "cycles": cycles}, pixels=4)
    assert (said.of_class, said.task_classes.tolist()) == (None, [[True] * 10] * 3)
    assert said.train.tolist() == np.repeat([0, 1, 2] * cycles, 400).tolist()
    assert not said.test.any()
    stream, said = told({"name": "chunks"}, {"name": "split_ordered", "tasks": 2, "cycles": cycles})
    assert (said.tasks, said.of_class.tolist()) == (2, [0] * 5 + [1] * 5)
    assert said.train.tolist() == np.repeat([0, 1] * cycles, 200).tolist()
    changes = oracles.task_changes(said.train, batches(stream.boundaries, 400 * cycles, 100))
    assert np.flatnonzero(changes).tolist() == [2, 4, 6][: 2 * cycles - 1]


@pytest.mark.parametrize("name", ["split", "split_two", "split_ordered"])
def test_chunks_of_classes_are_the_aligned_split(name):
    order = {"name": name, "tasks": 5}
    (_, chunks), (_, aligned) = (told(oracle, order) for oracle in ({"name": "chunks"}, split(5)))
    for field in ("of_class", "train", "test", "task_classes"):
        np.testing.assert_array_equal(getattr(chunks, field), getattr(aligned, field))


def test_chunks_of_overlapping_classes_are_known_by_their_outputs():
    """Three tasks of four classes, so that each class has two outputs at least once."""
    order = {"name": "split_overlapping", "first": 2, "last": 7, "tasks": 3, "per_task": 4}
    stream = orders.make(order, LABELS, 5)
    labels = chunks.output_labels(order, LABELS[stream.indices], stream.chunk, 10, 5)
    said = oracles.identify({"name": "chunks"}, order, stream, labels, np.arange(12), 12, 5)
    np.testing.assert_array_equal(said.train, stream.chunk)
    assert said.test.tolist() == said.of_class.tolist() == np.repeat([0, 1, 2], 4).tolist()
    assert said.task_classes.sum(axis=1).tolist() == [4, 4, 4]


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4), min_size=1, max_size=12), st.booleans())
def test_the_trigger_is_its_definition(batches, always):
    """At a switch, and at every batch of several tasks, or at every batch; never at the first."""
    held = [set(batch) for batch in batches]
    expected = [t > 0 and (always or len(now) > 1 or now != held[t - 1]) for t, now in enumerate(held)]
    ends = np.cumsum([len(batch) for batch in batches])
    assert oracles.task_changes(np.concatenate(batches), ends, always=always).tolist() == expected


@pytest.mark.parametrize(("name", "times"), [("split", 4), ("split_two", 9)])
def test_recurring_classes_trigger_once_a_segment(name, times):
    order = {"name": name, "tasks": 5}
    stream, said = told(split(5), order)
    ends = batches(stream.boundaries, LABELS.size, 16)
    assert oracles.task_changes(said.train, ends).sum() == times  # §4.3: from 5 to 10, the first teaching nothing
    assert oracles.task_changes(np.zeros_like(said.train), ends).sum() == 0
