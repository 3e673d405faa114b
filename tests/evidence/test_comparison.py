"""Reported against reproduced: reading the printed numbers, and every verdict."""

import numpy as np
import pandas as pd
import pytest

from clpapers.evidence import comparison
from clpapers.evidence.grades import ALIKE, ONE_MORE, OWN_SPREAD, WELCH
from clpapers.evidence.verdict_names import (
    CALIBRATED,
    DIFFERS,
    DIVERGES,
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
HEADER = "paper,target,row,column,metric,value,spread,spread_kind,note\n"


def reported(tmp_path, *lines):
    path = tmp_path / "reported.csv"
    path.write_text(HEADER + "".join(f"stf,table1,ER,EMNIST,final_accuracy,{line},\n" for line in lines))
    return comparison.read_reported(path, "stf", "table1")


def measured(mean, half_width=None, learner="ER"):
    """Three seeds with the given mean and 95 % half-width; one seed where there is no half-width."""
    spread = [] if half_width is None else [half_width / critical(2) * np.sqrt(3)]
    values = [mean, *(mean - s for s in spread), *(mean + s for s in spread)]
    cells = {"learner": learner, "dataset": "EMNIST", "metric": "final_accuracy", "seed": range(len(values))}
    return pd.DataFrame({**cells, "value": values})


def judged(tmp_path, line, data, notes):
    (cell,) = comparison.compare({}, data, reported(tmp_path, line), notes).to_dict("records")
    return cell


def test_reading_printed_measured(tmp_path):
    (cell,) = reported(tmp_path, "80.10,0.5,ci95_halfwidth_20_runs").to_dict("records")
    assert (cell["value"], cell["decimals"], cell["half_width"], cell["n"]) == (80.1, 2, 0.5, 20)
    (cell,) = reported(tmp_path, "80.10,0.5,spread_10_runs").to_dict("records")
    assert (cell["value"], cell["n"]) == (80.1, 10)
    assert cell["half_width"] == pytest.approx(2.262157 * 0.5)  # t₉
    (cell,) = reported(tmp_path, "99,,mean_of_1e5_simulations").to_dict("records")
    assert (cell["value"], cell["decimals"], cell["n"]) == (99, 0, 0)
    assert np.isnan(cell["half_width"])
    assert comparison.read_reported(tmp_path / "reported.csv", "stf", "table9").empty


AUTHORS_HEADER = HEADER.strip() + ",digits,authors,authors_sd,authors_runs,source\n"


def with_authors(tmp_path, *lines):
    path = tmp_path / "reported.csv"
    path.write_text(AUTHORS_HEADER + "".join(f"stf,table1,ER,EMNIST,final_accuracy,{line}\n" for line in lines))
    return comparison.read_reported(path, "stf", "table1")


@pytest.mark.parametrize(
    ("printed", "authors", "against"),
    [
        ("0.06", "0.0696", 0.0696),  # cut off
        ("0.06", "0.0551", 0.0551),  # rounded
        ("0.06", "0.0701", 0.06),  # neither: of other runs
        ("0.06", "0.0549", 0.06),
        ("", "0.0701", 0.0701),  # none printed
    ],
)
def test_the_authors_number_is_compared_where_the_printed_one_may_be_it(tmp_path, printed, authors, against):
    line = f"{printed},0.001,population_sd_5_runs,,cut,{authors},0.0015,5,cell 11"
    (cell,) = with_authors(tmp_path, line).to_dict("records")
    assert (cell["authors"], cell["graded_against"], cell["source"]) == (float(authors), against, "cell 11")
    other = against == 0.06
    assert (cell["below"], cell["above"]) == pytest.approx((0.005, 0.01) if other else (0, 0))
    sd = 0.001 if other else 0.0015
    assert cell["against_se"] == pytest.approx(sd / 2)  # √(5 − 1)


def test_one_printed_number_of_other_runs_takes_the_authors_from_its_whole_target(tmp_path):
    """The first is the authors', cut off, and has their spread; the third is printed nowhere."""
    lines = ["0.06,,mean_5_runs,,cut,0.0696,0.0015,5,cell 11", "0.06,0.001,population_sd_5_runs,,cut,0.0701,0.0015,5,c"]
    found = with_authors(tmp_path, *lines, ",,,,,0.0701,,,cell 11")
    assert found["graded_against"].tolist() == pytest.approx([0.06, 0.06, np.nan], nan_ok=True)
    assert found["against_se"].tolist() == pytest.approx([0.00075, 0.0005, np.nan], nan_ok=True)
    assert found["above"].tolist()[:2] == pytest.approx([0.01, 0.01])


def test_an_authors_number_without_a_spread_has_the_printed_one(tmp_path):
    (cell,) = with_authors(tmp_path, "0.23,0.006,population_sd_5_runs,,,0.2339,,5,cell 11").to_dict("records")
    assert (cell["graded_against"], cell["against_n"]) == (0.2339, 5)
    assert cell["against_se"] == pytest.approx(0.003)  # √(5 − 1)
    (cell,) = with_authors(tmp_path, "0.23,,mean_5_runs,,,0.2339,,,cell 11").to_dict("records")
    assert (np.isnan(cell["against_se"]), cell["against_n"]) == (True, 5)


def test_digits_that_may_be_cut_off_allow_a_unit_above_and_half_a_unit_below(tmp_path, real):
    """0.06 stands for 0.055 to 0.07: of three runs at 0.0695 ± 0.0001 the difference is −0.0009 to 0.0149.

    With one run of the paper that spreads twice as far, ±0.0001 is √(1 + 4·3) times as wide: ±0.00036.
    """

    def cell(mean, digits):
        lines = with_authors(tmp_path, f"0.06,,,,{digits},,,,")
        return comparison.compare({}, measured(mean, 0.0001), lines, real).iloc[0]

    found = cell(0.0695, "cut")
    assert (found["difference_low"], found["difference_high"]) == pytest.approx(
        (-0.0005 - 0.0001 * np.sqrt(13), 0.0145 + 0.0001 * np.sqrt(13))
    )
    for mean, digits, holds in ((0.0695, "", 0), (0.0704, "cut", 0), (0.0551, "cut", 1), (0.0546, "cut", 0)):
        found = cell(mean, digits)
        assert (found["difference_low"] <= 0 <= found["difference_high"]) == bool(holds)


def test_the_authors_number_has_a_column_and_a_remark(tmp_path, table_target, real):
    data = measured(0.07, 0.001)
    lines = with_authors(tmp_path, "0.06,0.001,population_sd_5_runs,,cut,0.0696,0.0015,5,cell 11")
    compared = comparison.compare({}, data, lines, real)
    assert compared["difference"].item() == pytest.approx(0.07 - 0.0696)
    assert compared["authors_high"].item() == pytest.approx(0.0696 + critical(4) * 0.0015 / 2)
    assert comparison.printed(compared.iloc[0])["against"] == "0.0696 ± 0.0021, cell 11"
    table = comparison.attach(results_table.render(table_target, data, real), {}, data, compared, real).appended[0]
    assert table.body["Graded against"].tolist() == ["0.0696 ± 0.0021, cell 11"]
    assert comparison.CUT in table.caption
    assert comparison.AUTHORS in table.caption
    plain = comparison.compare({}, data, reported(tmp_path, "0.07,,"), real)
    assert "Graded against" not in comparison.attach(table, {}, data, plain, real).appended[0].body


def test_a_figures_numbers_stand_at_places_of_its_axis(tmp_path, real):
    data = pd.concat(
        [measured(v, 1.0).assign(metric="violations_by_task", time=t) for t, v in ((1.0, 0.0), (2.0, 900))]
    )
    path = tmp_path / "reported.csv"
    path.write_text(HEADER + 'stf,figure6,"ER, task 2",EMNIST,violations_by_task,905,,,\n')
    target = {"along": "time", "names": {"time": "task"}}
    (cell,) = comparison.compare(target, data, comparison.read_reported(path, "stf", "figure6"), real).to_dict(
        "records"
    )
    assert (cell["ours"], cell["difference"], cell["verdict"]) == (900, -5, SAME)


def test_printed_interval_is_compared_by_welch(tmp_path, real):
    line = "80.1,0.5,ci95_halfwidth_20_runs"
    cell = judged(tmp_path, line, measured(80.6, 1.0), real)
    expected = welch(80.6, 1.0 / critical(2), 3, 80.1, 0.5 / critical(19), 20)
    expected = expected._replace(degrees=2.5)  # a quarter more than the three runs have
    assert (cell["difference_low"], cell["difference_high"]) == pytest.approx(expected.interval())
    assert cell["distance"] == pytest.approx(expected.interval(0.9)[1])
    assert (cell["printed_low"], cell["printed_high"]) == pytest.approx((79.6, 80.6))
    assert (cell["ours_low"], cell["ours_high"]) == pytest.approx((79.6, 81.6))
    assert (cell["verdict"], cell["reason"], cell["n_seeds"], cell["rule"]) == (SAME, "", 3, WELCH)
    assert judged(tmp_path, line, measured(83.0, 1.0), real)["verdict"] == DIFFERS
    assert judged(tmp_path, line, measured(77.0, 1.0), real)["verdict"] == DIFFERS


def test_a_spread_of_unknown_meaning_is_a_standard_error(tmp_path, table_target, real):
    data = measured(81.0, 0.5)
    compared = comparison.compare({}, data, reported(tmp_path, "80.1,0.5,spread_10_runs"), real)
    expected = welch(81.0, 0.5 / critical(2), 3, 80.1, 0.5, 10)
    expected = expected._replace(degrees=2.5)
    assert (compared["difference_low"].item(), compared["difference_high"].item()) == pytest.approx(expected.interval())
    table = results_table.render(table_target | {"grid": {}, "names": {}}, data, real)
    assert "standard errors" in comparison.attach(table, {}, data, compared, real).appended[0].caption


@pytest.mark.parametrize(
    ("mean", "half_width", "verdict", "text"),
    [  # of a printed 80: margins 2 and 5; the 90 % interval of three runs is 0.6786 of the 95 % one
        (80.5, 1.0, SAME, "same, within 1.3"),
        (81.2, 1.0, SAME, "same, within 2.0, resolved"),
        (81.5, 1.0, DIFFERS, "differs by at least 0.4"),
        (81.5, 4.0, NEAR, "near, within 4.3"),
        (81.5, 9.0, OPEN, "open, within 7.7"),
        (90.0, 9.0, DIFFERS, "differs by at least 0.9"),
    ],
)
def test_a_grade_says_how_far(tmp_path, real, mean, half_width, verdict, text):
    """Of so many runs in print, their error hardly counts; half a unit of the last digit is 0.05 on either side."""
    cell = judged(tmp_path, f"80.0,,{MANY}", measured(mean, half_width), real)
    assert (cell["verdict"], comparison.graded(cell)) == (verdict, text)
    assert (cell["margin_same"], cell["margin_near"], cell["rule"]) == (2, 5, OWN_SPREAD)


def test_without_a_printed_spread_the_papers_runs_spread_twice_as_ours(tmp_path, real):
    """Three runs with a half-width of 1: √(1 + 4·3) beside one run or unknown ones, √(1 + 4·3/12) beside twelve."""
    for kind, half in (("", np.sqrt(13)), ("mean_12_runs", np.sqrt(2))):
        cell = judged(tmp_path, f"80.0,,{kind}", measured(80.5, 1.0), real)
        assert cell["difference_high"] - cell["difference"] == pytest.approx(half + 0.05)


def test_a_margin_is_never_more_than_its_share_of_the_printed_value(tmp_path, real):
    cell = judged(tmp_path, f"8.0,,{MANY}", measured(8.5, 1.0), real)
    assert (cell["margin_same"], cell["margin_near"]) == pytest.approx((0.8, 1.6))
    assert comparison.graded(cell) == "near, within 1.3"


def test_equal_values_are_the_same_if_they_are_the_printed_one_and_else_open(tmp_path, real):
    lines = reported(tmp_path, "80.1,,")
    for mean, verdict in ((80.1, SAME), (80.14, SAME), (80.2, OPEN)):
        compared = comparison.compare({}, measured(mean, 0.0), lines, real).iloc[0]
        assert (compared["verdict"], compared["cause"]) == (verdict, comparison.EQUAL)
        assert comparison.graded(compared) == f"{verdict}: equal values"
    exact = {"exact": [{"why": "frozen", "rows": ["ER"], "columns": ["EMNIST"]}]}
    compared = comparison.compare(exact, measured(80.1, 0.0), lines, real).iloc[0]
    assert (compared["verdict"], compared["kind"]) == (SAME, EXACT)


@pytest.mark.parametrize(
    ("target", "guesses", "kind"),
    [
        ({}, (), TRAINED),
        ({"calibrated": [{"choice": "c", "rows": ["ER"], "columns": ["EMNIST"]}]}, (), CALIBRATED),
        ({"calibrated": [{"choice": "c", "rows": ["ER"], "columns": ["EMNIST"]}]}, ("ER",), GUESS),
        ({"exact": [{"why": "w", "rows": ["ER"], "columns": ["EMNIST"], "metrics": ["final_accuracy"]}]}, (), EXACT),
        ({"exact": [{"why": "w", "rows": ["ER"], "columns": ["EMNIST"], "metrics": ["forgetting"]}]}, (), TRAINED),
        ({"simulations": 9}, (), EXACT),
    ],
)
def test_each_number_is_of_one_kind(tmp_path, target, guesses, kind):
    notes = Notes("paper", guesses=frozenset(guesses))
    (cell,) = comparison.compare(target, measured(80, 1), reported(tmp_path, "80.1,,"), notes).to_dict("records")
    assert cell["kind"] == kind
    assert comparison.graded(cell).endswith(f", {kind}") == (kind != TRAINED)


def test_reproduced_deviation_and_error_stand_beside_the_reported(tmp_path, real):
    cell = judged(tmp_path, "80.1,0.5,spread_10_runs", measured(80.0, critical(2) / np.sqrt(3)), real)
    assert (cell["sd"], cell["se"]) == pytest.approx((1, 1 / np.sqrt(3)))


@pytest.mark.parametrize(
    ("mean", "holds"), [(99.84, True), (99.846, True), (99.834, True), (99.847, False), (99.833, False)]
)
def test_bare_number_allows_half_a_unit_of_its_last_digit(tmp_path, real, mean, holds):
    cell = judged(tmp_path, f"99.84,,{MANY}", measured(mean, 0.0015), real)
    assert (cell["difference_low"] <= 0 <= cell["difference_high"]) == holds


@pytest.mark.parametrize(("mean", "verdict"), [(81.3, NEAR), (84.5, OPEN), (84.7, DIFFERS), (75.5, DIFFERS)])
def test_a_single_run_is_held_against_one_more_of_the_papers(mean, verdict, tmp_path, real):
    """Of 20 runs with the half-width 0.5 = t·s/√20, one of twice their spread lies within t·s·√(4 + 1/20) = 4.5."""
    cell = judged(tmp_path, "80.1,0.5,ci95_halfwidth_20_runs", measured(mean), real)
    assert (cell["verdict"], cell["cause"], cell["rule"]) == (verdict, "one run", ONE_MORE)
    assert "weak evidence" in cell["reason"]
    assert cell["difference_high"] - cell["difference"] == pytest.approx(4.5)
    assert comparison.graded(cell).endswith(": one run")


@pytest.mark.parametrize(
    ("line", "data", "cause", "reason"),
    [
        ("80.1,,", measured(80.1), "one run", "one run gives no interval, and none is printed"),
        ("80.1,,", measured(80.1, 1, "MIR"), "not run", "not run at this scale"),
        (",,", measured(80.1, 1), "not printed", "the paper prints no number"),
    ],
)
def test_not_comparable(tmp_path, real, line, data, cause, reason):
    cell = judged(tmp_path, line, data, real)
    assert (cell["verdict"], cell["cause"], cell["reason"]) == (NOT_COMPARABLE, cause, reason)


@pytest.mark.parametrize(
    ("standins", "reductions", "cause", "reason"),
    [
        ({"EMNIST": "glyphs"}, [], "stand-in data", "stand-in data: EMNIST: glyphs"),
        ({}, ["a", "b"], "reduced scale", "reduced scale: a; b"),
        ({"EMNIST": "glyphs"}, ["a"], "stand-in data, reduced scale",
         "stand-in data: EMNIST: glyphs; reduced scale: a"),
    ],
)  # fmt: skip
def test_other_data_or_another_scale_is_never_comparable(tmp_path, standins, reductions, cause, reason):
    cell = judged(tmp_path, "80.1,,", measured(80.1, 1), Notes("small", standins, reductions))
    assert (cell["verdict"], cell["cause"], cell["reason"]) == (NOT_COMPARABLE, cause, reason)


@pytest.mark.parametrize(
    ("line", "values", "verdict", "rule"),
    [
        ("inf,,", [np.inf, np.inf, np.inf], DIVERGES, ALIKE),
        ("inf,,", [80.0, 81.0, 82.0], DIFFERS, ALIKE),
        ("80.1,,", [80.0, np.inf, 82.0], DIFFERS, ALIKE),
        (",,", [80.0, 81.0, 82.0], NOT_COMPARABLE, ""),
    ],
)
def test_infinity_over_infinity_is_no_number_that_came_out_the_same(tmp_path, real, line, values, verdict, rule):
    cell = judged(tmp_path, line, measured(80, 1).assign(value=values), real)
    assert (cell["verdict"], cell["rule"]) == (verdict, rule)
    assert comparison.graded(cell).startswith(verdict)


def test_a_simulated_number_is_compared_without_a_column(tmp_path, real):
    path = tmp_path / "reported.csv"
    path.write_text(HEADER + "stf,appendix_e,beta vs normal,,captured,99.84,,mean_of_1e5_simulations,\n")
    data = pd.DataFrame([{"row": "simulation", "metric": "captured", "mean": 99.842, "half_width": 0.001, "n": 9}])
    data = data.assign(sd=0.0013, se=0.00043)
    target = {"title": "E", "caption": "", "names": {"simulation": "beta vs normal"}}
    compared = comparison.compare(target, data, comparison.read_reported(path, "stf", "appendix_e"), real)
    assert list(compared["verdict"]) == [SAME]
    (appended,) = comparison.attach(number.render(target, data, real), target, data, compared, real).appended
    assert list(appended.body["Ours"]) == ["99.84 ± 0.00"]
    assert list(appended.body.columns[:2]) == ["row", "Metric"]


def test_attached_table_has_a_line_a_printed_number(tmp_path, table_target, learnt, real):
    printed = reported(tmp_path, "80.1,0.5,ci95_halfwidth_20_runs")
    compared = comparison.compare(table_target, learnt, printed, real)
    table = comparison.attach(results_table.render(table_target, learnt, real), table_target, learnt, compared, real)
    (appended,) = table.appended
    (line,) = appended.body.to_dict("records")
    assert line["Method"] == "ER"
    assert line["Data set"] == "EMNIST"
    assert line["Printed"] == "80.1 ± 0.5"
    assert line["Ours"] == "80.0 ± 2.5"
    assert line["Difference"].startswith("−0.1 [−")
    assert line["Verdict"] == "same, within 1.7"


@pytest.mark.parametrize(("factor", "heading"), [("dataset", "EMNIST†‡"), ("oracle", "EMNIST")])
def test_data_sets_are_marked_and_oracles_are_not(tmp_path, table_target, factor, heading):
    notes = Notes("small", {"EMNIST": "glyphs"}, ["a"])
    target = {"title": "T", "caption": "", "metrics": ["final_accuracy"], "columns": factor}
    data = measured(80.0, 1).assign(oracle="EMNIST")
    compared = comparison.compare(target, data, reported(tmp_path, "80.1,,"), notes)
    (appended,) = comparison.attach(results_table.render(target, data, notes), target, data, compared, notes).appended
    assert list(appended.body[factor]) == [heading]
    assert appended.title.startswith("T‡" if factor == "dataset" else "T†‡")


def test_nothing_printed_nothing_attached(tmp_path, table_target, learnt, real):
    reported(tmp_path, "80.1,,")
    table = results_table.render(table_target, learnt, real)
    none = comparison.read_reported(tmp_path / "reported.csv", "stf", "table9")
    compared = comparison.compare(table_target, learnt, none, real)
    assert comparison.attach(table, table_target, learnt, compared, real) is table
