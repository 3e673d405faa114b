"""The first build and the next: all that is asked for, each with a true record, equal bytes again, nothing twice."""

import hashlib
import html
import json
import os
import re
import signal
from pathlib import Path

import pytest
from world import INDEX, METRICS, PAPER, PARTS, SCALE, TABLE, TIMEOUT, Project, processes, until

from clpapers.config.plan import Plan
from clpapers.config.settings import all_papers
from clpapers.graph import jobs
from clpapers.provenance import record_path

TARGETS = {
    *(f"{table}.{ending}" for table in ("table1", "table2") for ending in ("csv", "md", "tex", "html")),
    *(f"figure1.{ending}" for ending in ("pdf", "svg", "png", "caption.md", "caption.tex")),
    *("table1.reported.csv", "table1.paired.csv"),
}


def records(project):
    """The records of all results, by path."""
    files = (project.folder / "results").rglob("[!.]*.record.json")
    return {path.relative_to(project.folder): json.loads(path.read_text()) for path in files}


# --- before anything is built ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """The project with the real papers, nothing built."""
    return Project.create(tmp_path_factory.mktemp("real") / "project", papers=True)


@pytest.mark.parametrize(
    ("scale", "paper", "asked"),
    [
        ("smoke", "desiderata", "all"),
        ("paper", "stf", "all"),
        ("paper", "stf", "results/paper/targets/stf/table1.csv"),  # of another scale than is configured
        ("smoke", "stf", "results/smoke/targets/stf/table1.csv"),  # of a paper that is not
    ],
)
def test_real_papers_can_be_planned(real, scale, paper, asked):
    configured = {"all": [f"scale={scale}", f"papers=[{paper}]"], "results/paper": ["scale=smoke", "papers=[stf]"]}
    planned = real.plan(asked, "--config", "hours=all", *configured.get(asked.partition("/targets")[0], []))
    stages = {path.split("/")[2] for path in planned}
    assert ("gans" in stages) == (paper == "desiderata")
    assert stages - {"selection", "weights", "gans"} == {"datasets", "streams", "runs", "metrics", "targets"}
    assert all(path.startswith(f"results/{scale}/") for path in planned)
    assert len(planned) == len(set(planned))
    assert asked in ("all", *planned)


def test_a_job_trains_a_block_of_seeds_and_a_seeds_stream_serves_all_cells(project):
    """So that very many runs can be planned: jobs and files grow with blocks and seeds, not with runs."""
    project.edit(SCALE, "seeds: 0-1\nseeds_per_job: 1", "seeds: 0-39\nseeds_per_job: 20")
    planned = project.plan(METRICS)
    trained = [path.split("/")[-2:] for path in planned if "/runs/" in path]
    assert len({cell for cell, _ in trained}) == 2
    assert sorted(block for _, block in trained) == ["seeds0-19.json"] * 2 + ["seeds20-39.json"] * 2
    assert len([path for path in planned if "/streams/" in path]) == 40


def test_rules_and_commands_agree_on_the_blocks_of_seeds(project):
    """A GPU trains all seeds as one stack where the scale says `auto`; what measures must look for the same files."""
    project.edit(SCALE, "seeds_per_job: 1", "seeds_per_job: auto")
    project.edit(PAPER, "mnist: {net: {name: mlp, hidden: [4]}}", "mnist: {net: {name: cnn, width: 2}}")
    for device, gpus, blocks in (("cpu", "0", {"seed0", "seed1"}), ("cuda", "1", {"seeds0-1"})):
        planned = project.plan("--config", f"device={device}")
        assert {path.split("/")[-1].split(".")[0] for path in planned if "/runs/mnist/" in path} == blocks
        measured = project.clpapers("metrics", "--out", METRICS, "--gpus", gpus)
        assert re.search(r"runs/mnist/\S+/(seeds?[\d-]+)\.json: No such file", measured.stdout)[1] == min(blocks)


# --- a build ---------------------------------------------------------------------------------------------------


def test_everything_is_built_and_nothing_else(finished):
    built = {path.name for path in (finished.folder / TABLE).parent.iterdir()}
    assert {name for name in built if not name.endswith(".record.json")} == TARGETS
    assert {path.name for path in finished.folder.iterdir()} == {*PARTS, "results", ".snakemake", ".git"}
    assert len(re.findall(r",mini/table1,", finished.read(INDEX))) == 2  # its cells
    assert finished.clpapers("audit", "--scale", "mini", "--strict").returncode == 0


def test_every_result_has_a_record_and_every_record_is_true(finished):
    recorded = set()
    for path, record in records(finished).items():
        recorded |= {entry["path"] for entry in record["outputs"]}
        for entry in record["inputs"] + record["outputs"]:
            content = (finished.folder / entry["path"]).read_bytes()
            assert entry["sha256"] == hashlib.sha256(content).hexdigest(), (path, entry["path"])
            assert entry["bytes"] == len(content)
        assert record["git"]["dirty"] is False
        unrelated = path.name.startswith(("table2.", "index.", "cifar10.")) or "toy" in str(path)
        standins = [name for name, facts in record["data"].items() if facts["standin"]]
        assert standins == ([] if unrelated else ["mnist"]), path
    assert recorded == finished.results().keys()
    for ending in ("md", "tex", "html"):
        assert "Stand-in data, not the paper's" in html.unescape(finished.read(TABLE.replace("csv", ending))), ending
    net = json.loads(finished.read("results/mini/runs/nets/mini/cifar10.record.json"))["net"]
    assert net == {"name": "cnn", "width": 2}  # and not that of `stf`


def test_jobs_make_the_same_files_of_the_same_files_by_the_same_code_as_rules(finished, monkeypatch):
    """Snakemake notes of each file that it has made what it was made of, and the params of the rule."""
    monkeypatch.chdir(finished.folder)
    plan = Plan("mini", all_papers())
    wanted = jobs.ancestors(plan, [target for target in plan.targets.values() if target.paper == "mini"])
    made = {}
    for job in (*wanted.values(), jobs.job_of(plan, Path(INDEX))):
        made |= dict.fromkeys(map(str, (*job.outputs, record_path(job.outputs[0]))), job)
    notes = finished.notes(".snakemake/metadata")
    assert notes.keys() == made.keys()
    for path, job in made.items():
        note = json.loads(notes[path].read_text())
        assert {*note["input"]} == {*map(str, job.inputs)}
        assert repr(job.code) in note["params"]


# --- once more -------------------------------------------------------------------------------------------------


def test_a_second_build_does_nothing_and_a_records_command_makes_the_same_file_by_hand(built):
    before = built.results()
    assert "Nothing to be done" in built.build()
    command = json.loads(built.read(TABLE.replace("csv", "record.json")))["command"]
    for ending in ("csv", "md", "tex", "html"):
        (built.folder / TABLE).with_suffix(f".{ending}").unlink()
    assert built.clpapers(*command.split()[1:]).returncode == 0
    assert built.results() == before


def test_a_build_without_the_server_of_jobs_gives_the_same_and_another_beside_it_is_refused(
    finished, project, running, monkeypatch
):
    """The same bytes, and the same records but for what they tell of times and memory."""
    monkeypatch.setenv("CLPAPERS_SERVER", "0")
    leader = running(project)
    until(lambda: processes(leader, "dataset"), leader)
    os.killpg(leader.pid, signal.SIGSTOP)  # it might end before the other has begun
    beside = project.snakemake("all", "--cores", "1")
    dry = project.snakemake("all", "-n")
    os.killpg(leader.pid, signal.SIGCONT)
    assert beside.returncode == 1
    assert "another build is at work in this folder" in beside.stdout
    assert dry.returncode == 0
    assert leader.wait(TIMEOUT) == 0
    ours, theirs = project.results(), finished.results()
    assert ours.keys() == theirs.keys()
    assert [name for name in ours if ours[name] != theirs[name]] == []
    own = {"started", "seal", "wall_seconds", "cpu_seconds", "peak_memory_bytes", "training_seconds", "testing_seconds"}

    def told(record):
        behind = [bool(entry.pop("record", None)) for entry in record["inputs"]]
        return {key: value for key, value in record.items() if key not in own}, behind

    one, other = ({path: told(record) for path, record in records(each).items()} for each in (project, finished))
    assert one == other
