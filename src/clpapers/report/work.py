"""What a run does, counted from its cell: passes through nets, steps, and what else grows along its stream.

Orders, batches, task changes and tests are made by the very functions that a run makes them with, on labels that are as
many in each class; so nothing of a cell is counted by a formula that the loop does not follow. No torch is imported.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import math
from collections.abc import Callable, Iterable

import numpy as np

from clpapers.runs.scenario import Scenario, chunk_tasks, scenario
from clpapers.streams import orders
from clpapers.streams.chunks import classes_of
from clpapers.streams.stream import Stream

TEST_BATCH, TEST_VALUES = 500, 500 * 3 * 64 * 64  # as runs/evaluation.py
SMALL_BATCH = 32  # as runs/loop.py
FRAMES = 10  # of a recording, where only their number counts
CACHED = 2_000_000  # activations of a step, 8 MB in single precision
NODES = 0.1  # that bARTMAP makes of an item, as of CIFAR-100's features in random order: the data decide it


@dataclasses.dataclass(frozen=True)
class Sizes:
    """A data set: items of both splits, its classes, (H, W, C) of an item, attributes known of a class (0: none)."""

    train: int
    test: int
    classes: int
    shape: tuple[int, int, int]
    attributes: int = 0

    @property
    def values(self) -> int:
        """Numbers of an item."""
        return math.prod(self.shape)


# Seconds of one pass, or another quantity of a net: (kind, net's key, items).
Unit = Callable[[str, str, float], float]
Amounts = dict[str, float]


def net_key(net: dict, shape: tuple[int, ...], outputs: int, seeds: int = 1) -> str:
    """A net by what its passes cost: architecture, (C, H, W), outputs, seeds in a stack.

    Beside convolutions a head costs nothing that can be measured, so that its kind and outputs are left out.
    """
    convolutional = "width" in net and net["name"] != "resnet_decoder"
    free = ("init", "epsilon", "weights", *(("head",) if convolutional else ()))
    options = {k: v for k, v in net.items() if k not in free}
    size = "x".join(map(str, shape))
    key = f"{json.dumps(options, sort_keys=True)} {size}" + ("" if convolutional else f" to {outputs}")
    return key + (f", {seeds} seeds" if seeds > 1 else "")


def key_parts(key: str) -> tuple[dict, tuple[int, int, int], int | None, int]:
    """The inverse of `net_key`: net, shape, outputs (None where they cost nothing), seeds."""
    options, _, rest = key.rpartition("} ")
    rest, _, seeds = rest.partition(", ")
    size, _, outputs = rest.partition(" to ")
    shape = tuple(map(int, size.split("x")))
    return json.loads(options + "}"), shape, int(outputs) if outputs else None, int(seeds.split()[0]) if seeds else 1


@functools.lru_cache(maxsize=64)
def _labels(train: int, classes: int) -> np.ndarray:
    return np.sort(np.arange(train) % classes)


@functools.lru_cache(maxsize=4)
def _stream(order: str, sizes: Sizes, seed: int) -> Stream:
    recorded = np.arange(sizes.train) // FRAMES, np.arange(sizes.train) % FRAMES
    return orders.make(json.loads(order), _labels(sizes.train, sizes.classes), seed, sizes.values, recorded)


@functools.lru_cache(maxsize=8)
def _course(parts: str, sizes: Sizes, seed: int) -> Scenario:
    cell = json.loads(parts)
    test = _labels(sizes.test, sizes.classes)
    wanted = cell["evaluation"]["test"]
    if wanted is not None and wanted < sizes.test:
        test = test[np.arange(wanted) * sizes.test // wanted]
    test = test[np.isin(test, classes_of(cell["order"], sizes.classes))]
    stream = _stream(json.dumps(cell["order"]), sizes, seed)
    return scenario(cell, stream, _labels(sizes.train, sizes.classes), test, sizes.classes)


def course_of(spec: dict, sizes: Sizes, seed: int = 0) -> Scenario:
    """A seed's scenario through a cell, over a data set of balanced classes."""
    parts = {part: spec[part] for part in ("order", "oracle", "restriction")}
    evaluation = {key: value for key, value in spec["evaluation"].items() if key in ("test", "batch")} | {"oracles": {}}
    parts |= {"budget": {"batch": spec["budget"]["batch"]}, "evaluation": evaluation}
    return _course(json.dumps(parts, sort_keys=True), sizes, seed)


class Run:
    """A cell on its way along a scenario: what learners' counts are made of.

    Attributes: steps, T; b, items of each step [T]; n, items of the stream; task, of each step [T]; changes, the steps
    with a task change; tests, the tests in order as (step, items, task or −1), the step being the last one learnt;
    grown, the nodes or experts there were in the end, which data decide: the benchmark's cells have it, others None.
    """

    def __init__(self, spec: dict, sizes: Sizes, seeds: int, unit: Unit):
        self.spec, self.sizes, self.seeds, self.unit = spec, sizes, seeds, unit
        self.learner, self.budget, self.net = spec["learner"], spec["budget"], spec["net"]
        self.grown = spec.get("grown")
        self.scenario = course_of(spec, sizes)
        h, w, c = sizes.shape
        self.shape, self.outputs = (c, h, w), self.scenario.outputs
        ends = self.scenario.ends
        self.ends, self.steps, self.n = ends, len(ends), int(ends[-1])
        self.b = np.diff(ends, prepend=0)
        self.task = self.scenario.tasks.train[ends - self.b]
        self.changes = np.flatnonzero(self.scenario.changes)
        self.tests = list(self._tests())
        self.key = net_key(self.net, self.shape, self.outputs, seeds)

    @property
    def tasks(self) -> int:
        """Of the stream, whatever the learner is told."""
        return (len(self.scenario.stream.boundaries) + 1) // self.spec["order"].get("cycles", 1)

    @functools.cached_property
    def parameters(self) -> float:
        """Of the cell's net, those of all seeds of a stack."""
        return self.unit("parameters", self.key, 1)

    def _tests(self) -> Iterable[tuple[int, int, int]]:
        evaluation, c = self.spec["evaluation"], self.scenario
        whole = len(c.test_items) * c.repeats()
        found: list[tuple[int, int, int]] = []
        if "shots" in evaluation:
            said = chunk_tasks(self.spec, c)
            size = [int(held[c.test_labels].sum()) for held in said.task_classes]
            chunk = c.stream.chunk[self.ends - self.b]
            starts = np.flatnonzero(np.diff(chunk, prepend=-1))
            stops = [*starts[1:], self.steps]
            for start, stop in zip(starts, stops):
                own = int(said.train[self.ends[start] - self.b[start]])
                for t in range(start, min(start + evaluation["shots"] + 1, stop)):
                    found.append((t - 1, size[own], own))
                found += [(stop - 1, size[j], j) for j in range(said.tasks)]
        if "every" in evaluation:
            due = np.flatnonzero(np.diff(self.ends // evaluation["every"], prepend=0))
            found += [(int(t), whole, -1) for t in sorted({*due.tolist(), self.steps - 1})]
        points, probes = evaluation["points"], min(evaluation["probes"] or self.n, self.n)
        for i in range(1, points + 1):
            t = math.ceil(i * self.steps / points) - 1
            found.append((t, round(probes * self.ends[t] / self.n), -1))
        found.append((self.steps - 1, whole, -1))
        return sorted(found, key=lambda test: test[0])

    # --- seconds of passes

    def learn(self, batches: Iterable[float] | float, key: str | None = None, *, update: bool = True) -> float:
        """Forward and backward on batches of so many items each, and as many steps of the optimiser."""
        sizes, counts = np.unique(np.asarray(batches, dtype=float).reshape(-1), return_counts=True)
        key = key or self.key
        total = sum(k * self.unit("learn", key, float(b)) for b, k in zip(sizes, counts) if b > 0)
        return total + (int(counts[sizes > 0].sum()) * self.unit(self.budget["optimizer"], key, 1) if update else 0)

    def answer(self, batches: Iterable[float] | float, key: str | None = None) -> float:
        """Forward on batches of so many items each."""
        sizes, counts = np.unique(np.asarray(batches, dtype=float).reshape(-1), return_counts=True)
        return sum(k * self.unit("answer", key or self.key, float(b)) for b, k in zip(sizes, counts) if b > 0)

    def pieces(self, items: int) -> list[int]:
        """The batches in which so many items are tested."""
        block = min(TEST_BATCH, max(TEST_VALUES // self.sizes.values, 1))
        return [block] * (items // block) + [items % block]

    def tested(self, key: str | None = None) -> float:
        """Forward on all tests."""
        return self.answer([size for _, items, _ in self.tests for size in self.pieces(items)], key)

    @property
    def test_items(self) -> int:
        return sum(items for _, items, _ in self.tests)


# --- learners: what each does, by name of the term ------------------------------------------------------------


def _single(r: Run) -> Amounts:
    return {"steps": r.steps, "passes": r.learn(r.b) + r.tested()}


def _importance(r: Run) -> Amounts:
    """Vectors as long as the parameters, at each step from the first task change on; at each before it, some."""
    after = r.steps - r.changes[0] if len(r.changes) else 0
    return _single(r) | {"parameters": r.parameters * r.steps, "pulled": r.parameters * after}


def _ewc(r: Run) -> Amounts:
    fisher, items = r.learner["fisher"], 0.0
    if fisher == "last_batch":
        items = r.b[r.changes - 1].sum() if len(r.changes) else 0
    elif "samples" in fisher:
        items = fisher["samples"] * len(r.changes)
    one = r.learn(r.b.max(), update=False) / r.b.max()
    amounts = _importance(r) | {"fisher": float(items) * one}
    return amounts if "interval" in fisher else {k: v for k, v in amounts.items() if k != "parameters"}


def _mas(r: Run) -> Amounts:
    again = r.b[: r.changes[-1]] if len(r.changes) else []
    amounts = _importance(r)
    return amounts | {"passes": amounts["passes"] + r.learn(again, update=False)}


def _replay(r: Run) -> Amounts:
    replayed = np.minimum(r.budget["replay_batch"], np.minimum(r.ends - r.b, r.budget["memory"]))
    if r.learner.get("forward") == "concatenated":
        learnt = r.learn(r.b + replayed)
    else:
        learnt = r.learn(r.b) + r.learn(replayed, update=False)
    return {"steps": r.steps, "passes": learnt + r.tested()}


def _mir(r: Run) -> Amounts:
    candidates = np.minimum(r.learner["candidates"], np.minimum(r.ends - r.b, r.budget["memory"]))
    amounts = _replay(r)
    return amounts | {"forward": 2 * r.answer(candidates), "parameters": r.parameters * r.steps}


def _gmed(r: Run) -> Amounts:
    amounts = _replay(r)
    return amounts | {"edits": 2 * r.steps * r.learn(r.budget["replay_batch"], update=False)}


def _gdumb(r: Run) -> Amounts:
    return {"steps": r.steps, "passes": r.learn(np.full(r.steps, r.learner["memory_batch"])) + r.tested()}


def _gdumb_retrained(r: Run) -> Amounts:
    batch, learnt = r.learner["memory_batch"], 0.0
    for t in sorted({t for t, _, _ in r.tests}):
        held = min(r.budget["memory"], int(r.ends[t]))
        learnt += r.learner["epochs"] * math.ceil(held / batch) * r.learn(min(batch, held))
    return {"steps": r.steps, "passes": learnt + r.tested()}


def _prog_nn(r: Run) -> Amounts:
    """A column beside k earlier ones passes k of them, each of which looks at those before it."""
    k = r.task.astype(float)
    sizes, which = np.unique(r.b, return_inverse=True)
    step = np.array([r.answer(b) for b in sizes])[which]
    tests = [(r.answer(r.pieces(items)), j if j >= 0 else r.task.max()) for _, items, j in r.tests]
    return {
        "steps": r.steps,
        "passes": r.learn(r.b) + r.tested(),
        "columns": (step * k).sum() + sum(once * j for once, j in tests),
        "laterals": (step * k**2).sum() + sum(once * j**2 for once, j in tests),
    }


def _memory_of_a_task(r: Run) -> int:
    """Items, at most those of the smallest task."""
    tasks = int(r.scenario.tasks.tasks)
    return min(r.budget["memory"] // tasks, int(np.bincount(r.task, weights=r.b, minlength=tasks).min()))


def _gem(r: Run) -> Amounts:
    k = r.task.astype(float)
    memories = k.sum() * r.learn(_memory_of_a_task(r), update=False)
    amounts = _single(r)
    return {
        "steps": r.steps,
        "passes": amounts["passes"] + memories,
        "constraints": k.sum(),
        "parameters": r.parameters * k.sum(),  # their inner products are as long as it takes to read them
    }


def _s_gem(r: Run) -> Amounts:
    after = int((r.task > 0).sum())
    reference = after * r.learn(_memory_of_a_task(r), update=False)
    amounts = _single(r)
    return amounts | {"passes": amounts["passes"] + reference, "parameters": r.parameters * after}


def _a_gem(r: Run) -> Amounts:
    drawn = np.minimum(r.budget["replay_batch"], r.task * _memory_of_a_task(r))
    amounts = _single(r)
    after = int((r.task > 0).sum())
    return amounts | {
        "passes": amounts["passes"] + r.learn(drawn, update=False),
        "parameters": r.parameters * after,
    }


def _icarl(r: Run) -> Amounts:
    memory, by_task = r.budget["memory"], r.learner["exemplars"] == "task"
    dues = np.array([*r.changes - 1, r.steps - 1]) if by_task else np.arange(r.steps)
    pool, chosen, herded = [], 0, 0
    before = np.zeros(r.outputs, dtype=np.int64)  # items that came of each class
    for end, came in zip(r.ends[dues], np.diff(r.ends[dues], prepend=0)):
        now = np.bincount(r.scenario.labels[end - came : end], minlength=r.outputs)
        each = max(memory // np.count_nonzero(before + now), 1)
        pools = (now + np.minimum(before, each))[now > 0]
        pool.append(pools.sum())
        chosen, herded = chosen + np.minimum(each, pools).sum(), herded + (pools**2).sum()
        before += now
    features = r.net["hidden"][-1] if "hidden" in r.net else 8 * r.net["width"]
    width = r.outputs if r.learner["space"] == "logits" else features
    if by_task:
        of_a_task = r.scenario.tasks.task_classes.sum() / r.scenario.tasks.tasks  # classes, of each of which an item
        learnt = r.learn(r.b) + r.task.sum() * r.learn(of_a_task, update=False)
        old = np.minimum(memory, r.ends[r.changes - 1])
        calls = len(r.tests)
    else:
        batches = r.b + np.minimum(memory, r.ends - r.b)
        learnt = r.learn(batches)
        old = batches[r.changes[0] :] if len(r.changes) else r.b[:0]
        calls = len({t for t, _, _ in r.tests})
    return {
        "steps": r.steps,
        "passes": learnt + r.tested(),
        "forward": r.answer(old) + r.answer(pool) + calls * r.answer(memory),
        "chosen": float(chosen),
        "herded": float(herded * width),  # inner products
    }


def _gr(r: Run) -> Amounts:
    latent, net = r.learner["latent"], r.net
    linear = {"head": "linear"} if "head" in net else {}
    encoder = net_key(net | linear, r.shape, 2 * latent, r.seeds)
    if net["name"] == "mlp":
        mirror = net | {"hidden": net["hidden"][::-1]}
    else:
        mirror = {"name": "resnet_decoder", "width": net["width"], "image": list(r.shape)}
    decoder = net_key(mirror, (latent, 1, 1), r.sizes.values, r.seeds)
    again = r.b[r.changes[0] :] if len(r.changes) else r.b[:0]
    learnt = r.learn(r.b) + r.learn(again, update=False)
    auto = sum(r.learn(r.b, part, update=False) + r.learn(again, part, update=False) for part in (encoder, decoder))
    adam = r.steps * sum(r.unit("adam", part, 1) for part in (encoder, decoder))
    return {
        "steps": r.steps,
        "passes": learnt + r.tested(),
        "auto_encoder": auto + adam,
        "forward": r.answer(again) + r.answer(again, decoder),
    }


def _multi_model(r: Run) -> Amounts:
    oracle = r.spec["oracle"]
    count = oracle["tasks"] if oracle["name"] == "entropy" else r.scenario.tasks.tasks
    width = r.learner["widths"][str(count)]
    narrow = {"hidden": [width] * len(r.net["hidden"])} if "hidden" in r.net else {"width": width}
    key = net_key(r.net | narrow, r.shape, r.outputs, r.seeds)
    block = min(TEST_BATCH, max(TEST_VALUES // r.sizes.values, 1))
    calls = sum(math.ceil(items / block) for _, items, _ in r.tests)
    if oracle["name"] == "entropy":  # how items spread is not known beforehand; they all pass all models
        parts, batches, asked = np.ones(r.steps), r.b, count * (r.answer(r.b, key) + r.tested(key))
        spread = 1
    else:
        tasks = r.scenario.tasks.train
        parts = np.array([len(np.unique(tasks[e - b : e])) for e, b in zip(r.ends, r.b)])
        batches, asked, spread = r.b / parts, 0.0, count
    learnt = sum(k * r.learn(b, key) for (b, k), m in _counted(batches, parts) for k in [k * m])
    answered = calls * spread * r.answer(r.test_items / calls / spread, key)
    return {
        "steps": r.steps,
        "models": float(parts.sum()) + calls * spread,
        "passes": learnt + answered,
        "forward": asked,
    }


def _counted(batches: np.ndarray, parts: np.ndarray) -> Iterable[tuple[tuple[float, int], int]]:
    pairs, counts = np.unique(np.stack([batches, parts]), axis=1, return_counts=True)
    return [((float(b), int(k)), int(m)) for (b, m), k in zip(pairs.T, counts)]


def _random(r: Run) -> Amounts:
    return {"steps": r.steps, "scores": float(r.test_items * r.outputs)}


def _cn_dpm(r: Run) -> Amounts:
    """An expert a task of the stream, each born when its memory is full: how many there will be, no cell says."""
    options, stm = r.learner, r.learner["stm"]
    chunks = len(r.scenario.stream.boundaries) + 1
    experts = min(chunks, r.n // stm) if r.grown is None else r.grown
    there = 1 + np.floor(np.arange(r.steps) / r.steps * experts)
    size = options["vae_width"] ** 2 * r.sizes.values
    small = options["classifier_width"] ** 2 * r.sizes.values
    return {
        "steps": float(there.sum()),
        "assessed": float((there * r.b).sum() + r.test_items * (experts + 1)) * size,
        "vae": float(experts * options["sleep_vae_steps"] * options["sleep_batch"]) * size,
        "classifier": float(experts * options["sleep_classifier_steps"] * options["sleep_batch"]) * small,
    }


def _net_size(r: Run) -> tuple[int, int]:
    """Parameters and hidden units of the cell's MLP."""
    widths = [r.sizes.values, *r.net["hidden"], r.outputs]
    return sum(a * b + b for a, b in itertools.pairwise(widths)), sum(widths[1:])


def _fits(n: int, batch: int | str, epochs: int) -> tuple[int, int]:
    """Steps and items of some epochs."""
    return epochs * (1 if batch == "full" else math.ceil(n / batch)), epochs * n


def _spilled(steps: int, items: int, units: int, samples: int = 1) -> int:
    """Activations of training steps whose own do not fit into a cache."""
    return items * samples * units if items / steps * samples * units > CACHED else 0


def _variational(r: Run, fits: list[tuple[int, int]], means: list[tuple[int, int]], asked: int = 0) -> Amounts:
    """`fits`: (steps, items) that learn with samples; `means`: without. asked: items that all nets of a test answer."""
    p, units = _net_size(r)
    k = r.learner["samples"]
    steps, items = (sum(each) for each in zip(*fits))
    more_steps, more_items = (sum(each) for each in zip(*means)) if means else (0, 0)
    answered = (r.test_items + asked) * r.learner["prediction_samples"]
    return {
        "steps": float(steps + more_steps),
        "layers": float((steps + more_steps) * (len(r.net["hidden"]) + 1)),
        "drawn": float(steps * k * p + more_steps * p),
        "multiplied": float((items * k + more_items) * p),
        "activations": float((items * k + more_items) * units),
        "spilled": float(sum(_spilled(*fit, units, k) for fit in fits) + sum(_spilled(*fit, units) for fit in means)),
        "answered": float(answered * p),
        "answered_activations": float(answered * units),
        "answering": float(len(r.tests) * r.learner["prediction_samples"] * p),
    }


def _told(r: Run) -> int:
    """Items whose uncertainty is asked for after each chunk."""
    ends = set((np.flatnonzero(np.diff(r.scenario.stream.chunk[r.ends - r.b]))).tolist()) | {r.steps - 1}
    return sum(items for t, items, j in r.tests if t in ends and j >= 0)


def _vcl(r: Run) -> Amounts:
    batch, epochs, gradients = r.learner["batch"], r.learner["epochs"], r.learner.get("gradients")
    fits = [_fits(int(b), batch, epochs) for b in r.b]
    if gradients and r.steps > 1:
        steps = gradients["repetitions"] * gradients["batches"]
        fits.append((steps, steps * gradients["size"]))
    asked = _told(r)
    if gradients and r.steps > 1:
        asked += gradients["repetitions"] * (gradients["batches"] - 1) * gradients["size"]
    return _variational(r, fits, [_fits(int(r.b[0]), batch, epochs)], asked)


def _vcl_coreset(r: Run) -> Amounts:
    amounts = _vcl(r)
    batch, epochs, coreset = r.learner["batch"], r.learner["coreset_epochs"], r.learner["coreset"]
    learnt, copies = [], 0
    masked = r.spec["restriction"]["train"] == "oracle" and r.scenario.masks is not None
    tasks = r.tasks
    for t in sorted({t for t, _, _ in r.tests if t >= 0}):
        known = min(t + 1, tasks)
        learnt += [_fits(coreset, batch, epochs)] * known if masked else [_fits(coreset * known, batch, epochs)]
        copies += known
    more = _variational(r, learnt, [])
    _p, _ = _net_size(r)
    return amounts | {
        "steps": amounts["steps"] + more["steps"],
        "layers": amounts["layers"] + more["layers"],
        "drawn": amounts["drawn"] + more["drawn"],
        "multiplied": amounts["multiplied"] + more["multiplied"],
        "activations": amounts["activations"] + more["activations"],
        "spilled": amounts["spilled"] + more["spilled"],
        "centred": float(min(tasks, r.steps) * coreset * r.b.mean() * r.sizes.values),
    }


def _vgr(r: Run) -> Amounts:
    options, gan = r.learner, r.learner["gan"]
    tasks = r.tasks
    shared = len(r.scenario.transforms) > 0
    classes = r.outputs if shared else r.outputs / tasks
    fits, drawn, trained = [], 0.0, 0.0
    key = gan_key(gan, r.shape)
    for t, b in enumerate(r.b):
        others = min(t, tasks - 1) if t >= tasks else t
        batch = options["batch"] * (others + 1 if options["batch_per_task"] else 1)
        made = others * classes * options["generated"]
        fits.append(_fits(int(b + made), batch, options["epochs"]))
        drawn += made
        if (t == 0) if shared else (t < tasks):
            iterations = gan["epochs"] * max(int(b / (classes * gan["batch"])), 1)
            trained += r.unit("founding", key, classes) + iterations * r.unit("iteration", key, classes)
    traced = r.steps * options["epochs"] * min(options.get("trace", 0), r.b.min())
    first = _fits(int(r.b[0]), options["batch"], options["epochs"])
    amounts = _variational(r, fits, [first], _told(r) + int(traced))
    return amounts | {"gans": trained, "generated": drawn * r.unit("draw", key, 1)}


def gan_key(gan: dict, shape: tuple[int, ...]) -> str:
    """A GAN by what its training costs."""
    return net_key({k: gan[k] for k in ("name", "latent", "width", "batch")}, shape, 1)


def _seen_at_tests(r: Run) -> list[tuple[int, int]]:
    return [(int(r.ends[t]) if t >= 0 else 0, items) for t, items, _ in r.tests]


def _nn1(r: Run) -> Amounts:
    looked = sum(seen * items for seen, items in _seen_at_tests(r))
    joined = sum(seen for seen, _ in _seen_at_tests(r)) * r.sizes.values
    return {
        "steps": r.steps,
        "distances": float(looked * r.sizes.values),
        "compared": float(looked),
        "joined": float(joined),
    }


def _bartmap(r: Run) -> Amounts:
    """Nodes grow evenly with the items."""
    share = NODES if r.grown is None else r.grown / r.n
    asked = sum(share * seen * items for seen, items in _seen_at_tests(r))
    return {
        "steps": r.n,
        "asked": r.test_items,
        "searched": share * r.n**2 / 2 * r.sizes.values,
        "answered": asked * r.sizes.values,
    }


def _geppnet(r: Run) -> Amounts:
    units = r.learner["side"] ** 2
    return {
        "steps": r.n,
        "units": float(r.n * units * r.sizes.values),
        "answered": float(r.test_items * units * r.sizes.values),
    }


def _offline(r: Run) -> Amounts:
    batch, learnt = r.learner["batch"], 0.0
    steps = 0
    for t in sorted({t for t, _, _ in r.tests if t >= 0}):
        seen = int(r.ends[t])
        k = r.learner["epochs"] * math.ceil(seen / batch)
        steps += k
        learnt += k * r.learn(min(batch, seen))
    return {"steps": r.steps, "offline_steps": float(steps), "passes": learnt + r.tested()}


LEARNERS: dict[str, Callable[[Run], Amounts]] = {
    "single": _single,
    "multi_task": _single,
    "er": _replay,
    "cbrs": _replay,
    "ace": _replay,
    "mir": _mir,
    "gmed": _gmed,
    "gdumb": _gdumb,
    "gdumb_retrained": _gdumb_retrained,
    "ewc": _ewc,
    "si": _importance,
    "mas": _mas,
    "rwalk": _importance,
    "prog_nn": _prog_nn,
    "gem": _gem,
    "s_gem": _s_gem,
    "a_gem": _a_gem,
    "icarl": _icarl,
    "gr": _gr,
    "multi_model": _multi_model,
    "random": _random,
    "random_multi_model": _random,
    "cn_dpm": _cn_dpm,
    "vcl": _vcl,
    "vcl_coreset": _vcl_coreset,
    "vgr": _vgr,
    "nn1": _nn1,
    "bartmap": _bartmap,
    "geppnet": _geppnet,
    "offline": _offline,
}
UNSTACKED = ("cn_dpm", "bartmap", "gdumb_retrained", "icarl", "multi_model")  # `stackable = False`
OWN_NETS_UNLOOKING = ("random", "random_multi_model", "offline")


BLIND = ("gdumb", "multi_task")  # they say nothing of a batch before it is learnt but a loss
SILENT = ("gdumb_retrained", "random", "random_multi_model", "nn1", "bartmap", "geppnet", "offline")  # nor that


def together(spec: dict, *, cuda: bool = False) -> bool:
    """Whether a job's seeds train as one stack, as runs/loop.py decides it."""
    name, batch = spec["learner"]["name"], spec["budget"]["batch"]
    small = spec["net"]["name"] == "mlp" and batch != "task" and batch <= SMALL_BATCH
    return name not in UNSTACKED and (cuda or small or name in OWN_NETS_UNLOOKING)


def amounts(spec: dict, sizes: Sizes, seeds: int, unit: Unit, *, cuda: bool = False) -> Amounts:
    """What a job of so many seeds does, by term; `KeyError` for a learner that nobody counted.

    What begins with a job (`runs`) counts once, and so do the steps of a stack, whose seeds are one program.
    """
    epochs = spec["order"].get("epochs", 1)
    if epochs > 2:  # each epoch more costs the same, and so many items need not be laid out
        one, two = (amounts(_of_epochs(spec, n), sizes, seeds, unit, cuda=cuda) for n in (1, 2))
        return {term: one[term] + (epochs - 1) * (two[term] - one[term]) for term in two}
    count, name = LEARNERS[spec["learner"]["name"]], spec["learner"]["name"]
    if seeds > 1 and together(spec, cuda=cuda):
        if name not in OWN_NETS_UNLOOKING:
            return {"runs": 1.0} | count(Run(spec, sizes, seeds, unit))
        alone = count(Run(spec, sizes, 1, unit))
        return {"runs": 1.0} | {term: amount * (1 if term == "steps" else seeds) for term, amount in alone.items()}
    alone = count(Run(spec, sizes, 1, unit))
    return {"runs": 1.0} | {term: seeds * amount for term, amount in alone.items()}


def _of_epochs(spec: dict, epochs: int) -> dict:
    order = {key: value for key, value in spec["order"].items() if key != "epochs"}
    return spec | {"order": order | ({"epochs": epochs} if epochs > 1 else {})}


def result_bytes(spec: dict, sizes: Sizes) -> Amounts:
    """What the bytes of a seed's result grow with."""
    epochs = spec["order"].get("epochs", 1)
    if epochs > 2:
        one, two = (result_bytes(_of_epochs(spec, n), sizes) for n in (1, 2))
        return {term: one[term] + (epochs - 1) * (two[term] - one[term]) for term in two}
    run = Run(spec, sizes, 1, lambda kind, key, items: 1.0)
    evaluation, c = spec["evaluation"], run.scenario
    probes = min(evaluation["probes"] or run.n, run.n)
    tasks = chunk_tasks(spec, c) if "shots" in evaluation else None
    cells = 0
    if tasks is not None:
        chunks = len(c.stream.boundaries) + 1
        in_tasks = int(tasks.task_classes.sum())
        cells = 2 * chunks * in_tasks + chunks * min(evaluation["shots"] + 1, run.steps) * in_tasks // tasks.tasks
    events = run.steps if "every" not in evaluation else run.n // evaluation["every"]
    learner = spec["learner"]
    told = learner["name"] not in SILENT
    gradients = learner.get("gradients") or {"repetitions": 0, "batches": 0}
    traced = run.steps * learner["epochs"] if learner.get("trace") else 0
    return {
        "seeds": 1.0,
        "steps": float(run.steps) if told and learner["name"] not in BLIND else 0.0,
        "losses": float(run.steps) if told and learner["name"] in BLIND else 0.0,
        "probes": float(probes),
        "probe_points": float(probes * evaluation["points"]),
        "views": float(run.outputs * (1 + 3 * len(evaluation["oracles"]))),
        "task_tests": float(cells),
        "events": float(events * run.outputs) if "every" in evaluation else 0.0,
        "told": float(gradients["repetitions"] * (2 * gradients["batches"] + 1) + traced),
    }
