"""iCaRL with exemplars of each class of each task: iCaRL where tasks share no class, else brute force."""

import pytest
import torch
from tiny import MLP, Way, assert_same_net, images, made, split, two_tasks

from clpapers.streams import orders

BINARY = {"name": "binary", "temperature": 2.0}
REHEARSED = {"name": "cross_entropy", "exemplars": 14}  # all there are
BY_TASKS = {"name": "icarl_by_tasks", "loss": BINARY}
ICARL = {"name": "icarl", "loss": BINARY, "space": "features", "exemplars": "batch"}
DATA = images(classes=6, items=7)
DOMAINS = {"name": "permuted_pixels", "tasks": 3, "length": None}
K = 6


def domains(memory):
    """Three times all six classes, each time through other pixels."""
    spec = two_tasks(BY_TASKS, MLP, oracle={"name": "chunks"}, order=DOMAINS, memory=memory)
    return Way(spec, DATA, [orders.make(DOMAINS, DATA.train_y, 0, pixels=16)])


@pytest.mark.parametrize("train", ["none", "oracle"])
@pytest.mark.parametrize("order", [{"name": "split", "tasks": 3}, {"name": "random"}], ids=lambda order: order["name"])
@pytest.mark.parametrize("loss", [BINARY, REHEARSED], ids=lambda loss: loss["name"])
def test_it_is_icarl_where_no_class_is_of_two_tasks(loss, order, train):
    ways, order = [], order | {"length": None}
    for learner in (ICARL, BY_TASKS):
        spec = two_tasks(learner | {"loss": loss}, MLP, oracle=split(3), order=order, train=train, memory=14)
        ways.append(Way(spec, DATA, [made(spec, DATA)]))
    icarl, mine = (way.walk() for way in ways)
    assert_same_net(mine.net, icarl.net)
    assert {kind % K: items.tolist() for kind, items in mine.exemplars.items()} == {
        c: items.tolist() for c, items in icarl.exemplars.items()
    }
    assert mine.memory_use(0) == icarl.memory_use(0)
    x, tasks = mine.setting.images(torch.arange(42)[None]), torch.zeros(1, 42, dtype=torch.long)
    with mine.evaluation(), icarl.evaluation():
        torch.testing.assert_close(mine.scores(x, tasks), icarl.scores(x, tasks))


@pytest.mark.parametrize("memory", [12, 40, 1000])
def test_a_domain_that_is_over_keeps_its_exemplars(memory):
    """Of each class of each task ⌊budget / kinds⌋, at least one, all shown in that task."""
    way = domains(memory)
    stream, tasks, labels = (each[0].tolist() for each in (way.setting.items, way.setting.tasks, way.setting.labels))
    before = {}
    for t in range(len(way.changes)):
        way.step()
        end = way.setting.step(t).stop
        shown = {}
        for item, task, label in zip(stream[:end], tasks, labels):
            shown.setdefault(task * K + label, set()).add(item)
        exemplars = {kind: items.tolist() for kind, items in way.learner.exemplars.items()}
        assert set(exemplars) == set(shown)
        m = max(memory // len(shown), 1)
        for kind, items in exemplars.items():
            assert set(items) <= shown[kind]
            assert len(set(items)) == len(items) <= m
            if kind // K < tasks[end - 1]:
                assert items == before[kind][:m]
        before = exemplars
    assert len(before) == 18
    counts = torch.bincount(torch.tensor([kind % K for kind, items in before.items() for _ in items]), minlength=K)
    assert way.learner.memory_use(0)["per_class"] == counts.tolist()


def test_the_nearest_mean_of_any_task_names_its_class():
    way = domains(40)
    learner = way.walk()
    x = way.setting.images(way.setting.items[:, ::5])
    with learner.evaluation(), torch.no_grad():
        scores = learner.scores(x, torch.zeros(x.shape[:2], dtype=torch.long))[0]
        points = learner.embed(x)[0]
        means = {kind: learner.embed(way.setting.images(items[None]))[0] for kind, items in learner.exemplars.items()}
    means = {kind: torch.nn.functional.normalize(each.mean(dim=0), dim=0) for kind, each in means.items()}
    for point, mine in zip(points, scores):
        for c in range(K):
            expected = -min(float((point - means[task * K + c]).square().sum()) for task in range(3))
            assert mine[c].item() == pytest.approx(expected, abs=1e-9)


def test_targets_are_the_old_nets_for_classes_of_any_task():
    """Once the first task is over all classes are known; those absent from a batch are distilled."""
    way = domains(40)
    learner = way.learner
    assert way.changes.sum() == 2
    way.walk(until=int(way.changes.argmax()) + 1)
    assert learner.objective.known.all()
    x, y = way.batch(way.t)
    x, y = x[:, :1], y[:, :1]
    target = learner.objective.targets(x, torch.empty(0, dtype=torch.int64), y, y)[0, 0]
    soft = torch.sigmoid(learner.objective.old(x)[0, 0] / 2.0)
    label = int(y)
    assert target[label] == 1
    others = [c for c in range(K) if c != label]
    torch.testing.assert_close(target[others], soft[others])


def test_without_exemplars_no_class_is_preferred():
    way = domains(40)
    with way.learner.evaluation():
        scores = way.learner.scores(way.batch(0)[0], torch.zeros(1, 5, dtype=torch.long))
    assert (scores == torch.finfo(scores.dtype).min).all()
