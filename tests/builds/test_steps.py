"""The first steps of published runs are taken again: the same digits, others by rounding, or another run."""

import base64
import csv
from pathlib import Path

import numpy as np
import pytest
import yaml
from world.published import edit, runs

from clpapers import cli
from clpapers.archive.beginnings import OTHERWISE, ROUNDING, SAME, UNTRIED, Beginning, read, write
from clpapers.builds.steps import by_answers, by_losses, items_apart
from clpapers.config.plan import Plan
from clpapers.report.publish import publish

OUT = Path("steps.csv")
HEAD = ",".join(Beginning._fields)


def verify(*arguments):
    return cli.main(["verify", "--scale", "mini", "--steps", "2", "--out", str(OUT), *arguments])


def verdicts():
    return {Path(each.run): each.verdict for each in read(OUT)}


def published(*changes):
    """Publish the runs, with changes of what the first runs of both cells tell of their steps; returns their paths."""
    first = [path for path in runs() if path.stem == "seed0"]
    for path, change in zip(first, changes):
        edit(path, lambda content, change=change: change(content["seeds"][0]["online"]))
    publish(Plan("mini", ["mini"]), ["mini"])
    return first


def test_a_run_of_each_cell_begins_with_the_same_digits(small_project):
    first, other = published()
    assert verify() == 0
    assert verdicts() == {first: SAME, other: SAME}
    assert [each.steps for each in read(OUT)] == [2, 2]
    assert verify("--each") == 0
    assert verdicts() == dict.fromkeys(runs(), SAME)


def test_another_loss_is_told_by_its_step_and_fails_and_a_last_digit_is_rounding(small_project):
    def other(online):
        online["loss"][1] += 0.1

    def rounded(online):
        online["loss"][1] = float(f"{online['loss'][1] + 1e-5:.6g}")

    first, second = published(other, rounded)
    assert verify() == 1
    assert verdicts() == {first: OTHERWISE, second: ROUNDING}
    (line,) = (each for each in read(OUT) if each.run == str(first))
    assert line.why.startswith("by 0.1 at step 2, ")


def test_other_items_right_at_the_same_losses_are_another_run(small_project, capsys):
    first, second = published(lambda online: online["correct"].__setitem__(0, 9))
    assert verify() == 1
    assert verdicts() == {first: OTHERWISE, second: SAME}
    assert "in items right at step 1, where the losses are the same" in capsys.readouterr().out


@pytest.mark.parametrize("verdict", [ROUNDING, OTHERWISE])
def test_outcomes_are_kept_and_what_was_not_tried_is_tried_again(small_project, verdict):
    first, second = published()
    kept = Beginning(str(first), verdict, 1, "by hand", 0.5, "2026-01-01", "0" * 40, "none")
    write(OUT, [kept, Beginning(str(second), UNTRIED, *kept[2:])])
    assert verify() == (verdict == OTHERWISE)
    assert kept in read(OUT)
    assert verdicts() == {first: verdict, second: SAME}


CASES = yaml.safe_load(Path(__file__).with_name("departures.yaml").read_text())
VERDICTS = {"rounding": ROUNDING, "otherwise": OTHERWISE}


@pytest.mark.parametrize("case", CASES["losses"], ids=str)
def test_rounding_reaches_as_far_as_a_change_of_the_weights_by_hand(case):
    ours, theirs, nudged, verdict = case
    found, count, _ = by_losses({3: ours}, {3: theirs}, [{3: ours[: len(nudged)]}, {3: nudged}])
    assert (found, count) == (VERDICTS[verdict], len(ours))


@pytest.mark.parametrize("case", CASES["right"], ids=str)
def test_items_right_differ_once_losses_do(case):
    ours = {"loss": [2.0, 1.5, 1.0], "correct": [1, 2, 3]}
    theirs = {"loss": case[0], "correct": case[1]}
    assert items_apart({7: {"online": ours}}, {7: {"online": theirs}}) == case[2]


def probes(*right: bool) -> dict:
    """Answers after items 2 and 9 to probes at 0 and up, as a result has them; of the second evaluation, all."""
    packed = [base64.b64encode(np.packbits(answers).tobytes()).decode() for answers in (right[:2], right)]
    return {"probes": {"position": [*range(len(right))], "time": [2, 9], "correct": packed}}


@pytest.mark.parametrize(
    ("theirs", "verdict"),
    [
        ({"tasks": {"right": [50, 46]}}, ROUNDING),  # four items, where one of two changes moved two; twice is allowed
        ({"tasks": {"right": [50, 45]}}, OTHERWISE),
        ({"tasks": {"right": [50]}}, OTHERWISE),
        ({"tasks": {"right": [50, None]}}, OTHERWISE),
        (probes(1, 1, 1, 1, 0, 0), ROUNDING),  # two probes, where a change of the weights moved one
        (probes(1, 1, 1, 0, 0, 0), OTHERWISE),
        (probes(0, 1, 1, 1, 0, 1), OTHERWISE),  # two probes, the first of them at both evaluations
    ],
)
def test_answers_after_a_training_may_be_as_far_as_changed_weights_take_them_by_hand(theirs, verdict):
    ours, changed = {
        "tasks": ({"tasks": {"right": [50, 50]}}, {"tasks": {"right": [49, 51]}}),
        "probes": (probes(1, 1, 1, 1, 1, 1), probes(1, 1, 1, 1, 1, 0)),
    }[next(iter(theirs))]
    assert by_answers({0: ours}, {0: theirs | {"domain": {}}}, [{0: ours}, {0: changed}])[:2] == (verdict, 0)


def test_a_file_of_outcomes_is_read_as_it_was_written(tmp_path):
    each = Beginning("results/a.json", ROUNDING, 20, 'by "1", at', 1.25, "2026-01-01", "abc", "a, b")
    write(tmp_path / "a.csv", [each])
    assert read(tmp_path / "a.csv") == [each]
    with (tmp_path / "a.csv").open(newline="") as file:
        assert [row["run"] for row in csv.DictReader(file)] == ["results/a.json"]
    assert read(tmp_path / "none.csv") == []
