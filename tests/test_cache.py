"""What was worked out of a text is kept for later processes, where Snakemake has its folder, and for the same text."""

import pytest

from clpapers.cache import FOLDER, Cache
from clpapers.config import files, schemas
from clpapers.config.refusals import ConfigError


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


def test_what_two_processes_work_out_at_once_stays(folder):
    one, other = Cache("values"), Cache("values")
    assert [one.get("a", lambda: 1), other.get("b", lambda: 2)] == [1, 2]
    assert [Cache("values").get(text, never) for text in "ab"] == [1, 2]


def test_what_fails_is_not_kept(folder):
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


def test_a_file_that_grew_too_large_is_begun_anew(folder, monkeypatch):
    Cache("values").get("text", lambda: 1)
    monkeypatch.setattr("clpapers.cache.LARGEST_CACHE", 10)
    assert Cache("values").get("text", lambda: 2) == 2


def test_nothing_is_kept_where_snakemake_has_no_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Cache("values").get("text", lambda: 1) == 1
    assert not list(tmp_path.iterdir())
    assert Cache("values").get("text", lambda: 2) == 2


def test_a_violation_is_told_each_time_and_one_schema_s_pass_is_no_other_s(folder, monkeypatch):
    monkeypatch.setattr(schemas, "_PASSED", Cache("passed"))
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
