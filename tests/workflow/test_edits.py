"""An edit reruns what it must and nothing else. Asked of `snakemake -n` in a finished project."""

import os
import random
import re
import shutil
from pathlib import Path

import pytest
import yaml
from world import Project

FILE = yaml.safe_load(Path(__file__).with_name("edits.yaml").read_text(encoding="utf-8"))
UNNAMED = re.compile(r"^results/mini/|/stf-0\.05-n30|-[0-9a-f]{10}(?=/)|\bmini/")


def expanded(names):
    """The outputs that a row names, by itself or by groups."""
    for name in names:
        inside = name if isinstance(name, list) else FILE["groups"].get(name)
        yield from expanded(inside) if inside else [name]


@pytest.fixture(scope="module")
def copied(finished, tmp_path_factory):
    """A copy that each edit finds as it was built."""
    project = finished.copy(tmp_path_factory.mktemp("edited") / "project")
    (project.folder / "elsewhere").mkdir()
    return project


@pytest.mark.parametrize("row", FILE["edits"], ids=lambda row: row["of"])
def test_an_edit_reruns_what_it_must_and_nothing_else(row, copied):
    edits = row.get("edit", [])
    appended = [f"src/clpapers/{file}" for file in row.get("append", [])]
    paths = [copied.folder / file for file in {*appended, *(file for file, *_ in edits), row.get("delete")} - {None}]
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in paths}
    for file in appended:
        copied.write(file, copied.read(file) + "\n\nEDITED = True\n")
    for edit in edits:
        copied.edit(*edit)
    if "delete" in row:
        (copied.folder / row["delete"]).unlink()
    try:
        planned = copied.plan(*(["--config", *row["config"]] if "config" in row else []))
    finally:
        for path, (content, made) in before.items():
            path.write_bytes(content)
            os.utime(path, ns=(made, made))
    assert sorted(UNNAMED.sub("", path) for path in planned) == sorted(expanded(row["reruns"]))
    trained = [path for path in planned if "/runs/mnist/" in path or "/streams/" in path]
    if "new" in row:
        assert sum(not (copied.folder / path).exists() for path in trained) == row["new"]


@pytest.mark.parametrize("whole", [True, False])
def test_what_was_copied_without_its_times_is_as_built(built, tmp_path, whole):
    """File by file in any order, as by scp or in a new clone, with Snakemake's own notes and without."""
    files = [path for path in built.folder.rglob("*") if path.is_file() and (whole or ".snakemake" not in path.parts)]
    random.Random(0).shuffle(files)
    copy = tmp_path / "copy"
    for path in files:
        place = copy / path.relative_to(built.folder)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
        place.chmod(path.stat().st_mode)
    other = Project(copy)
    assert other.plan() == []
    stream = next((copy / "results/mini/streams/mnist").rglob("seed0.npz"))
    stream.write_bytes(stream.read_bytes() + b"x")  # for which no record vouches
    assert other.plan()


def test_a_job_that_fails_leaves_what_it_had_made_before_and_is_done_again(built):
    """A renderer and a measure with a fault; the record goes, so that nothing passes for what it is not."""
    before = built.results()
    files = ("src/clpapers/targets/results_table.py", "src/clpapers/metrics/stream_classes.py")
    texts = {file: built.read(file) for file in files}
    for file, text in texts.items():
        built.write(file, re.sub(r"^(def (?:render|measure)\()", r"raise KeyError\n\n\n\1", text, flags=re.MULTILINE))
    failed = built.snakemake("all", "--cores", "2")
    assert failed.returncode == 1
    assert failed.stdout.count("Error in rule table:") == failed.stdout.count("Error in rule metrics:") == 1
    assert built.results() == before
    records = [f"results/mini/{each}.record.json" for each in ("targets/mini/table1", "metrics/mini/figure1")]
    assert not any((built.folder / record).exists() for record in records)
    for file, text in texts.items():
        built.write(file, text)
    built.build()
    assert built.results() == before
    assert all((built.folder / record).exists() for record in records)
