"""Crates of a file or two, made by hand: which run counts, what an import keeps, and how a crate may be packed."""

import json
import os
import shutil
import zipfile
from pathlib import Path

import pytest
from handmade import DATA, FOLDER, OWN, RECORD, RUN, along, chain, packed, recorded, result, run

from clpapers.archive.check import check, manifest_of
from clpapers.archive.imported import (
    TAKEN_OUT,
    accuracies,
    accuracy_gap,
    folder_of,
    hash_of,
    import_crate,
    import_published,
    imported,
    published_folder,
)
from clpapers.archive.packing import digest_of
from clpapers.archive.published import runs_of

TOP = folder_of("smoke")


def contents(folder=TOP):
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def right_in(content):
    return json.loads(content)["seeds"][0]["test"]["none"]["correct"][0]


def faulty(path):
    return {file for file, _ in check(path)[0]}


def test_of_two_crates_the_first_ones_run_of_a_path_counts(tmp_path):
    crates = [packed(tmp_path / f"{right}.zip", run(right)) for right in (3, 2)]
    assert [right_in(runs_of(each)[0][RUN].content) for each in (crates, crates[::-1])] == [3, 2]


def test_a_run_that_a_later_crate_takes_out_is_gone_and_another_of_its_path_is_not(project):
    """And so it is after an import of both, in either order: the one that was taken out comes back with neither."""
    out = {TAKEN_OUT: manifest_of({RECORD: digest_of(run(3)[RECORD])}).encode()}
    first, second = packed("a.zip", run(3)), packed("b.zip", run(2) | out)
    found, gone = runs_of([first, second])
    assert (right_in(found[RUN].content), {path for path, _ in gone}) == (2, {RECORD})
    assert runs_of([first, packed("c.zip", out)])[0] == {}
    for crates in ([first, second], [second, first]):
        assert not [note for each in crates for note in import_crate(each) if "differs" in note]
        assert right_in(Path(RUN).read_bytes()) == 2
        assert [import_crate(each) for each in crates] == [[], []]
        shutil.rmtree("results")


def test_a_crate_whose_files_records_and_manifest_agree_is_sound(tmp_path):
    for files in (run(), along(), chain()):
        assert check(packed(tmp_path / "a.zip", files))[0] == []


def test_who_rewrites_everything_changes_the_fingerprint(tmp_path):
    (found, before), (others, after) = (check(packed(tmp_path / "a.zip", run(right))) for right in (3, 2))
    assert found == others == []
    assert before != after


def test_a_file_must_be_as_the_manifest_and_its_record_hold_it(tmp_path):
    edited = recorded(RUN, digest_of(run()[RUN]), seeds=[0], seal="0" * 64)
    for files, listed, wrong in (
        (run(), {RUN: digest_of(b"")}, RUN),
        (run() | {RUN: result(2)}, {}, RUN),  # the manifest lists it as it is
        (run() | {RECORD: edited}, {}, RECORD),
        (along(read="2" * 64), {}, DATA),  # its record, which came along, holds other bytes
    ):
        assert faulty(packed(tmp_path / "a.zip", files, **listed)) == {wrong}


def test_a_crate_is_checked_by_its_own_records_alone(project):
    """Where the records that it lacks are imported already, too."""
    damaged = packed("damaged.zip", {name: text for name, text in along().items() if "/records/" not in name})
    assert faulty(damaged) == {DATA}
    import_crate(packed("a.zip", along()))
    assert faulty(damaged) == {DATA}


def test_a_crate_that_was_packed_again_is_the_same(project):
    crate = packed("a.zip", along())
    with zipfile.ZipFile(crate) as archive:
        archive.extractall("unpacked/mini")
    assert check(Path("unpacked")) == check(crate)
    Path("unpacked/mini/link").symlink_to("/etc/passwd")
    os.mkfifo("unpacked/mini/pipe")
    assert faulty(Path("unpacked")) == {"mini/link", "mini/pipe"}
    for name, method in (
        ("downloads/of the crate/{}".format, zipfile.ZIP_DEFLATED),
        ("./mini/{}".format, zipfile.ZIP_BZIP2),
        (str, zipfile.ZIP_LZMA),
    ):
        again = packed("again.zip", along(), name=name, method=method)
        assert check(again) == check(crate)
        (note,) = import_crate(again)
        assert note.startswith("again.zip: 1 runs imported, manifest SHA-256 ")
        assert import_crate(crate) == []
        shutil.rmtree("results")


def test_of_a_crate_that_is_known_only_the_manifest_is_read(project):
    import_crate(crate := packed("a.zip", run()))
    before = contents()
    crate.write_bytes(crate.read_bytes().replace(b'"steps"', b'"stepz"'))
    assert faulty(crate) == {RUN}
    assert import_crate(crate) == []
    assert contents() == before


def test_of_a_sound_crate_only_runs_and_what_tells_of_them_are_taken(project):
    new = {"src/clpapers/evil.py": b"", "config/config.yaml": b"x", "Snakefile": b"x"}
    import_crate(packed("a.zip", along() | new))
    assert {path.name for path in project.iterdir()} == {"a.zip", "config", "workflow", "results"}
    records = {name for name in along() if "/records/" in name}
    manifest, crates = f"{TOP}/crates/{check(Path('a.zip'))[1]}.txt", f"{TOP}/crates.json"
    assert contents(Path("results")).keys() == {RUN, RECORD, *records, manifest, crates}


def test_runs_that_are_there_stay_and_of_those_that_differ_a_line_tells(project):
    """One item of 16 fewer right: a gap of 0.0625."""
    (Path(OWN).parent).mkdir(parents=True)
    Path(OWN).write_bytes(result(2))
    damaged = Path(OWN).with_name("seeds0-1.json")
    damaged.write_bytes(b"{")
    before = contents(Path("results/smoke/runs"))
    _, *notes = import_crate(packed("a.zip", run(3)))
    assert notes[0] == f"{OWN}: seed 0 differs from a.zip's, by 0.0625 in accuracy; this one is kept"
    assert notes[1].startswith(f"{damaged}: is no result of runs")
    assert contents(Path("results/smoke/runs")) == before
    damaged.unlink()
    Path(OWN).write_bytes(result(3))
    shutil.rmtree(TOP)
    assert len(import_crate(Path("a.zip"))) == 1  # equal runs are no news
    _, *notes = import_crate(packed("b.zip", run(2)))
    assert f"{RUN}: seed 0 differs from b.zip's, by 0.0625 in accuracy; this one is kept" in notes
    assert right_in(Path(RUN).read_bytes()) == 3


def test_overlapping_blocks_of_seeds_are_both_kept(project):
    import_crate(packed("a.zip", run(seeds=(0, 1))))
    import_crate(packed("b.zip", run() | run(path=f"{FOLDER}/seed1.json", content=result(seeds=[1]), seeds=[1])))
    (files,) = imported("smoke").values()
    assert [list(seeds) for seeds in files.values()] == [[0], [1], [0, 1]]


@pytest.mark.parametrize("noted", [True, False], ids=["as the project's", "before that was noted"])
def test_without_published_runs_those_that_the_user_imported_stay(noted, project):
    """The user's crate has a run that the project's crate has too."""
    assert import_published("smoke") == []
    folder = published_folder("smoke")
    folder.mkdir(parents=True)
    packed(folder / "a.zip", run() | run(path=f"{FOLDER}/seed1.json", content=result(seeds=[1]), seeds=[1]))
    (note,) = import_published("smoke") if noted else import_crate(folder / "a.zip")
    assert "2 runs imported" in note
    assert import_published("smoke") == []
    assert imported("smoke", published=False) == {}
    import_crate(packed("mine.zip", run()))
    assert [[str(path) for path in files] for files in imported("smoke", published=False).values()] == [[RUN]]
    assert [len(files) for files in imported("smoke").values()] == [2]


def test_accuracies_and_their_distance_by_hand():
    one = {"test": {"none": {"correct": [3, 1], "total": [4, 4]}, "oracle": {"correct": [4, 4], "total": [4, 4]}}}
    other = {"test": {"none": {"correct": [3, 3], "total": [4, 4]}, "oracle": {"correct": [4, 3], "total": [4, 4]}}}
    assert accuracies(one) == {"none": 0.5, "oracle": 1.0}
    assert accuracy_gap(one, other) == 0.25  # of 0.25 and 0.125
    assert accuracy_gap(one, {"test": None}) == float("inf")


def test_the_hash_of_a_cell_is_of_what_was_to_be_selected():
    search = {"grid": {"budget.learning_rate": [1, 2]}}
    spec = {"learner": {"name": "er"}, "budget": {"learning_rate": "selected"}, "selection": search}
    filled = spec | {"budget": {"learning_rate": 2}}
    plain = {key: value for key, value in filled.items() if key != "selection"}
    assert hash_of(filled) == hash_of(spec) != hash_of(plain)
