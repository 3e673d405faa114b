"""The costs of runs on a card: rows of published runs, and other runs' costs by them."""

import pytest
from world import ROOT

from clpapers.budget import card_costs, costs
from clpapers.budget.card_costs import Row
from clpapers.runs import loop

NET, OTHER = '{"name": "mlp"}', '{"name": "cnn", "width": 32}'


@pytest.fixture
def single(whole):
    return next(cell for cell in whole.cells.values() if cell.spec["learner"]["name"] == "single")


@pytest.fixture
def table():
    return costs.Table(costs.read(), calibration=0.02)


def row(key, ratio, megabytes=100.0):
    return Row(*key, "a card", 3, ratio, megabytes)


def test_a_run_that_shares_a_card_counts_its_part(whole, single, table, ran):
    runs = []
    for seed, (seconds, abreast) in enumerate([(60.0, 4), (20.0, 2), (9.0, None)]):
        took = {"wall_seconds": seconds, "seeds": [seed], "peak_device_bytes": (seed + 1) << 20}
        runs.append(ran(single.folder / f"seed{seed}.json", "a card", {"abreast": abreast}, **took))
    (found,) = card_costs.measure(whole, {single.hash: runs}, table)
    assert (found.key, found.card, found.runs, found.megabytes) == (card_costs.key_of(whole, single), "a card", 3, 3.0)
    assert found.ratio == pytest.approx((60 / 4 + 20 / 2) / (2 * table.seconds(whole, single)))
    (alone,) = card_costs.measure(whole, {single.hash: runs[1:]}, table)
    assert alone.ratio is None  # one job tells too little
    on_a_core = ran(single.folder / "seed3.json", seeds=[3])
    assert card_costs.measure(whole, {single.hash: [on_a_core]}, table) == []


def test_the_most_similar_kinds_tell_the_seconds(whole, single, card_rows):
    learner, net, shape = card_costs.key_of(whole, single)
    any_other, similar, own = ("a", OTHER, "1x1x1"), ("b", net, shape), (learner, net, shape)
    for known, seconds in (
        ([], 100.0),  # nobody measured
        ([row(any_other, 0.5), row(("b", OTHER, "2x2x2"), 0.3)], 40.0),  # the median of all
        ([row(any_other, 0.5), row(similar, 0.1), row(own, None)], 10.0),  # the same net and shape
        ([row(own, 0.02), row(similar, 0.1)], 2.0),
    ):
        card_rows(*known)
        assert card_costs.seconds(whole, single, 100.0) == pytest.approx(seconds)


def test_memory_grows_with_the_seeds_that_train_at_once(whole, single, card_rows):
    """By hand: a quarter more than was seen, above what CUDA itself takes; seeds of a wide net train one by one."""
    assert card_costs.WIDE == loop.WIDE
    wide = next(cell for cell in whole.cells.values() if cell.spec["net"].get("width", 0) >= card_costs.WIDE)
    card_rows(row(card_costs.key_of(whole, single), None, 400.0), row(card_costs.key_of(whole, wide), None, 2000.0))
    for cell, seeds, megabytes in ((single, 1, 500), (single, 10, 5000), (wide, 1, 2500), (wide, 10, 2500)):
        assert card_costs.megabytes(whole, cell, seeds) == card_costs.CONTEXT + megabytes
    card_rows()
    assert card_costs.megabytes(whole, single, 10) == card_costs.UNKNOWN


def test_the_published_rows_are_of_kinds_that_the_papers_have(whole):
    assert card_costs.read(ROOT / card_costs.FILE).keys() <= {
        card_costs.key_of(whole, cell) for cell in whole.cells.values()
    }
