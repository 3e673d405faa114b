"""The audit, the lineage and records refuse what they cannot tell of, by `cases.yaml`."""

# ruff: noqa: F401, names that cases.yaml uses
import os
from pathlib import Path

import pytest
import refusals
from test_provenance import chain, make

from clpapers.audit.lineage import of_cell
from clpapers.cli import main
from clpapers.config.plan import Plan
from clpapers.provenance import Refusal, code_digest, read_record

TABLE = "results/mini/targets/mini/table1.csv"


@pytest.fixture
def table(pristine, tmp_path, monkeypatch):
    """A project of which nothing is there but a table."""
    monkeypatch.chdir(tmp_path)
    for part in ("config", "workflow"):
        (tmp_path / part).symlink_to(pristine.folder / part)
    make("targets", TABLE, content="row,column\nER,MNIST\nACE,MNIST\nRandom guess (expected),MNIST\n")


def edited(file):
    """Edit a text by hand."""
    Path(file).write_text(Path(file).read_text().replace("runs", "rnus", 1))


def said(code, capsys):
    """Raise the line that a command ended with."""
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    raise Refusal(err.removesuffix("\n"))


test_refused, test_unedited = refusals.tests("audit", globals())
