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


def central(file, place, value):
    """Write bytes at a place of each entry of a zip's directory."""
    content = bytearray(Path(file).read_bytes())
    at = content.find(b"PK\x01\x02")
    while at >= 0:
        content[at + place : at + place + len(value)] = value
        at = content.find(b"PK\x01\x02", at + 1)
    Path(file).write_bytes(content)


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
    """Write `new` for `old`, which must be there, in the bytes of a file."""
    content = Path(file).read_bytes()
    assert old in content
    Path(file).write_bytes(content.replace(old, new))


test_refused, test_unedited = refusals.tests("archive", vars(handmade) | globals())
