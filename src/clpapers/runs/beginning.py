"""The beginning of a run: what its first steps give, or, of a learner without losses, its first answers."""

import copy
import dataclasses
import functools
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from clpapers.catalogue import methods
from clpapers.runs import learners, loop
from clpapers.runs.evaluation.final import FinalTest
from clpapers.runs.learner import Learner
from clpapers.runs.nets.stacked import Stack
from clpapers.streams.stream import Stream

NUDGE = 1e-7  # about the rounding of float32


def begin(
    cell: dict,
    data: loop.Data,
    streams: dict[int, Stream],
    steps: int,
    *,
    stacking: bool = True,
    nudge: float = 0.0,
    draw: int = 0,
    answers: bool = False,
    seconds: float = 60.0,
) -> dict[int, dict]:
    """Take the first steps of the first stack that a cell's seeds form, on a CPU; by seed, the beginning of its result.

    cell, data, streams, stacking: as of `loop.train`.
    steps: so many at most. Where a step is a whole task, one, and what its options repeat is done once: its loss is of
        before.
    nudge: by which share each weight of a new net is changed, up or down. draw: which of them go up.
    answers: whether to take steps until the first tests are taken, and return those; otherwise `online` alone.
    seconds: of one core, after which no further step is taken. Without any finding the result is empty.
    """
    cell = copy.deepcopy(cell)
    if cell["budget"]["batch"] == "task" and not answers:
        steps = 1
        for path in methods.method_of(cell["learner"]).repeats:
            *above, last = path.split(".")
            options = functools.reduce(dict.__getitem__, above, cell["learner"])
            options[last] = options[last] and 1
    data, groups = loop.stacks(cell, data, streams, torch.device("cpu"), stacking=stacking)
    course = _Course(cell, data, groups[0], nudge, draw)
    evaluators = [each for each in course.evaluation.evaluators if not isinstance(each, FinalTest)]
    if not answers:
        course.evaluation.tested = set()
    with _until(seconds):
        for taken in course.steps():
            if any(each.taken for each in evaluators if not each.before) if answers else taken == steps:
                break
    if not answers and not course.run.step:
        return {}
    found: dict[int, dict] = {}
    for s, seed in enumerate(course.setting.seeds):
        entry = found[seed] = {} if answers else {"online": course.run.online.result(s)}
        for each in evaluators:
            for key, value in each.result(s).items() if answers and each.taken else ():
                entry[key] = entry.get(key, {}) | value
    return {seed: entry for seed, entry in found.items() if entry}


class _Course(loop.Course):
    """A course whose nets begin with weights a little beside their own."""

    def __init__(self, cell: dict, data: loop.Data, scenarios: list, nudge: float, draw: int):
        self.nudge, self.draw = nudge, draw
        super().__init__(cell, data, scenarios, torch.device("cpu"))

    def learner(self) -> Learner:
        build, drawn = self.given.build, torch.Generator().manual_seed(self.draw)

        def nudged(*given: object, **options: object) -> Stack:
            net = build(*given, **options)
            with torch.no_grad():
                for weight in net.parameters():
                    sign = torch.randint(2, weight.shape, generator=drawn) * 2 - 1
                    weight.copy_((weight.double() * (1 + self.nudge * sign)).to(weight.dtype))
            return net

        given = dataclasses.replace(self.given, build=nudged) if self.nudge else self.given
        return learners.create(self.cell["learner"], given)


@contextmanager
def _until(seconds: float) -> Iterator[None]:
    """End the block, in silence, after seconds of the process's time; in a main thread."""

    def end(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    except TimeoutError:
        pass
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
