"""Random mutants of a crate: refused in one line, or no file in them differs; nothing else is written."""

import random
import shutil
import zipfile
from pathlib import Path

import pytest
from handmade import FOLDER, along, packed, result, run

from clpapers import cli
from clpapers.archive.check import CrateError, check
from clpapers.archive.imported import folder_of

MARKS = {"directory": b"PK\x01\x02", "headers": b"PK\x03\x04", "end": b"PK\x05\x06", "anywhere": b""}
TOP = folder_of("smoke")


def contents(path):
    """The bytes of the files in a zip."""
    with zipfile.ZipFile(path) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist() if not info.is_dir()}


def mutant(draw: random.Random, whole: bytes) -> bytes:
    """Some bytes of a file changed, cut off, doubled or put in."""
    content = bytearray(whole)
    for _ in range(draw.choice((1, 1, 2, 8))):
        if not content:
            break
        at, many = draw.randrange(len(content)), draw.choice((1, 1, 2, 4, 16))
        kind = draw.randrange(6)
        if kind == 0:
            content[at] ^= 1 << draw.randrange(8)
        elif kind == 1:
            content[at : at + many] = draw.randbytes(many)
        elif kind == 2:
            content[at : at + many] = draw.choice((b"\xff", b"\0", b"9", b"-", b"[", b"../"))[:1] * many
        elif kind == 3:
            del content[at : at + many * draw.choice((1, 100))]
        elif kind == 4:
            content[at:at] = content[at : at + many]
        else:
            other = draw.randrange(len(content))
            content[at : at + many] = content[other : other + many]
    return bytes(content)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("where", MARKS)
def test_a_changed_crate_is_refused_or_holds_the_same(where, project, capsys):
    more = run(path=f"{FOLDER}/seed1.json", content=result(seeds=[1]), seeds=[1])
    path, draw = packed("mini.zip", along() | more, method=zipfile.ZIP_DEFLATED), random.Random(where)
    whole, same = path.read_bytes(), contents(path)
    for number in range(25):
        at = whole.find(MARKS[where], draw.randrange(len(whole) if where == "anywhere" else whole.rfind(MARKS[where])))
        path.write_bytes(whole[:at] + mutant(draw, whole[at : at + 64]) + whole[at + 64 :])
        try:
            faults, _ = check(path)
        except CrateError as error:
            faults = [("", str(error))]
        assert all(f"{file}{reason}".isprintable() for file, reason in faults), number
        assert faults or contents(path) == same, number
        code = cli.main(["import", str(path)])
        said = capsys.readouterr().err
        assert code in (0, 2), number
        assert said.count("\n") == (code == 2), said
        written = {each for each in Path().rglob("*") if each.is_file()} - {path}
        assert all(TOP in each.parents for each in written), number
        assert not (code and written), number
        shutil.rmtree("results", ignore_errors=True)
