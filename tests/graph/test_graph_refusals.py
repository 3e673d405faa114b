"""Which claims and which files the graph of jobs refuses, by `cases.yaml`."""

# ruff: noqa: F401, names that cases.yaml uses and fixtures
import shutil
from pathlib import Path

import pytest
import refusals
from test_claims import CLAIM, ROOT, WRITTEN
from test_jobs import plan, run
from test_user_methods import AUTHORS, FILE

from clpapers.config.plan import Plan
from clpapers.graph import claims, jobs, user_methods


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A copy of config/ and its schemas."""
    for folder in ("config", "workflow"):
        shutil.copytree(ROOT / folder, (place := tmp_path_factory.getbasetemp() / "claimed") / folder)
    return place


@pytest.fixture
def claimed(project, tmp_path):
    """A folder with config/, whose claims are one of `stf`."""
    for folder in ("config", "workflow"):
        shutil.copytree(project / folder, tmp_path / folder)
    (tmp_path / "config/claims.yaml").write_text(CLAIM, encoding="utf-8")


def claims_of_stf():
    return jobs.claims_of(Plan("paper", ["stf"]))["stf"]


def parts(**changed):
    """The parts of a claim of `agem` with other words."""
    targets = Plan("paper", ["agem"]).targets
    return list(claims._Reader(targets, targets, "agem", "ours", WRITTEN["agem"]["best_cifar"] | changed).parts())


test_refused, test_unedited = refusals.tests("graph", globals())
