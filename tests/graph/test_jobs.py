"""The graph of jobs: which job makes a path, and what is said of a path that none makes."""

import dataclasses
import shutil
from pathlib import Path

import pytest

from clpapers.config.paths import dataset_path, stream_path
from clpapers.config.plan import Plan
from clpapers.config.selected_runs import SelectedRuns
from clpapers.config.settings import all_papers
from clpapers.graph import jobs
from clpapers.provenance import record_path

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def plan():
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        yield Plan("smoke", ["stf"])


@pytest.fixture
def run(plan):
    """The first result of the first cell, and that cell."""
    cell = next(iter(plan.cells.values()))
    return next(iter(plan.results(cell))), cell


def test_every_file_behind_a_target_and_its_record_are_of_one_job(plan):
    behind = jobs.ancestors(plan, plan.targets.values())
    assert {job.command for job in behind.values()} >= {"dataset", "stream", "entropy", "train", "metrics", "table"}
    for place, job in behind.items():
        for path in (*job.outputs, place):
            assert jobs.job_of(plan, path).outputs == job.outputs
        assert place == record_path(job.outputs[0])


def test_a_run_reads_its_data_and_the_streams_of_its_seeds(plan, run):
    path, cell = run
    job = jobs.job_of(plan, path)
    streams = [cell.stream(seed) for seed in job.seeds]
    assert (job.command, job.stage, job.inputs) == ("train", "runs", [cell.dataset, *streams])


def test_streams_read_data_only_where_the_sizes_of_classes_are_not_known():
    """No stand-in and no part has the sizes of the whole."""
    paper, smoke = Plan("paper", ["agem"]), Plan("smoke", ["agem"])
    for plan, without in ((paper, {"mnist", "cifar100"}), (smoke, set())):
        target = plan.targets["agem/table1"]
        sets = {stream[0] for stream in target.streams}
        for where in target.streams:
            data = [] if where[0] in without else [dataset_path(plan.scale, where[0])]
            assert jobs.job_of(plan, stream_path(plan.scale, *where)).inputs == data
        read = jobs.job_of(plan, target.metrics).inputs[len(target.streams) :]
        assert {*read} == {dataset_path(plan.scale, name) for name in sets - without}


def test_the_learner_and_the_net_that_a_cell_names_are_part_of_its_code(plan):
    used = {jobs.job_of(plan, next(iter(plan.results(cell)))).modules for cell in plan.cells.values()}
    assert ("runs.learners.er", "runs.nets.cnn") in used
    assert len({name for name, _ in used}) > 2


def test_what_decides_a_target_is_part_of_its_settings(plan):
    path = plan.targets["stf/table1"].outputs[0]
    before = jobs.job_of(plan, path).settings
    assert before == jobs.job_of(plan, path).settings
    plan.targets["stf/table1"].spec["caption"] += "!"
    assert before != jobs.job_of(plan, path).settings


def test_departures_from_the_papers_scale_decide_a_rendering_and_no_measurement(tmp_path, monkeypatch):
    """An edit of the paper's scale alone changes a footnote at another scale."""
    for folder in ("config", "workflow"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    monkeypatch.chdir(tmp_path)

    def settings():
        jobs._at_paper_scale.cache_clear()
        plan = Plan("smoke", ["stf"])
        target = plan.targets["stf/table1"]
        return [jobs.job_of(plan, path).settings for path in (target.metrics, target.outputs[0])]

    before, file = settings(), Path("config/scales/paper.yaml")
    text = file.read_text(encoding="utf-8")
    shorter = "papers:\n  stf: {datasets: {cifar10: {order: {length: 900}}}}\n"
    file.write_text(text.replace("papers:\n", shorter, 1), encoding="utf-8")
    after = settings()
    jobs._at_paper_scale.cache_clear()
    assert [one == other for one, other in zip(before, after)] == [True, False]


def test_the_sizes_of_a_stand_in_decide_it_and_no_other(plan, monkeypatch):
    def settings():
        return [jobs.job_of(plan, dataset_path("smoke", name)).settings for name in ("cifar10", "cifar100")]

    before, sizes = settings(), plan.settings["stand_ins"]["cifar10"]
    monkeypatch.setitem(plan.settings["stand_ins"], "cifar10", sizes | {"train_per_class": 13})
    assert [one == other for one, other in zip(before, settings())] == [False, True]


def test_the_parts_of_a_claim_decide_the_table_of_claims(monkeypatch):
    """They tell what its sentence does not: whether a side is a guess, by the declaration of its method."""
    monkeypatch.chdir(ROOT)
    plan, path = Plan("smoke", all_papers()), Path("results/smoke/targets/stf/claims.csv")
    first, *others = jobs.claims_of(plan)["stf"]
    before = jobs.job_of(plan, path).settings
    part = first.parts[0]
    guess = dataclasses.replace(part, sides=(dataclasses.replace(part.sides[0], guesses=True), *part.sides[1:]))
    changed = dataclasses.replace(first, parts=(guess, *first.parts[1:]))
    monkeypatch.setattr(jobs, "claims_of", lambda plan: {"stf": [changed, *others]})
    assert jobs.job_of(plan, path).settings != before


def test_the_seeds_that_a_build_reads_of_a_file_decide_a_targets_metrics(plan):
    target = plan.targets["stf/table1"]
    path, cell = target.cells[0][1].folder / "seeds0-1.json", target.cells[0][1]

    def made(*seeds):
        return jobs.job_of(plan.using(SelectedRuns({cell.hash: {path: list(seeds)}})), target.metrics)

    assert made(0).inputs == made(0, 1).inputs
    assert made(0).settings == made(0).settings != made(0, 1).settings


def test_a_pinned_checksum_of_the_training_part_decides_its_streams(monkeypatch):
    """Such a stream reads no data; a checksum of the test part has no part in it."""
    plan = Plan("paper", ["agem"])
    (path, *_) = (stream_path("paper", *each) for each in plan.targets["agem/table1"].streams if each[0] == "mnist")
    before = jobs.job_of(plan, path)
    assert before.inputs == []
    for split, decides in (("test", False), ("train", True)):
        monkeypatch.setitem(plan.datasets["mnist"]["sha256"], split, "0" * 64)
        assert (jobs.job_of(plan, path).settings != before.settings) == decides


def test_a_papers_values_decide_a_selection(monkeypatch):
    plan = Plan("paper", ["agem"])
    name, search = next(iter(plan.selections.items()))
    before = jobs.job_of(plan, search.file)
    other = dataclasses.replace(search, published=dict.fromkeys(search.published, 7))
    monkeypatch.setitem(plan.selections, name, other)
    assert jobs.job_of(plan, search.file).inputs == before.inputs
    assert jobs.job_of(plan, search.file).settings != before.settings
