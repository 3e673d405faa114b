"""Crates of a file or two, made by hand: which run counts, and where file, record and manifest must agree."""

import json
import zipfile
from pathlib import Path

import pytest
from world.published import entry_of, result_of

from clpapers.archive.check import MANIFEST, METADATA, CrateError, check, manifest_of
from clpapers.archive.imported import TAKEN_OUT, hash_of, import_crate
from clpapers.archive.packing import digest_of
from clpapers.archive.published import runs_of
from clpapers.provenance import as_published, record_path, seal

ROOT = Path(__file__).parents[2]
CELL = result_of()["cell"]
RUN = f"results/smoke/imported/mnist/random/er-{hash_of(CELL)}/seed0.json"


def run(right=3, sealed=None, **told):
    """The files of a run of seed 0 with so many items right, by path: its result, and the record with what is told."""
    entry = entry_of(0)
    entry["test"]["none"]["correct"][0] = right
    content = json.dumps(result_of(entry)).encode()
    record = {
        **dict.fromkeys(("stage", "command", "code", "started"), "x"),
        **{"git": {}, "data": {}, "hardware": {}, "wall_seconds": 1, "cpu_seconds": 1, "peak_memory_bytes": 1},
        **{"inputs": [], "outputs": [{"path": as_published(RUN), "sha256": digest_of(content)}], "seeds": [0]},
    }
    record |= {"seal": sealed or seal(record | told)} | told
    return {RUN: content, str(record_path(RUN)): json.dumps(record).encode()}


def packed(path, files, **listed):
    """A crate of these files; `listed` takes the place of their checksums in the manifest."""
    there = {METADATA: b"{}"} | files
    manifest = manifest_of({name: digest_of(text) for name, text in there.items()} | listed)
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in (there | {MANIFEST: manifest.encode()}).items():
            archive.writestr(name, text)
    return path


def right_in(found):
    return json.loads(found[RUN].content)["seeds"][0]["test"]["none"]["correct"][0]


def test_of_two_crates_the_first_ones_run_of_a_path_counts(tmp_path):
    crates = [packed(tmp_path / f"{right}.zip", run(right)) for right in (3, 2)]
    assert [right_in(runs_of(each)[0]) for each in (crates, crates[::-1])] == [3, 2]


def test_a_run_that_a_later_crate_takes_out_is_gone_and_another_of_its_path_is_not(tmp_path):
    record = str(record_path(RUN))
    out = {TAKEN_OUT: manifest_of({record: digest_of(run(3)[record])}).encode()}
    first, second = packed(tmp_path / "a.zip", run(3)), packed(tmp_path / "b.zip", run(2) | out)
    found, gone = runs_of([first, second])
    assert (right_in(found), {path for path, _ in gone}) == (2, {record})
    assert runs_of([first, packed(tmp_path / "c.zip", out)])[0] == {}


def test_a_crate_whose_files_records_and_manifest_agree_is_sound(tmp_path):
    assert check(packed(tmp_path / "a.zip", run()))[0] == []


def test_a_file_must_be_as_the_manifest_and_its_record_hold_it(tmp_path):
    swapped = run() | {RUN: run(2)[RUN]}  # the manifest lists it as it is
    edited = run(sealed=seal({}))
    for files, listed, faulty in (
        (run(), {RUN: digest_of(b"")}, RUN),
        (swapped, {}, RUN),
        (edited, {}, str(record_path(RUN))),
    ):
        assert [file for file, _ in check(packed(tmp_path / "a.zip", files, **listed))[0]] == [faulty]


@pytest.mark.parametrize("seeds", [[1], [0, 1], None])
def test_a_record_with_other_seeds_than_its_result_is_refused(seeds, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for part in ("config", "workflow"):
        Path(part).symlink_to(ROOT / part)
    crate = packed(tmp_path / "a.zip", run(seeds=seeds))
    with pytest.raises(CrateError, match=f"{RUN}: "):
        import_crate(crate)
    assert not Path("results").exists()
    assert len(import_crate(packed(tmp_path / "b.zip", run()))) == 1
    assert Path(RUN).is_file()
