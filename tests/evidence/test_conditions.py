"""The conditions A to E: of cells of each kind, of the masks they really make, and of every target there is."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
import yaml

from clpapers.config.model import Cell, Selection, Target
from clpapers.config.plan import Plan
from clpapers.config.settings import all_papers
from clpapers.evidence import conditions
from clpapers.runs.scenario import restrictions_at_test, scenario
from clpapers.streams import orders
from clpapers.streams.restrictions import RESTRICTIONS

FACTS = {"classes": list("abcd"), "train": 40}
NONE, MIXED, CHUNKS = {"name": "none"}, {"name": "mixed"}, {"name": "chunks"}
ENTROPY, GUESSED = {"name": "entropy", "tasks": 2}, {"name": "random_tasks", "tasks": 2}
SPLIT = {"name": "split", "tasks": 4, "length": None}
RANGE = {"name": "split_range", "first": 1, "last": 3, "tasks": 3, "length": None}
OVERLAPPING = {"name": "split_overlapping", "first": 1, "last": 3, "tasks": 3, "per_task": 2, "length": None}
TWICE = {"name": "split_two", "tasks": 2, "length": None}
DOMAINS = {"name": "permuted_pixels", "tasks": 5, "length": None}
BURSTS = {"name": "instances", "burst": 20, "length": None}
DOMINANT = {"name": "dominant", "share": 0.55, "length": None}
ORDERED = DOMINANT | {"name": "dominant_ordered"}
RANDOM = {"name": "random", "length": None}
DRIFT = {"name": "stf", "mu_sigma": 0.1, "length": None}


def offline(items, length=None):
    return {"name": "offline", "items": items, "length": length}


def split(tasks, *, aligned=True):
    return {"name": "split", "tasks": tasks, "aligned": aligned}


def dominant(*shares):
    return {"name": "dominant_tasks", "shares": list(shares)}


def cell(order=SPLIT, learner="single", oracle=NONE, train="none", oracles=None):
    return {
        "dataset": "mnist",
        "order": order,
        "oracle": oracle,
        "learner": {"name": learner},
        "restriction": {"train": train},
        "budget": {"batch": 1},
        "evaluation": {"batch": 1, "oracles": oracles or {}},
    }


def verdict(letter, *arguments, view="none", metrics=("final_accuracy",), **options):
    return conditions.verdicts(cell(*arguments, **options), view, metrics, FACTS)[letter]


# --- one cell ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("order", "resembles", "retraining", "tasks"),
    [
        (SPLIT, "yes", "yes", "yes (4 tasks)"),
        (SPLIT | {"tasks": 2}, "yes", "yes", "no (2 tasks)"),
        (SPLIT | {"epochs": 7}, "yes", "yes", "yes (4 tasks)"),  # before the next task, not after it
        (SPLIT | {"cycles": 1}, "yes", "yes", "yes (4 tasks)"),
        (SPLIT | {"cycles": 5}, "yes", "no (tasks come 5 times)", "yes (4 tasks)"),
        (RANGE, "yes", "yes", "yes (3 tasks)"),
        (OVERLAPPING, "yes", "yes", "yes (3 tasks)"),
        (TWICE, "yes", "no (tasks come twice)", "no (2 tasks)"),
        (DOMINANT, "yes", "yes", "yes (4 tasks)"),  # a chunk a class
        (ORDERED, "yes", "yes", "yes (4 tasks)"),
        (DOMAINS, "no (pixels permuted)", "yes", "yes (5 tasks)"),
        (DRIFT, "yes", "yes", "n/a (no tasks)"),
        (BURSTS, "yes", "yes", "n/a (no tasks)"),
        (RANDOM, "n/a (one task)", "yes", "no (one task)"),
        (offline(41), "n/a (one task)", "no (several epochs over all data)", "no (one task)"),
        (offline(40), "n/a (one task)", "yes", "no (one task)"),
        (offline(40, 39), "n/a (one task)", "no (several epochs over all data)", "no (one task)"),
    ],
)
def test_orders_decide_on_resemblance_retraining_and_the_number_of_tasks(order, resembles, retraining, tasks):
    found = [verdict(letter, order) for letter in "ADE"]
    assert found == [resembles, retraining, tasks]


def test_every_order_that_is_not_tried_here_says_how_many_tasks_it_has():
    tried = (SPLIT, RANGE, OVERLAPPING, TWICE, DOMAINS, DOMINANT, ORDERED, DRIFT, BURSTS, RANDOM, offline(1))
    others = orders.ORDERS.keys() - {order["name"] for order in tried}
    assert [name for name in others if "tasks" not in orders.ORDERS[name].fields()] == []


def test_training_on_all_tasks_at_once_is_retraining_and_so_is_keeping_all():
    assert verdict("D", SPLIT, "multi_task") == "no (all tasks at once)"
    assert verdict("D", BURSTS, "offline") == "no (all items so far)"
    assert verdict("D", RANDOM, "nn1") == "no (keeps every item)"


@pytest.mark.parametrize(
    ("letter", "shared"),
    [
        (conditions.YES, [(SPLIT, "single"), (SPLIT, "single", CHUNKS), (DOMAINS, "a_gem", CHUNKS, "oracle")]),
        (conditions.YES, [(SPLIT, "multi_task", CHUNKS), (SPLIT, "cn_dpm"), (SPLIT, "ewc", MIXED)]),
        (conditions.YES, [(SPLIT, "multi_model", oracle) for oracle in (ENTROPY, GUESSED, split(1))]),
        (conditions.YES, [(SPLIT, "single", split(1), "oracle"), (SPLIT, "multi_model", ENTROPY, "oracle")]),
        (conditions.HEADS, [(SPLIT, "single", split(2), "oracle"), (RANGE, "ewc", CHUNKS, "oracle")]),
        (conditions.HEADS, [(SPLIT, "single", split(2, aligned=False), "oracle"), (SPLIT, "ewc", GUESSED, "present")]),
        (conditions.YES, [(RANDOM, "single", NONE, "present"), (DOMINANT, "ewc", split(2), "present")]),
        (conditions.HEADS, [(SPLIT, "multi_model", split(2)), (SPLIT, "multi_model", dominant(0.25, 0.75))]),
        (conditions.HEADS, [(SPLIT, "prog_nn", CHUNKS, "oracle"), (DOMAINS, "prog_nn", CHUNKS)]),
        (conditions.HEADS, [(OVERLAPPING, "multi_task", CHUNKS)]),  # outputs of their own, though all compete
        ("n/a (nothing is trained)", [(SPLIT, "random"), (SPLIT, "random_multi_model", split(2))]),
    ],
)
def test_heads(letter, shared):
    assert {verdict("B", *each) for each in shared} == {letter}


@pytest.mark.parametrize(
    ("expected", "metric", "view", "options"),
    [
        # The restriction at test, and who sees it.
        (conditions.YES, "final_accuracy", "none", {"oracle": split(2), "train": "oracle"}),  # rules' ea
        (conditions.KNOWN, "final_accuracy", "oracle", {"oracle": split(2), "train": "oracle"}),
        (conditions.KNOWN, "per_class_accuracy", "independent", {"oracle": split(2)}),
        (conditions.KNOWN, "final_accuracy", "data", {"oracle": split(2)}),
        (conditions.YES, "final_accuracy", "data", {"oracle": split(2), "order": DOMINANT}),
        (conditions.YES, "final_accuracy", "oracle", {"oracle": GUESSED}),
        (conditions.KNOWN, "final_accuracy", "sp2/oracle", {"oracles": {"sp2": split(2)}}),
        (conditions.YES, "final_accuracy", "sp1/oracle", {"oracles": {"sp1": split(1)}}),
        (conditions.YES, "forgetting_events", "oracle", {"oracle": split(2), "train": "oracle"}),
        # Tests of tasks, in which theirs compete: of permutations those are all classes.
        (conditions.KNOWN, "average_accuracy", "none", {"order": RANGE}),
        (conditions.KNOWN, "lca_by_step", "none", {"order": SPLIT, "learner": "multi_task"}),
        (conditions.YES, "average_accuracy", "none", {"order": DOMAINS, "learner": "a_gem", "oracle": CHUNKS}),
        # Who answers by the task's own part.
        (conditions.KNOWN, "average_accuracy", "none", {"order": DOMAINS, "learner": "prog_nn", "oracle": CHUNKS}),
        (conditions.KNOWN, "final_accuracy", "none", {"learner": "multi_model", "oracle": split(2)}),
        (conditions.KNOWN, "forgetting_events", "none", {"learner": "random_multi_model", "oracle": split(2)}),
        (conditions.YES, "final_accuracy", "none", {"learner": "multi_model", "oracle": ENTROPY}),
        (conditions.YES, "final_accuracy", "none", {"learner": "random_multi_model", "oracle": GUESSED}),
        # Losses of the stream, and what tests nothing.
        (conditions.YES, "stream_loss", "none", {"learner": "er"}),
        (conditions.KNOWN, "stream_loss", "none", {"oracle": split(2), "train": "oracle"}),
        ("n/a (nothing is tested)", "violations_by_task", "none", {"order": RANGE, "learner": "gem"}),
        ("n/a (nothing is tested)", "training_seconds", "none", {"order": RANGE}),
        # Item by item, all classes competing.
        (conditions.YES, "omega_all", "none", {"order": SPLIT, "learner": "nn1"}),
        ("n/a (nothing is tested)", "unknown_auroc", "none", {"order": SPLIT}),
    ],
)
def test_labels_at_test(expected, metric, view, options):
    assert verdict("C", view=view, metrics=[metric], **options) == expected


def test_one_metric_that_knows_the_task_is_enough():
    assert verdict("C", RANGE, metrics=["training_seconds", "average_accuracy"]) == conditions.KNOWN


@pytest.mark.parametrize("oracle", [split(1), split(2), split(2, aligned=False), dominant(0.5, 0.5), GUESSED, CHUNKS])
@pytest.mark.parametrize("order", [SPLIT, TWICE, RANGE, OVERLAPPING, DOMINANT, RANDOM, DOMAINS])
def test_what_is_said_of_masks_is_what_they_do(order, oracle):
    """Batches of one item: a mask is declared if and only if some class is left out of it."""
    train_y, test_y = np.repeat(np.arange(4), 10), np.repeat([1, 2, 3], 3)  # class 0 is not in the range
    stream = orders.make(order, train_y, 0, 4)
    for train, test in {(restriction.train, restriction.test) for restriction in RESTRICTIONS.values()}:
        spec = cell(order, oracle=oracle, train=train)
        made = scenario(spec, stream, train_y, test_y, 4)
        heads = made.masks is not None and not made.masks.all()
        heads |= order is OVERLAPPING  # whose outputs are the tasks' own
        assert verdict("B", order, oracle=oracle, train=train) == (conditions.HEADS if heads else conditions.YES)
        mask = restrictions_at_test(spec, made).get(test)
        known = mask is not None and not mask.all()
        found = verdict("C", order, oracle=oracle, train=train, view=test)
        assert found == (conditions.KNOWN if known else conditions.YES)


# --- all cells in one phrase ---------------------------------------------------------------------------------------

NAMES = {"er": "ER", "mm": "MM", "mnist": "MNIST", "cifar": "CIFAR", "split": "disjoint"}


def said(text, *, dataset=("mnist", "cifar"), learner=("er", "ewc", "mm"), **others):
    """The phrase for a grid of which the function `text` says each cell's verdict."""
    factors = {"dataset": dataset, "learner": learner, **others}
    cells = [dict(zip(factors, levels)) for levels in itertools.product(*factors.values())]
    return conditions.phrase([(each, text(**each)) for each in cells], NAMES)


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        (lambda dataset, learner: "yes (why)", "yes (why)"),
        (lambda dataset, learner: "no" if learner == "mm" else "yes", "yes, but no for MM"),
        (lambda dataset, learner: "no" if dataset == "mnist" else "yes", "yes, but no for MNIST"),
        (lambda dataset, learner: "no" if learner != "er" else "yes", "no, but yes for ER"),
        (lambda dataset, learner: "no" if dataset + learner == "cifarmm" else "yes", "yes, but no for MM on CIFAR"),
        (
            lambda dataset, learner: "yes" if (dataset == "mnist") != (learner == "mm") else "no",
            "MNIST: yes, but no for MM / CIFAR: no, but yes for MM",
        ),
    ],
)
def test_exceptions_are_named_by_what_they_share_or_else_level_by_level(text, phrase):
    assert said(text) == phrase


def test_a_third_factor_is_named_and_levels_may_be_blocks():
    order = ({"name": "split", "tasks": 5}, {"name": "stf"})
    text = said(lambda order, learner, **_: "no" if "tasks" in order and learner == "mm" else "yes", order=order)
    assert text == "yes, but no for MM with disjoint"


def test_a_cell_that_was_left_out_is_no_exception():
    cells = [({"learner": l, "oracle": o}, "no" if l == "mm" else "yes") for l, o in [("er", 1), ("mm", 1), ("mm", 2)]]
    assert conditions.phrase(cells, NAMES) == "ER: yes / MM: no"
    assert conditions.phrase([*cells, ({"learner": "ewc", "oracle": 1}, "yes")], NAMES) == "yes, but no for MM"


def test_a_learner_without_an_option_has_no_level_of_it():
    """Whichever comes first, and where the levels of the others decide too."""
    vcl = [({"learner": "vcl", "learner.epochs": n}, "yes" if n > 1 else "no (why)") for n in (1, 2, 3)]
    mine = [({"learner": "mine"}, "no (a head a task)")]
    told = "yes, but no (a head a task) for Mine, the new one"
    names = {"mine": "Mine, the new one", "vcl": "VCL with a name as long as that"}
    assert conditions.phrase([*vcl[1:], *mine], names) == told
    assert conditions.phrase([*mine, *vcl[1:]], names) == told
    told = conditions.phrase([*vcl, ({"learner": "mine"}, "no (why)")], {})
    assert told == "vcl: yes, but no (why) for 1 / mine: no (why)"


def test_a_phrase_says_of_each_cell_what_was_said_of_it():
    """Any verdicts on a grid: read back, level by level, the phrase gives the same."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        cells = [({"dataset": d, "learner": l}, rng.choice(["yes", "no"])) for d in "ab" for l in "pqr"]
        text = conditions.phrase(cells, {})
        for factors, verdict in cells:
            assert read(text, factors) == verdict, text


def read(text, factors):
    """The verdict that a phrase of two factors gives of a cell."""
    mine = set(factors.values())
    if ": " in text:
        branches = [branch.split(": ", 1) for branch in re.split(r" / (?![^[]*])", text)]
        (text,) = [rest.strip("[]") for names, rest in branches if set(names.split(", ")) & mine]
        return read(text, factors)
    usual, *exceptions = text.split(", but ")
    for verdict, where in (exception.split(" for ") for exception in exceptions):
        if where.startswith("all but "):
            there = not set(where.removeprefix("all but ").split(", ")) & mine
        else:
            there = all(set(part.split(", ")) & mine for part in where.split(" on "))
        if there:
            return verdict
    return usual


# --- targets -------------------------------------------------------------------------------------------------------


def target(cells, **spec):
    names = {"names": {"mnist": "MNIST"}, "measure": "learning", "metrics": ["final_accuracy"]}
    made = [(factors, Cell.make("paper", each)) for factors, each in cells]
    return Target("paper", "p", "t", names | spec, range(2), tuple(made))


FACTORS = {"dataset": "mnist", "learner": "single"}


def test_a_line_of_all_five():
    text = conditions.sentence(target([(FACTORS, cell())]), {"mnist": FACTS})
    begun = "Conditions of Farquhar & Gal: cross-task resemblances: yes; shared output head: yes; "
    assert text.startswith(begun)
    assert text.endswith("more than two tasks: yes (4 tasks).")


def test_guesses_say_nothing_of_the_head_unless_alone():
    guess = {**FACTORS, "learner": "rand"}, cell(learner="random")
    head = FACTORS, cell(oracle=split(2), train="oracle")
    assert conditions.met(target([guess, head]), {"mnist": FACTS})["B"] == conditions.HEADS
    assert conditions.met(target([guess]), {"mnist": FACTS})["B"] == "n/a (nothing is trained)"


def test_a_search_declares_what_its_runs_meet():
    points = tuple(({"budget.learning_rate": r}, Cell.make("paper", cell(RANGE))) for r in (1, 2))
    search = Selection("paper", "p", "mnist", "single", "average_accuracy", range(1), False, points, {})
    made = Target("paper", "p", "t", {"measure": "selection"}, range(2), selections=((FACTORS, search),))
    assert conditions.met(made, {"mnist": FACTS})["C"] == conditions.KNOWN


@pytest.fixture(scope="module")
def plan():
    return Plan("paper", all_papers())


def test_every_experiment_declares_all_five(plan):
    for name, made in plan.targets.items():
        of_runs = bool(made.cells or made.selections)
        assert list(conditions.met(made, plan.datasets)) == (list("ABCDE") if of_runs else []), name
        assert bool(conditions.sentence(made, plan.datasets)) == of_runs, name


DECLARED = yaml.safe_load(Path(__file__).with_name("declared.yaml").read_text(encoding="utf-8"))
WORDS = {"met": conditions.YES, "heads": conditions.HEADS, "known": conditions.KNOWN}


@pytest.mark.parametrize(("name", "factors", "expected"), DECLARED, ids=str)
def test_the_papers_cells_declare(plan, name, factors, expected):
    made = plan.targets[name]
    shown = [({k: v["name"] if isinstance(v, dict) else v for k, v in at.items()}, cell) for at, cell in made.cells]
    found = [
        conditions.verdicts(cell.spec, cell.test_restriction, made.spec["metrics"], plan.datasets[cell.spec["dataset"]])
        for levels, cell in shown
        if factors.items() <= levels.items()
    ]
    for letter, word in expected.items():
        assert {each[letter] for each in found} == {WORDS.get(word, word)}


def test_a_table_of_a_build_declares_them_and_a_figure_of_streams_does_not(finished):
    texts = [finished.folder / "results/mini/targets/mini" / name for name in ("table1.md", "figure1.caption.md")]
    assert ["Conditions of Farquhar & Gal: " in text.read_text(encoding="utf-8") for text in texts] == [True, False]
