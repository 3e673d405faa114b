"""A file of results is read where training can have written it, and refused in a line that says where else."""

import inspect
import json
import re
import zipfile
from pathlib import Path

import pytest
from trained import entry_of, result_of

from clpapers.archive.imported import RUN
from clpapers.runs import loop, result_schema
from clpapers.runs.result_schema import results

ROOT = Path(__file__).parents[2]
NEITHER_COUNTED = {"seed", "memory", "oracle"}  # metrics read nothing of these


RESULT = {*re.findall(r'^        "(\w+)":', inspect.getsource(loop._result), re.MULTILINE)}  # what training writes


def read(content):
    return results(json.dumps(content).encode())


def test_what_training_writes_is_read():
    whole = result_of(entry_of(0), entry_of(3), {"seed": 4, "out_of_memory": True})
    assert read(whole) == (whole["cell"], {entry["seed"]: entry for entry in whole["seeds"]})


@pytest.mark.slow
@pytest.mark.parametrize("crate", sorted((ROOT / "results/published").glob("*.zip")), ids=lambda path: path.stem)
def test_so_is_all_that_is_published(crate):
    with zipfile.ZipFile(crate) as archive:
        found = [results(archive.read(name)) for name in archive.namelist() if RUN.fullmatch(name)]
    assert all(seeds for _, seeds in found)
    assert found


def test_each_section_that_training_writes_is_looked_at_or_counted_nowhere():
    assert {*result_schema.ALWAYS, *NEITHER_COUNTED} == RESULT
    assert result_schema.SECTIONS.keys() | NEITHER_COUNTED == entry_of().keys()


GONE = object()
HUGE = 10**400
ODD = {  # section: where in it → what stands there instead
    "steps": [((), -1), ((), 1.5), ((), True), ((), None), ((), HUGE), ((), GONE)],
    "test": [
        ((), {}),
        ((), None),
        ((), []),
        (("none", "correct"), [3, 1, 0]),
        (("none", "correct"), [5, 1, 0, 2]),  # more than there are
        (("none", "correct"), [-1, 1, 0, 2]),
        (("none", "correct", 0), HUGE),
        (("none", "correct", 0), [3]),
        (("none", "correct", 0), "3"),
        (("none", "correct", 0), 2.5),
        (("none", "total"), [4]),  # which numpy would spread over all classes
        (("none", "total"), 4),
        (("none", "total"), [0, 0, 0, 0]),
        (("none", "total"), GONE),
        (("none", "chance"), 0),
        (("none", "chance"), 1e308),
        (("none", "chance"), GONE),
    ],
    "probes": [
        (("position"), GONE),
        (("position", 0), 5),
        (("position", 0), HUGE),
        (("time",), []),
        (("time",), [4]),
        (("time",), [8, 4]),
        (("correct", 0), "gICA"),
        (("correct", 0), "?"),
        (("correct", 0), 3),
        (("correct",), ["gA=="]),
    ],
    "online": [
        (("correct",), [1] * 5),
        (("correct",), [9, 0, 0, 0]),
        (("correct",), []),
        (("correct", 1), None),
        (("correct",), GONE),
        (("loss", 0), "x"),
        (("loss", 0), HUGE),
        (("loss", 0), [1]),
        (("loss",), GONE),
    ],
    "learner": [((), []), ((), None), ((), GONE)],
    "learner_bytes": [(("training",), HUGE), (("training",), -1), (("testing",), None), (("testing",), GONE)],
    "diverged": [((), "x"), ((), -1), ((), HUGE), ((), True), ((), GONE)],
    "events": [
        ((), GONE),
        ((), []),
        (("time",), [4]),
        (("time",), [8, 4]),
        (("correct",), [[4, 2, 0, 0]]),
        (("correct", 1), [3, 1, 0]),
        (("correct", 1, 0), 5),
        (("total",), [4]),
        (("total",), [0, 0, 0, 0]),
        (("seen", 0), [1, 1, 0, 0]),
        (("seen",), [[True] * 4]),
        (("unknown_auroc", 0), 1.5),
        (("unknown_auroc", 0), "1"),
        (("unknown_auroc",), []),
        (("learner_bytes", 0), {}),
        (("learner_bytes",), []),
    ],
    "tasks": [
        ((), GONE),
        ((), None),
        (("classes",), [[0, 1]]),
        (("classes", 0), [0]),
        (("total", 0), [0, 0]),
        (("total",), []),
        (("correct",), []),
        (("correct", 0), [[4, 2]]),
        (("correct", 0, 0), [4]),
        (("correct", 0, 0), [5, 2]),
        (("correct", 0, 0, 0), HUGE),
        (("open",), [[[4, 2], [0, 0]]]),
        (("open",), GONE),
        (("shots",), []),
        (("shots", 0, 0), [5, 0]),
        (("shots", 0, 0), [0]),
        (("mutual_information", 0), [0.5]),
        (("mutual_information", 0, 0), "x"),
        (("mutual_information",), [[0.5, None]]),
        (("memory", "total"), [1]),
        (("memory", "correct", 1), [0, 2]),
        (("memory", "correct", 1), [0]),
    ],
    "unanswered": [((), None), (("online",), -1), (("tests",), 1.5), (("tests",), GONE)],
}
CASES = [(section, *case) for section, cases in ODD.items() for case in cases]


def with_odd(entry, section, place, value):
    """The entry, with a value somewhere in a section, or without what stands there."""
    *inside, last = (section, *([place] if isinstance(place, str) else place))
    there = entry
    for key in inside:
        there = there[key]
    if value is GONE:
        del there[last]
    else:
        there[last] = value
    return entry


@pytest.mark.parametrize(("section", "place", "value"), CASES)
def test_what_no_training_writes_is_named_by_seed_and_section(section, place, value):
    with pytest.raises(ValueError, match=rf"^is no result of runs \(seed 7: {section}: ") as refusal:
        read(result_of(entry_of(0), with_odd(entry_of(7), section, place, value)))
    assert str(refusal.value).isprintable()


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400", "-1e999"])
@pytest.mark.parametrize("at", ["1.5", "0.125", "0.75", '"learner":{"trace":['])
def test_numbers_that_are_none_are_refused_wherever_they_stand(number, at):
    whole = json.dumps(result_of(entry_of() | {"learner": {"trace": [0.5]}}), separators=(",", ":"))
    assert at in whole
    spoilt = whole.replace(at, f"{at}{number}," if at.endswith("[") else number, 1)
    with pytest.raises(ValueError, match=r"is no number of JSON|is too large a number"):
        results(spoilt.encode())


def test_sections_that_its_cell_does_not_ask_for_may_lack():
    entry = entry_of()
    del entry["events"], entry["tasks"], entry["unanswered"]  # which stands only where an answer had no finite score
    whole = result_of(entry)
    with pytest.raises(ValueError, match="events: KeyError"):
        read(whole)
    whole["cell"]["evaluation"] |= {"every": None, "shots": None}
    assert read(whole)[1] == {0: entry}
    with pytest.raises(ValueError, match="tells of no evaluation"):
        read({"cell": {}, "seeds": []})


def test_every_metric_can_be_computed_of_what_is_read():
    """By hand: 6 of 16 right; after two tasks 4 of 8 and 8 of 8; 3 right of 16 of the classes seen, and so on."""
    from clpapers.metrics import learning, streaming

    _, seeds = read(result_of())
    run = seeds[0] | {"test": seeds[0]["test"]["none"], "per_class": False}
    assert learning.SCALARS["final_accuracy"](run) == 37.5
    assert learning.SCALARS["online_accuracy"](run) == 50.0
    assert learning.SCALARS["average_accuracy"](run) == 75.0
    assert learning.SCALARS["forgetting"](run) == 0.25  # 6 of 8 right after the first task, 4 in the end
    assert streaming.accuracies(run["events"], True).tolist() == [0.75, 0.375]
    for scalar in learning.SCALARS.values():
        float(scalar(run))
