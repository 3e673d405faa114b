"""A learner for which memory does not suffice spoils neither its mates nor the job."""

import weakref

import pytest
import torch
from tiny import CPU, cell

from clpapers.runs import loop
from clpapers.runs.learners.single import Single

CPU_ALLOCATOR = "[enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to"
SHORTAGES = [MemoryError(), torch.OutOfMemoryError("CUDA out of memory."), RuntimeError(CPU_ALLOCATOR)]


@pytest.fixture
def fails(monkeypatch):
    """Makes steps of some seeds, or of more than one seed at once, raise an error; returns the learners that did."""

    def arrange(error, seeds=(), stacks=False, step=3):
        observe, held = Single.observe, []

        def step_of(self, t, x, y):
            if t == step and (set(seeds) & set(self.setting.seeds) or (stacks and len(self.setting.seeds) > 1)):
                held.append(weakref.ref(self))
                raise type(error)(*error.args)  # anew, for it would hold on to the learner
            return observe(self, t, x, y)

        monkeypatch.setattr(Single, "observe", step_of)
        return held

    return arrange


def run(data, streams, seconds=None):
    return loop.train(cell("single", {}, "mlp"), data, streams, CPU, seconds)


@pytest.mark.parametrize("error", SHORTAGES, ids=lambda error: type(error).__name__)
def test_a_seed_that_does_not_fit_leaves_its_mates_alone(error, data, streams, fails):
    expected = [run(data, {seed: streams[seed]})[0] for seed in (0, 2)]
    fails(error, seeds=[1])
    seconds = {}
    first, second, third = run(data, streams, seconds)
    assert second == {"seed": 1, "out_of_memory": True}
    assert [first, third] == expected
    assert [each.keys() for each in seconds.values()] == [{0, 2}] * 2


def test_a_stack_that_does_not_fit_is_trained_seed_by_seed(data, streams, fails):
    expected = [run(data, {seed: streams[seed]})[0] for seed in streams]
    fails(torch.OutOfMemoryError("CUDA out of memory."), stacks=True)
    assert run(data, streams) == expected


def test_no_tensor_of_the_failed_stack_is_kept(data, streams, fails, monkeypatch):
    """What is retried must find the memory free."""
    failed, alive, train_stack = fails(MemoryError(), stacks=True), [], loop._train_stack

    def counted(*given):
        alive.append([each() is not None for each in failed])
        return train_stack(*given)

    monkeypatch.setattr(loop, "_train_stack", counted)
    run(data, streams)
    assert alive == [[], [False], [False], [False]]


@pytest.mark.parametrize("error", [RuntimeError("mat1 and mat2 shapes cannot be multiplied"), ValueError("no")])
def test_other_errors_are_errors(error, data, streams, fails):
    fails(error, seeds=[1])
    with pytest.raises(type(error), match=str(error)):
        run(data, streams)
