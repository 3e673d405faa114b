"""The table of jobs, which commands and the audit go by, says what the rules say."""

import json
import os
import re
from pathlib import Path

import pytest

from clpapers import cli, jobs
from clpapers.config import Plan, all_papers
from clpapers.provenance import record_path


@pytest.fixture
def expected(finished, monkeypatch):
    """The jobs behind the paper `mini`, by record."""
    monkeypatch.chdir(finished.folder)
    cli._at_paper_scale.cache_clear()
    plan = Plan("mini", all_papers())
    index = Path("results/mini/runs/index.csv")
    wanted = jobs.behind(plan, [target for target in plan.targets.values() if target.paper == "mini"])
    yield wanted | {record_path(index): jobs.of(plan, index)}
    os.chdir(finished.folder)
    cli._at_paper_scale.cache_clear()


def test_they_make_the_same_files_of_the_same_files(finished, expected):
    done = finished.snakemake("-n", "--forceall", "all")
    told = {}
    for block in done.stdout.split("rule ")[1:]:
        lines = dict(re.findall(r"^    (input|output): (.+)$", block, re.MULTILINE))
        if "output" in lines and lines["output"].startswith("results/"):
            outputs = lines["output"].split(", ")
            (record,) = (path for path in outputs if path.endswith(".record.json"))
            told[record] = {*outputs} - {record}, {*filter(None, lines.get("input", "").split(", "))}
    assert told == {str(place): ({*map(str, job.outputs)}, {*map(str, job.inputs)}) for place, job in expected.items()}


def test_they_go_by_the_same_code(finished, expected):
    """Snakemake keeps the params of the job that made a file."""
    kept = {}
    for path in (finished.folder / ".snakemake/metadata").rglob("*"):
        if path.is_file():
            entry = json.loads(path.read_text())
            kept |= {output: entry["params"] for output in entry.get("outputs", [])}
    print(list(kept.items())[:2])
    for job in expected.values():
        assert repr(job.code) in kept[str(job.outputs[0])]
