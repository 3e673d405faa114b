"""Whatever stands where a record or a file should: each reader says so in a line, and the audit goes on."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import world

from clpapers import cli, provenance

MINI = Path("results/mini")
TABLE, METRICS = Path(world.TABLE), Path(world.METRICS)
RECORD = provenance.record_path(METRICS)
READERS = {
    "audit": ["audit", "--scale", "mini"],
    "audit of a target": ["audit", "--scale", "mini", "mini/table1"],
    "audit as JSON": ["audit", "--scale", "mini", "--json"],
    "summary": ["summary", "--scale", "mini", "mini"],
    "targets": ["targets", "--scale", "mini", "mini"],
    "lineage": ["lineage", str(TABLE)],
    "export": ["export", "--scale", "mini", "--out", "crate.zip", "mini/table1"],
}


@pytest.fixture
def tampered(here):
    """Something else that is wrong, which the audit must still find."""
    path = MINI / "targets/mini/figure1.svg"
    path.write_text(path.read_text() + "<!-- -->")
    return str(path)


def tell(reader, capsys):
    """Ask one of the readers: it says no traceback and printable lines, of a refusal one."""
    capsys.readouterr()
    code = cli.main(READERS[reader])
    said = capsys.readouterr()
    assert code in (0, 1, 2)
    assert all(line.isprintable() for line in said.out.splitlines() + said.err.splitlines())
    errors = [line for line in said.err.splitlines() if line.startswith("clpapers:")]
    assert len(errors) == (code == 2)
    return code, said.out + "".join(errors)


def tell_all(tampered, names, capsys):
    """Ask each reader; an audit finds these names, and an audit of all finds what else is wrong."""
    for reader in READERS:
        code, said = tell(reader, capsys)
        if reader.startswith("audit"):
            assert code == 1, reader
            assert any(name in said for name in names), reader
            assert (tampered in said) == (reader != "audit of a target")
        assert "failure: none" not in said.splitlines(), reader


def sealed(content):
    return json.dumps(content | {"seal": provenance.seal(content)})


def reading(path):
    """A record whose first input has this path, and a new seal."""
    return lambda record: sealed(record | {"inputs": [{**record["inputs"][0], "path": path}, *record["inputs"][1:]]})


RECORDS = {
    "deep": lambda record: "[" * 100_000,
    "half": lambda record: json.dumps(record)[:100],
    "no stage": lambda record: sealed({key: value for key, value in record.items() if key != "stage"}),
    "no outputs": lambda record: sealed(record | {"outputs": []}),
    "upwards": reading("results/../../x"),
    "a new line": reading("x\nfailure: none"),
    "half a character": reading("\ud800"),
    "data as a list": lambda record: sealed(record | {"data": ["mnist"]}),
    "no seconds": lambda record: sealed(record | {"wall_seconds": None}),
}


@pytest.mark.parametrize("kind", RECORDS)
def test_a_record_that_is_none(kind, tampered, capsys):
    RECORD.write_text(RECORDS[kind](json.loads(RECORD.read_text())), encoding="utf-8", errors="surrogatepass")
    tell_all(tampered, [METRICS.name, RECORD.name], capsys)


THINGS = {
    "a folder": Path.mkdir,
    "a pipe": os.mkfifo,
    "a dangling link": lambda path: path.symlink_to("nowhere"),
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a device": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.mark.parametrize(
    ("what", "place"),
    [*((what, RECORD) for what in THINGS), ("a pipe", METRICS), ("a device", TABLE.with_suffix(".md"))],
)
def test_what_is_no_file_at_all(what, place, tampered, capsys):
    place.unlink()
    THINGS[what](place)
    tell_all(tampered, [place.stem.split(".")[0]], capsys)


def test_what_no_rule_makes_is_told_whatever_its_name_and_kind(here, capsys):
    folder = MINI / "targets"
    for name in ("logs/a.log", "benchmarks/b.tsv", "targets/mini/.table1.abcdefgh.csv"):  # of a running build
        (MINI / name).parent.mkdir(parents=True, exist_ok=True)
        (MINI / name).write_text("")
    names = [b"deep/x.csv", b"\xff.csv", b"x\nfailure: none", b"\x1b[2J", b"\xe2\x80\xaevsc", b"a.record.json"]
    hidden = [b".hidden", b".table1.csv", b".seed9.checkpoint", b".x/y.csv", b".table9.abcdefgh.csv"]
    for name in names + hidden:
        path = Path(os.fsdecode(bytes(folder) + b"/" + name))
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"{}")
    for kind in ("a pipe", "a dangling link", "a device"):
        THINGS[kind](folder / kind)
    (folder / "elsewhere").symlink_to("/")
    (folder / "round").symlink_to("..")
    run = min(MINI.glob("runs/mnist/*/*/seed0.json"))
    for checkpoint in (".seed0.checkpoint", "..seed0.a_b1c2d3.checkpoint"):
        run.with_name(checkpoint).write_text("")  # of our runs, so not foreign
    for reader in ("audit", "summary", "audit as JSON"):
        code, said = tell(reader, capsys)
        assert "failure: none" not in said.splitlines()
        assert reader == "summary" or code == 1
    told = {each["file"]: each for each in json.loads(said)["findings"]}
    foreign = {file: each for file, each in told.items() if "no rule makes it" in each["reason"]}
    assert len(foreign) == len(names + hidden) + 3
    assert all(str(folder / os.fsdecode(name)) in foreign for name in hidden)
    for kind in ("a pipe", "a dangling link", "a device"):
        assert foreign[str(folder / kind)]["reason"].startswith("a dangling link or a device; no rule makes it")
    links = {file: each for file, each in told.items() if "a link to a folder: what it holds" in each["reason"]}
    assert {each["severity"] for each in links.values()} == {"warning"}
    assert {*links} == {str(folder / "elsewhere"), str(folder / "round")}
    assert len(told) == len(foreign) + 2


def test_readers_need_no_docstrings_no_assertions_and_no_encoding(here):
    commands = [READERS[reader] for reader in ("audit", "summary", "lineage")]
    code = f"import sys; from clpapers import cli; sys.exit([cli.main(each) for each in {commands}] != [0, 0, 0])"
    ascii_only = os.environ | {"PYTHONIOENCODING": "ascii"}
    assert subprocess.run([sys.executable, "-OO", "-c", code], env=ascii_only).returncode == 0


def test_targets_that_are_built_only_when_asked_for_are_not_missed(here, capsys):
    render = "render: architecture_table"
    Path(world.PAPER).write_text(Path(world.PAPER).read_text().replace(render, f"extra: true\n    {render}"))
    for file in MINI.glob("targets/mini/table2.*"):
        file.unlink()
    cli.main(["audit", "--scale", "mini", "mini"])
    assert "not built" not in capsys.readouterr().out
    assert cli.main(["audit", "--scale", "mini", "mini/table2"]) == 1
    assert "table2.csv and 3 more, which clpapers audit --json lists: not built" in capsys.readouterr().out
