"""Table 7 of `agem`: times, ratios, and megabytes by the printed formulas beside measured ones."""

# ruff: noqa: F401, names that by_hand.yaml uses
from pathlib import Path

import by_hand
import numpy as np
import pandas as pd
import pytest

from clpapers.evidence import comparison
from clpapers.evidence.comparison import NOT_COMPARABLE
from clpapers.targets import cost_table, formats
from clpapers.targets.cost_table import evaluate
from clpapers.targets.footnotes import Notes

AGEM = Path(__file__).resolve().parents[2] / "config/reported/agem.csv"
SYMBOLS = {"P": 1e6, "B": 10, "H": 5e4, "T": 20, "M": 250}
TARGET = {
    "title": "Table 7",
    "caption": "Of {seeds} runs.",
    "metrics": ["training_seconds", "training_memory", "testing_memory"],
    "decimals": 2,
    "ratios": [["gem", "van"], ["gem", "a_gem"], ["prog_nn", "van"]],
    "grid": {"dataset": ["mnist", "cub"], "learner": ["van", "prog_nn", "gem", "a_gem"]},
    "names": {
        "van": "VAN",
        "prog_nn": "PROGRESSIVE NETS",
        "gem": "GEM",
        "a_gem": "A-GEM",
        "mnist": "Permuted MNIST",
        "cub": "Split CUB",
        "training_memory": "Training",
        "testing_memory": "Testing",
    },
}
REAL = Notes("paper", seeds=2)


def runs(dataset, **seconds):
    """Two seeds a learner that took so long, one a second longer than the other; None does not fit."""
    rows = []
    for learner, mean in seconds.items():
        for seed in (0, 1):
            key = {"learner": learner, "dataset": dataset, "seed": seed, "hardware": np.nan}
            if mean is None:
                rows.append(key | {"metric": "out_of_memory", "value": 1.0})
                continue
            rows.append(key | {"metric": "training_seconds", "value": mean - 0.5 + seed, "hardware": "NVIDIA H100"})
            held = {"training_memory": 9.5, "testing_memory": 4.25, "bytes": 4}
            rows += [key | {"metric": metric, "value": value} for metric, value in (SYMBOLS | held).items()]
    return rows


# MNIST as it should be; of CUB GEM was not run, and progressive nets did not fit.
DATA = pd.DataFrame(
    [*runs("mnist", van=10, prog_nn=30, gem=180, a_gem=25), *runs("cub", van=5, prog_nn=None, a_gem=20)]
)
PRINTED = comparison.transcribed(AGEM, "agem", "table7")


def shown(data=DATA, printed=PRINTED):
    return cost_table.render(TARGET, data, REAL, printed)


def body(table):
    return table.body.set_index(("learner", ""))


def compared():
    return comparison.compare(TARGET, DATA, comparison.read_reported(AGEM, "agem", "table7"), REAL)


test_by_hand = by_hand.tests(globals())


def test_a_footnote_says_what_timed_and_what_did_not_fit():
    times, short = shown().footnotes
    assert "Times on: NVIDIA H100." in times
    assert short.startswith("OoM")
    assert "PROGRESSIVE NETS, Split CUB" in short


def test_all_of_it_is_in_the_csv_and_in_every_format():
    table = shown()
    cells = table.data.set_index(["row", "column", "metric"])["mean"]
    assert not table.data.duplicated(["row", "column", "metric"]).any()
    assert cells["GEM", "Permuted MNIST", "training_memory_formula"] == 132
    assert cells["GEM : A-GEM", "Permuted MNIST", "time_ratio"] == pytest.approx(7.2)
    assert cells["GEM", "Permuted MNIST", "P"] == 1e6
    for text in (formats.to_markdown(table), formats.to_html(table), formats.to_latex(table, "table7")):
        assert "nan" not in text.lower()
