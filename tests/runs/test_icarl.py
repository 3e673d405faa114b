"""iCaRL: herding, exemplars, targets and nearest means by brute force; with exemplars of each class of each task."""

import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from plain_loop import assert_descends, descend
from tiny import (
    CHUNKS,
    CNN,
    DOMAINS,
    MIXED,
    MLP,
    RANDOM,
    Way,
    assert_same_net,
    cross_entropy,
    images,
    split,
    two_tasks,
)

from clpapers.randomness import generator
from clpapers.runs.learners.icarl import herd
from clpapers.streams import orders

BINARY = {"name": "binary", "temperature": 2.0}
ICARL = {"name": "icarl", "loss": BINARY, "space": "features", "exemplars": "batch"}
SOFTMAX = {"name": "softmax", "strength": 0.7}
REHEARSED = {"name": "cross_entropy"}
BY_TASK = {"name": "icarl", "loss": SOFTMAX, "space": "logits", "exemplars": "task"}
KINDS = {"name": "icarl_by_tasks", "loss": BINARY}
DATA = images(classes=6, items=7)
K = 6
THREE = {"oracle": split(3), "order": {"name": "split", "tasks": 3, "length": None}}
MIXTURE = {"oracle": MIXED, "order": RANDOM}
THROUGH_PIXELS = {"oracle": CHUNKS, "order": DOMAINS}  # three times all six classes, each time through other pixels


def on_its_way(net=MLP, data=DATA, learner=ICARL, **changed):
    spec = two_tasks(learner, net, **THREE | changed)
    return Way(spec, data, [orders.make(spec["order"], data.train_y, 0, pixels=16)])


def seen(way, items):
    """The images of some items, [N, C, H, W]."""
    return way.setting.images(torch.as_tensor(items)[None])[0]


def heard(way, items):
    """Their scores, [N, K]."""
    x = seen(way, items)[None]
    with way.learner.evaluation(), torch.no_grad():
        return way.learner.scores(x, torch.zeros(1, len(items), dtype=torch.long))[0]


def kept(learner):
    return {c: items.tolist() for c, items in learner.exemplars.items()}


# --- exemplars ---------------------------------------------------------------------------------------------


def distances(features, chosen):
    """‖μ - mean(chosen ∪ {f})‖ by each f that is free."""
    free, whole = [i for i in range(len(features)) if i not in chosen], features.mean(axis=0)
    return {i: np.linalg.norm(whole - features[[*chosen, i]].mean(axis=0)) for i in free}


def herded(features, m):
    """The nearest, again and again."""
    chosen = []
    for _ in range(min(m, len(features))):
        each = distances(features, chosen)
        chosen.append(min(each, key=each.get))
    return chosen


@pytest.mark.parametrize(("count", "m"), [(1, 3), (7, 7), (12, 5), (30, 1), (40, 20), (4, 9)])
def test_herding_is_brute_force(count, m):
    for seed in range(5):
        features = np.random.default_rng(seed).normal(size=(count, 4)) + 1
        assert herd(features, m).tolist() == herded(features, m)


@pytest.mark.parametrize("budget", [6, 14, 40, 1000])
@pytest.mark.parametrize(
    ("learner", "changed"),
    [(ICARL, MIXTURE), (ICARL | {"exemplars": "batch_alone"}, MIXTURE), (KINDS, THROUGH_PIXELS), (KINDS, THREE)],
    ids=["batch", "batch alone", "by tasks", "by tasks of own classes"],
)
def test_only_the_batchs_classes_are_herded_anew(learner, changed, budget):
    """From the batch, and what they had, by the net after its step; the others keep their first m, in their order.

    By tasks, the classes of each task are herded apart: a domain that is over keeps its exemplars.
    """
    way = on_its_way(memory=budget, learner=learner, **changed)
    apart, before = K if learner["name"] == "icarl_by_tasks" else 0, {}
    for t in range(len(way.changes)):
        way.step()
        now, exemplars = way.setting.step(t), kept(way.learner)
        kinds = (way.setting.tasks * apart + way.setting.labels)[0, now].tolist()
        batch = list(zip(way.setting.items[0, now].tolist(), kinds))
        m, net = max(budget // len({*before, *kinds}), 1), copy.deepcopy(way.learner.net).eval()
        assert set(exemplars) == {*before, *kinds}
        for c, items in exemplars.items():
            had = [] if learner.get("exemplars") == "batch_alone" else before.get(c, [])
            pool = had + [item for item, of in batch if of == c]
            if c in kinds:
                with torch.no_grad():
                    features = F.normalize(net.net[:-1](seen(way, pool)), dim=1).numpy()
                chosen = [pool.index(item) for item in items]
                for k, each in enumerate(chosen):  # whichever of several that are equally near, as any two are
                    near = distances(features, chosen[:k])
                    assert near[each] <= min(near.values()) + 1e-12
                assert len(set(items)) == len(items) == min(m, len(pool))
            else:
                assert items == before[c][:m]
        before = exemplars
    counts = np.bincount([c % K for c, items in before.items() for _ in items], minlength=K)
    assert way.learner.memory_use(0)["per_class"] == counts.tolist()


# --- training ----------------------------------------------------------------------------------------------


def binary(net, x, y, present, old, known, allowed):
    """Binary cross-entropy, item by item and class by class; x and y hold the exemplars too."""
    logits, total = net(x), 0
    said = None if old is None else old(x).detach()
    for i, label in enumerate(y.tolist()):
        for c in allowed:
            target = float(c == label)
            if old is not None and c in known and c not in present:
                target = float(1 / (1 + torch.exp(-said[i, c] / 2.0)))
            p = torch.sigmoid(logits[i, c])
            total = total - target * torch.log(p) - (1 - target) * torch.log(1 - p)
    return total / len(y)


@pytest.mark.parametrize("train", ["none", "oracle"])
@pytest.mark.parametrize(
    ("learner", "changed", "net"),
    [
        (ICARL, THREE, MLP),
        (ICARL, THREE, CNN),
        (ICARL, MIXTURE, MLP),
        (ICARL, MIXTURE, CNN),
        (KINDS, THREE, MLP),
        (KINDS, THROUGH_PIXELS, MLP),
    ],
)
def test_training_equals_the_plain_implementation(learner, changed, net, train):
    """On the batch and all exemplars; what the exemplars are is tested above. A class is known by those of any task."""
    way, old, known = on_its_way(net, learner=learner, train=train, memory=9, **changed), [], set()

    def loss(net, t, x, y):
        stored = kept(way.learner).items()
        if way.changes[t]:
            old[:] = [copy.deepcopy(net).eval()]
            known.update(c % K for c, _ in stored)
        all_x = torch.cat([x, *[seen(way, items) for _, items in stored]])
        all_y = torch.cat([y, *[torch.full((len(items),), c % K) for c, items in stored]])
        return binary(net, all_x, all_y, set(y.tolist()), old[0] if old else None, known, way.mask(t))

    assert_descends(way, loss, rtol=1e-7, atol=1e-9)
    assert old


@pytest.mark.parametrize("train", ["none", "oracle"])
@pytest.mark.parametrize("count", [3, 99])
@pytest.mark.parametrize(("learner", "changed"), [(ICARL, THREE), (KINDS, THROUGH_PIXELS)], ids=["icarl", "by tasks"])
def test_rehearsed_exemplars_weigh_by_their_number(learner, changed, count, train):
    """From the first change on, so many, drawn by the seed, or all there are; all classes compete for them."""
    way = on_its_way(learner=learner | {"loss": REHEARSED | {"exemplars": count}}, train=train, memory=12, **changed)
    rng = generator(0, "exemplars")

    def loss(net, t, x, y):
        of_batch, stored = cross_entropy(net(x), y, way.mask(t)), kept(way.learner)
        if not way.changes[: t + 1].any():
            return of_batch
        both = [(item, c % K) for c, items in stored.items() for item in items]
        items, labels = zip(*[both[i] for i in rng.permutation(len(both))[:count]])
        of_exemplars = F.cross_entropy(net(seen(way, items)), torch.tensor(labels))
        return (len(y) * of_batch + len(items) * of_exemplars) / (len(y) + len(items))

    assert_descends(way, loss)


# --- prediction --------------------------------------------------------------------------------------------


def test_a_class_without_exemplars_is_never_predicted_and_at_first_none_is_preferred():
    way = on_its_way()
    assert len(heard(way, torch.arange(42)).unique()) == 1
    way.walk(until=2)
    assert 0 < len(way.learner.exemplars) < 6
    assert set(heard(way, torch.arange(42)).argmax(dim=1).tolist()) <= set(way.learner.exemplars)


@pytest.mark.parametrize(
    ("learner", "net", "changed"), [(ICARL, MLP, THREE), (ICARL, CNN, THREE), (KINDS, MLP, THROUGH_PIXELS)]
)
def test_a_score_is_minus_the_squared_distance_to_the_nearest_mean_of_a_class(learner, net, changed):
    """Features and means normalised; a class has a mean in each task that showed it, with exemplars of that task."""
    way = on_its_way(net, learner=learner, memory=40, **changed)
    still = copy.deepcopy(way.walk().net).eval().net[:-1]

    def directions(items):
        with torch.no_grad():
            return F.normalize(still(seen(way, items)), dim=1)

    means = {kind: F.normalize(directions(items).mean(dim=0), dim=0) for kind, items in kept(way.learner).items()}
    assert len(means) == (18 if learner is KINDS else 6)
    items = torch.arange(0, 42, 3)
    for point, mine in zip(directions(items.tolist()), heard(way, items)):
        for c in range(K):
            expected = -min(float((point - mean).square().sum()) for kind, mean in means.items() if kind % K == c)
            assert mine[c].item() == pytest.approx(expected, abs=1e-9)
    assert way.learner.net.training


# --- task by task ------------------------------------------------------------------------------------------


class ByTask:
    """One net, plain loops: what the options of `agem` do."""

    def __init__(self, way):
        self.way, self.net, self.budget = way, way.ordinary(), way.spec["budget"]["memory"]
        self.optimizer = way.optimizer(self.net)
        self.draws = generator(0, "distillation").random((len(way.changes), K))
        self.exemplars, self.then, self.past, self.came = {}, {}, [], []

    def logits(self, item):
        net = copy.deepcopy(self.net).eval()
        with torch.no_grad():
            return net(seen(self.way, [item]))[0]

    def step(self, t, ends):
        x, y = (part[0] for part in self.way.batch(t))
        allowed = self.way.mask(t)
        total = loss = cross_entropy(self.net(x), y, allowed)
        for classes, competed in self.past:
            items = [self.exemplars[c][int(self.draws[t, c] * len(self.exemplars[c]))] for c in classes]
            said = self.net(seen(self.way, items))
            for i, item in enumerate(items):
                p, q = (F.softmax(z[competed], dim=0) for z in (self.then[item], said[i]))
                total = total + 0.7 * sum(a * (torch.log(a) - torch.log(b)) for a, b in zip(p, q)) / len(items)
        descend(self.optimizer, total)
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
            self.exemplars[c] = self.chosen(pool, m, allowed)
        self.note(m)
        self.past.append((classes, allowed))
        self.came = []

    def chosen(self, pool, m, allowed):
        features = np.array([self.logits(item)[allowed].numpy() for item in pool])
        return [pool[i] for i in herded(features, m)]

    def note(self, m):
        self.exemplars = {c: items[:m] for c, items in self.exemplars.items()}
        self.then = {item: self.logits(item) for items in self.exemplars.values() for item in items}


class InTraining(ByTask):
    """The loops of GEM's authors' code at the end of a task: one net that stays in training mode, class by class."""

    def live(self, items):
        with torch.no_grad():
            return self.net(seen(self.way, items))

    def chosen(self, pool, m, allowed):
        mean, points, chosen = self.live(pool)[:, allowed].mean(dim=0), self.live(pool)[:, allowed], []
        while len(chosen) < min(m, len(pool)):
            before = self.live([pool[i] for i in chosen])[:, allowed].sum(dim=0) if chosen else 0
            distances = (mean - (points + before) / (len(chosen) + 1)).norm(dim=1)
            chosen.append(next(i for i in distances.argsort().tolist() if i not in chosen))
        return [pool[i] for i in chosen]

    def note(self, m):
        """Classes of old tasks lose none."""
        self.then = {}
        for items in self.exemplars.values():
            self.then |= zip(items, self.live(items))


IN_TRAINING = {"name": "icarl_in_training", "strength": 0.7}


@pytest.mark.parametrize(
    ("kind", "learner", "net", "budget", "train"),
    [
        (ByTask, BY_TASK, MLP, 6, "oracle"),
        (ByTask, BY_TASK, MLP, 15, "none"),
        (ByTask, BY_TASK, MLP, 30, "oracle"),
        (ByTask, BY_TASK, CNN, 15, "oracle"),
        (InTraining, IN_TRAINING, MLP, 12, "oracle"),
        (InTraining, IN_TRAINING, CNN, 12, "oracle"),
    ],
)
def test_by_task_equals_the_plain_implementation(kind, learner, net, budget, train):
    """Nets, running statistics too, losses and exemplars, and answers where they are the nearest mean's."""
    way = on_its_way(net, learner=learner, train=train, memory=budget)
    plain, steps = kind(way), len(way.changes)
    for t in range(steps):
        ends = t + 1 == steps or bool(way.changes[t + 1])
        expected = plain.step(t, ends)
        assert way.step().loss.item() == pytest.approx(expected, rel=1e-9)
        assert kept(way.learner) == plain.exemplars
        counts = [len(plain.exemplars.get(c, [])) for c in range(K)]
        assert way.learner.memory_use(0) == {"items": sum(counts), "bytes": 16 * sum(counts), "per_class": counts}
    assert sorted(counts) == ([min(budget // 6, 7)] * 6 if kind is ByTask else [2, 2, 3, 3, 6, 6])
    assert_same_net(way.learner.net, plain.net, rtol=1e-8, atol=1e-10)
    if kind is InTraining:
        return
    means = {c: sum(plain.logits(item) for item in items) / len(items) for c, items in plain.exemplars.items()}
    items = torch.arange(0, 42, 5)
    for item, mine in zip(items.tolist(), heard(way, items)):
        for c, mean in means.items():
            assert mine[c].item() == pytest.approx(-float((plain.logits(item) - mean).square().sum()), abs=1e-9)
