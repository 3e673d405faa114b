"""The one loop: every learner of every paper goes its `Course`, a generator of steps."""

import dataclasses
import gc
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import torch
from torch import nn
from tqdm import tqdm

from clpapers.randomness import generator
from clpapers.runs import learners, nets, process
from clpapers.runs.checkpoint import Checkpoint, constants, out_of_memory
from clpapers.runs.clock import Clock
from clpapers.runs.cuda_graphs import Steps, recorders
from clpapers.runs.evaluation.final import test_items
from clpapers.runs.evaluation.online import Online
from clpapers.runs.evaluation.sessions import Evaluation
from clpapers.runs.footprint import learner_bytes
from clpapers.runs.images import Images
from clpapers.runs.learner import Learner, Setting
from clpapers.runs.nets.stacked import Stack, stack
from clpapers.runs.norms import fewest
from clpapers.runs.scenario import Scenario, scenario
from clpapers.streams.chunks import classes_of
from clpapers.streams.stream import Stream

tqdm.monitor_interval = 0  # a thread of its own might hold its lock while a process forks
tqdm.set_lock(threading.RLock())  # its own lock is shared with forked processes, and one that is killed may hold it

WIDE = 64  # maps of a net's first layer
SMALL_BATCH = 32  # above it a CPU is busy with one seed's arithmetic, and a stack of MLPs gains nothing


@dataclasses.dataclass
class Data:
    """A data set: images [N, H, W, C], uint8 or float32, and int64 labels [N] of both splits; the number of classes.

    Some nets also need attributes, float32 [classes, A], of each class, or pretrained weights, by name; some learners
    draw from GANs that have been trained before (`Setting.gans`).
    """

    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray
    classes: int
    attributes: np.ndarray | None = None
    pretrained: Mapping[str, np.ndarray] | None = None
    gans: Mapping[int, Mapping[tuple[int, ...], Mapping[str, np.ndarray]]] | None = None


def train(
    cell: dict,
    data: Data,
    streams: dict[int, Stream],
    device: torch.device,
    seconds: dict[str, dict[int, float]] | None = None,
    checkpoint: Checkpoint | None = None,
    stacking: bool = True,
) -> list[dict]:
    """Train one cell on the streams of some seeds; one result a seed, ready for JSON.

    Parameters
    ----------
    cell: the cell, resolved from config/papers.
    data: the data set.
    streams: seed → its stream.
    device: where to train. Seeds form stacks where nets gain from it: on a GPU most do, on a CPU few.
    stacking: whether seeds form stacks where that depends on the machine (`undecided`). Losses may then differ in last
        digits.
    seconds: filled with `training_seconds`, seed → time of task changes, steps, gathers and preparations for tests, and
        `testing_seconds`, seed → time of the tests. A stack's time is divided by its seeds. Times differ between
        repetitions, so results exclude them.
    checkpoint: state to resume from, and where to save it. Results are the same, bit for bit.

    Returns
    -------
    For each seed a dictionary, in which classes are a learner's outputs (`Scenario.class_of_output`):

    - `steps`;
    - `test` (`FinalTest`) and `probes` (`Probes`), in evaluation mode;
    - `online`: for each step the number of stream items classified correctly before they are learnt, and their mean
      loss; null for a learner that does not predict the stream batch;
    - `memory`: items, bytes, items per class;
    - `oracle`: the task of each class (null where classes have none) and the number of task changes;
    - `learner`: its own report;
    - `learner_bytes`: the learner's footprint at the end;
    - `diverged`: the first step whose loss was not finite, or null. The loss is the stream batch's, or, where a learner
      does not use that, its training batch's;
    - `unanswered`, only where there are any: the answers without a finite score (`answers.best`), which are never
      right, of stream items (`online`) and in all `tests`;
    - with `evaluation.shots` also `tasks`, each task's tests (`evaluation.tasks`, `MemoryAccuracy`);
    - with `evaluation.every` also `events`, the tests along the stream (`Events`).

    A seed that exceeds the memory even alone has only its number and `out_of_memory`: true.
    """
    data, groups = stacks(cell, data, streams, device, stacking=stacking)
    checkpoint = Checkpoint() if checkpoint is None else checkpoint
    results = [result for group in groups for result in _train_group(cell, data, group, device, checkpoint)]
    if seconds is not None:
        seconds |= checkpoint.seconds
    return sorted(results, key=lambda result: list(streams).index(result["seed"]))


def stacks(
    cell: dict, data: Data, streams: dict[int, Stream], device: torch.device, *, stacking: bool = True
) -> tuple[Data, list[list[Scenario]]]:
    """The data with the evaluated test items alone, and the scenarios of each stack that the seeds form (`train`).

    It prepares the process for them.
    """
    process.prepare(device, cell["precision"])
    learner = learners.find(cell["learner"]["name"], cell["learner"].get("file"))
    sure = (device.type == "cuda" and gains_on_gpu(cell)) or (learner.own_nets and not learner.uses_batch)
    together = learner.stackable and (sure or (stacking and undecided(cell, device)))
    chosen = test_items(len(data.test_y), cell["evaluation"]["test"])
    chosen = chosen[np.isin(data.test_y[chosen], classes_of(cell["order"], data.classes))]
    test = dataclasses.replace(data, test_x=data.test_x[chosen], test_y=data.test_y[chosen])
    trains = learner.uses_batch and not learner.own_nets
    least = fewest(cell["net"], data.train_x.shape[1:]) if trains else 1
    groups: list[list[Scenario]] = []
    for stream in streams.values():
        new = scenario(cell, stream, test.train_y, test.test_y, data.classes, least)
        group = next((g for g in groups if together and g[0].together_with(new)), [])
        if not group:
            groups.append(group)
        group.append(new)
    return test, groups


def gains_on_gpu(cell: dict) -> bool:
    """Whether seeds of a cell are faster as a stack on a GPU, by measurement (benchmarks/card_steps.py, `stacks`).

    A stack of nets so wide that one fills the card computes grouped convolutions, which are slow in float32.
    """
    return cell["net"].get("width", 0) < WIDE or cell["precision"] == "tf32"


def undecided(cell: dict, device: torch.device) -> bool:
    """Whether it depends on the machine if seeds are faster as a stack: MLPs with small batches, on a CPU."""
    learner, batch = learners.find(cell["learner"]["name"], cell["learner"].get("file")), cell["budget"]["batch"]
    small = cell["net"]["name"] == "mlp" and batch != "task" and batch <= SMALL_BATCH
    return learner.stackable and small and device.type == "cpu" and (learner.uses_batch or not learner.own_nets)


def _train_group(
    cell: dict, data: Data, scenarios: Sequence[Scenario], device: torch.device, checkpoint: Checkpoint
) -> list[dict]:
    """Train one stack; where it exceeds the memory, its seeds one by one."""
    seeds, finished = tuple(c.seed for c in scenarios), checkpoint.finished
    if seeds not in finished:
        try:
            finished[seeds] = _train_stack(cell, data, scenarios, device, checkpoint)
        except (MemoryError, RuntimeError) as error:
            if not out_of_memory(error):
                raise
            print(f"out of memory: seeds {list(seeds)}: {error}", file=sys.stderr)
            finished[seeds] = None
    if (results := finished[seeds]) is not None:
        return results
    gc.collect()  # only here, where no traceback refers to the stack any more
    if device.type == "cuda":
        torch.cuda.empty_cache()
    if len(scenarios) == 1:
        return [{"seed": scenarios[0].seed, "out_of_memory": True}]
    return [result for c in scenarios for result in _train_group(cell, data, [c], device, checkpoint)]


@dataclasses.dataclass
class Run:
    """A stack between two steps: the state on which later steps depend, and the findings of earlier ones."""

    learner: Learner
    online: Online
    clock: Clock
    unanswered: np.ndarray  # int64 [S], test items without an answer
    taken: dict[str, list] = dataclasses.field(default_factory=dict)  # findings of the tests, by evaluator
    step: int = 0  # the next one


class Course:
    """A stack on its way along its streams, step by step (`steps`). It can stop between any two steps.

    A checkpoint that is saved there goes on to the same bits, in another process too.

    cell, data, scenarios: as `stacks` gives them. checkpoint: state to resume from.
    given: the setting as the learner has it. run: the state so far. count: the number of all steps.
    """

    def __init__(
        self,
        cell: dict,
        data: Data,
        scenarios: Sequence[Scenario],
        device: torch.device,
        checkpoint: Checkpoint | None = None,
    ):
        self.cell, self.scenarios, self.device = cell, scenarios, device
        dtype = torch.float64 if cell["precision"] == "float64" else torch.float32
        images = Images(data.train_x, cell["scaling"], device, dtype, [c.transforms for c in scenarios])
        test_images = images.with_pixels(data.test_x)
        self.setting = self.given = setting_of(cell, data, scenarios, images)
        if "file" in cell["learner"]:
            self.given = self.setting.apart(learners.find(cell["learner"]["name"], cell["learner"]["file"]).uses)
        self.count = len(self.setting.ends)
        self.constants = constants(setting=self.setting, given=self.given, images=images, test_images=test_images)
        run = None if checkpoint is None else checkpoint.resume(self.setting.seeds, self.constants)
        if run is None:
            online, unanswered = Online(self.setting.labels, self.setting.ends), np.zeros(len(scenarios), dtype=int)
            run = Run(self.learner(), online, Clock(device), unanswered)
        self.run: Run = run
        with run.clock.stopped():
            tested = self.tested(test_images)
            self.evaluation = Evaluation(cell, scenarios, run.learner, tested, self.setting, run.taken, run.unanswered)

    def learner(self) -> Learner:
        """A new learner."""
        return learners.create(self.cell["learner"], self.given)

    def tested(self, images: Images) -> Images:
        """The test images as evaluators see them."""
        return images

    def steps(self) -> Iterator[int]:
        """Take the steps that are left, with their tests; yields the number of steps taken, after each."""
        run, evaluation, changes = self.run, self.evaluation, self.scenarios[0].changes
        step = Steps(run.learner, changes, recorders(self.device))
        for t in range(run.step, self.count):
            if changes[t]:
                run.learner.task_change(t)
            evaluation.take(t, run.clock, before=True)
            run.online.take(*step(t))
            evaluation.take(t, run.clock)
            run.step = t + 1
            yield run.step

    def save(self, checkpoint: Checkpoint) -> None:
        """Save the state between two steps."""
        self.evaluation.settle(self.run.clock)
        with self.run.clock.stopped():
            checkpoint.save(self.setting.seeds, self.run.step, self.run, self.constants, steps=self.count)

    def results(self) -> list[dict]:
        """The result of each seed, once all steps are taken."""
        return [_result(s, c, self.count, self.run, self.evaluation.result(s)) for s, c in enumerate(self.scenarios)]


def _train_stack(
    cell: dict, data: Data, scenarios: Sequence[Scenario], device: torch.device, checkpoint: Checkpoint
) -> list[dict]:
    course = Course(cell, data, scenarios, device, checkpoint)
    run, seeds = course.run, course.setting.seeds
    title = f"{cell['dataset']} {cell['learner']['name']} seeds {seeds[0]}-{seeds[-1]}"
    bar = {"desc": title, "total": course.count, "unit": "step", "mininterval": 2, "initial": run.step}
    for taken in tqdm(course.steps(), file=sys.stderr, **bar):
        if taken < course.count and checkpoint.is_due():
            course.save(checkpoint)
    spent = {"training_seconds": run.clock.seconds, "testing_seconds": run.clock.tested}
    for key, seconds in spent.items():
        checkpoint.seconds[key] |= dict.fromkeys(seeds, seconds / len(scenarios))
    return course.results()


def _result(s: int, c: Scenario, steps: int, run: Run, tests: dict[str, dict]) -> dict:
    """The result that `train` returns for the stack's seed number s."""
    learner, online = run.learner, run.online
    unanswered = {"online": online.unanswered(s), "tests": int(run.unanswered[s])}
    return {
        "seed": c.seed,
        "steps": steps,
        "test": tests.pop("test"),
        "probes": tests.pop("probes"),
        "online": online.result(s),
        "memory": learner.memory_use(s),
        "oracle": {
            "task_of_class": None if c.tasks.of_class is None else c.tasks.of_class.tolist(),
            "changes": int(c.changes.sum()),
        },
        "learner": learner.report(s),
        "learner_bytes": learner_bytes(learner, s),
        "diverged": online.diverged(s),
        **tests,
        **({"unanswered": unanswered} if any(unanswered.values()) else {}),
    }


def setting_of(cell: dict, data: Data, scenarios: Sequence[Scenario], images: Images) -> Setting:
    """The setting of a learner of some scenarios."""
    device, outputs = images.pixels.device, scenarios[0].outputs

    def stacked(arrays: Iterable[np.ndarray]) -> torch.Tensor:
        return torch.from_numpy(np.stack(list(arrays))).to(device)

    def attributes_of(c: Scenario) -> torch.Tensor | None:
        return None if data.attributes is None else torch.from_numpy(data.attributes[c.class_of_output])

    def build(
        seeds: Sequence[int],
        net: dict | None = None,
        shape: tuple[int, int, int] = images.shape,
        classes: int = outputs,
    ) -> Stack:
        def one(attributes: torch.Tensor | None) -> nn.Module:
            return nets.build(net or cell["net"], shape, classes, attributes=attributes, pretrained=data.pretrained)

        built = stack(one, seeds, [attributes_of(c) for c in scenarios]).to(device, images.dtype)
        masks = [int(generator(seed, "dropout").integers(2**63)) for seed in seeds]
        built.drop_by([torch.Generator(device).manual_seed(seed) for seed in masks])
        return built

    masks = [c.masks for c in scenarios if c.masks is not None]
    return Setting(
        images=images,
        items=stacked(c.items for c in scenarios),
        labels=stacked(c.labels for c in scenarios),
        classes=outputs,
        seeds=[c.seed for c in scenarios],
        budget=cell["budget"],
        ends=scenarios[0].ends,
        spec=cell["net"],
        build=build,
        oracle=cell["oracle"],
        task_count=scenarios[0].tasks.tasks,
        tasks=stacked(c.tasks.train for c in scenarios),
        task_classes=stacked(c.tasks.task_classes for c in scenarios),
        masks=stacked(masks) if masks else None,
        changes=scenarios[0].changes,
        evaluation=cell["evaluation"],
        gans=data.gans,
    )
