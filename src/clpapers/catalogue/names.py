"""The names that a paper prints for factors, levels and metrics. Imports nothing heavy."""

from collections.abc import Mapping

CURVE = ("time", "task")  # columns of a curve: no factors of the grid, so that their levels are known once measured
OUTSIDE_SIGN = "§"  # beside the name of a method from outside, which is in no paper


def named(target: Mapping, key: object) -> str:
    """The display name of a factor, level or metric: the target's `names`, or else the key itself."""
    return target.get("names", {}).get(key, str(key))


def row_and_column(target: Mapping) -> tuple[str, str]:
    """The factors down and across a table: the target's `rows` and `columns`, by default learners and data sets."""
    return target.get("rows", "learner"), target.get("columns", "dataset")


def named_along(target: Mapping, key: object, value: float) -> str:
    """The name of a row with its value of the factor or column that the target draws `along`: `GEM, task 2`."""
    return f"{named(target, key)}, {named(target, target['along'])} {value:g}"


def duration(seconds: float) -> str:
    """`4.5 s`, `45 s`, `12 min`, `3.4 h`, `1,200 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    hours = seconds / 3600
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{hours:.1f} h" if hours < 100 else f"{hours:,.0f} h"
