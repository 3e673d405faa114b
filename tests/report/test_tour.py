"""The tour: what its page shows is made, and its notebook runs, cell by cell, away from the project."""

import os
import re
from pathlib import Path

import matplotlib as mpl
import nbformat
import pytest
from world import Project
from world.published import make

from clpapers import provenance
from clpapers.config.plan import Plan

ROOT = Path(__file__).parents[2]
NOTEBOOK = nbformat.read(ROOT / "docs/tour.ipynb", as_version=4)
CODE = [cell.source for cell in NOTEBOOK.cells if cell.cell_type == "code"]


def test_it_is_a_valid_notebook_with_its_outputs():
    nbformat.validate(NOTEBOOK)
    kinds = {kind for cell in NOTEBOOK.cells for output in cell.get("outputs", []) for kind in output.get("data", {})}
    assert {"text/html", "image/png"} <= kinds
    assert not any(output.get("name") == "stderr" for cell in NOTEBOOK.cells for output in cell.get("outputs", []))


def test_the_page_has_the_digests_of_what_is_drawn_and_no_processor_rounds(tmp_path, monkeypatch):
    page = (ROOT / "docs/tour.md").read_text()
    shown = re.findall(r"^ +(results/smoke/(?:datasets|streams)/\S+)  ([0-9a-f]{12})$", page, re.M)
    assert len(shown) == 3
    project = Project.create(tmp_path / "project", papers=True)
    monkeypatch.chdir(project.folder)
    for file, _ in shown:
        make(Plan("smoke", ["stf"]), Path(file))
    assert [(file, provenance.sha256(Path(file))[:12]) for file, _ in shown] == shown


def test_every_cell_runs_in_any_folder(tmp_path, monkeypatch):
    """With the published numbers; DER++ is first of seven on CIFAR-10, as docs/own_method.md has it of eight."""
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    with mpl.rc_context({"backend": "agg"}):
        for number, source in enumerate(CODE):
            exec(compile(source, f"docs/tour.ipynb, code {number}", "exec"), names)
    assert os.listdir() == ["streams"]
    printed = (ROOT / "config/reported/stf.csv").read_text().count("\nstf,table1,")
    assert 0 < len(names["compared"]) <= printed
    assert {axes.get_title() for axes in names["figure"].axes.flat} == {
        f"metric = {metric}" for metric in ("final_accuracy", "average_information_retention")
    }
    assert names["agreement"].between(-1, 1).all()
    assert names["place"]["rank"].idxmin() == "mine"
    assert len(names["place"]) == 7
    (cell,) = (cell for cell in NOTEBOOK.cells if cell.cell_type == "code" and cell.source.startswith("accuracy ="))
    assert cell.outputs[0].data["text/plain"] == repr(names["place"].round(2))
    assert names["drawn"]["class"].value_counts().tolist() == [5000] * 10
    assert names["axes"].get_xlim()[1] == pytest.approx(50000, abs=1)
