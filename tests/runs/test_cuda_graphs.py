"""Captured steps end in the same bytes: on a tape, which replays on the CPU what a CUDA graph replays on a GPU."""

import json

import pytest
import torch
from tape import Looks, Pool, Tape, refuse
from tiny import CPU, METHODS, STATIC, Kept, Killed, course, scenarios, setting
from torch.utils._python_dispatch import TorchDispatchMode

from clpapers.runs import learners, loop, process
from clpapers.runs.checkpoint import Checkpoint
from clpapers.runs.cuda_graphs import WARM, Steps, drops_out, observe, recorders
from clpapers.runs.nets.stacked import stack

FAMILIES = {"single", "er", "mir", "gmed", "ace", "cbrs", "gdumb", "ewc", "si", "mas", "rwalk", "a_gem"}


@pytest.fixture
def pools(monkeypatch):
    """All pools of tapes of the runs on the CPU."""
    made = []

    def pool():
        made.append(Pool())
        return made[-1]

    monkeypatch.setattr(loop, "recorders", lambda device: pool)
    return made


def trained(spec, data, streams, checkpoint=None):
    """The results of a stack, as text."""
    kept = Checkpoint() if checkpoint is None else checkpoint
    process.prepare(CPU, spec["precision"])
    return json.dumps(loop._train_stack(spec, data, scenarios(spec, data, streams), CPU, kept))


def replayed(pools):
    """How often each tape was replayed."""
    return [len(replays) for pool in pools for replays in pool.replays]


def test_every_family_is_static():
    assert {name for name, _ in STATIC} >= FAMILIES


@pytest.mark.parametrize(("net", "seeds"), [("mlp", 2), ("cnn", 1)])
@pytest.mark.parametrize(("learner", "options"), STATIC)
def test_captured_it_ends_in_the_same_bytes(learner, options, seeds, net, data, pools, monkeypatch, capfd):
    spec, streams = course(learner, options, net, data, seeds)
    there = trained(spec, data, streams)
    assert "not captured" not in capfd.readouterr().err
    times = replayed(pools)
    assert sum(times) > 2 * WARM
    assert all(times)
    monkeypatch.setattr(loop, "recorders", lambda device: None)
    assert there == trained(spec, data, streams)


@pytest.mark.parametrize(
    ("learner", "net", "budget"),
    [
        ("single", "mlp", {"optimizer": "adam"}),
        ("si", "mlp", {"momentum": 0.9, "clip": 0.1}),
        ("er", "resnet", {}),
        ("si", "cosine", {}),
    ],
)
def test_with_other_optimisers_and_nets_too(learner, net, budget, data, pools, monkeypatch):
    spec, streams = course(learner, METHODS[learner].examples()[0], net, data, 1, **budget)
    there = trained(spec, data, streams)
    assert sum(replayed(pools)) > 2 * WARM
    monkeypatch.setattr(loop, "recorders", lambda device: None)
    assert there == trained(spec, data, streams)


@pytest.mark.parametrize("learner", sorted(FAMILIES))
@pytest.mark.parametrize("on_tape", [False, True])
def test_a_killed_run_goes_on_to_the_same_bytes(learner, on_tape, data, pools, tmp_path, monkeypatch):
    """Killed amid replays, it is captured anew; what a GPU began may even go on without graphs."""
    spec, streams = course(learner, METHODS[learner].examples()[-1], "mlp", data)
    with pytest.raises(Killed):
        trained(spec, data, streams, Kept(tmp_path / "run.json", 11))
    assert any(replayed(pools))
    if not on_tape:
        monkeypatch.setattr(loop, "recorders", lambda device: None)
    resumed = trained(spec, data, streams, Checkpoint(tmp_path / "run.json", {}))
    monkeypatch.setattr(loop, "recorders", lambda device: None)
    assert resumed == trained(spec, data, streams)


@pytest.mark.parametrize("learner", ["er", "gmed", "ewc", "a_gem"])
def test_what_cannot_be_captured_is_taken_kernel_by_kernel(learner, data, monkeypatch, capfd):
    """An error amid the capture leaves no trace."""

    class Fails(Tape):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if len(self.calls) == 60:
                raise RuntimeError("operation not permitted when stream is capturing\nmore")
            return super().__torch_dispatch__(func, types, args, kwargs)

        def capture(self, program):
            try:
                return super().capture(program)
            finally:
                for tensor, content in self.before.values():
                    tensor.untyped_storage().copy_(content)

    spec, streams = course(learner, METHODS[learner].examples()[0], "cnn", data)
    monkeypatch.setattr(loop, "recorders", lambda device: lambda: Fails)
    there = trained(spec, data, streams)
    told = [line for line in capfd.readouterr().err.splitlines() if "not captured" in line]
    assert len(told) == 1
    assert told[0].endswith("without graphs: operation not permitted when stream is capturing")
    monkeypatch.setattr(loop, "recorders", lambda device: None)
    assert there == trained(spec, data, streams)


class Blind(TorchDispatchMode):
    """Refuses operations that look at values."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        refuse(func, args)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(("learner", "options"), STATIC)
def test_twenty_steps_look_at_no_values(learner, options, data, monkeypatch):
    spec, streams = course(learner, options, "cnn", data)
    given = setting(spec, data, streams)
    made = learners.create(spec["learner"], given)
    changes = scenarios(spec, data, streams)[0].changes
    steps = Steps(made, changes, lambda: Tape)
    for t in range(20):
        if changes[t]:
            made.task_change(t)
        with monkeypatch.context() as within, Blind():
            for name in ("cpu", "numpy", "tolist", "item", "__bool__", "__int__", "__float__", "__array__"):
                within.setattr(torch.Tensor, name, None)
            steps.at.fill_(t)
            observe(made, steps.on_device(t))


def test_a_learner_that_looks_is_found_out(data):
    x = torch.arange(4.0)
    for looks in (x.nonzero, lambda: x[x > 1], lambda: bool(x[0] > 1), x.unique, lambda: x.to(torch.long).bincount()):
        with pytest.raises(Looks), Blind():
            looks()


def test_a_net_that_drops_out_is_not_captured():
    assert drops_out(stack(lambda: torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.5)), [0]))


def test_graphs_are_for_gpus_and_can_be_switched_off(monkeypatch):
    assert recorders(CPU) is None
    monkeypatch.setenv("CLPAPERS_GRAPHS", "0")
    assert recorders(torch.device("cuda")) is None
