"""Papers, their methods, and data sets from outside of the project: where their files stand, and whence they came.

The settings `papers` and `datasets` name them (`config.settings`). A file that passes all checks is copied below
config/outside/, and everything reads the copy, as it reads the rest of config/: every job wherever it runs, the audit,
crates. So an edit of the original counts from the next build on and never halfway through one. A build's results can
be described, checked and packed later. A copy that is deleted is forgotten.
"""

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from clpapers.config.files import CONFIG
from clpapers.provenance import sha256, write_text

FOLDER = CONFIG / "outside"
WHENCE = FOLDER / ".whence.json"  # hidden: no crate tells of folders of this machine
KINDS = {"datasets": ".yaml", "methods": ".py", "reported": ".csv", "papers": ".yaml"}  # none waits for a later one

_tried: dict[Path, Path | None] = {}


def copy_of(kind: str, name: str) -> Path:
    """Where the copy of a file of some kind stands."""
    return FOLDER / kind / f"{name}{KINDS[kind]}"


def files(kind: str) -> dict[str, Path]:
    """The files of a kind from outside, by name: the copies; while originals are tried, these in their place."""
    copies = sorted((FOLDER / kind).glob(f"[!.]*{KINDS[kind]}"))
    found: dict[Path, Path | None] = {path: path for path in copies}
    found |= {copy: original for copy, original in _tried.items() if copy.parent.name == kind}
    return {copy.stem: path for copy, path in found.items() if path is not None}


@contextlib.contextmanager
def trying(originals: Mapping[Path, Path | None]) -> Iterator[None]:
    """Inside, files are read in the place of their copies; None where there shall be no copy any more."""
    _tried.update(originals)
    try:
        yield
    finally:
        _tried.clear()


def tried() -> bool:
    """Whether any file is read in the place of its copy."""
    return bool(_tried)


def lay(originals: Mapping[Path, Path | None]) -> None:
    """Read these files in the place of their copies from now on, and no others, in this process alone."""
    _tried.clear()
    _tried.update(originals)


def keep(originals: Mapping[Path, Path], texts: Mapping[Path, str | None]) -> None:
    """Write copies by their `texts`, None for one to remove, and note the `originals` they are of."""
    for copy, text in texts.items():
        if text is None:
            copy.unlink(missing_ok=True)
        else:
            copy.parent.mkdir(parents=True, exist_ok=True)
            write_text(copy, text)
    noted = _whence() | dict(originals)
    write_text(WHENCE, json.dumps({str(copy): str(path) for copy, path in noted.items() if copy.is_file()}, indent=1))


def original(copy: Path) -> Path | None:
    """The file that a copy is of; None where nobody noted it, as in a crate."""
    return _tried.get(copy) or _whence().get(copy)


def remedy(paper: str) -> str:
    """The remedy for a paper that was taken in and does not pass, as at a scale that it was not tried at."""
    copy = copy_of("papers", paper)
    if copy in _tried or not copy.is_file():
        return ""
    return f"; mend {original(copy) or 'the file it is of'} and build it at this scale, or delete the copy to forget it"


def _whence() -> dict[Path, Path]:
    try:
        found = json.loads(WHENCE.read_text(encoding="utf-8"))
        return {Path(copy): Path(path) for copy, path in found.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def data_folder(spec: Mapping, usual: Path | str) -> Path:
    """The folder in which the folder of a data set's own files stands: beside the file that declares it, or `usual`."""
    declared = original(Path(spec["declared"])) if "declared" in spec else None
    return declared.parent if declared else Path(usual)


def rested_on(path: Path, datasets: Mapping[str, Mapping]) -> list[dict]:
    """The files from outside that say how `path`, results/<scale>/<stage>/…, is made: `path` and `sha256` of each.

    datasets: the plan's. The inputs of `path` have files of their own, as its records tell.
    """
    stage, names = path.parts[2], path.parts[3:]
    found: list[Path | None] = []
    if stage == "runs" and len(names) == 4:
        label = f"{names[2].rpartition('-')[0]}-"
        found += [file for name, file in files("methods").items() if name.partition(".")[2].startswith(label)]
    if stage in ("metrics", "targets", "selection"):
        found.append(files("papers").get(names[0]))
    elif names[0] == "nets":
        found.append(files("papers").get(names[1]))
    elif declared := datasets.get(names[0].partition(".")[0], {}).get("declared"):
        found.append(Path(declared))
    return [{"path": str(each), "sha256": sha256(each)} for each in found if each]
