"""Marks, footnotes and names."""

import dataclasses

import pandas as pd
import pytest

from clpapers.catalogue.names import named
from clpapers.targets.footnotes import levels
from clpapers.targets.unrun import Unrun


def test_marks(real, reduced):
    assert real.mark("EMNIST", "emnist") == "EMNIST"
    assert reduced.mark("EMNIST", "emnist") == "EMNIST†‡"
    assert reduced.mark("CIFAR-10", "cifar10") == "CIFAR-10‡"


def test_footnotes_explain_the_marks_of_the_data_sets_shown(real, reduced):
    target = {"names": {"emnist": "EMNIST"}}
    standin, reduction = reduced.footnotes(target, ["emnist", "cifar10", "emnist"])
    assert standin.startswith("†")
    assert standin.count("EMNIST: synthetic glyphs") == 1
    assert reduction == "‡ Reduced scale ‘small’: order.length 1000 (paper: all)."
    assert reduced.footnotes(target, ["cifar10"]) == [reduction]
    assert real.footnotes(target, ["emnist"]) == []


def test_the_conditions_stand_below_what_explains_marks(real, reduced):
    for notes in (real, reduced):
        declaring = dataclasses.replace(notes, conditions="Conditions: yes.")
        assert declaring.footnotes({}, ["emnist"]) == [*notes.footnotes({}, ["emnist"]), "Conditions: yes."]


def test_imported_runs_are_told_by_commit(real):
    (note,) = dataclasses.replace(real, imported={"a" * 40: 30, "b" * 40: 6}).commits
    assert real.commits == []
    assert note == (
        "Runs that were imported, not trained here: 36; commits of their code: aaaaaaaaaa (30), bbbbbbbbbb (6)."
    )


def test_captions_say_what_the_build_shows(reduced):
    target = {"caption": "{seeds} runs ({scale}) of {x}, {chunks} parts", "chunks": 50}
    assert reduced.caption(target) == "3 runs (small) of {x}, 50 parts"


@pytest.mark.parametrize(
    ("seeds", "left_out", "target", "said"),
    [
        (4, 0, {}, "4: each run a dot"),
        (5, 0, {}, "5: 95 % Student-t intervals"),
        (5, 0, {"spread": "sd"}, "5: ± one standard deviation"),
        (5, 2, {}, "up to 5: below 5 runs each run a dot, from there on 95 % Student-t intervals"),
    ],
)
def test_a_caption_says_how_runs_are_shown(real, seeds, left_out, target, said):
    notes = dataclasses.replace(real, seeds=seeds, unrun=Unrun(runs=left_out, wanted=9))
    assert notes.caption({"caption": "{seeds}: {spread}", **target}) == said


@pytest.mark.parametrize(
    ("left", "said"),
    [
        (Unrun((), 3, 9, 0, 0.5), "6 of 9 runs so far. The others take 30 min of one core: make it."),
        (
            Unrun((), 3, 9, 1, 2.0, {"emnist": "ask"}),
            "6 of 9 runs so far. Of the others, the 2 whose data are at hand take 2.0 h of one core: make it.",
        ),
        (Unrun((), 3, 9, 3, 0.0, {"emnist": "ask"}), "6 of 9 runs so far."),
    ],
)
def test_the_price_of_what_is_left_out_says_whose_it_is(real, left, said):
    notes = dataclasses.replace(real, unrun=left, command="make it")
    absent = ["Not at hand: emnist: ask."] if left.absent else []
    assert notes.footnotes({"kind": "figure"}, []) == [said, *absent]


@pytest.mark.parametrize("kind", ["table", "figure"])
def test_test_images_that_are_training_images_are_told_of_below(real, kind):
    notes = dataclasses.replace(real, shared={"pets": "3 of 9"})
    (told,) = notes.footnotes({"kind": kind, "names": {"pets": "Pets"}}, ["pets"])
    assert told.startswith("Pets: 3 of 9 test images are training images")
    assert notes.sources({"kind": kind}) == [told.replace("Pets", "pets")]


def test_levels_follow_the_grid_and_skip_what_was_not_run():
    data = pd.DataFrame({"learner": ["er", "ace"], "order": ["stf", "split"]})
    assert levels({"grid": {"learner": ["ace", "mir", "er"]}}, data, "learner") == ["ace", "er"]
    assert levels({"grid": {"order": [{"name": "split", "tasks": 5}, {"name": "stf"}]}}, data, "order") == [
        "split",
        "stf",
    ]
    assert levels({}, data, "order") == ["stf", "split"]


def test_a_key_without_a_name_is_its_own():
    assert named({"names": {"er": "ER"}}, "er") == "ER"
    assert named({}, 0.5) == "0.5"
