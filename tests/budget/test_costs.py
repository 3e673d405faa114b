"""Predicted costs: counted as the loop goes, taken from the most similar rehearsal, beaten by finished runs."""

import copy
import dataclasses
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from clpapers.archive.imported import folder_of
from clpapers.budget import costs, rehearsals
from clpapers.budget.costs import Counts, Kind, Row, Sizes, Table
from clpapers.config import gans
from clpapers.config.paths import dataset_path
from clpapers.config.plan import Plan
from clpapers.runs import cost_timing

KIND = Kind("er", '{"forward": "separate"}', '{"name": "cnn", "width": 2}', "28x28x1", "sgd", "10", 10, 500, 0, 1)
ROW = Row(KIND, 1, 3.0, 0.5, 0.25, 0.125, "", 0.01, "a machine")


@pytest.fixture(scope="module")
def plan():
    return Plan("smoke", ["streaming"])


def kind_of(plan, cell):
    return costs.kind(cell.spec, plan.datasets[cell.spec["dataset"]]["shape"], len(plan.blocks(cell)[0]))


def like(kind=KIND, *, row=ROW, **changes):
    """A row of a kind that is another one in some settings."""
    return dataclasses.replace(row, kind=dataclasses.replace(kind, **changes))


def of_every_kind(plan):
    """A row of each kind of a plan's cells, all of the same costs."""
    return [like(kind_of(plan, cell)) for cell in plan.cells.values()]


def table_of(rows):
    return Table(rows, calibration=ROW.calibration)


@pytest.fixture(scope="module")
def table(plan):
    return table_of(of_every_kind(plan))


# --- counts


def variety(plan):
    """A cell of each order, batch and kind of tests that a plan has."""
    found = {}
    for cell in plan.cells.values():
        spec = cell.spec
        asked = tuple(key for key in ("shots", "every") if key in spec["evaluation"])
        found.setdefault((spec["order"]["name"], spec["order"].get("cycles"), spec["budget"]["batch"], asked), cell)
    return found.values()


def test_counts_are_what_the_loop_goes_through(everything):
    """Steps and tests exactly, and test items but for which probes had come and for classes shared out to tasks."""
    for cell in variety(everything):
        spec, size = copy.deepcopy(cell.spec), costs.sizes(everything, cell.spec["dataset"])
        if size.shape[0] > 64:
            continue
        spec["learner"], spec["oracle"], spec["restriction"] = {"name": "single"}, {"name": "none"}, {"train": "none"}
        spec["net"] = {"name": "mlp", "hidden": [2]}
        spec["evaluation"] |= {"oracles": {}, "test": None}  # a random part has not as many items of each class
        features = "features" in everything.datasets[spec["dataset"]]
        if features:
            spec["scaling"] = "none"
        streams = {0: costs.stream_of(spec["order"], size)}
        found = cost_timing.rehearse(spec, rehearsals.noise(size, features=features), streams, seconds=0.0)
        counted, probes = costs.counts(spec, size), spec["evaluation"]["probes"] * spec["evaluation"]["points"] / 4
        assert (counted.steps, counted.tests) == (found.steps, found.tests), spec["order"]
        assert counted.items == pytest.approx(found.items, rel=0.03, abs=probes), (spec["order"], spec["evaluation"])


@pytest.mark.parametrize(("batch", "steps"), [(10, 300), ("task", 15)])
def test_epochs_are_as_if_laid_out(batch, steps):
    """Each epoch more has as many steps, so that three are known from one and two."""
    size = Sizes(train=1000, test=100, classes=10, shape=(4, 4, 1))
    evaluation = {"points": 1, "probes": 20, "test": None}
    order = {"name": "split", "tasks": 5, "length": None, "epochs": 3}
    found = costs.counts({"order": order, "budget": {"batch": batch}, "evaluation": evaluation}, size)
    assert found == Counts(steps, 1, 120)


def test_sizes_are_of_stand_ins_where_only_those_are_used(plan):
    """Features have as many items as the images that they are of, whatever their classes, up to their own number."""
    images, features = (costs.sizes(plan, name) for name in ("cifar100", "cifar100_resnet50"))
    assert (images.train, images.test, images.classes) == (200, 100, 100)
    assert (features.train, features.test, features.classes) == (200, 100, 20)
    assert costs.sizes(Plan("paper", ["streaming"]), "cifar100_resnet50").train == 6000


# --- kinds and rows


def test_seconds_by_hand():
    """Founding, 10 steps, 2 tests and 100 items; each of 5 epochs lengthens steps and tests; two seeds share it all."""
    counted = Counts(10, 2, 100)
    assert ROW.seconds(counted, {}) == 3 + 10 * 0.5 + 2 * 0.25 + 100 * 0.125
    repeated = dataclasses.replace(ROW, repeated="epochs 1 2; gan.epochs 0.5 0")
    more = 10 * (5 * 1 + 3 * 0.5) + 2 * 5 * 2
    assert repeated.seconds(counted, {"epochs": 5, "gan": {"epochs": 3}}) == ROW.seconds(counted, {}) + more
    assert dataclasses.replace(ROW, stack=2).seconds(counted, {}) == ROW.seconds(counted, {}) / 2


SPLIT = {"order": {"name": "split", "tasks": 10, "length": None}, "oracle": {"name": "split", "tasks": 5}}
IN_EACH_BATCH = (
    {"name": "mixed"},
    {"name": "split", "tasks": 5, "aligned": False},
    {"name": "split", "tasks": 20},
    {"name": "random_tasks", "tasks": 3},
)


@pytest.mark.parametrize(
    ("learner", "given", "other", "same"),
    [
        ("vgr", {}, {"budget": {"learning_rate": 9.0}, "learner": {"epochs": 9, "gan": {"learning_rate": 0.5}}}, True),
        ("vgr", {}, {"learner": {"gan": {"epochs": 77}}}, True),
        ("vgr", {}, {"learner": {"gan": {"width": 77}}}, False),
        # Each model says how sure it is of an item; told its task, one does.
        ("multi_model", {"oracle": {"name": "random_tasks"}}, {"oracle": {"name": "entropy"}}, False),
        # Tasks that change with every batch matter to a learner that does something at a change, and to no other.
        *(("ewc", SPLIT, {"oracle": {"aligned": True} | oracle}, False) for oracle in IN_EACH_BATCH),
        *(("single", SPLIT, {"oracle": {"aligned": True} | oracle}, True) for oracle in IN_EACH_BATCH),
    ],
)
def test_a_setting_makes_another_kind_where_it_costs_time(everything, learner, given, other, same):
    def laid_over(spec, changes):
        both = {key: laid_over(spec[key], value) for key, value in changes.items() if isinstance(value, dict)}
        return spec | changes | both

    cell = next(cell for cell in everything.cells.values() if cell.spec["learner"]["name"] == learner)
    one = cell.spec | given
    kinds = [costs.kind(spec, (4, 4, 1), 1) for spec in (one, laid_over(one, other))]
    assert (kinds[0] == kinds[1]) is same


@pytest.mark.parametrize(
    ("rows", "asked", "best"),
    [  # another memory does less harm than another batch
        ([{"batch": "20"}, {"memory": 1000}], {}, 1),
        # the most similar options, also where none has the same
        (
            [{"options": each} for each in ('{"a": 2, "b": 2}', '{"a": 1, "b": 2}', "{}")],
            {"options": '{"a": 1, "b": 1}'},
            1,
        ),
        ([{"options": each} for each in ('{"a": 2, "b": 2}', "{}")], {"options": '{"c": 1}'}, 1),
        # another net, or another learner, is not asked at all
        ([{"memory": 1000}, {"net": '{"name": "cnn", "width": 3}'}], {"net": '{"name": "cnn", "width": 3}'}, 1),
        ([{"memory": 1000}], {"learner": "ace"}, None),
    ],
)
def test_the_most_similar_kind_serves(rows, asked, best):
    rows = [like(**changes) for changes in rows]
    assert Table(rows).row(dataclasses.replace(KIND, **asked)) is (None if best is None else rows[best])


def test_committed_costs_cover_all_cells(whole):
    """Nothing of the papers' own settings is without a prediction, but split AWA's nets and VCL with large coresets.

    Nor have two learners of the sensitivity one yet.
    """
    table = Table(costs.read(), calibration=0.01)
    found = costs.predict(whole, table)
    assert found.keys() == whole.cells.keys() | {str(each.folder) for each in gans.shared(whole).values()}
    missing = [whole.cells[key].spec for key, seconds in found.items() if seconds is None]
    unmeasured = ("vcl_coreset", "icarl_in_training", "vcl_narrowed")
    assert {spec["dataset"] for spec in missing if spec["learner"]["name"] not in unmeasured} <= {"awa2"}
    assert all(table.guess(whole, whole.cells[key]) > 0 for key, seconds in found.items() if seconds is None)
    assert all(0 < seconds < math.inf for seconds in found.values() if seconds is not None)


# --- predictions


def test_a_guess_looks_at_no_method_from_outside(plan):
    """However slow another one of the user's was."""
    cell = next(iter(plan.cells.values()))
    shape = kind_of(plan, cell).shape
    slow = dataclasses.replace(like(learner="slow-0123456789", shape=shape), step=1e6)
    guesses = [table_of(rows).guess(plan, cell) for rows in ([slow, like(shape=shape)], [like(shape=shape)])]
    assert guesses[0] == guesses[1]


def test_a_guess_knows_the_learner_before_other_learners_and_the_width_of_its_net(plan):
    """A scale such as smoke has narrow nets that nobody measured."""
    cell = next(cell for cell in plan.cells.values() if "hidden" in cell.spec["net"])

    def row(learner, width, **costs):
        net = json.dumps({"name": "other", "hidden": [width]})
        own = like(learner=learner, net=net, shape=kind_of(plan, cell).shape)
        return dataclasses.replace(own, founding=0.0, test=0.0, item=0.0, **costs)

    width, own = sum(cell.spec["net"]["hidden"]), cell.spec["learner"]["name"]
    other = next(name for name in ("er", "single") if name != own)
    tables = ([row(other, 8 * width, step=1e6), row(own, 8 * width, step=8.0)], [row(own, width, step=1.0)])
    guessed, alike = (table_of(rows).guess(plan, cell) for rows in tables)
    assert guessed == pytest.approx(alike)


def test_one_factor_for_the_machine(plan, table):
    """On a machine that takes twice as long for the calibration, all takes twice as long."""
    slower = Table(of_every_kind(plan), calibration=2 * ROW.calibration)
    once, twice = (costs.predict(plan, each) for each in (table, slower))
    assert twice == pytest.approx({key: 2 * seconds for key, seconds in once.items()})


@pytest.mark.parametrize("imported", [False, True])
def test_finished_runs_beat_the_table(plan, table, ran, imported):
    """A cell of which some seeds are finished takes what they took, whatever was rehearsed; others what was."""
    cell, other = list(plan.cells.values())[:2]
    file = next(iter(plan.results(cell)))
    file = folder_of("smoke") / Path(*file.parts[3:]) if imported else file
    took = {"cpu_seconds": costs.JOBS["train"] + 6.0, "seeds": [0, 1]}
    ran(file, **took)
    found = costs.predict(plan, table)
    assert found[cell.hash] == pytest.approx(3.0)
    assert found[other.hash] == table.corrected(plan, {cell.hash: 3.0}).seconds(plan, other)
    ran(file, "cuda", **took)
    assert costs.predict(plan, table)[cell.hash] == table.seconds(plan, cell)


def test_a_row_is_corrected_by_the_runs_it_serves(everything):
    """By hand: of two cells of one row that took 3 and 5 times what it says, weighed by their seconds; others stay."""
    table, by_row = table_of(of_every_kind(everything)), {}
    for cell in everything.cells.values():
        by_row.setdefault(table.row(kind_of(everything, cell)), []).append(cell)
    first, second, third = next(cells for cells in by_row.values() if len(cells) > 2)[:3]
    a, b = (table.seconds(everything, cell) for cell in (first, second))
    corrected = table.corrected(everything, {first.hash: 3 * a, second.hash: 5 * b})
    factor = (3 * a + 5 * b) / (a + b)
    assert corrected.seconds(everything, third) == pytest.approx(factor * table.seconds(everything, third))
    (other, *_) = next(cells for cells in by_row.values() if first not in cells)
    assert corrected.seconds(everything, other) == table.seconds(everything, other)
    again = corrected.corrected(everything, {first.hash: 3 * a, second.hash: 5 * b})
    assert again.seconds(everything, third) == pytest.approx(corrected.seconds(everything, third))


def test_predictions_import_no_torch():
    """Not even by what they import in turn, so that a workflow may ask while it is read."""
    asked = (
        "import sys\n"
        "from clpapers.config.plan import Plan\n"
        "from clpapers.budget import costs\n"
        "print(len(costs.predict(Plan('paper', ['streaming']))), 'torch' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert said.stdout.split() == [str(len(Plan("paper", ["streaming"]).cells)), "False"]


# --- what is due, and the table of targets


def test_what_is_due_are_the_jobs_whose_files_are_not_there(plan, table):
    target = plan.targets["streaming/table1"]
    whole = costs.jobs(plan, target, costs.predict(plan, table))
    data = {path: dataset_path("smoke", str(path)) for path in whole if len(path.parts) == 1}

    def told(paths):
        return f"{len(paths)} jobs: {costs.duration(sum(whole[path] for path in paths))} on one core"

    assert costs.pending(plan, [target], table) == f"Predicted for what is not there yet, {told(whole)}"
    for path in (path for path in whole if path in data or "runs" in path.parts):
        file = data.get(path, path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    left = [path for path in whole if not data.get(path, path).exists()]
    assert f"yet, {told(left)}" in costs.pending(plan, [target], table)
    for path in left:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert costs.pending(plan, [target], table) == "Every file of these targets is there."


def test_what_nobody_measured_is_counted_apart(plan):
    target = plan.targets["streaming/table1"]
    prices = costs.jobs(plan, target, costs.predict(plan, Table([]))).values()
    unknown = sum(price is None for price in prices)
    assert unknown
    told = f" on one core, and {unknown} jobs of unknown cost (clpapers rehearse)"
    assert costs.pending(plan, [target], Table([])).endswith(told)
    without = table_of([row for row in of_every_kind(plan) if row.kind.learner != "nn1"])
    (line,) = (row for row in costs.table(plan, without).splitlines() if "streaming/table1 " in row)
    assert f", and {sum(each.spec['learner']['name'] == 'nn1' for _, each in target.cells)} jobs" in line
    assert line.split("|")[5].endswith(" jobs that were not measured ")


def test_a_targets_runs_are_its_cells_times_their_seeds_and_shared_runs_count_once(plan, table):
    """The whole costs no more than the sum of the targets of `all`, and no less than the dearest of them."""
    _, _, *lines, last = costs.table(plan, table).splitlines()
    rows = {row.split("|")[1].strip(): row.split("|")[3] for row in lines}
    for name, target in plan.targets.items():
        if not target.selections:
            assert int(rows[name].replace(",", "")) == len({cell.hash for _, cell in target.cells}) * len(target.seeds)
    seconds = costs.predict(plan, table)
    wanted = [target for target in plan.targets.values() if not target.spec.get("extra")]
    each = [sum(costs.jobs(plan, target, seconds).values()) for target in wanted]
    number, unit = last.split("|")[5].split()
    whole = float(number) * {"s": 1, "min": 60, "h": 3600}[unit]
    assert 0.95 * max(each) <= whole < 0.95 * sum(each)  # of two digits


def test_shared_gans_are_priced_by_hand_and_count_once():
    """A step takes 0.5 s and 2 s more for each epoch of GANs; five tasks, 50 epochs: 500 s a seed, and no run pays."""
    plan = Plan("paper", ["desiderata"])
    rows = of_every_kind(plan)
    dearer = dataclasses.replace(ROW, repeated="epochs 0 0; gan.epochs 2 0")
    table = table_of([like(row.kind, row=dearer) if "gan" in row.kind.options else row for row in rows])
    seconds = costs.predict(plan, table)
    shared = next(each for each in gans.shared(plan).values() if each.last and each.spec["gan"]["epochs"] == 50)
    assert (shared.tasks, seconds[str(shared.folder)]) == (5, 500)
    users, alone = [cell for cell in plan.cells.values() if gans.of_cell(plan, cell) is shared], table_of(rows)
    assert [seconds[cell.hash] for cell in users] == [alone.seconds(plan, cell) for cell in users]
    jobs = costs.jobs(plan, plan.targets["desiderata/figure9"], seconds)
    assert [jobs[shared.file(seed)] for seed in range(10)] == [500 + costs.JOBS["train"]] * 10
    assert len([path for path in jobs if "gans" in path.parts]) == 30  # after 10, 30 and 50 epochs


DURATIONS = {
    0.25: "0.2 s",
    45: "45 s",
    300: "5 min",
    5399: "90 min",
    12240: "3.4 h",
    432000: "120 h",
    4442400: "1,234 h",
}


@pytest.mark.parametrize(("seconds", "text"), DURATIONS.items())
def test_durations(seconds, text):
    assert costs.duration(seconds) == text


# --- rehearsing a plan

METHOD = """
import time

from clpapers import Learner

DECLARATION = {{"options": {{}}}}


class Mine(Learner):
    def observe(self, t, x, y):
        {does}
"""


@pytest.mark.parametrize(
    ("does", "told"), [('raise ValueError("no such layer")', "no such layer"), ("time.sleep(600)", "longer than 2 s")]
)
def test_a_kind_that_fails_leaves_the_others_measured_which_are_not_measured_again(
    does, told, tmp_path, monkeypatch, capsys
):
    """Cells that are alike are rehearsed once."""
    monkeypatch.setattr(rehearsals, "CAP", 2.0)
    file, out = tmp_path / "mine.py", tmp_path / "costs.csv"
    file.write_text(METHOD.format(does=does))
    plan = Plan("smoke", ["stf"], methods=[str(file)])
    mine = next(cell for cell in plan.cells.values() if cell.method)
    kinds = {}
    for cell in plan.cells.values():
        kinds.setdefault(kind_of(plan, cell), []).append(cell)
    alike = next(cells for kind, cells in kinds.items() if kind.learner == "er" and len(cells) > 1)[:2]
    rehearsals.rehearse(plan, [mine, *alike], out, 0.05)
    failed, measured = capsys.readouterr().err.splitlines()
    assert "mine" in failed
    assert told in failed
    assert measured.startswith("2 of 2: er ")
    assert [row.kind for row in costs.read(out)] == [kind_of(plan, alike[0])]
    assert Table(costs.read(out), calibration=1.0).seconds(plan, alike[1]) > 0
    rehearsals.rehearse(plan, alike, out, 0.05)
    assert capsys.readouterr().err == ""
    assert costs.text(costs.read(out)) == out.read_text()
