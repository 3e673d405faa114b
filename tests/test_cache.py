"""Work on a text is kept for later processes, where Snakemake has its folder, and for the same text."""

import hashlib
import os
import shutil
from pathlib import Path

import pytest

from clpapers.cache import FOLDER, Cache, load_or_make
from clpapers.config import files, schemas
from clpapers.config.plan import Plan
from clpapers.config.refusals import ConfigError
from clpapers.home import project_path

ROOT = Path(__file__).parents[1]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    FOLDER.mkdir()


def never():
    raise AssertionError("worked out again")


def test_a_later_process_knows_what_an_earlier_one_worked_out(folder):
    value = {"a": [1, 2.5, None, True, "é"]}
    assert Cache("values").get("text", lambda: value) == value
    assert Cache("values").get("text", never) == value
    assert Cache("values").get("other text", lambda: 3) == 3
    assert Cache("others").get("text", lambda: 4) == 4


def test_what_two_processes_work_out_at_once_stays_and_what_fails_is_not_kept(folder):
    one, other = Cache("values"), Cache("values")
    assert [one.get("a", lambda: 1), other.get("b", lambda: 2)] == [1, 2]
    assert [Cache("values").get(text, never) for text in "ab"] == [1, 2]
    with pytest.raises(AssertionError):
        Cache("values").get("text", never)
    assert Cache("values").get("text", lambda: 1) == 1


@pytest.mark.parametrize("value", [{0: "a"}, {"a": b"b"}, {1}])
def test_values_that_json_does_not_have_are_not_kept(value, folder):
    assert Cache("values").get("text", lambda: value) == value
    assert Cache("values").get("text", lambda: 1) == 1


@pytest.mark.parametrize("line", [b"x", b"[1]", b"3", b'["a", 1', b'[["a"], 1]', b"\xff", b"[" * 100_000])
def test_lines_that_are_none_are_passed_over(line, folder):
    kept = Cache("values")
    kept.get("text", lambda: 1)
    kept.file.write_bytes(line + b"\n" + kept.file.read_bytes() + b"\n" + line)
    assert Cache("values").get("text", never) == 1
    assert Cache("values").get("more", lambda: 2) == 2
    assert Cache("values").get("more", never) == 2


def test_a_file_that_grew_too_large_is_begun_anew(folder):
    kept = Cache("values")
    kept.get("text", lambda: 1)
    os.truncate(kept.file, 1 << 25)
    assert Cache("values").get("text", lambda: 2) == 2


def test_nothing_is_kept_where_snakemake_has_no_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Cache("values").get("text", lambda: 1) == 1
    assert not list(tmp_path.iterdir())
    assert Cache("values").get("text", lambda: 2) == 2


def test_a_violation_is_told_each_time_and_one_schema_s_pass_is_no_other_s(folder):
    rules = {"type": "object", "properties": {"a": {"type": "integer"}}}
    schemas.validate({"a": 1}, rules, "file")
    for _ in range(2):
        with pytest.raises(ConfigError, match=r"^file: a: 1.0 is not of type integer"):
            schemas.validate({"a": 1.0}, rules, "file")
    with pytest.raises(ConfigError, match="a: 1 must be at least 2"):
        schemas.validate({"a": 1}, {"properties": {"a": {"minimum": 2}}}, "file")


def test_what_a_reader_changes_of_a_file_is_not_what_the_next_reader_gets(folder):
    text = "a: [1, 2]\nb: {c: 2026-01-02}\n"
    first = files.read_text(text, "file")
    first["a"].append(3)
    assert files.read_text(text, "file") == {"a": [1, 2], "b": {"c": "2026-01-02"}}


def test_an_object_is_kept_at_the_same_state_and_under_the_same_name(folder):
    made = {"a": [project_path("results"), range(3)]}
    assert load_or_make("plan", "state", lambda: made) == made
    assert load_or_make("plan", "state", never) == made
    assert load_or_make("other plan", "state", lambda: 1) == 1
    assert load_or_make("plan", "other state", lambda: 2) == 2
    assert load_or_make("plan", "state", lambda: 3) == 3


@pytest.mark.parametrize("damage", [lambda text: text[:-1], lambda text: b"", lambda text: text + b"x"])
def test_a_damaged_object_is_made_anew(folder, damage):
    load_or_make("plan", "state", lambda: 1)
    (file,) = (FOLDER / "clpapers").glob("*.pickle")
    file.write_bytes(damage(file.read_bytes()))
    assert load_or_make("plan", "state", lambda: 2) == 2


@pytest.mark.parametrize("name", ["os\nsystem", "clpapers.cache\nos.system", "clpapers.cache\nload_or_make", ""])
def test_of_kept_objects_only_our_own_classes_are_read(name, folder):
    """A pickle of another's class or function, which could do anything, is no kept object."""
    assert load_or_make("plan", "state", lambda: print) is print
    if name:
        content = f"\x80\x04c{name}\n.".encode("latin-1")
        (file,) = (FOLDER / "clpapers").glob("*.pickle")
        file.write_bytes(hashlib.sha256(b"state" + content).digest() + content)
    assert load_or_make("plan", "state", lambda: 1) == 1


def test_a_kept_plan_is_as_the_files_say_and_follows_them(folder, tmp_path):
    for part in ("config", "workflow"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("outside"))
    for _ in range(2):
        plan, fresh = Plan.load("smoke", ["rules"]), Plan("smoke", ["rules"])
        assert (plan.cells, plan.targets, plan.digest) == (fresh.cells, fresh.targets, fresh.digest)
    file = tmp_path / "config/papers/rules.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("Online dominant MNIST", "Of digits", 1), encoding="utf-8")
    assert Plan.load("smoke", ["rules"]).targets == Plan("smoke", ["rules"]).targets != plan.targets
