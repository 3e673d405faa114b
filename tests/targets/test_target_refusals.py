"""Refusals of tables, by `cases.yaml`."""

# ruff: noqa: F401, names that cases.yaml uses
import refusals
from rendering import figure
from test_cost_table import PRINTED, SYMBOLS, evaluate, shown

from clpapers.targets import diagram
from clpapers.targets.tex import latex

test_refused, test_unedited = refusals.tests("targets", globals())
