"""Crates that are forged, damaged, of something else or not to be made, by `cases.yaml`."""

# ruff: noqa: F401, names that cases.yaml uses
import json
import os
import shutil
import stat
import warnings
import zipfile
from pathlib import Path

import handmade
import refusals
from handmade import RECORD, RUN, chain, item, packed, recorded, resealed, result, run
from world import STREAM
from world import TABLE as BUILT

from clpapers.archive.check import MANIFEST, METADATA, CrateError
from clpapers.archive.imported import TAKEN_OUT, import_crate
from clpapers.archive.packing import digest_of
from clpapers.builds.verify import published_runs
from clpapers.cli import main
from clpapers.config.plan import Plan
from clpapers.provenance import Refusal, record_path

SUN = "\N{BLACK SUN WITH RAYS}"


def said(code, capsys):
    """Raise what a command told of faults, or why it refused."""
    out, err = capsys.readouterr()
    assert out.isprintable() or code == 1
    assert "as recorded" not in out
    raise Refusal(err.removesuffix("\n") or "; ".join(out.splitlines()[:-1]))  # the last has the manifest's checksum


def edited(name, **facts):
    """The chain, of which a record tells other things; it is sealed anew."""
    return chain() | {name: resealed(chain()[name], **facts)}


def moved(name, other):
    files = chain()
    return files | {other: files.pop(name)}


def without(path, key):
    """A result without something in its seed."""
    content = json.loads(path)
    del content["seeds"][0][key]
    return json.dumps(content).encode()


def entry(name, mode=stat.S_IFREG | 0o644, system=3, attributes=0):
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = system, mode << 16 | attributes
    return info, b""


def rewritten(path, change):
    """Change the bytes of a file."""
    content = bytearray(Path(path).read_bytes())
    change(content)
    Path(path).write_bytes(content)


def central(place, value, length=1):
    """Write bytes at a place of each entry of a zip's directory."""

    def change(content):
        at = content.find(b"PK\x01\x02")
        while at >= 0:
            content[at + place : at + place + length] = value
            at = content.find(b"PK\x01\x02", at + 1)

    return change


def nameless(content):
    """Take the one letter of the last entry's name away."""
    at = content.rfind(b"PK\x01\x02")
    content[at + 28 : at + 30] = b"\0\0"
    del content[at + 46]
    end = content.rfind(b"PK\x05\x06")
    content[end + 12 : end + 16] = (int.from_bytes(content[end + 12 : end + 16], "little") - 1).to_bytes(4, "little")


def replaced(old, new):
    def change(content):
        assert old in content
        content[:] = content.replace(old, new)

    return change


def zeroed(content):
    """Overwrite the manifest, which begins with the checksum of what is first in it."""
    at = content.index(MANIFEST.encode()) + len(MANIFEST)
    content[at : at + 40] = bytes(40)


def at_scale(scale, files):
    """A run's files as of another scale."""
    path = RUN.replace("smoke", scale)
    return {
        path: files[RUN],
        str(record_path(path)): resealed(files[RECORD], outputs=[item(path, digest_of(files[RUN]))]),
    }


def taking_out(path, content):
    """A crate's list of what it takes out."""
    return {TAKEN_OUT: f"{digest_of(content)}  {path}\n".encode()}


def written(files):
    for path, content in files.items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(content if isinstance(content, bytes) else content.encode())
    return files


def spoilt(file, old, new):
    Path(file).write_bytes(Path(file).read_bytes().replace(old, new, 1) if old else Path(file).read_bytes() + new)


test_refused, test_unedited = refusals.tests("archive", vars(handmade) | globals())
