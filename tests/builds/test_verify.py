"""A sample of published runs is trained again: within the hours, by its draw, and what differs is found."""

import csv
import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
import refusals
import yaml
from test_steps import HEAD, OUT  # noqa: F401, names that cases.yaml uses
from world.published import crate, edit, fewer_right, forge, runs

from clpapers import cli
from clpapers.budget import costs
from clpapers.builds.verify import AS_SEEDS, CLOSE, DIFFERS, SAME, UNDECIDED, UNTRIED, Scratch, _other_conditions
from clpapers.builds.verify import verify as outcomes
from clpapers.config.plan import Plan
from clpapers.config.settings import check_settings
from clpapers.provenance import Refusal, record_path
from clpapers.report.publish import publish
from clpapers.report.summary import summary_of

DATA = Path("results/mini/datasets/mnist.npz")
A_RUN = 5.0  # seconds, by the records of `small_project`


def publish_all():
    publish(Plan("mini", ["mini"]), ["mini"])


def publish_only(*paths):
    for path in {*runs()} - {*paths}:
        path.unlink()
        record_path(path).unlink()
    publish_all()


@pytest.fixture
def published(small_project):
    publish_all()
    return small_project


def verify(*arguments):
    return cli.main(["verify", "--scale", "mini", *map(str, arguments)])


def hours(count):
    """The core-hours that so many runs are predicted to take."""
    return count * A_RUN / 3600


def there():
    """The bytes of all results; how fast this machine is, which any prediction notes, is none."""
    files = (path for path in Path("results").rglob("*") if path.is_file() and path.name != "machine.json")
    return {path: path.read_bytes() for path in files}


def verdicts(said):
    return dict(re.findall(r"^(\S+): ([a-z ]+?)(?:,| \()", said, re.M))


@pytest.fixture
def commands(monkeypatch):
    """All that is run from here on, and the texts that end a command that holds one of them: no source serves it."""
    given, without, run = [], [], subprocess.run

    def noted(command, **options):
        given.append(command[3:])
        if not any(text in " ".join(command) for text in without):
            return run(command, **options)
        said = "clpapers: mnist: no source serves it; put it into data/mnist/. Tried:\n  folder: it is not there\n"
        return subprocess.CompletedProcess(command, 2, "", said)

    monkeypatch.setattr(subprocess, "run", noted)
    return given, without


def test_runs_come_out_the_same_and_all_that_they_need_is_made_in_a_folder_apart(small_project, capsys):
    """Of one the published file has its keys in another order, which is no difference."""
    edit(runs()[0], lambda content: content.update(cell=content.pop("cell")))
    publish_all()
    shutil.rmtree(DATA.parent)
    shutil.rmtree("results/mini/streams")
    before = there()
    assert verify(crate()) == 0
    assert verdicts(capsys.readouterr().out) == dict.fromkeys(map(str, runs()), SAME)
    assert there() == before


def test_of_each_crate_one_or_two_cells_are_trained_and_told_on_the_last_page(published, capsys):
    """The mini paper has two cells, which take seconds; in less than one takes nothing is tried."""
    out, before = Path("results/mini/verified.csv"), there()
    assert verify("--of-each", "--out", out) == 0
    said = capsys.readouterr()
    assert set(verdicts(said.out).values()) == {SAME}
    cells = [Path(run).parent for run in verdicts(said.out)]
    assert len(set(cells)) == len(cells) == 2
    assert "training 2 published runs again, predicted " in said.err
    with out.open(newline="") as file:
        assert [(line["run"], line["verdict"]) for line in csv.DictReader(file)] == [*verdicts(said.out).items()]
    told = "published runs trained again here, from the images on: 2 same bits"
    assert told in summary_of(Plan("mini", ["mini"]), ["mini"])
    out.unlink()
    assert there() == before


def lose(content):
    content["seeds"] = [{"seed": 0, "out_of_memory": True}]


@pytest.mark.parametrize(
    ("change", "told", "within"),
    [
        (fewer_right, "1 of 1 seeds, by 0.0500 in accuracy", {0: DIFFERS, 0.06: CLOSE}),
        (lose, "1 of 1 seeds, by inf in accuracy", {0.5: DIFFERS}),
    ],
)
def test_one_that_differs_is_told_and_fails(small_project, capsys, change, told, within):
    path = runs()[0]
    edit(path, change)
    publish_only(path)
    for margin, verdict in within.items():
        assert verify("--within", margin) == (verdict == DIFFERS)
        said = capsys.readouterr().out
        assert verdicts(said) == {str(path): verdict}
        assert told in said


@pytest.mark.parametrize(
    ("right", "elsewhere", "verdict", "told"),
    [
        (
            (20, 19),
            {"hardware": {"processor": "a\x1b"}},
            AS_SEEDS,
            r"2 seeds may be 3.1828 apart; there: processor a\x1b",
        ),
        ((20, 20), {"packages": {"torch": "0"}}, DIFFERS, "two of 2 seeds may be 0.0000 apart; there: torch 0"),
        ((20,), {"packages": {"torch": "0"}}, UNDECIDED, "published seeds: 1; there: torch 0"),
    ],
)
def test_one_that_was_made_elsewhere_is_held_against_other_seeds(
    small_project, capsys, right, elsewhere, verdict, told
):
    """By hand, t of 1 degree of freedom at 0.995 = 63.657: 100 % and 95 % have s √2 = 0.05."""

    def made_elsewhere(record):
        for part, facts in elsewhere.items():
            record[part] |= facts

    paths = [path for path in runs() if path.parent == runs()[0].parent][: len(right)]
    for path, correct in zip(paths, right):
        edit(path, lambda content, n=correct: content["seeds"][0]["test"]["none"].update(correct=[n], total=[20]))
        forge(record_path(path), made_elsewhere)
    publish_only(*paths)
    assert verify("--hours", hours(1.5)) == (verdict == DIFFERS)
    said = capsys.readouterr().out
    assert [*verdicts(said).values()] == [verdict]
    assert f"{told} (predicted" in said


def test_the_same_code_is_no_excuse_and_what_a_record_lacks_is_one():
    record = {"code": "a", "git": {"commit": "c"}, "hardware": {"processor": "x", "device": "cpu"}}
    record["packages"] = {"torch": "2"}
    told = ["processor None", "device None", "torch None"]
    for facts, conditions in (
        ({}, []),
        ({"code": "b"}, ["other code, of commit c"]),
        ({"packages": {}, "hardware": {}}, told),
    ):
        assert _other_conditions(SimpleNamespace(code="a"), record, record | facts) == conditions


def test_the_order_is_of_the_draw_and_what_cannot_be_trained_is_no_success(published, capsys):
    DATA.write_bytes(DATA.read_bytes()[:-1] + b"x")
    options = check_settings(yaml.safe_load(Path("config/config.yaml").read_text()))
    first = [next(outcomes(options, [crate()], 1.0, draw, 0.0)).run for draw in (0, 1, 2, 3, 0)]
    assert first[0] == first[4]
    assert len({*first}) > 1
    assert verify("--draw", 1) == 2
    said = capsys.readouterr()
    assert verdicts(said.out) == {first[1]: UNTRIED}
    assert f"{DATA}: not the bytes that its record holds" in said.out
    assert "no run of the sample could be trained" in said.err


def test_data_that_cannot_be_had_are_asked_for_once_and_the_remedy_is_told(published, commands, capsys):
    given, without = commands
    shutil.rmtree(DATA.parent)
    without.append(" dataset ")
    assert verify(crate()) == 2
    first, more = capsys.readouterr().out.splitlines()
    want = "not trained, mnist: no source serves it; put it into data/mnist/"
    assert f"{want} (predicted" in first
    assert more == f"3 more: {want}"
    assert [command[0] for command in given if "--out" in command] == ["dataset"]


def test_another_takes_the_turn_of_one_whose_stream_cannot_be_had_stacked_as_its_record_has_it(
    small_project, commands, capsys
):
    one, other = (str(path) for path in runs() if path.stem == "seed1")
    forge(record_path(Path(one)), lambda record: record.update(stacking=False))
    publish_all()
    commands[1].append("seed0.npz")
    assert verify("--hours", hours(2.5)) == 0
    said = capsys.readouterr().out
    assert verdicts(said).items() >= {one: SAME, other: SAME}.items()
    assert said.endswith("\n1 more: not trained, mnist: no source serves it; put it into data/mnist/\n")
    trained = [" ".join(command) for command in commands[0] if command[:1] == ["train"] and "seed1.json" in command[2]]
    assert sorted((one in line, "--stacking 1" in line) for line in trained) == [(False, True), (True, False)]


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


def said(code, capsys):
    """Raise the line that a command ended with."""
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    raise Refusal(err.removesuffix("\n"))


test_refused, _ = refusals.tests("builds", globals())
