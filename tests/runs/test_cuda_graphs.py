"""Captured steps end in the same bytes: on a tape, which replays on the CPU what a CUDA graph replays on a GPU."""

import json

import pytest
import torch
from tape import Looks, Pool, Tape
from tiny import CPU, METHODS, STATIC, Kept, Killed, course, stacked

from clpapers.runs import loop, process
from clpapers.runs.checkpoint import Checkpoint
from clpapers.runs.cuda_graphs import WARM, drops_out, recorders
from clpapers.runs.nets.stacked import stack

FAMILIES = {"single", "er", "mir", "gmed", "ace", "cbrs", "gdumb", "ewc", "si", "mas", "rwalk", "a_gem"}
OTHERS = [
    ("single", "mlp", {"optimizer": "adam"}),
    ("si", "mlp", {"momentum": 0.9, "clip": 0.1}),
    ("er", "resnet", {}),
    ("si", "cosine", {}),
]


@pytest.fixture
def trained(monkeypatch):
    """Train a stack, captured in pools of recorders as on a GPU, or not; the results, as text."""

    def of(spec, data, streams, pool=None, checkpoint=None):
        monkeypatch.setattr(loop, "recorders", lambda device: pool)  # in the place of a GPU's
        process.prepare(CPU, spec["precision"])
        return json.dumps(stacked(spec, data, streams, checkpoint))

    return of


@pytest.fixture
def pools():
    return []


@pytest.fixture
def pool(pools):
    """Makes pools of tapes, and notes them."""
    return lambda: pools.append(Pool()) or pools[-1]


def replayed(pools):
    """How often each tape was replayed."""
    return [len(replays) for pool in pools for replays in pool.replays]


def test_every_family_is_static():
    assert {name for name, _ in STATIC} >= FAMILIES


@pytest.mark.parametrize(
    ("learner", "options", "net", "seeds", "budget"),
    [(*each, net, seeds, {}) for net, seeds in (("mlp", 2), ("cnn", 1)) for each in STATIC]
    + [(learner, METHODS[learner].examples()[0], net, 1, budget) for learner, net, budget in OTHERS],
)
def test_captured_it_ends_in_the_same_bytes(learner, options, net, seeds, budget, data, trained, pools, pool, capfd):
    spec, streams = course(learner, options, net, data, seeds, **budget)
    there = trained(spec, data, streams, pool)
    assert "not captured" not in capfd.readouterr().err
    times = replayed(pools)
    assert sum(times) > 2 * WARM
    assert all(times)
    assert there == trained(spec, data, streams)


@pytest.mark.parametrize("learner", sorted(FAMILIES))
@pytest.mark.parametrize("on_tape", [False, True])
def test_a_killed_run_goes_on_to_the_same_bytes(learner, on_tape, data, trained, pools, pool, tmp_path):
    """Killed amid replays, it is captured anew; what a GPU began may even go on without graphs."""
    spec, streams = course(learner, METHODS[learner].examples()[-1], "mlp", data)
    with pytest.raises(Killed):
        trained(spec, data, streams, pool, Kept(tmp_path / "run.json", 11))
    assert any(replayed(pools))
    resumed = trained(spec, data, streams, pool if on_tape else None, Checkpoint(tmp_path / "run.json", {}))
    assert resumed == trained(spec, data, streams)


class Fails(Tape):
    """Cannot capture the 61st operation."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if len(self.calls) == 60:
            raise RuntimeError("operation not permitted when stream is capturing\nmore")
        return super().__torch_dispatch__(func, types, args, kwargs)

    def capture(self, program):
        try:
            return super().capture(program)
        finally:
            self.restore()


@pytest.mark.parametrize("learner", ["er", "gmed", "ewc", "a_gem"])
def test_what_cannot_be_captured_is_taken_kernel_by_kernel(learner, data, trained, capfd):
    """An error amid the capture leaves no trace."""
    spec, streams = course(learner, METHODS[learner].examples()[0], "cnn", data)
    there = trained(spec, data, streams, lambda: Fails)
    (told,) = [line for line in capfd.readouterr().err.splitlines() if "not captured" in line]
    assert told.endswith("without graphs: operation not permitted when stream is capturing")
    assert there == trained(spec, data, streams)


@pytest.mark.parametrize(
    "looks",
    [
        torch.nonzero,
        torch.unique,
        lambda x: x[x > 1],
        lambda x: bool(x[0] > 1),
        lambda x: x.to(torch.long).bincount(),
        lambda x: torch.tensor([1]) + x,
        lambda x: x.tolist(),
        lambda x: x.numpy(),
    ],
)
def test_a_learner_that_looks_is_found_out(looks):
    x = torch.arange(4.0)
    with pytest.raises(Looks):
        Tape().capture(lambda: looks(x))


def test_a_net_that_drops_out_is_not_captured():
    assert drops_out(stack(lambda: torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.5)), [0]))


def test_graphs_are_for_gpus_and_can_be_switched_off(monkeypatch):
    assert recorders(CPU) is None
    monkeypatch.setenv("CLPAPERS_GRAPHS", "0")
    assert recorders(torch.device("cuda")) is None
