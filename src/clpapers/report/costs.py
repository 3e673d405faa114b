"""What each target costs: the seconds of the jobs behind it, measured where it is built, predicted where it is not.

A prediction is what `work` counts in a cell, times what `benchmarks/bench_costs.py` measured on one machine, which is
in config/costs.yaml. Nothing is predicted of a learner, a net or a device that was not measured.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from clpapers.config.facts import TOY
from clpapers.config.files import CONFIG, read_yaml
from clpapers.config.model import Cell, Target
from clpapers.config.paths import stream_path
from clpapers.config.plan import Plan
from clpapers.config.schemas import schema, validate
from clpapers.provenance import ProvenanceError, read_record, record_path
from clpapers.report import work
from clpapers.report.work import Sizes, Unit

FILE = CONFIG / "costs.yaml"
NOT_MEASURED = "not measured"
DEVICES = {"cpu": "one core", "cuda": "one GPU"}
# What changes no pass and no step: runs that differ in these alone cost the same.
FREE = {"budget": ("learning_rate",), "learner": ("strength", "prior_weight", "margin", "alpha", "beta", "damping")}


class Unmeasured(KeyError):
    """A learner, a net or a device that the benchmark has not measured; the text says which."""

    def __str__(self) -> str:
        return self.args[0]


# --- the model ------------------------------------------------------------------------------------------------


def read(path: Path = FILE) -> dict:
    """The measured costs, by device: `{"cpu": …, "cuda": …}`; a device that nobody measured is not there.

    Raises `ConfigError` naming file and key.
    """
    if not path.is_file():
        return {}
    costs = read_yaml(path)
    validate(costs, schema("costs"), path)
    return costs


def unit(nets: dict) -> Unit:
    """Seconds of passes by nets as measured, linear between the batches that were measured and beyond the last."""

    def seconds(kind: str, key: str, items: float) -> float:
        if kind not in nets.get(key, {}):
            raise Unmeasured(f"{kind} of {key}")
        measured = nets[key][kind]
        if not isinstance(measured, dict):
            return float(measured)
        return _interpolated(tuple(sorted((float(b), float(s)) for b, s in measured.items())), items)

    return seconds


@functools.lru_cache(maxsize=100_000)
def _interpolated(points: tuple[tuple[float, float], ...], at: float) -> float:
    batches, seconds = zip(*points)
    if at <= batches[-1] or len(points) == 1:
        return float(np.interp(at, batches, seconds)) * (1 if at >= batches[0] or len(points) > 1 else at / batches[0])
    slope = (seconds[-1] - seconds[-2]) / (batches[-1] - batches[-2])
    return seconds[-1] + max(slope, seconds[-1] / batches[-1] / 2) * (at - batches[-1])


def sizes(plan: Plan, dataset: str) -> Sizes:
    """A data set's sizes at a plan's scale, of the real one or, where only stand-ins are used, of that."""
    facts = plan.datasets[dataset]
    train, test, classes = facts["train"], facts["test"], len(facts["classes"])
    images = facts["features"]["of"] if "features" in facts else dataset
    stand_in = plan.settings.get("stand_ins", {}).get(images)
    if plan.settings["sources"] == "stand_in" and stand_in:
        of = len(plan.datasets[images]["classes"])
        train, test = (min(stand_in[f"{split}_per_class"] * of, facts[split]) for split in ("train", "test"))
    return Sizes(train, test, classes, tuple(facts["shape"]), facts.get("attributes") or 0)


def bare(spec: dict) -> dict:
    """A cell without what costs nothing."""
    kept = {k: v for k, v in spec.items() if k not in ("selection", "features")}
    for part, keys in FREE.items():
        kept[part] = {k: v for k, v in spec[part].items() if k not in keys}
    kept["net"] = {k: v for k, v in spec["net"].items() if k not in ("init", "epsilon", "weights")}
    return kept


def predicted(plan: Plan, cell: Cell, seeds: int, costs: dict, device: str = "cpu") -> tuple[float, float]:
    """Processor seconds (on a GPU: of the wall) and bytes of result of a job that trains so many seeds of a cell.

    costs: as of `read`. Raises `Unmeasured`. No torch is imported, so that a workflow may ask while it is read.
    """
    if device not in costs:
        raise Unmeasured(device)
    spec, name = cell.spec, cell.spec["learner"]["name"]
    measured = costs[device]
    if name not in measured["learners"]:
        raise Unmeasured(name)
    size = sizes(plan, spec["dataset"])
    key = json.dumps([bare(spec), seeds], sort_keys=True)
    amounts, length = _counted(key, size, device == "cuda", _Nets(measured["nets"]))
    seconds = seconds_of(amounts, measured["learners"][name])
    values = (size.train + size.test) * size.values * (4 if "features" in plan.datasets[spec["dataset"]] else 1)
    start = measured["jobs"]["train"]
    seconds += start["seconds"] + start["per_byte"] * values
    return seconds, measured["bytes"]["job"] + seeds * seconds_of(length, measured["bytes"])


class _Nets:
    """A table of nets that a cache may take as an argument."""

    def __init__(self, nets: dict):
        self.nets = nets

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Nets) and self.nets is other.nets

    def __hash__(self) -> int:
        return id(self.nets)


@functools.lru_cache(maxsize=4096)
def _counted(key: str, size: Sizes, cuda: bool, nets: _Nets) -> tuple[dict, dict]:
    spec, seeds = json.loads(key)
    return work.amounts(spec, size, seeds, unit(nets.nets), cuda=cuda), work.result_bytes(spec, size)


def seconds_of(amounts: dict[str, float], coefficients: dict[str, float]) -> float:
    """The sum of amounts by their coefficients; raises `Unmeasured` for a term that has none."""
    for term in amounts:
        if term not in coefficients:
            raise Unmeasured(term)
    return sum(coefficients[term] * amount for term, amount in amounts.items())


# --- targets --------------------------------------------------------------------------------------------------


def ancestry(*paths: Path) -> dict[Path, dict]:
    """The records behind files, their own included: record path → record."""
    found: dict[Path, dict] = {}
    queue = list(paths)
    while queue:
        file = queue.pop()
        place = record_path(file)
        if place in found:
            continue
        try:
            found[place] = read_record(file)
        except ProvenanceError:
            continue
        queue += [Path(item["path"]) for item in found[place]["inputs"]]
    return found


def jobs(plan: Plan, target: Target, costs: dict, device: str = "cpu") -> dict[Path, float | None]:
    """The predicted seconds of every job behind a target, by what it makes; None of what nobody measured."""
    if device not in costs:
        return {target.metrics: None}
    other = costs[device]["jobs"]
    found: dict[Path, float | None] = {target.metrics: other["metrics"]["seconds"]}
    found |= dict.fromkeys(target.outputs[:1], other["targets"]["seconds"])
    users = [(cell, target.seeds) for _, cell in target.cells]
    for _, search in target.selections:
        users += [(cell, search.seeds) for _, cell in search.points]
    for dataset, order, seed in target.streams:
        found |= _prepared(plan, dataset, {stream_path(plan.scale, dataset, order, seed)}, other)
    for cell, seeds in users:
        streams = set()
        for path, block in zip(plan.results(cell), plan.blocks(cell)):
            if not set(block) & set(seeds):
                continue
            streams |= set(map(cell.stream, block))
            try:
                found[path] = predicted(plan, cell, len(block), costs, device)[0]
            except Unmeasured:
                found[path] = None
        found |= _prepared(plan, cell.spec["dataset"], streams, other)
    return found


def _prepared(plan: Plan, dataset: str, streams: Iterable[Path], other: dict) -> dict[Path, float]:
    """The jobs that make a data set and streams of it."""
    if TOY.match(dataset):
        return dict.fromkeys(streams, other["streams"]["seconds"])
    size = sizes(plan, dataset)
    made = other["datasets"]["seconds"] + other["datasets"]["per_byte"] * (size.train + size.test) * size.values
    per = other["streams"]["seconds"] + other["streams"]["per_item"] * size.train
    return dict.fromkeys(streams, per) | {Path(f"datasets/{dataset}"): made}


def table(plan: Plan, costs: dict | None = None) -> str:
    """A Markdown table of a plan's targets: the command that makes each, its runs, its cost measured and predicted.

    Measured is what the records of the jobs behind it say, where it is built; predicted are all of them, on one of
    the devices that config/costs.yaml names. In the last line shared jobs count once.
    """
    costs = read() if costs is None else costs
    whole: dict[str, dict[Path, float | None]] = {device: {} for device in DEVICES if device in costs}
    heads = ["target", "command", "runs", f"cost at `{plan.scale}`", *(f"predicted, {DEVICES[d]}" for d in whole)]
    lines = [f"| {' | '.join(heads)} |", "|---|---|---:|---:|" + "---:|" * len(whole)]
    every: set[Path] = set()
    for name, target in plan.targets.items():
        extra = target.spec.get("extra", False)  # not of `all`
        runs = [path for _, cell in target.cells for path in plan.results(cell, target.seeds)]
        runs += [path for _, search in target.selections for _, cell in search.points for path in plan.results(cell)]
        every |= set() if extra else set(runs)
        seconds = sum(record["wall_seconds"] for record in ancestry(target.outputs[0]).values())
        cost = duration(seconds) if seconds else "not built"
        shown = []
        for device, all_jobs in whole.items():
            mine = jobs(plan, target, costs, device)
            all_jobs |= {} if extra else mine
            shown.append(_shown(mine))
        lines.append(
            f"| {name} | `snakemake {target.outputs[0]} --cores` | {len(runs)} | {cost} | {' | '.join(shown)} |"
        )
    shown = [_shown(all_jobs) for all_jobs in whole.values()]
    lines.append(f"| all, shared runs once | `snakemake all --cores` | {len(every)} |  | {' | '.join(shown)} |")
    return "\n".join(lines)


def _shown(seconds: dict[Path, float | None]) -> str:
    return NOT_MEASURED if None in seconds.values() else duration(sum(seconds.values()))


def duration(seconds: float) -> str:
    """`4.5 s`, `45 s`, `12 min`, `3.4 h`, `120 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    hours = seconds / 3600
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{hours:.1f} h" if hours < 100 else f"{hours:.0f} h"
