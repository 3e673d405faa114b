"""LwF of examples/stacked/lwf.py against a plain loop, and its distance by hand."""

import copy
import math

import pytest
import torch
from test_der_pp import along, here  # noqa: F401 (a fixture)
from tiny import CNN, MLP, assert_same_net, cross_entropy, images, two_tasks

pytestmark = pytest.mark.usefixtures("here")


def lwf(strength=0.7, temperature=2.0):
    return {"name": "lwf", "strength": strength, "temperature": temperature}


@pytest.mark.parametrize(("net", "train"), [(MLP, "none"), (MLP, "oracle"), (CNN, "none")])
def test_equals_a_plain_loop(net, train):
    """Every seed's net after each step, where all classes compete or those of the task."""
    way = along(two_tasks(lwf(), net, train=train, batch=4), images(), seeds=(0, 3))
    plain = [way.ordinary(s=s) for s in range(2)]
    optimizers, teachers, learnt, old = [way.optimizer(each) for each in plain], [None] * 2, [set(), set()], [[], []]
    assert way.changes.any()
    for t in range(len(way.setting.ends)):
        x, y = way.batch(t)
        for s, each in enumerate(plain):
            if way.changes[t]:
                teachers[s], old[s] = copy.deepcopy(each).eval(), sorted(learnt[s])
            logits = each(x[s])
            loss = cross_entropy(logits, y[s], way.mask(t, s))
            if teachers[s]:
                with torch.no_grad():
                    recorded = (teachers[s](x[s])[:, old[s]] / 2).softmax(dim=1)
                loss = loss - 0.7 * (recorded * (logits[:, old[s]] / 2).log_softmax(dim=1)).sum(dim=1).mean()
            optimizers[s].zero_grad()
            loss.backward()
            optimizers[s].step()
            learnt[s] |= set(y[s].tolist())
        way.step()
        for s, each in enumerate(plain):
            assert_same_net(way.learner.net, each, s, rtol=1e-8, atol=1e-10)


def test_the_distance_by_hand():
    """Two old classes of three, T = 2: recorded (0, 2 ln 3) is (1/4, 3/4); new (0, 0) is (1/2, 1/2), so it is ln 2."""
    learner = along(two_tasks(lwf(), MLP), images()).learner
    learner.old = torch.tensor([[True, False, True]])
    new, recorded = torch.tensor([[[0.0, 7.0, 0.0]]]), torch.tensor([[[0.0, -5.0, 2 * math.log(3)]]])
    torch.testing.assert_close(learner.distance(new, recorded), torch.tensor([math.log(2)]))
    torch.testing.assert_close(
        learner.distance(recorded, recorded), torch.tensor([math.log(4) / 4 + 3 / 4 * math.log(4 / 3)])
    )


def test_before_the_first_change_and_without_strength_it_is_single():
    spec = two_tasks(lwf(strength=0.0), MLP)
    one, other = (along(spec | {"learner": each}, images()).walk() for each in (lwf(0.0), {"name": "single"}))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters, other.parameters))
    way = along(two_tasks(lwf(), MLP), images())
    assert way.walk(until=int(way.changes.argmax())).teacher is None
