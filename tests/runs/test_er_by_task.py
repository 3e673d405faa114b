"""ER from an episodic memory, multi-task learning and domains, against plain loops: what competes, how losses weigh."""

import pytest
import torch
import torch.nn.functional as F
from tiny import MLP, Way, assert_same_net, cross_entropy, images, made, two_tasks

ER = {"name": "er_by_task", "write": "uniform", "new_share": "by_tasks"}
ORDER = {"name": "split", "tasks": 3, "length": None}
DATA = images(classes=6, items=10)


def on_its_way(learner, train, order=ORDER, **budget):
    spec = two_tasks(learner, MLP, oracle={"name": "chunks"}, order=order, train=train, batch=5, **budget)
    return Way(spec, DATA, [made(spec, DATA)])


def own_classes(way, y):
    """For each label the classes of its task, as lists."""
    of_task = way.setting.task_classes[0]
    return [of_task[int(of_task[:, c].nonzero()[0, 0])].nonzero()[:, 0].tolist() for c in y.tolist()]


@pytest.mark.parametrize("share", ["half", "by_tasks"])
@pytest.mark.parametrize("train", ["none", "oracle"])
def test_the_whole_memory_of_ended_tasks_weighs_as_much_as_is_said(train, share):
    """Three items of each class of each ended task; where training is masked, an item answers in its own task."""
    way = on_its_way(ER | {"new_share": share}, train, memory=18, replay_batch=99)
    net, setting, memory = way.ordinary(), way.setting, way.learner.memory
    optimizer, task = way.optimizer(net), 0
    for t, changed in enumerate(way.changes):
        task += int(changed)
        x, y = way.batch(t)
        loss = cross_entropy(net(x[0]), y[0], way.mask(t))
        if task:
            items, labels = (each[0, :task].flatten() for each in (memory.items, memory.labels))
            assert sorted(labels.tolist()) == sorted(3 * setting.task_classes[0, :task].nonzero()[:, 1].tolist())
            logits = net(setting.images(items[None])[0])
            every = [[*range(6)]] * len(labels) if train == "none" else own_classes(way, labels)
            each = [cross_entropy(logits[[i]], labels[[i]], own) for i, own in enumerate(every)]
            new = 1 / 2 if share == "half" else 1 / (task + 1)
            loss = new * loss + (1 - new) * torch.stack(each).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        way.step()
    assert task == 2
    assert_same_net(way.learner.net, net)


@pytest.mark.parametrize("train", ["none", "oracle"])
def test_er_can_be_told_that_classes_compete_as_the_restriction_says(train):
    """In the loss on the stream, and for a replayed item in its own task; where none is said, all compete."""
    way = on_its_way({"name": "er", "forward": "separate", "classes": "of_task"}, train, memory=12, replay_batch=4)
    net = way.ordinary()
    optimizer, replayed = way.optimizer(net), 0
    for t in range(len(way.changes)):
        x, y = way.batch(t)
        loss = cross_entropy(net(x[0]), y[0], way.mask(t))
        if (draw := way.learner.replay(t)) is not None:
            logits, labels = net(draw.x[0]), draw.y[0]
            every = [[*range(6)]] * len(labels) if train == "none" else own_classes(way, labels)
            loss = loss + torch.stack([cross_entropy(logits[[i]], labels[[i]], c) for i, c in enumerate(every)]).mean()
            replayed += 1
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        way.step()
    assert replayed
    assert_same_net(way.learner.net, net)


@pytest.mark.parametrize("classes", ["all", "of_task"])
def test_multi_task_lets_all_classes_compete_or_those_of_an_items_task(classes):
    way = on_its_way({"name": "multi_task", "classes": classes}, "oracle")
    net = way.ordinary()
    optimizer = way.optimizer(net)
    for t in range(len(way.changes)):
        now = way.setting.step(t)
        items, y = way.learner.items[:, now], way.learner.labels[0, now]
        logits = net(way.setting.images(items)[0])
        if classes == "all":
            loss = F.cross_entropy(logits, y)
        else:
            each = [cross_entropy(logits[[i]], y[[i]], own) for i, own in enumerate(own_classes(way, y))]
            loss = torch.stack(each).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        way.step()
    assert_same_net(way.learner.net, net)


def test_domains_are_tested_on_their_own_items_with_all_outputs():
    """Six classes in three tasks have two outputs; a task's test items are those of its two classes."""
    order = {"name": "split_domains", "tasks": 3, "length": None}
    way = on_its_way({"name": "single"}, "none", order=order)
    scenario = way.scenarios[0]
    assert scenario.outputs == way.setting.classes == 2
    truth = DATA.test_y[scenario.test_items]
    for task in range(3):
        trained = set(DATA.train_y[scenario.items[scenario.stream.chunk == task]].tolist())
        assert set(truth[scenario.test_domains == task].tolist()) == trained
        assert len(trained) == 2
