"""PROG-NN: explicit sums of maps; what each column sees; nothing is forgotten; sizes; seeds."""

import copy
import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from plain_loop import descend
from tiny import CHUNKS, EMBEDDING, LR, MLP, RESNET, Way, cross_entropy, images, two_tasks
from torch import nn

from clpapers.streams import orders

PROG = {"name": "prog_nn"}
DATA = images(classes=6, items=7)
SPLIT = {"name": "split", "tasks": 3, "length": None}
DOMAINS = {"name": "permuted_pixels", "tasks": 3, "length": 36}
RESNET18 = {"name": "resnet18", "width": 2, "pool": True, "head": "linear", "weights": "none"}
NETS = pytest.mark.parametrize(
    "net", [MLP, RESNET, RESNET18, EMBEDDING], ids=["mlp", "reduced", "resnet18", "embedding"]
)


def on_its_way(net=MLP, order=SPLIT, seeds=(0,), train="oracle", data=None, **changed):
    side = 16 if net is RESNET18 else 8
    data = data or (DATA if net is MLP else images(classes=6, items=7, shape=(side, side, 1)))
    spec = two_tasks(PROG, net, oracle=CHUNKS, order=order, train=train, **changed)
    pixels = data.train_x[0, ..., 0].size
    return Way(spec, data, [orders.make(order, data.train_y, seed, pixels) for seed in seeds])


def beginnings(way):
    """The first steps of the tasks."""
    return [0, *way.changes.nonzero()[0].tolist()]


def answers(way, task, x):
    """The logits of one task's column."""
    with way.learner.evaluation(), torch.no_grad():
        return way.learner.scores(x, torch.full(x.shape[:2], task))


def unfolded(weight, count):
    """The weights and biases of so many earlier columns' maps, as they stand side by side."""
    return [(w[:, :-1].clone(), w[:, -1].clone()) for w in weight.detach().chunk(count, dim=1)]


class PlainColumn:
    """An MLP column with an affine map for each layer, and one from each layer of each earlier column."""

    def __init__(self, column, earlier):
        self.layers = []
        for i, level in enumerate(column.levels):
            if i == 0:  # how their sum is shared out among the maps does not matter
                own = [p.detach() * math.sqrt(earlier + 1) for p in level.own[1].map.parameters()]
                maps = [[torch.zeros_like(p) for p in own] for _ in range(earlier)]
            else:
                own = level.own.parameters()
                maps = unfolded(level.laterals.map.weight, earlier) if earlier else []
            self.layers.append([[p.detach().clone().requires_grad_() for p in each] for each in (own, *maps)])

    def parameters(self):
        return [p for maps in self.layers for each in maps for p in each]

    def __call__(self, x, others):
        """Logits and the inputs of all layers, from x [B, pixels] and the inputs of the earlier columns' layers."""
        inputs = [x]
        for i, maps in enumerate(self.layers):
            h = sum(F.linear(each[i], *own) for each, own in zip([inputs, *others], maps, strict=True))
            inputs.append(h.relu() if i + 1 < len(self.layers) else h)
        return inputs.pop(), inputs


@pytest.mark.parametrize("batch", [1, 5])
@pytest.mark.parametrize("order", [SPLIT, DOMAINS], ids=lambda order: order["name"])
def test_training_equals_the_explicit_sums_of_maps(order, batch):
    """Logits, losses and all answers of three columns; some tasks have more steps than pass frozen columns at once."""
    train = "oracle" if order is SPLIT else "none"
    way = on_its_way(order=order, train=train, data=images(classes=6, items=7 if batch > 1 else 18), batch=batch)
    columns = [PlainColumn(column, c) for c, column in enumerate(way.learner.net.columns)]

    def forward(task, x):
        others = []
        for column in columns[:task]:
            with torch.no_grad():
                others.append(column(x, others)[1])
        return columns[task](x, others)[0]

    for t in range(len(way.changes)):
        x, y = way.batch(t)
        task = int(way.setting.tasks[0, way.setting.step(t).start])
        plain = forward(task, x[0].flatten(1))
        loss = cross_entropy(plain, y[0], way.mask(t))
        descend(torch.optim.SGD(columns[task].parameters(), lr=LR), loss)
        said = way.step()
        torch.testing.assert_close(said[0][0], loss)
        torch.testing.assert_close(said[1][0], plain)
    x = way.setting.images(way.setting.items)
    expected = torch.stack([forward(c, x[0].flatten(1)).detach() for c in range(3)])
    tasks = torch.arange(x.shape[1]) * 2 % 3  # each item by its own column
    with way.learner.evaluation(), torch.no_grad():
        scores = way.learner.scores(x, tasks[None])[0]
    torch.testing.assert_close(scores, expected[tasks, torch.arange(x.shape[1])])


@pytest.mark.parametrize("net", [RESNET, RESNET18, EMBEDDING], ids=["reduced", "resnet18", "embedding"])
def test_resnet_columns_equal_explicit_sums_of_convolutions(net):
    """In evaluation mode, level by level, after training."""
    way, x = on_its_way(net), on_its_way(net).batch(0)[0]
    columns = way.walk().net.columns
    said, x = [answers(way, c, x)[0] for c in range(3)], x[0]
    way.learner.net.eval()
    seen, first = [], 2 if net is RESNET18 else 1  # of each column: the inputs of stem, stages and head
    for c, column in enumerate(columns):
        inputs = [x]
        for i, (level, stride) in enumerate(zip(column.levels, (first, 1, 2, 2, 2, None), strict=True)):
            h = level.own(inputs[i])
            if i == 0 and c:
                weight, bias = level.laterals.map.parameters()
                h = h + math.sqrt(c) * F.conv2d(x[..., ::first, ::first], weight.view(-1, 1, 1, 1), bias.flatten())
            for (weight, bias), other in zip(unfolded(level.laterals.map.weight, c) if i and c else [], seen):
                if stride is None:
                    h = h + F.linear(other[i], weight, bias)
                else:
                    h = h + F.conv2d(other[i][..., ::stride, ::stride], weight[..., None, None], bias)
            inputs.append(h if stride is None else h.relu())
            if i == 0 and first == 2:
                inputs[-1] = F.max_pool2d(inputs[-1], 3, 2, padding=1)
            if i == 4:
                inputs[-1] = inputs[-1].mean(dim=(2, 3))
        torch.testing.assert_close(said[c], inputs.pop().detach())
        seen.append(inputs)


@NETS
def test_the_first_column_is_the_cells_net(net):
    """As it is initialised, and after training on the first task."""
    way = on_its_way(net)
    plain, second = way.ordinary(), beginnings(way)[1]
    optimizer = way.optimizer(plain)
    for t in range(second):
        x, y = way.batch(t)
        logits = plain(x[0])
        torch.testing.assert_close(way.step()[1][0], logits)
        descend(optimizer, cross_entropy(logits, y[0], way.mask(t)))
    x = way.batch(second)[0]
    torch.testing.assert_close(answers(way, 0, x)[0], plain.eval()(x[0]).detach())


def test_columns_begin_as_the_cells_net_with_truncated_normal_laterals():
    """The first layer is the net's and the laterals' from pixels in one."""
    way = on_its_way({"name": "mlp", "hidden": [100, 100]}, data=DATA)
    for c, column in enumerate(way.learner.net.columns):
        net = way.ordinary(f"init {c}" if c else "init")
        layers = [layer for layer in net if isinstance(layer, nn.Linear)]
        first = column.levels[0].own[1].map
        torch.testing.assert_close(first.bias * math.sqrt(c + 1), layers[0].bias + 0.1 * c)
        drawn = [(first.weight * math.sqrt(c + 1) - layers[0].weight, c)]
        for level, layer in zip(list(column.levels)[1:], layers[1:], strict=True):
            torch.testing.assert_close(list(level.own.parameters()), list(layer.parameters()))
            maps = unfolded(level.laterals.map.weight, c) if c else []
            assert all(torch.allclose(bias, torch.full_like(bias, 0.1)) for _, bias in maps)
            assert all(not torch.equal(a, b) for (a, _), (b, _) in itertools.combinations(maps, 2))
            drawn += [(weight, 1) for weight, _ in maps]
        for weight, count in drawn:
            assert weight.abs().max() <= 0.2 * count + 1e-9
            assert weight.std().item() == pytest.approx(0.088 * math.sqrt(count), rel=0.1)  # 0.88: the cut normal's


@NETS
def test_old_logits_never_change(net):
    """Bit for bit, and with them columns and running statistics; the columns to come do not change either."""
    way, x = on_its_way(net), on_its_way(net).batch(1)[0]
    starts = [*beginnings(way), len(way.changes)]
    for task, end in enumerate(starts[1:]):
        columns = way.learner.net.columns
        before = [(answers(way, c, x), copy.deepcopy(column.state_dict())) for c, column in enumerate(columns)]
        way.walk(until=end)
        for c, (column, (said, was)) in enumerate(zip(columns, before)):
            assert all(torch.equal(was[k], v) for k, v in column.state_dict().items()) == (c != task)
            if c < task:
                assert torch.equal(said, answers(way, c, x))


@pytest.mark.parametrize(
    ("net", "maps"),
    [
        (MLP, [(16, 6), (6, 5), (5, 6)]),
        *((net, [(1, 2), (2, 2), (2, 4), (4, 8), (8, 16), (16, 6)]) for net in (RESNET, RESNET18, EMBEDDING)),
    ],
    ids=["mlp", "reduced", "resnet18", "embedding"],
)
def test_column_c_has_the_net_and_c_maps_from_the_inputs_of_each_layer_or_stage(net, maps):
    way = on_its_way(net)
    whole = sum(p.numel() for p in way.ordinary().parameters())
    parameters = 3 * whole + (1 + 2) * sum(n_in * n_out + n_out for n_in, n_out in maps)
    assert way.learner.report(0) == {"columns": 3, "parameters": parameters}


@pytest.mark.parametrize("tasks", [[0, 1, 0], [1, 1, 2], [0, 2, 2]], ids=str)
def test_tasks_must_come_one_after_another(tasks):
    with pytest.raises(ValueError, match="one after another"):
        Way(on_its_way().spec, DATA, [orders.make(SPLIT, DATA.train_y, 0)], tasks=torch.tensor([tasks]))
