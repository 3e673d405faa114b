"""The choice of runs: within the budget, the same for the same state, never what is there, and more for more hours."""

import csv
import dataclasses
import json
import re
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clpapers.budget import card_costs, costs, priority
from clpapers.budget.priority import CLAIM, NUMBER, SHOWN, Need, Question, Request, cut, rank
from clpapers.builds import preparation
from clpapers.config import gans, selected_runs
from clpapers.config.plan import Plan
from clpapers.config.refusals import ConfigError
from clpapers.config.selected_runs import SelectedRuns
from clpapers.evidence.forecast import OPEN, TRAINED
from clpapers.graph import jobs, maker
from clpapers.graph.pages import targets_of
from clpapers.provenance import hardware

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
    assert all(step.decides for step in steps)


@given(states())
@settings(max_examples=100)
def test_in_the_end_every_question_that_can_be_answered_is(state):
    asked, have, seconds = state
    there = after(have, rank(asked, have, seconds))
    for question in asked:
        if seconds.keys() >= {cell for cell, _ in question.missing(have)}:
            assert not question.missing(there)


def asking(*questions):
    """A printed number for each paper, name and cell."""
    return [Question(paper, name, NUMBER, 1, (Need(cell, 1, (0,)),)) for paper, name, cell in questions]


def test_the_cheapest_answers_come_first_and_papers_take_turns():
    asked = asking(("p", "dear", "a"), ("p", "cheap", "b"), ("q", "other paper", "c"), ("p", "as cheap", "d"))
    steps = list(rank(asked, (), {"a": 100.0, "b": 1.0, "c": 2.0, "d": 1.0}))
    assert [step.decides[0].name for step in steps] == ["cheap", "as cheap", "other paper", "dear"]
    (step,) = rank(asking(("p", "one", "a"), ("p", "two", "a")), (), {"a": 5.0})
    assert [question.name for question in step.decides] == ["one", "two"]


def test_what_runs_share_counts_once():
    asked = asking(("p", "one", "a"), ("p", "two", "b"))
    steps = list(rank(asked, (), {"a": 1.0, "b": 1.0}, lambda run: {"features": 50.0}))
    assert [step.seconds for step in steps] == [51.0, 1.0]


# --- the papers' plan


@pytest.fixture(scope="session")
def claims(whole):
    return jobs.claims_of(whole)


@pytest.fixture(scope="session")
def table():
    return costs.Table(costs.read(), calibration=0.016)


@pytest.fixture
def choose(whole, claims, table):
    """The choice of a build of papers and targets within hours, and of targets by name at any cost."""

    def chosen(asked=(), hours=0.0, *, named=(), runs=(), **given):
        papers, targets = ([each for each in asked if ("/" in each) == below] for below in (False, True))
        wanted = [*targets_of(whole, papers), *(whole.targets[name] for name in targets)]
        request = Request(wanted, hours, [whole.targets[name] for name in named], dict(runs))
        return priority.choose(whole, request, claims, **{"present": {}, "absent": {}, "table": table} | given)

    return chosen


def cell_of(target, **factors):
    """The only cell of a target with these factors."""
    (cell,) = (cell for levels, cell in target.cells if factors.items() <= levels.items())
    return cell


def announced(plan, budget):
    return preparation.announcement(budget, preparation.Data(plan, Path("data"), Path("data"), fetching=False))


def trained(budget):
    """How many runs there are and will be."""
    return sum(len(budget.choice.seeds(key)) for key in budget.choice.runs)


def test_the_plan_of_the_papers_is_asked_what_they_print_and_claim(whole, claims):
    asked = priority.questions(whole, targets_of(whole, whole.titles), claims)
    every = [claim for of_paper in claims.values() for claim in of_paper]
    assert sum(question.kind == CLAIM for question in asked) == sum(claim.decidable for claim in every)
    assert sum(question.kind == NUMBER for question in asked) > 500
    of_table = priority.questions(whole, [whole.targets["stf/table1"]], claims)
    assert {question.name for question in of_table} < {question.name for question in asked if question.paper == "stf"}
    alone = [claim for claim in claims["stf"] if claim.targets == ["stf/table1"] and claim.decidable]
    assert [q.name for q in of_table if q.kind == CLAIM] == [f"stf: {claim.name}" for claim in alone] != []


@pytest.mark.parametrize(
    ("number", "learner", "epochs", "runs"),
    [
        ("stf/table1: ER CIFAR-10 final_accuracy", "er", 1, 1),
        ("agem/table2: GEM Permuted MNIST memory_accuracy", "gem", 1, 2),  # without a spread
        ("agem/table4: GEM Permuted MNIST average_accuracy", "gem", 1, 1),
        ("agem/table4: PI Permuted MNIST average_accuracy", "si", 1, 1),  # ∞
        # of a factor's own cell alone, and of a curve's
        ("agem/figure7: VAN-S, epochs 3 Permuted MNIST forgetting", "single", 3, 2),
        ("agem/figure6: GEM, task 2 Permuted MNIST violations_by_task", "gem", 1, 2),
    ],
)
def test_a_number_asks_for_its_own_cell_and_for_two_runs_where_it_has_no_spread(whole, number, learner, epochs, runs):
    target = whole.targets[number.partition(":")[0]]
    asked = [each for each in priority.questions(whole, [target], {}) if each.kind == NUMBER]
    assert not [each for each in asked if "training_seconds" in each.name]  # which other hardware took
    (question,) = (each for each in asked if each.name == number)
    (need,) = question.needs
    spec = whole.cells[need.cell].spec
    assert (spec["learner"]["name"], spec["order"].get("epochs", 1), need.count) == (learner, epochs, runs)
    assert need.seeds == tuple(target.seeds)


def test_a_number_without_a_run_is_decided_by_its_first_and_an_open_one_by_a_forecast(whole):
    target, key = whole.targets["stf/table1"], {"row": "ER", "column": "CIFAR-10", "metric": "final_accuracy"}
    name = "stf/table1: ER CIFAR-10 final_accuracy"

    def decided_by():
        found = [q for q in priority.questions(whole, [target], {}) if q.name == name and q.kind == NUMBER]
        assert found[-1].worth >= 0.5
        return max(need.count for question in found for need in question.needs)

    assert decided_by() == 1
    open_number = {
        **{"kind": TRAINED, "verdict": OPEN, "ours": 38.0, "sd": 2.0, "n_seeds": 3, "graded_against": 38.4},
        **{"against_se": 1.0, "against_n": 20, "distance": 9.0, "margin_same": 2.0, "margin_near": 5.0},
    }
    (file,) = (path for path in target.outputs if path.name.endswith(".reported.csv"))
    file.parent.mkdir(parents=True)
    with file.open("w") as opened:
        writer = csv.DictWriter(opened, [*key, *open_number])
        writer.writeheader()
        writer.writerow(key | open_number)
    assert decided_by() == 5


def test_half_an_hour_from_nothing_decides_much_and_a_file_of_one_cell_is_of_neighbours(whole, choose):
    found = choose(whole.titles, 0.5, absent={"cub200": "fetch it"})
    assert 0.3 < found.hours <= 0.5
    assert sum(q.kind in (NUMBER, CLAIM) for step in found.steps for q in step.decides) > 150
    papers = {step.paper for step in found.steps}  # one of streaming waits for features
    assert papers >= {"rules", "agem", "desiderata", "stf"}
    cells = {cell for step in found.steps for cell, _ in step.runs}
    assert not any("cub200" in whole.data_of(whole.cells[cell]) for cell in cells)
    for key, files in found.choice.runs.items():
        assert sorted(seed for seeds in files.values() for seed in seeds) == sorted(found.choice.seeds(key))
    chosen = whole.using(found.choice)
    left = chosen.unrun(chosen.targets["stf/table1"])
    assert (left.runs, left.wanted) == (left.wanted - len(chosen.present(chosen.targets["stf/table1"]).cells), 480)


def test_runs_of_papers_that_are_not_asked_for_may_be_there(whole, choose):
    """As where a single target is built beside all published results."""
    other, target = whole.targets["rules/table1"].cells[0][1], whole.targets["streaming/table1"]
    found = choose(named=["streaming/table1"], present={other.hash: {other.folder / "seeds0-1.json": [0, 1]}})
    assert found.choice.seeds(other.hash) == {0, 1}
    runs = sum(len(found.choice.seeds(key)) for key in {cell.hash for _, cell in target.cells})
    assert f"2 runs are there; training {runs:,} more" in announced(whole, found)[0]


def test_a_target_by_name_goes_without_the_runs_whose_data_cannot_be_had(whole, choose):
    target = whole.targets["stf/table1"]
    found = choose(named=["stf/table1"], absent={"emnist": "ask"})
    complete = [each for each, cell in target.cells if found.choice.seeds(cell.hash) == set(target.seeds)]
    assert {factors["dataset"] for factors in complete} == {"cifar10", "cifar100", "tiny_imagenet"}
    assert not any("/emnist/" in file for file in found.pending)
    left = whole.using(found.choice).unrun(target)
    assert (left.wanted - left.runs, left.lacking, left.hours, set(left.absent)) == (360, 120, 0, {"emnist"})


@pytest.mark.parametrize(
    ("name", "absent"),
    [
        *(("stf/table1", absent) for absent in ({}, {"emnist": "ask", "cifar100": "ask"})),
        *((name, {"cifar100": "ask"}) for name in ("agem/table2", "streaming/table1_cifar100")),
        ("desiderata/figure9", {}),
    ],
)
def test_what_a_target_lacks_is_priced_as_its_own_command_predicts(whole, choose, name, absent):
    target, had = whole.targets[name], whole.targets[name].cells[-1][1]
    given = {"present": {had.hash: {had.folder / "seed0.json": [0]}}, "absent": absent}
    left = whole.using(choose(whole.titles, **given).choice).unrun(target)
    command = choose(named=[name], **given)
    assert left.hours == pytest.approx(sum(command.pending.values()) / 3600, abs=1e-4)
    assert left.runs - left.lacking == trained(command) - 1


def test_what_a_target_still_costs_is_the_same_whatever_else_is_asked_for(whole, choose, ran):
    """Finished runs of other targets correct the prediction, too, and so they do in every answer."""
    alone = sum(choose(named=["stf/table1"]).pending.values()) / 3600
    for name, place in (("stf/figure3", -1), ("stf/sensitivity", 0)):
        cell = whole.targets[name].cells[place][1]
        ran(next(iter(whole.results(cell))), cpu_seconds=9000.0, seeds=[0])
    hours = sum(choose(named=["stf/table1"]).pending.values()) / 3600
    assert hours != pytest.approx(alone)
    for asked in (["stf/table1"], whole.titles):
        assert choose(asked).choice.prices["stf/table1"] == pytest.approx(hours, abs=1e-4)


def test_of_each_seed_one_file_is_used_the_first_source_first(whole):
    key = whole.targets["stf/table1"].cells[0][1].hash
    mine, theirs = {key: {"seed0": [0], "seeds1-2": [1, 2]}}, {key: {"seeds0-3": [0, 1, 2, 3]}}
    assert priority.files_of_seeds(whole, mine, theirs) == {key: {"seed0": [0], "seeds1-2": [1, 2], "seeds0-3": [3]}}


def test_a_choice_is_read_as_it_was_written():
    runs = {"c": {Path("results/paper/runs/seed0.json"): [0]}}
    made = SelectedRuns(runs, {"d": 1.5, "e": None}, {"cub200": "fetch it"}, prices={"stf/table1": 2.5})
    path = made.write("paper")
    assert selected_runs.read(path) == made
    assert dataclasses.replace(made, absent={}).write("paper") != path
    path.write_text(path.read_text().replace("1.5", "2.5"))
    with pytest.raises(ConfigError, match="edited"):
        selected_runs.read(path)


def test_what_a_target_by_name_takes_counts_shared_gans_and_features_once(whole, choose):
    names = ("desiderata/figure9", "streaming/table1_cifar100")
    found = choose(named=names)
    pairs = [(target, cell) for name in names for target in [whole.targets[name]] for _, cell in target.cells]
    shared = [(gans.of_cell(whole, cell), target.seeds) for target, cell in pairs]
    generators = {str(each.file(seed)) for each, seeds in shared if each for seed in seeds}
    assert sum(each is not None for each, _ in shared) > 3
    assert len(generators) == 30  # of each seed after 10, 30 and 50 epochs
    runs = {str(path) for files in found.choice.runs.values() for path in files}
    features = "results/paper/datasets/cifar100_resnet50.npz"
    assert found.pending.keys() == runs | generators | {features}
    assert found.pending[features] == costs.features(whole, "cifar100_resnet50")


def test_runs_without_an_ideal_s_to_be_divided_by_are_not_shown_yet(whole):
    """A build may stop between both: such a run is one left out, and no metric asks for it."""
    target = whole.targets["streaming/table1_cifar100"]
    of = {(factors["learner"], factors["order"]["name"]): cell for factors, cell in target.cells}
    chosen = {("nn1", "random"): [0, 1], ("offline", "random"): [1, 2], ("nn1", "split"): [0]}
    runs = {of[key].hash: {of[key].folder / "seed.json": seeds} for key, seeds in chosen.items()}
    using = whole.using(SelectedRuns(runs, dict.fromkeys((each.hash for each in whole.cells.values()), 60.0), {}))
    shown = [(factors["learner"], factors["order"]["name"]) for factors, _ in using.present(target).cells]
    assert shown == [key for key in of if key in (("nn1", "random"), ("offline", "random"))]
    left = using.unrun(target)
    assert left.wanted - left.runs == 3
    assert {"nn1", "offline"} <= {factors["learner"] for factors in left.cells}


def test_hours_left_over_train_what_no_question_waits_for(whole, choose):
    """The first seed of each cell before any second; at last every run. More hours begin with the same steps."""
    target = whole.targets["stf/figure3"]  # without printed numbers
    steps, fewer = (choose(["stf/figure3"], hours).steps for hours in (1e5, 60))
    assert steps[: len(fewer)] == fewer
    runs = [run for step in steps for run in step.runs]
    assert sorted(runs) == sorted((cell.hash, seed) for _, cell in target.cells for seed in target.seeds)
    others = [step.runs[0] for step in steps if step.decides[0].kind == priority.OTHER]
    assert 0 < sum(step.decides[0].kind == priority.OTHER for step in fewer) < len(others)
    turns = [[cell for cell, _ in others[:i]].count(others[i][0]) for i in range(len(others))]
    assert turns == sorted(turns)


def test_hours_below_the_cheapest_run_are_told_with_those_that_train_it(whole, choose):
    none = choose(["stf", "agem"], 1e-6)
    assert not none.steps
    told = [line for line in announced(whole, none) if "trains it" in line]
    given = [re.search(r"papers=(\w+) hours=([\d.]+) trains it", line) for line in told]
    assert sorted(match[1] for match in given) == ["agem", "stf"]
    for match, step in zip(given, none.too_dear):
        hours = float(match[2])
        assert choose([match[1]], hours).steps[0] == step
        assert not choose([match[1]], hours - 0.01).steps
    (alone,) = [line for line in announced(whole, choose(["stf"], 1e-6)) if "trains it" in line]
    assert "papers=" not in alone
    assert not choose(["stf", "agem"], 2.0).too_dear


def test_a_training_that_goes_on_costs_what_remains_and_is_named(whole, choose, table):
    er = cell_of(whole.targets["stf/table1"], dataset="cifar10", learner="er")
    file, other = er.folder / "seed0.json", er.folder / "seed1.json"
    found = choose(["stf/table1"], 1e5, begun={file: 0.75})
    seconds = table.seconds(whole, er)
    assert (found.pending[str(file)], found.pending[str(other)]) == pytest.approx((seconds / 4, seconds))
    (step,) = [step for step in found.steps if step.runs == ((er.hash, 0),)]
    assert step.seconds == pytest.approx(seconds / 4)
    lines = announced(whole, found)
    assert [line for line in lines if str(file) in line and "75 %" in line]
    assert not [line for line in lines if str(other) in line]


def test_runs_asked_for_by_name_are_told_with_what_they_take(whole, choose, table):
    """File by file, as jobs make them: two neighbours are two files, and a seed that was imported is trained again."""
    er = cell_of(whole.targets["stf/table1"], dataset="cifar10", learner="er")
    names = ("seed0.json", "seed1.json", "seeds2-3.json", "seed4.json", "seed2.record.json")
    files = [str(er.folder / name) for name in names]
    words = ["all", *files, "results/smoke/" + files[0], "results/paper/runs/x/y/er-0/seed1.json"]
    asked = preparation.named_runs(whole, words, {er.hash: [er.folder / "seed4.json"]})
    assert asked == {er.hash: dict(zip(map(Path, files), (range(1), range(1, 2), range(2, 4))))}
    imported = Path("results/paper/imported/er.json")
    found = choose(runs=asked, present={er.hash: {imported: [0, 2]}})
    seconds = table.seconds(whole, er)
    assert found.pending == {file: pytest.approx(n * seconds) for file, n in zip(files, (1, 1, 2))}
    assert found.choice.runs[er.hash] == {imported: [0, 2], Path(files[1]): [1], Path(files[2]): [3]}
    (line,) = announced(whole, found)
    assert line == f"2 runs are there; training 4 more, predicted {costs.duration(4 * seconds)} of one core"


def test_a_card_has_hours_of_its_own(card_rows):
    """Budgets and steps count a card's seconds; what is left out still counts a core's."""
    card_rows(card_costs.Row("any", "{}", "1x1x1", "a card", 2, 0.01, 100))
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
    """With the same seed and order, and only where it is not there yet."""
    (tmp_path / "mine.py").write_text("from clpapers import Method\n\n\nclass Mine(Method): ...\n")
    plan = Plan("smoke", ["streaming"], methods=[str(tmp_path / "mine.py")])
    target = plan.targets["streaming/table1"]
    of = {(factors["learner"], factors["order"]["name"]): cell for factors, cell in target.cells}
    offline, seconds = of["offline", "random"], dict.fromkeys(plan.cells, 1.0)
    steps = rank(list(priority.questions_of_own(plan, [target])), {(offline.hash, 1)}, seconds)
    orders = ("random", "split", "instances")
    expected = {(of[label, order].hash, seed) for label in ("mine", "offline") for order in orders for seed in (0, 1)}
    assert after(set(), steps) == expected - {(offline.hash, 1)}


# --- what a command line asks for


@pytest.fixture
def settings_of():
    """Settings of a build without published results, on a machine of a known speed."""
    Path("results/paper").mkdir(parents=True, exist_ok=True)
    Path("results/paper/machine.json").write_text(json.dumps({hardware()["processor"]: {"calibration": 0.016}}))

    def given(papers, **more):
        return {"papers": papers, "data_folder": "data", "downloads": "downloads", "published": False, **more}

    return given


def remember(names, folder="data"):
    """Note that these could not be had a moment ago."""
    failure = {"time": time.time(), "data_folder": folder, "remedy": "nowhere to be had"}
    Path("results/paper/absent.json").write_text(json.dumps(dict.fromkeys(names, failure)))


def test_images_behind_streams_of_features_are_asked_for_and_left_out(whole, settings_of):
    """Or a build of no hours would ask for them in a job, which fails."""
    images = preparation.images_of(whole, targets_of(whole, ["streaming"]))
    assert {"icubworld", "resnet50_imagenet"} <= set(images)
    remember(set(images) - {"icubworld"})
    _, found, data = preparation.prepare(whole, settings_of(["streaming"], hours=0), ["all"])
    assert "icubworld.zip" in data.absent["icubworld"].lower()
    chosen = whole.using(found.choice)
    assert not chosen.present(chosen.targets["streaming/figure1"]).streams
    assert "icubworld" in json.loads(Path("results/paper/absent.json").read_text())  # for a day


def test_what_could_not_be_had_is_asked_for_again_where_data_are_kept_elsewhere(whole, settings_of):
    """As its remedy names the folder of its day; and weights that were put there by hand are tried without waiting."""

    def absent(folder):
        data = preparation.Data(whole, Path(folder), Path("downloads"))
        data.note_absent(("emnist", "resnet50_imagenet"))
        return {*data.absent}

    remember(("emnist", "resnet50_imagenet"))
    assert absent("data") == {"emnist", "resnet50_imagenet"}
    assert absent("elsewhere") == set()
    Path("data/weights").mkdir(parents=True)
    assert absent("data") == {"emnist"}


@pytest.mark.parametrize(
    ("words", "tells"), [(["--report", "a.html"], True), (["--report-after-run"], False), (["--cores=1"], False)]
)
def test_snakemake_s_report_describes_what_is_there_and_fetches_nothing(words, tells):
    assert preparation.requested_targets(["all", *words]) == (["all"], tells)


@pytest.mark.parametrize("words", [["report"], ["report", "all"], [], ["audit"]])
def test_without_hours_no_runs_are_added(words, whole, settings_of):
    cases = {None: False, 0.1: False} if words == ["audit"] else {None: False, 0.1: True, "all": True}
    for hours, adds in cases.items():
        _, found, _ = preparation.prepare(whole, settings_of(["rules"], hours=hours), [*words, "-n"])
        assert bool(found.pending) is adds


@pytest.mark.parametrize(("hours", "least", "most"), [(None, 170, 170), ("all", 170, 170), (0.02, 1, 169), (0, 0, 0)])
def test_a_target_by_name_trains_all_that_it_needs_unless_hours_are_asked_for(hours, least, most, whole, settings_of):
    target = whole.targets["rules/table1"]
    asked = [*map(str, target.outputs), "-n"]
    _, found, _ = preparation.prepare(whole, settings_of(["stf"], hours=hours), asked)
    assert found.choice.runs.keys() <= {cell.hash for _, cell in target.cells}
    assert least <= trained(found) <= most
    assert found.hours <= 0.02
    assert {question.kind for question in found.questions} == ({NUMBER, SHOWN, CLAIM} if most < 170 else set())


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
    *files, hint = preparation.conclusion(words).splitlines()
    assert files == [f"built: {stem}.{{csv,reported.csv}}", f"built: {words[2]}"]
    assert hint.endswith(": clpapers summary --scale paper")
    for asked, whole_papers, of_smoke in ((words, False, False), ([*words, "all"], True, True), ([], True, True)):
        assert preparation.builds_papers(asked) is whole_papers
        assert preparation.concerns("smoke", asked) is of_smoke
        assert preparation.concerns("paper", asked)


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
