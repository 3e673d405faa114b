"""The pooled line: a mean difference over cells that share their streams, with an interval by seed."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from clpapers.evidence.pooled import each_once, one_sided, pooled

TARGET = {"names": {"a": "A", "b": "B"}}


def compared(**values):
    """Lines of a comparison with a printed 10, without a spread, and the values behind them."""
    lines = pd.DataFrame(
        {
            **{
                "row": TARGET["names"].get(cell, cell),
                "column": "data",
                "metric": "final_accuracy",
                "verdict": "open",
                "kind": "trained",
            },
            **{"runs": cell, "graded_against": 10.0, "against_se": np.nan, "against_n": 0, "decimals": 1},
            **{"difference": np.mean(each) - 10, "n_seeds": len(each)},
        }
        for cell, each in values.items()
    )
    rows = [
        {"learner": cell, "dataset": "data", "cell": cell, "metric": "final_accuracy", "seed": seed, "value": value}
        for cell, each in values.items()
        for seed, value in enumerate(each)
    ]
    return lines, pd.DataFrame(rows)


def line_of(lines, data, target=TARGET):
    (line,) = pooled(target, data, lines).to_dict("records")
    return line


def test_with_equal_seeds_it_is_the_interval_of_the_seeds_means():
    a, b = np.array([9.0, 11.0, 13.0]), np.array([8.0, 9.5, 14.0])
    line = line_of(*compared(a=a, b=b))
    by_seed = (a + b) / 2 - 10
    expected = stats.t.interval(0.95, 2, by_seed.mean(), stats.sem(by_seed))
    assert (line["difference"], line["low"], line["high"]) == pytest.approx((by_seed.mean(), *expected))
    narrower = stats.t.interval(0.9, 2, by_seed.mean(), stats.sem(by_seed))
    assert line["distance"] == pytest.approx(np.abs(narrower).max())
    assert (line["cells"], line["above"], line["below"], line["seeds"]) == (2, 2, 0, 3)


def test_cells_that_share_their_errors_are_no_larger_sample():
    values = np.array([9.0, 11.0, 13.0])
    one, many = line_of(*compared(a=values, b=values)), line_of(*compared(**dict.fromkeys("abcdefgh", values)))
    assert (one["low"], one["high"]) == pytest.approx((many["low"], many["high"]))


def test_what_cells_share_of_their_variance_by_hand():
    """Deviations −1, 0, 1 and 0, −1, 1: covariance 1/2 of variances 1; a cell of two seeds tells nothing."""
    assert line_of(*compared(a=[9.0, 10.0, 11.0], b=[10.0, 9.0, 11.0]))["shared"] == pytest.approx(0.5)
    assert line_of(*compared(a=[9.0, 10.0, 11.0], b=[19.0, 20.0, 21.0], c=[9.0, 8.0]))["shared"] == pytest.approx(1)
    assert np.isnan(line_of(*compared(a=[9.0, 10.0], b=[10.0, 9.0]))["shared"])


def test_cells_of_two_data_sets_share_no_draw():
    lines, data = compared(a=[9.0, 10.0, 11.0], b=[10.0, 9.0, 11.0])
    data.loc[data["learner"] == "b", "dataset"] = "other"
    lines.loc[lines["runs"] == "b", "column"] = "other"
    assert np.isnan(line_of(lines, data)["shared"])


def test_the_printed_means_errors_and_a_single_runs_count_as_if_they_were_one():
    lines, data = compared(a=[9.0], b=[12.0])
    lines = lines.assign(against_se=0.5, against_n=4)
    line = line_of(lines, data)
    se = np.sqrt(1.0**2 + 0.5**2)  # of one run more: 0.5·√4, and of the printed mean
    degrees = se**4 / (1.0**4 / 3 + 0.5**4 / 3)
    assert line["high"] - line["difference"] == pytest.approx(stats.t.ppf(0.975, degrees) * se)


def test_a_comparison_counts_once_and_guesses_not_at_all():
    lines, data = compared(a=[9.0, 11.0], b=[12.0, 13.0])
    again = lines.iloc[:1].assign(row="B")
    assert len(each_once(pd.concat([lines, again]))) == 2
    guess = lines.iloc[:1].assign(row="G", runs="g", kind="guess")
    assert line_of(pd.concat([lines, again, guess]), data)["cells"] == 2
    assert pooled(TARGET, data, lines.iloc[:1]).empty


def test_of_one_comparison_twice_the_one_with_a_printed_spread_counts():
    lines, _ = compared(a=[9.0, 11.0], b=[12.0, 13.0])
    again = lines.iloc[:1].assign(row="again", against_se=0.5)
    assert each_once(pd.concat([lines, again], ignore_index=True))["row"].tolist() == ["B", "again"]


def test_a_curve_has_a_line_of_its_own():
    lines, data = compared(a=[9.0, 11.0], b=[12.0, 13.0])
    target = TARGET | {"along": "time", "names": {**TARGET["names"], "time": "task"}}
    two = [lines.assign(row=lines["row"] + f", task {t}", runs=lines["runs"] + f" time {t}") for t in (1, 2)]
    frames = [data.assign(time=float(t)) for t in (1, 2)]
    found = pooled(target, pd.concat(frames), pd.concat(two))
    assert list(found["of"]) == ["A, data", "B, data"]
    assert list(found["cells"]) == [2, 2]


@pytest.mark.parametrize("along", [None, "task"])
def test_where_nothing_is_compared_there_is_no_line(along):
    """As at a scale with stand-ins, where all verdicts are "not comparable"."""
    lines, data = compared(a=[9.0, 10.0], b=[12.0, 11.0])
    lines["verdict"] = "not comparable"
    assert pooled(TARGET | {"along": along}, data, lines).empty


def test_the_same_runs_beside_the_same_number_are_one_comparison_and_numbers_without_runs_are_not():
    lines, _ = compared(a=[9.0, 11.0], b=[9.0, 11.0])
    assert [len(each_once(lines.assign(runs=runs))) for runs in ("x", "")] == [1, 2]


def test_a_line_with_all_cells_on_one_side_is_told_if_its_interval_leaves_zero_out():
    cells = {name: [12.0, 12.2, 12.1] for name in "abcdef"}
    line = line_of(*compared(**cells))
    assert one_sided(TARGET, line).startswith("all 6 values of ")
    assert " lie above print, by 2.1 on average (95 % interval " in one_sided(TARGET, line)
    below = line_of(*compared(**{name: [8.0, 7.8] for name in "abcdef"}))
    assert " lie below print, by 2.1 on average (95 % interval " in one_sided(TARGET, below)
    assert one_sided(TARGET, line_of(*compared(**cells | {"f": [9.8, 9.9, 9.9]}))) == ""  # one on the other side
    assert one_sided(TARGET, line_of(*compared(**{key: [10.1, 17.0] for key in "abcdef"}))) == ""  # zero is possible
    assert one_sided(TARGET, line_of(*compared(**{key: [12.0, 12.2] for key in "abcde"}))) == ""  # too few
