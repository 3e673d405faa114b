"""Questions on numbers that are not there, pages that cannot be written and runs that cannot be published."""

# ruff: noqa: F401, names that cases.yaml uses
import os
import zipfile
from pathlib import Path

import pytest
import refusals
from test_findings import PAGE, filled
from world.published import crate, git, runs

from clpapers import results
from clpapers.cli import main
from clpapers.config.plan import Plan
from clpapers.provenance import Refusal
from clpapers.report import reproduction
from clpapers.report.publish import publish

pytestmark = pytest.mark.workflow  # which builds what `published` has
TABLE1 = "mini/table1"


@pytest.fixture
def at_hand(pristine, tmp_path):
    """A project with nothing built."""
    for part in ("config", "workflow"):
        (tmp_path / part).symlink_to(pristine.folder / part)


@pytest.fixture
def published(small_project):
    """A project whose runs are published."""
    publish(Plan("mini", ["mini"]), ["mini"])
    crate().rename(crate().with_name("mini.zip"))


def said(code, capsys):
    """Raise the line that a command ended with."""
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    raise Refusal(err.removesuffix("\n"))


test_refused, test_unedited = refusals.tests("report", globals())
