"""The choice of runs: within the budget, the same for the same state, never what is there, and more for more hours."""

import dataclasses
import math
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clpapers.budget import costs, priority
from clpapers.budget.priority import CLAIM, NUMBER, SHOWN, Need, Question, Request, cut, rank
from clpapers.builds import preparation
from clpapers.config import gans, selected_runs
from clpapers.config.plan import Plan
from clpapers.config.refusals import ConfigError
from clpapers.config.selected_runs import SelectedRuns
from clpapers.config.settings import all_papers
from clpapers.graph import jobs, maker
from clpapers.graph.pages import targets_of

CELLS = "abcdef"


@st.composite
def states(draw):
    """Questions on six cells of four seeds, the seeds that are there, and seconds."""
    asked = []
    for i in range(draw(st.integers(1, 12))):
        cells = draw(st.sets(st.sampled_from(CELLS), min_size=1, max_size=3))
        kind = draw(st.sampled_from([NUMBER, CLAIM, SHOWN]))
        needs = tuple(Need(cell, draw(st.integers(1, 4)), (0, 1, 2, 3)) for cell in sorted(cells))
        asked.append(
            Question(draw(st.sampled_from(["p", "q"])), str(i), kind, draw(st.sampled_from([0.02, 1.0])), needs)
        )
    have = draw(st.sets(st.tuples(st.sampled_from(CELLS), st.integers(0, 3))))
    seconds = draw(st.dictionaries(st.sampled_from(CELLS), st.floats(0.1, 4000)))
    return asked, have, seconds


def answered(asked, have):
    return {question.name for question in asked if not question.missing(have)}


def after(have, steps):
    return have | {run for step in steps for run in step.runs}


@given(states(), st.floats(0, 3), st.floats(0, 3))
@settings(max_examples=100)
def test_a_larger_budget_trains_what_a_smaller_one_does_and_decides_no_less(state, hours, more):
    asked, have, seconds = state
    less, larger = (cut(rank(asked, have, seconds), each) for each in (hours, hours + more))
    assert larger[: len(less)] == less
    assert answered(asked, after(have, less)) <= answered(asked, after(have, larger))


@given(states(), st.floats(0, 3))
@settings(max_examples=100)
def test_a_choice_is_within_its_budget_the_same_each_time_and_never_of_what_is_there(state, hours):
    asked, have, seconds = state
    steps = cut(rank(asked, have, seconds), hours)
    assert steps == cut(rank(list(asked), set(have), dict(seconds)), hours)
    assert sum(step.seconds for step in steps) <= hours * 3600 + 1e-6
    runs = [run for step in steps for run in step.runs]
    assert len(runs) == len(set(runs))
    assert have.isdisjoint(runs)
    assert seconds.keys() >= {cell for cell, _ in runs}
    for step in steps:
        assert step.decides


@given(states())
@settings(max_examples=100)
def test_in_the_end_every_question_that_can_be_answered_is(state):
    asked, have, seconds = state
    there = after(have, rank(asked, have, seconds))
    for question in asked:
        if seconds.keys() >= {cell for cell, _ in question.missing(have)}:
            assert not question.missing(there)


def test_the_cheapest_answers_come_first_and_papers_take_turns():
    need = {cell: (Need(cell, 1, (0,)),) for cell in "abcd"}
    asked = [
        Question("p", "dear", NUMBER, 1, need["a"]),
        Question("p", "cheap", NUMBER, 1, need["b"]),
        Question("q", "other paper", NUMBER, 1, need["c"]),
        Question("p", "as cheap", NUMBER, 1, need["d"]),
    ]
    steps = list(rank(asked, (), {"a": 100.0, "b": 1.0, "c": 2.0, "d": 1.0}))
    assert [step.decides[0].name for step in steps] == ["cheap", "as cheap", "other paper", "dear"]
    together = [Question("p", name, NUMBER, 1, need["a"]) for name in ("one", "two")]
    (step,) = rank(together, (), {"a": 5.0})
    assert [question.name for question in step.decides] == ["one", "two"]


def test_what_runs_share_counts_once():
    asked = [Question("p", cell, NUMBER, 1, (Need(cell, 1, (0,)),)) for cell in "ab"]
    steps = list(rank(asked, (), {"a": 1.0, "b": 1.0}, lambda run: {"features": 50.0}))
    assert [step.seconds for step in steps] == [51.0, 1.0]


@pytest.fixture(autouse=True)
def nothing_finished(monkeypatch):
    """Whatever was trained or imported where the tests run."""
    monkeypatch.setattr(costs, "finished", lambda plan, cells: {})


@pytest.fixture(scope="module")
def paper_scale():
    plan = Plan("paper", all_papers())
    return plan, jobs.claims_of(plan), costs.Table(costs.read(), calibration=0.016)


def test_the_plan_of_the_papers_is_asked_what_they_print_and_claim(paper_scale):
    plan, claims, _ = paper_scale
    asked = priority.questions(plan, targets_of(plan, plan.titles), claims)
    assert sum(question.kind == CLAIM for question in asked) == sum(
        claim.decidable for of_paper in claims.values() for claim in of_paper
    )
    assert sum(question.kind == NUMBER for question in asked) > 500
    table = plan.targets["stf/table1"]
    of_table = priority.questions(plan, [table], claims)
    assert {question.name for question in of_table} < {question.name for question in asked if question.paper == "stf"}
    alone = [claim for claim in claims["stf"] if claim.targets == ["stf/table1"] and claim.decidable]
    assert [q.name for q in of_table if q.kind == CLAIM] == [f"stf: {claim.name}" for claim in alone] != []
    (line,) = [q for q in asked if q.name == "stf/table1: ER CIFAR-10 final_accuracy" and q.kind == NUMBER]
    (er,) = [cell for factors, cell in table.cells if (factors["dataset"], factors["learner"]) == ("cifar10", "er")]
    assert line.needs == (Need(er.hash, 1, tuple(range(20))),)


def test_a_number_without_a_spread_asks_for_two_runs_and_a_time_for_none(paper_scale, monkeypatch):
    monkeypatch.setattr(priority, "_compared", lambda target: {})  # as before any build
    plan, _, _ = paper_scale
    asked = {
        q.name: {n.count for n in q.needs}
        for q in priority.questions(plan, targets_of(plan, ["agem"]), {})
        if q.kind == NUMBER
    }
    assert asked["agem/figure6: GEM, task 2 Permuted MNIST violations_by_task"] == {2}
    assert asked["agem/table2: GEM Permuted MNIST memory_accuracy"] == {2}
    assert asked["agem/table4: GEM Permuted MNIST average_accuracy"] == {1}
    assert asked["agem/table4: PI Permuted MNIST average_accuracy"] == {1}  # ∞
    assert not [name for name in asked if "training_seconds" in name]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("agem/figure7: VAN-S, epochs 3 Permuted MNIST forgetting", {("single", 3)}),
        ("agem/figure6: GEM, task 2 Permuted MNIST violations_by_task", {("gem", 1)}),
    ],
)
def test_a_number_along_a_factor_or_a_curve_asks_for_its_own_cell_alone(paper_scale, name, expected, monkeypatch):
    monkeypatch.setattr(priority, "_compared", lambda target: {})  # as before any build
    plan, _, _ = paper_scale
    (line,) = [
        q for q in priority.questions(plan, targets_of(plan, ["agem"]), {}) if q.name == name and q.kind == NUMBER
    ]
    cells = [plan.cells[need.cell].spec for need in line.needs]
    assert {(spec["learner"]["name"], spec["order"].get("epochs", 1)) for spec in cells} == expected
    assert {need.count for need in line.needs} == {2}


def test_half_an_hour_from_nothing_decides_much_and_a_file_of_one_cell_is_of_neighbours(paper_scale):
    plan, claims, table = paper_scale
    absent = {"cub200": "fetch it"}
    found = priority.choose(
        plan, Request(targets_of(plan, plan.titles), 0.5), claims, present={}, absent=absent, table=table
    )
    assert 0.3 < found.hours <= 0.5
    decided = [q for step in found.steps for q in step.decides if q.kind in (NUMBER, CLAIM)]
    assert len(decided) > 150
    assert {step.paper for step in found.steps} >= {
        "rules",
        "agem",
        "desiderata",
        "stf",
    }  # one of streaming waits for features
    cells = {cell for step in found.steps for cell, _ in step.runs}
    assert not any("cub200" in plan.data_of(plan.cells[cell]) for cell in cells)
    for key, files in found.choice.runs.items():
        assert sorted(seed for seeds in files.values() for seed in seeds) == sorted(found.choice.seeds(key))
    chosen = Plan("paper", all_papers(), choice=found.choice)
    left = chosen.unrun(chosen.targets["stf/table1"])
    assert (left.runs, left.wanted) == (left.wanted - len(chosen.present(chosen.targets["stf/table1"]).cells), 480)


def test_all_hours_choose_all_that_can_be_had(paper_scale):
    plan, claims, table = paper_scale
    found = priority.choose(
        plan, Request(targets_of(plan, ["stf"]), math.inf), claims, present={}, absent={}, table=table
    )
    assert not found.choice.unrun
    cells = priority.relevant(plan, targets_of(plan, ["stf"]))
    assert len(cells) > 20
    assert {key: found.choice.seeds(key) for key in cells} == {
        key: set(plan.seeds_of(cell)) for key, cell in cells.items()
    }
    assert found.choice.runs.keys() == cells.keys()


def test_runs_of_papers_that_are_not_asked_for_may_be_there(paper_scale):
    """As where a single target is built beside all published results."""
    plan, claims, table = paper_scale
    other = plan.targets["rules/table1"].cells[0][1]
    there = priority.files_to_make(plan, {(other.hash, 0), (other.hash, 1)}, {})
    target = plan.targets["streaming/table1"]
    found = priority.choose(plan, Request(named=[target]), claims, present=there, absent={}, table=table)
    assert other.hash in found.choice.runs
    assert other.hash not in priority.relevant(plan, [target])
    runs = sum(len(found.choice.seeds(key)) for key in {cell.hash for _, cell in target.cells})
    (line,) = preparation.announcement(found, preparation.Data(plan, *[Path("data")] * 2, (), fetching=False))
    assert f"2 runs are there; training {runs:,} more" in line


def test_a_target_by_name_goes_without_the_runs_whose_data_cannot_be_had(paper_scale):
    plan, claims, table = paper_scale
    target = plan.targets["stf/table1"]
    found = priority.choose(plan, Request(named=[target]), claims, present={}, absent={"emnist": "ask"}, table=table)
    chosen = {
        factors["dataset"] for factors, cell in target.cells if found.choice.seeds(cell.hash) == set(target.seeds)
    }
    assert chosen == {"cifar10", "cifar100", "tiny_imagenet"}
    assert not any("/emnist/" in file for file in found.pending)
    left = plan.using(found.choice).unrun(target)
    assert (left.wanted - left.runs, left.lacking, left.hours, set(left.absent)) == (360, 120, 0, {"emnist"})


@pytest.mark.parametrize("absent", [{}, {"emnist": "ask", "cifar100": "ask"}])
@pytest.mark.parametrize("name", ["stf/table1", "agem/table2", "streaming/table1_cifar100", "desiderata/figure9"])
def test_what_a_target_lacks_is_priced_as_its_own_command_predicts(paper_scale, name, absent):
    plan, claims, table = paper_scale
    target, had = plan.targets[name], plan.targets[name].cells[-1][1]
    given = {"present": {had.hash: {had.folder / "seed0.json": [0]}}, "absent": absent, "table": table}
    left = plan.using(priority.choose(plan, Request(targets_of(plan, plan.titles)), claims, **given).choice).unrun(
        target
    )
    command = priority.choose(plan, Request(named=[target]), claims, **given)
    assert left.hours == pytest.approx(sum(command.pending.values()) / 3600, abs=1e-4)
    trained = sum(len(seeds) for files in command.choice.runs.values() for seeds in files.values()) - 1
    assert left.runs - left.lacking == trained


def test_a_run_by_name_whose_data_cannot_be_had_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(preparation.Data, "_recent_failures", lambda self: {})
    monkeypatch.setattr(preparation.Data, "_fetch", lambda self, name: "nowhere to be had")
    monkeypatch.setattr(preparation.Data, "path", lambda self, name: tmp_path / name)
    monkeypatch.setattr(preparation, "write_text", lambda path, text: None)
    monkeypatch.setattr(priority, "finished", lambda plan: {})
    plan = Plan("paper", all_papers())
    (cell,) = (c for f, c in plan.targets["stf/table1"].cells if (f["dataset"], f["learner"]) == ("emnist", "er"))
    settings = {"papers": ["stf"], "data_folder": tmp_path, "downloads": tmp_path, "published": False}
    with pytest.raises(ConfigError) as refusal:
        preparation.prepare(plan, settings, [str(cell.folder / "seed0.json")])
    assert str(refusal.value).startswith("emnist: not at hand, ")
    assert str(refusal.value).endswith(": nowhere to be had")


def test_of_each_seed_one_file_is_used_the_first_source_first(paper_scale):
    plan, _, _ = paper_scale
    key = plan.targets["stf/table1"].cells[0][1].hash
    mine, theirs = {key: {"seed0": [0], "seeds1-2": [1, 2]}}, {key: {"seeds0-3": [0, 1, 2, 3]}}
    assert priority.files_of_seeds(plan, mine, theirs) == {key: {"seed0": [0], "seeds1-2": [1, 2], "seeds0-3": [3]}}


def test_a_choice_is_read_as_it_was_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runs = {"c": {Path("results/paper/runs/seed0.json"): [0]}}
    made = SelectedRuns(runs, {"d": 1.5, "e": None}, {"cub200": "fetch it"}, prices={"stf/table1": 2.5})
    path = made.write("paper")
    assert selected_runs.read(path) == made
    assert dataclasses.replace(made, absent={}).write("paper") != path
    path.write_text(path.read_text().replace("1.5", "2.5"))
    with pytest.raises(ConfigError, match="edited"):
        selected_runs.read(path)


def test_what_a_target_by_name_takes_counts_shared_gans_and_features_once(paper_scale):
    plan, claims, table = paper_scale
    names = ("desiderata/figure9", "streaming/table1_cifar100")
    named = [plan.targets[name] for name in names]
    found = priority.choose(plan, Request(named=named), claims, present={}, absent={}, table=table)
    cells = {cell.hash: cell for target in named for _, cell in target.cells}
    pairs = ((gans.of_cell(plan, cell), seed) for cell in cells.values() for seed in cell_seeds(named, cell))
    generators = {str(shared.file(seed)) for shared, seed in pairs if shared}
    runs = {str(path) for files in found.choice.runs.values() for path in files}
    assert generators
    assert found.pending.keys() == runs | generators | {"results/paper/datasets/cifar100_resnet50.npz"}
    assert found.pending["results/paper/datasets/cifar100_resnet50.npz"] == costs.features(plan, "cifar100_resnet50")
    users = [cell for cell in cells.values() if gans.of_cell(plan, cell)]
    assert len(users) > 3
    assert len(generators) == 30  # of each seed after 10, 30 and 50 epochs


def cell_seeds(named, cell):
    return next(target.seeds for target in named for _, each in target.cells if each == cell)


def test_images_behind_streams_of_features_are_asked_for_and_left_out(tmp_path, monkeypatch):
    """Or a build of no hours would ask for them in a job, which fails."""
    asked = []
    monkeypatch.setattr(preparation, "import_published", lambda scale: [])
    monkeypatch.setattr(preparation.Data, "_fetch", lambda self, name: asked.append(name) or "nowhere to be had")
    monkeypatch.setattr(preparation.Data, "path", lambda self, name: tmp_path / name)
    monkeypatch.setattr(preparation, "write_text", lambda path, text: None)
    plan = Plan("paper", all_papers())
    settings = {"papers": ["streaming"], "hours": 0, "data_folder": tmp_path, "downloads": tmp_path, "published": False}
    _, found, data = preparation.prepare(plan, settings, ["all"])
    assert {"icubworld", "resnet50_imagenet"} <= set(asked)
    assert "icubworld" in data.absent
    chosen = plan.using(found.choice)
    assert not chosen.present(chosen.targets["streaming/figure1"]).streams


def test_what_could_not_be_had_is_asked_for_again_where_data_are_kept_elsewhere(paper_scale, tmp_path, monkeypatch):
    """As its remedy names the folder of its day; and weights that were put there by hand are tried without waiting."""
    plan, *_ = paper_scale
    names = ("emnist", "resnet50_imagenet")
    monkeypatch.setattr(preparation.Data, "_fetch", lambda self, name: f"put it into {self.own_folder(name)}/")
    monkeypatch.setattr(preparation.Data, "path", lambda self, name: tmp_path / name)
    monkeypatch.chdir(tmp_path)

    def looked(folder):
        data = preparation.Data(plan, Path(folder), Path("downloads"))
        data.note_absent(names)
        return data

    assert looked("data").get(names)
    assert looked("data").absent == {names[0]: "put it into data/emnist/", names[1]: "put it into data/weights/"}
    assert looked("elsewhere").absent == {}
    Path("data/weights").mkdir(parents=True)
    assert list(looked("data").absent) == ["emnist"]


@pytest.mark.parametrize(
    ("words", "tells"), [(["--report", "a.html"], True), (["--report-after-run"], False), (["--cores=1"], False)]
)
def test_snakemake_s_report_describes_what_is_there_and_fetches_nothing(words, tells):
    assert preparation.requested_targets(["all", *words]) == (["all"], tells)


@pytest.mark.parametrize("words", [["report"], ["audit"], ["report", "all"], []])
def test_without_hours_no_runs_are_added(words, tmp_path, monkeypatch):
    monkeypatch.setattr(preparation.Data, "_fetch", lambda self, name: "")
    monkeypatch.setattr(priority, "finished", lambda plan: {})
    settings = {"papers": ["rules"], "data_folder": tmp_path, "downloads": tmp_path, "published": False}
    plan = Plan("paper", all_papers())
    assert not preparation.prepare(plan, settings, words)[1].pending
    assert bool(preparation.prepare(plan, settings | {"hours": 0.1}, words)[1].pending) is (words != ["audit"])


@pytest.mark.parametrize(("hours", "least", "most"), [(None, 170, 170), ("all", 170, 170), (0.02, 1, 169), (0, 0, 0)])
def test_a_target_by_name_trains_all_that_it_needs_unless_hours_are_asked_for(
    hours, least, most, tmp_path, monkeypatch
):
    monkeypatch.setattr(preparation.Data, "_fetch", lambda self, name: "")
    monkeypatch.setattr(preparation, "_measure", lambda plan, cells, absent: None)
    monkeypatch.setattr(priority, "finished", lambda plan: {})
    plan = Plan("paper", all_papers())
    target = plan.targets["rules/table1"]
    settings = {"papers": ["stf"], "hours": hours, "published": False, "data_folder": tmp_path, "downloads": tmp_path}
    _, found, _ = preparation.prepare(plan, settings, [str(path) for path in target.outputs])
    assert found.choice.runs.keys() <= {cell.hash for _, cell in target.cells}
    assert least <= sum(len(found.choice.seeds(key)) for key in found.choice.runs) <= most
    assert found.hours <= 0.02
    assert {question.kind for question in found.questions} == ({NUMBER, SHOWN, CLAIM} if most < 170 else set())


@pytest.mark.parametrize(
    ("fetch", "line"),
    [
        (["cub20"], "'cub20' is not one of "),
        (["cub200", "cub20"], "'cub20' is not one of "),
        (["streaming"], "'streaming' is not one of "),  # a paper
    ],
)
def test_what_is_to_be_fetched_and_is_no_data_set_is_refused_before_anything_is_imported(fetch, line, monkeypatch):
    monkeypatch.setattr(preparation, "import_published", lambda scale: pytest.fail("imported"))
    plan = Plan("paper", ["streaming"])
    with pytest.raises(ConfigError) as refusal:
        preparation.prepare(plan, {"fetch": fetch, "papers": ["streaming"]}, ["all", "-n"])
    assert str(refusal.value).startswith(f"config/config.yaml or --config: fetch: {line}")
    assert str(refusal.value).isprintable()


def test_runs_without_an_ideal_s_to_be_divided_by_are_not_shown_yet(paper_scale):
    """Of a build that was stopped between both: such a run is one left out, and no metric asks for it."""
    plan, *_ = paper_scale
    target = plan.targets["streaming/table1_cifar100"]
    of = {(factors["learner"], factors["order"]["name"]): cell for factors, cell in target.cells}
    chosen = {("nn1", "random"): [0, 1], ("offline", "random"): [1, 2], ("nn1", "split"): [0]}
    runs = {of[key].hash: {of[key].folder / "seed.json": seeds} for key, seeds in chosen.items()}
    using = plan.using(SelectedRuns(runs, dict.fromkeys((each.hash for each in plan.cells.values()), 60.0), {}))
    shown = [(factors["learner"], factors["order"]["name"]) for factors, _ in using.present(target).cells]
    assert shown == [key for key in of if key in (("nn1", "random"), ("offline", "random"))]
    left = using.unrun(target)
    assert left.wanted - left.runs == 3
    assert {"nn1", "offline"} <= {factors["learner"] for factors in left.cells}


def test_hours_left_over_train_what_no_question_waits_for(paper_scale):
    """The first seed of each cell before any second; at last every run. More hours begin with the same steps."""
    plan, claims, table = paper_scale
    target = plan.targets["stf/figure3"]  # without printed numbers
    steps, fewer = (
        priority.choose(plan, Request([target], hours), claims, present={}, absent={}, table=table).steps
        for hours in (1e5, 60)
    )
    assert steps[: len(fewer)] == fewer
    runs = [run for step in steps for run in step.runs]
    assert sorted(runs) == sorted((cell.hash, seed) for _, cell in target.cells for seed in target.seeds)
    others = [step.runs[0] for step in steps if step.decides[0].kind == priority.OTHER]
    assert 0 < sum(step.decides[0].kind == priority.OTHER for step in fewer) < len(others)
    turns = [[cell for cell, _ in others[:i]].count(others[i][0]) for i in range(len(others))]
    assert turns == sorted(turns)


def test_hours_below_the_cheapest_run_are_told_with_those_that_train_it(paper_scale):
    plan, claims, table = paper_scale
    data = preparation.Data(plan, *[Path("data")] * 2, (), fetching=False)

    def chosen(hours, papers):
        request = Request(targets_of(plan, papers), hours)
        return priority.choose(plan, request, claims, present={}, absent={}, table=table)

    papers = ["stf", "agem"]
    none = chosen(1e-6, papers)
    assert not none.steps
    told = [line for line in preparation.announcement(none, data) if "trains it" in line]
    given = [re.search(r"papers=(\w+) hours=([\d.]+) trains it", line) for line in told]
    assert sorted(match[1] for match in given) == sorted(papers)
    for match, step in zip(given, none.too_dear):
        hours = float(match[2])
        assert chosen(hours, [match[1]]).steps[0] == step
        assert not chosen(hours - 0.01, [match[1]]).steps
    (alone,) = [line for line in preparation.announcement(chosen(1e-6, ["stf"]), data) if "trains it" in line]
    assert "papers=" not in alone
    assert not chosen(2.0, papers).too_dear


def test_a_training_that_goes_on_costs_what_remains_and_is_named(paper_scale):
    plan, claims, table = paper_scale
    target = plan.targets["stf/table1"]
    (er,) = [c for f, c in target.cells if (f["dataset"], f["learner"]) == ("cifar10", "er")]
    file, other = er.folder / "seed0.json", er.folder / "seed1.json"
    given = {"present": {}, "absent": {}, "table": table, "begun": {file: 0.75}}
    found = priority.choose(plan, Request([target], 1e5), claims, **given)
    seconds = table.seconds(plan, er)
    assert (found.pending[str(file)], found.pending[str(other)]) == pytest.approx((seconds / 4, seconds))
    (step,) = [step for step in found.steps if step.runs == ((er.hash, 0),)]
    assert step.seconds == pytest.approx(seconds / 4)
    lines = preparation.announcement(found, preparation.Data(plan, *[Path("data")] * 2, (), fetching=False))
    assert [line for line in lines if str(file) in line and "75 %" in line]
    assert not [line for line in lines if str(other) in line]


def test_what_a_target_still_costs_is_the_same_whatever_else_is_asked_for(paper_scale, monkeypatch):
    """Finished runs of other targets correct the prediction, too, and so they do in every answer."""
    plan, claims, _ = paper_scale
    target = plan.targets["stf/table1"]
    others = plan.targets["stf/figure3"].cells[-1][1], plan.targets["stf/sensitivity"].cells[0][1]
    monkeypatch.setattr(costs, "finished", lambda plan, cells: {c.hash: 9000.0 for c in cells if c in others})
    given = {"present": {}, "absent": {}, "table": costs.Table(costs.read(), calibration=0.016)}
    requests = [Request([target]), Request(targets_of(plan, plan.titles)), Request(named=[target])]
    *left, whole = (priority.choose(plan, each, claims, **given) for each in requests)
    hours = sum(whole.pending.values()) / 3600
    assert [each.choice.prices["stf/table1"] for each in left] == pytest.approx([hours, hours], abs=1e-4)


def test_runs_asked_for_by_name_are_told_with_what_they_take(paper_scale):
    """File by file, as jobs make them: two neighbours are two files, and a seed that was imported is trained again."""
    plan, claims, table = paper_scale
    (er,) = [c for f, c in plan.targets["stf/table1"].cells if (f["dataset"], f["learner"]) == ("cifar10", "er")]
    names = ("seed0.json", "seed1.json", "seeds2-3.json", "seed4.json", "seed2.record.json")
    files = [str(er.folder / name) for name in names]
    words = ["all", *files, "results/smoke/" + files[0], "results/paper/runs/x/y/er-0/seed1.json"]
    asked = preparation.named_runs(plan, words, {er.hash: [er.folder / "seed4.json"]})
    assert asked == {er.hash: dict(zip(map(Path, files), (range(1), range(1, 2), range(2, 4))))}
    imported = Path("results/paper/imported/er.json")
    there = {er.hash: {imported: [0, 2]}}
    found = priority.choose(plan, Request(runs=asked), claims, present=there, absent={}, table=table)
    seconds = table.seconds(plan, er)
    assert found.pending == {file: pytest.approx(n * seconds) for file, n in zip(files, (1, 1, 2))}
    assert found.choice.runs[er.hash] == {imported: [0, 2], Path(files[1]): [1], Path(files[2]): [3]}
    (line,) = preparation.announcement(found, preparation.Data(plan, *[Path("data")] * 2, (), fetching=False))
    assert line == f"2 runs are there; training 4 more, predicted {costs.duration(4 * seconds)} of one core"


@pytest.mark.parametrize(
    ("seconds", "hours", "terminal", "answer", "trains"),
    [
        (preparation.DEAR + 1, None, True, "yes\n", True),
        (preparation.DEAR + 1, None, True, "\n", False),
        (preparation.DEAR + 1, None, True, "", False),  # Ctrl-D
        (preparation.DEAR + 1, "all", True, None, True),
        (preparation.DEAR + 1, None, False, None, True),
        (preparation.DEAR, None, True, None, True),
    ],
)
def test_a_person_is_asked_before_dear_runs_without_hours(
    seconds, hours, terminal, answer, trains, monkeypatch, capsys
):
    stdin = SimpleNamespace(isatty=lambda: terminal, readline=lambda: answer)
    monkeypatch.setattr("sys.stdin", stdin)
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal, raising=False)
    assert preparation.confirmed(SimpleNamespace(processor="core", pending={"run": seconds}), hours) is trains
    said = capsys.readouterr().err
    assert ("--config hours=" in said and "60 min" in said) is (answer is not None)


def test_what_was_asked_for_by_name_is_shown_at_the_end():
    stem = "results/paper/targets/stf/table1"
    words = [f"{stem}.csv", f"{stem}.reported.csv", "results/paper/runs/a/b/er-0123456789/seed0.json"]
    assert not preparation.builds_papers(words)
    *files, hint = preparation.conclusion(words).splitlines()
    assert files == [f"built: {stem}.{{csv,reported.csv}}", f"built: {words[2]}"]
    assert hint.endswith(": clpapers summary --scale paper")
    assert preparation.concerns("paper", words)
    assert not preparation.concerns("smoke", words)
    assert preparation.concerns("smoke", [*words, "all"])
    assert preparation.builds_papers([*words, "all"])
    assert preparation.builds_papers([])


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("clpapers: mnist: fetching\nclpapers: mnist: no source. Tried:\n  folder: x\n  y: z\n", "mnist: no source"),
        ("clpapers: mnist: fetching\nValueError: no\n", "ValueError: no"),
        ("clpapers: mnist: damaged\n", "mnist: damaged"),
        ("", "exit -9"),
    ],
)
def test_why_a_command_failed_is_one_line(said, why):
    assert maker.reason(subprocess.CompletedProcess([], -9, "", said)) == why


def test_a_number_without_a_run_is_decided_by_its_first_and_an_open_one_by_a_forecast(paper_scale, monkeypatch):
    plan, _, _ = paper_scale
    target = plan.targets["stf/table1"]
    key = ("ER", "CIFAR-10", "final_accuracy")
    open_number = {
        **{"ours": 38.0, "sd": 2.0, "n_seeds": 3, "graded_against": 38.4, "against_se": 1.0, "against_n": 20},
        **{"distance": 9.0, "margin_same": 2.0, "margin_near": 5.0, "open": 1.0},
    }
    for compared, decided_at in (({}, 1), ({key: open_number}, 5)):
        monkeypatch.setattr(priority, "_compared", lambda _, compared=compared: compared)
        name = "stf/table1: ER CIFAR-10 final_accuracy"
        found = [q for q in priority.questions(plan, [target], {}) if q.name == name and q.kind == NUMBER]
        assert max(need.count for q in found for need in q.needs) == decided_at
        assert found[-1].worth >= 0.5


def test_a_card_has_hours_of_its_own(monkeypatch):
    """Budgets and steps count a card's seconds; what is left out still counts a core's."""
    monkeypatch.setattr(priority.card_costs, "seconds", lambda plan, cell, core: core / 100)
    plan = Plan("paper", ["rules"])
    targets = [target for target in plan.targets.values() if target.cells][:2]

    def chosen(cuda, hours):
        plan.cuda = cuda
        return priority.choose(plan, Request(targets, hours), {}, present={}, absent={})

    core, card = chosen(False, 1e6), chosen(True, 1e6)
    assert (core.processor, card.processor) == ("core", "card")
    assert card.hours == pytest.approx(core.hours / 100)
    assert sum(card.pending.values()) == pytest.approx(sum(core.pending.values()) / 100)
    for share in (0.1, 0.5):
        same = (chosen(cuda, share * budget.hours).choice for cuda, budget in ((False, core), (True, card)))
        one, other = ({key: each.seeds(key) for key in each.runs} for each in same)
        assert one == other


def test_hours_for_a_method_train_the_ideal_that_its_numbers_are_divided_by(tmp_path):
    """Of the same seed and order, and only where it is not there yet."""
    (tmp_path / "mine.py").write_text("from clpapers import Method\n\n\nclass Mine(Method): ...\n")
    plan = Plan("smoke", ["streaming"], methods=[str(tmp_path / "mine.py")])
    target = plan.targets["streaming/table1"]
    of = {(factors["learner"], factors["order"]["name"]): cell for factors, cell in target.cells}
    offline, seconds = of["offline", "random"], dict.fromkeys(plan.cells, 1.0)
    steps = rank(list(priority.questions_of_own(plan, [target])), {(offline.hash, 1)}, seconds)
    runs = {run for step in steps for run in step.runs}
    orders = ("random", "split", "instances")
    expected = {(of[label, order].hash, seed) for label in ("mine", "offline") for order in orders for seed in (0, 1)}
    assert runs == expected - {(offline.hash, 1)}
