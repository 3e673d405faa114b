"""Forecasts agree with the comparison that the runs would make, and say what more of them are worth."""

import math

import numpy as np
import pytest

from clpapers.evidence.forecast import forecast, gain, read_trained
from clpapers.evidence.verdict_names import DIFFERS, NEAR, OPEN, SAME

NAN = math.nan
HEAD = "row,column,metric,kind,verdict,ours,sd,n_seeds,graded_against,against_se,against_n"
HEAD += ",distance,margin_same,margin_near"


def number(reproduced, sd, n, graded_against, against_se=NAN, against_n=0, distance=20.0, is_open=1.0):
    return {
        **{"ours": reproduced, "sd": sd, "n_seeds": n, "graded_against": graded_against, "against_se": against_se},
        **{"against_n": against_n, "distance": distance, "margin_same": 2.0, "margin_near": 5.0, "open": is_open},
    }


def test_by_hand_without_a_printed_spread():
    """Ten runs of deviation 3, one point above: 1.833 of 3·√(1/10 + 4/10) if the paper has ten, or else 4/1 in it."""
    told = forecast(number(51.0, 3.0, 2, 50.0, against_n=10), 10)
    assert told.distance == pytest.approx(1 + 1.8331 * 3 * math.sqrt(0.5), rel=1e-4)
    assert told.grade == NEAR
    wider = forecast(number(51.0, 3.0, 2, 50.0), 10)
    assert wider.distance == pytest.approx(1 + 1.8331 * 3 * math.sqrt(4.1), rel=1e-4)


def test_one_run_takes_the_printed_spread():
    one = number(51.0, NAN, 1, 50.0, against_se=0.2, against_n=16)
    many = number(51.0, 0.8, 3, 50.0, against_se=0.2, against_n=16)
    assert forecast(one, 5).distance == forecast(many, 5).distance
    assert forecast(number(51.0, NAN, 1, 50.0), 5) is None


@pytest.mark.parametrize(("difference", "grade"), [(0.2, SAME), (3.0, DIFFERS), (4.5, DIFFERS)])
def test_many_runs_decide(difference, grade):
    told = number(50 + difference, 3.0, 3, 50.0, against_n=1000)
    assert forecast(told, 1000).grade == grade
    assert gain(told, 1000) == 1.0


def test_more_runs_are_worth_more_and_a_decided_number_is_worth_none():
    wide = number(51.0, 9.0, 2, 50.0, against_n=400, distance=60.0)
    gains = [gain(wide, runs) for runs in (2, 3, 5, 10, 20, 400)]
    assert np.all(np.diff(gains) >= 0)
    assert gains[-1] == 1.0
    assert max(gains[:3]) <= 0.5
    assert gain(number(51.0, 9.0, 2, 50.0, is_open=0.0), 400) == 0.0
    assert gain(number(50.0, 9.0, 3, 50.0, distance=5.1), 3) == 0.0  # as many as now


@pytest.mark.parametrize(("shrinks", "worth"), [(2.0, 0.2), (5.0, 0.5), (9.0, 0.5), (-1.0, 0.0)])
def test_what_stays_open_is_worth_half_the_share_of_the_margin_that_is_gained(shrinks, worth):
    """Five runs of deviation 9, one point above, beside ten: 1 + 2.1318 · 9·√(1/5 + 4/10); the second margin is 5."""
    then = 1 + 2.131847 * 9 * math.sqrt(0.6)
    assert gain(number(51.0, 9.0, 2, 50.0, against_n=10, distance=then + shrinks), 5) == pytest.approx(worth, abs=1e-6)


def test_trained_numbers_are_read_from_the_files_of_a_build(tmp_path):
    file = tmp_path / "table1.reported.csv"
    lines = [
        HEAD,
        "ER,CIFAR-10,accuracy,trained,open,51,3,2,50,,0,20,2,5",
        "Rand,CIFAR-10,accuracy,guess,same,1,1,2,1,,0,1,2,5",
        "MIR,CIFAR-10,accuracy,trained,not comparable,,,0,50,,0,,2,5",
    ]
    file.write_text("\n".join(lines) + "\n")
    assert read_trained([file]) == {("ER", "CIFAR-10", "accuracy"): pytest.approx(number(51, 3, 2, 50), nan_ok=True)}
    assert forecast(read_trained([file])["ER", "CIFAR-10", "accuracy"], 2).grade == OPEN


@pytest.mark.parametrize("text", ["", "row\n1\n", HEAD.replace("sd", "s") + "\na,b,c,trained,open\n", "\x00"])
def test_a_file_of_another_form_has_none(text, tmp_path):
    file = tmp_path / "table1.reported.csv"
    file.write_text(text)
    assert read_trained([file, tmp_path / "none.csv"]) == {}
