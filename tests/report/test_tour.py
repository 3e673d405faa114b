"""The tour: what its page shows is made, and its notebook runs, cell by cell, on a small build of what it names."""

import os
import re
from pathlib import Path

import matplotlib as mpl
import nbformat
import pytest
import yaml
from workflow.project import Project

from clpapers import cli, jobs, provenance
from clpapers.config.plan import Plan

ROOT = Path(__file__).parents[2]
NOTEBOOK = nbformat.read(ROOT / "docs/tour.ipynb", as_version=4)
CODE = [cell.source for cell in NOTEBOOK.cells if cell.cell_type == "code"]


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A folder with the notebook's targets, built at the scale `smoke` on one data set, as the working folder."""
    project = Project.create(tmp_path_factory.mktemp("tour") / "project")
    paper = project.folder / "config/papers/stf.yaml"
    all_four = r"dataset: \[emnist, cifar10, cifar100, tiny_imagenet\]"
    text, count = re.subn(all_four, "dataset: [cifar10]", paper.read_text(), count=2)
    assert count == 2  # Table 1 and Figure 3
    paper.write_text(text)
    before = Path.cwd()
    os.chdir(project.folder)
    jobs._at_paper_scale.cache_clear()
    plan = Plan("smoke", ["stf"])
    wanted = {name: plan.targets[name] for name in re.findall(r'results\.\w+\("(stf/\w+)"', "\n".join(CODE))}
    left = list(jobs.behind(plan, wanted.values()).values())
    while left:
        ready = [job for job in left if all(path.exists() for path in job.inputs)]
        for job in ready:
            assert cli.main([job.command, "--out", str(job.outputs[0])]) == 0
            left.remove(job)
    os.chdir(project.folder)
    yield project.folder
    os.chdir(before)
    jobs._at_paper_scale.cache_clear()


def test_it_is_a_valid_notebook_without_outputs():
    nbformat.validate(NOTEBOOK)
    assert [cell.get("outputs") for cell in NOTEBOOK.cells if cell.cell_type == "code" and cell.outputs] == []


def test_the_target_of_a_method_of_ones_own_is_one(here):
    (said,) = (cell.source for cell in NOTEBOOK.cells if cell.source.startswith("## Adding a method"))
    block = yaml.safe_load("\n".join(re.findall(r"^    (.*)", said, re.M)))
    file = here / "config/papers/stf.yaml"
    text = file.read_text()
    content = yaml.safe_load(text)
    content["learners"] |= {"mine": block["learners"]["mine"] | {"method": "er"}}  # no file of it is here
    content["targets"] |= block["targets"]
    try:
        file.write_text(yaml.safe_dump(content))
        target = Plan("smoke", ["stf"]).targets["stf/mine"]
    finally:
        file.write_text(text)
    assert [factors["learner"] for factors, _ in target.cells] == ["er", "mine"]
    assert target.spec["extra"]


def test_the_page_has_the_digests_of_what_is_drawn_and_no_processor_rounds(here):
    page = (ROOT / "docs/tour.md").read_text()
    shown = re.findall(r"^ +(results/smoke/(?:datasets|streams)/\S+)  ([0-9a-f]{12})$", page, re.M)
    assert len(shown) == 3
    assert [(file, provenance.sha256(Path(file))[:12]) for file, _ in shown] == shown


def test_every_cell_runs(here):
    """At `smoke`, from the folder docs/, as it stands there."""
    (here / "docs").mkdir()
    os.chdir(here / "docs")
    assert sum('SCALE = "paper"' in source for source in CODE) == 1
    names: dict = {}
    with mpl.rc_context({"backend": "agg"}):
        for number, source in enumerate(CODE):
            own = source.replace('SCALE = "paper"', 'SCALE = "smoke"')
            exec(compile(own, f"docs/tour.ipynb, code {number}", "exec"), names)
    assert Path.cwd() == here
    learners = {"er", "mir", "cbrs", "gdumb", "gmed", "ace"}
    assert set(names["table1"]["learner"]) == set(names["runs"]["learner.name"]) == learners
    assert set(names["figure3"]["order.mu_sigma_factor"]) == {0.5, 1, 2, 4}
    assert names["figure"].axes_dict.keys() == {"cifar10"}
    assert len(names["compared"]) == 48  # the paper's numbers on all its data sets
    assert names["agreement"].index.nlevels == 2
    assert (names["wins"].groupby("dataset").sum() >= 1).all(axis=None)  # somebody wins on every stream
    assert names["behind"]["path"].iloc[-1].startswith(("results/", "config/"))
