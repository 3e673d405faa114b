"""Image files in a folder a class, `{train,test}/<class>/…`: of any size, in colour or grey; a layout for own data."""

import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator

from clpapers.datasets.arrays import Splits
from clpapers.datasets.files import Files
from clpapers.datasets.formats import _image
from clpapers.provenance import escaped

PLACE = re.compile(r"(?P<root>(?:.*?/)??)(?P<split>train|test)/(?P<inside>.+)", re.IGNORECASE | re.DOTALL)
HIDDEN = re.compile(r"(?:^|/)(?:\.|@eaDir|__MACOSX|\$RECYCLE\.BIN|lost\+found)")  # other programs' own
UNREAD = ("ai", "arw", "cr2", "cr3", "dng", "heic", "heif", "jxl", "nef", "orf", "raw", "rw2", "svg")
BEGINS = re.compile(rb"\x89PNG|\xff\xd8\xff|GIF8|BM|II\*\0|MM\0\*|RIFF....WEBP|\0\0\0.(?:ftyp|jP  )", re.DOTALL)


def present(files: Files) -> bool:
    suffixes = {*_image.SUFFIXES, *UNREAD}
    return any(_suffix(path) in suffixes and PLACE.match(path) for path in _visible(files.paths))


def decode(files: Files, spec: dict) -> Splits:
    """All images, scaled to the shape; a label is the place of the folder's name among `classes`."""
    places = {composed(name): label for label, name in enumerate(spec["classes"])}
    found = images(files)
    splits: dict[str, list[tuple[str, int]]] = {}
    for split, folders in found.items():
        for name in folders:
            if name not in places:
                raise files.wrong(f"{split} has the folder {name!r}, which is none of the classes")
        examples = [(path, places[name]) for name in folders for path in folders[name]]
        for name in (name for label, name in enumerate(spec["classes"]) if label not in {each for _, each in examples}):
            raise files.wrong(f"{split} has no image of {name}")
        splits[split] = examples
    return {split: _image.resized(files, split, examples, spec, from_user=True) for split, examples in splits.items()}


def images(files: Files) -> dict[str, dict[str, list[str]]]:
    """The paths of all images by split and folder; hidden files and folders are passed over.

    A folder's name is in composed form (`composed`), whatever form the file system has. A message on stderr counts the
    images outside of train/ and test/. Raises SourceError where anything inside would be lost or counted twice: a file
    that looks like an image and is not read, an empty folder, a link to nowhere, a second train/. So it does for a
    folder whose name is no text, and for two of one name in two Unicode forms.
    """
    found: dict[str, dict[str, list[str]]] = {"train": {}, "test": {}}
    roots, named, outside = dict[str, str](), dict[tuple[str, str, str], str](), []
    written: dict[tuple[str, str], str] = {}  # by split and composed name, the folder's own
    for path in _visible(files.paths):
        match, kind = PLACE.match(path), _image.SUFFIXES.get(_suffix(path))
        if kind is None and _suffix(path) not in UNREAD and not (match and BEGINS.match(files.read(path)[:16])):
            if match and "/" in match["inside"]:
                named.setdefault((match["root"], match["split"], match["inside"].partition("/")[0]), path)
            continue
        if match is None:
            outside.append(path)
            continue
        name, slash, _ = match["inside"].partition("/")
        if not slash:
            raise files.wrong(f"{path} is in no folder of a class")
        if kind not in _image.USER_FORMATS:
            raise files.wrong(f"{path} looks like an image and is not read; save it as .png, or move it away")
        roots.setdefault(match["root"], path)
        split = match["split"].lower()
        try:
            name.encode()
        except UnicodeEncodeError:
            raise files.wrong(f"{split} has the folder {name}, a name that is no UTF-8; rename it") from None
        if (other := written.setdefault((split, composed(name)), name)) != name:
            both = f"{other!a} and {name!a}"
            raise files.wrong(f"{split} has the folders {both}, one name in two Unicode forms; rename one")
        found[split].setdefault(composed(name), []).append(path)
    if len(roots) > 1:
        one, other, *_ = roots.values()
        raise files.wrong(f"has images in two places, such as {one} and {other}; move one away")
    for path in _visible(files.bare):
        match = PLACE.match(path.rstrip("/"))
        if match and not path.endswith("/"):
            raise files.wrong(f"{path} is a link to nowhere; mend it or take it away")
        if match and "/" not in match["inside"]:
            named.setdefault((match["root"], match["split"], match["inside"]), path)
    for (root, split, name), path in named.items():
        if root in roots and composed(name) not in found[split.lower()]:
            raise files.wrong(f"{path} is all that {split}/{name} has, and no image; fill it or take it away")
    if outside and any(found.values()):
        message = f"{len(outside)} images outside of train/ and test/ are not read, such as {outside[0]}"
        print(f"clpapers: {escaped(f'{files.where}: {message}')}", file=sys.stderr)
    return found


def composed(name: str) -> str:
    """A name in the Unicode form in which names of classes are compared (NFC)."""
    return unicodedata.normalize("NFC", name)


def _visible(paths: Iterable[str]) -> Iterator[str]:
    return (path for path in paths if not HIDDEN.search(path))


def _suffix(path: str) -> str:
    name = path.rpartition("/")[2]
    return name.rpartition(".")[2].lower() if "." in name else ""
