"""Runs that diverged, and numbers that a paper could not print: ∞ everywhere, `inf` in CSV, and a verdict."""

import io
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from clpapers.evidence import comparison
from clpapers.evidence.verdict_names import DIFFERS, NOT_COMPARABLE, SAME
from clpapers.targets import dispersion, formats, results_table, stream_curves
from clpapers.targets.footnotes import Notes
from clpapers.targets.numbers import numbers
from clpapers.targets.paired import pairs
from clpapers.targets.table import plus_minus

REPORTED = Path(__file__).resolve().parents[2] / "config/reported/agem.csv"
HEADER = "paper,target,row,column,metric,value,spread,spread_kind,note\n"
TARGET = {
    "title": "T",
    "caption": "C",
    "metrics": ["average_accuracy", "forgetting"],
    "decimals": {"average_accuracy": 1, "forgetting": 3},
    "grid": {"dataset": ["mnist"], "learner": ["van", "pi", "a_gem"]},
    "names": {"van": "VAN", "pi": "PI", "a_gem": "A-GEM", "mnist": "MNIST"},
}
REAL = Notes("paper", seeds=3)


def measured(**accuracies):
    """Accuracies of three seeds a learner, forgetting a hundredth of them; ∞ is a run that diverged at step 1234."""
    rows = []
    for learner, values in accuracies.items():
        for seed, value in enumerate(values):
            key = {"learner": learner, "dataset": "mnist", "seed": seed}
            rows += [key | {"metric": "average_accuracy", "value": value}]
            rows += [key | {"metric": "forgetting", "value": value / 100}]
            rows += [key | {"metric": "chance_average_accuracy", "value": 10.0}]
            if np.isinf(value):
                rows += [key | {"metric": "diverged", "value": 1234.0}]
    return pd.DataFrame(rows)


@pytest.fixture
def data():
    return measured(van=[40.0, 41.0, 42.0], pi=[50.0, np.inf, np.inf], a_gem=[88.0, 89.0, 90.0])


def judged(tmp_path, data, *lines):
    """The compared lines of printed `value,spread,spread_kind,note` of PI's accuracy."""
    path = tmp_path / "reported.csv"
    path.write_text(HEADER + "".join(f"agem,table4,PI,MNIST,average_accuracy,{line}\n" for line in lines))
    return comparison.compare(TARGET, data, comparison.read_reported(path, "agem", "table4"), REAL)


def test_infinity_is_printed_and_never_best(data):
    table = results_table.render(TARGET, data, REAL)
    assert list(table.body["MNIST", "average_accuracy"]) == ["41.0 ± 2.5", "∞", "89.0 ± 2.5", "10.0"]
    assert list(table.body["MNIST", "forgetting"]) == ["0.410 ± 0.025", "∞", "0.890 ± 0.025", "N.A."]
    assert list(table.bold["MNIST", "average_accuracy"]) == [False, False, True, False]
    assert list(table.bold["MNIST", "forgetting"]) == [True, False, False, False]
    assert plus_minus(np.inf, np.nan, 1) == "∞"


def test_where_every_method_diverged_none_is_best():
    table = results_table.render(TARGET, measured(van=[np.inf] * 3, pi=[np.inf] * 3), REAL)
    assert not table.bold.any(axis=None)


def test_the_footnote_says_which_seeds_and_when(data):
    (note,) = results_table.render(TARGET, data, REAL).footnotes
    assert note == ("∞: at least one seed diverged. PI, MNIST: seed 1 after 1,234 steps, seed 2 after 1,234 steps.")
    assert not results_table.render(TARGET, measured(van=[1.0, 2.0]), REAL).footnotes
    assert "diverged" not in set(numbers(TARGET, data, REAL)["metric"])


def test_every_format_has_its_infinity(data):
    table = results_table.render(TARGET, data, REAL)
    markdown = formats.to_markdown(table)
    assert re.search(r"\| PI +\| ∞ +\| ∞ +\|", markdown)
    assert "<td >∞</td>" in formats.to_html(table)
    assert r"PI & $\infty$ & $\infty$" in formats.to_latex(table, "t")
    csv = formats.to_csv(table.data)
    assert "PI,MNIST,average_accuracy,inf,,,,3" in csv
    assert np.isinf(pd.read_csv(io.StringIO(csv)).set_index(["row", "metric"]).loc[("PI", "forgetting"), "mean"])
    for text in (markdown, formats.to_html(table), formats.to_latex(table, "t")):
        assert "nan" not in text.lower()
        assert "inf" not in text.replace(r"\infty", "")


@pytest.mark.parametrize(
    ("line", "values", "verdict"),
    [
        ("inf,,,fails to train", [50.0, np.inf, np.inf], SAME),
        ("inf,,,fails to train", [np.inf], SAME),
        ("inf,,,fails to train", [50.0, 51.0, 52.0], DIFFERS),
        ("inf,,,fails to train", [50.0], DIFFERS),
        ("51,1,population_sd_5_runs,", [50.0, np.inf, 52.0], DIFFERS),
        ("51,,,", [np.inf] * 3, DIFFERS),
    ],
)
def test_infinity_is_the_same_as_infinity_alone(tmp_path, line, values, verdict):
    (cell,) = judged(tmp_path, measured(pi=values), line).to_dict("records")
    assert (cell["verdict"], cell["cause"], cell["rule"]) == (verdict, "", comparison.ALIKE)
    assert np.isnan([cell["difference"], cell["difference_low"], cell["difference_high"]]).all()


def test_infinity_at_another_scale_is_not_compared(tmp_path, data):
    compared = judged(tmp_path, data, "inf,,,")
    reduced = Notes("small", {}, ["fewer steps"], 3)
    printed = comparison.read_reported(tmp_path / "reported.csv", "agem", "table4")
    assert list(compared["verdict"]) == [SAME]
    assert list(comparison.compare(TARGET, data, printed, reduced)["verdict"]) == [NOT_COMPARABLE]


@pytest.mark.parametrize(
    ("line", "cause", "reason"),
    [
        ("OoM,,,out of memory", "out of memory in the paper", "the paper prints no number: out of memory"),
        ("inf,,,out of memory", "out of memory in the paper", "the paper prints no number: out of memory"),
        (",,,not reported", "not printed", "the paper prints no number: not reported"),
    ],
)
def test_what_the_paper_could_not_print(tmp_path, data, line, cause, reason):
    (cell,) = judged(tmp_path, data, line).to_dict("records")
    assert (cell["verdict"], cell["cause"], cell["reason"]) == (NOT_COMPARABLE, cause, reason)


def test_the_comparison_below_the_table(tmp_path, data):
    compared = judged(tmp_path, data, "inf,,,")
    table = comparison.attach(results_table.render(TARGET, data, REAL), TARGET, data, compared, REAL)
    (line,) = table.appended[0].body.to_dict("records")
    assert (line["Reported"], line["Reproduced"], line["Difference"], line["Verdict"]) == ("∞", "∞", "–", SAME)
    assert "∞ (diverged)" in table.appended[0].caption
    assert formats.to_csv(compared).splitlines()[1].startswith("PI,MNIST,average_accuracy,inf,,,inf,")


def test_a_population_deviation_becomes_an_interval(tmp_path):
    data = measured(pi=[50.0, 51.0, 52.0])
    compared = judged(tmp_path, data, "51.00,2,population_sd_5_runs,")
    assert compared["reported_high"].item() - 51 == pytest.approx(2.776445 * 2 / np.sqrt(4))  # t₄ · s/√n, s of n − 1
    table = comparison.attach(results_table.render(TARGET, data, REAL), TARGET, data, compared, REAL)
    assert "population standard deviations" in table.appended[0].caption
    assert "∞" not in table.appended[0].caption


def test_a_number_rounded_more_than_its_spread_may_be_off_by_its_rounding(tmp_path):
    data = measured(pi=[50.0, 50.1, 50.2])
    coarse = judged(tmp_path, data, "51,0.1,population_sd_5_runs,").loc[0]
    fine = judged(tmp_path, data, "51.0,0.1,population_sd_5_runs,").loc[0]
    assert fine["difference_high"] + 0.5 == pytest.approx(coarse["difference_high"])
    assert fine["difference_low"] - 0.5 == pytest.approx(coarse["difference_low"])
    assert coarse["decimals"] == fine["decimals"] == 1


def test_pairs_leave_diverged_seeds_out(data):
    found = pairs(TARGET, data).set_index(["metric", "first", "second"])
    assert found.loc[("average_accuracy", "VAN", "PI"), ["difference", "n"]].tolist() == [-10, 1]
    assert found.loc[("average_accuracy", "VAN", "A-GEM"), "n"] == 3
    assert not np.isinf(found[["difference", "low", "high"]]).any(axis=None)


@pytest.mark.parametrize("values", [[0.5, np.inf], [np.inf, np.inf]])
def test_curves_of_diverged_runs_are_not_drawn(values):
    curve = pd.DataFrame({"time": [0, 1] * 2, "seed": [0, 0, 1, 1], "value": np.repeat(values, 2)})
    data = curve.assign(dataset="mnist", order="split", metric="average_accuracy_by_task")
    top = stream_curves.render({}, data, REAL).axes[0].get_ylim()[1]
    assert top == (1.05 * 0.5 if np.isfinite(values[0]) else 1)


def test_a_diverged_point_is_left_out_of_a_panel(data):
    grid = {"dataset": ["mnist"], "learner": ["van", "pi", "a_gem"], "epochs": [1, 2]}
    both = pd.concat([data.assign(epochs=epochs) for epochs in (1, 2)])
    figure = dispersion.render({"grid": grid, "metrics": ["average_accuracy"]}, both, REAL)
    assert np.isfinite(figure.axes[0].get_ylim()).all()
    figure.draw_without_rendering()


@pytest.mark.parametrize("target", ["table2", "table3", "table4", "table5", "table6", "table7"])
def test_every_table_of_agem_can_be_read(target):
    printed = comparison.read_reported(REPORTED, "agem", target)
    assert len(printed)
    assert not printed.duplicated(comparison.KEY).any()
    infinite = printed[np.isinf(printed["value"])]
    assert set(infinite["row"]) == ({"PI"} if target == "table4" else set())
