"""What a scale knows of data sets and of weights, and how its targets depart from the paper's scale."""

from pathlib import Path

import numpy as np
import pytest
import yaml
from tiny_paper import PAPER, SCALE, edit, of_table, plan

from clpapers.cli import main
from clpapers.config.plan import Plan
from clpapers.config.reductions import reductions
from clpapers.datasets.arrays import instances
from clpapers.streams.stream import load

pytestmark = pytest.mark.usefixtures("folder")


def test_a_cell_names_the_weights_that_its_net_starts_from():
    edit(PAPER, "name: cnn, width: 2", "name: resnet18, width: 64, pool: true, head: linear, weights: imagenet")
    found = {cell.spec["dataset"]: cell.weights for cell in plan().cells.values()}
    assert found == {"mnist": None, "cifar10": Path("results/tiny/weights/resnet18_imagenet.npz")}


def test_a_data_set_of_features_is_described_by_what_it_is_made_of():
    edit(SCALE, "stand_ins:", "features: {size: 40}\nstand_ins:", "datasets: {mnist:", "datasets: {cifar100_resnet50:")
    edit(PAPER, "  mnist: {net:", "  cifar100_resnet50: {scaling: none, net:")
    edit(PAPER, "dataset: [mnist", "dataset: [cifar100_resnet50", "nets: [mnist]", "nets: [cifar10]")
    mine, real = plan(), Plan("real", ["tiny"])
    facts = mine.datasets["cifar100_resnet50"]
    assert (facts["shape"], len(facts["classes"]), facts["instances"]) == ([1, 1, 2048], 20, 5)
    assert (facts["train"], facts["test"]) == (6_000, 2_000)
    sizes = {levels: cell.spec.get("features", {}).get("size") for levels, cell in of_table(mine).items()}
    assert {dataset: size for (dataset, _), size in sizes.items()} == {"cifar100_resnet50": 40, "cifar10": None}
    told = reductions(mine.targets["tiny/table1"], real.targets["tiny/table1"])
    assert told == ["cifar100_resnet50: order.length 30 (paper: all), features.size 40 (paper: 224)"]


def test_a_stream_of_instances_is_made_from_what_the_data_set_recorded(capsys):
    edit(PAPER, "  cifar10: {net", "  icubworld: {net: {name: mlp, hidden: [4]}}\n  cifar10: {net")
    edit(PAPER, "toy-3-2, order: {name: split, tasks: 2}", "icubworld, order: {name: instances, burst: 2}")
    edit(SCALE, "  mnist: {train", "  icubworld: {train_per_class: 9, test_per_class: 1}\n  mnist: {train")
    data, out = "results/tiny/datasets/icubworld.npz", "results/tiny/streams/icubworld/instances-2/seed0.npz"
    for stage, file in (("dataset", data), ("stream", out)):
        assert main([stage, "--out", file]) == 0, capsys.readouterr().err
    made, (instance, frame) = load(out, 90), instances(data)
    bursts = [(instance[part], frame[part]) for part in np.split(made.indices, made.boundaries)]
    told = sorted((shown.tolist(), places.tolist()) for shown, places in bursts)
    assert told == sorted(each for i in range(30) for each in (([i, i], [0, 1]), ([i], [2])))


def test_the_sizes_of_classes_are_known_of_whole_real_sets_alone():
    real, mine = Plan("real", ["tiny"]), plan()
    assert real.class_sizes("mnist")["test"][:2] == [980, 1135]
    assert real.class_sizes("cifar100") == {"train": [500] * 100, "test": [100] * 100}
    assert real.class_sizes("emnist") == {"train": [2400] * 47, "test": [400] * 47}  # whose checksum is not known
    assert real.class_sizes("cub200") is None  # not declared
    assert mine.class_sizes("mnist") is None  # stand-ins
    assert mine.class_sizes("toy-3-2") == {"train": [3, 2]}
    real.settings["partial_data"] = True
    assert real.class_sizes("mnist") is None


CASES = yaml.safe_load(Path(__file__).with_name("reductions.yaml").read_text())


@pytest.mark.parametrize("case", CASES)
def test_reductions_tell_each_difference_from_the_papers_scale_once(folder, case):
    for file, old, new in case["edits"]:
        edit({"paper": PAPER, "scale": SCALE}[file], old, new)
    ours, theirs = plan().targets, Plan("real", ["tiny"]).targets
    for name, lines in case["told"].items():
        assert reductions(ours[f"tiny/{name}"], theirs[f"tiny/{name}"]) == lines
    assert not any(reductions(target, target) for target in theirs.values())
