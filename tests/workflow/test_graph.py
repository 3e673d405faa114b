"""The table of jobs, which commands and the audit go by, says what the rules say."""

import base64
import json
from pathlib import Path

import pytest

from clpapers.config.plan import Plan
from clpapers.config.settings import all_papers
from clpapers.graph import jobs
from clpapers.provenance import record_path


@pytest.fixture
def expected(finished, monkeypatch):
    """The jobs behind the paper `mini`."""
    monkeypatch.chdir(finished.folder)
    jobs._at_paper_scale.cache_clear()
    plan = Plan("mini", all_papers())
    wanted = jobs.ancestors(plan, [target for target in plan.targets.values() if target.paper == "mini"])
    yield [*wanted.values(), jobs.job_of(plan, Path("results/mini/runs/index.csv"))]
    jobs._at_paper_scale.cache_clear()


def test_jobs_make_the_same_files_of_the_same_files_by_the_same_code_as_rules(finished, expected):
    """Snakemake notes of each file that it has made what it was made of, and the params of the rule."""
    notes, folder = {}, finished.folder / ".snakemake/metadata"
    for path in folder.rglob("*"):
        if path.is_file():
            name = "".join(part.removeprefix("@") for part in path.relative_to(folder).parts)
            notes[base64.b64decode(name).decode()] = json.loads(path.read_text())
    made = {str(path): job for job in expected for path in (*job.outputs, record_path(job.outputs[0]))}
    assert notes.keys() == made.keys()
    for path, job in made.items():
        assert {*notes[path]["input"]} == {*map(str, job.inputs)}
        assert repr(job.code) in notes[path]["params"]
