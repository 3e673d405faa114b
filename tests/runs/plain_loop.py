"""The plain loop of PyTorch beside a learner: an ordinary net of one seed that descends what a test writes down."""

from tiny import assert_same_net, cross_entropy


def descend(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def assert_descends(way, loss_of, s=0, **close):
    """The learner goes its way and ends with the net that descends `loss_of(net, t, x, y)` step by step."""
    net = way.ordinary(s=s)
    optimizer = way.optimizer(net)
    for t in range(len(way.changes)):
        descend(optimizer, loss_of(net, t, *(part[s] for part in way.batch(t))))
        way.step()
    assert_same_net(way.learner.net, net, s, **close)


def own_classes(way, labels, s=0):
    """For each label the classes of its task, as lists."""
    of_task = way.setting.task_classes[s]
    return [of_task[int(of_task[:, c].nonzero()[0, 0])].nonzero()[:, 0].tolist() for c in labels.tolist()]


def each_among(logits, labels, allowed):
    """The mean cross-entropy of items that each have classes of their own to compete."""
    return sum(cross_entropy(logits[[i]], labels[[i]], own) for i, own in enumerate(allowed)) / len(labels)
