"""Read named files in a folder, a zip, a tar or a .deb into memory; nothing is unpacked to disk."""

import contextlib
import errno
import io
import posixpath
import subprocess
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Generic, TypeVar

from clpapers.provenance import ProvenanceError

ARCHIVES = (".zip", ".tar.gz", ".tgz", ".tar", ".deb")
LINKS = 8  # that follow one another in a tar

T = TypeVar("T")


class SourceError(ProvenanceError):
    """A source does not serve, or serves wrong bytes; the text names file, fault and remedy.

    It is one line of printable characters, whatever the names in the source hold.
    """


class Absent(SourceError):
    """The source has nothing to offer here: no such folder, no such client."""


@contextlib.contextmanager
def guarded(refusal: Callable[[str], SourceError]) -> Iterator[None]:
    """Raise a `refusal` that names the fault for any error inside: damaged bytes can break a reader in any way.

    Errors of the disk and of memory pass through, since the bytes did not cause them.
    """
    try:
        yield
    except (SourceError, MemoryError):
        raise
    except Exception as error:
        of_bytes = (None, errno.EINVAL, errno.EOVERFLOW)  # raised by readers, and for impossible seeks
        if isinstance(error, OSError) and error.errno not in of_bytes:
            raise
        reason = str(error).partition("\n")[0][:200] or type(error).__name__
        raise refusal(f"is damaged or cut short ({reason})") from error


@dataclass(frozen=True)
class Files(Generic[T]):
    """Files found by the last part of their path, wherever they lie and however deep.

    `where` names them all in errors; `paths` maps each file's posix path to the argument with which `load` reads it.
    `remedy` is the advice where a file is at fault. `bare` are the paths without bytes: folders, which end in a slash,
    and links that lead nowhere.
    """

    where: str
    paths: Mapping[str, T]
    load: Callable[[T], bytes]
    remedy: str = "fetch the official file again"
    bare: tuple[str, ...] = ()

    def find(self, name: str) -> str | None:
        """The path that ends in `name`, the shallowest if there are several; None if there is none."""
        found = [path for path in self.paths if path == name or path.endswith("/" + name)]
        return min(found, key=lambda path: (path.count("/"), path), default=None)

    def read(self, name: str) -> bytes:
        """The bytes of the file whose path is, or ends in, `name`; SourceError where absent or unreadable."""
        path = name if name in self.paths else self.find(name)
        if path is None:
            raise self.wrong(f"{name} is missing")
        with guarded(lambda problem: self.wrong(f"{path} {problem}")):
            return self.load(self.paths[path])

    def wrong(self, problem: str) -> SourceError:
        """The error to raise where these files are not as they should be."""
        return SourceError(f"{self.where}: {problem}; {self.remedy}")


def folder(path: Path) -> Files:
    """Every file under the folder `path`, links followed; SourceError for a link to a folder above it."""
    paths: dict[str, Path] = {}
    bare: list[str] = []

    def walk(inside: Path, above: tuple[Path, ...]) -> None:
        real = inside.resolve()
        if real in above:
            raise SourceError(f"{inside}: links to a folder that it stands in; take it away")
        for each in sorted(inside.iterdir()):
            name = each.relative_to(path).as_posix()
            if each.is_dir():
                bare.append(f"{name}/")
                walk(each, (*above, real))
            elif each.is_file():
                paths[name] = each
            elif each.is_symlink():
                bare.append(name)

    walk(path, ())
    return Files(str(path), paths, Path.read_bytes, bare=tuple(bare))


def plain(where: str, paths: Mapping[str, Path]) -> Files:
    """Ordinary files, each under the name given."""
    return Files(where, paths, Path.read_bytes)


def archive(path: Path) -> Files:
    """The members of an archive, told apart by the suffix of its name.

    A tar is read once, front to back, into memory; a zip member by member. Nothing is unpacked to disk, so a member's
    name leads nowhere. Raises SourceError where the archive is damaged or is a web page.
    """

    def refusal(problem: str) -> SourceError:
        with path.open("rb") as stream:
            web_page = looks_like_html(stream.read(64))
        problem = "is a web page, not an archive" if web_page else problem
        return SourceError(f"{path}: {problem}; delete it and fetch it again")

    with guarded(refusal):
        if path.suffix == ".zip":
            return _zip(path)
        if path.suffix == ".deb":
            return _tar(path, io.BytesIO(_content_of_deb(path)))
        with path.open("rb") as stream:
            return _tar(path, stream)


def looks_like_html(start: bytes) -> bool:
    """Whether a file with this start is a web page, for example a login form served in an archive's place."""
    return start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<")


def _plain(name: str) -> str:
    """A member's name in its plain form; some programs write backslashes."""
    return posixpath.normpath(name.replace("\\", "/"))


def _zip(path: Path) -> Files:
    opened = zipfile.ZipFile(path)
    members: dict[str, zipfile.ZipInfo] = {}
    for info in opened.infolist():
        if (name := _plain(info.filename)) in members:
            raise SourceError(f"{path}: it has two files {name}; pack it again")
        if not info.is_dir():
            members[name] = info
    bare = tuple(f"{_plain(info.filename)}/" for info in opened.infolist() if info.is_dir())
    return Files(str(path), members, opened.read, bare=bare)


def _tar(path: Path, stream: BinaryIO) -> Files:
    """The members of a tar, plain or compressed; a link has the bytes of the member that it leads to."""
    members, links, folders = dict[str, bytes](), dict[str, str](), list[str]()
    with tarfile.open(fileobj=stream, mode="r|*", bufsize=1 << 18) as opened:
        for info in opened:
            name = _plain(info.name)
            if info.isfile():
                content = opened.extractfile(info)
                assert content is not None  # as for every file
                members[name] = content.read()
            elif info.isdir():
                folders.append(f"{name}/")
            elif info.islnk():
                links[name] = posixpath.normpath(info.linkname)
            elif info.issym():
                links[name] = posixpath.normpath(posixpath.join(posixpath.dirname(name), info.linkname))
    _follow(members, links)
    return Files(str(path), members, bytes, bare=(*folders, *links))


def _follow(members: dict[str, bytes], links: dict[str, str]) -> None:
    """Give links, path → path, the bytes of the members that they lead to; `links` keeps those that lead nowhere."""
    for _ in range(LINKS):  # one may lead to another
        for name, target in list(links.items()):
            inside = {f"{name}{each[len(target) :]}": each for each in members if each.startswith(f"{target}/")}
            if target in members:
                members[name] = members[target]
            elif inside and not f"{name}/".startswith(f"{target}/"):
                members |= {link: members[each] for link, each in inside.items()}
            else:
                continue
            del links[name]


def _content_of_deb(path: Path) -> bytes:
    """The tar to which dpkg-deb converts the content of a Debian package."""
    try:
        client = subprocess.run(["dpkg-deb", "--fsys-tarfile", str(path)], capture_output=True, check=False)
    except FileNotFoundError as error:
        raise Absent("dpkg-deb is not installed") from error
    if client.returncode:
        raise tarfile.ReadError("dpkg-deb cannot read it")
    return client.stdout
