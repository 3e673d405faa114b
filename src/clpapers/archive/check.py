"""Write a research object as zip or folder, read it, and check it against its own manifest, metadata and records.

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
from typing import IO
from urllib.parse import unquote

from clpapers.provenance import (
    MANIFEST,
    ProvenanceError,
    as_published,
    damage_of,
    escaped,
    is_imported,
    record_path,
    seal,
    write_atomically,
)

METADATA = "ro-crate-metadata.json"
LARGEST = 1 << 36  # bytes: more than any crate unpacks to
LARGEST_TEXTS = 1 << 29  # bytes of all files that are read into memory: metadata and records of some 50,000 runs
APART = re.compile(r"results/\w+/imported/records/([0-9a-f]{64})\.json")
PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)  # what Python can unpack
ENCRYPTED = 0x01  # among the flags of an entry
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


def check(path: Path) -> tuple[list[Finding], str]:
    """Check a crate, zip or folder, against itself; returns its faults and the SHA-256 of its manifest.

    Every file must match the manifest and the metadata, every result its record. Every input that a record names must
    be in the crate with the bytes that were read. Instead it may be a data set with their checksum, or have its record
    in `imported/records` with their checksum. The crate may hold nothing else.
    A zip is read in place: nothing is unpacked. Raises `CrateError` where it is no crate at all.
    """
    with opened(path) as (members, faults):
        digests, texts, remaining = {}, {}, LARGEST_TEXTS
        for name, read in sorted(members.items()):
            try:
                with read() as stream:
                    if name in (METADATA, MANIFEST) or name.endswith(".record.json") or APART.fullmatch(name):
                        text = stream.read(remaining + 1)
                        remaining -= len(text)
                        if remaining < 0:
                            raise CrateError(
                                f"{path}: over {LARGEST_TEXTS} bytes of metadata and records; it is forged"
                            )
                        texts[name], digests[name] = text, hashlib.sha256(text).hexdigest()
                    else:
                        digests[name] = _sha256(stream)
            except CrateError:
                raise
            except Exception as error:  # a forged zip can break its reader in any way
                faults.append((name, f"cannot be read ({error})"))
    for required in (METADATA, MANIFEST):
        if required not in texts:
            raise lacks(path, required, faults)
    fingerprint = digests[MANIFEST]
    faults += _against_manifest(digests, texts[MANIFEST])
    faults += _against_metadata(digests, texts[METADATA])
    faults += _against_records(digests, texts)
    return [(escaped(file), escaped(reason)) for file, reason in dict.fromkeys(faults)], fingerprint


def lacks(path: Path, name: str, faults: Iterable[Finding]) -> CrateError:
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
            plain, folder = info.filename.removeprefix("./"), info.filename.endswith("/")
            name = plain.removesuffix("/")
            pure, kind = PurePosixPath(name), stat.S_IFMT(info.external_attr >> 16)
            if info.filename == "./" and not info.file_size:  # the folder itself, as some programs have it
                continue
            if pure.is_absolute() or ".." in re.split(r"[\\/]", name) or name != str(pure) or name == ".":
                faults.append((info.filename, "leads out of the crate; do not unpack it"))
            elif "\\" in name:
                faults.append((info.filename, "has a name with \\, which may stand for folders; pack it with /"))
            elif kind not in (0, stat.S_IFDIR if folder else stat.S_IFREG):
                faults.append((info.filename, "is a link or a device, not a plain file"))
            elif info.external_attr & DISK_LABEL:
                faults.append((info.filename, "is marked as the label of a disk, which an unpacker leaves out"))
            elif folder and info.file_size:
                faults.append((info.filename, "is a folder that holds bytes of its own"))
            elif info.compress_type not in PACKED:
                told = f"is packed by method {info.compress_type}, which cannot be read here; pack it with deflate"
                faults.append((info.filename, told))
            elif info.flag_bits & ENCRYPTED:
                faults.append((info.filename, "is encrypted; pack it without a password"))
            elif plain in members:
                faults.append((info.filename, "is there twice"))
            else:
                members[plain] = functools.partial(archive.open, info)
        folders = {name for name in members if name.endswith("/")}
        parents = {f"{parent}/" for name in members.keys() - folders for parent in PurePosixPath(name).parents}
        faults += [(name, "is a folder with nothing in it") for name in sorted(folders - parents)]
        yield _inside({name: read for name, read in members.items() if name not in folders}, faults), faults


def _inside(members: Members, faults: list[Finding]) -> Members:
    """The members of the folder that the manifest stands in, by their paths below it; others become faults."""
    folders = [name.removesuffix(MANIFEST) for name in members if f"/{name}".endswith(f"/{MANIFEST}")]
    top = min(folders, key=len, default="")
    faults += [(name, f"is not in {top}, as the manifest is") for name in members if not name.startswith(top)]
    return {name.removeprefix(top): read for name, read in members.items() if name.startswith(top)}


def _open(file: Path) -> IO[bytes]:
    return file.open("rb")


def _against_manifest(digests: dict[str, str], text: bytes) -> Iterator[Finding]:
    listed = {}
    for line in text.decode(errors="replace").splitlines():
        digest, _, name = line.partition("  ")
        listed[name] = digest
    others = {name: digest for name, digest in digests.items() if name != MANIFEST}
    yield from _differences(others, listed, MANIFEST)
    if others == listed and manifest_of(listed).encode() != text:
        yield MANIFEST, "is not written as `clpapers export` writes it"


def _against_metadata(digests: dict[str, str], text: bytes) -> Iterator[Finding]:
    try:
        graph = json.loads(text)["@graph"]
        files = [entity for entity in graph if entity["@type"] == "File" or "File" in list(entity["@type"])]
        described = {unquote(entity["@id"]): entity.get("sha256") for entity in files}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        yield METADATA, f"is not an RO-Crate's ({error})"
        return
    described.pop(MANIFEST, None)
    others = {name: digest for name, digest in digests.items() if name not in (METADATA, MANIFEST)}
    yield from _differences(others, described, METADATA)


def _differences(digests: Mapping[str, str], listed: Mapping[str, str], source: str) -> Iterator[Finding]:
    for name in sorted({*digests, *listed}):
        if name not in listed:
            yield name, f"is not listed in {source}"
        elif name not in digests:
            yield name, f"is missing, though {source} lists it"
        elif digests[name] != listed[name]:
            yield name, f"has SHA-256 {digests[name][:12]}…, not {str(listed[name])[:12]}… as {source} says"


def _against_records(digests: dict[str, str], texts: dict[str, bytes]) -> Iterator[Finding]:
    made: dict[str, str] = {}  # path → checksum, of the outputs in records
    apart: set[tuple[str, str]] = set()  # the same of records in `imported/records`, without their files
    read: list[tuple[str, str, str]] = []  # record, path, checksum of each input
    for name, text in texts.items():
        if name in (METADATA, MANIFEST):
            continue
        try:
            record = json.loads(text)
            if damage := damage_of(record):
                raise ValueError(damage)
            if record.get("seal") != seal(record):
                yield name, "is edited: its seal is not the digest of its content"
            outputs, inputs = _files_of(record["outputs"]), _files_of(record["inputs"])
            proven = any(facts["sha256"] for facts in record["data"].values())
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            yield name, f"is not a record ({error!r})"
            continue
        if (match := APART.fullmatch(name)) and match[1] != digests[name]:
            yield name, "is not named by its own SHA-256"
        for path, digest in outputs.items():
            if by_checksum(path) and not proven:
                yield name, f"has no content checksum of {path}"
            elif match:
                apart |= {(path, digest), (str(record_path(path)), match[1])}
            elif str(record_path(path)) != as_published(name):
                yield name, f"is not the record of {path}, which it names"
            else:
                made[str(PurePosixPath(name).parent / PurePosixPath(path).name)] = digest
        read += [(name, path, digest) for path, digest in inputs.items()]
        if not match and not is_imported(name):  # else a later record of the same bytes may stand for the one read
            records = {str(record_path(item["path"])): item["record"] for item in record["inputs"] if "record" in item}
            read += [(name, path, str(digest)) for path, digest in records.items()]
    for path, digest in made.items():
        if not by_checksum(path):
            yield from _as_recorded(digests, path, digest, f"its record {record_path(path).name}")
    for reader, path, digest in read:
        if (as_published(path), digest) in apart:
            continue
        yield from _as_recorded(made if by_checksum(path) else digests, path, digest, reader)
    for path in digests:
        if path.startswith("results/") and path not in made and path not in texts:
            yield path, "has no record that names it"


def _files_of(items: list[dict]) -> dict[str, str]:
    return {str(item["path"]): str(item["sha256"]) for item in items}


def _as_recorded(digests: Mapping[str, str], path: str, digest: str, source: str) -> Iterable[Finding]:
    if path not in digests:
        return [(path, f"is missing, though {source} names it")]
    if digests[path] != digest:
        return [(path, f"has SHA-256 {digests[path][:12]}…, not {digest[:12]}… as {source} says")]
    return []
