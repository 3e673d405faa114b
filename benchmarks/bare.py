"""The six methods as one would write them in a script, for one seed; the learners of clpapers are timed against them.

Each is a generator that trains `net` along `stream` (int64 [n], indices into `images` uint8 [N, H, W, C] and labels
[N]) and yields after every step. Nothing is logged and nothing evaluated.
"""

import copy
import random
from collections import Counter, defaultdict

import torch
import torch.nn.functional as F

LEARNING_RATE, BATCH, CAPACITY, CANDIDATES, MEMORY_BATCH, ALPHA, BETA = 0.1, 10, 200, 50, 20, 0.2, 0.001


def scaled(images, items):
    return images[items].float().div_(127.5).sub_(1).permute(0, 3, 1, 2)


class Reservoir:
    """Stream indices of a uniform sample of the items that were added."""

    def __init__(self):
        self.item = torch.zeros(CAPACITY, dtype=torch.int64)
        self.seen = self.filled = 0

    def add(self, items, labels):
        """Returns the slots written, and the positions in the batch of the items that they hold now."""
        written = {}
        for position, item in enumerate(items.tolist()):
            slot = self.seen if self.seen < CAPACITY else random.randrange(self.seen + 1)
            self.seen += 1
            if slot < CAPACITY:
                self.item[slot] = item
                written[slot] = position
        self.filled = min(self.seen, CAPACITY)
        return list(written), list(written.values())

    def slots(self, size):
        return torch.randperm(self.filled)[:size]

    def draw(self, size):
        return self.item[self.slots(size)]


class ClassBalanced(Reservoir):
    """CBRS."""

    def __init__(self):
        super().__init__()
        self.members, self.count, self.full = defaultdict(list), Counter(), set()

    def largest(self):
        return max(self.members, key=lambda c: len(self.members[c]))

    def evict(self, c):
        return self.members[c].pop(random.randrange(len(self.members[c])))

    def add(self, items, labels):
        for item, c in zip(items.tolist(), labels.tolist()):
            self.count[c] += 1
            if self.filled < CAPACITY:
                slot = self.filled
                self.filled += 1
            elif c not in self.full:
                slot = self.evict(self.largest())
            elif random.random() < len(self.members[c]) / self.count[c]:
                slot = self.evict(c)
            else:
                continue
            self.members[c].append(slot)
            self.item[slot] = item
            if self.filled == CAPACITY:
                self.full.add(self.largest())


class Greedy(ClassBalanced):
    """GDumb's sampler."""

    def add(self, items, labels):
        for item, c in zip(items.tolist(), labels.tolist()):
            if self.members[c] and len(self.members[c]) >= CAPACITY // len(self.members):
                continue
            if self.filled < CAPACITY:
                slot = self.filled
                self.filled += 1
            else:
                slot = self.evict(self.largest())
            self.members[c].append(slot)
            self.item[slot] = item


def er(net, images, labels, stream, memory=Reservoir):
    memory = memory()
    optimizer = torch.optim.SGD(net.parameters(), lr=LEARNING_RATE)
    for now in stream.split(BATCH):
        y = labels[now]
        loss = F.cross_entropy(net(scaled(images, now)), y)
        if memory.filled:
            replay = memory.draw(BATCH)
            loss = loss + F.cross_entropy(net(scaled(images, replay)), labels[replay])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        memory.add(now, y)
        yield


def cbrs(net, images, labels, stream):
    return er(net, images, labels, stream, memory=ClassBalanced)


def gdumb(net, images, labels, stream):
    memory = Greedy()
    optimizer = torch.optim.SGD(net.parameters(), lr=LEARNING_RATE)
    for now in stream.split(BATCH):
        memory.add(now, labels[now])
        batch = memory.draw(MEMORY_BATCH)
        loss = F.cross_entropy(net(scaled(images, batch)), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield


def ace(net, images, labels, stream):
    memory = Reservoir()
    optimizer = torch.optim.SGD(net.parameters(), lr=LEARNING_RATE)
    for now in stream.split(BATCH):
        y = labels[now]
        logits = net(scaled(images, now))
        absent = torch.ones(logits.shape[1], dtype=torch.bool, device=logits.device)
        absent[y] = False
        loss = F.cross_entropy(logits.masked_fill(absent, -torch.inf), y)
        if memory.filled:
            replay = memory.draw(BATCH)
            loss = loss + F.cross_entropy(net(scaled(images, replay)), labels[replay])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        memory.add(now, y)
        yield


@torch.no_grad()
def step_ahead(ahead, net):
    """Put the weights that one step down the present gradient would lead to into `ahead`, a copy of the net."""
    for there, here in zip(ahead.parameters(), net.parameters()):
        torch.sub(here, here.grad, alpha=LEARNING_RATE, out=there)


def mir(net, images, labels, stream):
    memory, ahead = Reservoir(), copy.deepcopy(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=LEARNING_RATE)
    for now in stream.split(BATCH):
        y = labels[now]
        optimizer.zero_grad()
        F.cross_entropy(net(scaled(images, now)), y).backward()
        if memory.filled:
            candidates = memory.draw(CANDIDATES)
            step_ahead(ahead, net)
            with torch.no_grad():
                x_c, y_c = scaled(images, candidates), labels[candidates]
                before = F.cross_entropy(net(x_c), y_c, reduction="none")
                after = F.cross_entropy(ahead(x_c), y_c, reduction="none")
            worst = (after - before).topk(min(BATCH, len(candidates))).indices
            F.cross_entropy(net(x_c[worst]), y_c[worst]).backward()
        optimizer.step()
        memory.add(now, y)
        yield


def gmed(net, images, labels, stream):
    memory, ahead = Reservoir(), copy.deepcopy(net)
    pixels = scaled(images, torch.zeros(CAPACITY, dtype=torch.int64))
    classes = torch.zeros(CAPACITY, dtype=torch.int64, device=labels.device)
    optimizer = torch.optim.SGD(net.parameters(), lr=LEARNING_RATE)
    for now in stream.split(BATCH):
        x, y = scaled(images, now), labels[now]
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        if memory.filled:
            slots = memory.slots(BATCH)
            x_r, y_r = pixels[slots].requires_grad_(), classes[slots]
            (g1,) = torch.autograd.grad(F.cross_entropy(net(x_r), y_r), x_r)
            step_ahead(ahead, net)
            (g2,) = torch.autograd.grad(F.cross_entropy(ahead(x_r), y_r), x_r)
            edited = x_r.detach() + ALPHA * ((g2 - g1) - BETA * g1)
            pixels[slots] = edited
            F.cross_entropy(net(edited), y_r).backward()
        optimizer.step()
        slots, positions = memory.add(now, y)
        pixels[slots], classes[slots] = x[positions], y[positions]
        yield


METHODS = {"er": er, "mir": mir, "cbrs": cbrs, "gdumb": gdumb, "gmed": gmed, "ace": ace}
