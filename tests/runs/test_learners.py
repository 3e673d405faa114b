"""Each learner against a plain implementation of its paper's step: one seed, ordinary modules, Python loops."""

import copy
import re

import jsonschema
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tiny import CPU, METHODS, OPTIONS, SPLIT, VARIANTS, Way, assert_same_net, cell, split, stream

from clpapers.config import parts
from clpapers.runs import learners, loop
from clpapers.runs.learner import Learner, Observed
from clpapers.runs.memories import Draws
from clpapers.streams import orders

LR = 0.1


class Plain:
    """One seed's net and memory, without stack, plan or vectorisation."""

    def __init__(self, way, s):
        self.way, self.s, self.net = way, s, way.ordinary(s=s)
        self.memory, self.age, self.plan = {}, {}, way.learner.memory.plans[s]

    def batch(self, t):
        return [each[self.s] for each in self.way.batch(t)]

    def write(self, t):
        for slot, x, y in zip(self.plan[self.way.setting.step(t)].tolist(), *self.batch(t)):
            if slot >= 0:
                self.memory[slot] = (x, y)

    def read(self, slots):
        return [torch.stack(each) for each in zip(*[self.memory[slot] for slot in slots])]

    def gradient(self, *losses):
        return torch.autograd.grad(sum(losses), list(self.net.parameters()))

    def descend(self, net, gradient):
        with torch.no_grad():
            for p, g in zip(net.parameters(), gradient):
                p -= LR * g


def passes(self, x, x_r, way="separate"):
    """Logits of both batches, from one pass or two."""
    if x_r is None or way == "separate":
        return self.net(x), None if x_r is None else self.net(x_r)
    logits = self.net(torch.cat([x, x_r]))
    return logits[: len(x)], logits[len(x) :]


def er(self, t, slots, way, ours=F.cross_entropy):
    x, y = self.batch(t)
    x_r, y_r = self.read(slots) if len(slots) else (None, None)
    logits, replayed = passes(self, x, x_r, way)
    losses = [ours(logits, y)]
    if len(slots):
        losses.append(F.cross_entropy(replayed, y_r))
    if way == "concatenated" and len(slots):
        losses = [len(each) * loss / (len(y) + len(y_r)) for each, loss in zip((y, y_r), losses)]
    self.descend(self.net, self.gradient(*losses))
    self.write(t)


def ace(self, t, slots, way):
    def present_only(logits, y):
        present = sorted(set(y.tolist()))
        return F.cross_entropy(logits[:, present], torch.tensor([present.index(c) for c in y.tolist()]))

    er(self, t, slots, way, present_only)


def gdumb(self, t, slots, way):
    self.write(t)
    x, y = self.read(repeated(slots, 8))
    losses = F.cross_entropy(self.net(x), y, reduction="none")
    self.descend(self.net, self.gradient(losses[: len(slots)].mean()))


def repeated(slots, size):
    """A short draw goes through the net filled up with repetitions, which the loss then leaves out."""
    return [slots[i % len(slots)] for i in range(size)]


def mir(self, t, slots, way):
    x, y = self.batch(t)
    kept = copy.deepcopy(self.net)
    g = self.gradient(F.cross_entropy(self.net(x), y))
    if len(slots):
        virtual = copy.deepcopy(self.net)
        self.descend(virtual, g)
        x_c, y_c = self.read(repeated(slots, 12))
        with torch.no_grad():
            before, after = (F.cross_entropy(net(x_c), y_c, reduction="none") for net in (self.net, virtual))
        chosen = sorted(range(len(slots)), key=lambda i: before[i] - after[i])[:4]
        if way == "separate":
            g_r = self.gradient(F.cross_entropy(self.net(x_c[chosen]), y_c[chosen]))
            g = [a + b for a, b in zip(g, g_r)]
        else:
            self.net = kept  # with the running statistics of before
            if way == "joint_tracking":
                with torch.no_grad():
                    self.net(x_c)
            logits, replayed = passes(self, x, x_c[chosen], way)
            g = self.gradient(F.cross_entropy(logits, y), F.cross_entropy(replayed, y_c[chosen]))
    self.descend(self.net, g)
    self.write(t)


def gmed(self, t, slots, way):
    x, y = self.batch(t)
    kept = copy.deepcopy(self.net)
    edited = None
    if len(slots):
        x_r, y_r = self.read(slots)
        x_r = x_r.requires_grad_()
        g1 = torch.autograd.grad(F.cross_entropy(self.net(x_r), y_r), x_r)[0]
        self.descend(self.net, self.gradient(F.cross_entropy(self.net(x), y)))
        g2 = torch.autograd.grad(F.cross_entropy(self.net(x_r), y_r), x_r)[0]
        edited = []
        for i, slot in enumerate(slots):
            age = self.age.get(slot, 0)
            moved = x_r[i].detach() + 0.5 * 0.9**age * ((g2[i] - g1[i]) - 0.1 * g1[i])
            self.memory[slot], self.age[slot] = (moved, y_r[i]), age + 1
            edited.append(moved)
        self.net = kept
    logits, replayed = passes(self, x, torch.stack(edited) if edited else None, way)
    losses = [F.cross_entropy(logits, y)]
    if edited:
        losses.append(F.cross_entropy(replayed, y_r))
    self.descend(self.net, self.gradient(*losses))
    self.write(t)


PLAIN = {"er": er, "cbrs": er, "ace": ace, "gdumb": gdumb, "mir": mir, "gmed": gmed}
WAYS = [(name, way) for name in PLAIN for way in METHODS[name].options.get("forward", {"enum": [None]})["enum"]]


@pytest.mark.parametrize(("name", "way"), WAYS)
@pytest.mark.parametrize("net", ["mlp", "cnn"])
def test_equals_the_plain_implementation(name, way, net, data, streams):
    """Parameters and running statistics of every seed after eleven steps, one on a chunk's last three items."""
    spec = cell(name, OPTIONS[name] | ({} if way is None else {"forward": way}), net)
    ours = Way(spec, data, [stream(s.indices, seed, boundaries=[23]) for seed, s in streams.items()])
    assert np.diff(ours.setting.ends, prepend=0).tolist() == [5, 5, 5, 5, 3, 5, 5, 5, 5, 5, 5]
    plain = [Plain(ours, s) for s in range(len(streams))]
    draws = next(value for value in vars(ours.learner).values() if isinstance(value, Draws))
    for t in range(11):
        ours.step()
        for s, reference in enumerate(plain):
            PLAIN[name](reference, t, draws.slots[t, s, : draws.counts[s, t]].tolist(), way)
    for s, reference in enumerate(plain):
        assert_same_net(ours.learner.net, reference.net, s, rtol=1e-8, atol=1e-10)


def test_gdumb_retrained_starts_afresh_and_sees_only_the_memory(data, streams):
    spec = cell("gdumb_retrained", {"memory_batch": 5, "epochs": 2}, "mlp")
    learner = Way(spec, data, [streams[0]]).walk(until=3)
    initial, retrained = [p.detach().clone() for p in learner.parameters], []
    read, reader = [], learner.memory.read
    learner.memory.read = lambda slots: (read.append(slots), reader(slots))[1]
    for _ in range(2):
        learner.prepare()
        with learner.evaluation():
            retrained.append(next(learner.net.parameters()))
    count = learner.memory.counts[0, 3]
    assert sorted(torch.cat(read, dim=1)[0].tolist()) == sorted(list(range(count)) * 4)  # two epochs each
    assert all(torch.equal(a, b) for a, b in zip(initial, learner.parameters))
    assert not torch.equal(*retrained)


@pytest.mark.parametrize("learner", OPTIONS)
def test_who_answers_by_the_task_of_an_item_is_known(learner, data):
    """A trained learner's scores depend on the task that is named with an image where it declares so alone."""
    spec = cell(learner, OPTIONS[learner], "mlp", order=SPLIT, oracle=split(2))
    said = []
    for task in (0, 1):
        made = Way(spec, data, [orders.make(SPLIT, data.train_y, 0)]).walk()  # anew, for some draw as they answer
        x = made.setting.images(made.setting.items)
        made.prepare()
        with made.evaluation(), torch.no_grad():
            said.append(made.scores(x[:, :9], torch.full((1, 9), task)))
    assert (not torch.equal(*said)) == METHODS[learner].answers_by_task


@pytest.mark.parametrize("learner", METHODS)
def test_what_a_learner_declares_is_there(learner):
    """It needs parts of a cell that there are, and speaks of a change of task if it has the hook."""
    declared, found = METHODS[learner], learners.find(learner)
    assert all(re.search(rf"\b{option}\b", found.__doc__) for option in declared.options)
    for options in declared.examples():
        jsonschema.validate(options, {"properties": declared.options, "required": list(declared.options)})
        given = declared.with_options(options)
        assert ("changes" in given.uses) == (found.task_change is not Learner.task_change)
        for key, values in given.needs.items():
            part, *option = key.split(".")
            assert part in parts.CELL["properties"]
            for value in values if option else []:
                jsonschema.validate(value, parts.piece(part)["properties"][option[0]])
    assert set(declared.measures) <= set(parts.Evaluation.fields())
    for equal in filter(None, (declared.without_changes, declared.always_changing)):
        assert not METHODS[equal].options  # they are dropped with the name
        assert METHODS[equal].uses == [thing for thing in declared.uses if thing != "changes"]


@pytest.mark.parametrize(("learner", "options"), VARIANTS)
def test_a_step_says_of_itself_what_the_learner_declares(learner, options, data):
    """The logits of the stream batch before it is learnt, if it looks at the batch and answers first; a loss a seed."""
    spec = cell(learner, options, "mlp", order=SPLIT, oracle=split(2))
    way, declared = Way(spec, data, [orders.make(SPLIT, data.train_y, 0)]), METHODS[learner]
    made, (_, y) = way.learner, way.batch(0)
    flags = ("uses_batch", "stackable", "own_nets", "static")
    assert [getattr(made, flag) for flag in flags] == [getattr(declared, flag) for flag in flags]
    said = way.step()
    assert isinstance(said, Observed)
    assert (said.logits is not None) == (declared.uses_batch and declared.answers_first)
    assert said.logits is None or said.logits.shape == (*y.shape, made.classes)
    assert said.loss is None or said.loss.shape == (1,)
    assert said.loss is not None or said.logits is None


@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if method.without_changes])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_without_a_change_of_task_it_is_what_it_declares(name, optimizer, data, streams):
    """So that `config` may make one cell of the two. Only what waits for a change is held in vain."""
    alone, equal = (
        trained(cell(learner, OPTIONS[learner], "mlp", optimizer=optimizer), data, streams)
        for learner in (name, METHODS[name].without_changes)
    )
    assert alone == equal


@pytest.mark.parametrize(
    ("name", "options"), [each for each in VARIANTS if METHODS[each[0]].with_options(each[1]).always_changing]
)
@pytest.mark.parametrize("net", ["mlp", "cnn"])
def test_with_a_change_at_every_batch_it_is_what_it_declares(name, options, net, data, streams):
    """So that `config` may make one cell of the two. A penalty then pulls to where the net stands."""
    alone, equal = (
        trained(cell(learner, given, net, oracle={"name": "mixed"}), data, streams)
        for learner, given in ((name, options), (METHODS[name].always_changing, {}))
    )
    assert alone == equal


def trained(spec, data, streams):
    """The results of a cell's runs, without the size of what the learner holds."""
    results = loop.train(spec, data, streams, CPU)
    return [{key: result[key] for key in result.keys() - {"learner_bytes"}} for result in results]
