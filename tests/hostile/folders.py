"""Random trees of odd image files, in folders and archives: read to the bytes that Pillow has, or refused by name."""

from __future__ import annotations

import io
import os
import random
import shutil
import tarfile
import tempfile
import unicodedata
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
from made import Tally, run
from PIL import Image, ImageOps

from clpapers.datasets import files
from clpapers.datasets.files import SourceError
from clpapers.datasets.formats import image_folders
from clpapers.provenance import escaped

SIDE = 4
CLASSES = ("cat", "a dog", "Straße", "猫", "caf\u00e9", "train", "0")
NAMES = ("a", "b.c", "x y", "ünïcode", "caf\u00e9", "-f", "#1", "α", "bytes\udcff")
PLAIN = ("png", "PNG", "jpg", "JPEG", "bmp", "gif", "tif", "TIFF", "webp", "ppm", "pgm", "tga", "jp2")
HIDDEN = (".ipynb_checkpoints/", ".thumbs/a/", "@eaDir/", "__MACOSX/._", "._", ".")
FORMATS = {"JPG": "JPEG", "TIF": "TIFF", "PGM": "PPM", "JP2": "JPEG2000"}


def image(draw: random.Random, any_mode: bool) -> tuple[Image.Image, bool]:
    """A picture of some mode, and whether bytes of grey or colour hold it; with `any_mode` they may not."""
    rng = np.random.default_rng(draw.randrange(1 << 30))
    grey, colours = (rng.integers(0, 256, (SIDE, SIDE, *more), dtype=np.uint8) for more in ((), (3,)))
    modes = ("L", "RGB", "1", "P", "I;16", "CMYK", "opaque")
    mode = draw.choice((*modes, "RGBA", "LA", "F", "I") if any_mode else modes)
    if mode == "I;16":
        return Image.fromarray(grey.astype(np.uint16) * 257 + draw.randrange(2)), True
    if mode in ("F", "I"):
        return Image.fromarray(grey.astype(np.float32 if mode == "F" else np.int32)), False
    if mode == "opaque":
        made = Image.fromarray(colours)
        made.putalpha(255)
        return made, True
    made = Image.fromarray(grey if mode in ("L", "1", "LA") else colours).convert(mode)
    if mode in ("RGBA", "LA"):
        made.putalpha(Image.fromarray(grey))
    return made, mode not in ("RGBA", "LA")


def stored(draw: random.Random, any_mode: bool = True) -> tuple[str, bytes, bool]:
    """A suffix, the bytes of an image of it, and whether it may not be refused."""
    while True:
        (made, fit), suffix = image(draw, any_mode), draw.choice(PLAIN)
        format, options = FORMATS.get(suffix.upper(), suffix.upper()), {}
        if draw.random() < 0.2:
            exif = Image.Exif()
            exif[0x0112] = draw.randrange(1, 9)
            options["exif"] = exif
        if format == "GIF" and any_mode and draw.random() < 0.3:
            options, fit = {"save_all": True, "append_images": [ImageOps.invert(made.convert("L"))]}, False
        file = io.BytesIO()
        try:
            made.save(file, format, **options)
        except (OSError, ValueError, KeyError, TypeError):
            continue  # no such mode in this format
        return suffix, file.getvalue(), fit


def right(content: bytes) -> bytes:
    """The bytes in colour that Pillow has of an image: upright, the high byte of 16 bits, alpha left out."""
    made = ImageOps.exif_transpose(Image.open(io.BytesIO(content)))
    if made.mode.startswith("I"):
        return np.repeat((np.asarray(made).astype(int) >> 8).astype(np.uint8)[..., None], 3, axis=2).tobytes()
    return np.asarray(made.convert("RGB")).tobytes()


class Tree:
    """Files of a random tree, what of them counts, and whether anything in it may be refused."""

    def __init__(self, draw: random.Random):
        self.files: dict[str, bytes] = {}
        self.shown: list[str] = []  # those that count
        self.links: dict[str, str] = {}
        self.empty: list[str] = []
        self.counts: dict[str, Counter] = {"train": Counter(), "test": Counter()}
        self.classes = draw.sample(CLASSES, draw.choice((2, 3)))
        self.plain, self.any_mode = True, draw.random() < 0.3
        root = draw.choice(("", "", "pets/", "a/b/"))
        for split in self.counts:
            for name in self.classes:
                shown = unicodedata.normalize(draw.choice(("NFC", "NFD")), name)
                for i in range(draw.choice((1, 1, 2, 3))):
                    inside = draw.choice(("", "", "deep/", "deep/er/"))
                    self.add(draw, split, name, f"{root}{split}/{shown}/{inside}{i}{draw.choice(NAMES)}")
        for _ in range(draw.choice((0, 0, 1, 2))):
            draw.choice((self.hidden, self.beside, self.text, self.link, self.odd))(draw, root)

    def add(self, draw: random.Random, split: str, name: str, stem: str) -> None:
        suffix, content, fit = stored(draw, self.any_mode)
        self.files[f"{stem}.{suffix}"] = content
        self.shown.append(f"{stem}.{suffix}")
        self.plain &= fit
        self.counts[split][name, content] += 1

    def place(self, draw: random.Random, root: str) -> str:
        return draw.choice(self.shown)

    def hidden(self, draw: random.Random, root: str) -> None:
        folder, _, name = self.place(draw, root).rpartition("/")
        self.files[f"{folder}/{draw.choice(HIDDEN)}{name}"] = draw.choice(list(self.files.values()))

    def beside(self, draw: random.Random, root: str) -> None:
        self.files[f"{root}{draw.choice(('val', 'other', 'docs'))}/cat/0.png"] = stored(draw)[1]

    def text(self, draw: random.Random, root: str) -> None:
        folder = self.place(draw, root).rpartition("/")[0]
        self.files[f"{folder}/{draw.choice(('notes.txt', 'Thumbs.db', 'labels.csv'))}"] = b"\xef\xbb\xbfnotes"

    def link(self, draw: random.Random, root: str) -> None:
        target = self.place(draw, root)
        folder, _, name = target.rpartition("/")
        if f"{folder}/link-{name}" in self.links:
            return
        if draw.random() < 0.5:
            self.links[f"{folder}/link-{name}"], self.plain = "nowhere.png", False
            return
        self.links[f"{folder}/link-{name}"] = name
        split, shown = target.removeprefix(root).split("/")[:2]
        self.counts[split][unicodedata.normalize("NFC", shown), self.files[target]] += 1

    def odd(self, draw: random.Random, root: str) -> None:
        """What would be lost or counted twice."""
        self.plain = False
        target = self.place(draw, root)
        folder, content = target.rpartition("/")[0], self.files[target]
        kind = draw.randrange(6)
        if kind == 0:
            self.files[f"{folder}/x.{draw.choice(('heic', 'svg', 'eps', 'cr2'))}"] = content
        elif kind == 1:
            self.files[f"{folder}/0"] = stored(random.Random(0))[1]
        elif kind == 2:
            self.files[f"{root}backup/train/{self.classes[0]}/0.png"] = content
        elif kind == 3:
            self.files[f"{root}train/0.png"] = content
        elif kind == 4:
            self.empty.append(f"{root}train/nothing")
        else:
            self.files[target] = content[: draw.randrange(len(content))]

    def written(self, place: Path) -> None:
        """Make it below a folder."""
        for path, content in self.files.items():
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            (place / path).write_bytes(content)
        for path, target in self.links.items():
            os.symlink(target, place / path)
        for path in self.empty:
            (place / path).mkdir(parents=True, exist_ok=True)

    def packed(self, place: Path, suffix: str) -> None:
        """Make an archive of it; a zip has files for its links, as unpacked ones do."""
        if suffix == ".tar":
            with tarfile.open(place, "w") as archive:
                for path, content in self.files.items():
                    info = tarfile.TarInfo(path)
                    info.size = len(content)
                    archive.addfile(info, io.BytesIO(content))
                for path, target in self.links.items():
                    info = tarfile.TarInfo(path)
                    info.type, info.linkname = tarfile.SYMTYPE, target
                    archive.addfile(info)
                for path in self.empty:
                    info = tarfile.TarInfo(path)
                    info.type = tarfile.DIRTYPE
                    archive.addfile(info)
            return
        with zipfile.ZipFile(place, "w") as archive:
            for path, content in self.files.items():
                archive.writestr(path, content)
            for path, target in self.links.items():
                source = f"{path.rpartition('/')[0]}/{target}"
                if source in self.files:  # none leads nowhere
                    archive.writestr(path, self.files[source])
            for path in self.empty:
                archive.mkdir(path)


def reader(tree: Tree, place: Path) -> Callable[[], str]:
    def read() -> str:
        counts = {split: counter.total() for split, counter in tree.counts.items()}
        spec = {"shape": [SIDE, SIDE, 3], "classes": tree.classes} | counts
        try:
            held = files.folder(place) if place.is_dir() else files.archive(place)
            decoded = image_folders.decode(held, spec)
        except SourceError as error:
            said = str(error)
            named = [*tree.files, *tree.links, *tree.empty]
            if not said.isprintable() or not any(escaped(path) in said for path in named):
                return f"WRONG: a refusal that is no line or names nothing: {said!r}"
            return "refused by name" if not tree.plain else f"WRONG: a refusal of what is sound: {said!r}"
        for split, (x, y, *_) in decoded.items():
            found = Counter((tree.classes[label], pixels.tobytes()) for label, pixels in zip(y, x))
            wanted = Counter()
            for (name, content), count in tree.counts[split].items():
                wanted[name, right(content)] += count
            if found != wanted:
                return f"WRONG: other images of {split}"
        return "the right bytes"

    return read


def script(seed: int, tries: int, tally: Tally) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for number in range(tries):
            draw = random.Random(f"{seed} {number}")
            tree, kind = Tree(draw), draw.choice(("folder", ".zip", ".tar"))
            if kind == ".zip" and any("\udcff" in path for path in (*tree.files, *tree.links)):
                kind = "folder"  # whose names may be any bytes
            place = Path(folder, "x" if kind == "folder" else f"x{kind}")
            tree.written(place) if kind == "folder" else tree.packed(place, kind)
            tally.attempt(f"try {number}, {kind}", reader(tree, place))
            shutil.rmtree(place) if place.is_dir() else place.unlink()


if __name__ == "__main__":
    run(script, 2000)
