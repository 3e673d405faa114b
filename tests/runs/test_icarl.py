"""iCaRL: herding, exemplars, targets and nearest means by brute force from their definitions."""

import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tiny import CNN, CPU, LINEAR, MLP, Way, assert_same_net, cross_entropy, images, made, split, two_tasks

from clpapers.runs import loop
from clpapers.runs.learners.icarl import herd

BINARY = {"name": "binary", "temperature": 2.0}
ICARL = {"name": "icarl", "loss": BINARY, "space": "features", "exemplars": "batch"}
SOFTMAX = {"name": "softmax", "strength": 0.7}
REHEARSED = {"name": "cross_entropy", "exemplars": 3}
BY_TASK = {"name": "icarl", "loss": SOFTMAX, "space": "logits", "exemplars": "task"}
DATA = images(classes=6, items=7)
THREE = {"oracle": split(3), "order": {"name": "split", "tasks": 3, "length": None}}
RANDOM = {"oracle": {"name": "mixed"}, "order": {"name": "random", "length": None}}


def on_its_way(net=MLP, data=DATA, seed=0, learner=ICARL, **changed):
    spec = two_tasks(learner, net, **THREE | changed)
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


@pytest.mark.parametrize("budget", [6, 14, 100])
@pytest.mark.parametrize("exemplars", ["batch", "batch_alone"])
def test_only_the_batchs_classes_are_herded_anew(exemplars, budget):
    """From the batch, and what they had, by the net after its step; the others keep their first m, in their order."""
    way = on_its_way(memory=budget, learner=ICARL | {"exemplars": exemplars}, **RANDOM)
    for t in range(len(way.changes)):
        before = {c: items.tolist() for c, items in way.learner.exemplars.items()}
        way.step()
        now = way.setting.step(t)
        batch = list(zip(way.setting.items[0, now].tolist(), way.setting.labels[0, now].tolist()))
        m = budget // len(way.learner.exemplars)
        net = copy.deepcopy(way.learner.net).eval()
        for c, items in way.learner.exemplars.items():
            had = before.get(c, []) if exemplars == "batch" else []
            pool = had + [item for item, of in batch if of == c]
            if c in {of for _, of in batch}:
                with torch.no_grad():
                    features = F.normalize(net.net[:-1](way.setting.images(torch.tensor(pool))), dim=1).numpy()
                assert_herded(features, [pool.index(item) for item in items.tolist()])
                assert len(items) == min(m, len(pool))
            else:
                assert items.tolist() == before[c][:m]


# --- training ----------------------------------------------------------------------------------------------


NO_ITEMS = torch.empty(0, dtype=torch.int64)


def test_answers_to_exemplars_are_kept_until_the_task_changes():
    learner = on_its_way().learner
    learner.exemplars = {1: torch.tensor([4]), 2: torch.tensor([0])}
    learner.task_change(0)
    objective, passed = learner.objective, []
    objective.old.register_forward_hook(lambda net, given, answer: passed.append(given[0].shape[1]))

    def said(items):
        return objective.old(learner.setting.images(torch.tensor(items)[None]))[0]

    for items, new in (([4, 0], [2]), ([4, 7, 0], [1]), ([7, 4], []), ([0, 7], [1])):
        passed.clear()
        answers = objective.answers(torch.tensor(items))
        assert passed == new
        torch.testing.assert_close(answers, said(items))
    learner.task_change(1)
    passed.clear()
    objective.answers(torch.tensor([0, 7]))
    assert passed == [2]


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


# --- task by task ------------------------------------------------------------------------------------------


class ByTask:
    """One net, plain loops: what the options of `agem` do, but for the number in [0, 1) that draws an exemplar."""

    def __init__(self, way, budget):
        self.way, self.net, self.budget = way, way.ordinary(), budget
        self.optimizer = way.optimizer(self.net)
        self.exemplars, self.then, self.past, self.came = {}, {}, [], []

    def logits(self, item):
        net = copy.deepcopy(self.net).eval()
        with torch.no_grad():
            return net(self.way.setting.images(torch.tensor([item])))[0]

    def step(self, t, ends, draws):
        x, y = (part[0] for part in self.way.batch(t))
        allowed = self.way.mask(t)
        total = loss = cross_entropy(self.net(x), y, allowed)
        for classes, competed in self.past:
            items = [self.exemplars[c][int(draws[t, c] * len(self.exemplars[c]))] for c in classes]
            said = self.net(self.way.setting.images(torch.tensor(items)))
            for i, item in enumerate(items):
                p, q = (F.softmax(z[competed], dim=0) for z in (self.then[item], said[i]))
                total = total + 0.7 * sum(a * (torch.log(a) - torch.log(b)) for a, b in zip(p, q)) / len(items)
        self.optimizer.zero_grad()
        total.backward()
        self.optimizer.step()
        now = self.way.setting.step(t)
        self.came += zip(self.way.setting.items[0, now].tolist(), y.tolist())
        if ends:
            self.end(allowed)
        return loss.item()

    def end(self, allowed):
        classes = sorted({c for _, c in self.came})
        m = self.budget // (len(self.exemplars) + len(classes))
        for c in classes:
            pool = [item for item, of in self.came if of == c]
            features = np.array([self.logits(item)[allowed].numpy() for item in pool])
            self.exemplars[c] = [pool[i] for i in herded(features, m)]
        self.exemplars = {c: items[:m] for c, items in self.exemplars.items()}
        self.then = {item: self.logits(item) for items in self.exemplars.values() for item in items}
        self.past.append((classes, allowed))
        self.came = []


@pytest.mark.parametrize("train", ["none", "oracle"])
@pytest.mark.parametrize("budget", [6, 15, 30])
@pytest.mark.parametrize("net", [MLP, CNN], ids=lambda net: net["name"])
def test_by_task_equals_the_plain_implementation(net, budget, train):
    """Nets, losses, exemplars and answers, over three tasks of two classes, with the budget kept after each."""
    way = on_its_way(net, learner=BY_TASK, train=train, memory=budget)
    plain, seen = ByTask(way, budget), 0
    steps = len(way.changes)
    for t in range(steps):
        ends = t + 1 == steps or bool(way.changes[t + 1])
        expected = plain.step(t, ends, way.learner.objective.draws)
        loss, _ = way.step()
        assert loss.item() == pytest.approx(expected, rel=1e-9)
        exemplars = {c: items.tolist() for c, items in way.learner.exemplars.items()}
        assert exemplars == plain.exemplars
        if ends:
            seen += 2
            held = way.learner.memory_use(0)
            assert held["items"] == seen * min(budget // seen, 7) <= budget
            assert held["bytes"] == held["items"] * 16
            assert sorted(held["per_class"])[-seen:] == [min(budget // seen, 7)] * seen
    assert seen == 6
    assert_same_net(way.learner.net, plain.net, rtol=1e-8, atol=1e-10)
    means = {c: sum(plain.logits(item) for item in items) / len(items) for c, items in plain.exemplars.items()}
    with way.learner.evaluation(), torch.no_grad():
        items = torch.arange(0, 42, 5)
        scores = way.learner.scores(way.setting.images(items[None]), torch.zeros(1, len(items), dtype=torch.long))[0]
    for item, mine in zip(items.tolist(), scores):
        for c, mean in means.items():
            assert mine[c].item() == pytest.approx(-float((plain.logits(item) - mean).square().sum()), abs=1e-9)


def test_an_exemplar_of_each_class_is_drawn_uniformly():
    draws = on_its_way(learner=BY_TASK, data=images(classes=6, items=700)).learner.objective.draws
    assert draws.shape == (840, 6)
    counts = np.stack([np.bincount((draws[:, c] * 5).astype(int), minlength=5) for c in range(6)])
    assert np.abs(counts / 840 - 1 / 5).max() < 0.06  # four standard deviations
    assert np.abs(np.corrcoef(draws.T) - np.eye(6)).max() < 0.14


def test_a_task_without_exemplars_is_answered_by_a_guess_and_then_by_its_means():
    """The first of its classes until its end, also before the first step of all."""
    spec = two_tasks(BY_TASK, MLP, train="oracle", **THREE | {"oracle": {"name": "chunks"}}, memory=12)
    spec["evaluation"]["shots"] = 10
    (result,) = loop.train(spec, DATA, {0: made(spec, DATA, 0)}, CPU)
    tests = result["tasks"]
    for k, curve in enumerate(tests["shots"]):
        assert all(right == [4, 0] for right in curve)
        assert all(tests["correct"][before][k] == [4, 0] for before in range(k))
        assert tests["correct"][k][k][1] > 0
    assert result["memory"]["items"] == 12


def test_cross_entropy_of_batch_and_exemplars_by_hand():
    """Logits 0 of 6 classes but ln 5 for the first: of class 0 ln 2, of another ln 10; a batch of 7, 3 drawn."""
    way = on_its_way(net=LINEAR, learner=ICARL | {"loss": REHEARSED}, batch=7, learning_rate=0.0)
    weight, bias = way.learner.parameters
    with torch.no_grad():
        weight.zero_()
        bias.zero_()
        bias[0] = np.log(5)
    x, y = way.batch(0)
    nats = torch.where(y == 0, *torch.tensor([2.0, 10.0], dtype=torch.float64).log()).mean(dim=1)
    torch.testing.assert_close(way.step().loss, nats)
    learner, first = way.learner, [nats, nats]
    loss, alone, _ = learner.objective(0, x, y)
    torch.testing.assert_close([loss, alone], first)  # until the task changes
    learner.objective.task_change(1)
    for label, each in ((0, np.log(2)), (5, np.log(10))):
        learner.exemplars = {label: torch.arange(4)}
        loss, alone, logits = learner.objective(0, x, y)
        torch.testing.assert_close([loss, alone], [(7 * nats + 3 * each) / 10, nats])
        assert logits.shape == (1, 7, 6)


def test_each_exemplar_is_drawn_equally_often():
    way = on_its_way(learner=ICARL | {"loss": REHEARSED})
    objective, counts = way.learner.objective, np.zeros(5)
    way.learner.exemplars = {0: torch.arange(5)}
    objective.task_change(0)
    (x, y), seen, images = way.batch(0), [], way.setting.images
    way.setting.images = lambda items: (seen.append(items), images(items))[1]
    for _ in range(2000):
        with torch.no_grad():
            objective(0, x, y)
    for items in seen:
        assert len(items[0].unique()) == 3
        counts[items[0]] += 1
    assert counts == pytest.approx(np.full(5, 1200), abs=100)


# --- task by task, in training mode --------------------------------------------------------------------------


class InTraining(ByTask):
    """The loops of GEM's authors' code at the end of a task: one net that stays in training mode, class by class."""

    def live(self, items):
        with torch.no_grad():
            return self.net(self.way.setting.images(torch.tensor(items)))

    def end(self, allowed):
        classes = sorted({c for _, c in self.came})
        m = self.budget // (len(self.exemplars) + len(classes))
        for c in classes:
            pool = [item for item, of in self.came if of == c]
            mean, points, chosen = self.live(pool)[:, allowed].mean(dim=0), self.live(pool)[:, allowed], []
            while len(chosen) < min(m, len(pool)):
                before = self.live([pool[i] for i in chosen])[:, allowed].sum(dim=0) if chosen else 0
                distances = (mean - (points + before) / (len(chosen) + 1)).norm(dim=1)
                chosen.append(next(i for i in distances.argsort().tolist() if i not in chosen))
            self.exemplars[c] = [pool[i] for i in chosen]
        self.then = {}
        for items in self.exemplars.values():
            self.then |= zip(items, self.live(items))
        self.past.append((classes, allowed))
        self.came = []


@pytest.mark.parametrize("net", [MLP, CNN], ids=lambda net: net["name"])
def test_in_training_mode_equals_the_plain_implementation(net):
    """Nets, running statistics too, losses and exemplars, of which classes of old tasks lose none."""
    way = on_its_way(net, learner={"name": "icarl_in_training", "strength": 0.7}, train="oracle", memory=12)
    plain, steps = InTraining(way, 12), len(way.changes)
    for t in range(steps):
        ends = t + 1 == steps or bool(way.changes[t + 1])
        expected = plain.step(t, ends, way.learner.objective.draws)
        loss, _ = way.step()
        assert loss.item() == pytest.approx(expected, rel=1e-9)
        assert {c: items.tolist() for c, items in way.learner.exemplars.items()} == plain.exemplars
    assert sorted(way.learner.memory_use(0)["per_class"]) == [2, 2, 3, 3, 6, 6]
    assert_same_net(way.learner.net, plain.net, rtol=1e-8, atol=1e-10)
