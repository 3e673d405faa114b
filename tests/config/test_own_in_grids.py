"""Methods from outside in a plan: a row wherever they fit, a reason where not, and the paper's own as it was."""

import json
import math
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from tiny_paper import GRID, MNIST_ONLY, PAPER, ROOT, SCALE, SELECTION, TEXT, edit, of_table, plan, settings

from clpapers.budget import costs, priority
from clpapers.builds import preparation
from clpapers.config import selected_runs
from clpapers.config.paths import method_path
from clpapers.config.plan import Plan
from clpapers.graph import jobs, user_methods
from clpapers.graph.pages import targets_of

METHOD = """\
from clpapers import Learner

DECLARATION = {"options": {"strength": {"type": "number", "default": 2.0}}}


class Mine(Learner): ...
"""


def taken(text=METHOD, label="mine"):
    """The copy of a method's file, as a build begins, but for the trial."""
    file = Path(f"{label}.py")
    file.write_text(text)
    copy = method_path("tiny", label, user_methods.check(file))
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_text(text)
    return str(copy)


def declared(entry):
    return METHOD.replace('{"options"', f'{{{entry}, "options"')


def cells_of(made):
    return {dataset: cell for (dataset, learner), cell in of_table(made).items() if learner == "mine"}


def costs_of(made):
    """Costs of the plan's cells, a second a step."""
    kinds = {costs.kind(c.spec, made.datasets[c.spec["dataset"]]["shape"], 1) for c in made.cells.values()}
    return [costs.Row(kind, 1, 0.0, 1.0, 0.0, 0.0, "", 1.5, "here") for kind in kinds]


def test_it_is_a_row_with_its_defaults_and_the_papers_cells_stay(folder):
    made, without = plan(methods=[taken()]), plan()
    target = made.targets["tiny/table1"]
    mine = cells_of(made)["mnist"]
    assert mine.spec["learner"] == {"name": "mine", "file": made.methods[0], "strength": 2.0}
    assert mine.folder.name.startswith("mine-")
    assert target.spec["grid"]["learner"] == ["er", "ace", "mine"]
    assert target.spec["names"]["mine"] == "mine §"
    assert target.of_paper.cells == without.targets["tiny/table1"].cells
    assert target.of_paper.spec["grid"] == without.targets["tiny/table1"].spec["grid"]
    assert made.targets["tiny/figure1"].spec == without.targets["tiny/figure1"].spec


def test_another_text_is_another_cell_of_other_code_and_a_comment_is_not(folder):
    made = plan(methods=[taken()])
    first = cells_of(made)["mnist"]
    assert cells_of(plan(methods=[taken(METHOD + "# so\n")]))["mnist"].hash == first.hash
    other = plan(methods=[taken(METHOD.replace("...", "x = 1"))])
    edited = cells_of(other)["mnist"]
    assert edited.hash != first.hash
    job, changed = (
        jobs.job_of(made, first.folder / "seeds0-1.json"),
        jobs.job_of(other, edited.folder / "seeds0-1.json"),
    )
    assert Path(made.methods[0]) in job.inputs
    assert changed.code != job.code
    assert jobs.job_of(made, Path(made.methods[0])).stage == "methods"
    edited.spec["learner"]["file"] = first.spec["learner"]["file"]
    assert edited.spec == first.spec


@pytest.mark.parametrize(
    ("needs", "rows", "why", "where"),
    [
        ({"net.name": ["mlp"]}, ["mnist"], "net.name mlp, not cnn", [{"dataset": "cifar10"}]),
        ({"oracle.name": ["chunks", "split"]}, [], "oracle.name chunks or split, not none", None),
    ],
)
def test_where_it_does_not_fit_the_target_says_why_and_where_it_fits_nowhere_it_is_no_level(
    folder, needs, rows, why, where
):
    made = plan(methods=[taken(declared(f'"needs": {needs!r}'))])
    spec = made.targets["tiny/table1"].spec
    assert list(cells_of(made)) == rows
    assert ("mine" in spec["grid"]["learner"]) == bool(rows)
    ((told, places),) = spec["own"]["mine"]["misfits"].items()
    assert told == f"learner mine needs {why}"
    assert where in (None, places)


def test_a_target_of_one_learner_or_an_extra_one_stays_as_it_is(folder):
    for old, new in ((GRID, "learner: [er]}"), ('    section: "1"\n', '    section: "1"\n    extra: true\n')):
        Path(PAPER).write_text(TEXT[PAPER])
        edit(PAPER, old, new)
        assert "own" not in plan(methods=[taken()]).targets["tiny/table1"].spec


def test_with_a_grid_it_takes_what_the_papers_search_selects(folder):
    edit(PAPER, "targets:\n", SELECTION, "grid: {dataset: [mnist, cifar10], " + GRID, MNIST_ONLY)
    edit(PAPER, "use: cross_validated", "use: published")
    made = plan(methods=[taken(declared('"grid": {"learner.strength": [1.0, 3.0], "budget.learning_rate": [0.1]}'))])
    cell, search = cells_of(made)["mnist"], made.selections["tiny/mnist-mine"]
    assert (cell.spec["learner"]["strength"], cell.spec["budget"]["learning_rate"]) == ("selected", "selected")
    assert [values for values, _ in search.points] == [
        {"learner.strength": strength, "budget.learning_rate": 0.1} for strength in (1.0, 3.0)
    ]
    assert list(search.seeds) == [100]
    assert search.published == {"learner.strength": None, "budget.learning_rate": None}
    first = next(priority.questions_of_own(made, targets_of(made, ["tiny"])))
    assert {need.cell for need in first.needs} == {cell.hash, *(point.hash for _, point in search.points)}
    runs = preparation.named_runs(made, [f"{cell.folder}/seed2.json"], {})  # one alone takes the search, too
    table = costs.Table(costs_of(made), calibration=1.5)
    found = priority.choose(made, priority.Request(runs=runs), {}, present={}, absent={}, table=table)
    trained = {key: found.choice.seeds(key) for key in found.choice.runs}
    assert trained == {cell.hash: {2}, **{point.hash: {100} for _, point in search.points}}
    assert {Path(file).parent for file in found.pending} == {cell.folder, *(point.folder for _, point in search.points)}


def test_a_choice_carries_it_to_jobs(folder):
    made = plan(methods=[taken()])
    file = selected_runs.SelectedRuns({}, {}, {}, made.methods).write("tiny")
    told = Plan("tiny", ["tiny"], choice=selected_runs.read(file))
    assert told.methods == made.methods
    assert told.cells.keys() == made.cells.keys() == plan().using(selected_runs.read(file)).cells.keys()
    assert "methods" not in selected_runs.SelectedRuns().text


def test_a_budget_trains_it_alone_and_its_first_seeds_first(folder):
    made = plan(methods=[taken()])
    mine = {cell.hash for cell in cells_of(made).values()}

    def chosen(hours):
        table, request = (
            costs.Table(costs_of(made), calibration=1.5),
            priority.Request(targets_of(made, ["tiny"]), hours),
        )
        return priority.choose(made, request, {}, present={}, absent={}, table=table)

    found = chosen(24.0)
    assert found.choice.methods == made.methods
    assert found.choice.runs.keys() == mine
    assert all(found.choice.seeds(cell) == {0, 1, 2, 3} for cell in mine)
    order = [run for step in found.steps for run in step.runs]
    assert all([seed for key, seed in order if key == cell] == [0, 1, 2, 3] for cell in mine)
    assert 0 < len(chosen(found.hours / 2).steps) < len(found.steps)
    assert chosen(math.inf).choice.runs.keys() == made.cells.keys()


def test_it_is_measured_once_where_hours_are_counted_and_its_data_can_be_had(folder, monkeypatch):
    edit(SCALE, "sources: stand_in", "sources: real")
    lacking = {"time": time.time(), "data_folder": "data", "remedy": "nobody serves it"}
    top = Path("results/tiny")
    top.mkdir(parents=True)
    (top / "absent.json").write_text(json.dumps({"cifar10": lacking}))
    shutil.copy(ROOT / costs.FILE, costs.FILE)
    said = []

    def noted(command, **_):
        said.append(command[3:])
        return subprocess.CompletedProcess(command, 0, "", "")

    def measured(made):
        preparation.prepare(made, settings(hours=1), ["all"])
        found = [each for each in said if each[:1] == ["rehearse"]]
        said.clear()
        return found

    monkeypatch.setattr(subprocess, "run", noted)
    made = plan(methods=[taken()])
    mine = cells_of(made)["mnist"]
    assert measured(made) == [["rehearse", mine.hash, "--scale", "tiny", "--methods", *made.methods]]
    assert measured(plan()) == []  # the paper's own are not
    (top / "costs.csv").write_text(costs.text(costs_of(made)))
    assert measured(made) == []
    _, budget, data = preparation.prepare(made, settings(hours=0), ["all"])
    assert preparation.announcement(budget, data)[0].startswith("0 runs are there; training 0 more; all others take")
