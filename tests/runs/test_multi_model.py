"""The multi-model: who trains which model, who answers, and how large the models are together."""

import copy
import math

import pytest
import torch
import torch.nn.functional as F
from tiny import CNN, MLP, Way, assert_same_net, cross_entropy, images, made, split, two_tasks

from clpapers.runs import loop, nets
from clpapers.runs.learners.multi_model import narrowed

DATA = images(classes=6, items=7)
WIDTHS = {"1": 4, "2": 4, "3": 3}
MM = {"name": "multi_model", "widths": WIDTHS}
THREE = {"oracle": split(3), "order": {"name": "split", "tasks": 3, "length": None}}


def on_its_way(net=MLP, data=DATA, learner=MM, **changed):
    spec = two_tasks(learner, net, **THREE | changed)
    return Way(spec, data, [made(spec, data)])


def moved(models, before):
    """Which models have another state than `before`."""
    states = [model.state_dict() for model in models]
    return [any(not torch.equal(b[k], a[k]) for k in b) for b, a in zip(before, states)]


def state(models):
    return [copy.deepcopy(model.state_dict()) for model in models]


# --- training ----------------------------------------------------------------------------------------------


TASKS = {"order": {"name": "split", "tasks": 3, "length": None}}
MIXED = {"order": {"name": "random", "length": None}}
BY_ADAM = {"optimizer": "adam"}


@pytest.mark.parametrize("train", ["none", "oracle"])
@pytest.mark.parametrize(
    ("net", "options"), [(MLP, TASKS), (MLP, TASKS | BY_ADAM), (MLP, MIXED), (MLP, MIXED | BY_ADAM), (CNN, TASKS)]
)
def test_models_are_single_nets_that_train_on_their_own_part_of_each_batch(net, options, train):
    """On a split stream that is each task's own stream; on a random one a model steps when items came for it."""
    way = on_its_way(net, train=train, **options)
    learner = way.walk()
    small = narrowed(net, WIDTHS["3"])
    assert small == (net | {"hidden": [3, 3]} if net is MLP else net | {"width": 3})
    for m, model in enumerate(learner.models):
        net = way.ordinary("init" if m == 0 else f"init {m}", net=small)
        own = way.optimizer(net)
        for t in range(len(way.changes)):
            x, y = (part[0] for part in way.batch(t))
            mine = [i for i, task in enumerate(way.setting.tasks[0, way.setting.step(t)].tolist()) if task == m]
            if mine:
                own.zero_grad()
                cross_entropy(net(x[mine]), y[mine], way.mask(t)).backward()
                own.step()
        assert_same_net(model, net, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("train", ["none", "oracle"])
@pytest.mark.parametrize("order", [{"name": "split", "tasks": 3}, {"name": "random"}], ids=lambda order: order["name"])
def test_with_one_mean_a_model_steps_by_its_share_of_the_batch(order, train):
    """Under plain descent; models without an item keep still."""
    way = on_its_way(learner=MM | {"name": "multi_model_one_mean"}, order=order | {"length": None}, train=train)
    learner, shares = way.walk(), set()
    for m, model in enumerate(learner.models):
        net = way.ordinary("init" if m == 0 else f"init {m}", net=narrowed(MLP, WIDTHS["3"]))
        for t in range(len(way.changes)):
            x, y = (part[0] for part in way.batch(t))
            mine = [i for i, task in enumerate(way.setting.tasks[0, way.setting.step(t)].tolist()) if task == m]
            if mine:
                shares.add(len(mine) / len(x))
                net.zero_grad()
                cross_entropy(net(x[mine]), y[mine], way.mask(t)).backward()
                with torch.no_grad():
                    for p in net.parameters():
                        p -= way.spec["budget"]["learning_rate"] * len(mine) / len(x) * p.grad
        assert_same_net(model, net, rtol=1e-6, atol=1e-8)
    assert (len(shares) > 1) == (order["name"] == "random")


def test_one_model_of_the_cells_own_width_is_single():
    """Bit for bit, through the loop: so offline, where one model has Single's width, the column is Single's."""
    net = {"name": "mlp", "hidden": [7, 7]}
    results = []
    for learner in ({"name": "single"}, MM | {"widths": {"1": 7}}):
        spec = two_tasks(learner, net, oracle=split(1), order={"name": "random", "length": None})
        results += loop.train(spec, DATA, {3: made(spec, DATA, 3)}, torch.device("cpu"))
    single, one = results
    assert one["test"] == single["test"]
    assert one["probes"] == single["probes"]
    assert one["online"] == single["online"]


def test_loss_and_logits_are_those_of_the_models_before_they_learn():
    way = on_its_way(order={"name": "random", "length": None})
    way.walk(until=3)
    before, (x, y) = copy.deepcopy(way.learner.models), way.batch(3)
    loss, logits = way.step()
    for i, task in enumerate(way.setting.tasks[0, way.setting.step(3)].tolist()):
        sub = [j for j, other in enumerate(way.setting.tasks[0, way.setting.step(3)].tolist()) if other == task]
        torch.testing.assert_close(logits[0, i], before[task](x[:, sub])[0, sub.index(i)].detach())
    torch.testing.assert_close(loss[0], F.cross_entropy(logits[0], y[0]))


# --- answering ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("net", [MLP, CNN], ids=lambda net: net["name"])
def test_at_test_the_tasks_own_model_answers(net):
    way = on_its_way(net)
    learner, (x, _) = way.walk(), way.batch(0)
    tasks = torch.tensor([[2, 0, 1, 1, 2]])
    with learner.evaluation(), torch.no_grad():
        scores = learner.scores(x, tasks)
        for i, task in enumerate(tasks[0].tolist()):
            torch.testing.assert_close(scores[0, i], learner.models[task].eval()(x[:, i : i + 1])[0, 0])
    assert all(model.training for model in learner.models)


@pytest.mark.parametrize("net", [MLP, CNN], ids=lambda net: net["name"])
def test_by_entropy_the_surest_model_learns_and_answers(net):
    """For each item, the entropies of all models one by one, in evaluation mode."""
    way = on_its_way(net, oracle={"name": "entropy", "tasks": 3}, batch=3)
    learner, chosen = way.learner, set()
    assert len(learner.models) == 3

    def surest(item):
        entropies = []
        for model in learner.models:
            p = copy.deepcopy(model).eval()(item[None, None])[0, 0].softmax(dim=0)
            entropies.append(sum(-q * math.log(q) for q in p.tolist()))
        return entropies.index(min(entropies))

    for t in range(len(way.changes)):
        before, expected = state(learner.models), {surest(item) for item in way.batch(t)[0][0]}
        way.step()
        assert moved(learner.models, before) == [m in expected for m in range(3)]
        chosen |= expected
    assert len(chosen) > 1
    x, _ = way.batch(0)
    with learner.evaluation(), torch.no_grad():
        scores = learner.scores(x, torch.zeros(1, x.shape[1], dtype=torch.long))
        for i, item in enumerate(x[0]):
            torch.testing.assert_close(scores[0, i], learner.models[surest(item)](item[None, None])[0, 0])


# --- sizes -------------------------------------------------------------------------------------------------


def parameters(spec, shape, classes):
    with torch.device("meta"):
        return sum(p.numel() for p in nets.build(spec, shape, classes).parameters())


@pytest.mark.parametrize(("models", "width"), [(20, 14), (10, 20), (5, 28), (3, 36)])
def test_cifar100_models_are_together_as_large_as_single(models, width):
    """Appendix A.7's widths against width 64; 20 models of 14 are inferred, and fit as well."""
    single = {"name": "resnet18_reduced", "width": 64, "head": "linear"}
    whole = parameters(single, (3, 32, 32), 100)
    assert whole == pytest.approx(11.2e6, rel=0.01)
    assert models * parameters(narrowed(single, width), (3, 32, 32), 100) == pytest.approx(whole, rel=0.05)


def test_mnist_models_are_together_smaller_than_single():
    """Appendix A.7 prints widths that do not fill the single net's 400-400; the printed widths stand."""
    single = {"name": "mlp", "hidden": [400, 400]}
    whole = parameters(single, (1, 28, 28), 10)
    shares = {
        models: models * parameters(narrowed(single, width), (1, 28, 28), 10) / whole
        for models, width in ((2, 214), (3, 146), (5, 90), (15, 30))
    }
    assert 0.775 < min(shares.values()) < 0.785
    assert 0.895 < max(shares.values()) < 0.905


def test_what_it_reports_is_what_it_has():
    learner = on_its_way(net=MLP).learner
    assert learner.report(0) == {"models": 3, "parameters": 3 * parameters(narrowed(MLP, 3), (1, 4, 4), 6)}
