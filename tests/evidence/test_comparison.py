"""Reported against reproduced: reading the printed numbers, and every verdict."""

# ruff: noqa: F401, names that by_hand.yaml uses
from pathlib import Path

import by_hand
import numpy as np
import pandas as pd
import pytest

from clpapers.evidence import comparison
from clpapers.evidence.grades import ONE_MORE, OWN_SPREAD, WELCH
from clpapers.evidence.verdict_names import (
    CALIBRATED,
    DIFFERS,
    EXACT,
    GUESS,
    NEAR,
    NOT_COMPARABLE,
    OPEN,
    SAME,
    TRAINED,
)
from clpapers.metrics.intervals import critical, welch
from clpapers.targets import number, results_table
from clpapers.targets.footnotes import Notes

MANY = "mean_1200_runs"  # without a spread
HEADER = "paper,target,row,column,metric,value,spread,spread_kind,note"
AUTHORS = f"{HEADER},digits,authors,authors_sd,authors_runs,source"
HERE = {"rows": ["ER"], "columns": ["EMNIST"]}
REAL = Notes("paper", seeds=3)


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def read(header, *lines, cell="table1,ER,EMNIST,final_accuracy", target="table1"):
    Path("reported.csv").write_text("\n".join([header, *(f"stf,{cell},{line}" for line in lines), ""]))
    return comparison.read_reported(Path("reported.csv"), "stf", target)


def reported(line):
    return read(HEADER, line + ",")


def by_authors(*lines):
    return read(AUTHORS, *lines)


def of(line, key):
    return reported(line)[key].item()


def measured(mean, half_width=None, learner="ER"):
    """Three seeds with the given mean and 95 % half-width; one seed where there is no half-width."""
    spread = [] if half_width is None else [half_width / critical(2) * np.sqrt(3)]
    values = [mean, *(mean - s for s in spread), *(mean + s for s in spread)]
    cells = {"learner": learner, "dataset": "EMNIST", "metric": "final_accuracy", "seed": range(len(values))}
    return pd.DataFrame({**cells, "value": values})


def cell(lines, data, notes=REAL, target=None):
    (found,) = comparison.compare(target or {}, data, lines, notes).to_dict("records")
    return found


def judged(line, data, notes=REAL, target=None):
    return cell(reported(line), data, notes, target)


def graded(line, data):
    found = judged(line, data)
    return found["verdict"], comparison.graded(found)


def zero_in(cell):
    return bool(cell["difference_low"] <= 0 <= cell["difference_high"])


def why(*given):
    found = judged(*given)
    return found["verdict"], found["cause"], found["reason"]


def kind(target, **notes):
    """The kind of a number, which its grade ends in unless it is trained."""
    found = judged("80.1,,", measured(80, 1), Notes("paper", **notes), target)
    assert comparison.graded(found).endswith(f", {found['kind']}") == (found["kind"] != TRAINED)
    return found["kind"]


test_by_hand = by_hand.tests(globals())


def test_the_authors_number_has_a_column_and_a_remark(table_target, real):
    data = measured(0.07, 0.001)
    lines = by_authors("0.06,0.001,population_sd_5_runs,,cut,0.0696,0.0015,5,cell 11")
    compared = comparison.compare({}, data, lines, real)
    assert compared["difference"].item() == pytest.approx(0.07 - 0.0696)
    assert compared["authors_high"].item() == pytest.approx(0.0696 + critical(4) * 0.0015 / 2)
    assert comparison.printed(compared.iloc[0])["against"] == "0.0696 ± 0.0021, cell 11"
    table = comparison.attach(results_table.render(table_target, data, real), {}, data, compared, real).appended[0]
    assert table.body["Graded against"].tolist() == ["0.0696 ± 0.0021, cell 11"]
    assert comparison.CUT in table.caption
    assert comparison.AUTHORS in table.caption
    plain = comparison.compare({}, data, reported("0.07,,"), real)
    assert "Graded against" not in comparison.attach(table, {}, data, plain, real).appended[0].body


def test_a_figures_numbers_stand_at_places_of_its_axis(real):
    data = pd.concat(
        [measured(v, 1.0).assign(metric="violations_by_task", time=t) for t, v in ((1.0, 0.0), (2.0, 900))]
    )
    printed = read(HEADER, "905,,,", cell='figure6,"ER, task 2",EMNIST,violations_by_task', target="figure6")
    found = cell(printed, data, real, {"along": "time", "names": {"time": "task"}})
    assert (found["ours"], found["difference"], found["verdict"]) == (900, -5, SAME)


def test_printed_interval_is_compared_by_welch(real):
    line = "80.1,0.5,ci95_halfwidth_20_runs"
    cell = judged(line, measured(80.6, 1.0))
    expected = welch(80.6, 1.0 / critical(2), 3, 80.1, 0.5 / critical(19), 20)
    expected = expected._replace(degrees=2.5)  # a quarter more than the three runs have
    assert (cell["difference_low"], cell["difference_high"]) == pytest.approx(expected.interval())
    assert cell["distance"] == pytest.approx(expected.interval(0.9)[1])
    assert (cell["printed_low"], cell["printed_high"]) == pytest.approx((79.6, 80.6))
    assert (cell["ours_low"], cell["ours_high"]) == pytest.approx((79.6, 81.6))
    assert (cell["verdict"], cell["reason"], cell["n_seeds"], cell["rule"]) == (SAME, "", 3, WELCH)
    assert judged(line, measured(83.0, 1.0))["verdict"] == DIFFERS
    assert judged(line, measured(77.0, 1.0))["verdict"] == DIFFERS


def test_a_spread_of_unknown_meaning_is_a_standard_error(table_target, real):
    data = measured(81.0, 0.5)
    compared = comparison.compare({}, data, reported("80.1,0.5,spread_10_runs"), real)
    expected = welch(81.0, 0.5 / critical(2), 3, 80.1, 0.5, 10)
    expected = expected._replace(degrees=2.5)
    assert (compared["difference_low"].item(), compared["difference_high"].item()) == pytest.approx(expected.interval())
    table = results_table.render(table_target | {"grid": {}, "names": {}}, data, real)
    assert "standard errors" in comparison.attach(table, {}, data, compared, real).appended[0].caption


def test_a_simulated_number_is_compared_without_a_column(real):
    printed = read(
        HEADER, "99.84,,mean_of_1e5_simulations,", cell="appendix_e,beta vs normal,,captured", target="appendix_e"
    )
    data = pd.DataFrame([{"row": "simulation", "metric": "captured", "mean": 99.842, "half_width": 0.001, "n": 9}])
    data = data.assign(sd=0.0013, se=0.00043)
    target = {"title": "E", "caption": "", "names": {"simulation": "beta vs normal"}}
    compared = comparison.compare(target, data, printed, real)
    assert list(compared["verdict"]) == [SAME]
    (appended,) = comparison.attach(number.render(target, data, real), target, data, compared, real).appended
    assert list(appended.body["Ours"]) == ["99.84 ± 0.00"]
    assert list(appended.body.columns[:2]) == ["row", "Metric"]


def test_attached_table_has_a_line_a_printed_number(table_target, learnt, real):
    printed = reported("80.1,0.5,ci95_halfwidth_20_runs")
    compared = comparison.compare(table_target, learnt, printed, real)
    table = comparison.attach(results_table.render(table_target, learnt, real), table_target, learnt, compared, real)
    (appended,) = table.appended
    (line,) = appended.body.to_dict("records")
    assert line.pop("Difference").startswith("−0.1 [−")
    texts = {"Printed": "80.1 ± 0.5", "Ours": "80.0 ± 2.5", "Verdict": "same, within 1.7"}
    assert line.items() >= ({"Method": "ER", "Data set": "EMNIST"} | texts).items()


@pytest.mark.parametrize(("factor", "heading"), [("dataset", "EMNIST†‡"), ("oracle", "EMNIST")])
def test_data_sets_are_marked_and_oracles_are_not(table_target, factor, heading):
    notes = Notes("small", {"EMNIST": "glyphs"}, ["a"])
    target = {"title": "T", "caption": "", "metrics": ["final_accuracy"], "columns": factor}
    data = measured(80.0, 1).assign(oracle="EMNIST")
    compared = comparison.compare(target, data, reported("80.1,,"), notes)
    (appended,) = comparison.attach(results_table.render(target, data, notes), target, data, compared, notes).appended
    assert list(appended.body[factor]) == [heading]
    assert appended.title.startswith("T‡" if factor == "dataset" else "T†‡")


def test_nothing_printed_nothing_attached(table_target, learnt, real):
    table = results_table.render(table_target, learnt, real)
    compared = comparison.compare(table_target, learnt, read(HEADER, "80.1,,,", target="table9"), real)
    assert comparison.attach(table, table_target, learnt, compared, real) is table
