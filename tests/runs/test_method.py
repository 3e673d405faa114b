"""The class for authors: one seed, plain tensors, and results as the same learning gives in the seed-stacked class."""

import copy
import dataclasses

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from test_contract_check import PLAIN
from tiny import CPU, course, setting

from clpapers.runs import loop
from clpapers.runs.method import Method, Net, OneSeed, Reservoir

NETS = ["mlp", "exstream", "cnn", "resnet", "cosine", "resnet18"]


@pytest.fixture
def trained(data, tmp_path):
    """Train the tiny course, of `single` unless a text of a class of one seed is given; the results."""

    def of(text=None, net="mlp", seeds=2, **budget):
        spec, streams = course("single", {}, net, data, seeds=seeds, **budget)
        if text is not None:
            file = tmp_path / f"method{len(list(tmp_path.iterdir()))}.py"
            file.write_text("import random\nimport numpy as np\n" + text)
            spec["learner"] = {"name": file.stem, "file": str(file)}
        return loop.train(spec, data, streams, CPU)

    return of


def edited(*changes):
    """The text of finetuning by `self.loss`, with each two texts replaced."""
    text = PLAIN[: PLAIN.index("    def predict")].replace("F.cross_entropy", "self.loss")
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert text.count(old) == 1
        text = text.replace(old, new)
    return text


FINETUNING = edited()


class Plain(Method):
    """Finetuning by `self.loss`; it notes what happens to it."""

    def __init__(self):
        self.notes = []

    def begin_task(self):
        self.notes.append("begin")

    def observe(self, x, y):
        self.notes.append(len(y))
        logits = self.net(x)
        self.optimizer.zero_grad()
        self.loss(logits, y).backward()
        self.optimizer.step()
        return logits

    def end_task(self):
        self.notes.append("end")


def alone(author, data, net="mlp", **given):
    """The learner that a class of one seed is on the tiny course, before its first step, and its setting."""
    told = dataclasses.replace(setting(*course_of(data, net)), **given)
    return OneSeed(told, author, {}), told


def course_of(data, net="mlp"):
    spec, streams = course("single", {}, net, data, seeds=1)
    return spec, data, streams


def batches(told):
    for t in range(len(told.ends)):
        now = told.step(t)
        yield t, told.images(told.items[:, now]), told.labels[:, now]


@pytest.mark.parametrize("net", NETS)
def test_finetuning_ends_in_the_bytes_of_the_learner_of_stacks(trained, net):
    assert trained(FINETUNING, net) == trained(None, net)


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
    ours, theirs = trained(FINETUNING, **budget), trained(**budget)
    np.testing.assert_allclose(ours[0]["online"]["loss"], theirs[0]["online"]["loss"], rtol=1e-4)
    assert trained(FINETUNING) != ours


def test_a_task_begins_before_its_batches_and_ends_after_them(data):
    learner, told = alone(Plain, data)
    for t, x, y in batches(told):
        if told.changes[t]:
            learner.task_change(t)
        learner.observe(t, x, y)
    first = int(told.changes.argmax())
    sizes = np.diff(told.ends, prepend=0).tolist()
    assert told.changes.sum() == 1
    assert learner.method.notes == ["begin", *sizes[:first], "end", "begin", *sizes[first:], "end"]


SPOILS = """        x.zero_()
        y -= 1
        self.budget["batch"] = None
        if getattr(self, "kept", None) is not None:
            self.kept.fill_(-5.0)
        self.kept = logits.detach()
        return self.kept"""


def test_what_a_method_changes_in_place_is_its_own(trained):
    """Whatever it is given or returns."""
    spoilt, plain = trained(edited("        return logits", SPOILS)), trained(FINETUNING)
    for each in (*spoilt, *plain):
        del each["learner_bytes"]  # of what it keeps
    assert spoilt == plain


GUESSES = """
    def predict(self, x):
        assert not torch.is_grad_enabled() and not self.net.training
        return F.one_hot(torch.ones(len(x), dtype=torch.int64), self.classes).to(x)
"""


def test_without_logits_predict_is_asked_before_each_step(trained, data):
    """The items of class 1 are right in each batch, and no loss is noted, as scores are no logits."""
    (one,) = trained(edited("        return logits\n", GUESSES), seeds=1)
    assert one["online"]["correct"] == [int((y == 1).sum()) for _, _, y in batches(setting(*course_of(data)))]
    assert one["online"]["loss"] is one["diverged"] is None
    assert one["test"]["none"]["correct"] == [0, 6, 0, 0]


def test_without_either_the_net_s_own_answers_have_a_loss(trained):
    """Without batch norm a net answers alike in training and in evaluation."""
    assert trained(edited("        return logits\n", "")) == trained(FINETUNING)


DRAWS = edited(
    "self.net(x)\n",
    "self.net(x + torch.randn_like(x) * float(np.random.rand()) * random.random())\n",
    "        return logits\n",
    "        return logits\n\n    def predict(self, x):\n        return self.net(x + 0.1 * torch.randn_like(x))\n",
)


def test_draws_come_from_the_seed_whatever_was_drawn_before(trained):
    first = trained(DRAWS)
    torch.randn(7), np.random.rand(7)
    assert trained(DRAWS, seeds=1) == first[:1]
    assert first[0]["online"] != first[1]["online"]


def test_modules_have_the_run_s_precision_and_are_in_evaluation_mode_in_a_test_alone(data):
    class Holds(Method):
        def __init__(self):
            self.teacher = copy.deepcopy(self.net).eval()
            self.net.head = torch.nn.Linear(self.net.head.in_features, self.classes)
            self.others = [torch.nn.Dropout(), {"more": torch.nn.BatchNorm1d(3)}, torch.zeros(3)]

    learner, _ = alone(Holds, data)
    method = learner.method
    modules = [method.net, method.teacher, method.others[0], method.others[1]["more"]]
    with learner.evaluation():
        assert not any(each.training for each in modules)
    assert [each.training for each in modules] == [True, False, True, True]
    assert {p.dtype for p in method.net.parameters()} == {method.others[2].dtype} == {torch.float64}
    assert torch.get_default_dtype() == torch.float32


def test_a_reservoir_holds_each_item_with_the_same_chance():
    """8 items through 4 slots: each is held in half of 2,000 trials, six deviations are 0.067."""
    torch.manual_seed(0)
    held = torch.zeros(8)
    for _ in range(2000):
        memory = Reservoir(4, 2)
        for batch in torch.arange(8.0).split(3):
            memory.add(batch[:, None], batch.long())
        assert memory.kept[0][:, 0].tolist() == memory.kept[1].tolist()
        held[memory.kept[1]] += 1
    assert (held / 2000 - 0.5).abs().max() < 0.067


def test_a_draw_is_of_distinct_items_with_all_that_was_stored():
    memory = Reservoir(5, 3)
    assert len(memory) == 0
    memory.add(torch.zeros(2, 1), torch.tensor([4, 6]), torch.tensor([[4.5], [6.5]]))
    assert sorted(memory.draw()[1].tolist()) == [4, 6]
    memory.add(torch.zeros(9, 1), torch.arange(10, 19), torch.arange(10, 19)[:, None] + 0.5)
    assert len(memory) == 5
    for size, expected in ((None, 3), (4, 4), (9, 5)):
        x, y, more = memory.draw(size)
        assert len(set(y.tolist())) == len(x) == expected
        assert torch.equal(more[:, 0], y + 0.5)


@pytest.mark.parametrize("net", NETS)
def test_a_net_is_a_body_and_a_head(net, data):
    learner, told = alone(Plain, data, net)
    own = learner.method.net.eval()
    assert isinstance(own, Net)
    x = told.images(told.items[0, :6])
    features = own.features(x)
    assert features.shape == (6, own.head.in_features)
    assert torch.equal(own.head(features), own(x))
    assert torch.equal(told.net().eval()(x[None])[0], own(x))


def test_a_memory_counts_as_the_data_set_has_its_images(trained):
    keeps = edited("return logits", "self.memory.add(x, y, logits)\n        return logits")
    (one,), (plain,) = trained(keeps, seeds=1), trained(FINETUNING, seeds=1)
    assert one["memory"]["items"] == sum(one["memory"]["per_class"]) == 20
    assert one["memory"]["bytes"] == 20 * 8 * 8 * 3
    more = one["learner_bytes"]["training"] - plain["learner_bytes"]["training"]
    assert more == one["memory"]["bytes"] + 20 * 4 * 8  # the logits, in float64


MASKS = torch.tensor([[True, False, True, False], [False, True, False, True]])


def restricted(data, *masks):
    """A method that has learnt a batch under each of these masks, in turn."""
    learner, told = alone(Plain, data, masks=torch.stack(masks)[None] if masks else None)
    for t, mask in enumerate(masks):
        x, y = told.images(told.items[:, :3]), mask.nonzero()[:1, 0].expand(1, 3)
        learner.observe(t, x, y)
    return learner.method


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("weighted", [True, False])
def test_its_loss_is_cross_entropy_over_the_classes_that_compete(reduction, smoothing, weighted, data):
    """Label smoothing has no share for the others, where logits of -inf would have one."""
    torch.manual_seed(0)
    weight = torch.rand(4, dtype=torch.float64) + 0.5 if weighted else None
    logits = torch.randn(4, 4, dtype=torch.float64, requires_grad=True)
    y, method = torch.tensor([1, 3, 3, 1]), restricted(data, *MASKS)
    ours = method.loss(logits, y, weight=weight, label_smoothing=smoothing, reduction=reduction)
    options = {"label_smoothing": smoothing, "reduction": reduction, "weight": weight[1::2] if weighted else None}
    theirs = F.cross_entropy(logits[:, 1::2], y // 2, **options)
    torch.testing.assert_close(ours, theirs)
    gradients = [torch.autograd.grad(loss.sum(), logits, retain_graph=True)[0] for loss in (ours, theirs)]
    torch.testing.assert_close(*gradients)


def test_an_item_of_a_memory_competes_with_the_classes_that_did_when_its_class_came(data):
    logits, seen = torch.zeros(3, 4), torch.tensor([True, True, True, False])
    masked = restricted(data, *MASKS).masked(logits, torch.tensor([0, 3, 2]))
    assert masked.isfinite().tolist() == [MASKS[0].tolist(), MASKS[1].tolist(), MASKS[0].tolist()]
    each = restricted(data, seen, MASKS[1]).loss(logits, torch.tensor([0, 3, 2]), reduction="none")
    torch.testing.assert_close(each, torch.tensor([3.0, 2.0, 3.0]).log())
    assert restricted(data, MASKS[0]).masked(logits, torch.tensor([3, 3, 3])).isfinite().all()


@pytest.mark.parametrize(
    "options", [{}, {"label_smoothing": 0.1}, {"reduction": "sum"}, {"weight": torch.arange(1.0, 5)}]
)
def test_where_all_compete_its_loss_is_pytorch_s(options, data):
    method = restricted(data)
    logits, y = torch.randn(6, 4), torch.tensor([0, 1, 2, 3, 3, 0])
    assert torch.equal(method.loss(logits, y, **options), F.cross_entropy(logits, y, **options))
    assert method.masked(logits, y) is logits
