"""Each fenced command of README and docs/ runs, in the order of the pages, and prints what its page shows.

A reader with a home of their own types them in a copy of the built project. What would train for long is planned alone
(`-n`); nothing else is replaced but names that stand for the reader's own files.
"""

import re
import shutil
from pathlib import Path

import pytest
import yaml
from fences import Command, blocks, commands, pages

ROOT = Path(__file__).parents[2]
PAGES = [page for page in pages(ROOT) if commands(page)]
REAL = (  # of Snakemake's commands: those that train nothing, or for seconds
    "snakemake all --cores",
    "snakemake report --cores",
    "snakemake stf/figure2 --cores",
    "snakemake .*scale=smoke",
    "snakemake results/smoke/.*",
    "snakemake mine --cores .*",
    "snakemake .*papers=stf hours=0",
)
INSTEAD = {  # names of the reader's own, and hours that are too long for a test
    r"/home/me/": "~/",
    r"make\b": "make -n",
    r"(clpapers verify) --hours 1\b": r"\1 --hours 0.002",
}
NOT_HERE = {  # why a command runs in no walk
    r"docker .*|kubectl .*": "it needs a cluster",
    r"clpapers pack .*|tar xf bundle.tgz.*": "it fetches large sets; tests/workflow/test_bundle.py does both",
    r"PYTHONPATH=src python -m clpapers.cli train --jobs .*": "it trains on a node; tests/workflow/test_bundle.py does",
    r"python docs/findings/(card_pairs|desiderata_\w+|rules_ewc)\.py.*": "it trains for an hour, or on such sets",
    r"clpapers verify --of-each .*": "`make` has run it",
    r"clpapers verify --steps .*": "it takes half an hour; tests/builds/test_steps.py takes some steps",
    r"clpapers publish": "it packs two thousand runs, for minutes; tests/report/test_publish.py packs some",
}
TABLES = {  # whose rows a page shows
    "docs/own_data.md": "targets/mine/table1.md",
    "docs/own_method.md": "targets/stf/table1.md",
}


@pytest.fixture(scope="module")
def reader(copied, installed, tmp_path_factory):
    home = tmp_path_factory.mktemp("reader")
    project = copied(home / "clpapers")
    (project / "DATA").mkdir()
    for crate in ("results.zip", "rules.zip"):  # as they come from elsewhere
        shutil.copy(project / "results/published/rules.zip", project / crate)
    return installed(project, home)  # a home's commands write into the project that the environment has


def replaced(text: str) -> str:
    for pattern, instead in INSTEAD.items():
        text = re.sub(rf"(?<!\S){pattern}" if "/" not in pattern else pattern, instead, text)
    return text


def is_real(text: str) -> bool:
    return "snakemake " not in text or any(re.fullmatch(pattern, text) for pattern in REAL)


def plans(found: list[Command]) -> list[str]:
    """Dry runs of the commands that are not run: those with the same options in one."""
    targets: dict[str, list[str]] = {}
    for text, _ in found:
        before, _, words = text.partition("snakemake ")
        names, *options = re.split(r" (?=--)", words, maxsplit=1)
        targets.setdefault(f"{before}|{''.join(options)}", []).append(names)
    split = [(*key.split("|"), names) for key, names in targets.items()]
    return [f"{before}snakemake {' '.join(names)} {options} -n" for before, options, names in split]


TIME = r"\b\d[\d.,]* (ms|s|min|h)\b"
AFFORDED = r"\b\d+(?= more, predicted| runs of methods from outside)"  # by hours, which buy more on a faster machine
ROUNDED = r"(?<=\.)(csv|json)  [0-9a-f]{12}$"  # a digest of what each processor rounds its own way


def timeless(line: str) -> str:
    """A line of a session without what differs from machine to machine (a best value's `**` too), and the spaces."""
    return re.sub(r"\s+", " ", re.sub(f"{TIME}|{AFFORDED}|{ROUNDED}", "#", line.replace("**", ""))).strip()


def is_told(line: str, told: list[str]) -> bool:
    """Whether a page's line was printed; an … at its end stands for the rest."""
    return any(each.startswith(line[:-1]) if line.endswith("…") else each == line for each in told)


def use_the_images(paper: Path, page: Path) -> None:
    """Edit a new paper as the page says: its lines replace those of the file, and MNIST goes."""
    (block,) = blocks(page, "yaml")
    lines, edited = yaml.safe_load(block), yaml.safe_load(paper.read_text(encoding="utf-8"))
    edited["datasets"] = lines["datasets"]
    edited["targets"]["table1"] |= lines["targets"]["table1"]
    del edited["scales"]["smoke"]["datasets"]["mnist"]
    paper.write_text(yaml.safe_dump(edited, sort_keys=False), encoding="utf-8")


def measured_rows(file: Path) -> list[list[str]]:
    """The cells of a Markdown table's lines that have an interval, without what Markdown needs to show them."""
    lines = [re.sub(r"[\\\\*]", "", line) for line in file.read_text(encoding="utf-8").splitlines()]
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in lines
        if re.match(r"\|.*(±|\[[−+]?\d+\.\d+, )", line)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_commands_of_a_page_run(reader, page):
    asked = [command._replace(text=replaced(command.text)) for command in commands(page)]
    here = [command for command in asked if not any(re.fullmatch(pattern, command.text) for pattern in NOT_HERE)]
    for command in here:
        if not is_real(command.text):
            continue
        at_home = re.match(r"clpapers (new method|try|next .*--methods)\b", command.text)
        printed = reader._replace(folder=reader.home if at_home else reader.folder).ok(command.text)
        told = [timeless(line) for line in printed.replace(str(reader.home), "/home/me").splitlines()]
        lacking = [line for line in map(timeless, command.shown) if not is_told(line, told)]
        assert lacking == [], f"$ {command.text}\n{printed}"
        if "new paper mine" in command.text:
            use_the_images(reader.home / "own/mine.yaml", page)
    for plan in plans([command for command in here if not is_real(command.text)]):
        reader.ok(plan)
    name = page.relative_to(ROOT).as_posix()
    if table := TABLES.get(name):
        made = measured_rows(reader.folder / "results/paper" / table)
        assert [row for row in measured_rows(page) if not any(set(row) <= set(each) for each in made)] == []
    if name == "docs/streams.md":
        size = (reader.folder / "streams/cifar10/stf-0.057735/seed0.npz").stat().st_size
        assert f" {size:,} bytes for\nCIFAR-10" in page.read_text(encoding="utf-8")


def test_the_audit_passes_on_all_that_the_commands_made(reader):
    """At both scales; every learner has been trained on stand-ins."""
    for scale in ("paper", "smoke"):
        assert " 0 failures" in reader.ok(f"clpapers audit --scale {scale}")
