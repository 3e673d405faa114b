"""The arrays of an .npz as small pieces without loss: mosaics of colour images, all else compressed together.

Whole numbers take as few bytes as they need, and positions divided by their number take none. A joined file has the
bytes of the file that was split, which its SHA-256 proves.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from clpapers.provenance import write_atomically

MANY = 8 << 20  # bytes of colour images, above which mosaics pay for a package that the other side needs
ROWS, COLUMNS = 20, 25  # images of a mosaic
FORM, REST = "form.json", "rest.npz"


def pieces(file: Path) -> Iterator[tuple[str, bytes]]:
    """Names and contents of an .npz's pieces; the last, `form.json`, tells how to join them."""
    form: dict = {"sha256": hashlib.sha256(file.read_bytes()).hexdigest(), "pieces": [], "arrays": {}}
    rest: dict[str, np.ndarray] = {}
    with np.load(file, allow_pickle=False) as stored:
        for key in stored.files:
            array = stored[key]
            facts: dict = {"dtype": array.dtype.str, "shape": list(array.shape)}
            if _colourful(array):
                facts["mosaics"] = []
                for content in _mosaics(array):
                    facts["mosaics"].append(f"{len(form['arrays'])}-{len(facts['mosaics'])}.webp")
                    yield facts["mosaics"][-1], content
                form["pieces"] += facts["mosaics"]
            elif array.ndim == 1 and array.dtype == float and array.tobytes() == _positions(len(array)).tobytes():
                facts["positions"] = True
            else:
                rest[key] = _narrow(array)
            form["arrays"][key] = facts
    form["pieces"].append(REST)
    packed = io.BytesIO()
    np.savez_compressed(packed, allow_pickle=False, **rest)
    yield REST, packed.getvalue()
    yield FORM, json.dumps(form).encode()


def cached_pieces(file: Path) -> Iterator[tuple[str, bytes]]:
    """The `pieces` of a file, cached in Snakemake's own folder for the next bundle: mosaics take minutes."""
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    folder = Path(".snakemake", "clpapers", "pieces", file.stem)
    form = folder / FORM
    if not form.is_file() or json.loads(form.read_text())["sha256"] != digest:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name, content in pieces(file):
            (folder / name).write_bytes(content)  # the form last, so that a folder with one is complete
    names = json.loads(form.read_text())["pieces"]
    yield from ((name, (folder / name).read_bytes()) for name in [*names, FORM])


def join(read: Callable[[str], bytes], file: Path) -> None:
    """Write an .npz from its pieces, which `read` returns by name; ValueError for other bytes than before."""
    form = json.loads(read(FORM))
    arrays = {}
    with np.load(io.BytesIO(read(REST)), allow_pickle=False) as rest:
        for key, facts in form["arrays"].items():
            shape = tuple(facts["shape"])
            if "mosaics" in facts:
                arrays[key] = _images(map(read, facts["mosaics"]), shape)
            else:
                array = _positions(*shape) if "positions" in facts else rest[key]
                arrays[key] = array.astype(facts["dtype"], copy=False)
    with write_atomically(file) as temporary:
        np.savez(temporary, allow_pickle=False, **arrays)
        if hashlib.sha256(temporary.read_bytes()).hexdigest() != form["sha256"]:
            raise ValueError(f"{file}: not the bytes that were packed; pack the bundle anew")


def _colourful(array: np.ndarray) -> bool:
    return array.dtype == np.uint8 and array.ndim == 4 and array.shape[-1] == 3 and array.nbytes > MANY


def _positions(items: int) -> np.ndarray:
    """The positions of so many items, divided by their number, as streams have them (`orders`)."""
    times = np.arange(items, dtype=float)
    times /= max(items, 1)
    return times


def _narrow(array: np.ndarray) -> np.ndarray:
    """Whole numbers in the fewest bytes that hold them; other arrays as they are."""
    if array.dtype.kind not in "iu" or not array.size:
        return array
    kinds = (np.min_scalar_type(int(value)) for value in (array.min(), array.max()))
    return array.astype(np.result_type(*kinds), copy=False)


def _mosaics(x: np.ndarray) -> Iterator[bytes]:
    """Images [N, H, W, 3], 500 a mosaic, row by row; the last mosaic has black tiles."""
    from PIL import Image

    _, h, w, _ = x.shape
    for start in range(0, len(x), ROWS * COLUMNS):
        images = x[start : start + ROWS * COLUMNS]
        tiles = np.zeros((ROWS * COLUMNS, h, w, 3), np.uint8)
        tiles[: len(images)] = images
        mosaic = tiles.reshape(ROWS, COLUMNS, h, w, 3).swapaxes(1, 2).reshape(ROWS * h, COLUMNS * w, 3)
        written = io.BytesIO()
        Image.fromarray(mosaic).save(written, "WEBP", lossless=True, quality=80, method=4)
        yield written.getvalue()


def _images(mosaics: Iterator[bytes], shape: tuple[int, ...]) -> np.ndarray:
    """The images [N, H, W, 3] of mosaics."""
    from PIL import Image

    n, h, w, _ = shape
    images = []
    for content in mosaics:
        with Image.open(io.BytesIO(content), formats=["WEBP"]) as image:
            mosaic = np.asarray(image.convert("RGB"))
        images.append(mosaic.reshape(ROWS, h, COLUMNS, w, 3).swapaxes(1, 2).reshape(-1, h, w, 3))
    return np.concatenate(images)[:n]
