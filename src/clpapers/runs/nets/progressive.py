"""Progressive networks (Rusu et al. 2016) as in the A-GEM authors' code: a column a task, fed by all earlier columns.

A column consists of levels: the layers of an MLP; the stem, the stages and the head of a ResNet. Before the ReLU of a
level, a column adds an affine map (lateral) of each earlier column's input to that level: full matrices, or 1×1
convolutions of the level's stride. A sum of maps is computed as one map with the parameters of all and the same descent
steps. The net works in stacks, since its code refers only to the channels of one seed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from clpapers.runs import nets
from clpapers.runs.nets.inits import draw_truncated
from clpapers.runs.nets.stacked import channelwise, seedwise

ASKS = ("attributes", "pretrained")

Heights = list[torch.Tensor | None]  # inputs of the levels, from the second on; None where there is no column


class Repeated(nn.Module):
    """The sum of n affine maps of the same input, as √n × one map A.

    A gradient step moves all n maps equally, so their sum moves n times as far as one map; √n·A moves as far when A
    takes the step. So one map suffices. This holds for plain gradient descent only.
    """

    def __init__(self, maps: Sequence[nn.Linear | nn.Conv2d]):
        super().__init__()
        self.times, self.map = len(maps), maps[0]
        if self.times > 1:
            for name in ("weight", "bias"):
                total = sum(getattr(each, name).detach() for each in maps)
                setattr(self.map, name, nn.Parameter(total / math.sqrt(self.times)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mapped = self.map(x)
        return mapped if self.times == 1 else mapped * math.sqrt(self.times)


class Joint(nn.Module):
    """The sum of affine maps of different inputs, as one linear map of the joined inputs, each followed by a 1.

    One matrix product computes all maps. Joined inputs are [S, B, …, rows], and further inputs have further rows; the
    sum is [B, S·n, …], with channels last in memory.
    """

    def __init__(self, maps: Sequence[nn.Linear | nn.Conv2d]):
        super().__init__()
        parts = []
        for each in maps:
            assert each.bias is not None  # as `lateral` makes them
            parts += [each.weight.flatten(1), each.bias[:, None]]
        weight = torch.cat(parts, dim=1)
        self.map = nn.Linear(weight.shape[1], weight.shape[0], bias=False)
        self.map.weight = nn.Parameter(weight.detach())

    def forward(self, joined: torch.Tensor) -> torch.Tensor:
        rows = self.map.weight.shape[-1]
        weight = self.map.weight.view(len(joined), -1, rows).transpose(1, 2)
        mapped = torch.bmm(joined[..., :rows].flatten(1, -2), weight)
        return channelwise(mapped.unflatten(1, joined.shape[1:-1]).movedim(-1, 2))


def lateral(n_in: int, n_out: int, stride: int | tuple[int, int] | None = None) -> nn.Linear | nn.Conv2d:
    """A map from an earlier column, linear or, with a stride, a 1×1 convolution.

    Weights are normal with deviation 0.1, truncated at 0.2; biases are 0.1.
    """
    layer = nn.Linear(n_in, n_out) if stride is None else nn.Conv2d(n_in, n_out, 1, stride)
    draw_truncated(layer.weight, 0.1)
    assert layer.bias is not None
    nn.init.constant_(layer.bias, 0.1)
    return layer


class Level(nn.Module):
    """The activation of a column's own layers plus its laterals from other columns' inputs.

    width: input channels of one seed. layers: the column's own. laterals: None in the first column, or where `layers`
    includes them. stride: in pixels of the input, of laterals that are convolutions.
    """

    def __init__(
        self, width: int, layers: nn.Module, laterals: nn.Module | None, activation: nn.Module, stride: int = 1
    ):
        super().__init__()
        self.width, self.own, self.laterals, self.activation = width, layers, laterals, activation
        self.stride = stride

    def forward(self, h: torch.Tensor, before: torch.Tensor | None) -> torch.Tensor:
        own = self.own(h)
        return self.activation(own if self.laterals is None else own + self.laterals(before))


class Column(nn.Module):
    """A net whose levels also take the inputs of its predecessors' levels."""

    def __init__(self, levels: Sequence[Level]):
        super().__init__()
        self.levels = nn.ModuleList(levels)

    def climb(self, x: torch.Tensor, before: Heights) -> list[torch.Tensor]:
        """The inputs of all levels above images x [B, C, H, W]; `before` are all predecessors', joined."""
        heights = [x]
        for level, inputs in zip(self.levels, [x, *before[:-1]]):
            heights.append(level(heights[-1], inputs))
        return heights[1:]

    def head(self, heights: list[torch.Tensor], before: Heights) -> torch.Tensor:
        """Logits [B, K]."""
        return self.levels[-1](heights[-1], before[-1])

    def join(self, heights: list[torch.Tensor], before: Heights, number: int, columns: int) -> None:
        """Write this column's inputs, every stride-th pixel, into the joined inputs `before` for later laterals.

        The column is the `number`-th, from 0 up; `before` has room for the inputs of `columns` columns.
        """
        for i, (level, h) in enumerate(zip(list(self.levels)[1:], heights)):
            assert isinstance(level, Level)
            seen = h[..., :: level.stride, :: level.stride] if level.stride > 1 else h
            seen = seen.unflatten(1, (-1, level.width)).movedim(2, -1).transpose(0, 1)
            rows = level.width + 1  # the last row is ones, for the biases
            joined = before[i]
            if joined is None:
                before[i] = joined = seen.new_ones(*seen.shape[:-1], columns * rows)
            joined[..., number * rows : (number + 1) * rows - 1] = seen

    def count(self) -> int:
        """The number of parameters, counting all maps of each sum."""
        repeated = [module for module in self.modules() if isinstance(module, Repeated)]
        folded = sum((module.times - 1) * p.numel() for module in repeated for p in module.parameters())
        return folded + sum(p.numel() for p in self.parameters())


class Tower(nn.Module):
    """Stacks of columns. Number `top` learns; the others are frozen, with batch norm in evaluation mode."""

    def __init__(self, columns: Sequence[Column]):
        super().__init__()
        self.columns = nn.ModuleList(columns)
        self.begin(0)

    def column(self, number: int) -> Column:
        """The column of this number."""
        column = self.columns[number]
        assert isinstance(column, Column)
        return column

    def begin(self, top: int) -> None:
        """Make column `top` the learning one."""
        self.top = top
        for c, column in enumerate(self.columns):
            column.requires_grad_(c == top)
        self.train(self.training)

    def train(self, mode: bool = True) -> Tower:
        super().train(False)
        self.training = mode
        self.columns[self.top].train(mode)
        return self

    def forward(self, x: torch.Tensor, before: Heights) -> torch.Tensor:
        """The learning column's logits [S, B, K] of images x [S, B, C, H, W]."""
        column = self.column(self.top)
        return seedwise(column.head(column.climb(channelwise(x), before), before), len(x))

    @torch.no_grad()
    def before(self, x: torch.Tensor) -> Heights:
        """The levels' inputs in the columns before the learning one, joined, of images [S, B, C, H, W].

        Each is [S, B, …, rows], as `Joint` takes it; None where there are none.
        """
        x, before = channelwise(x), self._nothing()
        for c in range(self.top):
            column = self.column(c)
            column.join(column.climb(x, before), before, c, self.top)
        return before

    def answers(self, x: torch.Tensor, numbers: Sequence[int]) -> torch.Tensor:
        """The logits [S, B, K, n] of n columns, numbered in ascending order, of images x [S, B, C, H, W]."""
        packed, before, logits = channelwise(x), self._nothing(), []
        for c in range(numbers[-1] + 1):
            column = self.column(c)
            heights = column.climb(packed, before)
            if c in numbers:
                logits.append(seedwise(column.head(heights, before), len(x)))
            if c < numbers[-1]:
                column.join(heights, before, c, numbers[-1])
        return torch.stack(logits, dim=3)

    def answers_of(self, columns: Sequence[Column], x: torch.Tensor) -> torch.Tensor:
        """The logits [n, S, B, K] of n columns in the place of the learning one, of images x [S, B, C, H, W].

        The earlier columns pass the images once.
        """
        packed, before = channelwise(x), self.before(x)
        return torch.stack([seedwise(each.head(each.climb(packed, before), before), len(x)) for each in columns])

    def _nothing(self) -> Heights:
        return [None] * (len(self.column(0).levels) - 1)


def build(shape: tuple[int, int, int], classes: int, *, net: dict, earlier: int, **given: object) -> Column:
    """A column after `earlier` others, initialised as the `net` that a cell names; laterals are drawn after it.

    given: further arguments, as of `nets.build`. Raises ValueError for a net without a progressive form.
    """
    levels = {"mlp": _mlp, "resnet18_reduced": _resnet, "resnet18": _resnet}
    if net["name"] not in levels:
        raise ValueError(f"{net['name']} has no progressive form; take one of {', '.join(levels)}")
    return Column(levels[net["name"]](nets.build(net, shape, classes, **given), earlier))


# Nets are of type `Any` here, as their parts are found by name.


def _mlp(net: Any, earlier: int) -> list[Level]:
    layers = [layer for layer in net if isinstance(layer, nn.Linear)]
    levels = []
    for layer in layers:
        own: nn.Module = layer
        laterals = [lateral(layer.in_features, layer.out_features) for _ in range(earlier)]
        if layer is layers[0]:  # all maps take the same pixels
            own, laterals = nn.Sequential(nn.Flatten(), Repeated([layer, *laterals])), []
        activation = nn.Identity() if layer is layers[-1] else nn.ReLU()
        levels.append(Level(layer.in_features, own, Joint(laterals) if laterals else None, activation))
    return levels


def _resnet(net: Any, earlier: int) -> list[Level]:
    n_in, n_out = net.stem[0].in_channels, net.stem[0].out_channels
    pixels = [lateral(n_in, n_out, net.stem[0].stride) for _ in range(earlier)]
    levels = [Level(n_in, net.stem[:2], Repeated(pixels) if pixels else None, net.stem[2:])]
    stages = [stage for name, stage in net.named_children() if name.startswith("stage")]
    for stage in stages:
        first, last = stage[0].residual[0], stage[-1]
        n_in, n_out = first.in_channels, last.residual[3].out_channels
        laterals = [lateral(n_in, n_out, first.stride) for _ in range(earlier)]
        activation, last.relu = last.relu, nn.Identity()
        if stage is stages[-1]:
            activation = nn.Sequential(activation, net.pool, net.flatten)
        levels.append(Level(n_in, stage, Joint(laterals) if laterals else None, activation, first.stride[0]))
    laterals = [lateral(net.head.in_features, net.head.out_features) for _ in range(earlier)]
    levels.append(Level(net.head.in_features, net.head, Joint(laterals) if laterals else None, nn.Identity()))
    return levels
