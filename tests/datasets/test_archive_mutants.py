"""Random mutants of data archives: refused in a line, or read to the very bytes that were put in."""

from __future__ import annotations

import gzip
import io
import random
import tarfile
import zipfile

import official_formats as forms
import pytest
from mutants import mutant

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


@pytest.mark.parametrize("case", CASES)
def test_a_changed_archive_is_refused_in_a_line_or_has_the_same_data(case, tmp_path):
    format, spec, make = CASES[case]
    splits = forms.random_splits(spec)
    spec = spec | {"sha256": {name: checksum(canonical(Split(*each))) for name, each in splits.items()}}
    content, draw = make(splits), random.Random(case)
    for number in range(40):
        suffix = draw.choice((".zip", ".tar", ".tgz"))
        if draw.random() < 0.5:  # a file is changed, and packed as it should be
            name = draw.choice(list(content))
            stored = packed(content | {name: mutant(draw, content[name])}, suffix)
        else:
            stored = mutant(draw, packed(content, suffix))
        path = tmp_path / f"{number}{suffix}"
        path.write_bytes(stored)
        try:
            _, _, facts = _proven(Served(files.archive(path), format, downloads=[path]), spec, allow_partial=False)
            outcome = facts["proof"]
        except SourceError as error:
            outcome = f"refused: {error}"
        assert outcome == "content checksum" or (outcome.startswith("refused") and outcome.isprintable()), number
