"""A learner for which memory does not suffice spoils neither its mates nor the job."""

import gc

import pytest
import torch
from tiny import CPU, cell

from clpapers.runs import loop

CPU_ALLOCATOR = "[enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to"
SHORTAGES = [MemoryError(), torch.OutOfMemoryError("CUDA out of memory."), RuntimeError(CPU_ALLOCATOR)]
STEP = """
    alive = []

    def observe(self, t, x, y):
        import weakref

        seeds = self.setting.seeds
        if t == 0:
            self.alive.append((weakref.ref(self), [mate() is not None for mate, _ in self.alive]))
            self.itself = self if len(seeds) > 1 else None  # which only a collection frees
        if t == 3 and ({condition}):
            raise {error}
        return super().observe(t, x, y)

    def report(self, s):
        return {{"alive": [mates for _, mates in self.alive]}}
"""


@pytest.fixture
def run(data, written):
    """Train some seeds, for which a step may raise an error under a condition."""

    def of(streams, condition="False", error=None, seconds=None):
        name = repr(error).replace("OutOf", "torch.OutOf")
        spec = cell("single", {}, "mlp") | {"learner": written(STEP.format(condition=condition, error=name))}
        found = loop.train(spec, data, streams, CPU, seconds)
        reports = [each.pop("learner") for each in found if "learner" in each]
        return found, reports[-1]["alive"]

    return of


@pytest.fixture
def alone(streams, run):
    return [run({seed: streams[seed]})[0][0] for seed in streams]


@pytest.mark.parametrize("error", SHORTAGES, ids=lambda error: type(error).__name__)
def test_a_seed_that_does_not_fit_leaves_its_mates_alone(error, streams, alone, run):
    seconds = {}
    (first, second, third), _ = run(streams, "1 in seeds", error, seconds)
    assert second == {"seed": 1, "out_of_memory": True}
    assert [first, third] == [alone[0], alone[2]]
    assert [each.keys() for each in seconds.values()] == [{0, 2}] * 2


def test_a_stack_that_does_not_fit_is_trained_seed_by_seed_with_its_memory_freed(streams, alone, run):
    """No learner of before is alive when another begins."""
    gc.disable()  # but for the loop's own collection
    try:
        found, alive = run(streams, "len(seeds) > 1", SHORTAGES[1])
    finally:
        gc.enable()
    assert found == alone
    assert alive == [[], [False], [False] * 2, [False] * 3]


@pytest.mark.parametrize("error", [RuntimeError("mat1 and mat2 shapes cannot be multiplied"), ValueError("no")])
def test_other_errors_are_errors(error, streams, run):
    with pytest.raises(type(error), match=str(error)):
        run(streams, "1 in seeds", error)
