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


@pytest.fixture
def shared(plan):
    """The shared GANs, each with the cells that draw from it."""
    of_cells = [(cell, gans.of_cell(plan, cell)) for cell in plan.cells.values()]
    return [(each, [cell for cell, its in of_cells if its is each]) for each in gans.shared(plan).values()]


def test_cells_that_share_gans_agree_in_all_that_decides_them(shared):
    for each, cells in shared:
        assert all(gans.Gans.key(cell.spec) == each.spec for cell in cells)
    assert len({each.folder for each, _ in shared}) == len(shared) == 6


def test_the_timed_sweeps_share_theirs_with_the_runs_that_nobody_times(shared):
    of_sweeps = {each.spec["gan"]["epochs"]: (each, cells) for each, cells in shared if len(cells) > 2}
    assert of_sweeps.keys() == {10, 30, 50}
    assert all(each.last for each, _ in of_sweeps.values())
    found = [cell.spec for cell in of_sweeps[50][1]]
    assert len({str(spec["restriction"]) for spec in found}) == 2  # one head, and a head a task
    assert {spec["learner"]["generated"] for spec in found} >= {2000, 4000, 6000}


def test_the_last_tasks_are_trained_where_time_is_shown_alone_which_is_part_of_the_settings(plan, shared):
    for each, cells in shared:
        uses = [target for target in plan.targets.values() if any(c in cells for _, c in target.cells)]
        assert each.last == any("training_minutes" in target.spec.get("metrics", []) for target in uses)
        before = jobs.job_of(plan, each.file(0)).settings
        each.last = not each.last
        assert jobs.job_of(plan, each.file(0)).settings != before
        each.last = not each.last


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


def test_gans_that_no_cell_draws_from_are_refused(plan):
    with pytest.raises(ConfigError, match="no GANs"):
        jobs.job_of(plan, next(iter(gans.shared(plan).values())).folder.with_name("dcgan-0123456789") / "seed0.npz")
