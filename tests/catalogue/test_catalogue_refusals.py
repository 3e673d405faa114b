"""What a method may not declare, by `cases.yaml`."""

# ruff: noqa: F401, names that cases.yaml uses
from pathlib import Path

import refusals
from test_methods import file

from clpapers.catalogue.methods import read

test_refused, test_unedited = refusals.tests("catalogue", globals())
