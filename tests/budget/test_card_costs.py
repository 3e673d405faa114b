"""The costs of runs on a card: rows of published runs, and other runs' costs by them."""

from pathlib import Path

import pytest

from clpapers.budget import card_costs, costs
from clpapers.budget.card_costs import Row
from clpapers.config.plan import Plan
from clpapers.config.settings import all_papers
from clpapers.runs import loop

NET, OTHER = '{"name": "mlp"}', '{"name": "cnn", "width": 32}'


@pytest.fixture
def plan():
    return Plan("paper", ["rules"])


@pytest.fixture
def rows(monkeypatch):
    """Lets `read` return the rows that a test gives."""
    return lambda *given: monkeypatch.setattr(card_costs, "read", lambda: {row.key: row for row in given})


def cells_of(plan, name, count=2):
    return [cell for cell in plan.cells.values() if cell.spec["learner"]["name"] == name][:count]


def row(key, ratio, megabytes=100.0):
    return Row(*key, "a card", 3, ratio, megabytes)


def test_a_run_that_shares_a_card_counts_its_part(plan, monkeypatch):
    (cell, *_), table = cells_of(plan, "single"), costs.Table(costs.read(), calibration=0.02)
    records = {
        Path(f"seed{seed}.json"): {
            "hardware": {"device": "a card", "abreast": abreast},
            "wall_seconds": seconds,
            "seeds": [seed],
            "peak_device_bytes": (seed + 1) << 20,
        }
        for seed, (seconds, abreast) in enumerate([(60.0, 4), (20.0, 2), (9.0, None)])
    }
    monkeypatch.setattr(card_costs, "read_record", records.__getitem__)
    (found,) = card_costs.measure(plan, {cell.hash: records}, table)
    assert (found.key, found.card, found.runs, found.megabytes) == (card_costs.key_of(plan, cell), "a card", 3, 3.0)
    assert found.ratio == pytest.approx((60 / 4 + 20 / 2) / (2 * table.seconds(plan, cell)))
    (alone,) = card_costs.measure(plan, {cell.hash: list(records)[1:]}, table)
    assert alone.ratio is None  # one job tells too little


def test_runs_on_a_core_have_no_row(plan, monkeypatch):
    monkeypatch.setattr(card_costs, "read_record", lambda _: {"hardware": {"device": "cpu"}, "seeds": [0]})
    runs = {cells_of(plan, "single")[0].hash: [Path("seed0.json")]}
    assert card_costs.measure(plan, runs, costs.Table(costs.read(), calibration=0.02)) == []


def test_a_table_is_read_as_it_was_written(tmp_path):
    given = [row(("er", NET, "28x28x1"), 0.0125), row(("ewc", OTHER, "32x32x3"), None)]
    file = tmp_path / "cards.csv"
    file.write_text(card_costs.text(given))
    assert list(card_costs.read(file).values()) == given
    assert card_costs.read(tmp_path / "none.csv") == {}


def test_the_most_similar_kinds_tell_the_seconds(plan, rows):
    (cell, *_) = cells_of(plan, "single")
    learner, net, shape = card_costs.key_of(plan, cell)
    rows()
    assert card_costs.seconds(plan, cell, 100.0) == 100.0  # nobody measured
    rows(row(("a", OTHER, "1x1x1"), 0.5), row(("b", OTHER, "2x2x2"), 0.3))
    assert card_costs.seconds(plan, cell, 100.0) == pytest.approx(40.0)  # the median of all
    rows(row(("a", OTHER, "1x1x1"), 0.5), row(("b", net, shape), 0.1), row((learner, net, shape), None))
    assert card_costs.seconds(plan, cell, 100.0) == pytest.approx(10.0)  # the same net and shape
    rows(row((learner, net, shape), 0.02), row(("b", net, shape), 0.1))
    assert card_costs.seconds(plan, cell, 100.0) == pytest.approx(2.0)


def test_memory_grows_with_the_seeds_that_train_at_once(plan, rows):
    assert card_costs.WIDE == loop.WIDE
    (narrow, *_) = cells_of(plan, "single")
    wide = next(cell for cell in plan.cells.values() if cell.spec["net"].get("width", 0) >= card_costs.WIDE)
    rows(row(card_costs.key_of(plan, narrow), None, 400.0), row(card_costs.key_of(plan, wide), None, 2000.0))
    assert card_costs.megabytes(plan, narrow, 1) == card_costs.CONTEXT + 500
    assert card_costs.megabytes(plan, narrow, 10) == card_costs.CONTEXT + 5000
    assert card_costs.megabytes(plan, wide, 1) == card_costs.megabytes(plan, wide, 10) == card_costs.CONTEXT + 2500
    rows()
    assert card_costs.megabytes(plan, narrow, 10) == card_costs.UNKNOWN


def test_the_published_rows_are_of_kinds_that_the_papers_have():
    plan = Plan("paper", all_papers())
    kinds = {card_costs.key_of(plan, cell) for cell in plan.cells.values()}
    assert card_costs.read.__wrapped__().keys() <= kinds
