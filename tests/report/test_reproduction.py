"""The pages on what the published runs reproduce, README's blocks and the figure are what the crates give today."""

import itertools
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest

from clpapers import cli
from clpapers.archive.imported import published
from clpapers.cli import task
from clpapers.config.settings import own_papers
from clpapers.report.findings import MARK
from clpapers.report.reproduction import (
    COSTS,
    COSTS_FIGURE,
    FIGURE,
    FINDINGS,
    FOLDER,
    FOREST,
    OWN,
    README,
    SHOWN_FIGURE,
    VERDICTS,
    filled,
    fingerprint,
    write,
)

ROOT = Path(__file__).parents[2]
AGAIN = "`make reproduction` writes docs/reproduction anew, and README's tables"


@pytest.fixture
def project(monkeypatch):
    monkeypatch.chdir(ROOT)
    return ROOT


def test_every_paper_has_a_page_that_names_its_crate_as_it_is(project):
    pages = {page.stem: page.read_text(encoding="utf-8") for page in FOLDER.glob("*.md")}
    assert sorted(pages) == sorted(own_papers())
    for paper, text in pages.items():
        named = re.findall(r"manifest SHA-256 `([0-9a-f]{64})`", text)
        assert named == [fingerprint(crate) for crate in published("paper", paper)], AGAIN
        assert bool(named) != ("No run of it is published yet" in text), AGAIN


def test_the_readme_and_the_pages_give_the_same_counts(project):
    """By paper: numbers printed, compared, by a training; of these by grade."""
    rows = {row[0]: row[1:8] for row in _rows(README.read_text(encoding="utf-8")) if len(row) == 9}
    told = {paper: next(row for name, row in rows.items() if name.startswith(f"[`{paper}`]")) for paper in own_papers()}
    for paper, counts in told.items():
        pages = _rows((FOLDER / f"{paper}.md").read_text(encoding="utf-8"))
        heads = ["printed", "compared", "trained, each once", "same"]
        found = [after[:7] for row, (_, after) in zip(pages, itertools.pairwise(pages[1:])) if row[:4] == heads]
        assert found == [counts] * any((ROOT / "results/published").glob(f"{paper}*.zip"))
        trained, grades = int(counts[2]), [int(each) for each in counts[3:7]]
        assert trained == sum(grades) <= int(counts[1]) <= int(counts[0])
    assert rows["all"] == [f"{sum(int(each[i]) for each in told.values())}" for i in range(7)]


def test_each_number_that_differs_stands_in_the_findings(project):
    """By its row and its difference, below one of the page's marks."""
    for paper in own_papers():
        page, findings = ((folder / f"{paper}.md").read_text(encoding="utf-8") for folder in (FOLDER, FINDINGS))
        told = {tuple(row) for mark in MARK.finditer(findings) for row in _rows(mark[0])}
        for row in (row for row in _rows(page) if row[-1].startswith("**differs")):
            difference, runs = row[-2], row[-3]
            assert [line for line in told if line[1] == row[0] and line[-2:] == (difference, runs)] != [], (paper, row)


def test_the_readme_and_the_page_on_methods_of_ones_own_show_the_same_numbers(project):
    """Of the papers' methods on the same streams; beside them those from outside, which README has not."""
    shown = {row[0]: dict(zip(("Fin. Acc.", "Av. IR"), row[1:])) for row in _rows(OWN.read_text(encoding="utf-8"))}
    told = [row for row in _rows(README.read_text(encoding="utf-8")) if row[1] in ("Fin. Acc.", "Av. IR")]
    assert len(told) == 12, AGAIN
    for method, metric, _, reproduced, runs, *_ in told:
        assert shown[method][metric].strip("*") == f"{reproduced} ({runs})", AGAIN
    assert sum("§" in method for method in shown) == 2


def _rows(text):
    """The lines of a page's tables, as cells."""
    lines = (line for line in text.splitlines() if line.startswith("| "))
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_a_readme_without_its_marks_is_refused():
    with pytest.raises(ValueError, match="status: `make reproduction` writes this -->: not there once"):
        filled(README, "# clpapers\n", {"status": "| a |\n"})


def test_only_what_is_marked_is_replaced():
    marks = "<!-- a: `make reproduction` writes this -->\n\n{}\n<!-- a ends -->\n"
    assert (
        filled(README, "x\n" + marks.format("old\n") + "y\n", {"a": "new\n"}) == "x\n" + marks.format("new\n") + "y\n"
    )


def same(path, other):
    """Byte for byte; of a CSV the numbers to twelve digits, since processors round differently."""
    if path.suffix != ".csv":
        return path.read_bytes() == other.read_bytes()
    made, there = (pd.read_csv(file, dtype_backend="numpy_nullable") for file in (path, other))
    try:
        pd.testing.assert_frame_equal(made, there, rtol=1e-12, atol=0)
    except AssertionError:
        return False
    return True


@pytest.mark.slow
def test_written_anew_they_are_the_same_bytes(tmp_path, monkeypatch):
    """In a project that has nothing but its configuration, what is published, and a paper that it has taken in."""
    (tmp_path / "workflow").symlink_to(ROOT / "workflow")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    shutil.copytree(ROOT / "config", tmp_path / "config", ignore=shutil.ignore_patterns("outside"))
    (tmp_path / "config/outside/papers").mkdir(parents=True)
    text = (ROOT / "config/papers/streaming.yaml").read_text(encoding="utf-8")
    mine = text.replace("paper: streaming", "paper: mine")
    (tmp_path / "config/outside/papers/mine.yaml").write_text(mine, encoding="utf-8")
    shutil.copytree(ROOT / "results/published", tmp_path / "results/published")
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copy(ROOT / README, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(task, "CACHE", {})  # of plans, as the configuration stays
    made = write(cli.main)
    assert {path for path in made if path.parts[0] != "results"} == {
        README,
        COSTS,
        VERDICTS,
        OWN,
        FIGURE,
        *(
            Path(FOREST.format(paper=paper)) for paper in ("agem", "desiderata", "rules", "stf")
        ),  # streaming compares none
        COSTS_FIGURE,
        SHOWN_FIGURE,
        *(folder / f"{paper}.md" for folder in (FINDINGS, FOLDER) for paper in own_papers()),
    }
    assert {path for path in made if not same(path, ROOT / path)} == set(), AGAIN
