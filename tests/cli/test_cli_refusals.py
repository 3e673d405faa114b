"""The refusals of commands, by `cases.yaml`."""

# ruff: noqa: F401, names that cases.yaml uses and fixtures
import os
from pathlib import Path

import refusals
from test_commands import said_by
from test_new import here, new
from test_snakemake import elsewhere, folder, project

from clpapers.cli import main
from clpapers.cli.snakemake import enter_project, prepare, refuse_unknown, resolved
from clpapers.provenance import Refusal


def said(code, capsys):
    """Raise the line that a command ended with."""
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    raise Refusal(err.removesuffix("\n"))


def refused(arguments, capsys):
    """Raise the line that a command ended with, below the usage that argparse shows."""
    code, out, (*usage, line) = said_by(capsys, *arguments.split(" "))
    assert (code, out) == (2, "")
    assert all(each.startswith(("usage: ", " ")) for each in usage)
    raise Refusal(line)


test_refused, test_unedited = refusals.tests("cli", globals())
