"""A sample of published runs is trained again: within the hours, by its draw, and what differs is found."""

import csv
import json
import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from world.published import crate, edit, fewer_right, result_of, runs

from clpapers import cli, provenance
from clpapers.budget import costs
from clpapers.builds.verify import (
    AS_SEEDS,
    CLOSE,
    DIFFERS,
    SAME,
    UNDECIDED,
    UNTRIED,
    Scratch,
    _compare,
    _compare_with_seeds,
    _other_conditions,
    _sample,
)
from clpapers.config.plan import Plan
from clpapers.report.publish import publish
from clpapers.report.summary import summary_of


@pytest.fixture
def published(small_project):
    publish(Plan("mini", ["mini"]), ["mini"])
    return small_project


def verify(*arguments):
    return cli.main(["verify", "--scale", "mini", *arguments])


def there():
    """The bytes of all results; how fast this machine is, which any prediction notes, is none."""
    files = (path for path in Path("results").rglob("*") if path.is_file() and path.name != "machine.json")
    return {path: path.read_bytes() for path in files}


def verdicts(said):
    return dict(re.findall(r"^(\S+): ([a-z ]+?)(?:,| \()", said, re.M))


def test_runs_come_out_with_the_same_bits(published, capsys):
    before = there()
    assert verify() == 0
    assert verdicts(capsys.readouterr().out) == dict.fromkeys(map(str, runs()), SAME)
    assert there() == before


def test_all_that_is_needed_is_made_where_it_is_not_there(published, capsys):
    shutil.rmtree("results/mini/datasets")
    shutil.rmtree("results/mini/streams")
    assert verify(str(crate())) == 0
    assert set(verdicts(capsys.readouterr().out).values()) == {SAME}


def test_of_each_crate_one_or_two_cells_are_trained_and_told_on_the_last_page(published, capsys):
    """The mini paper has two cells, which take seconds; in less than one takes nothing is tried."""
    out = Path("results/mini/verified.csv")
    assert verify("--of-each", "--out", str(out)) == 0
    said = capsys.readouterr()
    assert set(verdicts(said.out).values()) == {SAME}
    cells = [Path(run).parent for run in verdicts(said.out)]
    assert len(set(cells)) == len(cells) == 2
    assert "training 2 published runs again, predicted " in said.err
    with out.open(newline="") as file:
        assert [(line["run"], line["verdict"]) for line in csv.DictReader(file)] == [*verdicts(said.out).items()]
    assert "published runs trained again here, from the images on: 2 same bits" in summary_of(
        Plan("mini", ["mini"]), ["mini"]
    )


def test_one_that_differs_is_told_and_fails(small_project, capsys):
    path = runs()[0]
    edit(path, lambda content: fewer_right(content))
    publish(Plan("mini", ["mini"]), ["mini"])
    assert verify() == 1
    said = capsys.readouterr().out
    assert verdicts(said)[str(path)] == DIFFERS
    assert "1 of 1 seeds, by 0.0500 in accuracy" in said
    assert verify("--within", "0.06") == 0
    assert verdicts(capsys.readouterr().out)[str(path)] == CLOSE


def elsewhere(path, **facts):
    """A run's record tells of another machine or other code, and is sealed anew."""
    place = provenance.record_path(path)
    record = json.loads(place.read_text())
    del record["seal"]
    record |= facts
    place.write_text(json.dumps(record | {"seal": provenance.seal(record)}, indent=1) + "\n")


def test_one_that_differs_and_was_made_elsewhere_is_held_against_other_seeds(small_project, capsys):
    """The line names the processor, without control characters."""
    path = runs()[0]
    edit(path, lambda content: fewer_right(content))
    record = provenance.read_record(path)
    elsewhere(path, hardware=record["hardware"] | {"processor": "another\x1b"})
    publish(Plan("mini", ["mini"]), ["mini"])
    status = verify()
    said = capsys.readouterr().out
    (line,) = (line for line in said.splitlines() if line.startswith(str(path)))
    assert "by 0.0500 in accuracy; " in line
    assert "; there: processor another\\x1b (predicted" in line
    assert verdicts(said)[str(path)] in (AS_SEEDS, UNDECIDED)
    assert status == 0


def with_right(*right, of=100):
    """A result's entries by seed: items that are right at the end."""
    entries = [result_of()["seeds"][0] for _ in right]
    for seed, (entry, correct) in enumerate(zip(entries, right)):
        entry["seed"] = seed
        counts = entry["test"]["none"]
        counts["correct"], counts["total"] = [correct], [of]
    return entries


def test_the_bound_of_two_seeds_by_hand():
    """Seeds of 50, 60 and 70 %: s = 0.1, t of 2 degrees of freedom at 0.995 = 9.925, so two may be 1.40 apart."""
    seeds = with_right(50, 60, 70)
    one, other = (json.dumps(result_of(*with_right(right))).encode() for right in (50, 90))
    assert _compare_with_seeds(one, other, seeds) == (AS_SEEDS, "two of 3 seeds may be 1.4036 apart")
    close = with_right(50, 51, 50, 51, 50, 51, 50, 51, 50, 51)  # s = 0.00527, t of 9 at 0.995 = 3.250: 0.0242
    assert _compare_with_seeds(one, other, close) == (DIFFERS, "two of 10 seeds may be 0.0242 apart")
    near = json.dumps(result_of(*with_right(52))).encode()
    assert _compare_with_seeds(one, near, close)[0] == AS_SEEDS
    assert _compare_with_seeds(one, other, seeds[:1])[0] == UNDECIDED


def test_the_same_machine_and_code_are_no_excuse():
    record = {
        "code": "a", "git": {"commit": "c"}, "hardware": {"processor": "x", "device": "cpu"}, "packages": {"torch": "2"}
    }  # fmt: skip
    job = SimpleNamespace(code="a")
    assert _other_conditions(job, record, dict(record)) == []
    assert _other_conditions(job, record, record | {"code": "b"}) == ["other code, of commit c"]
    assert _other_conditions(job, record, record | {"packages": {}, "hardware": {}}) == [
        "processor None",
        "device None",
        "torch None",
    ]


def test_what_cannot_be_trained_is_no_success(published, capsys):
    data = Path("results/mini/datasets/mnist.npz")
    data.write_bytes(data.read_bytes()[:-1] + b"x")
    assert verify() == 2
    said = capsys.readouterr()
    assert set(verdicts(said.out).values()) == {UNTRIED}
    assert f"{data}: not the bytes that its record holds" in said.out
    assert "no run of the sample could be trained" in said.err


def test_data_that_cannot_be_had_are_asked_for_once_and_the_remedy_is_told(published, monkeypatch, capsys):
    shutil.rmtree("results/mini/datasets")
    asked, run = [], subprocess.run

    def without_sources(command, **options):
        asked.append(command[3])
        if command[3] != "dataset":
            return run(command, **options)
        said = "clpapers: mnist: no source serves it; put it into data/mnist/. Tried:\n  folder: it is not there\n"
        return subprocess.CompletedProcess(command, 2, "", said)

    monkeypatch.setattr(subprocess, "run", without_sources)
    assert verify(str(crate())) == 2
    said = capsys.readouterr().out.splitlines()
    want = "not trained, mnist: no source serves it; put it into data/mnist/"
    assert len(said) == 2
    assert f"{want} (predicted" in said[0]
    assert re.fullmatch(rf"\d+ more: {re.escape(want)}", said[1])
    assert asked == ["dataset"]


def test_seeds_are_stacked_as_their_record_has_it(small_project, monkeypatch):
    first, *others = map(str, runs())
    place, told = provenance.record_path(first), {}
    record = json.loads(place.read_text()) | {"stacking": False}
    del record["seal"]
    place.write_text(json.dumps(record | {"seal": provenance.seal(record)}))
    publish(Plan("mini", ["mini"]), ["mini"])
    run = subprocess.run

    def noted(command, **given):
        if "train" in command:
            told[command[command.index("--out") + 1]] = command[command.index("--stacking") + 1]
        return run(command, **given)

    monkeypatch.setattr(subprocess, "run", noted)
    assert verify() == 0
    assert told == {first: "0"} | dict.fromkeys(others, "1")


def test_the_order_is_of_the_draw(published):
    plan, crates = Plan("mini", ["mini"]), [str(path) for path in runs()]
    orders = [tuple(_sample(plan, crates, draw)) for draw in range(20)]
    assert all(sorted(order) == sorted(crates) for order in orders)
    assert len(set(orders)) > 3
    assert orders == [tuple(_sample(plan, crates, draw)) for draw in range(20)]


def test_the_sample_is_within_the_hours(published, capsys):
    drawn = _sample(Plan("mini", ["mini"]), [str(path) for path in runs()], 3)
    assert verify("--hours", str(max(drawn.values()) * 2.5 / 3600), "--draw", "3") == 0
    assert list(verdicts(capsys.readouterr().out)) == list(drawn)[:2]


def test_features_that_are_yet_to_be_made_count_once(tmp_path, monkeypatch):
    plan, features = Plan("paper", ["rules", "streaming"]), Path("results/paper/datasets/cifar100_resnet50.npz")
    run = Path("results/paper/runs/cifar100_resnet50/random/nn1-5eaec0bcb2/seed0.json")
    (tmp_path / "scratch").mkdir()
    monkeypatch.chdir(tmp_path)
    here = Scratch(plan, {}, Path("scratch").absolute())
    assert here.seconds_of_features(Path("results/paper/runs/mnist/random/nn1-0123456789/seed0.json")) == 0
    assert here.seconds_of_features(run) == costs.features(plan, "cifar100_resnet50") > 600
    (here.folder / features).write_bytes(b"made")
    assert here.seconds_of_features(run) == 0


def test_another_takes_the_turn_of_one_whose_data_cannot_be_had(published, monkeypatch, capsys):
    drawn = _sample(Plan("mini", ["mini"]), [str(path) for path in runs()], 0)
    first, second, third, *_ = drawn
    make = Scratch.make

    def without(self, path, *options):
        return "mnist: no source serves it" if str(path) in (first, second) else make(self, path, *options)

    monkeypatch.setattr(Scratch, "make", without)
    assert verify("--hours", str(max(drawn.values()) * 1.5 / 3600)) == 0
    said = capsys.readouterr().out
    assert verdicts(said) == {first: UNTRIED, third: SAME}
    assert said.endswith("\n1 more: not trained, mnist: no source serves it\n")


def test_hours_that_suffice_for_nothing_say_what_would(published, capsys):
    assert verify("--hours", "0.0001") == 2
    assert "no run fits; the cheapest takes 0." in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [("--hours", "0"), ("--hours", "nan"), ("--within", "-1"), ("--within", "2")])
def test_values_that_make_no_sense_are_refused(arguments, published, capsys):
    assert verify(*arguments) == 2
    assert "give hours above 0, and within from 0 to 1" in capsys.readouterr().err


def test_without_a_crate_it_says_so(small_project, capsys):
    assert verify() == 2
    assert "no crate; name one, or publish what is finished" in capsys.readouterr().err


def test_the_order_of_keys_is_no_difference():
    one, other = (json.dumps(dict(order(result_of().items()))).encode() for order in (list, reversed))
    assert one != other
    assert _compare(one, other, 0.0) == (SAME, "")
    lost = result_of({"seed": 0, "out_of_memory": True})
    assert _compare(one, json.dumps(lost).encode(), 0.5)[0] == DIFFERS  # no accuracies to hold against each other
