"""Random mutants of a research object: found out, or no file in it differs; no code, no hang, no traceback."""

from __future__ import annotations

import random
import shutil
import zipfile
from pathlib import Path

from archives import mutant
from made import Tally, built, run

from clpapers.report import crate


def contents(path: Path) -> dict[str, str]:
    """What an unpacker would make of a zip: each entry with its attributes and its bytes, as texts."""
    with zipfile.ZipFile(path) as archive:
        return {
            info.filename: f"{info.external_attr >> 16 & 0o170000} {archive.read(info)!r}"
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
    except crate.CrateError as error:
        return "no crate" if "\n" not in str(error) else f"WRONG: a refusal that is no line: {str(error)!r}"
    if any(not f"{file}{reason}".isprintable() for file, reason in wrong):
        return f"WRONG: findings that are no lines: {wrong[:3]!r}"
    if wrong:
        return "found"
    if manifest != fingerprint:
        return "not as recorded: another fingerprint"
    return "no file differs" if contents(path) == whole else "WRONG: as recorded, with other files in it"


def script(seed: int, tries: int, tally: Tally) -> None:
    draw = random.Random(seed)
    with built() as folder:
        for part in crate.PARTS:
            if not Path(part).exists():
                shutil.copy(Path(__file__).parents[2] / part, part)
        from clpapers.report.audit import fitting

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
            tally.attempt(f"try {number}", lambda: outcome(path, whole, fingerprint))


if __name__ == "__main__":
    run(script, 5000)
