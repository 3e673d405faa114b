"""The worth of each change to the speed, before and after in turns: `python benchmarks/bench_changes.py`.

CPU seconds of one thread, as `bench_learners` has them, but for the plan's hours, which are predictions.
"""

import argparse
import contextlib
import copy
import math
import os
import statistics
from collections.abc import Callable, Iterator
from unittest import mock

import torch
import torch.nn.functional as F
from bench_learners import clock, random_data
from bench_passes import steps as passes
from bench_stacking import steps_of
from tabulate import tabulate
from torch import nn

from clpapers.budget import costs
from clpapers.cache import Cache
from clpapers.catalogue import methods
from clpapers.config import checks, gans, identity, schemas
from clpapers.config.plan import Plan
from clpapers.config.settings import all_papers
from clpapers.runs import learner, nets, process
from clpapers.runs.nets import progressive, stacked
from clpapers.runs.nets.folding import folded
from clpapers.runs.nets.stacked import stack

CPU = torch.device("cpu")
REDUCED = {"name": "resnet18_reduced", "width": 20, "head": "linear"}
STANDARD = {"name": "resnet18", "width": 64, "pool": True, "head": "linear", "weights": "none"}
NETS = {"reduced ResNet-18, 32 × 32": (REDUCED, 32), "ResNet-18, 224 × 224": (STANDARD, 224)}
COLUMNS, BATCH, TESTED = 17, 10, 500
SHOTS = 10  # of a learning curve
EACH_ORACLE = "Runs for each oracle that changes the task with every batch of chunks of classes, and shared"
TESTED_APART = "Tests of all tasks' items apart, with learning curves in searches, and as they are"


def images(count: int, side: int) -> torch.Tensor:
    """Noise [1, count, 3, side, side], in memory as batches come from a data set."""
    return torch.randn(1, count, side, side, 3).movedim(-1, -3)


def turns(before: Callable[[], object], after: Callable[[], object], rounds: int) -> tuple[float, float, float]:
    """Median seconds of both, which take turns, and the median ratio; the first turn is for caches."""
    taken = []
    for _ in range(rounds + 1):
        pair = []
        for work in (before, after):
            began = clock(CPU)
            work()
            pair.append(clock(CPU) - began)
        taken.append(pair)
    pairs = taken[1:]
    return *map(statistics.median, zip(*pairs)), statistics.median(old / new for old, new in pairs)


# --- PROG-NN -------------------------------------------------------------------------------------------------


class Convolved(progressive.Joint):
    """Laterals as a convolution of all inputs joined, [B, rows, …], which skips pixels itself."""

    stride = 1

    def forward(self, joined: torch.Tensor) -> torch.Tensor:
        weight = self.map.weight
        return (
            F.linear(joined, weight)
            if joined.dim() == 2
            else F.conv2d(joined, weight[..., None, None], stride=self.stride)
        )


def join(column, heights, before, number, columns) -> None:
    """All inputs copied again for each column."""
    for i, h in enumerate(heights):
        parts = [h, torch.ones_like(h[:, :1])]
        before[i] = torch.cat(parts if before[i] is None else [before[i], *parts], dim=1)


@contextlib.contextmanager
def joined_anew(tower: progressive.Tower) -> Iterator[None]:
    """Inside, a tower works as it did before its columns' inputs were joined once."""
    joints = [(level, m) for level in tower.modules() for m in level.children() if isinstance(m, progressive.Joint)]
    for level, joint in joints:
        joint.__class__, joint.stride = Convolved, level.stride
    with mock.patch.object(progressive.Column, "join", join):
        yield
    for _, joint in joints:
        joint.__class__ = progressive.Joint


def prog_nn(name: str, rounds: int) -> tuple:
    """A step of the last column."""
    net, side = NETS[name]
    built = (progressive.build((3, side, side), 85, net=net, earlier=c) for c in range(COLUMNS))
    tower, x = progressive.Tower([*built]).train(), images(BATCH, side)
    tower.begin(COLUMNS - 1)

    def step() -> torch.Tensor:
        logits = tower(x, tower.before(x))
        logits.sum().backward()
        return logits.detach()

    def before() -> torch.Tensor:
        with joined_anew(tower):
            return step()

    torch.testing.assert_close(before(), step(), rtol=1e-3, atol=1e-3)
    return f"PROG-NN, {name}: a step of column {COLUMNS}", *turns(before, step, rounds)


@torch.no_grad()
def learning_curve(name: str, rounds: int) -> tuple:
    """A batch of the last column's learning curve, test by test and of all snapshots at once."""
    net, side = NETS[name]
    built = (progressive.build((3, side, side), 85, net=net, earlier=c) for c in range(COLUMNS))
    tower, x = progressive.Tower([*built]).eval(), images(BATCH, side)
    tower.begin(COLUMNS - 1)
    with folded(tower):
        snapshots = [copy.deepcopy(tower.columns[-1]) for _ in range(SHOTS + 1)]

        def before() -> torch.Tensor:
            return torch.stack([tower.answers(x, [COLUMNS - 1])[..., 0] for _ in snapshots])

        def after() -> torch.Tensor:
            return tower.answers_of(snapshots, x)

        assert torch.equal(before(), after())
        taken = turns(before, after, rounds)
    return f"PROG-NN, {name}: {BATCH} items of a learning curve of column {COLUMNS}", *taken


# --- tests ---------------------------------------------------------------------------------------------------


@torch.no_grad()
def tests(name: str, rounds: int) -> tuple:
    """So many items, in one batch and in batches that fit the cache, with batch norm folded."""
    net, side = NETS[name]
    made, count = stack(lambda: nets.build(net, (3, side, side), 85), [0]).eval(), TESTED * 32 * 32 // side**2
    x = images(count, side)
    size = max(10, min(500, 100 * 32 * 32 // side**2))  # as `evaluation.answers` has it

    def after() -> torch.Tensor:
        with folded(made):
            return torch.cat([made(part) for part in x.split(size, dim=1)], dim=1)

    torch.testing.assert_close(made(x), after(), rtol=1e-3, atol=1e-3)
    return f"{name}: {count} test items", *turns(lambda: made(x), after, rounds)


# --- stacks and memory ---------------------------------------------------------------------------------------


class Copied(stacked.StackedLinear):
    """S linear layers by PyTorch's own gradients, which lie in memory otherwise than the weights."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = stacked.seedwise(x, self.weight.shape[0])
        return stacked.channelwise(torch.baddbmm(self.bias[:, None], x, self.weight.mT))


def stacks(size: int, rounds: int) -> tuple:
    """A step of ER on a stack of MLPs, with gradients that are copied and with those that lie as the weights do."""

    def steps(linear: type) -> Callable[[], object]:
        with mock.patch.dict(stacked.STACKED, {nn.Linear: linear}):
            made = steps_of("mlp", size, random_data("mlp", 20_000), CPU)
            next(made)
        return lambda: [next(made) for _ in range(max(1, 40 // size))]

    taken = turns(steps(Copied), steps(stacked.StackedLinear), 3 * rounds)
    return f"ER on the MLP: {40 // size} steps of a stack of {size}", *taken


def memory(size: int, rounds: int) -> tuple:
    """Steps of ER in processes of their own, where the C library hands freed memory back and where it keeps it."""

    def forked(keep: bool) -> float:
        """CPU seconds of a child's steps."""
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            if keep:
                process.keep_memory()
            made = steps_of("mlp", size, random_data("mlp", 5_000), CPU)
            for _ in range(20):
                next(made)
            began = clock(CPU)
            for _ in range(200 // size):
                next(made)
            os.write(writer, str(clock(CPU) - began).encode())
            os._exit(0)
        os.close(writer)
        os.waitpid(child, 0)
        with os.fdopen(reader) as told:
            return float(told.read())

    pairs = [(forked(False), forked(True)) for _ in range(rounds)]
    return (
        f"ER on the MLP: {200 // size} steps of {size} seed{'s' * (size > 1)}, freed memory kept",
        *map(statistics.median, zip(*pairs)),
        statistics.median(old / new for old, new in pairs),
    )


def one_pass(rounds: int) -> tuple:
    """ER on the reduced ResNet-18 by one pass of both batches, joined as torch.cat leaves them and channels-last."""

    def steps() -> Callable[[], object]:
        _, step = passes("resnet18_reduced", "er", {"forward": "joint"}, items=60 * BATCH * (rounds + 2))
        return lambda: [step() for _ in range(10)]

    def cat(*batches: torch.Tensor) -> torch.Tensor:
        return torch.cat(batches, dim=1)

    def before() -> None:
        with mock.patch.object(learner, "joined", cat):
            old()

    old, new = steps(), steps()
    return "ER on the reduced ResNet-18: 10 steps in one pass", *turns(before, new, rounds)


def distilled(rounds: int) -> tuple:
    """iCaRL on the reduced ResNet-18, whose old net answers for all exemplars at each step, or for new ones alone."""
    options = {"loss": {"name": "binary", "temperature": 2.0}, "space": "features", "exemplars": "batch"}
    items = 5 * BATCH * (2 * rounds + 4)
    (old, forgetful), (new, keeping) = (passes("resnet18_reduced", "icarl", options, items) for _ in range(2))

    def before() -> None:
        for _ in range(2):
            old.objective.items, old.objective.logits = old.objective.items[:0], old.objective.logits[:0]
            forgetful()

    taken = turns(before, lambda: [keeping() for _ in range(2)], rounds)
    assert all(map(torch.equal, old.net.parameters(), new.net.parameters()))
    count = sum(map(len, new.exemplars.values()))
    return f"iCaRL on the reduced ResNet-18: 2 steps with {count} exemplars", *taken


# --- the plan ------------------------------------------------------------------------------------------------


def planning(rounds: int) -> tuple:
    """The plan of the paper scale, all of config/ read and checked each time, or known from before."""

    def plan() -> None:
        schemas._SEEN.clear()
        Plan("paper", all_papers())

    def before() -> None:
        def validate(*given, name=None):
            schemas.validate(*given)

        with (
            mock.patch.object(checks, "validate", validate),
            mock.patch.object(Cache, "get", lambda _, text, work: work()),
        ):
            plan()

    return "the plan of the scale `paper`", *turns(before, plan, rounds)


def hours() -> dict[str, list[tuple]]:
    """Predicted core-hours of the paper scale, before and after the changes to the amount of work."""
    plan, table = Plan("paper", all_papers()), costs.Table(costs.read(), calibration=costs.calibration())
    after = _hours(plan, table, True)
    alone = _hours(plan, table, False)
    with _tested_apart(plan):
        apart = _hours(plan, table, True)
    with mock.patch.object(identity, "MIXED", math.inf):  # only orders that mix the classes
        each = _hours(Plan("paper", all_papers()), table, True)
    changes = {
        "GANs of each run's own, and shared by all": (alone, "desiderata"),
        TESTED_APART: (apart, "agem"),
        EACH_ORACLE: (each, "rules"),
    }
    return {
        title: [(what, before[what], after[what], before[what] / after[what]) for what in (paper, "all papers")]
        for title, (before, paper) in changes.items()
    }


@contextlib.contextmanager
def _tested_apart(plan: Plan) -> Iterator[None]:
    """Tests pass images for each of their tasks, learnt tasks again, and searches follow learning curves.

    A test item of PROG-NN takes as long as now, though items of learnt tasks pass fewer columns.
    """
    searched = {id(cell.spec) for search in plan.selections.values() for _, cell in search.points}
    counts, method_of = costs.counts, methods.method_of

    def apart(spec: dict, size: costs.Sizes) -> costs.Counts:
        shots = {"shots": SHOTS} if id(spec) in searched else {}
        return counts(spec | {"evaluation": spec["evaluation"] | shots}, size)

    def method(options: dict) -> methods.Method:
        return method_of(options).replace(answers_by_task=True, past_tasks_frozen=False)

    with mock.patch.object(costs, "counts", apart), mock.patch.object(methods, "method_of", method):
        yield


def _hours(plan: Plan, table: costs.Table, sharing: bool) -> dict[str, float]:
    seconds = costs.predict(plan, table)
    whole: dict[str, dict] = {name: {} for name in (*plan.titles, "all papers")}
    for target in plan.targets.values():
        if not target.spec.get("extra"):
            jobs = costs.jobs(plan, target, seconds)
            for of in ("all papers", target.paper):
                whole[of] |= jobs
    found = {of: {path: spent or 0 for path, spent in jobs.items()} for of, jobs in whole.items()}
    if not sharing:
        for jobs in found.values():
            for cell in plan.cells.values():
                each = gans.of_cell(plan, cell)
                for path, block in zip(plan.results(cell), plan.blocks(cell)) if each else ():
                    if path in jobs:
                        jobs[path] += len(block) * seconds[str(each.folder)]
            for path in [path for path in jobs if "gans" in path.parts]:
                del jobs[path]
    return {of: sum(jobs.values()) / 3600 for of, jobs in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    quick = parser.parse_args().quick
    rounds = 3 if quick else 5
    torch.set_num_threads(1)
    rows = [memory(size, rounds) for size in (1, 5)]  # first, as its children begin as they are left by all before
    process.keep_memory()
    rows += [*(stacks(size, rounds) for size in (5, 20)), one_pass(rounds), distilled(rounds)]
    names = [*NETS][: 1 if quick else 2]
    rows += [
        *(made(name, rounds) for made in (prog_nn, learning_curve) for name in names),
        *(tests(name, rounds) for name in names),
        planning(rounds),
    ]
    print("Changes, CPU seconds: as it was, as it is, medians; ratio = before / after, median of turns")
    print(tabulate(rows, ["", "before s", "after s", "ratio"], floatfmt=("", ".3f", ".3f", ".2f")))
    for title, rows in hours().items():
        print(f"\n{title}: predicted core-hours of the scale `paper`")
        print(tabulate(rows, ["", "before h", "after h", "ratio"], floatfmt=("", ".0f", ".0f", ".2f")))


if __name__ == "__main__":
    main()
