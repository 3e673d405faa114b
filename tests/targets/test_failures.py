"""Runs that diverged or did not fit into memory: ∞ and OoM in every table, no number anywhere, and a verdict."""

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from clpapers.evidence import comparison
from clpapers.evidence.grades import ALIKE
from clpapers.evidence.verdict_names import DIFFERS, DIVERGES, NOT_COMPARABLE
from clpapers.targets import curves, dispersion, formats, results_table, stream_curves
from clpapers.targets.footnotes import Notes
from clpapers.targets.numbers import numbers
from clpapers.targets.paired import best, pairs

REPORTED = Path(__file__).resolve().parents[2] / "config/reported/agem.csv"
HEADER = "paper,target,row,column,metric,value,spread,spread_kind,note\n"
TARGET = {
    "title": "T",
    "caption": "C",
    "metrics": ["average_accuracy", "forgetting"],
    "decimals": {"average_accuracy": 1, "forgetting": 3},
    "grid": {"dataset": ["mnist"], "learner": ["van", "pi", "prog_nn", "a_gem"]},
    "names": {"van": "VAN", "pi": "PI", "prog_nn": "PROG-NN", "a_gem": "A-GEM", "mnist": "MNIST"},
}
REAL, REDUCED = Notes("paper", seeds=3), Notes("small", {}, ["fewer steps"], 3)


def measured(**accuracies):
    """Accuracies of a learner's seeds, forgetting a hundredth of them; ∞ diverged at step 1234, None did not fit."""
    rows = []
    for learner, values in accuracies.items():
        for seed, value in enumerate(values):
            key = {"learner": learner, "dataset": "mnist", "seed": seed, "time": np.nan}
            if value is None:
                rows += [key | {"metric": "out_of_memory", "value": 1.0}]
                continue
            rows += [key | {"metric": "average_accuracy", "value": value}]
            rows += [key | {"metric": "forgetting", "value": value / 100}]
            rows += [key | {"metric": "chance_average_accuracy", "value": 10.0}]
            if np.isinf(value):
                rows += [key | {"metric": "diverged", "value": 1234.0}]
    return pd.DataFrame(rows)


FINE, ILL, SHORT = [88.0, 89.0, 90.0], [50.0, np.inf, np.inf], [99.0, None, None]


@pytest.fixture
def data():
    return measured(van=[40.0, 41.0, 42.0], pi=ILL, prog_nn=SHORT, a_gem=FINE)


def judged(tmp_path, data, line, notes=REAL, row="PI"):
    """The verdict on a printed `value,spread,spread_kind,note` of a method's accuracy, and the table below."""
    path = tmp_path / "reported.csv"
    path.write_text(f"{HEADER}agem,table4,{row},MNIST,average_accuracy,{line}\n")
    compared = comparison.compare(TARGET, data, comparison.read_reported(path, "agem", "table4"), notes)
    table = comparison.attach(results_table.render(TARGET, data, notes), TARGET, data, compared, notes)
    return compared.loc[0], table.appended[0]


def test_neither_is_a_number_nor_the_best():
    data = measured(van=[40.0, 41.0, 42.0], pi=ILL, prog_nn=SHORT, a_gem=[88.0, 89.1, 89.9])
    table = results_table.render(TARGET, data, REAL)
    assert list(table.body["MNIST", "average_accuracy"]) == ["41.0 ± 2.5", "∞", "OoM", "89.0 ± 2.4", "10.0"]
    assert list(table.body["MNIST", "forgetting"]) == ["0.410 ± 0.025", "∞", "OoM", "0.890 ± 0.024", "N.A."]
    assert list(table.bold["MNIST", "average_accuracy"]) == [False, False, False, True, False]
    assert list(table.bold["MNIST", "forgetting"]) == [True, False, False, False, False]
    diverged, short = table.footnotes
    assert "PI, MNIST: seed 1 after 1,234 steps, seed 2 after 1,234 steps." in diverged
    assert "PROG-NN, MNIST: seed 1, seed 2." in short
    assert not results_table.render(TARGET, measured(van=[1.0, 2.0]), REAL).footnotes


@pytest.mark.parametrize(("value", "sign"), [(np.inf, "∞"), (None, "OoM")])
def test_where_every_method_failed_none_is_best(value, sign):
    table = results_table.render(TARGET, measured(van=[value] * 3, pi=[value]), REAL)
    assert list(table.body["MNIST", "average_accuracy"])[:2] == [sign, sign]
    assert not table.bold.any(axis=None)


def test_out_of_memory_has_no_mean_but_a_note(data):
    found = numbers(TARGET, data, REAL)
    assert "diverged" not in set(found["metric"])
    assert found["n"].dtype == int
    cells = found.set_index(["row", "metric"])
    assert len(cells) == 4 * 2
    short = cells.loc["PROG-NN"]
    assert short[["mean", "sd", "se", "half_width"]].isna().all(axis=None)
    assert (set(short["note"]), set(short["n"])) == ({"out of memory"}, {2})
    assert set(cells.loc[["VAN", "PI"], "note"]) == {""}


def test_every_format_has_both_signs(data):
    table = results_table.render(TARGET, data, REAL)
    for text in (formats.to_markdown(table), formats.to_html(table), formats.to_latex(table, "t")):
        assert text.count("OoM") == text.replace(r"$\infty$", "∞").count("∞") == 3  # two cells and the footnote
        assert "nan" not in text.lower()
        assert "inf" not in text.replace(r"\infty", "")
    csv = formats.to_csv(table.data)
    assert "PI,MNIST,average_accuracy,inf,,,,3" in csv
    assert "PROG-NN,MNIST,average_accuracy,,,,,2,mnist,,,out of memory" in csv
    assert np.isinf(pd.read_csv(io.StringIO(csv)).set_index(["row", "metric"]).loc[("PI", "forgetting"), "mean"])


NOT_HERE, NOT_THERE, NO_PRINT = "out of memory here", "out of memory in the paper", "not printed"


@pytest.mark.parametrize(
    ("line", "row", "values", "verdict", "cause", "texts"),
    [
        # A run that diverged is as printed beside itself alone.
        ("inf,,,fails to train", "PI", ILL, DIVERGES, "", ("∞", "∞")),
        ("inf,,,fails to train", "PI", [np.inf], DIVERGES, "", ("∞", "∞")),
        ("inf,,,fails to train", "PI", [50.0, 51.0, 52.0], DIFFERS, "", ("∞", "51 ± 2")),
        ("inf,,,fails to train", "PI", [50.0], DIFFERS, "", ("∞", "50")),
        ("51,1,population_sd_5_runs,", "PI", [50.0, np.inf, 52.0], DIFFERS, "", ("51 ± 1", "∞")),
        ("51,,,", "PI", [np.inf] * 3, DIFFERS, "", ("51", "∞")),
        # Out of memory is comparable with nothing.
        ("59.2,0.85,population_sd_5_runs,", "PROG-NN", SHORT, NOT_COMPARABLE, NOT_HERE, ("59.20 ± 1.18", "OoM")),
        ("OoM,,,out of memory", "PROG-NN", SHORT, NOT_COMPARABLE, NOT_THERE, ("OoM", "OoM")),
        ("OoM,,,out of memory", "VAN", [40.0, 41.0, 42.0], NOT_COMPARABLE, NOT_THERE, ("OoM", "41 ± 2")),
        ("OoM,,,out of memory", "PI", ILL, NOT_COMPARABLE, NOT_THERE, ("OoM", "∞")),
        ("inf,,,out of memory", "PI", ILL, NOT_COMPARABLE, NOT_THERE, ("OoM", "∞")),
        (",,,not reported", "PROG-NN", SHORT, NOT_COMPARABLE, NO_PRINT, ("–", "OoM")),
        (",,,not reported", "PI", ILL, NOT_COMPARABLE, NO_PRINT, ("–", "∞")),
    ],
)
def test_a_failure_beside_what_is_printed(tmp_path, line, row, values, verdict, cause, texts):
    learner = {name: key for key, name in TARGET["names"].items()}[row]
    cell, table = judged(tmp_path, measured(**{learner: values}), line, row=row)
    assert (cell["verdict"], cell["cause"], cell["rule"]) == (verdict, cause, "" if cause else ALIKE)
    assert cell[["difference", "difference_low", "difference_high"]].isna().all()
    told = verdict if not cause else f"{verdict}: {cause}"
    assert table.body.loc[0, ["Printed", "Ours", "Difference", "Verdict"]].tolist() == [*texts, "–", told]
    assert (comparison.DIVERGED in table.caption) == ("∞" in texts)
    assert (comparison.SHORT in table.caption) == ("OoM" in texts)


def test_at_another_scale_a_run_that_diverged_is_not_compared(tmp_path, data):
    cell, _ = judged(tmp_path, data, "inf,,,", REDUCED, "PI")
    assert (cell["verdict"], cell["cause"]) == (NOT_COMPARABLE, "reduced scale")


def test_a_population_deviation_becomes_an_interval(tmp_path):
    cell, table = judged(tmp_path, measured(pi=[50.0, 51.0, 52.0]), "51.00,2,population_sd_5_runs,")
    assert cell["printed_high"] - 51 == pytest.approx(2.776445 * 2 / np.sqrt(4))  # t₄ · s/√n, s of n − 1
    assert comparison.DEVIATION in table.caption
    assert comparison.DIVERGED not in table.caption


def test_a_number_rounded_more_than_its_spread_may_be_off_by_its_rounding(tmp_path):
    data = measured(pi=[50.0, 50.1, 50.2])
    coarse, _ = judged(tmp_path, data, "51,0.1,population_sd_5_runs,")
    fine, _ = judged(tmp_path, data, "51.0,0.1,population_sd_5_runs,")
    assert fine["difference_high"] + 0.5 == pytest.approx(coarse["difference_high"])
    assert fine["difference_low"] - 0.5 == pytest.approx(coarse["difference_low"])
    assert coarse["decimals"] == fine["decimals"] == 1


def test_pairs_leave_out_seeds_that_failed(data):
    found = pairs(TARGET, data).set_index(["metric", "first", "second"])
    assert found.loc[("average_accuracy", "VAN", "PI"), ["difference", "n"]].tolist() == [-10, 1]
    assert found.loc[("average_accuracy", "VAN", "A-GEM"), "n"] == 3
    assert not np.isinf(found[["difference", "low", "high"]]).any(axis=None)
    none = pairs(TARGET, measured(van=FINE, prog_nn=[None] * 3, pi=FINE))
    assert set(zip(none["first"], none["second"])) == {("VAN", "PI")}


@pytest.mark.parametrize("values", [[0.5, np.inf], [np.inf, np.inf]])
def test_curves_of_diverged_runs_are_not_drawn(values):
    curve = pd.DataFrame({"time": [0, 1] * 2, "seed": [0, 0, 1, 1], "value": np.repeat(values, 2)})
    data = curve.assign(dataset="mnist", order="split", metric="average_accuracy_by_task")
    top = stream_curves.render({}, data, REAL).axes[0].get_ylim()[1]
    assert top == (1.05 * 0.5 if np.isfinite(values[0]) else 1)


def test_curves_of_runs_that_did_not_fit_are_not_drawn(data):
    curve = pd.DataFrame({"time": [0, 1], "value": [0.1, 0.5]})
    curve = curve.assign(dataset="mnist", learner="van", order="split", seed=0, metric="lca_by_step")
    both = pd.concat([curve, data[data["metric"] == "out_of_memory"].assign(order="split")])
    drawn = curves.render(TARGET | {"metrics": ["lca_by_step"]}, both, REAL)
    assert [line.get_label() for line in drawn.axes[0].lines if len(line.get_xdata())] == ["VAN"]
    stream_curves.render({}, both, REAL).draw_without_rendering()


def test_points_of_runs_that_failed_are_left_out_of_a_panel(data):
    grid = {"dataset": ["mnist"], "learner": ["van", "pi", "prog_nn"], "epochs": [1, 2]}
    both = pd.concat([data.assign(epochs=epochs) for epochs in (1, 2)])
    figure = dispersion.render({"grid": grid, "metrics": ["average_accuracy"]}, both, REAL)
    assert np.isfinite(figure.axes[0].get_ylim()).all()
    figure.draw_without_rendering()


def test_every_table_of_agem_can_be_read():
    for target in ("table2", "table3", "table4", "table5", "table6", "table7"):
        printed = comparison.read_reported(REPORTED, "agem", target)
        assert len(printed) > printed.duplicated(comparison.KEY).sum() == 0
        assert set(printed["row"][np.isinf(printed["value"])]) == ({"PI"} if target == "table4" else set())


def test_where_nothing_was_trained_there_is_no_pair_and_no_best():
    """As with no hour, of which a file of headings alone is read: columns without a line have no type."""
    nothing = measured(van=FINE).head(0).astype(object)
    assert pairs(TARGET, nothing).empty
    assert best(nothing, "learner", "average_accuracy") is None
