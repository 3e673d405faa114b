"""Random mutants of data archives: refused, or read to the very bytes that were put in; no code, no hang, no memory."""

from __future__ import annotations

import gzip
import io
import random
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from made import Tally, forms, run

from clpapers.datasets import files
from clpapers.datasets.arrays import Split, canonical, checksum
from clpapers.datasets.build import _proven
from clpapers.datasets.files import SourceError
from clpapers.datasets.formats import cifar_python, idx, image_rows, mosaics
from clpapers.datasets.sources import Served

COLOURS = forms.entry((4, 6, 3), ("cat", "dog", "frog"), 30, 9)
THINGS = forms.entry((4, 6, 3), ("apple", "aquarium_fish", "baby"), 24, 12)
DIGITS = forms.entry((5, 4, 1), "012", 30, 9)
CASES = {
    "pickles": (cifar_python, COLOURS, lambda splits: forms.cifar10_files(splits, list(COLOURS["classes"]))),
    "images in rows": (image_rows, COLOURS, forms.image_rows_files),
    "mosaics": (mosaics, THINGS, lambda splits: forms.mosaic_files(splits, THINGS["classes"])),
    "IDX": (idx, DIGITS, forms.idx_files),
    "IDX gzipped": (
        idx,
        DIGITS,
        lambda splits: {f"{n}.gz": gzip.compress(c) for n, c in forms.idx_files(splits).items()},
    ),
}


def zipped(content: dict[str, bytes]) -> dict[str, bytes]:
    """Each file gzipped."""
    return {f"{name}.gz": gzip.compress(stored) for name, stored in content.items()}


def packed(content: dict[str, bytes], suffix: str) -> bytes:
    """An archive of files by name."""
    stream = io.BytesIO()
    if suffix == ".zip":
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, stored in content.items():
                archive.writestr(name, stored)
        return stream.getvalue()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, stored in content.items():
            info = tarfile.TarInfo(name)
            info.size = len(stored)
            info.pax_headers = {"comment": "x"}
            archive.addfile(info, io.BytesIO(stored))
    return stream.getvalue() if suffix == ".tar" else gzip.compress(stream.getvalue())


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


def script(seed: int, tries: int, tally: Tally) -> None:
    draw = random.Random(seed)
    made = {}
    for case, (format, spec, make) in CASES.items():
        splits = forms.random_splits(spec)
        spec = spec | {"sha256": {name: checksum(canonical(Split(*each))) for name, each in splits.items()}}
        made[case] = format, spec, make(splits)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(tries):
            case, suffix = draw.choice(list(made)), draw.choice((".zip", ".tar", ".tgz"))
            format, spec, content = made[case]
            if draw.random() < 0.5:  # a file is changed, and packed as it should be
                name = draw.choice(list(content))
                stored = packed(content | {name: mutant(draw, content[name])}, suffix)
            else:
                inside = packed(content, ".tar" if suffix == ".tgz" else suffix)
                stored = mutant(draw, inside)
                stored = gzip.compress(stored) if suffix == ".tgz" and draw.random() < 0.5 else stored
            path = Path(folder, f"x{suffix}")
            path.write_bytes(stored)
            tally.attempt(f"try {number}, {case} in {suffix}", reader(path, format, spec))


def reader(path: Path, format, spec: dict) -> Callable[[], str]:
    def read() -> str:
        try:
            held = files.archive(path)
            _, _, facts = _proven(Served(held, format, downloads=[path]), spec, allow_partial=False)
        except SourceError as error:
            return "refused" if str(error).isprintable() else f"WRONG: a refusal that is no line: {str(error)!r}"
        return "the same data" if facts["proof"] == "content checksum" else "WRONG: other data"

    return read


if __name__ == "__main__":
    run(script, 5000)
