"""Which runs share GANs: all of one recipe, order and scaling, whatever else they differ in."""

import pytest

from clpapers.config import gans
from clpapers.config.plan import Plan
from clpapers.config.refusals import ConfigError
from clpapers.graph import jobs
from clpapers.provenance import record_path


@pytest.fixture(scope="module")
def plan():
    return Plan("paper", ["desiderata"])


def users(plan, shared):
    return [cell.spec for cell in plan.cells.values() if gans.of_cell(plan, cell) is shared]


def test_cells_that_share_gans_agree_in_all_that_decides_them(plan):
    for shared in gans.shared(plan).values():
        for spec in users(plan, shared):
            assert gans.Gans.key(spec) == shared.spec
    folders = [shared.folder for shared in gans.shared(plan).values()]
    assert len(folders) == len({*folders}) == 6


def test_the_timed_sweeps_share_theirs_with_the_runs_that_nobody_times(plan):
    of_sweeps = [each for each in gans.shared(plan).values() if len(users(plan, each)) > 2]
    assert {each.spec["gan"]["epochs"] for each in of_sweeps} == {10, 30, 50}
    shared = next(each for each in of_sweeps if each.spec["gan"]["epochs"] == 50)
    found = users(plan, shared)
    assert all(each.last for each in of_sweeps)
    assert len({str(spec["restriction"]) for spec in found}) == 2  # one head, and a head a task
    assert {spec["learner"]["generated"] for spec in found} >= {2000, 4000, 6000}


def test_the_last_tasks_are_trained_where_time_is_shown_alone(plan):
    for shared in gans.shared(plan).values():
        hashes = {c.hash for c in plan.cells.values() if gans.of_cell(plan, c) is shared}
        uses = [target for target in plan.targets.values() if any(c.hash in hashes for _, c in target.cells)]
        assert shared.last == any("training_minutes" in target.spec.get("metrics", []) for target in uses)


def test_a_run_reads_the_gans_of_its_seeds_and_these_the_data_and_the_stream(plan):
    cell = next(cell for cell in plan.cells.values() if gans.of_cell(plan, cell))
    shared = gans.of_cell(plan, cell)
    job = jobs.job_of(plan, next(iter(plan.results(cell))))
    seeds = job.seeds
    assert job.inputs == [cell.dataset, *map(cell.stream, seeds), *map(shared.file, seeds)]
    made = jobs.job_of(plan, record_path(shared.file(seeds[0])))
    assert (made.command, made.stage) == ("gans", "gans")
    assert made.inputs == [cell.dataset, cell.stream(seeds[0])]
    assert made.modules == (f"runs.nets.{cell.spec['learner']['gan']['name']}",)


def test_what_is_kept_is_part_of_the_settings(plan):
    shared = next(iter(gans.shared(plan).values()))
    before = jobs.job_of(plan, shared.file(0)).settings
    shared.last = not shared.last
    after = jobs.job_of(plan, shared.file(0)).settings
    shared.last = not shared.last
    assert before != after


def test_gans_that_no_cell_draws_from_are_refused(plan):
    with pytest.raises(ConfigError, match="no GANs"):
        jobs.job_of(plan, next(iter(gans.shared(plan).values())).folder.with_name("dcgan-0123456789") / "seed0.npz")
