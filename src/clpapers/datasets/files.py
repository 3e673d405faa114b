"""Named files in a folder, a zip, a tar or a .deb, read into memory: nothing is ever unpacked to disk."""

from __future__ import annotations

import gzip
import io
import lzma
import subprocess
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

ARCHIVES = (".zip", ".tar.gz", ".tgz", ".tar", ".deb")
LARGEST = 1 << 31  # bytes: more than any archive here unpacks to (a zip: any member), less than a bomb
BROKEN = (
    tarfile.TarError,
    zipfile.BadZipFile,
    gzip.BadGzipFile,
    lzma.LZMAError,
    zlib.error,
    EOFError,
    NotImplementedError,  # a zip member packed by an unknown method
    RuntimeError,  # an encrypted one
)


class SourceError(Exception):
    """A source does not serve, or serves wrong bytes; the text is one line: file, what is wrong, remedy."""


class Absent(SourceError):
    """The source has nothing to offer here: no such folder, no such client."""


@dataclass(frozen=True)
class Files:
    """Files found by the last part of their path, wherever they lie and however deep.

    `where` is how errors name the whole, `paths` maps each file's posix path to whatever `load` reads it by.
    """

    where: str
    paths: Mapping[str, object]
    load: Callable[[object], bytes]

    def find(self, name: str) -> str | None:
        """The path that ends in `name`, the least deep one if there are several; None if there is none."""
        found = [path for path in self.paths if path == name or path.endswith("/" + name)]
        return min(found, key=lambda path: (path.count("/"), path), default=None)

    def read(self, name: str) -> bytes:
        """The bytes of the file whose path is, or ends in, `name`; SourceError where absent or unreadable."""
        path = name if name in self.paths else self.find(name)
        if path is None:
            raise self.wrong(f"{name} is missing")
        try:
            return self.load(self.paths[path])
        except BROKEN as error:
            raise self.wrong(f"{path} is damaged ({error})") from error

    def wrong(self, fault: str) -> SourceError:
        """The error to raise where these files are not what they should be."""
        return SourceError(f"{self.where}: {fault}; fetch the official file again")


def folder(path: Path) -> Files:
    """Every file under the folder `path`."""
    return plain(str(path), {p.relative_to(path).as_posix(): p for p in path.rglob("*") if p.is_file()})


def plain(where: str, paths: Mapping[str, Path]) -> Files:
    """Ordinary files, each under the name given."""
    return Files(where, paths, Path.read_bytes)


def archive(path: Path) -> Files:
    """The members of an archive, told apart by the suffix of its name.

    A tar is read once, front to back, into memory; a zip member by member. SourceError where the archive is
    damaged, is a web page, unpacks to more than LARGEST or holds a path that leads out of its folder.
    """
    try:
        if path.suffix == ".zip":
            return _zip(path)
        if path.suffix == ".deb":
            return _tar(path, io.BytesIO(_fsys_tarfile(path)))
        with path.open("rb") as stream:
            return _tar(path, stream)
    except BROKEN as error:
        with path.open("rb") as stream:
            web_page = looks_like_html(stream.read(64))
        fault = "is a web page, not an archive" if web_page else f"is damaged or cut short ({error})"
        raise SourceError(f"{path}: {fault}; delete it and fetch it again") from error


def looks_like_html(start: bytes) -> bool:
    """Whether a file that starts so is a web page, such as a login form served in an archive's place."""
    return start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<")


def _zip(path: Path) -> Files:
    opened = zipfile.ZipFile(path)
    members = {_inside(path, info.filename): info for info in opened.infolist() if not info.is_dir()}
    for name, info in members.items():
        if info.file_size > LARGEST:
            raise SourceError(f"{path}: {name} unpacks to over {LARGEST} bytes; fetch the official file")
    return Files(str(path), members, opened.read)


def _tar(path: Path, stream: io.BufferedIOBase) -> Files:
    members, size = {}, 0
    with tarfile.open(fileobj=stream) as opened:
        for info in opened:
            name = _inside(path, info.name)
            size += info.size
            if size > LARGEST:
                raise SourceError(f"{path}: unpacks to over {LARGEST} bytes; fetch the official file")
            if info.isfile():  # links and devices have no bytes of their own
                members[name] = opened.extractfile(info).read()
    return Files(str(path), members, bytes)


def _inside(path: Path, name: str) -> str:
    """`name` if it stays inside the archive; though nothing is unpacked, one that does not is forged."""
    pure = PurePosixPath(name.replace("\\", "/"))
    if pure.is_absolute() or ".." in pure.parts:
        raise SourceError(f"{path}: its member {name!r} leads out of the archive; delete it, it is forged")
    return pure.as_posix()


def _fsys_tarfile(path: Path) -> bytes:
    """The tar of files inside a Debian package."""
    command = ["dpkg-deb", "--fsys-tarfile", str(path)]
    try:
        return subprocess.run(command, capture_output=True, check=True, timeout=600).stdout
    except FileNotFoundError as error:
        raise Absent("dpkg-deb is not installed") from error
    except subprocess.SubprocessError as error:
        raise SourceError(f"{path}: is damaged or cut short; delete it and fetch it again") from error
