"""A method of one's own: its row and no other trains, an edit trains it anew, and a mistake is one line."""

import csv
import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
from world import HERE, PAPER, ROOT, TABLE, refusal

from clpapers.cli.new import TEMPLATES
from clpapers.provenance import sha256

FILES = [TABLE, TABLE.replace("csv", "reported.csv"), TABLE.replace("csv", "paired.csv")]
SHAPES = *sorted((HERE / "methods").glob("*.py")), ROOT / "examples/expanding.py", ROOT / "examples/stacked/lwf.py"
CONTRACTS = {
    "test_what_a_learner_declares_is_there",
    "test_a_step_says_of_itself_what_the_learner_declares",
    "test_a_seed_does_not_depend_on_its_stack_mates",
    "test_twice_the_same_bytes_whatever_generators_and_fresh_memory_hold",
    "test_interrupted_after_each_step_task_changes_among_them",
    "test_killed_half_way_every_learner_goes_on_in_another_process",
}


@pytest.fixture
def file(tmp_path):
    """The file that `clpapers new method` writes, outside the project."""
    return Path(shutil.copy(TEMPLATES / "method.py", tmp_path / "mine.py"))


def change(file, old, new):
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


def with_methods(*files):
    return "--config", f"methods=[{', '.join(map(str, files))}]"


def rows(project):
    return list(dict.fromkeys(line["row"] for line in csv.DictReader(project.read(TABLE).splitlines())))


def test_a_file_becomes_a_row_with_a_page_and_an_edit_of_it_trains_it_alone(built, file):
    before = built.runs()
    assert "Nothing to be done" not in built.build("all", *with_methods(file), "hours=0")
    takes = r"take [\d.]+ (?:s|min) of one core: snakemake \S+ --cores --config .*(methods=\[\S+\]).*\."
    (told,) = re.findall(takes, built.read(TABLE.replace("csv", "html")))
    assert "4 runs are there; training 2 more" in built.build(TABLE, "-n", "--config", told)

    # Its row, and the path of its page.
    said = built.build("all", *with_methods(file))
    after = built.runs()
    assert before.items() <= after.items()
    new = sorted(after.keys() - before.keys())
    assert [re.sub(r".*/mine-[0-9a-f]{10}/", "", path) for path in new] == ["seed0.json", "seed1.json"]
    assert rows(built) == ["ER", "ACE", "mine §", "Random guess (expected)"]
    shown = built.read(TABLE.replace("csv", "md"))
    assert "§ Not of the paper: mine, of a file with digest" in shown
    assert re.search(r"\| mine § +\| MNIST +\| final_accuracy +\| \d of 3 +\| ER ", shown)
    ends = r"^mine: this build trained 2 of its runs; 2 of 2 are there; to build its page: (.*)$"
    (last,) = re.findall(ends, said, re.M)
    command, target, cores, *settings = shlex.split(last)
    assert (command, target, cores) == ("snakemake", "report", "--cores")
    (page,) = re.findall(r"^mine: .*; its page: (\S+)$", built.build(target, *settings), re.M)
    shown = built.read(page)
    assert page.removeprefix("results/mini/report/") in built.read("results/mini/report/manifest-sha256.txt")
    assert json.loads(built.read("results/mini/report/index.record.json"))["papers"] == ["mini"]
    for part in ("SHA-256", sha256(file)[:12], "of 3", "MNIST", "No run of it is left"):
        assert part in shown, part
    pairs = [line for line in csv.DictReader(built.read(FILES[2]).splitlines()) if line["second"] == "mine §"]
    assert len(pairs) == 4
    assert [pair["first"] for pair in pairs].count("ER") == 2
    for pair in pairs:
        assert f"{-float(pair['difference']):+z.2f}".replace("-", "−") in shown

    # Its file is among what it was made of, wherever that goes.
    record = json.loads(built.read(new[0].replace(".json", ".record.json")))
    (copy,) = (item for item in record["inputs"] if item["path"].endswith(".py"))
    assert copy["sha256"] == sha256(file)
    assert record["cell"]["learner"] == {"name": "mine", "file": copy["path"]}
    crate = built.folder.parent / "crate"
    exported = built.clpapers("export", "mini/table1", "--out", str(crate))
    assert exported.returncode == 0, exported.stdout
    assert (crate / copy["path"]).read_bytes() == file.read_bytes()

    # An edit of its code trains it anew, and nothing else.
    change(file, "# [B, K]", "# logits")
    assert "Nothing to be done" in built.build(*FILES, "-n", *with_methods(file))
    change(file, "loss.backward()", "(0.5 * loss).backward()")
    built.build(*FILES, *with_methods(file))
    assert after.items() <= built.runs().items()
    assert len(built.runs()) == len(after) + 2
    built.audit("mini/table1")

    # Where it does not fit, a footnote says why; a mistake is one line before anything starts.
    change(file, "class Mine(", 'DECLARATION = {"needs": {"net.name": ["cnn"]}}\n\n\nclass Mine(')
    before = built.runs()
    built.build(*FILES, *with_methods(file))
    assert built.runs() == before
    assert rows(built) == ["ER", "ACE", "Random guess (expected)"]
    assert "Not on MNIST: learner mine needs net.name cnn, not mlp." in built.read(TABLE.replace("csv", "md"))
    results = built.results()
    for old, new, told in (
        ("optimizer.step()", "optimizer.stp()", r":\d+: .*AttributeError: '\w+' object has no attribute 'stp'"),
        ("class Mine(", "class Mine((", r":\d+: not Python: "),
    ):
        change(file, old, new)
        done = built.snakemake(*FILES, "--cores", "2", *with_methods(file))
        assert done.returncode != 0
        assert re.match(f"{re.escape(str(file))}{told}", refusal(done.stdout))
        assert built.results() == results


@pytest.mark.parametrize("shapes", [SHAPES[:3], SHAPES[3:]])
def test_a_paper_is_built_with_methods_of_every_shape(shapes, built):
    """A row for each; in which papers of the project each fits, `tests/config/test_own_plans.py` plans."""
    files = [shutil.copy(path, built.folder.parent) for path in shapes]
    assert "Traceback" not in built.build("all", *with_methods(*files))
    assert {f"{path.stem} §" for path in shapes} <= set(rows(built))


def test_a_method_of_the_project_is_one_file_and_a_line_in_a_papers_file(project):
    """An ER-like one gets a row and is held to every contract."""
    learners = "src/clpapers/runs/learners"
    project.write(f"{learners}/own_replay.py", project.read(f"{learners}/er.py").replace("class ER(", "class Own("))
    line = "  ace: {forward: separate}\n"
    project.edit(PAPER, line, f"{line}  own_replay: {{forward: joint}}\n", "[er, ace]", "[er, ace, own_replay]")
    project.build(TABLE)
    found = {line["learner"] for line in csv.DictReader(project.read(TABLE.replace("targets", "metrics")).splitlines())}
    assert found == {"er", "ace", "own_replay"}
    assert "own_replay" in rows(project)

    shutil.copytree(ROOT / "tests", project.folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    tests = [f"tests/runs/test_{name}.py" for name in ("learners", "loop", "checkpoint")]
    ran = project.python("pytest", *tests, "-k", "own_replay", "-rp", "-p", "no:cacheprovider")
    assert ran.returncode == 0, ran.stdout
    assert set(re.findall(r"^PASSED \S+::(\w+)\[", ran.stdout, re.MULTILINE)) >= CONTRACTS
