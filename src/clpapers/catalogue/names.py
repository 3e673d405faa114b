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
