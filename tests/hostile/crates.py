"""Random mutants of research objects, checked, imported and verified: refused in one line, or no file in them differs.

Of each try one of two is drawn: an export's crate whose bytes are changed, which `clpapers export --check` finds out;
and a published crate that is forged, with manifest and metadata to fit, which `clpapers import` refuses or takes in as
it is, and `clpapers verify` reads. Nothing else than results/mini/imported ever changes, and nothing in it.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import random
import re
import shutil
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from unittest import mock

from archives import mutant
from made import Tally, built, run
from test_imported import clone, rewritten
from trained import crate as published_crate
from trained import imported_first, project_in

from clpapers import cli, provenance
from clpapers.archive import crate
from clpapers.archive.check import DISK_LABEL, CrateError
from clpapers.archive.imported import RUN, folder_of, imported
from clpapers.builds.verify import published_runs
from clpapers.config.paths import RESULTS
from clpapers.config.plan import Plan
from clpapers.config.settings import all_papers
from clpapers.provenance import record_path
from clpapers.report.publish import publish

ODD = (None, True, 0, -1, 1e400, "", "x" * 5000, "\0", [], {}, [[]], 2**70, "../../etc")
TOP = folder_of("mini")


def contents(path: Path) -> dict[str, str]:
    """What an unpacker would make of a zip: each entry with its attributes and its bytes, as texts.

    A mutant whose entry has lost the bits of its file's type is equivalent: unpackers take it for a plain file, as
    Python's `ZipFile.writestr` writes one. One that is marked as the label of a disk they leave out.
    """
    with zipfile.ZipFile(path) as archive:
        return {
            info.filename: f"{(info.external_attr >> 16 & 0o170000) or 0o100000} {info.external_attr & DISK_LABEL} "
            f"{archive.read(info)!r}"
            for info in archive.infolist()
        }


def near(draw: random.Random, whole: bytes) -> bytes:
    """A mutant that is changed where a zip has its headers, or in one of its texts, or anywhere."""
    kind = draw.randrange(3)
    if kind == 2:
        return mutant(draw, whole)
    mark = draw.choice((b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06") if kind == 0 else (b"sha256", b'"path"', b"{"))
    at = max(0, whole.find(mark, draw.randrange(len(whole))))
    part = whole[at : at + 64]
    return whole[:at] + mutant(draw, part) + whole[at + 64 :]


def outcome(path: Path, whole: dict[str, str], fingerprint: str) -> str:
    try:
        wrong, manifest = crate.check(path)
    except CrateError as error:
        return "no crate" if "\n" not in str(error) else f"WRONG: a refusal that is no line: {str(error)!r}"
    if any(not f"{file}{reason}".isprintable() for file, reason in wrong):
        return f"WRONG: findings that are no lines: {wrong[:3]!r}"
    if wrong:
        return "found"
    if manifest != fingerprint:
        return "not as recorded: another fingerprint"
    other = contents(path).items() ^ whole.items()
    return f"WRONG: as recorded, with other files in it: {sorted(other)!r:.300}" if other else "no file differs"


# --- published crates ----------------------------------------------------------------------------------------


def odd(draw: random.Random, content: dict | list) -> None:
    """Put something odd somewhere into a JSON value."""
    keys = list(content) if isinstance(content, dict) else range(len(content))
    key = draw.choice(keys)
    if isinstance(content[key], dict | list) and content[key] and draw.random() < 0.9:
        odd(draw, content[key])
    elif isinstance(content, dict) and draw.random() < 0.3:
        content[draw.choice(("", "x", "..", "seed"))] = content.pop(key)
    else:
        content[key] = draw.choice(ODD)


def sealed(there: dict[str, bytes], name: str, text: bytes, change: Callable[[dict], object] = lambda record: None):
    """Give a run these bytes, and a record of them, changed, with its seal."""
    place = str(record_path(name))
    record = json.loads(there[place])
    record["outputs"][0]["sha256"] = crate.digest_of(text)
    change(record)
    record["seal"] = provenance.seal(record)
    there |= {name: text, place: json.dumps(record).encode()}


def forge(draw: random.Random, there: dict[str, bytes]) -> None:
    """Forge what a published crate holds, with seals and checksums that fit."""
    name = draw.choice([name for name in there if RUN.fullmatch(name)])
    kind = draw.choice(["result", "record", "name", "foreign", "swapped", "apart", "whole", "scale"])
    if kind == "result":
        content = json.loads(there[name])
        odd(draw, content if draw.random() < 0.5 else content["seeds"])
        sealed(there, name, json.dumps(content).encode())
    elif kind == "record":
        sealed(there, name, there[name], functools.partial(odd, draw))
    elif kind == "name":
        new = draw.choice(
            [name.replace("seed", "seeds0-"), name.replace("mnist", "cifar10"), name.replace(name[-17], "f")]
        )
        there[new], there[str(record_path(new))] = there.pop(name), there.pop(str(record_path(name)))
    elif kind == "foreign":
        choices = ("results/mini/choices/0123456789abcdef.json", "config/config.yaml", "results/mini/runs/index.csv")
        there[
            draw.choice([*choices, "results/mini/imported/crates.json", "../x", "/x", "results/paper/imported/x"])
        ] = b"{}"
    elif kind == "swapped":
        other = draw.choice([name for name in there if RUN.fullmatch(name)])
        there[name], there[other] = there[other], there[name]
    elif kind == "apart":
        del there[draw.choice([name for name in there if "/records/" in name])]
    elif kind == "whole":
        sealed(
            there, name, draw.choice([b"", b"[" * 10**5, b"null", b"\xff", b"9" * 5000, b'{"cell": {}, "seeds": []}'])
        )
    else:
        for each in [each for each in there if each.startswith("results/")]:
            there[each.replace("results/mini", draw.choice(["results/paper", "results/other"]))] = there.pop(each)


def packed(draw: random.Random, path: Path) -> None:
    """Put something into a zip that its manifest does not tell of, or lie about what it holds."""
    kind = draw.choice(["link", "out", "twice", "bomb", "many", "lie", "folder"])
    if kind == "lie":  # of the sizes of an entry
        whole = bytearray(path.read_bytes())
        at = draw.choice([found.start() for found in re.finditer(rb"PK\x01\x02", whole)])
        whole[at + 20 : at + 28] = struct.pack("<II", draw.randrange(2**32), draw.choice([0, 1, 2**31, 2**32 - 1]))
        path.write_bytes(whole)
        return
    with zipfile.ZipFile(path, "a") as archive:
        names = archive.namelist()
        run = draw.choice([name for name in names if RUN.fullmatch(name)])
        entry = zipfile.ZipInfo(draw.choice(["results/mini/imported/x", "x"]))
        if kind == "link":
            entry.external_attr = 0o120777 << 16
            archive.writestr(entry, "/etc/passwd")
        elif kind == "out":
            entry.filename = draw.choice(["../x", "/tmp/x", "a/../../x", "..\\x", "C:\\x", "./x", "a//x", ".", "\n"])
            archive.writestr(entry, "x")
        elif kind == "twice":
            archive.writestr(run, archive.read(run) + draw.choice([b"", b" "]))
        elif kind == "bomb":
            archive.writestr(draw.choice([run.replace("seed", "seed9"), "x"]), bytes(1 << 26), zipfile.ZIP_DEFLATED)
        elif kind == "many":
            for number in range(3000):
                archive.writestr(f"results/mini/imported/records/{number:064x}.json", "{}")
        else:
            archive.writestr(zipfile.ZipInfo(f"{run}/"), "")


def imports(path: Path, before: dict[Path, bytes]) -> str:
    """Import a crate, then read all there is; what became of it."""
    with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.redirect_stderr(said):
        code = cli.main(["import", str(path)])
    lines = said.getvalue().splitlines()
    if code not in (0, 2) or not all(map(str.isprintable, lines)) or (code and len(lines) != 1):
        return f"WRONG: import ends with {code} and says {said.getvalue()[:500]!r}"
    with contextlib.suppress(CrateError):
        published_runs(Plan("mini", all_papers()), [path])  # as `verify` reads it
    after = {file: file.read_bytes() for file in Path().rglob("*") if file.is_file() and ".git" not in file.parts}
    changed = {file for file in {*before, *after} if before.get(file) != after.get(file)}
    if code:
        return f"WRONG: refused, and {sorted(changed)[:3]} written" if changed else "import refused"
    if strange := [file for file in changed if file.parts[:3] != TOP.parts]:
        return f"WRONG: {strange[:3]} written"
    with zipfile.ZipFile(path) as archive:
        held = {archive.read(name) for name in archive.namelist()}
    if altered := [file for file in changed if file.name != "crates.json" and after[file] not in held]:
        return f"WRONG: {altered[:3]} are not as they were in the crate"
    return read_by_all()


def read_by_all() -> str:
    """What the readers say of what was imported."""
    runs = [path for files in imported("mini").values() for path in files]
    measured = ["metrics", "--out", "results/mini/metrics/mini/table1.csv"]
    for command in (["audit", "--scale", "mini"], ["lineage", str(runs[0])], ["summary", "--scale", "mini"], measured):
        found = mock.patch.object(Plan, "results", imported_first)
        with found, contextlib.redirect_stdout(io.StringIO()) as said, contextlib.redirect_stderr(said):
            code = cli.main(command)
        if code not in (0, 1, 2) or not all(map(str.isprintable, said.getvalue().splitlines())):
            return f"WRONG: {command[0]} ends with {code} and says {said.getvalue()[:500]!r}"
    return "imported as it is"


# --- the tries -----------------------------------------------------------------------------------------------


def exported(draw: random.Random, tries: int, tally: Tally) -> None:
    with built() as folder:
        for part in crate.PARTS:
            if not Path(part).exists():
                shutil.copy(Path(__file__).parents[2] / part, part)
        from clpapers.audit.audit import fitting

        small, path = folder / "small.zip", folder / "mutant.zip"
        small.unlink(missing_ok=True)
        for name in crate.FOLDERS:  # little code makes a small crate, and a quick check
            for file in list(Path(name).rglob("*.py")):
                file.write_text("")
        fingerprint, _ = crate.export(fitting("mini"), ["mini/table1", "mini/table2"], small)
        stored, whole = small.read_bytes(), contents(small)
        assert crate.check(small) == ([], fingerprint)
        for number in range(tries):
            path.write_bytes(near(draw, stored))
            tally.attempt(f"export {number}", lambda: outcome(path, whole, fingerprint))


def published(draw: random.Random, tries: int, tally: Tally, place: Path) -> None:
    project = project_in(place)
    os.chdir(project)
    publish(Plan("mini", ["mini"]), ["mini"])
    whole = published_crate().read_bytes()
    os.chdir(clone(project, place / "clone"))
    path = place / "mini.zip"
    for number in range(tries):
        path.write_bytes(whole)
        kind = draw.choice([near, forge, forge, packed])
        if kind is near:
            path.write_bytes(near(draw, whole))
        elif kind is forge:
            with contextlib.suppress(KeyError, IndexError, AssertionError):
                shutil.move(rewritten(path, functools.partial(forge, draw)), path)
        else:
            packed(draw, path)
        before = {file: file.read_bytes() for file in Path().rglob("*") if file.is_file() and ".git" not in file.parts}
        tally.attempt(f"published {number}, {kind.__name__}", functools.partial(imports, path, before))
        shutil.rmtree(RESULTS, ignore_errors=True)


def script(seed: int, tries: int, tally: Tally) -> None:
    import tempfile

    exported(random.Random(seed), tries // 2, tally)
    with tempfile.TemporaryDirectory() as place:
        published(random.Random(seed), tries - tries // 2, tally, Path(place))
        os.chdir("/")


if __name__ == "__main__":
    run(script, 5000)
