"""The numbers as frames: as the pipeline's files have them, with units, and refused where not as recorded."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from world.published import forge

from clpapers import cli, results
from clpapers.cli.new import TEMPLATES
from clpapers.config.paths import method_path
from clpapers.config.plan import Plan
from clpapers.config.selected_runs import SelectedRuns
from clpapers.provenance import ProvenanceError, read_record, record_path, sha256
from clpapers.streams import older

TABLE1 = "mini/table1"


@pytest.fixture(autouse=True)
def built(here):
    """The small project, built."""


def test_metrics_are_the_files_with_units():
    found = results.metrics(TABLE1, "mini")
    pd.testing.assert_frame_equal(found.drop(columns="unit"), pd.read_csv("results/mini/metrics/mini/table1.csv"))
    assert set(found["unit"]) == {"%"}
    assert set(found["metric"]) >= {"final_accuracy", "chance_final_accuracy"}


def test_runs_on_a_stream_that_is_drawn_otherwise_now_name_its_file(monkeypatch):
    """As if the stream of seed 1 were one of the older ones."""
    plain = results.metrics(TABLE1, "mini")
    assert "stream" not in plain
    stream = next(Path("results/mini/streams").glob("*/*/seed1.npz"))
    monkeypatch.setitem(older.OTHER_ITEMS, sha256(stream), 7)
    assert cli.main(["metrics", "--out", "results/mini/metrics/mini/table1.csv"]) == 0
    found = results.metrics(TABLE1, "mini")
    assert set(zip(found["seed"], found["stream"])) == {(0, "as drawn now"), (1, sha256(stream)[:10])}
    pd.testing.assert_frame_equal(found.drop(columns="stream"), plain)


def test_their_mean_is_the_reproduced_number():
    """Through pandas alone here, through the table's own summary there."""
    (line,) = results.compare(TABLE1, "mini").to_dict("records")
    measured = results.metrics(TABLE1, "mini")
    values = measured[(measured["learner"] == "er") & (measured["metric"] == "final_accuracy")]["value"]
    assert (line["row"], line["column"], line["metric"], line["unit"]) == ("ER", "MNIST", "final_accuracy", "%")
    assert line["ours"] == pytest.approx(values.mean(), rel=1e-9)
    assert (line["printed"], line["n_seeds"], line["verdict"]) == (80.1, 2, "not comparable")
    assert line["difference"] == pytest.approx(values.mean() - 80.1)


def test_what_is_printed_needs_no_results_and_a_curve_has_its_axis():
    assert np.isfinite(results.metrics("mini/figure1", "mini")["time"]).any()
    (line,) = results.printed(TABLE1, "paper").to_dict("records")
    assert (line["value"], line["half_width"], line["n"], line["unit"]) == (80.1, 0.5, 20, "%")


def test_runs_have_their_settings_and_what_they_took():
    found = results.runs(TABLE1, "mini")
    measured = results.metrics(TABLE1, "mini")
    assert set(zip(found["cell"], found["seed"])) == set(zip(measured["cell"], measured["seed"]))
    assert len(found) == 4
    assert set(found["learner.name"]) == {"er", "ace"}
    assert set(found["budget.memory"]) == {10}
    for line in found.to_dict("records"):
        record = read_record(line["file"])
        assert line["training_seconds"] == record["training_seconds"][str(line["seed"])]
        assert line["started"] == pd.Timestamp(record["started"])
        assert TABLE1 in line["targets"]
    assert len(results.runs("mini", "mini")) == len(results.runs(scale="mini")) >= 4


def test_of_a_seed_that_was_not_trained_here_the_imported_run_counts():
    before = results.runs(TABLE1, "mini")
    for file in map(Path, before["file"]):
        place = Path(file.as_posix().replace("/runs/", "/imported/"))
        place.parent.mkdir(parents=True, exist_ok=True)
        for each in (file, record_path(file)):
            shutil.copy(each, place.with_name(each.name))
    assert results.runs(TABLE1, "mini").equals(before)
    gone = before["file"][0]
    Path(gone).unlink()
    after = results.runs(TABLE1, "mini")
    assert after["file"].tolist() == [gone.replace("/runs/", "/imported/"), *before["file"][1:]]
    assert after.drop(columns="file").equals(before.drop(columns="file"))


def test_runs_are_found_whatever_seeds_share_a_file(here):
    """A build that chooses its runs trains neighbouring seeds of a cell together."""
    before = results.runs(TABLE1, "mini")
    folder = Path(before["file"][0]).parent
    for file in folder.iterdir():
        file.unlink()
    assert cli.main(["train", "--out", str(folder / "seeds0-1.json")]) == 0
    after = results.runs(TABLE1, "mini")
    pairs = [set(zip(each["cell"], each["seed"])) for each in (before, after)]
    assert pairs[0] == pairs[1]
    assert set(after["file"]) - set(before["file"]) == {str(folder / "seeds0-1.json")}


def test_methods_and_seeds_are_those_of_the_targets_last_build(here):
    """Its record names the choice of runs."""
    copy = method_path("mini", "mine", "0123456789")
    copy.parent.mkdir()
    shutil.copy(TEMPLATES / "method.py", copy)
    chosen = SelectedRuns(methods=(str(copy),))
    record = record_path("results/mini/metrics/mini/table1.csv")
    file = str(chosen.write("mini"))
    forge(record, lambda content: content.update(choice=file))
    plan = Plan("mini", ["mini"], choice=chosen)
    (own,) = {cell for _, cell in plan.targets[TABLE1].cells if cell.method}
    assert not (results.runs(TABLE1, "mini")["cell"] == own.hash).any()
    other = Path(results.runs(TABLE1, "mini")["file"][0])
    own.folder.mkdir(parents=True)
    for file in (other, record_path(other)):
        shutil.copy(file, own.folder)
    assert (results.runs(TABLE1, "mini")["cell"] == own.hash).sum() == 1


ASKED = """
import asyncio, sys
from concurrent.futures import ThreadPoolExecutor
from clpapers import results

name, scale = "mini/table1", "mini"
asked = [getattr(results, ask) for ask in ("metrics", "printed", "compare", "runs")]
asked = [lambda ask=ask: ask(name, scale) for ask in asked] + [
    lambda: results.lineage(name, scale=scale), lambda: results.lineage(name, "ACE", "MNIST", scale)]

def never(event, given):
    if event == "os.chdir":
        raise AssertionError("the working folder belongs to the whole process")

async def in_loop():
    return await asyncio.gather(*(asyncio.to_thread(ask) for ask in asked * 4))

sys.addaudithook(never)
wanted = [ask() for ask in asked] * 4
with ThreadPoolExecutor(8) as threads:
    for found in (list(threads.map(lambda ask: ask(), asked * 4)), asyncio.run(in_loop())):
        assert all(one.equals(other) for one, other in zip(found, wanted, strict=True))
"""


def test_threads_ask_from_any_folder_and_the_working_one_is_never_changed(here, tmp_path_factory):
    away, environment = tmp_path_factory.mktemp("away"), os.environ | {"PYTHONPATH": str(here / "src")}
    subprocess.run([sys.executable, "-c", ASKED], cwd=away, env=environment, check=True)
    assert list(away.iterdir()) == []


def test_lineage_has_a_line_a_file_down_to_the_data():
    found = results.lineage(TABLE1, scale="mini").set_index("path")
    assert found.index.is_unique
    assert set(found["state"]) == {"as recorded", "no record"}  # config/reported
    assert list(found[found["depth"] == 0].index) == ["results/mini/targets/mini/table1.csv"]
    data = found.loc["results/mini/datasets/mnist.npz"]
    assert json.loads(data["data"]).keys() == {"mnist"}
    assert data["sha256"] == sha256("results/mini/datasets/mnist.npz")
    assert data["reader"].startswith("results/mini/runs/mnist/")
    assert (found["stage"] == "runs").sum() == 6  # with the two of ER's search
    narrowed = results.lineage(TABLE1, "ACE", "MNIST", "mini")
    assert (narrowed["stage"] == "runs").sum() == 2
    assert found["started"].dt.tz is not None


def test_what_was_edited_is_refused_or_told():
    file = Path("results/mini/metrics/mini/table1.csv")
    file.write_text(file.read_text().replace("10", "99"))
    with pytest.raises(ProvenanceError, match=r"table1\.csv: not the bytes that its record holds"):
        results.metrics(TABLE1, "mini")
    found = results.lineage(TABLE1, scale="mini").set_index("path")
    assert found.loc[str(file), "state"] != "as recorded"


def test_the_console_takes_the_same_names(capsys):
    assert cli.main(["lineage", TABLE1, "--scale", "mini"]) == 0
    by_name = capsys.readouterr().out
    assert cli.main(["lineage", "results/mini/targets/mini/table1.csv"]) == 0
    assert capsys.readouterr().out == by_name
    assert cli.main(["lineage", TABLE1, "--scale", "mini", "--cell", "ER,MNIST"]) == 0
    assert capsys.readouterr().out.startswith("ER, MNIST\n")
    assert cli.main(["lineage", "mini", "--scale", "mini", "--json"]) == 0
    told = [node["path"] for node in json.loads(capsys.readouterr().out)]
    assert {"results/mini/targets/mini/table1.csv", "results/mini/targets/mini/figure1.pdf"} <= set(told)
