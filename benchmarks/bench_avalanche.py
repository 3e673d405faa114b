"""Steps of clpapers, of a bare loop and of Avalanche 0.6.0, same work: `python benchmarks/bench_avalanche.py`.

Naive training, ER (one pass of both batches), EWC (one penalty) and A-GEM, on one net, noise and batches of 10, in a
task that is not the first. All three take turns of some steps each, an epoch of Avalanche's. The work between tasks is
not timed. Needs `pip install 'clpapers[avalanche]'`.
"""

import argparse
import statistics
import warnings
from collections.abc import Callable, Iterator

import bare
import numpy as np
import torch
import torch.nn.functional as F
from bench_learners import NETS, cell, clock, random_data
from tabulate import tabulate

from clpapers.datasets import _torchvision
from clpapers.runs import learners, loop, nets
from clpapers.runs.images import Images
from clpapers.runs.learner import Learner
from clpapers.runs.scenario import scenario
from clpapers.streams import orders

CPU = torch.device("cpu")
STRENGTH = 10.0
TOLD = {"order": {"name": "split", "tasks": 5, "length": None}, "oracle": {"name": "chunks"}}
METHODS = {  # learner of clpapers and its options
    "naive": ("single", {}),
    "er": ("er", {"forward": "concatenated"}),
    "ewc": ("ewc", {"strength": STRENGTH, "gamma": 1, "fisher": "last_batch", "normalise": False, "half": True}),
    "a_gem": ("a_gem", {"write": "uniform"}),
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


def script(method: str, net: torch.nn.Module, images: torch.Tensor, labels: torch.Tensor) -> Iterator[None]:
    """The method as one would write it by hand; each `next` takes a step."""
    optimizer = torch.optim.SGD(net.parameters(), lr=bare.LEARNING_RATE)
    parameters = list(net.parameters())
    fisher, centre = ([draw(p.detach()) for p in parameters] for draw in (torch.rand_like, torch.clone))
    memory = bare.Reservoir()
    memory.add(torch.randint(len(labels), (bare.CAPACITY,)), None)
    while True:
        now = torch.randint(len(labels), (bare.BATCH,))
        if method == "er":
            both = torch.cat([now, memory.draw(bare.BATCH)])
            loss = F.cross_entropy(net(bare.scaled(images, both)), labels[both])
            memory.add(now, labels[now])
        else:
            loss = F.cross_entropy(net(bare.scaled(images, now)), labels[now])
        if method == "ewc":
            pulls = ((f * (p - c).square()).sum() for f, p, c in zip(fisher, parameters, centre))
            loss = loss + STRENGTH / 2 * sum(pulls)
        optimizer.zero_grad()
        if method == "a_gem":
            replay = memory.draw(bare.BATCH)
            F.cross_entropy(net(bare.scaled(images, replay)), labels[replay]).backward()
            reference = torch.cat([p.grad.flatten() for p in parameters])
            optimizer.zero_grad()
        loss.backward()
        if method == "a_gem":
            gradient = torch.cat([p.grad.flatten() for p in parameters])
            if (along := gradient @ reference) < 0:
                gradient -= along / (reference @ reference) * reference
                for p, part in zip(parameters, gradient.split([p.numel() for p in parameters])):
                    p.grad.copy_(part.view_as(p))
        optimizer.step()
        yield


def avalanche(
    method: str, net: torch.nn.Module, images: torch.Tensor, labels: torch.Tensor, turns: int, others: Callable
) -> list[tuple[float, ...]]:
    """Train Avalanche's strategy of the method on a task as large as the memory, then on the rest.

    The second task has `turns` epochs. After each, the `others` take a turn. Gives seconds a step: theirs, Avalanche's.
    """
    from avalanche.benchmarks import benchmark_from_datasets
    from avalanche.benchmarks.utils import AvalancheDataset, DataAttribute, TaskLabels
    from avalanche.training import plugins
    from avalanche.training.storage_policy import ReservoirSamplingBuffer
    from avalanche.training.templates import SupervisedTemplate

    class Turns(plugins.SupervisedPlugin):
        """Takes the time of each epoch and its steps, then lets the others have a turn."""

        def __init__(self):
            super().__init__()
            self.taken: list[tuple[float, ...]] = []

        def before_training_epoch(self, strategy, **kwargs):
            self.began, self.steps = clock(CPU), 0

        def after_training_iteration(self, strategy, **kwargs):
            self.steps += 1

        def after_training_epoch(self, strategy, **kwargs):
            theirs = (clock(CPU) - self.began) / self.steps
            if strategy.clock.train_exp_counter:
                self.taken.append((*others(), theirs))

    def task(part: slice) -> AvalancheDataset:
        x, y = scaled[part], labels[part]
        told = [DataAttribute(y.tolist(), "targets"), TaskLabels([0] * len(y))]
        return AvalancheDataset([torch.utils.data.TensorDataset(x, y)], data_attributes=told)

    def plugin() -> list[plugins.SupervisedPlugin]:
        match method:
            case "er":
                buffer = ReservoirSamplingBuffer(bare.CAPACITY)
                return [plugins.ReplayPlugin(bare.CAPACITY, bare.BATCH, bare.BATCH, storage_policy=buffer)]
            case "ewc":
                return [plugins.EWCPlugin(STRENGTH, mode="online", decay_factor=1.0)]
            case "a_gem":
                return [plugins.AGEMPlugin(patterns_per_experience=bare.CAPACITY, sample_size=bare.BATCH)]
        return []

    scaled = bare.scaled(images, torch.arange(len(images)))  # beforehand, so that no step has to
    tasks = [task(slice(bare.CAPACITY)), task(slice(bare.CAPACITY, None))]
    timed = Turns()
    strategy = SupervisedTemplate(
        model=net,
        optimizer=torch.optim.SGD(net.parameters(), lr=bare.LEARNING_RATE),
        criterion=torch.nn.CrossEntropyLoss(),
        train_mb_size=bare.BATCH,
        device=CPU,
        plugins=[*plugin(), timed],
        evaluator=None,
    )
    for epochs, experience in zip((1, turns), benchmark_from_datasets(train=tasks, test=tasks[:1]).train_stream):
        strategy.train_epochs = epochs
        strategy.train(experience, num_workers=0)
    return timed.taken


def row(net: str, method: str, turn: int, rounds: int) -> tuple:
    """Milliseconds a step of the three, and the ratios to the bare loop's, medians of the rounds."""
    spec, (h, w, c), classes = NETS[net]
    name, options = METHODS[method]
    _, ours = steps(net, name, options, items=6 * bare.BATCH * turn * (rounds + 1))  # of five tasks, not quite alike
    data = random_data(net, bare.CAPACITY + bare.BATCH * turn)
    images, labels = torch.from_numpy(data.train_x), torch.from_numpy(data.train_y)

    def fresh() -> torch.nn.Module:
        torch.manual_seed(0)
        return nets.build(spec, (c, h, w), classes).train()

    by_hand = script(method, fresh(), images, labels)

    def took(step: Callable[[], object]) -> float:
        began = clock(CPU)
        for _ in range(turn):
            step()
        return (clock(CPU) - began) / turn

    def others() -> tuple[float, float]:
        return took(lambda: next(by_hand)), took(ours)

    taken = avalanche(method, fresh(), images, labels, rounds + 1, others)[1:]  # after the first, caches are warm
    ms = [1000 * statistics.median(each) for each in zip(*taken)]
    return net, method, *ms, *(statistics.median(each[i] / each[0] for each in taken) for i in (1, 2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    options = parser.parse_args()
    _torchvision.module("models")  # Avalanche imports torchvision, which may need help
    try:
        import avalanche  # noqa: F401
    except ImportError as error:
        print(f"Avalanche is not compared: {error}; pip install 'clpapers[avalanche]'")
        return
    warnings.simplefilter("ignore")  # Avalanche's own use of what it deprecates
    torch.set_num_threads(1)
    rounds = 3 if options.quick else 9
    rows = [
        row(net, method, turn, rounds) for net, turn in (("mlp", 50), ("resnet18_reduced", 20)) for method in METHODS
    ]
    print("Milliseconds a step at S = 1 on one thread, and times of the bare loop, medians of turns")
    headers = ["net", "method", "bare", "clpapers", "Avalanche", "clpapers / bare", "Avalanche / bare"]
    print(tabulate(rows, headers, floatfmt=("", "", ".2f", ".2f", ".2f", ".2f", ".2f")))


if __name__ == "__main__":
    main()
