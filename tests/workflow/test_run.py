"""Whole runs through Snakemake: plans at each scale, everything built, nothing built twice, equal bytes elsewhere."""

import hashlib
import html
import json
import os
import re
import signal

import pytest
from project import PARTS, TIMEOUT, processes, until


@pytest.mark.parametrize(("scale", "paper"), [("smoke", "desiderata"), ("paper", "stf")])
def test_the_whole_of_a_paper_can_be_planned(whole, scale, paper):
    planned = whole.plan("--config", f"scale={scale}", f"papers=[{paper}]", "hours=all")
    stages = {path.split("/")[2] for path in planned}
    assert ("gans" in stages) == (paper == "desiderata")
    assert stages - {"selection", "weights", "gans"} == {"datasets", "streams", "runs", "metrics", "targets"}
    assert all(path.startswith(f"results/{scale}/") for path in planned)
    assert len(planned) == len(set(planned))


def test_a_target_can_be_asked_for_at_another_scale(whole):
    planned = whole.plan("results/paper/targets/stf/table1.csv", "--config", "scale=smoke", "papers=[stf]")
    assert "results/paper/targets/stf/table1.csv" in planned
    assert all(path.startswith("results/paper/") for path in planned)


def test_a_target_of_a_paper_that_is_not_configured_can_be_asked_for(whole):
    assert "results/smoke/targets/stf/table1.csv" in whole.plan("results/smoke/targets/stf/table1.csv")


def test_rules_and_commands_agree_on_the_blocks_of_seeds(project):
    """A GPU trains all seeds as one stack where the scale says `auto`; what measures must look for the same files."""
    project.edit("config/scales/mini.yaml", "seeds_per_job: 1", "seeds_per_job: auto")
    project.edit(
        "config/papers/mini.yaml", "mnist: {net: {name: mlp, hidden: [4]}}", "mnist: {net: {name: cnn, width: 2}}"
    )
    for device, gpus, blocks in (("cpu", "0", {"seed0", "seed1"}), ("cuda", "1", {"seeds0-1"})):
        planned = project.plan("--config", f"device={device}")
        assert {path.split("/")[-1].split(".")[0] for path in planned if "/runs/mnist/" in path} == blocks
        measured = project.clpapers("metrics", "--out", "results/mini/metrics/mini/table1.csv", "--gpus", gpus)
        assert re.search(r"runs/mnist/\S+/(seeds?[\d-]+)\.json: No such file", measured.stdout)[1] == min(blocks)


def test_a_job_trains_a_block_of_seeds_and_a_seeds_stream_serves_all_cells(project):
    """What very many runs are planned by: jobs and files grow with blocks and seeds, not with runs."""
    project.edit("config/scales/mini.yaml", "seeds: 0-1\nseeds_per_job: 1", "seeds: 0-39\nseeds_per_job: 20")
    planned = project.plan("results/mini/metrics/mini/table1.csv")
    trained = [path.split("/")[-2:] for path in planned if "/runs/" in path]
    assert len({cell for cell, _ in trained}) == 2
    assert sorted(block for _, block in trained) == ["seeds0-19.json"] * 2 + ["seeds20-39.json"] * 2
    assert len([path for path in planned if "/streams/" in path]) == 40


def test_everything_is_built(finished):
    expected = {
        *(f"{table}.{ending}" for table in ("table1", "table2") for ending in ("csv", "md", "tex", "html")),
        *(f"figure1.{ending}" for ending in ("pdf", "svg", "png", "caption.md", "caption.tex")),
        *("table1.reported.csv", "table1.paired.csv"),
    }
    built = {path.name for path in (finished.folder / "results/mini/targets/mini").iterdir()}
    assert {name for name in built if not name.endswith(".record.json")} == expected
    index = (finished.folder / "results/mini/runs/index.csv").read_text()
    assert len(re.findall(r",mini/table1,", index)) == 2  # its cells


def test_each_paper_describes_its_own_nets(finished):
    """`stf` learns CIFAR-10 with another net than `mini` does."""
    described = json.loads((finished.folder / "results/mini/runs/nets/mini/cifar10.record.json").read_text())
    assert described["net"] == {"name": "cnn", "width": 2}


def test_every_result_has_a_record_and_every_record_is_true(finished):
    recorded = set()
    for path in (finished.folder / "results").rglob("*.record.json"):
        record = json.loads(path.read_text())
        recorded |= {entry["path"] for entry in record["outputs"]}
        for entry in record["inputs"] + record["outputs"]:
            content = (finished.folder / entry["path"]).read_bytes()
            assert entry["sha256"] == hashlib.sha256(content).hexdigest(), (path, entry["path"])
            assert entry["bytes"] == len(content)
    assert recorded == finished.results().keys()


def test_whatever_descends_from_a_stand_in_says_so(finished):
    for path in (finished.folder / "results").rglob("*.record.json"):
        unrelated = path.name.startswith(("table2.", "index.", "cifar10.")) or "toy" in str(path)
        standins = [name for name, facts in json.loads(path.read_text())["data"].items() if facts["standin"]]
        assert standins == ([] if unrelated else ["mnist"]), path
    for ending in ("md", "tex", "html"):
        text = (finished.folder / f"results/mini/targets/mini/table1.{ending}").read_text()
        assert "Stand-in data, not the paper's" in html.unescape(text), ending


def test_the_command_in_a_record_makes_the_same_file_by_hand(built):
    name = "results/mini/targets/mini/table1.csv"
    before = built.results()
    command = json.loads((built.folder / name).with_name("table1.record.json").read_text())["command"]
    for ending in ("csv", "md", "tex", "html"):
        (built.folder / name).with_suffix(f".{ending}").unlink()
    assert built.clpapers(*command.split()[1:]).returncode == 0
    assert built.results() == before


def test_lineage_reaches_the_data(finished):
    done = finished.clpapers("lineage", "results/mini/targets/mini/table1.md")
    lines = done.stdout.splitlines()
    assert done.returncode == 0
    assert lines[0].startswith("results/mini/targets/mini/table1.md")
    assert sum("/runs/mnist/" in line and line.strip().startswith("results") for line in lines) == 4
    assert any("data mnist from standin" in line for line in lines)
    assert not re.search("CHANGED|MISSING|NOT AS RECORDED", done.stdout)


def test_a_second_run_does_nothing(built):
    before = built.results()
    assert "Nothing to be done" in built.build()
    assert built.results() == before


def test_two_runs_give_the_same_bytes_and_a_third_beside_one_is_refused(finished, project):
    leader = project.start()
    until(lambda: processes(leader, "dataset"), leader)
    os.killpg(leader.pid, signal.SIGSTOP)  # it might end before the other has begun
    beside = project.snakemake("all", "--cores", "1")
    os.killpg(leader.pid, signal.SIGCONT)
    assert beside.returncode == 1
    assert "another build is at work in this folder" in beside.stdout
    assert leader.wait(TIMEOUT) == 0
    ours, theirs = project.results(), finished.results()
    assert ours.keys() == theirs.keys()
    assert [name for name in ours if ours[name] != theirs[name]] == []


def test_results_and_records_are_the_same_without_the_server_of_the_jobs(finished, project, monkeypatch):
    monkeypatch.setenv("CLPAPERS_SERVER", "0")
    project.build()
    assert project.results() == finished.results()
    own = {"started", "seal", "wall_seconds", "cpu_seconds", "peak_memory_bytes", "training_seconds", "testing_seconds"}

    def told(folder, name):
        record = json.loads((folder / name).read_text())
        records = [entry.pop("record", None) for entry in record["inputs"]]
        return {key: value for key, value in record.items() if key not in own}, [bool(each) for each in records]

    names = [path.relative_to(project.folder) for path in (project.folder / "results").rglob("[!.]*.record.json")]
    assert names
    for name in names:
        assert told(project.folder, name) == told(finished.folder, name)


def test_weights_that_a_net_starts_from_are_a_stage_and_a_stand_in_is_told(project):
    """Made for the runs that start from them and no others; what descends from them says so."""
    weights, table = "results/mini/weights/resnet18_imagenet.npz", "results/mini/targets/mini/table1.md"
    net = "{name: resnet18, width: 64, pool: true, head: linear, weights: imagenet}"
    project.edit("config/papers/mini.yaml", "{name: cnn, width: 2}", f"{net}, scaling: imagenet")
    project.edit("config/papers/mini.yaml", "[mnist], learner: [er, ace]", "[mnist, cifar10], learner: [er]")
    project.edit("config/scales/mini.yaml", "  mnist:", "  cifar10: {train_per_class: 3, test_per_class: 1}\n  mnist:")
    project.edit("config/scales/mini.yaml", "seeds: 0-1", "seeds: 0-0")
    assert project.plan(table).count(weights) == 1
    done = project.snakemake(table, "--cores", "1")
    assert done.returncode == 0, done.stdout
    for path in (project.folder / "results/mini/runs").rglob("seed0.record.json"):
        record, starts = json.loads(path.read_text()), "cifar10" in path.parts
        assert (weights in [entry["path"] for entry in record["inputs"]]) == starts
        assert ("resnet18_imagenet" in record["data"]) == starts
    text = (project.folder / table).read_text()
    assert "mnist: synthetic" in text.replace("MNIST", "mnist")
    assert "cifar10: synthetic, random instead of trained weights" in text
    assert "data resnet18_imagenet from standin" in project.clpapers("lineage", table).stdout


def test_features_are_made_of_images_and_weights_and_their_stand_ins_are_told(project):
    """One more stage stands between data set and streams; below stands what images, weights and size are."""
    images, weights, made = (
        f"results/mini/{name}.npz"
        for name in ("datasets/cifar100", "weights/resnet50_imagenet", "datasets/cifar100_resnet50")
    )
    table = "results/mini/targets/mini/table1.md"
    mnist = "mnist: {net: {name: mlp, hidden: [4]}"
    project.edit("config/papers/mini.yaml", mnist, f"cifar100_resnet50{mnist.removeprefix('mnist')}, scaling: none")
    project.edit("config/papers/mini.yaml", "[mnist], learner: [er, ace]", "[cifar100_resnet50], learner: [er]")
    project.edit("config/papers/mini.yaml", "dataset: mnist, seed", "dataset: cifar100_resnet50, seed")
    project.edit("config/reported/mini.csv", "ER,MNIST", "ER,cifar100_resnet50")
    scale = "features: {size: 32}\nstand_ins:\n  cifar100: {train_per_class: 1, test_per_class: 1}\n"
    project.edit("config/scales/mini.yaml", "stand_ins:\n", scale)
    planned = project.plan(table)
    places = [planned.index(path) for path in (images, weights, made)]
    assert max(places[:2]) < places[2] < min(i for i, path in enumerate(planned) if "/streams/" in path)
    assert sum("/runs/cifar100_resnet50/" in path for path in planned) == 2

    done = project.snakemake(table, "--cores", "2")
    assert done.returncode == 0, done.stdout
    record = json.loads((project.folder / made).with_suffix(".record.json").read_text())
    assert [entry["path"] for entry in record["inputs"]] == [images, weights]
    assert record["data"].keys() == {"cifar100", "resnet50_imagenet"}
    text = (project.folder / table).read_text().replace("\\_", "_")
    assert "cifar100_resnet50: synthetic, random instead of trained weights" in text
    assert "icubworld" not in text  # features of other images, of no concern here
    assert "features.size 32 (paper: 224)" in text
    assert project.plan(table) == []
    told = project.clpapers("dataset", "--out", made)
    assert (told.returncode, told.stdout.count("\n")) == (2, 1)
    assert told.stdout == f"clpapers: {made}: clpapers features makes it, not dataset\n"

    project.edit("config/weights.yaml", "title: ResNet-50 trained", "title: A ResNet-50 trained")
    planned = project.plan(table)
    assert {weights, made} <= set(planned)
    assert images not in planned
    assert sum("/runs/cifar100_resnet50/" in path for path in planned) == 2
    project.edit("config/weights.yaml", "title: A ResNet-50 trained", "title: ResNet-50 trained")
    project.edit("config/scales/mini.yaml", "size: 32", "size: 33")
    planned = project.plan(table)
    assert made in planned
    assert not {images, weights} & set(planned)


def test_nothing_is_written_outside_results(finished):
    assert {path.name for path in finished.folder.iterdir()} == {*PARTS, "results", ".snakemake"}


def test_a_run_takes_what_a_selection_found(project):
    """Evaluation takes the better of two learning rates, and its record leads back to the search."""
    project.edit(
        "config/papers/mini.yaml",
        "targets:\n",
        "selection:\n  use: cross_validated\n  metric: online_accuracy\n  seeds: 70-70\n  datasets: {mnist: {}}\n"
        "  grid: {er: {budget.learning_rate: [1.0e-9, 0.1]}}\ntargets:\n",
    )
    metrics = "results/mini/metrics/mini/table1.csv"
    done = project.snakemake(metrics, "--cores", "2")
    assert done.returncode == 0, done.stdout
    found = json.loads((project.folder / "results/mini/selection/mini/mnist-er.json").read_text())
    best = max(found["scores"], key=lambda point: point["score"])
    assert found["selected"] == best["values"]
    rate = best["values"]["budget.learning_rate"]
    runs = list((project.folder / "results/mini/runs/mnist").rglob("er-*/seed0.json"))
    cells = [json.loads(path.read_text())["cell"] for path in runs]
    assert [(cell["budget"]["learning_rate"], "selection" in cell) for cell in cells] == [(rate, True)]
    record = json.loads(runs[0].with_name("seed0.record.json").read_text())
    assert "results/mini/selection/mini/mnist-er.json" in [item["path"] for item in record["inputs"]]
    assert project.plan(metrics) == []
    project.edit("config/papers/mini.yaml", "[1.0e-9, 0.1]", "[1.0e-9, 0.2]")
    assert sum("/selection/" in path for path in project.plan(metrics)) == 1
