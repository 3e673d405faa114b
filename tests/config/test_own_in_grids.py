"""Methods from outside in a plan: a row wherever they fit, a reason where not, and the paper's own as it was."""

import math
from pathlib import Path
from types import SimpleNamespace

from tiny_paper import GRID, MNIST_ONLY, PAPER, SELECTION, edit, plan

from clpapers.budget import costs, priority
from clpapers.budget.costs import Table
from clpapers.builds import preparation
from clpapers.config import selected_runs
from clpapers.config.paths import method_path
from clpapers.config.plan import Plan
from clpapers.graph import jobs, user_methods
from clpapers.graph.pages import targets_of

TEXT = """\
from clpapers import Learner

DECLARATION = {"options": {"strength": {"type": "number", "default": 2.0}}}


class Mine(Learner): ...
"""


def taken(text=TEXT, label="mine"):
    """The copy of a method's file, as a build begins, but for the trial."""
    file = Path(f"{label}.py")
    file.write_text(text)
    copy = method_path("tiny", label, user_methods.check(file))
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_text(text)
    return str(copy)


def declared(entry):
    return TEXT.replace('{"options"', f'{{{entry}, "options"')


def cells_of(made, label="mine", target="tiny/table1"):
    return {factors["dataset"]: cell for factors, cell in made.targets[target].cells if factors["learner"] == label}


def test_it_is_a_row_with_its_defaults_and_the_papers_cells_stay(folder):
    made, without = plan(methods=[taken()]), plan()
    target = made.targets["tiny/table1"]
    assert cells_of(made)["mnist"].spec["learner"] == {"name": "mine", "file": made.methods[0], "strength": 2.0}
    assert cells_of(made)["mnist"].folder.name.startswith("mine-")
    assert target.spec["grid"]["learner"] == ["er", "ace", "mine"]
    assert target.spec["names"]["mine"] == "mine §"
    assert target.of_paper.cells == without.targets["tiny/table1"].cells
    assert target.of_paper.spec["grid"] == without.targets["tiny/table1"].spec["grid"]
    assert made.targets["tiny/figure1"].spec == without.targets["tiny/figure1"].spec


def test_another_text_is_another_cell_and_a_comment_is_not(folder):
    first = cells_of(plan(methods=[taken()]))["mnist"]
    assert cells_of(plan(methods=[taken(TEXT + "# so\n")]))["mnist"].hash == first.hash
    edited = cells_of(plan(methods=[taken(TEXT.replace("...", "x = 1"))]))["mnist"]
    assert edited.hash != first.hash
    edited.spec["learner"]["file"] = first.spec["learner"]["file"]
    assert edited.spec == first.spec


def test_where_it_does_not_fit_the_target_says_why(folder):
    made = plan(methods=[taken(declared('"needs": {"net.name": ["mlp"]}'))])
    assert list(cells_of(made)) == ["mnist"]
    misfits = made.targets["tiny/table1"].spec["own"]["mine"]["misfits"]
    assert misfits == {"learner mine needs net.name mlp, not cnn": [{"dataset": "cifar10"}]}


def test_where_it_fits_nowhere_it_is_no_level(folder):
    made = plan(methods=[taken(declared('"needs": {"oracle.name": ["chunks", "split"]}'))])
    target = made.targets["tiny/table1"]
    assert target.spec["grid"]["learner"] == ["er", "ace"]
    (why,) = target.spec["own"]["mine"]["misfits"]
    assert why == "learner mine needs oracle.name chunks or split, not none"
    assert made.cells.keys() == plan().cells.keys()


def test_a_target_of_one_learner_or_an_extra_one_stays_as_it_is(folder):
    edit(PAPER, GRID, "learner: [er]}")
    assert "own" not in plan(methods=[taken()]).targets["tiny/table1"].spec
    edit(PAPER, "learner: [er]}", GRID)
    edit(PAPER, '    section: "1"\n', '    section: "1"\n    extra: true\n')
    assert "own" not in plan(methods=[taken()]).targets["tiny/table1"].spec


def test_with_a_grid_it_takes_what_the_papers_search_selects(folder):
    edit(PAPER, "targets:\n", SELECTION)
    edit(PAPER, "learner: [er, ace]}", MNIST_ONLY.removeprefix("grid: {dataset: [mnist], "))
    edit(PAPER, "dataset: [mnist, cifar10]", "dataset: [mnist]")
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
    table = Table([row(made)], calibration=1.0)
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


def row(made):
    """Costs of a second a step, whatever the learner."""
    cell = next(iter(made.cells.values()))
    kind = costs.kind(cell.spec, made.datasets["mnist"]["shape"], 1)
    return costs.Row(kind, 1, 0.0, 1.0, 0.0, 0.0, "", 1.0, "here")


def test_a_budget_trains_it_alone_and_its_first_seeds_first(folder):
    made = plan(methods=[taken()])
    table = Table([row(made)], calibration=1.0)
    mine = {cell.hash for cell in cells_of(made).values()}

    def chosen(hours):
        request = priority.Request(targets_of(made, ["tiny"]), hours)
        return priority.choose(made, request, {}, present={}, absent={}, table=table)

    found = chosen(24.0)
    assert found.choice.methods == made.methods
    assert found.choice.runs.keys() == mine
    assert all(found.choice.seeds(cell) == {0, 1, 2, 3} for cell in mine)
    order = [run for step in found.steps for run in step.runs]
    assert all([seed for key, seed in order if key == cell] == [0, 1, 2, 3] for cell in mine)
    assert 0 < len(chosen(found.hours / 2).steps) < len(found.steps)
    assert chosen(math.inf).choice.runs.keys() == made.cells.keys()


def test_it_is_measured_once_where_hours_are_counted(folder, monkeypatch):
    made, said = plan(methods=[taken()]), []
    monkeypatch.setattr(preparation.subprocess, "run", lambda command, **_: said.append(command[3:]))
    monkeypatch.setattr(costs, "rehearsed", lambda _: Table([], calibration=1.0))
    preparation._measure(made, made.cells, {"cifar10"})  # whose cells are left out
    own = cells_of(made)
    assert said == [["rehearse", own["mnist"].hash, "--scale", "tiny", "--methods", *made.methods]]
    kinds = [costs.kind(each.spec, made.datasets[name]["shape"], 1) for name, each in cells_of(made).items()]
    assert {kind.learner for kind in kinds} == {Path(made.methods[0]).stem}
    rows = [costs.Row(kind, 1, 0.0, 1.0, 0.0, 0.0, "", 1.0, "here") for kind in kinds]
    monkeypatch.setattr(costs, "rehearsed", lambda _: Table(rows, calibration=1.0))
    preparation._measure(made, made.cells, set())
    assert len(said) == 1
    alone = plan()
    preparation._measure(alone, alone.cells, set())
    assert len(said) == 1
    monkeypatch.setattr(preparation.user_files, "files", lambda _: {"tiny": Path(PAPER)})
    preparation._measure(alone, alone.cells, set())
    assert said[1] == ["rehearse", *alone.cells, "--scale", "tiny"]


def test_what_is_there_and_was_not_asked_for_has_no_price(folder):
    choice = selected_runs.SelectedRuns({"0123456789": {Path("seed0.json"): [0]}})
    found = priority.Budget(choice, present={("0123456789", 0)})
    (line,) = preparation.announcement(found, SimpleNamespace(absent={}))
    assert line.startswith("1 runs are there; training 0 more")


def test_its_jobs_read_the_copy_and_depend_on_its_code(folder):
    made = plan(methods=[taken()])
    cell = cells_of(made)["mnist"]
    job = jobs.job_of(made, cell.folder / "seeds0-1.json")
    assert Path(made.methods[0]) in job.inputs
    other = plan(methods=[taken(TEXT.replace("...", "x = 1"))])
    assert jobs.job_of(other, cells_of(other)["mnist"].folder / "seeds0-1.json").code != job.code
    assert jobs.job_of(made, Path(made.methods[0])).stage == "methods"
