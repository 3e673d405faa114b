"""Write a research object as zip or folder, read it, and check it against its own manifest and records.

`ro-crate-metadata.json` describes all other files, `manifest-sha256.txt` lists them as `sha256sum` does, and records
name each file's inputs. Some files are left out, such as the stream of an imported run; their records stand in a folder
`imported/records`. Each is named by its own SHA-256, which the run's record holds.
"""

import contextlib
import functools
import hashlib
import json
import re
import stat
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

from clpapers.provenance import (
    AS_RECORDED,
    BY_CHECKSUM,
    CHANGED,
    EDITED,
    MANIFEST,
    MISSING,
    NOT_AS_RECORDED,
    REMADE,
    UNSEALED,
    Files,
    ProvenanceError,
    as_published,
    damage_of,
    escaped,
    files_of,
    is_imported,
    record_path,
    seal,
    write_atomically,
)

METADATA = "ro-crate-metadata.json"
LARGEST = 1 << 36  # bytes: more than any crate unpacks to
LARGEST_TEXTS = 1 << 29  # bytes of all files that are read into memory: metadata and records of some 50,000 runs
APART = re.compile(r"results/\w+/imported/records/([0-9a-f]{64})\.json")
DISK_LABEL = 0x08  # among the attributes of an entry, as MS-DOS has them
EPOCH = (1980, 1, 1, 0, 0, 0)  # the time of every entry: the earliest that a zip can hold
Finding = tuple[str, str]  # file, reason
Members = dict[str, Callable[[], IO[bytes]]]  # by posix path, how to read a file


class CrateError(ProvenanceError):
    """A crate cannot be made, or a file is no crate; one line: file, fault, remedy."""


# --- writing -------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def appearing(out: Path) -> Iterator[Path]:
    """A temporary file, or folder, that becomes `out` on success and vanishes on failure."""
    if out.suffix == ".zip":
        with write_atomically(out) as temporary:
            yield temporary
        return
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise CrateError(f"{out}: there is something already; name a new folder or a file that ends in .zip")
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as work:
        temporary = Path(work, out.name)
        temporary.mkdir()
        yield temporary
        temporary.replace(out)


def write(out: Path, contents: Mapping[str, Path | bytes]) -> None:
    """Write files, or bytes, by path into a folder or a zip: the same contents make the same bytes."""
    if out.is_dir():
        for name, content in contents.items():
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            (out / name).write_bytes(content if isinstance(content, bytes) else content.read_bytes())
        return
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in sorted(contents.items()):
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.create_system, entry.external_attr = 3, (stat.S_IFREG | 0o644) << 16
            data = content if isinstance(content, bytes) else content.read_bytes()
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED, compresslevel=9)


def manifest_of(digests: Mapping[str, str]) -> str:
    """The text of a manifest, from each file's SHA-256."""
    return "".join(f"{digest}  {path}\n" for path, digest in sorted(digests.items()))


def by_checksum(path: str) -> bool:
    """Whether a crate names a file by its checksum instead of holding it: the arrays of data sets and weights."""
    parts = PurePosixPath(path).parts
    return len(parts) == 4 and parts[2] in ("datasets", "weights") and path.endswith(".npz")


# --- the audit of a crate -----------------------------------------------------------------------------------


class Crate(NamedTuple):
    """A crate that was read. digests: of all files, by path; texts: the contents that were kept, by path."""

    digests: dict[str, str]
    texts: dict[str, bytes]
    faults: list[Finding]

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of its manifest."""
        return self.digests[MANIFEST]

    @property
    def records(self) -> dict[str, bytes]:
        """The records by their SHA-256."""
        return {self.digests[name]: text for name, text in self.texts.items() if _is_record(name)}


def check(path: Path) -> tuple[list[Finding], str]:
    """Check a crate, zip or folder, against itself; returns its faults and the SHA-256 of its manifest (`read`)."""
    crate = read(path)
    return crate.faults, crate.fingerprint


def sound(path: Path, remedy: str, keep: Callable[[str], object] = lambda name: False) -> Crate:
    """Read a crate; raises `CrateError` with its first fault, and the remedy, where it has any."""
    crate = read(path, keep)
    for file, reason in crate.faults:
        raise CrateError(f"{path}: {file}: {reason}; {remedy}")
    return crate


def read(path: Path, keep: Callable[[str], object] = lambda name: False) -> Crate:
    """Read a crate and check it against itself.

    Every file must match the manifest, every result its record. Every input that a record names must
    be in the crate with the bytes that were read. Instead it may be a data set with their checksum, or have its record
    in `imported/records` with their checksum. The crate may hold nothing else.
    A zip is read in place: nothing is unpacked. keep: the files, by path, whose texts are kept beside metadata and
    records. Raises `CrateError` where it is no crate at all, or holds more than is read.
    """
    with opened(path) as (members, faults):
        digests: dict[str, str] = {}
        texts, remaining = dict[str, bytes](), LARGEST_TEXTS
        for name, open_member in sorted(members.items()):
            is_text = name in (METADATA, MANIFEST) or _is_record(name) or keep(name)
            try:
                with open_member() as stream:
                    if is_text:
                        texts[name] = stream.read(remaining + 1)
                        remaining -= len(texts[name])
                        digests[name] = hashlib.sha256(texts[name]).hexdigest()
                    else:
                        digests[name] = _sha256(stream)
            except Exception as error:  # a forged zip can break its reader in any way
                faults.append((name, f"cannot be read ({error})"))
            if remaining < 0:
                raise CrateError(f"{path}: over {LARGEST_TEXTS} bytes of metadata, records and results; it is forged")
    for required in (METADATA, MANIFEST):
        if required not in texts:
            raise _lacks(path, required, faults)
    faults += _against_manifest(digests, texts[MANIFEST])
    faults += _against_records(digests, texts)
    return Crate(digests, texts, [(escaped(file), escaped(reason)) for file, reason in dict.fromkeys(faults)])


def _is_record(name: str) -> bool:
    return name.endswith(".record.json") or APART.fullmatch(name) is not None


def fingerprint(path: Path) -> str:
    """The SHA-256 of a crate's manifest, the only file that is read; raises `CrateError` where it cannot be."""
    with opened(path) as (members, faults):
        if MANIFEST not in members:
            raise _lacks(path, MANIFEST, faults)
        try:
            with members[MANIFEST]() as stream:
                return _sha256(stream)
        except Exception as error:  # a forged zip can break its reader in any way
            raise CrateError(f"{path}: {MANIFEST}: cannot be read ({error}); fetch or make it anew") from None


def _lacks(path: Path, name: str, faults: Iterable[Finding]) -> CrateError:
    """The error of a crate without one of its two lists: how that one is at fault where it is there."""
    for file, reason in faults:
        if PurePosixPath(file.replace("\\", "/")).name == name:
            return CrateError(f"{path}: {file}: {reason}")
    return CrateError(f"{path}: has no {name} that can be read; it is not a crate of `clpapers export`")


def _sha256(stream: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while chunk := stream.read(1 << 18):
        digest.update(chunk)
    return digest.hexdigest()


@contextlib.contextmanager
def opened(path: Path) -> Iterator[tuple[Members, list[Finding]]]:
    """Open a crate: by posix path, how to read each file; and the faults of the paths themselves.

    It may stand in a folder, as it does once it was unpacked and packed again: paths are those below that folder.
    """
    members: Members = {}
    faults: list[Finding] = []
    if path.is_dir():
        for file in path.rglob("*"):
            if file.is_symlink() or not (file.is_file() or file.is_dir()):
                faults.append((file.relative_to(path).as_posix(), "is a link or a device, not a plain file"))
            elif file.is_file():
                members[file.relative_to(path).as_posix()] = functools.partial(_open, file)
        yield _inside(members, faults), faults
        return
    if path.exists() and not path.is_file():
        raise CrateError(f"{path}: no file and no folder; name a crate of `clpapers export`")
    try:
        archive = zipfile.ZipFile(path)
    except Exception as error:  # a forged zip can break its reader in any way
        raise CrateError(f"{path}: no zip, or damaged ({error}); export it or fetch it anew") from None
    with archive:
        if sum(info.file_size for info in archive.infolist()) > LARGEST:
            raise CrateError(f"{path}: unpacks to over {LARGEST} bytes; it is not a crate of `clpapers export`")
        for info in archive.infolist():
            name, kind = info.filename.removeprefix("./"), stat.S_IFMT(info.external_attr >> 16)
            inside = name.removesuffix("/") == str(PurePosixPath("/", name))[1:] and ".." not in name.split("/")
            if inside and name.endswith("/") and not info.file_size:
                continue
            if not inside or not name:
                faults.append((info.filename, "leads out of the crate; do not unpack it"))
            elif "\\" in name:
                faults.append((info.filename, "has a name with \\, which may stand for folders; pack it with /"))
            elif kind not in (0, stat.S_IFREG) or info.external_attr & DISK_LABEL:
                faults.append((info.filename, "is a link, a device or a label of a disk, not a plain file"))
            elif name in members:
                faults.append((info.filename, "is there twice"))
            else:
                members[name] = functools.partial(archive.open, info)
        yield _inside(members, faults), faults


def _inside(members: Members, faults: list[Finding]) -> Members:
    """The members of the folder that the manifest stands in, by their paths below it; others become faults."""
    folders = [name.removesuffix(MANIFEST) for name in members if f"/{name}".endswith(f"/{MANIFEST}")]
    top = min(folders, key=len, default="")
    faults += [(name, f"is not in {top}, as the manifest is") for name in members if not name.startswith(top)]
    return {name.removeprefix(top): read for name, read in members.items() if name.startswith(top)}


def _open(file: Path) -> IO[bytes]:
    return file.open("rb")


def _against_manifest(digests: Mapping[str, str], text: bytes) -> Iterator[Finding]:
    listed = files_of(text)
    for name in sorted({*digests, *listed} - {MANIFEST}):
        if name not in listed:
            yield name, f"is not listed in {MANIFEST}"
        elif name not in digests:
            yield name, f"is missing, though {MANIFEST} lists it"
        elif digests[name] != listed[name]:
            yield name, f"has SHA-256 {digests[name][:12]}…, not {listed[name][:12]}… as {MANIFEST} says"
    if listed.keys() == digests.keys() - {MANIFEST} and manifest_of(listed).encode() != text:
        yield MANIFEST, "is not written as `clpapers export` writes it"


class _CrateFiles(Files):
    """The files of a crate with their records."""

    def __init__(self, digests: Mapping[str, str], records: Mapping[str, dict]):
        super().__init__()
        self.digests = dict(digests)
        self.records = {Path(name): record for name, record in records.items()}
        self.apart: set[tuple[str, str]] = set()  # path and checksum of files whose records came along with runs
        for name, record in records.items():
            for item in record["outputs"]:
                if match := APART.fullmatch(name):
                    self.apart |= {(item["path"], item["sha256"]), (str(record_path(item["path"])), match[1])}
                elif by_checksum(item["path"]):
                    self.digests[item["path"]] = item["sha256"]

    def digest(self, path: Path | str) -> str:
        return self.digests.get(str(path), "")

    def record(self, path: Path | str) -> dict | None:
        return self.records.get(record_path(path))

    def state_since(self, item: dict) -> str:
        return BY_CHECKSUM if (as_published(item["path"]), item["sha256"]) in self.apart else super().state_since(item)

    def came_along(self, item: dict) -> bool:
        return False  # records that came along are `apart`; this project's own say nothing about a crate


def _against_records(digests: dict[str, str], texts: dict[str, bytes]) -> Iterator[Finding]:
    records: dict[str, dict] = {}
    for name in filter(_is_record, texts):
        try:
            record = json.loads(texts[name])
            if damage := damage_of(record):
                raise ValueError(damage)
            records[name] = record
        except (ValueError, RecursionError) as error:
            yield name, f"is not a record ({error!r})"
    held, named = _CrateFiles(digests, records), set()
    for name, record in records.items():
        if record.get("seal") != seal(record):
            yield name, f"is edited: {EDITED[UNSEALED]}"
        apart = APART.fullmatch(name)
        if apart and apart[1] != digests[name]:
            yield name, "is not named by its own SHA-256"
        for path in (item["path"] for item in record["outputs"]):
            beside = str(PurePosixPath(name).parent / PurePosixPath(path).name)
            if by_checksum(path):
                if not any(facts["sha256"] for facts in record["data"].values()):
                    yield name, f"has no content checksum of {path}"
            elif apart:
                continue
            elif str(record_path(path)) != as_published(name):
                yield name, f"is not the record of {path}, which it names"
            else:
                named.add(beside)
                if beside not in digests:
                    yield beside, f"is missing, though its record {PurePosixPath(name).name} names it"
                elif held.state(beside, record) != AS_RECORDED:
                    yield beside, f"is {EDITED[NOT_AS_RECORDED]}"
        for item in record["inputs"]:
            path, own_path, state = item["path"], str(record_path(item["path"])), held.state_since(item)
            if state == MISSING:
                yield path, f"is missing, though {name} names it"
            elif state == CHANGED:
                yield path, f"is not the one that {name} names"
            elif state == REMADE and not (apart or is_imported(name) or (own_path, item.get("record")) in held.apart):
                yield own_path, f"is not the one that {name} names"  # of an imported run one of the same bytes may be
    for path in digests:
        if path.startswith("results/") and path not in named and path not in records:
            yield path, "has no record that names it"
