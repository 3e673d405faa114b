"""Runs for which memory did not suffice: OoM in every table, no number anywhere, and a verdict."""

import numpy as np
import pandas as pd
import pytest

from clpapers.evidence import comparison
from clpapers.evidence.verdict_names import NOT_COMPARABLE, SAME
from clpapers.targets import curves, dispersion, formats, results_table, stream_curves
from clpapers.targets.footnotes import Notes
from clpapers.targets.numbers import numbers
from clpapers.targets.paired import pairs

HEADER = "paper,target,row,column,metric,value,spread,spread_kind,note\n"
TARGET = {
    "title": "T",
    "caption": "C",
    "metrics": ["average_accuracy", "forgetting"],
    "grid": {"dataset": ["cub"], "learner": ["van", "prog_nn", "pi"]},
    "names": {"van": "VAN", "prog_nn": "PROG-NN", "pi": "PI", "cub": "CUB"},
}
REAL = Notes("paper", seeds=3)


def measured(**accuracies):
    """Accuracies of three seeds a learner, forgetting a hundredth of them; None is a run that did not fit."""
    rows = []
    for learner, values in accuracies.items():
        for seed, value in enumerate(values):
            key = {"learner": learner, "dataset": "cub", "seed": seed, "time": np.nan}
            if value is None:
                rows += [key | {"metric": "out_of_memory", "value": 1.0}]
                continue
            rows += [key | {"metric": "average_accuracy", "value": value}]
            rows += [key | {"metric": "forgetting", "value": value / 100}]
            rows += [key | {"metric": "chance_average_accuracy", "value": 10.0}]
    return pd.DataFrame(rows)


@pytest.fixture
def data():
    return measured(van=[40.0, 41.0, 42.0], prog_nn=[99.0, None, None], pi=[np.inf] * 3)


def judged(tmp_path, data, line, notes=REAL, learner="PROG-NN"):
    path = tmp_path / "reported.csv"
    path.write_text(f"{HEADER}agem,table5,{learner},CUB,average_accuracy,{line}\n")
    compared = comparison.compare(TARGET, data, comparison.read_reported(path, "agem", "table5"), notes)
    table = comparison.attach(results_table.render(TARGET, data, notes), TARGET, data, compared, notes)
    return compared.loc[0], table.appended[0]


def test_one_seed_that_did_not_fit_makes_the_cell_oom(data):
    table = results_table.render(TARGET, data, REAL)
    assert list(table.body["CUB", "average_accuracy"]) == ["41.0 ± 2.5", "OoM", "∞", "10.0"]
    assert list(table.body["CUB", "forgetting"]) == ["0.4 ± 0.0", "OoM", "∞", "N.A."]
    assert list(table.bold["CUB", "average_accuracy"]) == [True, False, False, False]
    assert list(table.bold["CUB", "forgetting"]) == [True, False, False, False]
    assert table.footnotes == ["OoM: memory did not suffice for at least one seed. PROG-NN, CUB: seed 1, seed 2."]


def test_it_has_no_mean_but_a_note(data):
    cells = numbers(TARGET, data, REAL).set_index(["row", "metric"])
    assert len(cells) == 3 * 2
    short = cells.loc["PROG-NN"]
    assert short[["mean", "sd", "se", "half_width"]].isna().all(axis=None)
    assert set(short["note"]) == {"out of memory"}
    assert set(short["n"]) == {2}
    assert set(cells.loc[["VAN", "PI"], "note"]) == {""}
    assert numbers(TARGET, data, REAL)["n"].dtype == int


def test_every_format_prints_it(data):
    table = results_table.render(TARGET, data, REAL)
    for text in (formats.to_markdown(table), formats.to_html(table), formats.to_latex(table, "t")):
        assert text.count("OoM") == 3  # two cells and the footnote
        assert "nan" not in text.lower()
    assert "PROG-NN,CUB,average_accuracy,,,,,2,cub,,,out of memory" in formats.to_csv(table.data)


def test_where_nothing_fits_there_is_still_a_table():
    table = results_table.render(TARGET, measured(van=[None] * 3, prog_nn=[None]), REAL)
    assert list(table.body["CUB", "average_accuracy"]) == ["OoM", "OoM"]
    assert not table.bold.any(axis=None)


def test_oom_is_the_same_as_oom(tmp_path, data):
    cell, table = judged(tmp_path, data, "OoM,,,out of memory")
    assert (cell["verdict"], cell["cause"]) == (SAME, "")
    (line,) = table.body.to_dict("records")
    assert (line["Reported"], line["Reproduced"], line["Difference"], line["Verdict"]) == ("OoM", "OoM", "–", SAME)
    assert "OoM (out of memory)" in table.caption


@pytest.mark.parametrize(
    ("line", "learner", "cause", "cells"),
    [
        ("59.2,0.85,population_sd_5_runs,", "PROG-NN", "out of memory here", ("59.20 ± 1.18", "OoM")),
        ("OoM,,,out of memory", "VAN", "out of memory in the paper", ("OoM", "41 ± 2")),
        ("OoM,,,out of memory", "PI", "out of memory in the paper", ("OoM", "∞")),
        (",,,not reported", "PROG-NN", "not printed", ("–", "OoM")),
    ],
)
def test_oom_is_comparable_with_nothing_else(tmp_path, data, line, learner, cause, cells):
    cell, table = judged(tmp_path, data, line, learner=learner)
    assert (cell["verdict"], cell["cause"]) == (NOT_COMPARABLE, cause)
    assert tuple(table.body.loc[0, ["Reported", "Reproduced"]]) == cells


def test_nor_at_another_scale(tmp_path, data):
    cell, table = judged(tmp_path, data, "OoM,,,out of memory", Notes("small", {}, ["fewer tasks"], 3))
    assert (cell["verdict"], cell["cause"]) == (NOT_COMPARABLE, "reduced scale")
    assert tuple(table.body.loc[0, ["Reported", "Reproduced"]]) == ("OoM", "OoM")


def test_pairs_leave_it_out():
    data = measured(van=[40.0, 41.0, 42.0], prog_nn=[None] * 3, pi=[50.0, 52.0, 54.0])
    found = pairs(TARGET, data)
    assert set(zip(found["first"], found["second"])) == {("VAN", "PI")}


def test_figures_have_no_line_of_it(data):
    short = data[data["metric"] == "out_of_memory"]
    curve = pd.DataFrame({"time": [0, 1], "value": [0.1, 0.5]}).assign(
        dataset="cub", learner="van", order="split", seed=0, metric="lca_by_step"
    )
    both = pd.concat([curve, short.assign(order="split")])
    drawn = curves.render(TARGET | {"metrics": ["lca_by_step"]}, both, REAL)
    assert [line.get_label() for line in drawn.axes[0].lines if len(line.get_xdata())] == ["VAN"]
    stream_curves.render({}, both, REAL).draw_without_rendering()
    grid = {"dataset": ["cub"], "learner": ["prog_nn"], "epochs": [1, 2]}
    points = pd.concat([short.assign(epochs=epochs) for epochs in (1, 2)])
    figure = dispersion.render({"grid": grid, "metrics": ["average_accuracy"]}, points, REAL)
    figure.draw_without_rendering()
