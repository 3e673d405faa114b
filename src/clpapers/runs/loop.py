"""The one loop: every gradient learner of every paper goes through `train`."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import functools
import gc
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import torch
from torch import nn
from tqdm import tqdm

from clpapers.randomness import generator
from clpapers.runs import learners, nets
from clpapers.runs.checkpoint import Checkpoint, constants
from clpapers.runs.clock import Clock
from clpapers.runs.course import Course, chunk_tasks, course, views
from clpapers.runs.evaluation import classified, number, whole_test
from clpapers.runs.event_tests import EventTests
from clpapers.runs.holdings import learner_bytes
from clpapers.runs.images import Images
from clpapers.runs.learner import Learner, Setting
from clpapers.runs.memories.episodic import EpisodicMemory
from clpapers.runs.memory_tests import MemoryTests
from clpapers.runs.nets.stacked import Stack, stack
from clpapers.runs.task_tests import TaskTests
from clpapers.streams.chunks import classes_of
from clpapers.streams.stream import Stream

SMALL_BATCH = 32  # above it a CPU is busy with one seed's arithmetic, and a stack of MLPs gains nothing
ONLINE_BLOCK = 100  # steps


@dataclasses.dataclass
class Data:
    """A data set: images [N, H, W, C], uint8 or float32, and int64 classes [N] of both splits, and how many classes.

    What nets may ask for besides: attributes, float32 [classes, A], what is known of each class; pretrained, weights to
    start from, by name.
    """

    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray
    classes: int
    attributes: np.ndarray | None = None
    pretrained: Mapping[str, np.ndarray] | None = None


def train(
    cell: dict,
    data: Data,
    streams: dict[int, Stream],
    device: torch.device,
    seconds: dict[int, float] | None = None,
    checkpoint: Checkpoint | None = None,
) -> list[dict]:
    """Train one cell on the streams of some seeds; one result a seed, ready for JSON.

    Parameters
    ----------
    cell: the complete description of what is run (config/papers, resolved).
    data: the data set.
    streams: seed → its stream, the order in which its training items come.
    device: where to train. On a GPU seeds form stacks. On a CPU only nets that gain from it do.
    seconds: takes how long each seed's training took, without any test: what the learner does when a task changes, in
        a step, the batch's gather included, and to prepare for a test. A stack's time is divided by its seeds. No
        repetition repeats it, so it is no part of the result.
    checkpoint: where to go on from, and where to keep what comes of it on the way. Results are the same, bit for bit.

    Returns
    -------
    For each seed a dictionary, in which classes are a learner's outputs (`Course.class_of_output`), with
    `steps`; `test`: for each restriction that it is evaluated under (`course.views`) correct and total per class after
    the last step, in evaluation mode, and `chance`, the share that a uniform guess would be expected to get right;
    `probes`: positions in the stream of the items whose retention is followed, the times (items seen) of evaluation,
    and for each time the packed bits, in base64, of whether the probes seen so far are classified correctly, all
    classes competing;
    `online`: for each step the number of stream items classified correctly before they are learnt, and their mean
    loss (null for a learner that never looks at the stream batch, or says nothing of it); `memory`: items, bytes,
    items per class;
    `oracle`: the task of each class (null where classes have none) and the number of task changes; `learner`: what
    the learner says of itself; `diverged`: the first step whose loss was no finite number, null where there is none
    (on the stream batch; of a learner that never looks at it, on what it trains on); `learner_bytes`: what the
    learner holds in the end (`holdings.learner_bytes`).
    With `evaluation.shots` also `tasks`, each task's tests (`TaskTests`), and therein `memory`, those of the learner's
    episodic memory (`MemoryTests`) where it has one of these tasks. With `evaluation.every` also `events`, the tests
    along the stream (`EventTests`).

    A seed for which memory does not suffice, not even alone, has only its number and `out_of_memory`: true.
    """
    _prepare(device, cell["precision"])
    learner = learners.find(cell["learner"]["name"])
    batch = cell["budget"]["batch"]
    small = cell["net"]["name"] == "mlp" and batch != "task" and batch <= SMALL_BATCH
    together = learner.stackable and (device.type == "cuda" or small or (learner.own_nets and not learner.looks))
    chosen = test_items(len(data.test_y), cell["evaluation"]["test"])
    chosen = chosen[np.isin(data.test_y[chosen], classes_of(cell["order"], data.classes))]
    test = dataclasses.replace(data, test_x=data.test_x[chosen], test_y=data.test_y[chosen])
    groups: list[list[Course]] = []
    for stream in streams.values():
        new = course(cell, stream, test.train_y, test.test_y, data.classes)
        group = next((g for g in groups if together and g[0].together_with(new)), None)
        groups.append([new]) if group is None else group.append(new)
    checkpoint = Checkpoint() if checkpoint is None else checkpoint
    results = [result for group in groups for result in _train_group(cell, test, group, device, checkpoint)]
    if seconds is not None:
        seconds |= checkpoint.seconds
    return sorted(results, key=lambda result: list(streams).index(result["seed"]))


def _prepare(device: torch.device, precision: str) -> None:
    """One CPU thread a process (there are as many jobs as cores), and results that are the same every time."""
    torch.set_num_threads(1)
    if device.type == "cuda":
        torch.use_deterministic_algorithms(True)
        torch.backends.cudnn.benchmark = False
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"


def _train_group(
    cell: dict, data: Data, courses: Sequence[Course], device: torch.device, checkpoint: Checkpoint
) -> list[dict]:
    """One stack; where memory does not suffice for it, its seeds one by one."""
    seeds, finished = tuple(c.seed for c in courses), checkpoint.finished
    if seeds not in finished:
        try:
            finished[seeds] = _train_stack(cell, data, courses, device, checkpoint)
        except (MemoryError, RuntimeError) as error:
            if not _out_of_memory(error):
                raise
            print(f"out of memory: seeds {list(seeds)}: {error}", file=sys.stderr)
            finished[seeds] = None
    if finished[seeds] is not None:
        return finished[seeds]
    gc.collect()  # only here, where no traceback holds on to the stack any more
    if device.type == "cuda":
        torch.cuda.empty_cache()
    if len(courses) == 1:
        return [{"seed": courses[0].seed, "out_of_memory": True}]
    return [result for c in courses for result in _train_group(cell, data, [c], device, checkpoint)]


def _out_of_memory(error: Exception) -> bool:
    """Whether memory ran out, Python's, a GPU's or, which PyTorch has no type for, a CPU's."""
    told = ("can't allocate memory", "ALLOC_FAILED")  # PyTorch's CPU allocator; cuBLAS and cuDNN
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or any(text in str(error) for text in told)


@dataclasses.dataclass
class Run:
    """A stack on its way through its steps: all that the steps to come depend on, and what the past ones left."""

    learner: Learner
    online: Online
    probes: Probes
    task_tests: TaskTests | None
    memory_tests: MemoryTests | None
    events: EventTests | None
    clock: Clock
    step: int = 0  # the next one


def _begun(cell: dict, courses: Sequence[Course], setting: Setting, test_images: Images) -> Run:
    """A run before its first step."""
    evaluation = cell["evaluation"]
    learner = learners.create(cell["learner"], setting)
    task_tests = memory_tests = None
    if "shots" in evaluation:
        said = [chunk_tasks(cell, c) for c in courses]
        task_tests = TaskTests(evaluation["shots"], courses, said, test_images)
        memory = getattr(learner, "memory", None)
        if isinstance(memory, EpisodicMemory) and cell["oracle"]["name"] == "chunks":
            memory_tests = MemoryTests(memory)
    return Run(
        learner,
        Online(setting.labels, setting.ends),
        Probes(evaluation, setting.ends, setting.seeds),
        task_tests,
        memory_tests,
        EventTests(evaluation["every"], courses, test_images) if "every" in evaluation else None,
        Clock(setting.items.device),
    )


def _train_stack(
    cell: dict, data: Data, courses: Sequence[Course], device: torch.device, checkpoint: Checkpoint
) -> list[dict]:
    dtype = torch.float64 if cell["precision"] == "float64" else torch.float32
    transforms = [c.transforms for c in courses]
    images = Images(data.train_x, cell["scaling"], device, dtype, transforms)
    test_images = images.of(data.test_x)
    setting = _setting(cell, data, courses, images)
    items, labels, tasks, ends = setting.items, setting.labels, setting.tasks, setting.ends
    fixed = constants(setting=setting, images=images, test_images=test_images)
    run = checkpoint.resume(setting.seeds, fixed) or _begun(cell, courses, setting, test_images)
    learner, online, probes, clock = run.learner, run.online, run.probes, run.clock
    task_tests, memory_tests, events = run.task_tests, run.memory_tests, run.events

    title = f"{cell['dataset']} {cell['learner']['name']} seeds {setting.seeds[0]}-{setting.seeds[-1]}"
    bar = {"desc": title, "unit": "step", "mininterval": 2, "file": sys.stderr}
    for t in tqdm(range(run.step, len(ends)), initial=run.step, total=len(ends), **bar):
        if courses[0].changes[t]:
            learner.task_change(t)
        if task_tests and t in task_tests.before:
            with _tests(learner, clock):
                task_tests.begin(t, learner)
        if learner.looks:
            now = setting.step(t)
            online.take(*learner.observe(t, images(items[:, now]), labels[:, now]))
        else:
            online.take(*learner.observe(t, None, None))
        if task_tests and t in task_tests.after:
            with _tests(learner, clock):
                task_tests.end(t, learner)
                if memory_tests:
                    memory_tests.end(task_tests.after[t], learner)
        if events and t in events.steps:
            with _tests(learner, clock):
                events.take(t, learner)
        if t in probes.steps:
            with _tests(learner, clock):
                probes.take(t, learner, images, items, labels, tasks)
                if t == len(ends) - 1:
                    tests = _test(cell, courses, learner, test_images)
        run.step = t + 1
        if run.step < len(ends) and checkpoint.due():
            with clock.stopped():
                checkpoint.save(setting.seeds, run.step, run, fixed)
    checkpoint.seconds |= dict.fromkeys(setting.seeds, clock.seconds / len(courses))
    return [
        {
            "seed": c.seed,
            "steps": len(ends),
            "test": tests[s],
            "probes": probes.result(s),
            "online": online.result(s),
            "memory": learner.memory_use(s),
            "oracle": {
                "task_of_class": None if c.tasks.of_class is None else c.tasks.of_class.tolist(),
                "changes": int(c.changes.sum()),
            },
            "learner": learner.report(s),
            "learner_bytes": learner_bytes(learner, s),
            "diverged": online.diverged(s),
        }
        | ({"tasks": task_tests.result(s) | (memory_tests.result(s) if memory_tests else {})} if task_tests else {})
        | ({"events": events.result(s)} if events else {})
        for s, c in enumerate(courses)
    ]


@contextlib.contextmanager
def _tests(learner: Learner, clock: Clock) -> Iterator[None]:
    """Inside, tests are taken: these are no training, but what the learner trains for them is."""
    learner.prepare()
    with clock.stopped(), learner.evaluation():
        yield


def _setting(cell: dict, data: Data, courses: Sequence[Course], images: Images) -> Setting:
    """What the learner of some courses is given."""
    device, outputs = images.pixels.device, courses[0].outputs

    def stacked(arrays: Iterable[np.ndarray]) -> torch.Tensor:
        return torch.from_numpy(np.stack(list(arrays))).to(device)

    def known(c: Course) -> torch.Tensor | None:
        return None if data.attributes is None else torch.from_numpy(data.attributes[c.class_of_output])

    def build(seeds: Sequence[int], net: dict | None = None, shape=images.shape, classes=outputs) -> Stack:
        def one(attributes: torch.Tensor | None) -> nn.Module:
            return nets.build(net or cell["net"], shape, classes, attributes=attributes, pretrained=data.pretrained)

        built = stack(one, seeds, [known(c) for c in courses]).to(device, images.dtype)
        masks = [int(generator(seed, "dropout").integers(2**63)) for seed in seeds]
        built.drop_by([torch.Generator(device).manual_seed(seed) for seed in masks])
        return built

    masks = [c.masks for c in courses if c.masks is not None]
    return Setting(
        images=images,
        items=stacked(c.items for c in courses),
        labels=stacked(c.labels for c in courses),
        classes=outputs,
        seeds=[c.seed for c in courses],
        budget=cell["budget"],
        ends=courses[0].ends,
        spec=cell["net"],
        build=build,
        oracle=cell["oracle"],
        task_count=courses[0].tasks.tasks,
        tasks=stacked(c.tasks.train for c in courses),
        may_hold=stacked(c.tasks.may_hold for c in courses),
        masks=stacked(masks) if masks else None,
        evaluation=cell["evaluation"],
    )


def _test(cell, courses, learner, images) -> list[dict]:
    """The test split under each restriction: of each seed `{view: {"correct", "total", "chance"}}`."""
    items, labels, tasks = whole_test(courses, images.pixels.device)
    truth, given = labels.cpu().numpy(), [views(cell, c) for c in courses]
    masks = {
        view: None if mask is None else torch.from_numpy(np.stack([g[view] for g in given])).to(labels.device)
        for view, mask in given[0].items()
    }
    right = classified(learner, images, items, labels, tasks, masks)
    count = functools.partial(np.bincount, minlength=courses[0].outputs)
    return [
        {
            view: {
                "correct": count(truth[s][right[view][s]]).tolist(),
                "total": count(truth[s]).tolist(),
                "chance": 1 / courses[0].outputs if mask is None else float((1 / mask[s].sum(dim=1)).mean()),
            }
            for view, mask in masks.items()
        }
        for s in range(len(courses))
    ]


class Online:
    """What the nets said of each stream batch before they learnt it, or their losses alone.

    A step only notes it; the notes are worked through a block of steps at a time.
    """

    def __init__(self, labels: torch.Tensor, ends: np.ndarray):
        self.labels, self.starts = labels, np.concatenate([[0], ends[:-1]])
        self.notes: list[tuple[torch.Tensor, torch.Tensor | None]] = []  # loss [S] and logits [S, B, K] a step
        self.losses: list[torch.Tensor] = []  # a block each: [S, steps]
        self.predicted: list[torch.Tensor] = []  # a block each: classes [S, items]

    def take(self, loss: torch.Tensor | None, logits: torch.Tensor | None = None) -> None:
        """Note a step: no loss where nothing was trained, no logits where it did not look at the stream batch."""
        if loss is not None:
            self.notes.append((loss.detach(), None if logits is None else logits.detach()))
        if len(self.notes) == ONLINE_BLOCK:
            self.reduce()

    def reduce(self) -> None:
        """Work the notes through."""
        if self.notes:
            losses, logits = zip(*self.notes)
            self.losses.append(torch.stack(losses, dim=1))
            if logits[0] is not None:
                self.predicted.append(torch.cat(logits, dim=1).argmax(dim=2))
            self.notes.clear()

    def result(self, s: int) -> dict:
        """Items right and mean loss of each step, of the stack's seed number s; null where no logits were noted."""
        self.reduce()
        if not self.predicted:
            return {"correct": None, "loss": None}
        right = torch.cat([block[s] for block in self.predicted]) == self.labels[s]
        return {
            "correct": np.add.reduceat(right.cpu().numpy(), self.starts, dtype=int).tolist(),
            "loss": [number(value) for value in torch.cat([block[s] for block in self.losses]).tolist()],
        }

    def diverged(self, s: int) -> int | None:
        """The first step at which the loss of the stack's seed number s was no finite number; None if there is none."""
        self.reduce()
        if not self.losses:
            return None
        finite = torch.cat([block[s] for block in self.losses]).isfinite()
        return None if finite.all() else int(finite.long().argmin())


def test_items(count: int, wanted: int | None) -> np.ndarray:
    """The test items to evaluate on, ascending: all, or one uniform subset that is the same for every run."""
    if wanted is None or wanted >= count:
        return np.arange(count)
    return np.sort(generator(0, "test subset").permutation(count)[:wanted])


class Probes:
    """The stream items whose retention is followed, a uniform sample a seed, and what became of them.

    At each of `points` equally spaced moments the probes seen so far are classified; their share that is right
    estimates the information retention (Cai et al. 2021), accuracy over all of the stream's past.
    """

    def __init__(self, evaluation: dict, ends: np.ndarray, seeds: Sequence[int]):
        steps, n = len(ends), int(ends[-1])
        last = np.ceil(np.arange(1, evaluation["points"] + 1) * steps / evaluation["points"]).astype(int) - 1
        self.steps = {int(t): int(ends[t]) for t in last}  # step → items seen after it
        count = min(evaluation["probes"] or n, n)
        self.positions = np.stack([np.sort(generator(s, "probes").permutation(n)[:count]) for s in seeds])
        self.times: list[int] = []
        self.right: list[np.ndarray] = []  # a moment each: bool [S, most probes seen by any seed]

    def take(
        self,
        t: int,
        learner: Learner,
        images: Images,
        items: torch.Tensor,
        labels: torch.Tensor,
        tasks: torch.Tensor,
    ) -> None:
        """Classify the probes seen up to step t, inside `learner.evaluation()`."""
        time = self.steps[t]
        most = int((self.positions < time).sum(axis=1).max())
        at = torch.from_numpy(self.positions[:, :most]).to(items.device)
        seen = (each.gather(1, at) for each in (items, labels, tasks))
        self.times.append(time)
        self.right.append(classified(learner, images, *seen, {"none": None})["none"])

    def result(self, s: int) -> dict:
        """Positions, times and packed bits of the stack's seed number s."""
        packed = []
        for time, right in zip(self.times, self.right):
            seen = right[s, : int((self.positions[s] < time).sum())]
            packed.append(base64.b64encode(np.packbits(seen).tobytes()).decode())
        return {"position": self.positions[s].tolist(), "time": self.times, "correct": packed}
