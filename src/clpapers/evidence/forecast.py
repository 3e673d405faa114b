"""Forecasts what more runs would say of a printed number: the grade, if mean and spread stay as they are so far.

Numbers are lines of `*.reported.csv`, as `comparison.compare` makes them. Imports nothing heavy but NumPy and SciPy.
"""

import contextlib
import csv
import math
from collections.abc import Iterable, Mapping
from pathlib import Path

from clpapers.evidence.grades import Judged, estimated, judge
from clpapers.evidence.verdict_names import GRADES, OPEN, TRAINED

Key = tuple[str, str, str]  # row, column, metric
FIELDS = (
    "ours",
    "sd",
    "n_seeds",
    "graded_against",
    "against_se",
    "against_n",
    "distance",
    "margin_same",
    "margin_near",
)


def read_trained(files: Iterable[Path]) -> dict[Key, dict[str, float]]:
    """The graded numbers of such files that a training decides: by row, column and metric, the values of `FIELDS`.

    One without a run has no grade. A file of another form has none; the audit reports it.
    """
    numbers: dict[Key, dict[str, float]] = {}
    for file in files:
        with contextlib.suppress(OSError, KeyError, ValueError, csv.Error):
            with file.open(encoding="utf-8", newline="") as opened:
                lines = list(csv.DictReader(opened))
            for line in (line for line in lines if line["kind"] == TRAINED and line["verdict"] in GRADES):
                values = {field: float(line[field] or "nan") for field in FIELDS}
                values["open"] = float(line["verdict"] == OPEN)
                numbers[line["row"], line["column"], line["metric"]] = values
    return numbers


def forecast(number: Mapping[str, float], runs: int) -> Judged | None:
    """The grade that `runs` runs, two or more, would give a number; None where nothing tells how far runs spread.

    A single run takes the spread that the paper prints.
    """
    against, against_se, against_n = (number[key] for key in ("graded_against", "against_se", "against_n"))
    sd = against_se * math.sqrt(against_n) if math.isnan(number["sd"]) else number["sd"]
    if math.isnan(sd) or math.isnan(number["margin_near"]):
        return None
    estimate, _ = estimated(number["ours"], sd / math.sqrt(runs), runs, against, against_se, int(against_n))
    return judge(estimate, (number["margin_same"], number["margin_near"]))


def gain(number: Mapping[str, float], runs: int) -> float:
    """How much more runs are worth, in printed numbers: 1 if they would decide an open one.

    Or else half the share of the second margin by which the distance that they exclude would shrink, at most a half.
    """
    then = forecast(number, runs) if number["open"] else None
    if then is None:
        return 0.0
    if then.grade != OPEN:
        return 1.0
    shrinks = (number["distance"] - float(then.distance)) / number["margin_near"]
    return min(max(shrinks, 0.0) / 2, 0.5)
