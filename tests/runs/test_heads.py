"""The joint-embedding head: by hand, and as a plain linear head where attributes are one-hot."""

import dataclasses

import numpy as np
import pytest
import torch
from test_importances import EWC as RUNNING_EWC
from test_importances import MAS_PUBLISHED
from tiny import CHUNKS, CPU, EMBEDDING, OPTIONS, RESNET, Way, images, known, made, two_tasks

from clpapers.runs import loop, nets
from clpapers.runs.nets import heads

DATA = images(classes=4, items=7, shape=(8, 8, 1))
ONE_HOT = dataclasses.replace(DATA, attributes=np.eye(4, dtype=np.float32))


def test_logits_by_hand():
    """φ = (1, 2), W = ((1, 0), (0, 1), (1, 1)) and A = ((1, 0, 1), (0, 2, 0)): AW = ((2, 1), (0, 2))."""
    head = heads.make("joint_embedding", 2, 2, torch.tensor([[1.0, 0, 1], [0, 2, 0]]))
    head.weight.data = torch.tensor([[1.0, 0], [0, 1], [1, 1]])
    head.bias.data = torch.tensor([10.0, 20])
    assert head(torch.tensor([[1.0, 2]])).tolist() == [[14, 24]]


def test_it_begins_as_in_the_authors_code_and_learns_no_attributes():
    table = torch.from_numpy(known(50, 85))
    head = heads.make("joint_embedding", 160, 50, table)
    assert head.weight.abs().max() <= 0.2
    assert head.weight.std().item() == pytest.approx(0.088, rel=0.05)
    assert head.bias.tolist() == pytest.approx([0.1] * 50)
    assert {name: tuple(p.shape) for name, p in head.named_parameters()} == {"weight": (85, 160), "bias": (50,)}
    assert torch.equal(head.attributes, table)


TREATED = {name: {"name": name, **OPTIONS[name]} for name in ("single", "icarl", "ewc", "a_gem", "gmed")}
TREATED |= {"running ewc": RUNNING_EWC, "mas by item": MAS_PUBLISHED}


@pytest.mark.parametrize("name", TREATED)
def test_learners_treat_it_as_a_linear_head(name):
    """From the same weights on, with one-hot attributes, to the same net after two tasks: below the head, in its
    gradients, those of items or of a memory."""
    ways = []
    for net in (RESNET, EMBEDDING):
        spec = two_tasks(TREATED[name], net, oracle=CHUNKS, train="oracle", learning_rate=0.02)
        ways.append(Way(spec, ONE_HOT, [made(spec, DATA)]))
    plain, ours = (way.learner.net for way in ways)
    start = {name: value.clone() for name, value in plain.state_dict().items()}
    ours.load_state_dict(start | {k: v for k, v in ours.state_dict().items() if k not in start})
    for way in ways:
        way.walk()
    assert not torch.equal(start["net.head.weight"], plain.net.head.weight)
    for mine, theirs in zip(ours.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("learner", ["gr", "multi_model", "prog_nn", "a_gem"])
def test_what_is_known_of_the_classes_tells(learner):
    """Also to learners that make nets themselves."""
    spec = two_tasks({"name": learner, **OPTIONS[learner]}, EMBEDDING, oracle=CHUNKS, train="oracle", batch=14)
    other = dataclasses.replace(DATA, attributes=DATA.attributes[::-1].copy())
    first, second = (loop.train(spec, data, {0: made(spec, DATA)}, CPU)[0]["online"] for data in (DATA, other))
    assert first != second


def test_it_is_described_with_its_sizes():
    """agem, Figure 9: P parameters below, and A × D above (with a bias a class)."""
    spec = {"name": "resnet18", "width": 64, "pool": True, "head": "joint_embedding", "weights": "imagenet"}
    last = nets.describe(spec, (3, 224, 224), 200, 312)["layers"][-1]
    assert (last["layer"], last["output"]) == ("JointEmbedding(512, 312)", [200])
    assert last["parameters"] == 312 * 512 + 200


def test_each_output_has_the_attributes_of_its_class_in_its_seed():
    """Where a class has an output in each of its tasks, all of them are embedded alike, and seeds differ."""
    order = {"name": "split_overlapping", "tasks": 2, "per_task": 4, "first": 0, "last": 3, "length": None}
    spec = two_tasks({"name": "single"}, EMBEDDING, oracle=CHUNKS, order=order, train="oracle")
    way = Way(spec, DATA, [made(spec, DATA, seed) for seed in (0, 1, 2)])
    classes = [c.class_of_output for c in way.scenarios]
    assert len({tuple(each) for each in classes}) > 1
    assert max(np.bincount(each).max() for each in classes) > 1
    expected = torch.from_numpy(np.stack([DATA.attributes[each] for each in classes]))
    torch.testing.assert_close(way.walk(until=2).net.net.head.attributes, expected.double())
