"""A method from outside: its row and no other trains, an edit trains it anew, and a mistake is one line."""

import csv
import json
import re
import shlex

import pytest

from clpapers.cli.new import TEMPLATES
from clpapers.provenance import sha256

TABLE = "results/mini/targets/mini/table1"
FILES = [f"{TABLE}.csv", f"{TABLE}.reported.csv", f"{TABLE}.paired.csv"]


@pytest.fixture
def file(tmp_path):
    """The file that `clpapers new method` writes, outside the project."""
    path = tmp_path / "mine.py"
    path.write_text((TEMPLATES / "method.py").read_text(encoding="utf-8"), encoding="utf-8")
    return path


def build(project, file, *arguments):
    return project.snakemake(*FILES, "--cores", "2", *arguments, "--config", f"methods=[{file}]")


def runs(project):
    """The result files of runs, with their times of modification."""
    files = (project.folder / "results/mini/runs").glob("*/*/*/seed?.json")
    return {str(path.relative_to(project.folder)): path.stat().st_mtime_ns for path in files}


def rows(project):
    with (project.folder / f"{TABLE}.csv").open(encoding="utf-8", newline="") as lines:
        return list(dict.fromkeys(line["row"] for line in csv.DictReader(lines)))


def test_a_file_becomes_a_row_and_an_edit_of_it_trains_it_alone(built, file):
    before = runs(built)
    done = build(built, file)
    assert done.returncode == 0, done.stdout
    after = runs(built)
    assert before.items() <= after.items()
    new = sorted(after.keys() - before.keys())
    assert [re.sub("mine-[0-9a-f]{10}", "mine", path.split("/", 5)[5]) for path in new] == [
        "mine/seed0.json",
        "mine/seed1.json",
    ]
    assert rows(built) == ["ER", "ACE", "mine §", "Random guess (expected)"]

    shown = (built.folder / f"{TABLE}.md").read_text(encoding="utf-8")
    assert "§ Not of the paper: mine, of a file with digest" in shown
    assert re.search(r"\| mine § +\| MNIST +\| final\\_accuracy +\| \d of 3 +\| ER ", shown)
    pairs = (built.folder / f"{TABLE}.paired.csv").read_text(encoding="utf-8")
    assert [line.split(",")[2:4] for line in pairs.splitlines()[1:]].count(["ER", "mine §"]) == 2

    record = json.loads((built.folder / new[0].replace(".json", ".record.json")).read_text(encoding="utf-8"))
    (copy,) = (item for item in record["inputs"] if item["path"].endswith(".py"))
    assert copy["sha256"] == sha256(file)
    assert record["cell"]["learner"] == {"name": "mine", "file": copy["path"]}
    audited = built.clpapers("audit", "--scale", "mini")
    assert audited.returncode == 0, audited.stdout
    crate = built.folder.parent / "crate"
    exported = built.clpapers("export", "mini/table1", "--out", str(crate))
    assert exported.returncode == 0, exported.stdout
    assert (crate / copy["path"]).read_text(encoding="utf-8") == file.read_text(encoding="utf-8")

    file.write_text(file.read_text(encoding="utf-8").replace("# [B, K]", "# logits"), encoding="utf-8")
    assert "Nothing to be done" in build(built, file, "-n").stdout
    text = file.read_text(encoding="utf-8").replace("loss.backward()", "(0.5 * loss).backward()")
    file.write_text(text, encoding="utf-8")
    done = build(built, file)
    assert done.returncode == 0, done.stdout
    assert after.items() <= runs(built).items()
    assert len(runs(built)) == len(after) + 2
    audited = built.clpapers("audit", "--scale", "mini")
    assert audited.returncode == 0, audited.stdout


def test_the_command_of_a_footnote_has_the_method(built, file):
    done = built.snakemake("all", "--cores", "2", "--config", f"methods=[{file}]", "hours=0")
    assert done.returncode == 0, done.stdout
    text = (built.folder / f"{TABLE}.html").read_text(encoding="utf-8")
    (methods,) = re.findall(r"take \d+ min of one core: snakemake \S+ --cores --config .*(methods=\[\S+\]).*\.", text)
    told = built.snakemake(f"{TABLE}.csv", "-n", "--cores", "1", "--config", methods)
    assert "4 runs are there; training 2 more" in told.stdout


def test_where_it_does_not_fit_a_footnote_says_why(built, file):
    declaration = 'DECLARATION = {"needs": {"net.name": ["cnn"]}}'
    text = file.read_text(encoding="utf-8").replace("class Mine(", f"{declaration}\n\n\nclass Mine(")
    file.write_text(text, encoding="utf-8")
    before = runs(built)
    done = build(built, file)
    assert done.returncode == 0, done.stdout
    assert runs(built) == before
    assert rows(built) == ["ER", "ACE", "Random guess (expected)"]
    shown = (built.folder / f"{TABLE}.md").read_text(encoding="utf-8")
    assert "Not on MNIST: learner mine needs net.name cnn, not mlp." in shown


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("class Mine(", "class Mine((", r":\d+: not Python: "),
        ("optimizer.step()", "optimizer.stp()", r":\d+: .*AttributeError: '\w+' object has no attribute 'stp'"),
    ],
)
def test_a_mistake_in_it_is_one_line_before_anything_starts(project, file, old, new, told):
    file.write_text(file.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    done = build(project, file)
    assert done.returncode != 0
    (line,) = (line for line in done.stdout.splitlines() if str(file) in line)
    assert re.match(f"clpapers: {re.escape(str(file))}{told}", line), line
    assert "Traceback" not in done.stdout
    assert not (project.folder / "results").exists() or not project.results()


def test_a_build_ends_with_the_method_and_the_path_of_its_page(built, file):
    settings = ["--config", f"methods=[{file}]"]
    done = built.snakemake("all", "--cores", "2", *settings)
    assert done.returncode == 0, done.stdout
    (last,) = re.findall(
        r"^mine: this build trained 2 of its runs; 2 of 2 are there; to build its page: (.*)$", done.stdout, re.M
    )
    assert shlex.split(last)[:3] == ["snakemake", "report", "--cores"]
    done = built.snakemake(*shlex.split(last)[1:2], "--cores", "2", *shlex.split(last)[3:])
    assert done.returncode == 0, done.stdout
    (page,) = re.findall(r"^mine: .*; its page: (\S+)$", done.stdout, re.M)
    shown = (built.folder / page).read_text(encoding="utf-8")
    record = json.loads((built.folder / "results/mini/report/index.record.json").read_text(encoding="utf-8"))
    assert (
        page.removeprefix("results/mini/report/")
        in (built.folder / "results/mini/report/manifest-sha256.txt").read_text()
    )
    assert record["papers"] == ["mini"]
    for part in ("SHA-256 <code", sha256(file)[:12], "of 3", "MNIST", "No run of it is left"):
        assert part in shown, part
    with (built.folder / f"{TABLE}.paired.csv").open(encoding="utf-8", newline="") as lines:
        pairs = [line for line in csv.DictReader(lines) if line["second"] == "mine §"]
    assert len(pairs) == 4
    for pair in pairs:
        assert f"{-float(pair['difference']):+z.2f}".replace("-", "−") in shown
