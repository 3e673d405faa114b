"""DER++ of examples/stacked/ against a step by hand and a plain loop; finetuning against that of the papers."""

import importlib.util
import math
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tiny import CNN, LINEAR, LR, MLP, Way, assert_same_net, images, made, two_tasks

from clpapers.catalogue import methods
from clpapers.graph import user_methods
from clpapers.runs import contract_check, learners
from clpapers.runs.learner import Learner
from clpapers.runs.loop import Data

EXAMPLES = Path(__file__).parents[3] / "examples/stacked"
FILES = sorted(EXAMPLES.glob("*.py"))


def loaded(file: Path) -> type[Learner]:
    """The learner of a file outside the package."""
    spec = importlib.util.spec_from_file_location(file.stem, file)
    sys.modules[file.stem] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = [v for v in vars(module).values() if isinstance(v, type) and v.__module__ == file.stem]
    return next(v for v in found if issubclass(v, Learner))


@pytest.fixture
def here(monkeypatch):
    """The examples' methods take the place of what `learners` has."""
    find = learners.written
    known = {file.stem: file for file in FILES}

    def written(name, file=None):
        return loaded(known[name]) if name in known else find(name, file)

    monkeypatch.setattr(learners, "written", written)


def der_pp(alpha=0.1, beta=0.5):
    return {"name": "der_pp", "alpha": alpha, "beta": beta}


def along(spec, data, seeds=(0,)):
    return Way(spec, data, [made(spec, data, seed) for seed in seeds])


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_example_declares_what_its_learner_takes(file, here):
    declared = methods.read(file)
    code = loaded(file).__init__.__code__
    named = code.co_varnames[2 : 2 + code.co_kwonlyargcount]
    assert set(declared.options) == set(named)
    for options in declared.examples():
        spec = two_tasks({"name": file.stem, **options}, MLP)
        assert torch.isfinite(along(spec, images()).walk().parameters[0]).all()


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_build_takes_an_example(file):
    """As `methods=[…]`: it is sound, and keeps what a build holds it to."""
    user_methods.check(file)
    assert len(list(contract_check.contracts(file))) == 4


def test_its_published_settings():
    assert methods.read(EXAMPLES / "der_pp.py").examples() == [
        {"alpha": 0.1, "beta": 0.5},  # a memory of 200 items
        {"alpha": 0.2, "beta": 0.5},  # of 500
    ]


def test_two_steps_by_hand(here):
    """A net with one white pixel and two classes, from zero: item A of class 0 shows 1, item B of class 1 shows 0.

    Step 1, no replay. Logits (0, 0) are remembered of A; softmax (½, ½); W and b become ±0.05.
    Step 2. b's gradient from B is ±σ(0.1). A now has logits ±0.1, at squared distance with gradient ±0.1, and
    cross-entropy with gradient ±(σ(0.2) - 1).
    """
    x, y = np.array([255, 0], np.uint8).reshape(2, 1, 1, 1), np.arange(2)
    spec = two_tasks(der_pp(), LINEAR, batch=1, replay_batch=1, memory=2)
    way = along(spec, Data(x, y, x, y, classes=2))
    assert way.setting.labels[0].tolist() == [0, 1]
    with torch.no_grad():
        for parameter in way.learner.parameters:
            parameter.zero_()
    way.walk()

    def sigmoid(z):
        return 1 / (1 + math.exp(-z))

    of_a = 0.1 * 0.1 + 0.5 * (sigmoid(0.2) - 1)
    w, b = 0.05 - LR * of_a, 0.05 - LR * (of_a + sigmoid(0.1))
    weight, bias = way.learner.parameters
    np.testing.assert_allclose(weight.flatten().tolist(), [w, -w], rtol=1e-12)
    np.testing.assert_allclose(bias.flatten().tolist(), [b, -b], rtol=1e-12)
    np.testing.assert_allclose(way.learner.remembered[0, :2], [[0, 0], [0.05, -0.05]], rtol=1e-12)


# Not Adam with batch norm, before which a bias has no gradient but rounding errors, and Adam makes whole steps of them.
@pytest.mark.parametrize(("net", "optimizer"), [(MLP, "sgd"), (MLP, "adam"), (CNN, "sgd")])
def test_equals_a_plain_loop(net, optimizer, here):
    """Every seed's net, and the logits in its memory, after each step; slots are overwritten, some within a batch."""
    spec = two_tasks(der_pp(0.3, 0.7), net, batch=3, memory=6, optimizer=optimizer, learning_rate=0.01)
    way = along(spec, images(), seeds=(0, 3))
    learner, setting = way.learner, way.setting
    plain = [way.ordinary(s=s) for s in range(2)]
    optimizers, memories, overwritten = [way.optimizer(each) for each in plain], [{}, {}], 0
    for t in range(len(setting.ends)):
        now = setting.step(t)
        for s, (each, memory) in enumerate(zip(plain, memories)):
            x, y = setting.images(setting.items[s, now]), setting.labels[s, now]
            outputs = each(x)
            loss = F.cross_entropy(outputs, y)
            if memory:
                count = len(memory)
                dark, labelled = ([memory[int(k)] for k in d.slots[t, s]] for d in (learner.dark, learner.labelled))
                if count < 5:  # a short draw goes through the net filled up, and only its first items count
                    assert [int(k) for k in learner.dark.slots[t, s, :count]] == list(range(count))
                remembered = torch.stack([z for _, _, z in dark])
                answers = each(torch.stack([x for x, _, _ in dark]))
                loss = loss + 0.3 * F.mse_loss(answers[:count], remembered[:count])
                answers = each(torch.stack([x for x, _, _ in labelled]))
                labels = torch.stack([y for _, y, _ in labelled])
                loss = loss + 0.7 * F.cross_entropy(answers[:count], labels[:count])
            optimizers[s].zero_grad()
            loss.backward()
            optimizers[s].step()
            for i, slot in enumerate(learner.memory.plans[s, now].tolist()):
                if slot >= 0:
                    overwritten += slot in memory
                    memory[slot] = (x[i], y[i], outputs[i].detach())
        way.step()
        for s, (each, memory) in enumerate(zip(plain, memories)):
            assert_same_net(learner.net, each, s, rtol=1e-8, atol=1e-10)
            for slot, (_, _, z) in memory.items():
                torch.testing.assert_close(learner.remembered[s, slot], z, rtol=1e-8, atol=1e-10)
    assert overwritten > 5
    assert not torch.equal(learner.dark.slots, learner.labelled.slots)


def test_without_its_terms_it_is_finetuning_and_that_is_single(here):
    nets = []
    for learner in (der_pp(0.0, 0.0), {"name": "finetune"}, {"name": "single"}):
        nets.append([p.detach() for p in along(two_tasks(learner, MLP), images()).walk().parameters])
    assert all(torch.equal(a, b) for net in nets[1:] for a, b in zip(nets[0], net))
