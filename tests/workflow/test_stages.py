"""Stages between images and runs: weights, features of images, and a selection that runs take their values from."""

import json

from world import METRICS, PAPER, SCALE, TABLE

IMAGES, WEIGHTS, FEATURES, START = (
    f"results/mini/{name}.npz"
    for name in (
        "datasets/cifar100",
        "weights/resnet50_imagenet",
        "datasets/cifar100_resnet50",
        "weights/resnet18_imagenet",
    )
)
NET = "{name: resnet18, width: 64, pool: true, head: linear, weights: imagenet}"


def test_weights_and_features_are_made_for_those_that_need_them_and_stand_ins_are_told(project):
    """Features of one data set, made of images and weights; on another a net that starts from weights."""
    project.edit(
        PAPER,
        *("mnist: {net: {name: mlp, hidden: [4]}", "cifar100_resnet50: {net: {name: mlp, hidden: [4]}, scaling: none"),
        *("{name: cnn, width: 2}", f"{NET}, scaling: imagenet"),
        *("[mnist], learner: [er, ace]", "[cifar100_resnet50, cifar10], learner: [er]"),
        *("dataset: mnist, seed", "dataset: cifar100_resnet50, seed"),
    )
    project.edit("config/reported/mini.csv", "ER,MNIST", "ER,cifar100_resnet50")
    cifar10, cifar100 = (f"{{train_per_class: {many}, test_per_class: 1}}" for many in (3, 1))
    scale = f"features: {{size: 32}}\nstand_ins:\n  cifar100: {cifar100}\n  cifar10: {cifar10}\n"
    project.edit(SCALE, "stand_ins:\n", scale, "seeds: 0-1", "seeds: 0-0")
    planned = project.plan(TABLE)
    assert planned.count(START) == 1
    places = [planned.index(path) for path in (IMAGES, WEIGHTS, FEATURES)]
    assert max(places[:2]) < places[2] < min(i for i, path in enumerate(planned) if "/streams/cifar100_" in path)
    assert sum("/runs/cifar100_resnet50/" in path for path in planned) == 1

    project.build(TABLE)
    assert project.plan(TABLE) == []
    record = json.loads(project.read(FEATURES.replace("npz", "record.json")))
    assert [entry["path"] for entry in record["inputs"]] == [IMAGES, WEIGHTS]
    assert record["data"].keys() == {"cifar100", "resnet50_imagenet"}
    for path in (project.folder / "results/mini/runs").rglob("seed0.record.json"):
        record, starts = json.loads(path.read_text()), "cifar10" in path.parts
        assert (START in [entry["path"] for entry in record["inputs"]]) == starts
        assert ("resnet18_imagenet" in record["data"]) == starts
    text = project.read(TABLE.replace("csv", "md")).replace("\\_", "_")
    for name in ("cifar10", "cifar100_resnet50"):
        assert f"{name}: synthetic, random instead of trained weights" in text
    assert "icubworld" not in text  # features of other images, of no concern here
    assert "features.size 32 (paper: 224)" in text
    assert "data resnet18_imagenet from standin" in project.clpapers("lineage", TABLE).stdout
    told = project.clpapers("dataset", "--out", FEATURES)
    assert (told.returncode, told.stdout) == (2, f"clpapers: {FEATURES}: clpapers features makes it, not dataset\n")

    title = "title: ResNet-50 trained", "title: A ResNet-50 trained"
    for file, edit, anew, as_before in (
        ("config/weights.yaml", title, {WEIGHTS, FEATURES}, {IMAGES, START}),
        (SCALE, ("size: 32", "size: 33"), {FEATURES}, {IMAGES, WEIGHTS, START}),
    ):
        project.edit(file, *edit)
        planned = {*project.plan(TABLE)}
        assert anew <= planned
        assert not as_before & planned
        assert sum("/runs/cifar100_resnet50/" in path for path in planned) == 1
        assert not any("/runs/cifar10/" in path for path in planned)
        project.edit(file, *edit[::-1])


def test_a_run_takes_what_a_selection_found(searched, tmp_path):
    """Evaluation takes the better of two learning rates, and its record leads back to the search."""
    selection = "results/mini/selection/mini/mnist-er.json"
    found = json.loads(searched.read(selection))
    best = max(found["scores"], key=lambda point: point["score"])
    assert found["selected"] == best["values"]
    rate = best["values"]["budget.learning_rate"]
    chosen = []
    for run in searched.runs("er"):
        record = json.loads(searched.read(run.replace(".json", ".record.json")))
        if selection in [item["path"] for item in record["inputs"]]:
            chosen.append(json.loads(searched.read(run))["cell"])
    assert [(cell["budget"]["learning_rate"], "selection" in cell) for cell in chosen] == [(rate, True)] * 2
    project = searched.copy(tmp_path / "project")
    assert project.plan(METRICS) == []
    project.edit(PAPER, "[1.0e-9, 0.1]", "[1.0e-9, 0.2]")
    assert sum("/selection/" in path for path in project.plan(METRICS)) == 1
