"""A small project built in this process, job by job, with a selection among its targets."""

import os
import shutil
from pathlib import Path

import pytest
from workflow.project import Project

from clpapers import cli
from clpapers.config.plan import Plan
from clpapers.config.settings import all_papers
from clpapers.graph import jobs

SELECTION = """\
selection:
  use: cross_validated
  metric: online_accuracy
  seeds: 70-70
  datasets: {mnist: {}}
  grid: {er: {budget.learning_rate: [1.0e-9, 0.1]}}
targets:
  table3:
    title: Table 3
    caption: The search.
    section: "1"
    kind: table
    measure: selection
    render: selection_table
    grid: {dataset: [mnist], learner: [er]}
"""


def build(plan):
    """Make everything that the paper `mini` asks for, each file after those that it is made of."""
    wanted = jobs.ancestors(plan, [target for target in plan.targets.values() if target.paper == "mini"])
    index = Path("results/mini/runs/index.csv")
    left = [*wanted.values(), jobs.job_of(plan, index)]
    while left:
        ready = [job for job in left if all(path.exists() for path in job.inputs)]
        assert ready, [job.outputs for job in left]
        for job in ready:
            assert cli.main([job.command, "--out", str(job.outputs[0])]) == 0
            left.remove(job)


def project_in(place):
    """The folder of the project in `place`, built."""
    project = Project.create(place / "project")
    project.edit("config/papers/mini.yaml", "targets:\n", SELECTION)
    before = Path.cwd()
    os.chdir(project.folder)
    try:
        jobs._at_paper_scale.cache_clear()
        build(Plan("mini", all_papers()))
    finally:
        os.chdir(before)
    return project.folder


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """The folder of the project, built; not to be changed."""
    return project_in(tmp_path_factory.mktemp("report"))


@pytest.fixture
def here(made, tmp_path, monkeypatch):
    """A copy of its results and configuration, as the working folder."""
    for part in ("results", "config", "workflow"):
        shutil.copytree(made / part, tmp_path / part)
    monkeypatch.chdir(tmp_path)
    jobs._at_paper_scale.cache_clear()
    return tmp_path
