"""The cost of a step, in passes, of learners that take several: `python benchmarks/bench_passes.py`.

A pass is forward and backward of a batch through the bare net. The floor of a step are its passes alone, each of as
many items as the learner gives it: without draws, memory, projections and the update. Both take turns.
"""

import argparse
import statistics
from collections import Counter
from collections.abc import Callable

import bare
import numpy as np
import torch
import torch.nn.functional as F
from bench_learners import NETS, OPTIONS, cell, clock, random_data
from tabulate import tabulate

from clpapers.runs import learners, loop, process
from clpapers.runs.images import Images
from clpapers.runs.learner import Learner
from clpapers.runs.scenario import scenario
from clpapers.streams import orders

CPU = torch.device("cpu")
TASKS, STEPS = 5, 40
TOLD = {"order": {"name": "split", "tasks": TASKS, "length": None}, "oracle": {"name": "chunks"}}
LEARNERS = {
    **{name: OPTIONS[name] for name in ("er", "mir", "gmed")},
    "a_gem": {"write": "uniform"},
    "gem": {"margin": 0.5, "ridge": 0.001, "write": "ring"},
}


def steps(net: str, method: str, options: dict, items: int = 20_000) -> tuple[Learner, Callable[[], object]]:
    """A learner that has come to its last task, of a fifth of these items, and its next step."""
    data = random_data(net, items)
    spec = cell(net, "er") | TOLD
    spec["learner"] = {"name": method} | options
    given = orders.make(spec["order"], data.train_y, 0)
    one = scenario(spec, given, data.train_y, data.test_y, data.classes)
    images = Images(data.train_x, "symmetric", CPU, torch.float32)
    setting = loop.setting_of(spec, data, [one], images)
    learner = learners.create(spec["learner"], setting)
    last = int(np.flatnonzero(one.changes)[-1])

    def take(t: int) -> None:
        if one.changes[t]:
            learner.task_change(t)
        now = setting.step(t)
        learner.observe(t, images(setting.items[:, now]), setting.labels[:, now])

    for t in range(last + 1):
        take(t)
    rest = iter(range(last + 1, len(setting.ends)))
    return learner, lambda: take(next(rest))


def passes(learner: Learner, step: Callable[[], object]) -> Counter[tuple[int, str]]:
    """The passes of a step: how many there are of so many items, `forward` only, or with backward to what."""
    seen: Counter[tuple[int, str]] = Counter()

    def note(_: object, given: tuple) -> None:
        to = "input" if given[0].requires_grad else "parameters" if torch.is_grad_enabled() else "forward"
        seen[given[0].shape[1], to] += 1

    hook = learner.net.register_forward_pre_hook(note)
    step()
    hook.remove()
    return seen


def alone(learner: Learner, shape: tuple[int, ...], taken: Counter[tuple[int, str]]) -> Callable[[], object]:
    """The same passes, on noise."""
    net, parameters, work = learner.net.net, list(learner.net.parameters()), []
    for (size, to), count in taken.items():
        x, y = torch.randn(size, *shape, requires_grad=to == "input"), torch.randint(learner.classes, (size,))
        work += [(x, y, {"input": [x], "parameters": parameters}.get(to, []))] * count

    def run() -> None:
        for x, y, to in work:
            with torch.set_grad_enabled(bool(to)):
                loss = F.cross_entropy(net(x), y)
            if to:
                torch.autograd.grad(loss, to)

    return run


def row(net: str, method: str, rounds: int) -> tuple:
    """The passes of a learner's step, their floor, and the time of the step."""
    learner, step = steps(net, method, LEARNERS[method])
    taken = passes(learner, step)
    h, w, c = NETS[net][1]
    works = [alone(learner, (c, h, w), each) for each in (Counter({(bare.BATCH, "parameters"): 1}), taken)] + [step]
    turns = []
    for _ in range(rounds):
        times = []
        for work in works:
            began = clock(CPU)
            for _ in range(STEPS if net == "mlp" else 2):
                work()
            times.append(clock(CPU) - began)
        turns.append(times)
    floor = statistics.median(each[1] / each[0] for each in turns)
    whole = statistics.median(each[2] / each[0] for each in turns)
    told = ", ".join(
        f"{count} × {size}{'' if to == 'parameters' else f' ({to})'}" for (size, to), count in taken.items()
    )
    return net, method, told, floor, whole, statistics.median(each[2] / each[1] for each in turns)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, of the MLP alone")
    quick = parser.parse_args().quick
    process.prepare(CPU, "float32")
    nets = ("mlp",) if quick else ("mlp", "resnet18_reduced")
    rows = [row(net, method, 5 if quick else 9) for net in nets for method in LEARNERS]
    print(f"Steps in passes of {bare.BATCH} items, forward and backward to the parameters; CPU time, median of turns")
    headers = ["net", "learner", "its passes: number × items", "floor", "takes", "ratio"]
    print(tabulate(rows, headers, floatfmt=("", "", "", ".2f", ".2f", ".2f")))


if __name__ == "__main__":
    main()
