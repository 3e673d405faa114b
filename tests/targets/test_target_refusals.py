"""Refusals of tables, by `cases.yaml`."""

# ruff: noqa: F401, names that cases.yaml uses
import refusals
from test_cost_table import SYMBOLS, evaluate

from clpapers.targets.tex import latex

test_refused, test_unedited = refusals.tests("targets", globals())
