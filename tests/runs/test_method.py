"""The class for authors: one seed, plain tensors, and results as the same learning gives in the seed-stacked class."""

import copy
import random

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tiny import CPU, course, problem, setting

from clpapers.runs import learners, loop
from clpapers.runs.contracts import Broken
from clpapers.runs.method import Method, Net, OneSeed, Reservoir

NETS = ["mlp", "exstream", "cnn", "resnet", "cosine", "resnet18"]


class Plain(Method):
    """Finetuning; it notes what happens to it."""

    def __init__(self):
        self.notes = []

    def begin_task(self):
        self.notes.append("begin")

    def observe(self, x, y):
        self.notes.append(len(y))
        logits = self.net(x)
        loss = self.loss(logits, y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return logits

    def end_task(self):
        self.notes.append("end")


@pytest.fixture
def trained(monkeypatch):
    """Train the tiny course, of `single` unless a class of one seed is given; the results."""

    def of(net="mlp", author=None, seeds=2, **budget):
        data = problem()
        spec, streams = course("single", {}, net, data, seeds=seeds, **budget)
        if author is not None:
            written = learners.written
            monkeypatch.setattr(learners, "written", lambda name, file=None: author)
            try:
                return loop.train(spec, data, streams, CPU)
            finally:
                monkeypatch.setattr(learners, "written", written)
        return loop.train(spec, data, streams, CPU)

    return of


def alone(author, net="mlp", **budget):
    """The learner that a class of one seed is on the tiny course, before its first step, and its batches."""
    data = problem()
    spec, streams = course("single", {}, net, data, seeds=1, **budget)
    told = setting(spec, data, streams)
    return OneSeed(told, author, {}), told


def batches(told):
    for t in range(len(told.ends)):
        now = told.step(t)
        yield t, told.images(told.items[:, now]), told.labels[:, now]


@pytest.mark.parametrize("net", NETS)
def test_finetuning_ends_in_the_bytes_of_the_learner_of_stacks(trained, net):
    assert trained(net, Plain) == trained(net)


@pytest.mark.parametrize(
    "budget",
    [
        {"momentum": 0.9},
        {"clip": 0.01},
        {"momentum": 0.5, "clip": 0.02},
        {"optimizer": "adam", "learning_rate": 0.01},
    ],
)
def test_the_optimiser_is_the_budget_s(trained, budget):
    ours, theirs = trained(author=Plain, **budget), trained(**budget)
    np.testing.assert_allclose(ours[0]["online"]["loss"], theirs[0]["online"]["loss"], rtol=1e-4)
    assert trained(author=Plain) != ours


def test_a_task_begins_before_its_batches_and_ends_after_them():
    learner, told = alone(Plain)
    for t, x, y in batches(told):
        if told.changes[t]:
            learner.task_change(t)
        learner.observe(t, x, y)
    first = int(told.changes.argmax())
    sizes = np.diff(told.ends, prepend=0).tolist()
    assert told.changes.sum() == 1
    assert learner.method.notes == ["begin", *sizes[:first], "end", "begin", *sizes[first:], "end"]


class Spoils(Plain):
    """Changes in place whatever it is given or returns."""

    def observe(self, x, y):
        logits = super().observe(x, y.clone())
        x.zero_()
        y -= 1
        self.budget["batch"] = None
        if self.kept is not None:
            self.kept.fill_(-5.0)
        self.kept = logits.detach()
        return self.kept

    kept = None


def test_what_a_method_changes_in_place_is_its_own(trained):
    spoilt, plain = trained(author=Spoils), trained(author=Plain)
    for each in (*spoilt, *plain):
        del each["learner_bytes"]  # of what it keeps
    assert spoilt == plain


class Guesses(Plain):
    """Returns no logits, and answers with class 1."""

    def observe(self, x, y):
        super().observe(x, y)

    def predict(self, x):
        assert not torch.is_grad_enabled()
        assert not self.net.training
        return F.one_hot(torch.ones(len(x), dtype=torch.int64), self.classes).to(x)


def test_without_logits_predict_is_asked_before_each_step(trained):
    """Of each batch the items of class 1 are right, and no loss is noted, as scores are no logits."""
    (one, _) = trained(author=Guesses)
    _, told = alone(Guesses)
    assert one["online"]["correct"] == [int((y == 1).sum()) for _, _, y in batches(told)]
    assert one["online"]["loss"] is None
    assert one["diverged"] is None
    correct = one["test"]["none"]["correct"]
    assert sum(correct) == correct[1] == one["test"]["none"]["total"][1]


class Silent(Plain):
    """Returns no logits; its net answers."""

    def observe(self, x, y):
        super().observe(x, y)


def test_the_net_s_own_answers_have_a_loss(trained):
    """Without batch norm a net answers alike in training and in evaluation."""
    assert trained(author=Silent) == trained(author=Plain)


class Draws(Plain):
    """Draws from every generator without a name, in steps and in tests."""

    def observe(self, x, y):
        noise = torch.randn_like(x) * float(np.random.rand()) * random.random()
        return super().observe(x + noise, y)

    def predict(self, x):
        return self.net(x + 0.1 * torch.randn_like(x))


def test_draws_come_from_the_seed_whatever_was_drawn_before(trained):
    first = trained(author=Draws)
    torch.randn(7), np.random.rand(7), random.random()
    assert trained(author=Draws) == first
    assert trained(author=Draws, seeds=1) == first[:1]
    assert first[0]["online"] != first[1]["online"]


def test_a_test_draws_nothing_from_what_steps_draw():
    learner, told = alone(Draws)
    other = copy.deepcopy(learner)
    for t, x, y in batches(told):
        learner.observe(t, x.clone(), y)
        with learner.evaluation(), torch.no_grad():
            found = [learner.scores(x, torch.zeros_like(y)) for _ in range(2)]
        assert torch.equal(*found)
        other.observe(t, x, y)
    pairs = zip(learner.method.net.parameters(), other.method.net.parameters())
    assert all(torch.equal(a, b) for a, b in pairs)


class Holds(Plain):
    """Holds modules in several places, one of them in evaluation mode."""

    def __init__(self):
        super().__init__()
        self.teacher = copy.deepcopy(self.net).eval()
        self.others = [torch.nn.Dropout(), {"more": torch.nn.BatchNorm1d(3)}]


def test_in_a_test_all_modules_are_in_evaluation_mode_and_then_as_they_were():
    learner, _ = alone(Holds)
    method = learner.method
    modules = [method.net, method.teacher, method.others[0], method.others[1]["more"]]
    before = [each.training for each in modules]
    assert before == [True, False, True, True]
    with learner.evaluation():
        assert not any(each.training for each in modules)
    assert [each.training for each in modules] == before


def test_new_layers_and_tensors_have_the_run_s_precision():
    class Grows(Plain):
        def __init__(self):
            super().__init__()
            self.net.head = torch.nn.Linear(self.net.head.in_features, self.classes)
            self.zeros = torch.zeros(3)

    learner, _ = alone(Grows)
    assert {p.dtype for p in learner.method.net.parameters()} == {learner.method.zeros.dtype} == {torch.float64}
    assert torch.get_default_dtype() == torch.float32


@pytest.mark.parametrize(
    "returned", ["logits[:-1]", "logits.argmax(1)", "0.5", "None if len(self.notes) > 3 else logits"]
)
def test_a_step_answers_with_logits_always_or_never(returned):
    class Answers(Plain):
        def observe(self, x, y):
            logits = super().observe(x, y)
            return eval(returned, {"self": self, "logits": logits})

    learner, told = alone(Answers)
    with pytest.raises(Broken) as refusal:
        all(learner.observe(*each) for each in batches(told))
    assert f"{__file__}:" in str(refusal.value)
    assert "observe returns" in str(refusal.value)


def test_a_reservoir_holds_each_item_with_the_same_chance():
    """Of 8 items through 4 slots: each is held in half of 4,000 trials, six deviations are 0.05."""
    torch.manual_seed(0)
    held = torch.zeros(8)
    for _ in range(4000):
        memory = Reservoir(4, 2)
        for batch in torch.arange(8.0).split(3):
            memory.add(batch[:, None], batch.long())
        assert memory.kept[0][:, 0].tolist() == memory.kept[1].tolist()
        held[memory.kept[1]] += 1
    assert (held / 4000 - 0.5).abs().max() < 0.05


def test_a_draw_is_of_distinct_items_with_all_that_was_stored():
    memory = Reservoir(5, 3)
    assert len(memory) == 0
    memory.add(torch.zeros(2, 1), torch.tensor([4, 6]), torch.tensor([[4.5], [6.5]]))
    x, y, more = memory.draw()
    assert sorted(y.tolist()) == [4, 6]
    assert torch.equal(more[:, 0], y + 0.5)
    memory.add(torch.zeros(9, 1), torch.arange(10, 19), torch.arange(10, 19)[:, None] + 0.5)
    assert len(memory) == 5
    for size, expected in ((None, 3), (4, 4), (9, 5)):
        x, y, more = memory.draw(size)
        assert len(set(y.tolist())) == len(x) == expected
        assert torch.equal(more[:, 0], y + 0.5)


def test_a_net_is_a_body_and_a_head(data):
    for net in NETS:
        learner, told = alone(Plain, net)
        own = learner.method.net
        assert isinstance(own, Net)
        x = told.images(told.items[0, :6])
        own.eval()
        features = own.features(x)
        assert features.shape == (6, own.head.in_features)
        assert torch.equal(own.head(features), own(x))
        whole = told.net().eval()
        assert torch.equal(whole(x[None])[0], own(x))


def test_a_memory_counts_as_the_data_set_has_its_images(trained):
    class Keeps(Plain):
        def observe(self, x, y):
            logits = super().observe(x, y)
            self.memory.add(x, y, logits)
            return logits

    (one,), (plain,) = trained(author=Keeps, seeds=1), trained(author=Plain, seeds=1)
    assert one["memory"]["items"] == sum(one["memory"]["per_class"]) == 20
    assert one["memory"]["bytes"] == 20 * 8 * 8 * 3
    more = one["learner_bytes"]["training"] - plain["learner_bytes"]["training"]
    assert more == one["memory"]["bytes"] + 20 * 4 * 8  # the logits, in float64


MASKS = torch.tensor([[True, True, False, False, False], [False, False, True, True, True]])


def restricted(*masks):
    """A method whose stream let these classes compete, in this order."""
    learner, _ = alone(Plain)
    learner.classes = len(MASKS[0])
    for mask in masks:
        learner.mask = lambda t, mask=mask: mask[None]
        learner._restrict(0)
    return learner.method


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("weighted", [True, False])
def test_its_loss_is_cross_entropy_over_the_classes_that_compete(reduction, smoothing, weighted):
    """On the masked logits; and with label smoothing over the competing columns, where -inf would have a share."""
    torch.manual_seed(0)
    weight = torch.rand(5, dtype=torch.float64) + 0.5 if weighted else None
    logits = torch.randn(4, 5, dtype=torch.float64, requires_grad=True)
    y = torch.tensor([2, 4, 3, 2])
    method = restricted(*MASKS)
    ours = method.loss(logits, y, weight=weight, label_smoothing=smoothing, reduction=reduction)
    options = {"weight": weight, "reduction": reduction}
    if smoothing:
        options = {"weight": None if weight is None else weight[2:], "reduction": reduction}
        theirs = F.cross_entropy(logits[:, 2:], y - 2, label_smoothing=smoothing, **options)
    else:
        theirs = F.cross_entropy(method.masked(logits, y), y, **options)
    torch.testing.assert_close(ours, theirs)
    gradients = [torch.autograd.grad(loss.sum(), logits, retain_graph=True)[0] for loss in (ours, theirs)]
    torch.testing.assert_close(*gradients)
    assert gradients[0].isfinite().all()


def test_an_item_of_a_memory_competes_with_the_classes_that_did_when_its_class_came():
    method, logits = restricted(*MASKS), torch.zeros(3, 5)
    masked = method.masked(logits, torch.tensor([1, 4, 0]))
    assert masked.isfinite().tolist() == [MASKS[0].tolist(), MASKS[1].tolist(), MASKS[0].tolist()]
    each = method.loss(logits, torch.tensor([1, 4, 0]), reduction="none")
    torch.testing.assert_close(each, torch.tensor([2.0, 3.0, 2.0]).log())
    unseen = restricted(MASKS[0]).masked(logits, torch.tensor([3, 3, 3]))
    assert unseen.isfinite().all()


@pytest.mark.parametrize(
    "options", [{}, {"label_smoothing": 0.1}, {"reduction": "sum"}, {"weight": torch.arange(1.0, 6)}]
)
def test_where_all_compete_its_loss_is_pytorch_s(options):
    method, _ = alone(Plain)
    logits, y = torch.randn(6, 5), torch.tensor([0, 1, 2, 3, 4, 0])
    assert torch.equal(method.method.loss(logits, y, **options), F.cross_entropy(logits, y, **options))
    assert method.method.masked(logits, y) is logits


class Replays(Plain):
    """Replay by `self.loss`; it notes each loss."""

    def __init__(self):
        self.losses = []

    def observe(self, x, y):
        logits = self.net(x)
        loss = self.loss(logits, y, label_smoothing=0.1)
        if len(self.memory):
            old_x, old_y = self.memory.draw()
            loss = loss + self.loss(self.net(old_x), old_y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.memory.add(x, y)
        self.losses.append(loss.item())
        return logits

    begin_task = end_task = Method.begin_task


def test_replay_under_a_restriction_stays_finite_and_leaves_other_heads_alone():
    """Two tasks: in the first no logit of the second's classes gets a gradient, and old items do not diverge."""
    data = problem()
    spec, streams = course("ewc", {"strength": 1.0}, "mlp", data, seeds=1)
    told = setting(spec | {"restriction": {"train": "oracle"}}, data, streams)
    assert told.masks is not None
    learner = OneSeed(told, Replays, {})
    first = int(told.changes.argmax())
    outside = ~told.masks[0, 0]
    before = learner.method.net.head.bias.detach().clone()
    for t, x, y in batches(told):
        if t == first:
            assert torch.equal(learner.method.net.head.bias[outside], before[outside])
            assert not torch.equal(learner.method.net.head.bias[~outside], before[~outside])
        learner.observe(t, x, y)
    assert np.isfinite(learner.method.losses).all()
    assert len(learner.method.losses) > first
