"""Forecasts agree with the comparison that the runs would make, and say what more of them are worth."""

import math

import by_hand
import numpy as np
import pytest

from clpapers.evidence.forecast import forecast, gain, read_trained
from clpapers.evidence.verdict_names import DIFFERS, NEAR, OPEN, SAME  # noqa: F401, for by_hand.yaml

NAN = math.nan
HEAD = "row,column,metric,kind,verdict,ours,sd,n_seeds,graded_against,against_se,against_n"
HEAD += ",distance,margin_same,margin_near"


def number(reproduced, sd, n, graded_against, against_se=NAN, against_n=0, distance=20.0, is_open=1.0):
    return {
        **{"ours": reproduced, "sd": sd, "n_seeds": n, "graded_against": graded_against, "against_se": against_se},
        **{"against_n": against_n, "distance": distance, "margin_same": 2.0, "margin_near": 5.0, "open": is_open},
    }


test_by_hand = by_hand.tests(globals())


def test_more_runs_are_worth_more():
    wide = number(51.0, 9.0, 2, 50.0, against_n=400, distance=60.0)
    gains = [gain(wide, runs) for runs in (2, 3, 5, 10, 20, 400)]
    assert np.all(np.diff(gains) >= 0)
    assert gains[-1] == 1.0
    assert max(gains[:3]) <= 0.5


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
