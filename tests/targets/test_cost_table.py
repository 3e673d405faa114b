"""Table 7 of `agem`: times, ratios, and megabytes by the printed formulas beside measured ones."""

from pathlib import Path

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


@pytest.fixture
def data():
    """MNIST as it should be; of CUB GEM was not run, and progressive nets did not fit."""
    return pd.DataFrame(
        [*runs("mnist", van=10, prog_nn=30, gem=180, a_gem=25), *runs("cub", van=5, prog_nn=None, a_gem=20)]
    )


@pytest.fixture
def printed():
    return comparison.transcribed(AGEM, "agem", "table7")


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ("P + B*H", 1e6 + 10 * 5e4),
        ("4*P + B*H", 4e6 + 5e5),
        ("2*P*T + B*H*T", 4e7 + 1e7),
        ("P*T + (B+M)*H", 2e7 + 260 * 5e4),
        ("2*P + (B+M)*H", 2e6 + 260 * 5e4),
    ],
)
def test_the_printed_formulas(formula, value, printed):
    assert evaluate(formula, SYMBOLS) == value
    assert formula in set(printed["value"])


def test_the_table_as_printed(data, printed):
    table = cost_table.render(TARGET, data, REAL, printed)
    body = table.body.set_index(("learner", ""))
    assert list(body["training_seconds", "Permuted MNIST"]) == ["10.00", "30.00", "180.00", "25.00"]
    assert list(body["training_seconds", "Split CUB"]) == ["5.00", "OoM", "–", "20.00"]
    assert body.loc["GEM", ("Memory", "Training")] == "P*T + (B+M)*H"
    assert body.loc["PROGRESSIVE NETS", ("Memory", "Testing")] == "2*P*T + B*H*T"
    assert "Times on: NVIDIA H100." in table.footnotes[0]
    assert table.footnotes[1].startswith("OoM")
    assert "PROGRESSIVE NETS, Split CUB" in table.footnotes[1]


def test_ratios_beside_the_papers(data, printed):
    ratios = cost_table.render(TARGET, data, REAL, printed).appended[0].body.set_index(("learner", ""))
    assert list(ratios.index) == ["GEM : VAN", "GEM : A-GEM", "PROGRESSIVE NETS : VAN"]
    assert list(ratios["Permuted MNIST", "here"]) == ["18.00", "7.20", "3.00"]
    assert list(ratios["Permuted MNIST", "paper"]) == [f"{3442 / 186:.2f}", f"{3442 / 477:.2f}", f"{510 / 186:.2f}"]
    assert list(ratios["Split CUB", "here"]) == ["–", "–", "–"]
    assert list(ratios["Split CUB", "paper"]) == ["–", "–", "–"]  # a dash, a dash, ∞


def test_megabytes_beside_those_of_the_formulas(data, printed):
    memory = cost_table.render(TARGET, data, REAL, printed).appended[1].body.set_index(("learner", ""))
    assert list(memory["Permuted MNIST", "Training, formula"]) == ["6.00", "200.00", "132.00", "60.00"]
    assert list(memory["Permuted MNIST", "Testing, formula"]) == ["6.00", "200.00", "6.00", "6.00"]
    assert list(memory["Permuted MNIST", "Training, held"]) == ["9.50"] * 4
    assert list(memory["Split CUB", "Testing, held"]) == ["4.25", "OoM", "–", "4.25"]


def test_a_net_of_double_precision_takes_twice_the_formulas_memory(data, printed):
    double = data.assign(value=data["value"].mask(data["metric"] == "bytes", 8.0))
    memory = cost_table.render(TARGET, double, REAL, printed).appended[1].body.set_index(("learner", ""))
    assert list(memory["Permuted MNIST", "Training, formula"]) == ["12.00", "400.00", "264.00", "120.00"]
    assert list(memory["Permuted MNIST", "Training, held"]) == ["9.50"] * 4


def test_all_of_it_is_in_the_csv_and_in_every_format(data, printed):
    table = cost_table.render(TARGET, data, REAL, printed)
    cells = table.data.set_index(["row", "column", "metric"])["mean"]
    assert not table.data.duplicated(["row", "column", "metric"]).any()
    assert cells["GEM", "Permuted MNIST", "training_memory_formula"] == 132
    assert cells["GEM : A-GEM", "Permuted MNIST", "time_ratio"] == pytest.approx(7.2)
    assert cells["GEM", "Permuted MNIST", "P"] == 1e6
    for text in (formats.to_markdown(table), formats.to_html(table), formats.to_latex(table, "table7")):
        assert "nan" not in text.lower()


def test_seconds_are_not_comparable(data, printed):
    compared = comparison.compare(TARGET, data, comparison.read_reported(AGEM, "agem", "table7"), REAL)
    assert set(compared["verdict"]) == {NOT_COMPARABLE}
    cells = compared.set_index(["row", "column"])
    assert cells.loc[("VAN", "Permuted MNIST"), "cause"] == "other hardware"
    assert "NVIDIA H100 here" in cells.loc[("VAN", "Permuted MNIST"), "reason"]
    assert cells.loc[("GEM", "Split CUB"), "cause"] == "not printed"
    assert cells.loc[("EWC", "Split CIFAR"), "cause"] == "not run"


def test_a_formula_with_another_symbol_is_refused_in_one_line(data, printed):
    printed = printed.assign(value=printed["value"].replace("2*P + (B+M)*H", "2*P + Z"))
    with pytest.raises(ValueError, match=r"^A-GEM: training_memory: 'Z' is no sum or product .*; see [^\n]*$"):
        cost_table.render(TARGET, data, REAL, printed)
