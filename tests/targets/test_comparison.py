"""Reported against reproduced: reading the printed numbers, and every verdict."""

import numpy as np
import pandas as pd
import pytest

from clpapers.config import ConfigError
from clpapers.metrics.intervals import welch_from_summary
from clpapers.targets import comparison, results_table
from clpapers.targets.comparison import AGREES, DIFFERS, NOT_COMPARABLE

HEADER = "paper,target,row,column,metric,value,spread,spread_kind,note\n"


def reported(tmp_path, *lines):
    path = tmp_path / "reported.csv"
    path.write_text(HEADER + "".join(f"stf,table1,ER,EMNIST,final_accuracy,{line},\n" for line in lines))
    return comparison.read_reported(path, "stf", "table1")


def numbers(mean, half_width, n=3, standin=""):
    cell = {
        "row": "ER",
        "column": "EMNIST",
        "metric": "final_accuracy",
        "dataset": "emnist",
        "standin": standin,
    }
    return pd.DataFrame([{**cell, "mean": mean, "half_width": half_width, "n": n}])


def judged(tmp_path, line, data, notes):
    (cell,) = comparison.compare(data, reported(tmp_path, line), notes).to_dict("records")
    return cell


def test_reading_printed_numbers(tmp_path):
    (cell,) = reported(tmp_path, "80.10,0.5,ci95_halfwidth_20_runs").to_dict("records")
    assert (cell["value"], cell["decimals"], cell["half_width"], cell["n"]) == (80.1, 2, 0.5, 20)
    (cell,) = reported(tmp_path, "99,,mean_of_1e5_simulations").to_dict("records")
    assert (cell["value"], cell["decimals"], cell["n"]) == (99, 0, 0)
    assert np.isnan(cell["half_width"])
    assert comparison.read_reported(tmp_path / "reported.csv", "stf", "table9").empty


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (
            "80.1,0.5,spread_10_runs",
            r"reported\.csv: table1/ER/EMNIST/final_accuracy: spread_kind 'spread_10_runs'",
        ),
        ("80.1,0.5,", "spread_kind ''"),
        ("P + B*H,,formula", r"value 'P \+ B\*H' is not a number"),
    ],
)
def test_what_cannot_be_read_is_refused(tmp_path, line, complaint):
    with pytest.raises(ConfigError, match=complaint):
        reported(tmp_path, line)


def test_printed_interval_is_compared_by_welch(tmp_path, real):
    line = "80.1,0.5,ci95_halfwidth_20_runs"
    cell = judged(tmp_path, line, numbers(80.6, 1.0), real)
    expected = welch_from_summary(80.6, 1.0, 3, 80.1, 0.5, 20)
    assert (cell["difference"], cell["difference_low"], cell["difference_high"]) == pytest.approx(expected)
    assert (cell["reported_low"], cell["reported_high"]) == pytest.approx((79.6, 80.6))
    assert (cell["reproduced_low"], cell["reproduced_high"]) == pytest.approx((79.6, 81.6))
    assert (cell["verdict"], cell["reason"], cell["n_seeds"]) == (AGREES, "", 3)
    assert judged(tmp_path, line, numbers(83.0, 1.0), real)["verdict"] == DIFFERS
    assert judged(tmp_path, line, numbers(77.0, 1.0), real)["verdict"] == DIFFERS


@pytest.mark.parametrize(
    ("mean", "verdict"),
    [(99.84, AGREES), (99.846, AGREES), (99.834, AGREES), (99.847, DIFFERS), (99.833, DIFFERS)],
)
def test_bare_number_allows_half_a_unit_of_its_last_digit(tmp_path, real, mean, verdict):
    assert judged(tmp_path, "99.84,,", numbers(mean, 0.0015), real)["verdict"] == verdict


@pytest.mark.parametrize(
    ("line", "data", "cause", "reason"),
    [
        ("80.1,,", numbers(80.1, 1, standin="glyphs"), "stand-in data", "stand-in data: emnist: glyphs"),
        ("80.1,,", numbers(80.1, np.nan, n=1), "one seed", "one seed gives no interval"),
        (
            "80.1,0.5,ci95_halfwidth_20_runs",
            numbers(80.1, np.nan, n=1),
            "one seed",
            "one seed gives no interval",
        ),
        ("80.1,,", numbers(80.1, 1).assign(row="MIR"), "not run", "not run at this scale"),
        (",,", numbers(80.1, 1), "not printed", "the paper prints no number"),
        ("inf,,", numbers(80.1, 1), "not printed", "the paper prints no number"),
    ],
)
def test_not_comparable(tmp_path, real, line, data, cause, reason):
    cell = judged(tmp_path, line, data, real)
    assert (cell["verdict"], cell["cause"], cell["reason"]) == (NOT_COMPARABLE, cause, reason)


def test_a_reduced_scale_is_never_comparable(tmp_path, reduced):
    cell = judged(tmp_path, "80.1,,", numbers(80.1, 1, standin="glyphs"), reduced)
    assert cell["verdict"] == NOT_COMPARABLE
    assert cell["cause"] == "stand-in data, reduced scale"
    assert cell["reason"] == "stand-in data: emnist: glyphs; reduced scale: order.length 1000 (paper: all)"


def test_attached_table_has_a_line_a_printed_number(tmp_path, table_target, learnt, real):
    printed = reported(tmp_path, "80.1,0.5,ci95_halfwidth_20_runs")
    table = comparison.attach(results_table.render(table_target, learnt, real), table_target, printed, real)
    (appended,) = table.appended
    (line,) = appended.body.to_dict("records")
    assert line["Method"] == "ER"
    assert line["Data set"] == "EMNIST"
    assert line["Reported"] == "80.1 ± 0.5"
    assert line["Reproduced"] == "80.0 ± 2.5"
    assert line["Difference"].startswith("−0.1 [−")
    assert line["Verdict"] == "agrees"
    assert set(table.sidecars) == {"paired", "reported"}


def test_nothing_printed_nothing_attached(table_target, learnt, real):
    table = results_table.render(table_target, learnt, real)
    none = pd.DataFrame(columns=[*comparison.KEY, "value", "decimals", "half_width", "n"])
    assert comparison.attach(table, table_target, none, real) is table
