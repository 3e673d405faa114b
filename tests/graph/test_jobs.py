"""The graph of jobs: which job makes a path, and what decides its output."""

import dataclasses
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from clpapers.config.paths import dataset_path, stream_path
from clpapers.config.plan import Plan
from clpapers.config.selected_runs import SelectedRuns
from clpapers.config.settings import all_papers
from clpapers.graph import jobs
from clpapers.graph.maker import Maker
from clpapers.provenance import record_path

ROOT = Path(__file__).parents[2]


@pytest.fixture
def run(plan):
    """The first result of the first cell, and that cell."""
    cell = next(iter(plan.cells.values()))
    return next(iter(plan.results(cell))), cell


@pytest.fixture
def agem(monkeypatch):
    """The plan of another paper at its own scale."""
    monkeypatch.chdir(ROOT)
    return Plan("paper", ["agem"])


def settings_of(plan, *files):
    return [jobs.job_of(plan, path).settings for path in files]


def test_every_file_behind_a_target_and_its_record_are_of_one_job(plan):
    behind = jobs.ancestors(plan, plan.targets.values())
    assert {job.command for job in behind.values()} >= {"dataset", "stream", "entropy", "train", "metrics", "table"}
    for place, job in behind.items():
        for path in (*job.outputs, place):
            assert jobs.job_of(plan, path).outputs == job.outputs
        assert place == record_path(job.outputs[0])


def test_a_run_reads_its_data_and_the_streams_of_its_seeds_and_its_code_is_of_its_learner_and_net(plan, run):
    path, cell = run
    job = jobs.job_of(plan, path)
    streams = [cell.stream(seed) for seed in job.seeds]
    assert (job.command, job.stage, job.inputs) == ("train", "runs", [cell.dataset, *streams])
    used = {jobs.job_of(plan, next(iter(plan.results(cell)))).modules for cell in plan.cells.values()}
    assert ("runs.learners.er", "runs.nets.cnn") in used
    assert len({name for name, _ in used}) > 2


def test_streams_read_data_only_where_the_sizes_of_classes_are_not_known(agem):
    """No stand-in and no part has the sizes of the whole."""
    for plan, without in ((agem, {"mnist", "cifar100"}), (Plan("smoke", ["agem"]), set())):
        target = plan.targets["agem/table1"]
        for where in target.streams:
            data = [] if where[0] in without else [dataset_path(plan.scale, where[0])]
            assert jobs.job_of(plan, stream_path(plan.scale, *where)).inputs == data
        read = jobs.job_of(plan, target.metrics).inputs[len(target.streams) :]
        assert {*read} == {dataset_path(plan.scale, name) for name, *_ in target.streams if name not in without}


def test_what_decides_a_target_is_part_of_its_settings(plan, monkeypatch):
    path = plan.targets["stf/table1"].outputs[0]
    before = settings_of(plan, path)
    assert before == settings_of(plan, path)
    monkeypatch.setitem(plan.targets["stf/table1"].spec, "caption", "Another.")
    assert before != settings_of(plan, path)


def test_departures_from_the_papers_scale_decide_a_rendering_and_no_measurement(configured):
    """An edit of the paper's scale alone changes a footnote at another scale."""

    def settings():
        jobs._at_paper_scale.cache_clear()
        plan = Plan("smoke", ["stf"])
        return settings_of(plan, plan.targets["stf/table1"].metrics, plan.targets["stf/table1"].outputs[0])

    before, file = settings(), Path("config/scales/paper.yaml")
    shorter = "papers:\n  stf: {datasets: {cifar10: {order: {length: 900}}}}\n"
    file.write_text(file.read_text(encoding="utf-8").replace("papers:\n", shorter, 1), encoding="utf-8")
    after = settings()
    jobs._at_paper_scale.cache_clear()
    assert [one == other for one, other in zip(before, after)] == [True, False]


def test_the_sizes_of_a_stand_in_decide_it_and_no_other(plan, monkeypatch):
    files = [dataset_path("smoke", name) for name in ("cifar10", "cifar100")]
    before, sizes = settings_of(plan, *files), plan.settings["stand_ins"]["cifar10"]
    monkeypatch.setitem(plan.settings["stand_ins"], "cifar10", sizes | {"train_per_class": 13})
    assert [one == other for one, other in zip(before, settings_of(plan, *files))] == [False, True]


def test_the_parts_of_a_claim_decide_the_table_of_claims(monkeypatch):
    """They tell what its sentence does not: whether a side is a guess, by the declaration of its method."""
    monkeypatch.chdir(ROOT)
    plan, path = Plan("smoke", all_papers()), Path("results/smoke/targets/stf/claims.csv")
    before, claims = settings_of(plan, path), jobs.claims_of(plan)["stf"]
    part, *parts = claims[0].parts
    side, *sides = part.sides
    guess = dataclasses.replace(part, sides=(dataclasses.replace(side, guesses=True), *sides))
    claims[0] = dataclasses.replace(claims[0], parts=(guess, *parts))
    assert settings_of(plan, path) != before


def test_the_seeds_that_a_build_reads_of_a_file_decide_a_targets_metrics(plan):
    target = plan.targets["stf/table1"]
    path, cell = target.cells[0][1].folder / "seeds0-1.json", target.cells[0][1]

    def made(*seeds):
        return jobs.job_of(plan.using(SelectedRuns({cell.hash: {path: list(seeds)}})), target.metrics)

    assert made(0).inputs == made(0, 1).inputs
    assert made(0).settings == made(0).settings != made(0, 1).settings


def test_a_pinned_checksum_of_the_training_part_decides_its_streams(agem, monkeypatch):
    """Such a stream reads no data; a checksum of the test part has no part in it."""
    (path, *_) = (stream_path("paper", *each) for each in agem.targets["agem/table1"].streams if each[0] == "mnist")
    before = settings_of(agem, path)
    for split, decides in (("test", False), ("train", True)):
        monkeypatch.setitem(agem.datasets["mnist"]["sha256"], split, "0" * 64)
        assert (settings_of(agem, path) != before) == decides


def test_a_papers_values_decide_a_selection(agem):
    name, search = next(iter(agem.selections.items()))
    before = jobs.job_of(agem, search.file)
    agem.selections[name] = dataclasses.replace(search, published=dict.fromkeys(search.published, 7))
    assert jobs.job_of(agem, search.file).inputs == before.inputs
    assert jobs.job_of(agem, search.file).settings != before.settings


def test_threads_make_a_common_input_once(plan, tmp_path):
    done = []

    def make(command):
        done.append(command[2])
        time.sleep(0.05)  # until the other thread asks for it too
        for file in (tmp_path / command[2], tmp_path / record_path(Path(command[2]))):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
        return ""

    one, other, *_ = (cell for cell in plan.cells.values() if cell.spec["dataset"] == "emnist")
    files = [next(iter(plan.results(cell))) for cell in (one, other)]
    maker = Maker(plan, make, tmp_path)
    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(maker.make, files)) == ["", ""]
    assert sorted(done) == sorted(map(str, {*files, one.dataset, *map(one.stream, (0, 1)), *map(other.stream, (0, 1))}))
