"""Which claims and which files the graph of jobs refuses, by `cases.yaml`."""

# ruff: noqa: F401, names that cases.yaml uses and fixtures
from pathlib import Path

import pytest
import refusals
import yaml
from test_claims import CLAIM, ROOT, WRITTEN
from test_jobs import run
from test_user_methods import AUTHORS, FILE

from clpapers.config.plan import Plan
from clpapers.config.settings import all_papers
from clpapers.graph import claims, jobs, user_methods


@pytest.fixture
def claimed(configured):
    """A folder with config/, whose claims are one of `stf`."""
    Path("config/claims.yaml").write_text(CLAIM, encoding="utf-8")


def claims_of_stf():
    return jobs.claims_of(Plan("paper", ["stf"]))["stf"]


test_refused, test_unedited = refusals.tests("graph", globals())
