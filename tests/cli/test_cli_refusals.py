"""What the commands refuse, by `cases.yaml`."""

# ruff: noqa: F401, names that cases.yaml uses and fixtures
import errno
import os
from pathlib import Path

import refusals
from test_commands import project as at_hand
from test_new import here, new
from test_snakemake import elsewhere, failing, folder, project

from clpapers.cli import main
from clpapers.cli.snakemake import enter_project, prepare, refuse_unknown, resolved
from clpapers.provenance import Refusal


def said(code, capsys):
    """Raise the line that a command ended with."""
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    raise Refusal(err.removesuffix("\n"))


test_refused, test_unedited = refusals.tests("cli", globals())
