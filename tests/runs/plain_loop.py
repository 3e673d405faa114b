"""The plain loop of PyTorch beside a learner: an ordinary net of one seed that descends what a test writes down."""

import torch
import torch.nn.functional as F
from tiny import assert_same_net, cross_entropy
from torch.distributions import Categorical, Normal, kl_divergence

from clpapers.randomness import generator


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


class PlainPosterior:
    """One seed's Gaussians over an ordinary net's weights, as flat rows; nets are drawn one by one."""

    def __init__(self, way, s):
        self.way, self.s, self.options = way, s, way.spec["learner"]
        parameters = list(way.ordinary(s=s).parameters())
        self.shapes = [p.shape for p in parameters]
        self.mean = torch.nn.utils.parameters_to_vector(parameters).detach()
        self.log_variance = torch.full_like(self.mean, self.options["initial_variance"]).log()
        self.standard = Normal(torch.zeros_like(self.mean), 1.0)
        self.noise, self.items = self.chance("variational")

    def normal(self):
        return Normal(self.mean, (self.log_variance / 2).exp())

    def source(self, purpose):
        return torch.Generator().manual_seed(self.way.setting.init(purpose)[self.s])

    def chance(self, purpose):
        """What draws a training's weights, and its items."""
        return self.source(f"{purpose} weights"), generator(self.way.setting.seeds[self.s], f"{purpose} items")

    def drawn(self, count, noise):
        rows = torch.empty(count, len(self.mean), dtype=torch.float64).normal_(generator=noise)
        return [self.mean + (self.log_variance / 2).exp() * row for row in rows]

    def parts(self, row):
        return [part.view(shape) for part, shape in zip(row.split([n.numel() for n in self.shapes]), self.shapes)]

    def logits(self, row, x):
        weights, x = self.parts(row), x.flatten(1)
        for i in range(0, len(weights), 2):
            x = F.linear(x.relu() if i else x, weights[i], weights[i + 1])
        return x

    def answers(self, rows, x):
        """The probabilities by each of some nets, [K, B, C], and the information of the answer about the net [B]."""
        p = torch.stack([self.logits(row, x) for row in rows]).softmax(dim=2)
        return p, Categorical(p.mean(dim=0)).entropy() - Categorical(p).entropy().mean(dim=0)

    def used(self, outputs):
        """Which numbers of a row the net has without all outputs but these."""
        row = torch.ones(len(self.mean), dtype=torch.bool)
        others = [c for c in range(self.shapes[-1][0]) if c not in outputs]
        for part in self.parts(row)[-2:]:
            part[others] = False
        return row

    def kl(self, prior, outputs):
        return kl_divergence(self.normal(), prior)[self.used(outputs)].sum()

    def epochs(self, n, size, items, count):
        """The items of each batch of some epochs, in a random order, unless all are one batch."""
        for _ in range(count):
            whole = size == "full" or size >= n
            order = list(range(n)) if whole else items.permutation(n).tolist()
            yield [order[i : i + (n if whole else size)] for i in range(0, n, n if whole else size)]
