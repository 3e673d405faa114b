"""Which tables of costs and choices of runs cannot be read, and which builds are refused, by `cases.yaml`."""

# ruff: noqa: F401, names that cases.yaml uses
import hashlib
from pathlib import Path

import pytest
import refusals
from test_costs import ROW
from test_priority import cell_of, remember, settings_of

from clpapers.budget import card_costs, costs
from clpapers.builds.preparation import prepare
from clpapers.config import selected_runs


@pytest.fixture
def table(tmp_path):
    """A table of costs, and the schemas."""
    (tmp_path / "costs.csv").write_text(costs.text([ROW]))


@pytest.fixture
def choice(tmp_path):
    """Write a choice of runs under the name of its own digest."""

    def written(text):
        path = tmp_path / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"
        path.write_text(text)
        return path

    return written


test_refused, test_unedited = refusals.tests("budget", globals())
