"""Verifies the first steps of published runs: they are taken again here, by today's code, beside the published ones."""

import contextlib
import datetime
import functools
import math
import multiprocessing
import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

from clpapers import machine, provenance
from clpapers.archive.beginnings import OTHERWISE, ROUNDING, SAME, UNTRIED, Beginning
from clpapers.archive.check import CrateError
from clpapers.archive.imported import published
from clpapers.builds.verify import THREADS, Scratch, published_runs, stacked
from clpapers.config.plan import Plan
from clpapers.config.refusals import ConfigError
from clpapers.config.settings import all_papers
from clpapers.graph import jobs
from clpapers.metrics.accuracy import unpack
from clpapers.provenance import escaped
from clpapers.runs.result_schema import results

FACTOR = 10.0  # CHOICE: another machine's rounding grows at most so many times as much as a change of the weights
OF_ANSWERS = 2.0  # CHOICE: likewise, of answers after a whole training, where both have grown to all that they can
CHANGES = 8  # of the weights, at most, until one explains how far a run departs: of a choice that few changes flip
UNITS = 2.5  # of the last digit that results hold: two roundings of nearly equal numbers may be two apart
DIGITS = 6  # of a loss in a result
SECONDS = 60.0  # of one core, in which a run must begin


class Begun(NamedTuple):
    """A published run that is to begin again. entries: by seed, the compared part of its published result."""

    name: str
    cell: dict
    entries: dict[int, dict]
    dataset: Path
    weights: Path | None
    classes: int
    stacking: bool
    steps: int
    answers: bool


def verify_steps(
    settings: dict, crates: list[Path], steps: int, done: Iterable[Beginning] = (), *, every_file: bool = False
) -> Iterator[Beginning]:
    """Take the first steps of published runs again, on all cores; of each cell the first published file's.

    settings: as `check_settings` returns them. crates: none for the project's own. done: known outcomes, which are left
    as they are unless a run was not tried. every_file: whether to take all files of a cell.

    Raises `CrateError` where there is no run of a cell that config/ has, `ConfigError` for wrong values.
    """
    if steps < 1:
        raise ConfigError(f"verify: --steps {steps}: give a number from 1 up")
    plan = Plan(settings["scale"], all_papers())
    runs = published_runs(plan, crates or published(plan.scale))
    if not runs:
        raise CrateError("verify: the crates hold no run of a cell that config/ has now; name others")
    cells: dict[Path, list[str]] = {}
    for name in sorted(runs):
        cells.setdefault(Path(name).parent, []).append(name)
    names = [name for of_cell in cells.values() for name in (of_cell if every_file else of_cell[:1])]
    known = {beginning.run: beginning for beginning in done if beginning.verdict != UNTRIED}
    yield from (known[name] for name in names if name in known)
    git = provenance.git_state()
    commit = f"{git['commit'] or 'none'}{' with edits' if git['dirty'] else ''}"
    told = datetime.datetime.now(datetime.UTC).date().isoformat(), commit, provenance.hardware()["processor"]
    with tempfile.TemporaryDirectory(prefix="clpapers-verify-") as folder:
        scratch = Scratch(plan, settings, Path(folder))
        waiting: list[Begun] = []
        for name in (name for name in names if name not in known):
            if fault := _lacking(scratch, Path(name)):
                reason = fault.partition(";")[0]  # without folders of this machine
                yield Beginning(name, UNTRIED, 0, reason, 0.0, *told)
            else:
                waiting.append(_begun(plan, name, runs[name].content, steps, stacking=stacked(runs[name].record)))
        waiting.sort(key=lambda begun: str(begun.dataset))  # so that few are read
        cores = machine.cores()
        context = multiprocessing.get_context("spawn")
        with _one_thread_each(), ProcessPoolExecutor(cores, context, os.chdir, (folder,)) as pool:
            for begun, (verdict, count, why, took) in zip(waiting, pool.map(_begin, waiting)):
                if verdict in (ROUNDING, OTHERWISE):
                    why += f"; there: {_conditions(runs[begun.name].record)}"
                yield Beginning(begun.name, verdict, count, why, took, *told)


@contextlib.contextmanager
def _one_thread_each() -> Iterator[None]:
    """Inside, processes that begin compute with one thread."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ |= dict.fromkeys(THREADS, "1")
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)


def _conditions(record: Mapping) -> str:
    """The device or processor, PyTorch and the commit, which decide a published run's digits beside its settings."""
    hardware, torch = record["hardware"], record["packages"].get("torch")
    device = hardware.get("device") if hardware.get("device") != "cpu" else hardware.get("processor")
    return escaped(f"{device}, PyTorch {torch}, commit {record['git']['commit']}")


def _lacking(scratch: Scratch, run: Path) -> str:
    """Why the inputs of a run cannot be had without a training; else its data set and weights are there."""
    job = jobs.job_of(scratch.plan, run)
    cell, _, _, shared = job.subject
    if shared:
        return "its GANs are trained before it"
    if scratch.seconds_of_features(run):
        return "its features are not made here"
    for path in filter(None, (cell.dataset, cell.weights)):
        if fault := scratch.make(path):
            return fault
    return ""


def _begun(plan: Plan, name: str, content: bytes, steps: int, *, stacking: bool) -> Begun:
    spec, entries = results(content)
    entries = {seed: entry for seed, entry in entries.items() if not entry.get("out_of_memory")}
    cell, classes = plan.cells[Path(name).parent.name[-10:]], len(plan.datasets[spec["dataset"]]["classes"])
    answers = any(entry["online"]["loss"] is None for entry in entries.values())
    compared = ("probes", "events", "tasks") if answers else ("online",)
    cut = {seed: {key: entry[key] for key in compared if key in entry} for seed, entry in entries.items()}
    for entry in () if answers else cut.values():
        entry["online"] = {key: values and values[:steps] for key, values in entry["online"].items()}
    return Begun(name, spec, cut, cell.dataset, cell.weights, classes, stacking, steps, answers)


@functools.lru_cache(maxsize=1)
def _read(dataset: Path, weights: Path | None, classes: int) -> tuple:
    """A data set for training, and what its streams are made from: labels, instances, values an image."""
    from clpapers.datasets import arrays
    from clpapers.runs import loop

    train, test = (arrays.load(dataset, split) for split in ("train", "test"))
    start = arrays.by_name(weights) if weights else None
    data = loop.Data(train.x, train.y, test.x, test.y, classes, arrays.attributes(dataset), start)
    return data, (arrays.labels(dataset, "train"), math.prod(train.x.shape[1:]), arrays.instances(dataset))


def _begin(begun: Begun) -> tuple[str, int, str, float]:
    """The verdict on a run, the steps compared, why, and the seconds that it took."""
    from clpapers.runs import beginning
    from clpapers.streams import orders

    clock = time.process_time()
    try:
        data, (labels, pixels, recorded) = _read(begun.dataset, begun.weights, begun.classes)
        order = begun.cell["order"]
        streams = {seed: orders.make(order, labels, seed, pixels, recorded, begun.classes) for seed in begun.entries}
        take = functools.partial(
            beginning.begin, begun.cell, data, streams, begun.steps,
            stacking=begun.stacking, answers=begun.answers, seconds=SECONDS,
        )  # fmt: skip
        ours = take()
        if not ours:
            verdict, count, why = UNTRIED, 0, f"it does not begin within {SECONDS:.0f} s"
        elif all(_begins(entry, begun.entries[seed]) for seed, entry in ours.items()):
            verdict, why = SAME, f"first answers of {len(ours)} seeds" * begun.answers
            count = 0 if begun.answers else len(next(iter(ours.values()))["online"]["loss"])
        else:
            nudged = []
            for draw in range(CHANGES):
                nudged.append(take(nudge=beginning.NUDGE, draw=draw))
                if ours.keys() - nudged[-1].keys():
                    verdict, count, why = UNTRIED, 0, f"with changed weights it does not begin within {SECONDS:.0f} s"
                    break
                if begun.answers:
                    verdict, count, why = by_answers(ours, begun.entries, nudged)
                else:
                    verdict, count, why = by_losses(_losses(ours), _losses(begun.entries), list(map(_losses, nudged)))
                if verdict == ROUNDING:
                    break
            step = None if begun.answers else items_apart(ours, begun.entries)
            if verdict == ROUNDING and step is not None:
                verdict, why = OTHERWISE, f"in items right at step {step + 1}, where the losses are the same"
    except Exception as error:  # of a learner, of any kind
        verdict, count, why = UNTRIED, 0, escaped(str(error).partition("\n")[0] or repr(error))
    return verdict, count, why, round(time.process_time() - clock, 2)


def _losses(entries: Mapping[int, dict]) -> dict[int, list]:
    return {seed: entry["online"]["loss"] for seed, entry in entries.items()}


def items_apart(ours: Mapping[int, dict], theirs: Mapping[int, dict]) -> int | None:
    """The first step whose items right differ although its loss, and all before it, have the same digits; or none."""
    for seed, entry in ours.items():
        mine, published = entry["online"], theirs[seed]["online"]
        steps = zip(mine["loss"], published["loss"], mine["correct"], published["correct"])
        for step, (loss, published_loss, right, published_right) in enumerate(steps):
            if loss != published_loss:
                break
            if right != published_right:
                return step
    return None


def _begins(ours: object, theirs: object) -> bool:
    """Whether findings are the first of others: numbers and texts equal, lists as far as they go."""
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        return all(key in theirs and _begins(value, theirs[key]) for key, value in ours.items())
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) <= len(theirs) and all(map(_begins, ours, theirs))
    return ours == theirs


def by_answers(
    ours: Mapping[int, dict], theirs: Mapping[int, dict], nudged: Sequence[Mapping[int, dict]]
) -> tuple[str, int, str]:
    """The verdict on first answers that are not all the same, by seed: no steps, and how far apart they are.

    nudged: as `ours`, from weights that were changed by `beginning.NUDGE`, in several ways. Ours may be as far from
    theirs as `OF_ANSWERS` times the farthest of these.
    """
    ours, theirs, *changed = (
        {seed: _unpacked(entry) for seed, entry in entries.items()} for entries in (ours, theirs, *nudged)
    )
    gap = sum(_apart(entry, theirs[seed]) for seed, entry in ours.items())
    bound = OF_ANSWERS * max(sum(_apart(entry, other.get(seed)) for seed, entry in ours.items()) for other in changed)
    why = f"first answers of {len(ours)} seeds by {gap:.4g} items, where rounding may reach {bound:.4g}"
    return (ROUNDING if gap <= bound < math.inf else OTHERWISE), 0, why


def _unpacked(entry: Mapping) -> dict:
    """Findings where each answer to a probe is a number, so that they can be counted."""
    if "probes" not in entry:
        return dict(entry)
    probes = entry["probes"]
    packed = probes["correct"]
    right = unpack(packed, probes["position"], probes["time"][: len(packed)])
    return {**entry, "probes": {**probes, "correct": right.astype(int).tolist()}}


def _apart(ours: object, theirs: object) -> float:
    """How far findings are from others, summed over all numbers that ours have; infinite where the form differs."""
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        return sum(_apart(value, theirs.get(key)) for key, value in ours.items())
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) <= len(theirs):
        return sum(map(_apart, ours, theirs))
    numbers = all(isinstance(each, int | float) for each in (ours, theirs))
    return abs(ours - theirs) if numbers else 0.0 if ours == theirs else math.inf  # type: ignore[operator]


def by_losses(
    ours: Mapping[int, Sequence], theirs: Mapping[int, Sequence], nudged: Sequence[Mapping[int, Sequence]]
) -> tuple[str, int, str]:
    """The verdict on first losses that are not all the same, by seed: the steps compared, and the largest departure.

    nudged: as `ours`, from weights that were changed by `beginning.NUDGE`, in several ways. Up to any step, ours may be
    as far from theirs as `FACTOR` times the largest distance of nudged ones so far, and `UNITS` of their last digit.
    """
    departures = []
    for seed, losses in ours.items():
        reach = 0.0
        if len(losses) > len(theirs[seed]):
            departures.append((math.inf, 0.0, len(theirs[seed])))
        for step, (a, b) in enumerate(zip(losses, theirs[seed])):
            changed = [each[seed][step] for each in nudged if step < len(each[seed])]  # some were slower
            if None in (a, b, *changed):
                if (a is None) != (b is None):
                    departures.append((math.inf, 0.0, step))
                break
            reach = max([reach, *(abs(a - c) for c in changed)])
            unit = 10.0 ** (math.floor(math.log10(abs(b))) + 1 - DIGITS) if b else 0.0
            departures.append((abs(a - b), FACTOR * reach + UNITS * unit, step))
    count = max(map(len, ours.values()))
    if beyond := [each for each in departures if each[0] > each[1]]:
        gap, bound, step = min(beyond, key=lambda each: each[2])
        return OTHERWISE, count, f"by {gap:.2g} at step {step + 1}, where rounding may reach {bound:.2g}"
    gap, bound, step = max(departures, default=(0.0, 0.0, 0))
    return ROUNDING, count, f"by up to {gap:.2g}, at step {step + 1}, where rounding may reach {bound:.2g}"
