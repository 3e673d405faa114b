"""The multi-model: who trains which model, who answers, and how large the models are together."""

import copy
import math

import pytest
import torch
from plain_loop import descend
from tiny import CNN, MLP, RANDOM, Way, assert_same_net, cross_entropy, images, made, split, two_tasks

from clpapers.runs import nets
from clpapers.runs.learners.multi_model import narrowed

DATA = images(classes=6, items=7)
WIDTHS = {"1": 4, "2": 4, "3": 3}
MM = {"name": "multi_model", "widths": WIDTHS}
TASKS = {"order": {"name": "split", "tasks": 3, "length": None}}


def on_its_way(net=MLP, data=DATA, learner=MM, **changed):
    spec = two_tasks(learner, net, **{"oracle": split(3)} | TASKS | changed)
    return Way(spec, data, [made(spec, data)])


def own_nets(way):
    """Ordinary nets as the models begin."""
    small = narrowed(way.spec["net"], WIDTHS["3"])
    return [way.ordinary("init" if m == 0 else f"init {m}", net=small) for m in range(3)]


def surest(nets, item):
    """The number of the net with the least entropy, in evaluation mode."""
    entropies = []
    for net in nets:
        with torch.no_grad():
            p = copy.deepcopy(net).eval()(item[None])[0].softmax(dim=0)
        entropies.append(sum(-q * math.log(q) for q in p.tolist()))
    return entropies.index(min(entropies))


MIXTURE = {"order": RANDOM}
BY_ADAM = {"optimizer": "adam"}
BY_ENTROPY = {"oracle": {"name": "entropy", "tasks": 3}, "batch": 3}


@pytest.mark.parametrize("train", ["none", "oracle"])
@pytest.mark.parametrize(
    ("net", "changed", "one_mean"),
    [
        (MLP, TASKS, False),
        (MLP, TASKS | BY_ADAM, False),
        (MLP, MIXTURE, False),
        (MLP, MIXTURE | BY_ADAM, False),
        (CNN, TASKS, False),
        (MLP, TASKS, True),
        (MLP, MIXTURE, True),
        (MLP, BY_ENTROPY, False),
        (CNN, BY_ENTROPY, False),
    ],
)
def test_models_are_single_nets_that_train_on_their_own_part_of_each_batch(net, changed, one_mean, train):
    """And answer their own items, as they do before they learn them: those of a task, or those that one is surest of.

    With one mean a step is as long as the model's share of the batch. Models without an item keep still.
    """
    way = on_its_way(net, learner=MM | ({"name": "multi_model_one_mean"} if one_mean else {}), train=train, **changed)
    plain, chosen = own_nets(way), set()
    optimizers = [way.optimizer(net) for net in plain]

    def owners(x, tasks):
        return [surest(plain, item) for item in x] if changed is BY_ENTROPY else tasks

    for t in range(len(way.changes)):
        x, y = (part[0] for part in way.batch(t))
        own = owners(x, way.setting.tasks[0, way.setting.step(t)].tolist())
        loss, logits = way.step()
        expected = logits.new_empty(len(x), 6)
        for m in set(own):
            mine = [i for i, owner in enumerate(own) if owner == m]
            expected[mine] = said = plain[m](x[mine])
            descend(optimizers[m], cross_entropy(said, y[mine], way.mask(t)) * (len(mine) / len(x) if one_mean else 1))
        torch.testing.assert_close(logits[0], expected.detach())
        torch.testing.assert_close(loss[0], cross_entropy(expected.detach(), y, way.mask(t)))
        chosen |= set(own)
    for model, net in zip(way.learner.models, plain):
        assert_same_net(model, net, rtol=1e-6, atol=1e-8)
        net.eval()
    assert len(chosen) > 1
    x, tasks = way.batch(0)[0][0], [2, 0, 1, 1, 2]
    with way.learner.evaluation(), torch.no_grad():
        scores = way.learner.scores(x[None], torch.tensor([tasks[: len(x)]]))[0]
        expected = [plain[m](item[None])[0] for m, item in zip(owners(x, tasks), x)]
    torch.testing.assert_close(scores, torch.stack(expected))
    assert all(model.training for model in way.learner.models)
    assert way.learner.report(0) == {
        "models": 3,
        "parameters": sum(p.numel() for net in plain for p in net.parameters()),
    }


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


PRINTED = {2: 214, 3: 146, 5: 90, 15: 30}  # models, and their width


def test_of_all_input_sizes_only_those_about_three_channels_make_the_printed_widths():
    """3 × 28 × 28 = 2352."""

    def size(inputs, width, models=1):
        return models * ((inputs + 1) * width + (width + 1) * width + (width + 1) * 10)

    widths = PRINTED.items()
    found = [n for n in range(100, 5000) if all(size(n, w, m) <= size(n, 400) < size(n, w + 1, m) for m, w in widths)]
    assert found == list(range(2309, 2378))


def test_mnist_models_are_together_smaller_than_single():
    """Appendix A.7 prints widths that do not fill the single net's 400-400; the printed widths stand."""
    single = {"name": "mlp", "hidden": [400, 400]}
    whole = parameters(single, (1, 28, 28), 10)
    shares = [n * parameters(narrowed(single, width), (1, 28, 28), 10) / whole for n, width in PRINTED.items()]
    assert 0.775 < min(shares) < 0.785
    assert 0.895 < max(shares) < 0.905
