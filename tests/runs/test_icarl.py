"""iCaRL: herding, exemplars, targets and nearest means by brute force from their definitions."""

import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from courses import CNN, MLP, Way, assert_same_net, cell, images, made, split

from clpapers.runs.learners.icarl import herd

ICARL = {"name": "icarl", "temperature": 2.0}
DATA = images(classes=6, items=7)
THREE = {"oracle": split(3), "order": {"name": "split", "tasks": 3, "length": None}}
RANDOM = {"oracle": {"name": "mixed"}, "order": {"name": "random", "length": None}}


def on_its_way(net=MLP, data=DATA, seed=0, **changed):
    spec = cell(ICARL, net, **THREE | changed)
    return Way(spec, data, [made(spec, data, seed)])


# --- exemplars ---------------------------------------------------------------------------------------------


def herded(features, m):
    """argmin over f of ‖μ - mean(chosen ∪ {f})‖, again and again."""
    whole, chosen = features.mean(axis=0), []
    for _ in range(min(m, len(features))):
        free = [i for i in range(len(features)) if i not in chosen]
        chosen.append(min(free, key=lambda i: np.linalg.norm(whole - features[[*chosen, i]].mean(axis=0))))
    return chosen


def assert_herded(features, chosen):
    """The same of a choice, but whichever is chosen of several that are equally near, as any two are to their mean."""
    whole = features.mean(axis=0)
    for k in range(len(chosen)):
        free = [i for i in range(len(features)) if i not in chosen[:k]]
        distances = [np.linalg.norm(whole - features[[*chosen[:k], i]].mean(axis=0)) for i in free]
        assert distances[free.index(chosen[k])] <= min(distances) + 1e-12


@pytest.mark.parametrize(("count", "m"), [(1, 3), (7, 7), (12, 5), (30, 1), (40, 20), (4, 9)])
def test_herding_is_brute_force(count, m):
    for seed in range(5):
        features = np.random.default_rng(seed).normal(size=(count, 4)) + 1
        assert herd(features, m).tolist() == herded(features, m)


def test_herding_on_a_line():
    """Of 0, 1, 2, 9 with mean 3, 2 is nearest; then 2 and 2 + 1 say 1.5, 2 and 9 say 5.5, so 1 comes second."""
    assert herd(np.array([[0.0], [1.0], [2.0], [9.0]]), 3).tolist() == [2, 1, 3]


@pytest.mark.parametrize("changed", [THREE, RANDOM], ids=["split", "random"])
@pytest.mark.parametrize("budget", [6, 13, 100])
def test_exemplars_are_items_of_their_class_that_have_been_and_fit_the_budget(budget, changed):
    way = on_its_way(memory=budget, **changed)
    stream, labels = way.setting.items[0].tolist(), way.setting.labels[0].tolist()
    for t in range(len(way.changes)):
        way.step()
        past = list(zip(stream, labels))[: way.setting.step(t).stop]
        exemplars = {c: items.tolist() for c, items in way.learner.exemplars.items()}
        assert set(exemplars) == {c for _, c in past}
        m = budget // len(exemplars)
        for c, items in exemplars.items():
            assert len(items) <= m
            assert set(items) <= {item for item, of in past if of == c}
            assert len(set(items)) == len(items)
        assert way.learner.memory_use(0)["items"] == sum(map(len, exemplars.values())) <= budget
    assert [len(exemplars[c]) for c in range(6)] == way.learner.memory_use(0)["per_class"] == [min(m, 7)] * 6


def test_only_the_batchs_classes_are_herded_anew():
    """From what they had and the batch, by the net after its step; the others keep their first m, in their order."""
    way = on_its_way(memory=14, **RANDOM)
    for t in range(len(way.changes)):
        before = {c: items.tolist() for c, items in way.learner.exemplars.items()}
        way.step()
        now = way.setting.step(t)
        batch = list(zip(way.setting.items[0, now].tolist(), way.setting.labels[0, now].tolist()))
        m = 14 // len(way.learner.exemplars)
        net = copy.deepcopy(way.learner.net).eval()
        for c, items in way.learner.exemplars.items():
            pool = before.get(c, []) + [item for item, of in batch if of == c]
            if c in {of for _, of in batch}:
                with torch.no_grad():
                    features = F.normalize(net.net[:-1](way.setting.images(torch.tensor(pool))), dim=1).numpy()
                assert_herded(features, [pool.index(item) for item in items.tolist()])
                assert len(items) == min(m, len(pool))
            else:
                assert items.tolist() == before[c][:m]


# --- training ----------------------------------------------------------------------------------------------


def test_targets():
    """What the old net says of a class it knew that the batch has not; one or zero of present and of unknown ones."""
    learner = on_its_way().learner
    learner.exemplars = {1: torch.tensor([0]), 2: torch.tensor([1]), 4: torch.tensor([2])}
    learner.task_change(0)
    with torch.no_grad():
        for p in learner.parameters:  # the live net moves on, the old one stays
            p += 1
    x = torch.rand(1, 3, 1, 4, 4, dtype=torch.float64)
    old = copy.deepcopy(learner.old)
    target = learner.targets(x, torch.tensor([[1, 5, 2]]), torch.tensor([[1, 5]]))
    soft = torch.sigmoid(old(x)[0] / 2.0)
    for i, label in enumerate((1, 5, 2)):
        for c in range(6):
            expected = soft[i, c] if c in (2, 4) else torch.tensor(float(c == label), dtype=torch.float64)
            torch.testing.assert_close(target[0, i, c], expected)


def test_before_the_first_change_targets_are_one_hot():
    learner = on_its_way().learner
    y = torch.tensor([[0, 3]])
    target = learner.targets(torch.rand(1, 2, 1, 4, 4, dtype=torch.float64), y, y)
    assert torch.equal(target, F.one_hot(y, 6).double())


def plain_step(net, optimizer, x, y, present, old, known, allowed):
    """One step of binary cross-entropy, item by item and class by class; x and y hold the exemplars too."""
    logits, total = net(x), 0
    said = None if old is None else old(x).detach()
    for i, label in enumerate(y.tolist()):
        for c in allowed:
            target = float(c == label)
            if old is not None and c in known and c not in present:
                target = float(1 / (1 + torch.exp(-said[i, c] / 2.0)))
            p = torch.sigmoid(logits[i, c])
            total = total - target * torch.log(p) - (1 - target) * torch.log(1 - p)
    optimizer.zero_grad()
    (total / len(y)).backward()
    optimizer.step()


@pytest.mark.parametrize("train", ["none", "oracle"])
@pytest.mark.parametrize("changed", [THREE, RANDOM], ids=["split", "random"])
@pytest.mark.parametrize("net", [MLP, CNN], ids=lambda net: net["name"])
def test_training_equals_the_plain_implementation(net, changed, train):
    """On the batch and all exemplars; what the exemplars are is tested above."""
    way = on_its_way(net, train=train, memory=9, **changed)
    plain = way.ordinary()
    optimizer, old, known = way.optimizer(plain), None, set()
    for t in range(len(way.changes)):
        x, y = (part[0] for part in way.batch(t))
        stored = way.learner.exemplars.items()
        all_x = torch.cat([x, *[way.setting.images(items) for _, items in stored]])
        all_y = torch.cat([y, *[torch.full((len(items),), c) for c, items in stored]])
        if way.changes[t]:
            old, known = copy.deepcopy(plain).eval(), {c for c, _ in stored}
        plain_step(plain, optimizer, all_x, all_y, set(y.tolist()), old, known, way.mask(t))
        way.step()
    assert old is not None
    assert_same_net(way.learner.net, plain, rtol=1e-7, atol=1e-9)


def test_classes_that_do_not_compete_are_not_trained():
    way = on_its_way(train="oracle")
    way.walk(until=int(way.changes.argmax()) + 1)  # so that there are exemplars of classes outside
    for t in range(way.t, len(way.changes)):
        before = way.learner.net.net[-1].weight.detach().clone()
        way.step()
        rows = (way.learner.net.net[-1].weight.detach() != before).any(dim=1)
        assert set(rows.nonzero()[:, 0].tolist()) <= set(way.mask(t))
        assert rows.any()


# --- prediction --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("net", [MLP, CNN], ids=lambda net: net["name"])
def test_the_nearest_mean_of_exemplars_is_predicted(net):
    """Features and means normalised; under a mask, the nearest of those that it leaves."""
    way = on_its_way(net)
    learner = way.walk()
    still = copy.deepcopy(learner.net).eval().net[:-1]
    x = way.setting.images(torch.arange(0, 42, 3)[None])

    def direction(image):
        with torch.no_grad():
            feature = still(image[None])[0]
        return feature / feature.norm()

    means = {}
    for c, items in learner.exemplars.items():
        mean = sum(direction(way.setting.images(item)) for item in items) / len(items)
        means[c] = mean / mean.norm()
    with learner.evaluation():
        scores = learner.scores(x, torch.zeros(1, x.shape[1], dtype=torch.long))
    for i, image in enumerate(x[0]):
        distance = {c: float((direction(image) - mean).norm()) for c, mean in means.items()}
        assert scores[0, i].argmax() == min(distance, key=distance.get)
        for c in distance:  # their very squares, to which a mean's length would add
            assert scores[0, i, c] == pytest.approx(-(distance[c] ** 2), abs=1e-9)
        some = {c: distance[c] for c in (1, 4, 5)}
        mask = torch.tensor([c not in some for c in range(6)])
        assert scores[0, i].masked_fill(mask, -torch.inf).argmax() == min(some, key=some.get)
    assert learner.net.training


def test_a_class_without_exemplars_is_never_predicted():
    way = on_its_way()
    learner = way.walk(until=2)
    assert 0 < len(learner.exemplars) < 6
    x = way.setting.images(torch.arange(42)[None])
    with learner.evaluation():
        scores = learner.scores(x, torch.zeros(1, 42, dtype=torch.long))
    assert set(scores[0].argmax(dim=1).tolist()) <= set(learner.exemplars)
