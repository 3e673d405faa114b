"""Random tamperings of a build's results: the audit finds each, or it is one that nothing can find (docs/audit.md)."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import shutil
from pathlib import Path

from made import Tally, built, run

from clpapers import cli, provenance
from clpapers.audit.audit import DECIDE_NOTHING, findings, fitting

MINI = Path("results/mini")
VALUES = (None, True, False, 0, -1, 1e999, "", "/", ".", "..", "\0", "x" * 5000, [], {}, [[]], {"": None}, 10**400)
READERS = (
    ["audit", "--scale", "mini"],
    ["summary", "--scale", "mini", "mini"],
    ["targets", "--scale", "mini", "mini"],
    ["lineage", str(MINI / "targets/mini/table1.csv")],
    ["lineage", str(MINI / "targets/mini/table3.csv"), "--json"],
)


def leaves(value: object, place: tuple = ()) -> list[tuple]:
    """Where in a JSON value there is something to change."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place, *(leaf for key, each in inside for leaf in leaves(each, (*place, key)))]


def changed(draw: random.Random, content: dict) -> dict:
    """A record with one of its values changed, or gone."""
    *place, last = draw.choice([leaf for leaf in leaves(content) if leaf and leaf[0] != "seal"])
    inside = content
    for key in place:
        inside = inside[key]
    if draw.random() < 0.2:
        del inside[last]
    elif isinstance(inside[last], int | float) and draw.random() < 0.5:
        inside[last] = not inside[last] if isinstance(inside[last], bool) else inside[last] + 1
    elif isinstance(inside[last], str) and inside[last] and draw.random() < 0.5:
        at = draw.randrange(len(inside[last]))
        inside[last] = inside[last][:at] + draw.choice("0123456789abcxyz/.-T") + inside[last][at + 1 :]
    else:
        inside[last] = draw.choice(VALUES)
    return content


def written(record: Path, content: dict, *, sealed: bool) -> None:
    if sealed:
        content["seal"] = provenance.seal(content)
    record.write_text(json.dumps(content, indent=1) + "\n")


def tamper(draw: random.Random, files: list[Path], read: set[str]) -> tuple[str, bool]:
    """Tamper with one of the files; in words what was done, and whether nothing could find it."""
    path = draw.choice(files)
    record = provenance.record_path(path)
    last = not {str(each) for each in files if provenance.record_path(each) == record} & read
    kind = draw.choice(["byte", "cut", "gone", "other", "odd", "edit", "seal", "sealed", "both", "foreign", "junk"])
    whole = path.read_bytes()
    if kind == "byte" and whole:
        at = draw.randrange(len(whole))
        path.write_bytes(whole[:at] + bytes([whole[at] ^ draw.randrange(1, 256)]) + whole[at + 1 :])
    elif kind == "cut":
        path.write_bytes(whole[: draw.randrange(max(1, len(whole)))])
    elif kind == "other":
        path.write_bytes(draw.choice(files).read_bytes())
    elif kind == "odd":
        path.unlink()
        make = draw.choice(
            [os.mkdir, os.mkfifo, lambda p: os.symlink("no", p), lambda p: os.symlink(os.path.basename(p), p)]
        )
        make(path)
    elif kind == "junk":
        record.write_bytes(draw.choice([b"", b"[" * 10**5, b"\xff\xfe", b"null", b"9" * 5000, b'{"a":' * 10**5, b"{}"]))
    elif kind == "foreign":
        folder, name = (
            draw.choice(files).parent,
            draw.choice([b"x", b"\xff", b"a\nb", b".x", b"a.record.json", b"\x1b[2J"]),
        )
        Path(os.fsdecode(bytes(folder) + b"/" + name)).write_bytes(b"{}")
        return f"{kind} {name} in {folder}", False
    elif kind == "edit":
        written(record, changed(draw, json.loads(record.read_bytes())), sealed=False)
    elif kind == "seal":
        written(record, json.loads(record.read_bytes()) | {"seal": draw.choice(VALUES)}, sealed=False)
    elif kind == "sealed":
        written(record, changed(draw, json.loads(record.read_bytes())), sealed=True)
        return f"{kind} {record}", last  # a last record that is sealed anew
    elif kind == "both" and path != record and whole:
        at = draw.randrange(len(whole))
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        content = json.loads(record.read_bytes())
        for item in content["outputs"]:
            if item["path"] == str(path):
                item["sha256"] = provenance.sha256(path)
        written(record, content, sealed=True)
        return f"{kind} {path}", last
    else:
        path.unlink()
    return f"{kind} {path}", False


def differing(before: dict[Path, bytes]) -> list[str]:
    """The files that do not say what they said, and those that are new: of records the content, of others the bytes."""
    told = []
    for path, content in before.items():
        now = path.read_bytes() if path.is_file() else None
        with contextlib.suppress(TypeError, ValueError, RecursionError):
            if path == provenance.record_path(path) and json.loads(now) == json.loads(content):
                continue
        if now != content:
            told.append(f"{path}: {next((pair for pair in zip(now or b'', content) if pair[0] != pair[1]), 'length')}")
    new = (path for path in MINI.rglob("*") if not path.is_dir() and path not in before)
    return told + [str(path) for path in new if path.name not in DECIDE_NOTHING]  # a reader measures the machine


def outcome(number: int, *, undetectable: bool, before: dict[Path, bytes]) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.redirect_stderr(said):
        found = findings(fitting("mini"))
        code = cli.main(READERS[number % len(READERS)])
    if code not in (0, 1, 2) or any(not line.isprintable() for line in said.getvalue().splitlines()):
        return f"WRONG: a reader ends with {code} and says {said.getvalue()[:500]!r}"
    if found:
        return "found"
    if not (changed_now := differing(before)):
        return "nothing changed"
    return "not to be found: the last record, sealed anew" if undetectable else f"WRONG: not found: {changed_now[:3]}"


def script(seed: int, tries: int, tally: Tally) -> None:
    draw = random.Random(seed)
    with built():
        files = sorted(p for p in MINI.rglob("*") if p.is_file() and p.relative_to(MINI).parts[0] != "logs")
        before = {path: path.read_bytes() for path in files}
        records = (json.loads(path.read_bytes()) for path in files if path == provenance.record_path(path))
        read = {item["path"] for record in records for item in record["inputs"]}
        shutil.copytree("results", "kept")
        assert findings(fitting("mini"), strict=True) == []
        for number in range(tries):
            what, undetectable = tamper(draw, files, read)
            tally.attempt(
                f"try {number}, {what}",
                lambda number=number, undetectable=undetectable: outcome(
                    number, undetectable=undetectable, before=before
                ),
            )
            shutil.rmtree("results")
            shutil.copytree("kept", "results")


if __name__ == "__main__":
    run(script, 1000)
