"""Random tamperings of a build's results: the audit finds each, or it is one that nothing can find (docs/audit.md)."""

import json
import random
from pathlib import Path

import pytest

from clpapers import provenance
from clpapers.audit.audit import findings, fitting

MINI = Path("results/mini")
VALUES = (None, True, 0, -1, 1e999, "", "/", "..", "\0", "x" * 5000, [], {}, [[]], 10**400)


def leaves(value, place=()):
    """The places in a JSON value where there is something to change."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place, *(leaf for key, each in inside for leaf in leaves(each, (*place, key)))]


def changed(draw, record):
    """Change a value of a record, or take it out."""
    *place, last = draw.choice([leaf for leaf in leaves(record) if leaf and leaf[0] != "seal"])
    inside = record
    for key in place:
        inside = inside[key]
    if draw.random() < 0.2:
        del inside[last]
    else:
        inside[last] = draw.choice(VALUES)


def tamper(draw, kind, path):
    """Tamper with a file, or with its record."""
    whole, record = path.read_bytes(), provenance.record_path(path)
    content = json.loads(record.read_bytes())
    at = draw.randrange(len(whole))
    if kind in ("byte", "both"):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ draw.randrange(1, 256)]) + whole[at + 1 :])
    elif kind == "cut":
        path.write_bytes(whole[:at])
    elif kind == "gone":
        path.unlink()
    else:
        changed(draw, content)
    if kind == "both":
        for item in content["outputs"]:
            item["sha256"] = provenance.sha256(item["path"])
    if kind in ("both", "sealed"):
        content["seal"] = provenance.seal(content)
    if kind in ("both", "sealed", "edited"):
        record.write_text(json.dumps(content))


@pytest.mark.parametrize("kind", ["byte", "cut", "gone", "edited", "sealed", "both"])
def test_what_was_tampered_with_is_found_if_a_reader_or_a_seal_tells(kind, here):
    draw = random.Random(kind)
    files = sorted(path for path in MINI.rglob("*") if path.is_file() and path.relative_to(MINI).parts[0] != "logs")
    files = [path for path in files if path != provenance.record_path(path) and path.name != "machine.json"]
    records = {path: json.loads(provenance.record_path(path).read_bytes()) for path in files}
    read = {item["path"] for record in records.values() for item in record["inputs"]}
    if kind in ("sealed", "both"):  # of a last record nothing tells
        files = [path for path in files if str(path) in read]
    for path in draw.sample(files, 6):
        record = provenance.record_path(path)
        before, recorded = path.read_bytes(), record.read_bytes()
        tamper(draw, kind, path)
        now = path.read_bytes() if path.exists() else b""
        same = (now, json.loads(record.read_bytes())) == (before, json.loads(recorded))
        assert same or findings(fitting("mini")), path
        path.write_bytes(before)
        record.write_bytes(recorded)
    assert findings(fitting("mini")) == []
