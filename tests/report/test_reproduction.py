"""The pages on what the published runs reproduce, README's blocks and the figures are what the crates give today."""

import json
import re
import shutil
from contextlib import chdir
from pathlib import Path

import pandas as pd
import pytest

from clpapers import cli
from clpapers.cli import job_context
from clpapers.config.settings import project_papers
from clpapers.report import pages, runs_table
from clpapers.report.findings import HEADING, slug
from clpapers.report.reproduction import COSTS_FIGURE, MACHINES, OWN_METHOD, README, VERDICTS, filled, write

ROOT = Path(__file__).parents[2]
FINDINGS = Path("docs/findings")
AGAIN = "`make reproduction` writes it anew"
pytestmark = pytest.mark.slow  # all runs that are published are counted, once


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A project that has nothing but its configuration, what is published, and a paper that it has taken in."""
    project = tmp_path_factory.mktemp("project")
    for part in ("config", "workflow", "docs", "examples", "results/published"):
        shutil.copytree(ROOT / part, project / part, ignore=shutil.ignore_patterns("outside"))
    (project / "config/outside/papers").mkdir(parents=True)
    text = (ROOT / "config/papers/streaming.yaml").read_text(encoding="utf-8")
    mine = text.replace("paper: streaming", "paper: mine")
    (project / "config/outside/papers/mine.yaml").write_text(mine, encoding="utf-8")
    shutil.copy(ROOT / README, project)
    with pytest.MonkeyPatch.context() as patch, chdir(project):
        patch.setattr(job_context, "CACHE", {})  # of plans, as the configuration stays
        made = write(cli.main)
    return project, made


@pytest.fixture
def page(written):
    """The text of a page on what came out, by its place."""
    texts = pages.texts(written[1].papers)
    return lambda place: texts[place]


def test_the_readme_and_the_pages_give_the_same_counts(page):
    """By paper: numbers printed and compared; of those that a training decides, how many have each grade."""
    shown = [row for row in _rows((ROOT / README).read_text(encoding="utf-8")) if "](docs/reproduction/" in row[0]]
    rows = {row[0]: [int(each) if each.isdigit() else 0 for each in row[1:]] for row in shown}
    assert len(rows) == len(project_papers())
    for paper in project_papers():
        (told,) = [row for name, row in rows.items() if name.startswith(f"[{paper}: ")]
        text = page(f"reproduction/{paper}.md")
        assert int(re.search(r"The paper prints (\d+) numbers", text)[1]) == told[0]
        compared = re.search(r"(\d+) of them are compared", text)
        assert int(compared[1] if compared else 0) == told[1]
        grades = next((row[2:] for row in _rows(text) if row[0] == "trained"), ["0"] * 5)
        assert [int(each) for each in grades] == told[3:]
        assert sum(told[3:]) == told[2]
    home = page("index.md")
    sums = [sum(row[i] for row in rows.values()) for i in range(8)]
    said = re.search(
        r"print (\d+) numbers, .* beside (\d+)\. We grade (\d+) .*: (\d+) .*, (\d+) near, (\d+) open, (\d+) differ, "
        r"and (\d+) diverge",
        home,
    )
    assert [int(each) for each in said.groups()] == sums
    explained = re.search(r"We explain (\d+) of the (\d+) that differ, and (\d+) in part; (\d+) remain", home)
    wholly, total, *others = map(int, explained.groups())
    parts = [wholly, *others]
    assert total == sum(parts) == sums[-2]


def test_counts_that_stand_beside_each_other_add_up(page):
    for paper in project_papers():
        rows = _rows(page(f"reproduction/{paper}.md"))
        for head, first in (("cause", 1), ("numbers", 1)):
            if head not in [row[0] for row in rows]:
                continue
            begin = [row[0] for row in rows].index(head)
            end = next(i for i, row in enumerate(rows) if i > begin and row[0] == "all")
            body = [[int(each) for each in row[first:] if each.isdigit()] for row in rows[begin + 2 : end]]
            assert [sum(column) for column in zip(*body)] == [int(each) for each in rows[end][first:] if each.isdigit()]


def test_each_number_that_differs_leads_to_its_cause_and_stands_below_it(page):
    """It stands there by its row, its difference and its runs."""
    links = 0
    for paper in project_papers():
        text, findings = page(f"reproduction/{paper}.md"), (ROOT / FINDINGS / f"{paper}.md").read_text(encoding="utf-8")
        sections = {slug(title) for title in HEADING.findall(findings)}
        for cell in re.findall(r'<span class="differs">(.*?)</span>', text):
            link = re.fullmatch(rf"\[differs\]\(\.\./findings/{paper}\.md#(.+)\)", cell)
            assert link, (paper, cell)
            assert link[1] in sections, (paper, link[1])
            links += 1
        told = {(row[1], *row[-2:]) for row in _rows(findings) if len(row) == 6}
        for row in (row for row in _rows(text) if "differs" in row[-1] and len(row) > 5 and row[-3].isdigit()):
            assert (row[0], row[-2].replace("\u00a0", " "), row[-3]) in told, (paper, row)
    assert links > 0


def test_the_readme_and_the_page_on_methods_of_ones_own_show_the_same_numbers():
    """Both show the papers' methods on the same streams; the page has those from outside beside them."""
    rows = _rows((ROOT / OWN_METHOD).read_text(encoding="utf-8"))
    shown = {row[0]: dict(zip(("Fin. Acc.", "Av. IR"), row[1:])) for row in rows}
    told = [row for row in _rows((ROOT / README).read_text(encoding="utf-8")) if row[1] in ("Fin. Acc.", "Av. IR")]
    assert len(told) == 12, AGAIN
    for method, metric, _, reproduced, runs, *_ in told:
        assert shown[method][metric].strip("*") == f"{reproduced} ({runs})", AGAIN
    assert sum("§" in method for method in shown) == 2


def _rows(text):
    """The lines of a page's tables, as cells."""
    lines = (line for line in text.splitlines() if line.startswith("| "))
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


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


def test_written_anew_they_are_the_same_bytes(written):
    project, made = written
    assert {path for path in made.files if path.parts[0] != "results"} == {
        *(README, MACHINES, VERDICTS, OWN_METHOD, COSTS_FIGURE, Path("docs", pages.PICTURE)),
        *(FINDINGS / f"{paper}.md" for paper in project_papers()),
    }
    assert {path for path in made.files if not same(project / path, ROOT / path)} == set(), AGAIN


def test_every_published_run_stands_in_its_list_with_its_crate_and_behind_a_number(written):
    runs = pd.read_csv(ROOT / runs_table.FILE)
    crates = {crate.name for crate in (ROOT / "results/published").glob("*.zip")}
    assert {*runs["crate"]} == crates
    assert not runs["file"].duplicated().any()
    data = json.loads(runs_table.script(written[1].papers).partition("=")[2].rstrip(";\n"))
    assert {file[0] for file in data["files"]} < {*runs["file"]}  # others stand behind targets of no paper
    assert {place.partition(" | ")[0] for place, *_ in data["rows"]} == {
        section.name for paper in written[1].papers for section in paper.targets if section.runs
    }
