"""A mistake is refused before anything starts: one line that says what and where, and no traceback."""

from pathlib import Path

import pytest
import yaml
from world import refusal

ROWS = yaml.safe_load(Path(__file__).with_name("refusals.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def copied(pristine, tmp_path_factory):
    """A copy that each row finds with nothing built."""
    return pristine.copy(tmp_path_factory.mktemp("refused") / "project")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["says"][:60])
def test_what_is_wrong_is_one_line_before_anything_starts(row, copied):
    name, *change = row.get("file") or row.get("edit") or ["config/config.yaml"]
    file = copied.folder / name
    before = file.read_bytes()
    try:
        if "edit" in row:
            copied.edit(name, *change)
        elif change == [None]:
            file.unlink()
        elif change:
            file.write_bytes(change[0] if isinstance(change[0], bytes) else change[0].encode())
        program, *arguments = row.get("asked", "snakemake all --cores 1").split()
        done = getattr(copied, program)(*arguments)
        assert refusal(done.stdout).startswith(row["says"])
        assert done.returncode == 2 if program == "clpapers" else done.returncode != 0
        assert program == "snakemake" or done.stdout.count("\n") == 1
        if name == "config/config.yaml" and change:
            assert refusal(copied.clpapers("summary").stdout).startswith(row.get("clpapers", row["says"]))
    finally:
        file.write_bytes(before)
    assert not (copied.folder / "results").exists()
    assert not (copied.folder / "planted").exists()
