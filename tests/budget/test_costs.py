"""Predicted costs: counted as the loop goes, taken from the most similar rehearsal, beaten by finished runs."""

import copy
import dataclasses
import itertools
import json
import math
import re
import subprocess
import sys
from pathlib import Path

import pytest

from clpapers.budget import costs, rehearsals
from clpapers.budget.costs import Counts, Kind, Row, Sizes, Table
from clpapers.config import gans
from clpapers.config.paths import dataset_path
from clpapers.config.plan import Plan
from clpapers.config.settings import all_papers
from clpapers.provenance import ProvenanceError
from clpapers.runs import cost_timing

KIND = Kind("er", '{"forward": "separate"}', '{"name": "cnn", "width": 2}', "28x28x1", "sgd", "10", 10, 500, 0, 1)
ROW = Row(KIND, 1, 3.0, 0.5, 0.25, 0.125, "", 0.01, "a machine")


@pytest.fixture(scope="module")
def plan():
    return Plan("smoke", ["streaming"])


@pytest.fixture(scope="module")
def everything():
    return Plan("smoke", all_papers())


@pytest.fixture(autouse=True)
def nothing_finished(monkeypatch):
    """Whatever is built where the tests run."""

    def refuse(path):
        raise ProvenanceError(f"{path}: no record")

    monkeypatch.setattr(costs, "read_record", refuse)


def of_every_kind(plan, **values):
    """A table with a row of each kind of a plan's cells, all of the same costs."""
    rows = []
    for cell in plan.cells.values():
        shape = plan.datasets[cell.spec["dataset"]]["shape"]
        kind = costs.kind(cell.spec, shape, len(plan.blocks(cell)[0]))
        rows.append(dataclasses.replace(ROW, kind=kind, **values))
    return Table(rows, calibration=ROW.calibration)


# --- counts


def variety(plan):
    """A cell of each order, batch and kind of tests that a plan has."""
    found = {}
    for cell in plan.cells.values():
        spec = cell.spec
        asked = tuple(key for key in ("shots", "every") if key in spec["evaluation"])
        found.setdefault((spec["order"]["name"], spec["order"].get("cycles"), spec["budget"]["batch"], asked), cell)
    return found.values()


def test_counts_are_what_the_loop_goes_through(everything, monkeypatch):
    """Steps and tests exactly, and test items but for which probes had come and for classes shared out to tasks."""
    monkeypatch.setattr(cost_timing, "STEPS", 10**6)  # streams stay as long as they are
    monkeypatch.setattr(cost_timing, "ITEMS", 10**6)
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


def test_longer_streams_count_more(everything):
    for cell in variety(everything):
        spec, size = copy.deepcopy(cell.spec), costs.sizes(everything, cell.spec["dataset"])
        spec["order"]["length"] = None
        if "items" in spec["order"]:  # of an order that says itself how long it is
            continue
        short, long = (costs.counts(spec, dataclasses.replace(size, train=n * size.train)) for n in (1, 2))
        if spec["budget"]["batch"] == "task":
            assert long == short
        else:
            assert long.steps > short.steps
            assert long.tests >= short.tests


@pytest.mark.parametrize("batch", [10, "task"])
def test_epochs_are_as_if_laid_out(batch):
    """Each epoch more has as many steps, so that three are known from one and two."""
    size = Sizes(train=1000, test=100, classes=10, shape=(4, 4, 1))
    evaluation = {"points": 1, "probes": 20, "test": None}
    order = {"name": "split", "tasks": 5, "length": None, "epochs": 3}
    found = costs.counts({"order": order, "budget": {"batch": batch}, "evaluation": evaluation}, size)
    assert found == Counts(15 if batch == "task" else 300, 1, 120)


def test_sizes_are_of_stand_ins_where_only_those_are_used():
    """Features have as many items as the images that they are of, whatever their classes, up to their own number."""
    smoke, paper = (Plan(scale, ["streaming"]) for scale in ("smoke", "paper"))
    images, features = (costs.sizes(smoke, name) for name in ("cifar100", "cifar100_resnet50"))
    assert (images.train, images.test, images.classes) == (200, 100, 100)
    assert (features.train, features.test, features.classes) == (200, 100, 20)
    assert costs.sizes(paper, "cifar100_resnet50").train == 6000


# --- kinds and rows


def test_seconds_by_hand():
    """Founding, 10 steps, 2 tests and 100 items; each of 5 epochs lengthens steps and tests; two seeds share it all."""
    counted = Counts(10, 2, 100)
    assert ROW.seconds(counted, {}) == 3 + 10 * 0.5 + 2 * 0.25 + 100 * 0.125
    repeated = dataclasses.replace(ROW, repeated="epochs 1 2; gan.epochs 0.5 0")
    more = 10 * (5 * 1 + 3 * 0.5) + 2 * 5 * 2
    assert repeated.seconds(counted, {"epochs": 5, "gan": {"epochs": 3}}) == ROW.seconds(counted, {}) + more
    assert dataclasses.replace(ROW, stack=2).seconds(counted, {}) == ROW.seconds(counted, {}) / 2


def test_what_costs_nothing_makes_no_kind(everything):
    """Cells that differ in rates, weights and repetitions alone are of one kind; another width is another."""
    cell = next(c for c in everything.cells.values() if c.spec["learner"]["name"] == "vgr")
    spec = copy.deepcopy(cell.spec)
    spec["budget"]["learning_rate"] *= 2
    spec["learner"]["epochs"] += 1
    spec["learner"]["gan"] |= {"epochs": 77, "learning_rate": 0.5}
    assert costs.kind(spec, (4, 4, 1), 1) == costs.kind(cell.spec, (4, 4, 1), 1)
    spec["learner"]["gan"]["width"] += 1
    assert costs.kind(spec, (4, 4, 1), 1) != costs.kind(cell.spec, (4, 4, 1), 1)


def test_models_that_all_pass_an_item_are_another_kind(everything):
    """With the oracle `entropy` each model says how sure it is of an item; told its task, one does."""
    cell = next(c for c in everything.cells.values() if c.spec["learner"]["name"] == "multi_model")
    asked, told = (cell.spec | {"oracle": {"name": name, "tasks": 5}} for name in ("entropy", "random_tasks"))
    assert costs.kind(asked, (4, 4, 1), 1) != costs.kind(told, (4, 4, 1), 1)


@pytest.mark.parametrize(
    "oracle",
    [
        {"name": "mixed"},
        {"name": "split", "tasks": 5, "aligned": False},
        {"name": "split", "tasks": 20},
        {"name": "random_tasks", "tasks": 3},
    ],
)
def test_tasks_that_change_with_every_batch_are_another_kind(everything, oracle):
    """For a learner that does something at a change, and for no other."""
    for name, alike in (("ewc", False), ("single", True)):
        cell = next(c for c in everything.cells.values() if c.spec["learner"]["name"] == name)
        spec = cell.spec | {"order": {"name": "split", "tasks": 10, "length": None}}
        oracles = ({"name": "split", "tasks": 5}, oracle)
        chunks, mixed = (costs.kind(spec | {"oracle": each}, (4, 4, 1), 1) for each in oracles)
        assert (chunks == mixed) == alike


def test_the_most_similar_kind_serves():
    """Another memory does less harm than another batch; another net is not asked at all."""
    memory, batch, net = (
        dataclasses.replace(ROW, kind=dataclasses.replace(KIND, **change))
        for change in ({"memory": 1000}, {"batch": "20"}, {"net": '{"name": "cnn", "width": 3}'})
    )
    table = Table([batch, net, memory])
    assert table.row(KIND) is memory
    assert table.row(net.kind) is net
    assert table.row(dataclasses.replace(KIND, learner="ace")) is None
    assert Table([memory], [dataclasses.replace(memory, step=9.0)]).row(KIND) is memory


def test_of_kinds_with_other_options_that_with_fewest_serves():
    """Also where none has the same."""
    rows = [
        dataclasses.replace(ROW, kind=dataclasses.replace(KIND, options=options))
        for options in ('{"a": 2, "b": 2}', '{"a": 1, "b": 2}', "{}")
    ]
    asked = dataclasses.replace(KIND, options='{"a": 1, "b": 1}')
    assert Table(rows).row(asked) is rows[1]
    assert Table([rows[0], rows[2]]).row(dataclasses.replace(KIND, options='{"c": 1}')) is rows[2]


def test_a_table_is_read_as_it_was_written(tmp_path):
    rows = [dataclasses.replace(ROW, kind=dataclasses.replace(KIND, tasks=n), repeated="epochs 1 0") for n in (0, 5)]
    file = tmp_path / "costs.csv"
    file.write_text(costs.text(rows))
    assert costs.read(file) == rows
    assert costs.read(tmp_path / "none.csv") == []


def test_committed_costs_cover_all_cells():
    """Nothing of the papers' own settings is without a prediction, but split AWA's nets and VCL with large coresets.

    Nor have two learners of the sensitivity one yet.
    """
    plan = Plan("paper", all_papers())
    table = Table(costs.read(), calibration=0.01)
    found = costs.predict(plan, table)
    assert found.keys() == plan.cells.keys() | {str(each.folder) for each in gans.shared(plan).values()}
    missing = [plan.cells[key].spec for key, seconds in found.items() if seconds is None]
    unmeasured = ("vcl_coreset", "icarl_in_training", "vcl_narrowed")
    assert {spec["dataset"] for spec in missing if spec["learner"]["name"] not in unmeasured} <= {"awa2"}
    assert all(table.guess(plan, plan.cells[key]) > 0 for key, seconds in found.items() if seconds is None)
    assert all(0 < seconds < math.inf for seconds in found.values() if seconds is not None)


# --- predictions


def test_a_guess_looks_at_no_method_from_outside(plan):
    """However slow another one of the user's was."""
    cell = next(iter(plan.cells.values()))
    shape = "x".join(map(str, plan.datasets[cell.spec["dataset"]]["shape"]))
    slow = dataclasses.replace(ROW, kind=dataclasses.replace(KIND, learner="slow-0123456789", shape=shape), step=1e6)
    ours = dataclasses.replace(ROW, kind=dataclasses.replace(KIND, shape=shape))
    alone = Table([ours], calibration=ROW.calibration).guess(plan, cell)
    assert Table([slow, ours], calibration=ROW.calibration).guess(plan, cell) == alone


def test_a_guess_knows_the_learner_before_other_learners_and_the_width_of_its_net(plan):
    """A scale such as smoke has narrow nets that nobody measured."""
    cell = next(cell for cell in plan.cells.values() if "hidden" in cell.spec["net"])
    shape = "x".join(map(str, plan.datasets[cell.spec["dataset"]]["shape"]))

    def guess(learner, width, **costs):
        net = json.dumps({"name": "other", "hidden": [width]})
        kind = dataclasses.replace(KIND, learner=learner, net=net, shape=shape)
        return dataclasses.replace(ROW, kind=kind, founding=0.0, **costs)

    width, own = sum(cell.spec["net"]["hidden"]), cell.spec["learner"]["name"]
    other = next(name for name in ("er", "single") if name != own)
    slow, ours = guess(other, 8 * width, step=1e6), guess(own, 8 * width, step=8.0, test=0.0, item=0.0)
    like = guess(own, width, step=1.0, test=0.0, item=0.0)
    (guessed, alike) = (Table(rows, calibration=ROW.calibration).guess(plan, cell) for rows in ([slow, ours], [like]))
    assert guessed == pytest.approx(alike)


def test_a_kind_that_fails_leaves_the_others_measured(plan, tmp_path, monkeypatch, capsys):
    def measured(plan, cell, kind, seconds):
        if kind.learner == "nn1":
            raise ValueError("Expected more than 1 value per channel")
        return dataclasses.replace(ROW, kind=kind)

    monkeypatch.setattr(rehearsals, "measured", measured)
    rehearsals.rehearse(plan, list(plan.cells.values()), tmp_path / "costs.csv", 1.0)
    there = {row.kind.learner for row in costs.read(tmp_path / "costs.csv")}
    assert there == {cell.spec["learner"]["name"] for cell in plan.cells.values()} - {"nn1"}
    assert "nn1" in capsys.readouterr().err


SLOW = """
import time

from clpapers import Learner, Observed

DECLARATION = {"options": {}}


class Slow(Learner):
    def observe(self, t, x, y):
        time.sleep(600)
        return Observed()
"""


def test_a_step_longer_than_the_cap_is_told_as_such(tmp_path, monkeypatch, capsys):
    file = tmp_path / "slow.py"
    file.write_text(SLOW)
    plan = Plan("smoke", ["stf"], methods=[str(file)])
    cell = next(cell for cell in plan.cells.values() if cell.method)
    monkeypatch.setattr(rehearsals, "CAP", 0.5)
    rehearsals.rehearse(plan, [cell], tmp_path / "costs.csv", 1.0)
    assert not (tmp_path / "costs.csv").exists()
    told = capsys.readouterr().err
    assert "slow" in told
    assert "longer than 0.5 s" in told


def test_one_factor_for_the_machine(plan):
    """On a machine that takes twice as long for the calibration, all takes twice as long."""
    here, slower = of_every_kind(plan), of_every_kind(plan)
    slower.calibration = 2 * here.calibration
    once, twice = (costs.predict(plan, table) for table in (here, slower))
    assert twice == pytest.approx({key: 2 * seconds for key, seconds in once.items()})


def test_finished_runs_beat_the_table(plan, monkeypatch):
    """A cell of which some seeds are finished takes what they took, whatever was rehearsed; others what was."""
    cell, other = list(plan.cells.values())[:2]
    record = {"hardware": {"device": "cpu"}, "cpu_seconds": costs.JOBS["train"] + 6.0, "seeds": [0, 1]}
    finished = next(iter(plan.results(cell)))
    monkeypatch.setattr(type(finished), "exists", lambda path: path == finished)
    monkeypatch.setattr(costs, "read_record", lambda path: record)
    table = of_every_kind(plan)
    found = costs.predict(plan, table)
    assert found[cell.hash] == pytest.approx(3.0)
    same_row = table._serving(plan, cell) is table._serving(plan, other)
    factor = 3.0 / table.seconds(plan, cell) if same_row else 1.0
    assert found[other.hash] == pytest.approx(factor * table.seconds(plan, other))
    record["hardware"]["device"] = "cuda"
    assert costs.predict(plan, table)[cell.hash] == table.seconds(plan, cell)


def test_imported_runs_count_as_those_trained_here(plan, monkeypatch):
    cell = next(iter(plan.cells.values()))
    record = {"hardware": {"device": "cpu"}, "cpu_seconds": costs.JOBS["train"] + 6.0, "seeds": [0, 1]}
    brought = Path("brought.json")
    monkeypatch.setattr(Path, "exists", lambda path: path == brought)
    monkeypatch.setattr(costs, "imported", lambda scale: {cell.hash: {brought: range(2)}})
    monkeypatch.setattr(costs, "read_record", lambda path: record)
    assert costs.predict(plan, of_every_kind(plan))[cell.hash] == pytest.approx(3.0)


def test_a_row_is_corrected_by_the_runs_it_serves(everything):
    """By hand: of two cells of one row that took 3 and 5 times what it says, weighed by their seconds; others stay."""
    table = of_every_kind(everything)
    by_row = {}
    for cell in everything.cells.values():
        by_row.setdefault(id(table._serving(everything, cell)), []).append(cell)
    first, second, third = next(cells for cells in by_row.values() if len(cells) > 2)[:3]
    a, b = (table.seconds(everything, cell) for cell in (first, second))
    corrected = table.corrected(everything, {first.hash: 3 * a, second.hash: 5 * b})
    factor = (3 * a + 5 * b) / (a + b)
    assert corrected.seconds(everything, third) == pytest.approx(factor * table.seconds(everything, third))
    (other, *_) = next(cells for cells in by_row.values() if first not in cells)
    assert corrected.seconds(everything, other) == table.seconds(everything, other)
    again = corrected.corrected(everything, {first.hash: 3 * a, second.hash: 5 * b})
    assert again.seconds(everything, third) == pytest.approx(corrected.seconds(everything, third))


def test_unmeasured_cells_have_no_price(plan):
    assert set(costs.predict(plan, Table([])).values()) == {None}


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


# --- what is due


def test_what_is_due_are_the_jobs_whose_files_are_not_there(plan, monkeypatch):
    known = of_every_kind(plan)
    target = plan.targets["streaming/table1"]
    there: set[Path] = set()
    monkeypatch.setattr(Path, "exists", lambda path: path in there)
    whole = costs.jobs(plan, target, costs.predict(plan, known))
    said = costs.pending(plan, [target], known)
    assert said == (
        f"Predicted for what is not there yet, {len(whole)} jobs: {costs.duration(sum(whole.values()))} on one core"
    )
    data = [dataset_path("smoke", str(name)) for name in whole if len(name.parts) == 1]
    runs = [path for path in whole if "runs" in path.parts]
    there |= {*data, *runs}
    left = [seconds for path, seconds in whole.items() if len(path.parts) > 1 and path not in there]
    assert f"yet, {len(left)} jobs: {costs.duration(sum(left))} " in costs.pending(plan, [target], known)
    there |= set(whole)
    assert costs.pending(plan, [target], known) == "Every file of these targets is there."


def test_jobs_of_unknown_cost_are_counted_apart(plan, monkeypatch):
    monkeypatch.setattr(Path, "exists", lambda path: False)
    target = plan.targets["streaming/table1"]
    runs = [
        path for path, seconds in costs.jobs(plan, target, costs.predict(plan, Table([]))).items() if seconds is None
    ]
    assert runs
    assert costs.pending(plan, [target], Table([])).endswith(
        f" on one core, and {len(runs)} jobs of unknown cost (clpapers rehearse)"
    )


# --- the table of targets


def test_table_says_what_was_not_measured(plan):
    rows = costs.table(plan, of_every_kind(plan)).splitlines()[2:]
    assert all(row.split("|")[5].strip()[0].isdigit() for row in rows)
    known = of_every_kind(plan)
    known.rows = {key: each for key, each in known.rows.items() if key[0] != "nn1"}
    (line,) = (row for row in costs.table(plan, known).splitlines() if "streaming/table1 " in row)
    assert re.search(r", and \d+ jobs that were not measured $", line.split("|")[5])


def test_a_targets_runs_are_its_cells_times_their_seeds(plan):
    rows = {row.split("|")[1].strip(): row.split("|")[3] for row in costs.table(plan, of_every_kind(plan)).splitlines()}
    for name, target in plan.targets.items():
        if not target.selections:
            assert int(rows[name].replace(",", "")) == len({cell.hash for _, cell in target.cells}) * len(target.seeds)


def test_shared_runs_count_once(plan):
    """The whole is no more than the sum of the targets of `all`, and no less than the dearest of them."""
    known = of_every_kind(plan)
    seconds = costs.predict(plan, known)
    wanted = [target for target in plan.targets.values() if not target.spec.get("extra")]
    each = [sum(costs.jobs(plan, target, seconds).values()) for target in wanted]
    number, unit = costs.table(plan, known).splitlines()[-1].split("|")[5].split()
    whole = float(number) * {"s": 1, "min": 60, "h": 3600}[unit]
    assert 0.95 * max(each) <= whole < 0.95 * sum(each)  # of two digits


def test_shared_gans_are_priced_by_hand_and_count_once():
    """A step takes 0.5 s and 2 s more for each epoch of GANs; five tasks, 50 epochs: 500 s a seed, and no run pays."""
    plan = Plan("paper", ["desiderata"])
    table = of_every_kind(plan)
    for row in itertools.chain(*table.rows.values()):
        if "gan" in row.kind.options:
            table.rows[row.kind.learner, row.kind.net, row.kind.shape] = [
                dataclasses.replace(row, repeated="epochs 0 0; gan.epochs 2 0")
            ]
    seconds = costs.predict(plan, table)
    shared = next(each for each in gans.shared(plan).values() if each.last and each.spec["gan"]["epochs"] == 50)
    assert (shared.tasks, seconds[str(shared.folder)]) == (5, 500)
    users = [cell for cell in plan.cells.values() if gans.of_cell(plan, cell) is shared]
    alone = of_every_kind(plan)  # where no epoch costs more
    assert [seconds[cell.hash] for cell in users] == [alone.seconds(plan, cell) for cell in users]
    jobs = costs.jobs(plan, plan.targets["desiderata/figure9"], seconds)
    assert [jobs[shared.file(seed)] for seed in range(10)] == [500 + costs.JOBS["train"]] * 10
    assert len([path for path in jobs if "gans" in path.parts]) == 30  # after 10, 30 and 50 epochs


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.25, "0.2 s"),
        (45, "45 s"),
        (300, "5 min"),
        (5399, "90 min"),
        (12240, "3.4 h"),
        (432000, "120 h"),
        (4442400, "1,234 h"),
    ],
)
def test_durations(seconds, text):
    assert costs.duration(seconds) == text


# --- rehearsing a plan


def test_rehearsing_writes_a_row_a_kind_and_goes_on_from_there(plan, tmp_path, monkeypatch):
    """What the table has already is not measured again; cells that are alike are rehearsed once."""
    asked = []

    def measured(plan, cell, kind, seconds):
        asked.append(kind)
        return dataclasses.replace(ROW, kind=kind)

    monkeypatch.setattr(rehearsals, "measured", measured)
    cells, out = list(plan.cells.values()), tmp_path / "costs.csv"
    rehearsals.rehearse(plan, cells[:1], out, 1.0)
    rehearsals.rehearse(plan, cells, out, 1.0)
    assert len(asked) == len(set(asked)) < len(cells)
    assert {row.kind for row in costs.read(out)} == set(asked)
    assert Table(costs.read(out), calibration=1.0).seconds(plan, cells[-1]) is not None


def test_noise_has_the_shape_of_the_data():
    size = Sizes(train=30, test=10, classes=5, shape=(4, 4, 3), attributes=7)
    images, features = (rehearsals.noise(size, features=wanted) for wanted in (False, True))
    assert (images.train_x.shape, images.test_x.shape) == ((30, 4, 4, 3), (10, 4, 4, 3))
    assert (images.train_x.dtype, images.attributes.shape) == ("uint8", (5, 7))
    assert (features.train_x**2).sum(axis=(1, 2, 3)) == pytest.approx(1)
    assert json.dumps(images.train_y.tolist()) == json.dumps(sorted([0, 1, 2, 3, 4] * 6))
