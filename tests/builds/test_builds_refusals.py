"""What `clpapers verify` refuses, by `cases.yaml`."""

# ruff: noqa: F401, names that cases.yaml uses and fixtures
from pathlib import Path

import refusals
from test_steps import HEAD, OUT
from test_verify import published, verify

from clpapers.archive.beginnings import SAME
from clpapers.provenance import Refusal


def said(code, capsys):
    """Raise the line that a command ended with."""
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    raise Refusal(err.removesuffix("\n"))


test_refused, _ = refusals.tests("builds", globals())
