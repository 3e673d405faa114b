"""Runs of a method from outside are published only where that is asked for, and then with its file."""

import zipfile
from pathlib import Path

import pytest
from world.published import crate

from clpapers import cli
from clpapers.archive.check import check
from clpapers.audit.audit import findings
from clpapers.cli.new import TEMPLATES
from clpapers.config import selected_runs
from clpapers.config.paths import method_path
from clpapers.config.plan import Plan
from clpapers.graph import user_methods
from clpapers.report.publish import publish


@pytest.fixture
def trained(small_project, tmp_path, monkeypatch):
    """The plan with a method from outside, of which all runs are trained."""
    file = tmp_path / "mine.py"
    file.write_text((TEMPLATES / "method.py").read_text(encoding="utf-8"), encoding="utf-8")
    copy = method_path("mini", "mine", user_methods.check(file))
    assert cli.main(["method", "--out", str(copy), "--file", str(file)]) == 0
    plan = Plan("mini", ["mini"], methods=[str(copy)])
    chosen = selected_runs.SelectedRuns({}, {}, {}, plan.methods).write("mini")
    (cell,) = (cell for cell in plan.cells.values() if cell.method)
    for path in plan.results(cell):
        assert cli.main(["train", "--out", str(path), "--runs", str(chosen)]) == 0
    return plan


def test_by_default_they_stay_out(trained):
    (line,) = publish(Plan("mini", ["mini"]), ["mini"])
    assert f"{crate()}: 4 new runs, " in line


def test_asked_for_they_go_in_with_the_file(trained):
    (line,) = publish(trained, ["mini"])
    assert f"{crate()}: 6 new runs, " in line
    assert line.endswith("6 runs of 3 cells")
    assert check(crate())[0] == []
    with zipfile.ZipFile(crate()) as archive:
        assert archive.read(trained.methods[0]) == Path(trained.methods[0]).read_bytes()


def test_the_audit_finds_nothing_wrong_with_them_and_tells_of_an_edited_copy(trained):
    plan = Plan("mini", ["mini"])
    assert findings(plan) == []
    with open(trained.methods[0], "a") as copy:
        copy.write("# edited\n")
    assert trained.methods[0] in {finding.file for finding in findings(plan)}
