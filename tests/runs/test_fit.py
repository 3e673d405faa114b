"""A resumed state fits the run if it can have come of its beginning; whatever else it holds is named."""

import collections
import copy

import numpy as np
import pytest
import torch

from clpapers.runs.fit import misfit
from clpapers.runs.optimizers import Adam


class Held:
    """Something that changes as a run goes on."""

    moves = ("count", "grown")
    fixed = True

    def __init__(self):
        self.rate, self.count, self.later = 0.1, 0, None
        self.grown, self.table = torch.zeros(0), np.zeros((2, 3))
        self.net = torch.nn.Linear(3, 2)
        self.optimizer = Adam(self.net.parameters(), 0.1)
        self.notes, self.kept = [], {}


@pytest.fixture
def resumed():
    """What has come of a `Held`."""
    held = Held()
    held.count, held.later, held.grown = 7, torch.ones(3), torch.ones(4)
    held.notes, held.kept, held.drawn = [1, 2], {"a": np.ones(2)}, torch.ones(1)
    held.table += 1
    held.net(torch.ones(3)).sum().backward()
    held.optimizer.step()
    return held


def test_what_came_of_it_fits(resumed):
    assert misfit(Held(), resumed) == ""
    assert misfit(Held(), copy.deepcopy(resumed)) == ""


def weight(held, value):
    held.net.weight = torch.nn.Parameter(value)


FORGED = {
    "another type": (lambda h: vars(h).update(rate=1), "state.rate is of type int, not float"),
    "another option": (lambda h: vars(h).update(rate=0.2), "state.rate is 0.2, not 0.1"),
    "an option that is no number": (lambda h: vars(h).update(rate=float("nan")), "state.rate is nan, not 0.1"),
    "a counter of another type": (lambda h: vars(h).update(count=7.0), "state.count is of type float, not int"),
    "more dimensions of what grows": (lambda h: vars(h).update(grown=torch.ones(1, 4)), "state.grown is "),
    "another dtype of what grows": (lambda h: vars(h).update(grown=torch.ones(4).double()), "state.grown is "),
    "another shape": (
        lambda h: vars(h).update(table=np.ones((2, 4))),
        "state.table is float64 [2, 4], not float64 [2, 3]",
    ),
    "another dtype": (lambda h: vars(h).update(table=np.ones((2, 3), int)), "state.table is int64 [2, 3], not float64"),
    "no attribute": (lambda h: vars(h).pop("rate"), "state lacks rate"),
    "an attribute of the class": (lambda h: vars(h).update(fixed=False), "state hides fixed of its class"),
    "other weights' shape": (lambda h: weight(h, torch.ones(1, 3)), "is torch.float32 [1, 3] on cpu, not"),
    "weights that the optimiser does not have": (lambda h: weight(h, torch.ones(2, 3)), "is not shared with what"),
    "frozen weights": (lambda h: h.net.requires_grad_(False), "is frozen, or is not, unlike the run's own"),
    "items that share memory": (lambda h: h.optimizer.means.__setitem__(0, torch.zeros(1).expand(2, 3)), "share their"),
    "on another device": (lambda h: h.optimizer.means.__setitem__(0, torch.ones(2, 3, device="meta")), "on meta, not"),
    "a hook": (lambda h: h.net.register_forward_hook(torch.nn.Identity()), "state.net has other _forward_hooks than"),
    "another layer": (lambda h: h.net.add_module("more", torch.nn.Identity()), "state.net has other _modules than"),
    "fewer items": (lambda h: h.optimizer.means.pop(), "state.optimizer.means has 1 items, not 2"),
    "one for two": (lambda h: vars(h.optimizer).update(squares=h.optimizer.means), "is not shared with what it should"),
}


@pytest.mark.parametrize("kind", FORGED)
def test_what_cannot_have_come_of_it_is_named(kind, resumed):
    forge, said = FORGED[kind]
    forge(resumed)
    assert said in misfit(Held(), resumed)


def test_what_moves_may_be_replaced(resumed):
    resumed.moved = resumed.net
    begun = Held()
    begun.moved = begun.net
    assert misfit(begun, resumed) == ""
    resumed.moved = torch.nn.Linear(3, 2)
    assert "is not shared with what it should be" in misfit(begun, resumed)
    Held.moves = (*Held.moves, "moved")
    assert misfit(begun, resumed) == ""
    resumed.moved = torch.nn.Linear(3, 3)
    assert "torch.float32 [3, 3]" in misfit(begun, resumed)  # weights keep their shape all the same
    Held.moves = Held.moves[:-1]


def test_constants_are_the_very_same():
    images = np.zeros(3)
    begun, other = [images], [images.copy()]
    assert misfit(begun, [images], [images]) == ""
    assert misfit(begun, other, [images]) == "state[0] is another than the run's own"
    assert misfit(begun, other) == ""


def test_states_that_hold_themselves_end():
    begun, resumed = [[]], [[]]
    begun[0].append(begun)
    resumed[0].append(resumed)
    assert misfit(begun, resumed) == ""
    assert misfit(begun, [resumed]) != ""  # one more turn of the same


def test_keys_are_kept():
    assert misfit({"a": 1}, {"a": 1, "b": 2}) == ""
    assert misfit({"a": 1}, collections.OrderedDict(a=1)) == "state is of type OrderedDict, not dict"
    assert misfit({"a": 1, "b": 2}, {"a": 1}) == "state lacks b"
    assert misfit({"a": {"b": 1}}, {"a": {"b": 2}}) == "state[a][b] is 2, not 1"
