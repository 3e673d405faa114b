"""Whatever stands where a record or a file should: each reader says so in a line, and the audit goes on."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from clpapers import cli, provenance

MINI = Path("results/mini")
TABLE = MINI / "targets/mini/table1.csv"
METRICS = MINI / "metrics/mini/table1.csv"
RECORD = provenance.record_path(METRICS)
READERS = {
    "audit": ["audit", "--scale", "mini"],
    "audit of a target": ["audit", "--scale", "mini", "mini/table1"],
    "audit as JSON": ["audit", "--scale", "mini", "--json"],
    "summary": ["summary", "--scale", "mini", "mini"],
    "targets": ["targets", "--scale", "mini", "mini"],
    "lineage": ["lineage", str(TABLE)],
    "lineage as JSON": ["lineage", str(TABLE), "--json"],
    "export": ["export", "--scale", "mini", "--out", "crate.zip", "mini/table1"],
}


@pytest.fixture
def tampered(here):
    """Something else that is wrong, which the audit must still find."""
    path = MINI / "targets/mini/figure1.svg"
    path.write_text(path.read_text() + "<!-- -->")
    for part in ("src", "rules", "profiles", "envs"):  # what an export takes along
        (here / part).symlink_to(Path(__file__).parents[2] / part)
    return str(path)


def tell(reader, capsys):
    """What one of the readers says: no traceback, printable lines, of a refusal one."""
    capsys.readouterr()
    code = cli.main(READERS[reader])
    said = capsys.readouterr()
    assert code in (0, 1, 2)
    assert all(line.isprintable() for line in said.out.splitlines() + said.err.splitlines())
    errors = [line for line in said.err.splitlines() if line.startswith("clpapers:")]
    assert len(errors) == (code == 2)
    return code, said.out + "".join(errors)


def sealed(content):
    return json.dumps(content | {"seal": provenance.seal(content)})


def edited(**facts):
    """A record with other facts and a new seal."""
    return lambda record: sealed(record | facts)


def reading(path):
    """A record whose first input has this path, and a new seal."""
    return lambda record: sealed(record | {"inputs": [{**record["inputs"][0], "path": path}, *record["inputs"][1:]]})


RECORDS = {
    "deep": lambda record: "[" * 100_000,
    "half": lambda record: json.dumps(record)[:100],
    "of another program": lambda record: '{"name": "someone else\'s"}',
    "no stage": lambda record: sealed({key: value for key, value in record.items() if key != "stage"}),
    "no path": reading(""),
    "the root": reading("/"),
    "the folder above": reading("../x"),
    "upwards": reading("results/../../x"),
    "a new line": reading("x\nfailure: none"),
    "half a character": reading("\ud800"),
    "a long path": reading("x/" * 3000 + "x"),
    "a number for a path": reading(3),
    "data as a list": edited(data=["mnist"]),
    "inputs of texts": edited(inputs=["a"]),
    "no outputs": edited(outputs=[]),
    "no seconds": edited(wall_seconds=None),
}


def tell_all(tampered, names, capsys):
    """What each reader says; an audit finds what these names tell of, and of all what else is wrong."""
    for reader in READERS:
        code, said = tell(reader, capsys)
        if reader.startswith("audit"):
            assert code == 1, reader
            assert any(name in said for name in names), reader
            assert (tampered in said) == (reader != "audit of a target")
        assert "failure: none" not in said.splitlines(), reader


@pytest.mark.parametrize("kind", RECORDS)
def test_a_record_that_is_none(kind, tampered, capsys):
    RECORD.write_text(RECORDS[kind](json.loads(RECORD.read_text())), encoding="utf-8", errors="surrogatepass")
    tell_all(tampered, [METRICS.name, RECORD.name], capsys)


def folder(path):
    path.mkdir()


def fifo(path):
    os.mkfifo(path)


def dangling(path):
    path.symlink_to("nowhere")


def round_about(path):
    path.symlink_to(path.name)


def device(path):
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("what", [folder, fifo, dangling, round_about, device])
@pytest.mark.parametrize("place", [RECORD, METRICS, TABLE.with_suffix(".md")])
def test_what_is_no_file_at_all(place, what, tampered, capsys):
    place.unlink()
    what(place)
    tell_all(tampered, [place.stem.split(".")[0]], capsys)


@pytest.mark.parametrize("reader", ["lineage", "audit"])
@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"a,b\n1\n", b"\0", b'"'])
def test_a_table_that_is_none(content, reader, tampered, capsys):
    for name in ("table1.csv", "table1.reported.csv"):
        TABLE.with_name(name).write_bytes(content)
    tell(reader, capsys)
    assert cli.main(["lineage", str(TABLE), "--cell", "ER,MNIST"]) == 2
    assert cli.main(["lineage", str(TABLE), "--cell", "x\ny,z"]) == 2


@pytest.mark.parametrize("reader", ["audit", "audit as JSON", "summary"])
@pytest.mark.parametrize(
    "name", [b"\xff.csv", b"x\nfailure: none", b"\x1b[2J", "\N{RIGHT-TO-LEFT OVERRIDE}vsc".encode(), b"a.record.json"]
)
def test_a_foreign_file_whatever_its_name(name, reader, tampered, capsys):
    Path(os.fsdecode(bytes(MINI / "targets") + b"/" + name)).write_bytes(b"{}")
    code, said = tell(reader, capsys)
    if reader == "audit":
        assert code == 1
        assert "no rule makes it" in said
    assert "failure: none" not in said.splitlines()


@pytest.mark.parametrize("what", [fifo, dangling, device])
def test_foreign_things_that_are_no_files(what, here, capsys):
    what(MINI / "targets/odd")
    code, said = tell("audit", capsys)
    assert code == 1
    assert "results/mini/targets/odd: a dangling link or a device; no rule makes it" in said


def test_links_to_folders_are_told_and_not_followed(here, capsys):
    (MINI / "targets/elsewhere").symlink_to("/")
    (MINI / "targets/round").symlink_to("..")
    code, said = tell("audit", capsys)
    assert code == 0
    assert said.count("warning") == 2 + 1
    assert "a link to a folder: what it holds and no rule makes is not seen" in said


@pytest.mark.parametrize("name", [".hidden", ".table1.csv", ".seed9.checkpoint", ".x/y.csv", ".table9.abcdefgh.csv"])
def test_what_begins_with_a_dot_and_is_not_ours_is_foreign(name, here, capsys):
    path = MINI / "targets" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("")
    code, said = tell("audit", capsys)
    assert code == 1
    assert f"{path}: no rule makes it" in said


def test_checkpoints_of_our_runs_are_not_foreign(here, capsys):
    run = min(MINI.glob("runs/mnist/*/*/seed0.json"))
    run.with_name(".seed0.checkpoint").write_text("")
    run.with_name("..seed0.a_b1c2d3.checkpoint").write_text("")
    assert tell("audit", capsys)[0] == 0


def test_the_closing_page_refuses_what_it_cannot_read_in_any_encoding(here):
    RECORD.write_text("{")
    command = [sys.executable, "-m", "clpapers.cli", *READERS["summary"]]
    done = subprocess.run(command, env=os.environ | {"PYTHONIOENCODING": "ascii"}, capture_output=True, text=True)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert f"{RECORD}: not a record" in line


def test_without_docstrings_and_assertions(here):
    commands = [READERS[reader] for reader in ("audit", "summary", "lineage")]
    code = f"import sys; from clpapers import cli; sys.exit([cli.main(each) for each in {commands}] != [0, 0, 0])"
    assert subprocess.run([sys.executable, "-OO", "-c", code]).returncode == 0


def test_targets_that_are_built_only_when_asked_for_are_not_missed(here, capsys):
    paper = Path("config/papers/mini.yaml")
    edited = paper.read_text().replace("render: architecture_table", "extra: true\n    render: architecture_table")
    paper.write_text(edited)
    for file in MINI.glob("targets/mini/table2.*"):
        file.unlink()
    cli.main(["audit", "--scale", "mini", "mini"])
    assert "not built" not in capsys.readouterr().out
    assert cli.main(["audit", "--scale", "mini", "mini/table2"]) == 1
    assert "table2.csv and 3 more, which clpapers audit --json lists: not built" in capsys.readouterr().out
