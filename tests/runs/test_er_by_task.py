"""ER from an episodic memory, multi-task learning and domains, against plain loops: what competes, how losses weigh."""

import pytest
import torch.nn.functional as F
from plain_loop import assert_descends, each_among, own_classes
from tiny import CHUNKS, MLP, Way, cross_entropy, images, made, two_tasks

ER = {"name": "er_by_task", "write": "uniform", "new_share": "by_tasks"}
ORDER = {"name": "split", "tasks": 3, "length": None}
DATA = images(classes=6, items=10)
EVERY = [*range(6)]


def on_its_way(learner, train, order=ORDER, **budget):
    spec = two_tasks(learner, MLP, oracle=CHUNKS, order=order, train=train, batch=5, **budget)
    return Way(spec, DATA, [made(spec, DATA)])


def replayed(way, net, x, y):
    """The mean loss of replayed items, in their own tasks where training is masked."""
    return each_among(net(x), y, [EVERY] * len(y) if way.setting.masks is None else own_classes(way, y))


@pytest.mark.parametrize("share", ["half", "by_tasks"])
@pytest.mark.parametrize("train", ["none", "oracle"])
def test_the_whole_memory_of_ended_tasks_weighs_as_much_as_is_said(train, share):
    """Three items of each class of each ended task."""
    way, tasks = on_its_way(ER | {"new_share": share}, train, memory=18, replay_batch=99), []

    def loss(net, t, x, y):
        of_batch, task = cross_entropy(net(x), y, way.mask(t)), int(way.changes[: t + 1].sum())
        if not task:
            return of_batch
        items, labels = (each[0, :task].flatten() for each in (way.learner.memory.items, way.learner.memory.labels))
        assert sorted(labels.tolist()) == sorted(3 * way.setting.task_classes[0, :task].nonzero()[:, 1].tolist())
        new = 1 / 2 if share == "half" else 1 / (task + 1)
        tasks.append(task)
        return new * of_batch + (1 - new) * replayed(way, net, way.setting.images(items[None])[0], labels)

    assert_descends(way, loss)
    assert set(tasks) == {1, 2}


@pytest.mark.parametrize("train", ["none", "oracle"])
def test_er_can_be_told_that_classes_compete_as_the_restriction_says(train):
    """In the loss on the stream, and for a replayed item in its own task; where none is said, all compete."""
    learner, drawn = {"name": "er", "forward": "separate", "classes": "of_task"}, []
    way = on_its_way(learner, train, memory=12, replay_batch=4)

    def loss(net, t, x, y):
        of_batch, draw = cross_entropy(net(x), y, way.mask(t)), way.learner.replay(t)
        if draw is None:
            return of_batch
        drawn.append(draw)
        return of_batch + replayed(way, net, draw.x[0], draw.y[0])

    assert_descends(way, loss)
    assert drawn


@pytest.mark.parametrize("classes", ["all", "of_task"])
def test_multi_task_lets_all_classes_compete_or_those_of_an_items_task(classes):
    way = on_its_way({"name": "multi_task", "classes": classes}, "oracle")

    def loss(net, t, x, y):
        now = way.setting.step(t)
        logits, y = net(way.setting.images(way.learner.items[:, now])[0]), way.learner.labels[0, now]
        return F.cross_entropy(logits, y) if classes == "all" else each_among(logits, y, own_classes(way, y))

    assert_descends(way, loss)


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
