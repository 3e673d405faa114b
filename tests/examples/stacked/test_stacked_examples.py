"""The methods of examples/stacked/ against plain loops and steps by hand; finetuning against that of the papers."""

import copy
import math
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tiny import CNN, LINEAR, LR, MLP, Way, assert_same_net, cross_entropy, images, made, two_tasks

from clpapers.graph import user_methods
from clpapers.runs import contract_check
from clpapers.runs.loop import Data

FILES = sorted((Path(__file__).parents[3] / "examples/stacked").glob("*.py"))
SINGLE = {"name": "single"}


def example(name, **options):
    return {"name": name, "file": next(str(file) for file in FILES if file.stem == name), **options}


def along(learner, net=MLP, data=None, seeds=(0,), **given):
    data, spec = data or images(), two_tasks(learner, net, **given)
    return Way(spec, data, [made(spec, data, seed) for seed in seeds])


def assert_descends(way, loss_of, after=lambda s, t: None):
    """Each seed's net is, after each step, a plain one that descends on a loss of its number, itself and the step."""
    plain = [way.ordinary(s=s) for s in range(len(way.scenarios))]
    optimizers = [way.optimizer(each) for each in plain]
    for t in range(len(way.setting.ends)):
        x, y = way.batch(t)
        for s, net in enumerate(plain):
            optimizers[s].zero_grad()
            loss_of(s, net, t, x[s], y[s]).backward()
            optimizers[s].step()
        way.step()
        for s, net in enumerate(plain):
            assert_same_net(way.learner.net, net, s, rtol=1e-8, atol=1e-10)
            after(s, t)


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_build_takes_an_example(file):
    """As `methods=[…]`: it is sound, and keeps what a build holds it to."""
    user_methods.check(file)
    assert len(list(contract_check.contracts(file))) == 4


@pytest.mark.parametrize(
    "learner",
    [example("der_pp", alpha=0.0, beta=0.0), example("lwf", strength=0.0, temperature=2.0), example("finetune")],
)
def test_without_its_terms_it_is_single(learner):
    one, other = (along(each).walk() for each in (learner, SINGLE))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters, other.parameters))


def sigmoid(z):
    return 1 / (1 + math.exp(-z))


def test_two_steps_of_der_pp_by_hand():
    """A net with one white pixel and two classes, from zero: item A of class 0 shows 1, item B of class 1 shows 0.

    Step 1, no replay. Logits (0, 0) are remembered of A; softmax (½, ½); W and b become ±0.05.
    Step 2. b's gradient from B is ±σ(0.1). A now has logits ±0.1, at squared distance with gradient ±0.1, and
    cross-entropy with gradient ±(σ(0.2) - 1).
    """
    x, y = np.array([255, 0], np.uint8).reshape(2, 1, 1, 1), np.arange(2)
    data, budget = Data(x, y, x, y, classes=2), {"batch": 1, "replay_batch": 1, "memory": 2}
    way = along(example("der_pp", alpha=0.1, beta=0.5), LINEAR, data, **budget)
    assert way.setting.labels[0].tolist() == [0, 1]
    with torch.no_grad():
        for parameter in way.learner.parameters:
            parameter.zero_()
    way.walk()
    of_a = 0.1 * 0.1 + 0.5 * (sigmoid(0.2) - 1)
    w, b = 0.05 - LR * of_a, 0.05 - LR * (of_a + sigmoid(0.1))
    weight, bias = way.learner.parameters
    np.testing.assert_allclose(weight.flatten().tolist(), [w, -w], rtol=1e-12)
    np.testing.assert_allclose(bias.flatten().tolist(), [b, -b], rtol=1e-12)
    np.testing.assert_allclose(way.learner.remembered[0, :2], [[0, 0], [0.05, -0.05]], rtol=1e-12)


# Not Adam with batch norm, before which a bias has no gradient but rounding errors, and Adam makes whole steps of them.
@pytest.mark.parametrize(("net", "optimizer"), [(MLP, "sgd"), (MLP, "adam"), (CNN, "sgd")])
def test_der_pp_equals_a_plain_loop(net, optimizer):
    """Every seed's net, and the logits in its memory, after each step; slots are overwritten, some within a batch."""
    budget = {"batch": 3, "memory": 6, "optimizer": optimizer, "learning_rate": 0.01}
    way = along(example("der_pp", alpha=0.3, beta=0.7), net, seeds=(0, 3), **budget)
    learner, memories, overwritten = way.learner, [{}, {}], []

    def loss_of(s, net, t, x, y):
        memory, outputs = memories[s], net(x)
        loss, count = F.cross_entropy(outputs, y), len(memory)
        if memory:  # a short draw goes through the net filled up, and only its first items count
            dark, labelled = ([memory[int(k)] for k in draws.slots[t, s]] for draws in (learner.dark, learner.labelled))
            (dark_x, _, z), (labelled_x, labels, _) = (map(torch.stack, zip(*drawn)) for drawn in (dark, labelled))
            loss = loss + 0.3 * F.mse_loss(net(dark_x)[:count], z[:count])
            loss = loss + 0.7 * F.cross_entropy(net(labelled_x)[:count], labels[:count])
        for i, slot in enumerate(learner.memory.plans[s, way.setting.step(t)].tolist()):
            if slot >= 0:
                overwritten.append(slot in memory)
                memory[slot] = (x[i], y[i], outputs[i].detach())
        return loss

    def after(s, t):
        for slot, (_, _, z) in memories[s].items():
            torch.testing.assert_close(learner.remembered[s, slot], z, rtol=1e-8, atol=1e-10)

    assert_descends(way, loss_of, after)
    assert sum(overwritten) > 5
    assert not torch.equal(learner.dark.slots, learner.labelled.slots)


@pytest.mark.parametrize(("net", "train"), [(MLP, "none"), (MLP, "oracle"), (CNN, "none")])
def test_lwf_equals_a_plain_loop(net, train):
    """Every seed's net after each step, where all classes compete or those of the task."""
    way = along(example("lwf", strength=0.7, temperature=2.0), net, seeds=(0, 3), train=train, batch=4)
    teachers, learnt = [None] * 2, [set(), set()]

    def loss_of(s, net, t, x, y):
        if way.changes[t]:
            teachers[s] = copy.deepcopy(net).eval(), sorted(learnt[s])
        logits = net(x)
        loss = cross_entropy(logits, y, way.mask(t, s))
        if teachers[s]:
            teacher, old = teachers[s]
            recorded = (teacher(x)[:, old] / 2).softmax(dim=1).detach()
            loss = loss - 0.7 * (recorded * (logits[:, old] / 2).log_softmax(dim=1)).sum(dim=1).mean()
        learnt[s].update(y.tolist())
        return loss

    assert_descends(way, loss_of)
    assert all(teachers)


def test_the_distance_of_lwf_by_hand():
    """Two old classes of three, T = 2: recorded (0, 2 ln 3) is (1/4, 3/4); new (0, 0) is (1/2, 1/2), so it is ln 2."""
    learner = along(example("lwf", strength=0.7, temperature=2.0)).learner
    learner.old = torch.tensor([[True, False, True]])
    new, recorded = torch.tensor([[[0.0, 7.0, 0.0]]]), torch.tensor([[[0.0, -5.0, 2 * math.log(3)]]])
    itself = math.log(4) / 4 + 3 / 4 * math.log(4 / 3)
    torch.testing.assert_close(learner.distance(new, recorded), torch.tensor([math.log(2)]))
    torch.testing.assert_close(learner.distance(recorded, recorded), torch.tensor([itself]))
