"""README and the pages of docs/ name only what there is: paths, links, commands, options, targets and cells."""

import itertools
import re
from pathlib import Path

import pytest

from clpapers.catalogue import methods
from clpapers.catalogue import metrics as catalogue
from clpapers.cli import main
from clpapers.cli.commands import MAKING
from clpapers.config.plan import Plan
from clpapers.config.schemas import schema
from clpapers.config.settings import project_papers
from clpapers.report import reference

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "config/README.md"], key=lambda page: page.as_posix()
)
FOLDERS = r"src|config|docs|tests|rules(?=/\w+\.smk)|workflow|profiles|envs|benchmarks"  # rules/table1 is a target
PLACEHOLDER = re.compile(r"[<>…*$]|[A-Z]{3,}\b(?!\.md)")  # config/papers/NAME.yaml, profiles/…


def page_id(page):
    return page.relative_to(ROOT).as_posix()


def code(page):
    """Every code span and every line of a code block of a page, lines that end in a backslash joined."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^( *)```.*?\n(.*?)^\1```", text, re.M | re.S)
    lines = [line.strip().removeprefix("$ ") for _, block in blocks for line in block.replace("\\\n", " ").splitlines()]
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"^( *)```.*?^\1```", "", text, flags=re.M | re.S))
    return lines + spans


def expanded(word):
    """A word of the shell with its braces expanded: `{a,b}.md` is `a.md` and `b.md`."""
    parts = re.split(r"\{([^{}]*)\}", word)
    choices = [part.split(",") if i % 2 else [part] for i, part in enumerate(parts)]
    return ["".join(chosen) for chosen in itertools.product(*choices)]


@pytest.fixture(scope="module")
def plans():
    scales = [file.stem for file in (ROOT / "config/scales").glob("*.yaml")]
    return {scale: Plan(scale, project_papers()) for scale in scales}


def words_of(page, start):
    """The words of code that begin so, without placeholders, braces expanded."""
    words = {re.sub(r":\d+$", "", word.strip("`,;:()\"'")) for span in code(page) for word in span.split()}
    words = {word for word in words if re.match(start, word) and not PLACEHOLDER.search(word)}
    return [path for word in words for path in expanded(word)]


def used(page, pattern):
    """The first group, or all, of each span of code that has a form."""
    return [match[match.lastindex or 0] for span in code(page) if (match := re.fullmatch(pattern, span))]


def is_planned(plans, path):
    """Whether a path below results/ is of a scale, and of a target or a cell, that there is."""
    scale, stage, *parts = Path(path).parts[1:]
    if scale in plans and stage in ("targets", "metrics") and len(parts) == 2:
        name = parts[1].partition(".")[0]
        return f"{parts[0]}/{name}" in plans[scale].targets or name == "claims"
    return scale in plans and (stage != "runs" or len(parts) != 4 or parts[2][-10:] in plans[scale].cells)


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_a_page_names_only_links_paths_goals_targets_and_results_that_there_are(page, plans):
    links = re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
    local = [link.partition("#")[0] for link in links if not re.match(r"https?:|#", link)]
    assert [link for link in local if not (page.parent / link).exists()] == []
    assert [path for path in words_of(page, rf"({FOLDERS})/") if not (ROOT / path).exists()] == []
    results = words_of(page, r"results/(?!published/)\w+/\w")
    assert [path for path in results if not is_planned(plans, path)] == []
    targets = plans["paper"].targets
    papers = "|".join({name.partition("/")[0] for name in targets})
    assert [name for name in used(page, rf"(?:{papers})/(?!\S*[.*])\w+") if name not in targets] == []
    goals = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    assert [goal for goal in used(page, r"make +([a-z]+)(?:\s+#.*)?") if goal not in goals] == []


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_command_of_clpapers_is_one_and_has_its_options(page, capsys):
    def help_of(*command):
        with pytest.raises(SystemExit):
            main([*command, "--help"])
        return capsys.readouterr().out

    known = {*re.findall(r"^ {4}(\w+)\b", help_of(), re.M), *(name for name, *_ in MAKING)}
    for line in used(page, r"clpapers ((?![A-Z<…])\S.*)"):
        command, *words = line.partition("#")[0].split()
        assert command in known
        assert {word for word in words if word.startswith("--")} <= {*re.findall(r"--[\w-]+", help_of(command))}, line


def test_what_the_tour_shows_of_a_cell_is_what_is_printed(monkeypatch, capsys):
    """Lines of the papers' files move with every edit above them."""
    monkeypatch.chdir(ROOT)
    text = (ROOT / "docs/tour.md").read_text()
    command, shown = re.search(r"^\$ clpapers (cell .*)\n([^`]*)```", text, re.M).groups()
    assert main(command.split()) == 0
    assert set(shown.splitlines()) <= set(capsys.readouterr().out.splitlines())


def test_the_pages_that_are_made_have_every_target_and_every_key(plans, monkeypatch):
    monkeypatch.chdir(ROOT)
    plan = plans["paper"]
    pages = reference.texts(plan)
    expected = []
    for name, target in plan.targets.items():
        points = [cell for _, search in target.selections for _, cell in search.points]
        runs = {(cell.hash, seed) for _, cell in target.cells for seed in target.seeds}
        runs |= {(cell.hash, seed) for cell in points for seed in plan.seeds_of(cell)}
        expected.append([name, f"`snakemake {target.outputs[0]} --cores`", f"{len(runs):,}"])
    rows = [[cell.strip() for cell in line.split("|")[1:]] for line in pages["targets.md"].splitlines() if "|" in line]
    assert sorted(row[:3] for row in rows if "/" in row[0]) == sorted(expected)
    shown = {*re.findall(r"`([^`\n]+)`", pages["keys.md"])}
    assert {*schema("paper")["properties"], *schema("config")["properties"], *catalogue.metrics()} - {
        "defaults"
    } <= shown
    assert {option for method in methods.methods().values() for option in method.options} <= shown


def test_readme_and_the_pages_themselves_have_one_name_for_each_page():
    """By the links at README's end, to pages and a notebook."""
    last = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Read on")[2]
    links = re.findall(r"\[([^]]+)\]\(([\w/]+\.(?:md|ipynb))\)", last)
    titles = {path: re.search(r"# ([^\n\\]+)", (ROOT / path).read_text(encoding="utf-8"))[1] for _, path in links}
    assert len(links) > 10
    assert {path: name for name, path in links} == titles
