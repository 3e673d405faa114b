"""Read named files in a folder, a zip, a tar or a .deb into memory; nothing is unpacked to disk."""

import contextlib
import errno
import gzip
import io
import posixpath
import resource
import subprocess
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Generic, Protocol, Self, TypeVar

from clpapers.provenance import ProvenanceError

ARCHIVES = (".zip", ".tar.gz", ".tgz", ".tar", ".deb")
LARGEST = 1 << 31  # bytes that an archive (of a zip: a member) may unpack to: more than any here, less than a bomb
RATIO, SLACK = 200, 1 << 26  # it may also unpack to at most RATIO times its size plus SLACK bytes
LARGEST_HEADER = 1 << 20  # bytes of a tar's header member, which describes the next member
HEADERS = (
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
)
LINKS = 8  # that follow one another in a tar
MEMORY = 1 << 31  # bytes that dpkg-deb may take

T = TypeVar("T")


class SourceError(ProvenanceError):
    """A source does not serve, or serves wrong bytes; the text names file, fault and remedy.

    It is one line of printable characters, whatever the names in the source hold.
    """


class Absent(SourceError):
    """The source has nothing to offer here: no such folder, no such client."""


@contextlib.contextmanager
def guarded(refusal: Callable[[str], SourceError]) -> Iterator[None]:
    """Raise a `refusal` that names the fault for any error inside: hostile bytes can break a reader in any way.

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

    A tar is read once, front to back, into memory; a zip member by member. Raises SourceError where the archive
    is damaged, is a web page, holds a path that leads out of its folder, or unpacks to too many bytes, headers counted
    (LARGEST, RATIO, SLACK).
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
            return _deb(path)
        with path.open("rb") as stream:
            packed = stream.read(2) == b"\x1f\x8b"
            stream.seek(0)
            return _tar(path, gzip.GzipFile(fileobj=stream) if packed else stream)


def looks_like_html(start: bytes) -> bool:
    """Whether a file with this start is a web page, for example a login form served in an archive's place."""
    return start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<")


def _zip(path: Path) -> Files:
    opened = zipfile.ZipFile(path)
    members: dict[str, zipfile.ZipInfo] = {}
    for info in opened.infolist():
        if (name := _inside(path, info.filename)) in members:
            raise SourceError(f"{path}: it has two files {name}; pack it again")
        if not info.is_dir():
            members[name] = info
    bare = tuple(f"{_inside(path, info.filename)}/" for info in opened.infolist() if info.is_dir())
    for name, info in members.items():
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise SourceError(f"{path}: {name} is compressed by another method than deflate; fetch the official file")
        if info.file_size > (most := _most(info.compress_size)):
            raise SourceError(f"{path}: {name} unpacks to over {most} bytes; fetch the official file")
    return Files(str(path), members, opened.read, bare=bare)


def _most(size: int) -> int:
    """How many bytes an archive or member of `size` packed bytes may unpack to."""
    return min(LARGEST, RATIO * size + SLACK)


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class _LimitedReader(io.RawIOBase):
    """A stream of a tar's bytes; refuses to read more than the archive may unpack to."""

    def __init__(self, path: Path, stream: _Readable):
        self.path, self.stream, self.most = path, stream, _most(path.stat().st_size)
        self.taken = 0

    def read(self, size: int = -1) -> bytes:
        content = self.stream.read(size)
        self.taken += len(content)
        if self.taken > self.most:
            raise SourceError(f"{self.path}: unpacks to over {self.most} bytes; fetch the official file")
        return content


class _Member(tarfile.TarInfo):
    """A tar's member; checks its size before anything is read for it."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        member = super().frombuf(buf, encoding, errors)
        if member.size < 0 or (member.type in HEADERS and member.size > LARGEST_HEADER):
            raise tarfile.ReadError(f"a header of {member.size} bytes")
        return member


def _tar(path: Path, stream: _Readable) -> Files:
    members, links, folders = dict[str, bytes](), dict[str, str](), list[str]()
    limited = _LimitedReader(path, stream)
    with tarfile.open(fileobj=limited, mode="r|", bufsize=1 << 18, tarinfo=_Member) as opened:
        for info in opened:
            name = _inside(path, info.name)
            if info.size < 0 or info.issparse():
                raise tarfile.ReadError(f"{name} is sparse, or of {info.size} bytes")
            if info.size > limited.most:
                raise SourceError(f"{path}: unpacks to over {limited.most} bytes; fetch the official file")
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
            opened.members.clear()  # type: ignore[attr-defined]  # in no stub; the list would keep every header
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


def _inside(path: Path, name: str) -> str:
    """Return `name` in its plain form; refuse one that leads out of the archive, since it is forged."""
    pure = PurePosixPath(name.replace("\\", "/"))
    if pure.is_absolute() or ".." in pure.parts:
        raise SourceError(f"{path}: its member {name!r} leads out of the archive; delete it, it is forged")
    return pure.as_posix()


def _deb(path: Path) -> Files:
    """The files inside a Debian package, which dpkg-deb converts to a tar."""
    command = ["dpkg-deb", "--fsys-tarfile", str(path)]
    try:
        client = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except FileNotFoundError as error:
        raise Absent("dpkg-deb is not installed") from error
    with client:
        try:
            with contextlib.suppress(ProcessLookupError):  # it has failed already
                resource.prlimit(client.pid, resource.RLIMIT_AS, (MEMORY, MEMORY))
            assert client.stdout is not None  # a pipe
            unpacked = _tar(path, client.stdout)
            while client.stdout.read(1 << 16):  # dpkg-deb fails unless all is read, beyond the tar's end too
                pass
        except BaseException:
            client.kill()
            raise
    if client.returncode:
        raise tarfile.ReadError("dpkg-deb cannot read it")
    return unpacked
