"""The joint-embedding head: by hand, as a plain linear head where attributes are one-hot, and under every learner."""

import dataclasses

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from test_importances import EWC as RUNNING_EWC
from test_importances import MAS_PUBLISHED, PI, RWALK
from tiny import CPU, EMBEDDING, OPTIONS, RESNET, Way, images, known, made, two_tasks
from torch import nn

from clpapers.runs import loop, nets
from clpapers.runs.nets import heads
from clpapers.runs.nets.stacked import stack

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


@pytest.mark.parametrize("seeds", [[0], [0, 1, 2]], ids=len)
def test_with_one_hot_attributes_it_is_the_linear_head(seeds):
    """Logits, gradients and one descent step; classes are attributes in another sequence for each seed."""
    features = torch.rand(5, len(seeds) * 3, dtype=torch.float64)
    tables = [torch.eye(4, dtype=torch.float64)[torch.randperm(4)] for _ in seeds]
    plain = stack(lambda: nn.Linear(3, 4), seeds).double().net
    ours = stack(lambda table: heads.make("joint_embedding", 3, 4, table), seeds, tables).double().net
    lookups = torch.stack(tables).view(*ours.attributes.shape).mT
    ours.weight.data, ours.bias.data = lookups @ plain.weight.data, plain.bias.data.clone()
    y = torch.randint(0, 4, (5 * len(seeds),))
    for head in (plain, ours):
        said = head(features)
        F.cross_entropy(said.view(-1, 4), y).backward()
        head.said = said.detach()
        with torch.no_grad():
            for p in head.parameters():
                p -= 0.1 * p.grad
    torch.testing.assert_close(ours.said, plain.said)
    torch.testing.assert_close(ours.weight.detach(), lookups @ plain.weight.detach())
    torch.testing.assert_close(ours.bias, plain.bias)


VARIANTS = [
    *(
        (name, {"name": name, **OPTIONS[name]})
        for name in ("single", "er", "mir", "gmed", "ace", "icarl", "multi_task")
    ),
    *((name, {"name": name, **OPTIONS[name]}) for name in ("gem", "s_gem", "a_gem", "cbrs", "gdumb")),
    ("ewc of the last batch", {"name": "ewc", **OPTIONS["ewc"]}),
    ("running ewc", RUNNING_EWC),
    ("pi", PI),
    ("mas", {"name": "mas", **OPTIONS["mas"]}),
    ("mas by item", MAS_PUBLISHED),
    ("rwalk", RWALK),
]


@pytest.mark.parametrize(("name", "learner"), VARIANTS, ids=[name for name, _ in VARIANTS])
def test_every_learner_treats_it_as_a_linear_head(name, learner):
    """From the same weights on, with one-hot attributes, to the same net after two tasks."""
    ways = []
    for net in (RESNET, EMBEDDING):
        spec = two_tasks(learner, net, oracle={"name": "chunks"}, train="oracle", learning_rate=0.02)
        seeds = (0,) if name == "icarl" else (0, 1)
        ways.append(Way(spec, ONE_HOT, [made(spec, DATA, seed) for seed in seeds]))
    plain, ours = (way.learner.net for way in ways)
    start = {name: value.clone() for name, value in plain.state_dict().items()}
    ours.load_state_dict(start | {k: v for k, v in ours.state_dict().items() if k not in start})
    for way in ways:
        way.walk()
    assert not torch.equal(start["net.head.weight"], plain.net.head.weight)
    for mine, theirs in zip(ours.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("learner", ["gr", "multi_model", "prog_nn", "a_gem"])
def test_whole_runs_with_attributes(learner):
    """Those that make nets themselves too; and what is known of the classes tells."""
    options = {"name": learner, **OPTIONS[learner]}
    spec = two_tasks(options, EMBEDDING, oracle={"name": "chunks"}, train="oracle")
    streams = {seed: made(spec, DATA, seed) for seed in (0, 1)}
    first, again = (loop.train(spec, DATA, streams, CPU) for _ in range(2))
    assert first == again
    other = dataclasses.replace(DATA, attributes=DATA.attributes[::-1].copy())
    assert [r["online"] for r in loop.train(spec, other, streams, CPU)] != [r["online"] for r in first]


def test_it_is_described_with_its_sizes():
    """agem, Figure 9: P parameters below, and A × D above (with a bias a class)."""
    spec = {"name": "resnet18", "width": 64, "pool": True, "head": "joint_embedding", "weights": "imagenet"}
    last = nets.describe(spec, (3, 224, 224), 200, 312)["layers"][-1]
    assert (last["layer"], last["output"]) == ("JointEmbedding(512, 312)", [200])
    assert last["parameters"] == 312 * 512 + 200


def test_each_output_has_the_attributes_of_its_class_in_its_seed():
    """Where a class has an output in each of its tasks, all of them are embedded alike, and seeds differ."""
    order = {"name": "split_overlapping", "tasks": 2, "per_task": 4, "first": 0, "last": 3, "length": None}
    spec = two_tasks({"name": "single"}, EMBEDDING, oracle={"name": "chunks"}, order=order, train="oracle")
    way = Way(spec, DATA, [made(spec, DATA, seed) for seed in (0, 1, 2)])
    classes = [c.class_of_output for c in way.scenarios]
    assert len({tuple(each) for each in classes}) > 1
    assert max(np.bincount(each).max() for each in classes) > 1
    expected = torch.from_numpy(np.stack([DATA.attributes[each] for each in classes]))
    torch.testing.assert_close(way.walk(until=2).net.net.head.attributes, expected.double())
