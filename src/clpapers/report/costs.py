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

from clpapers.config import CONFIG, TOY, Cell, Plan, Target, read_yaml
from clpapers.provenance import ProvenanceError, read_record, record_path
from clpapers.report import work
from clpapers.report.work import Sizes, Unit

FILE = CONFIG / "costs.yaml"
NOT_MEASURED = "not measured"
# What changes no pass and no step: runs that differ in these alone cost the same.
FREE = {"budget": ("learning_rate",), "learner": ("strength", "prior_weight", "margin", "alpha", "beta", "damping")}


class Unmeasured(KeyError):
    """A learner, a net or a device that the benchmark has not measured; the text says which."""

    def __str__(self) -> str:
        return self.args[0]


# --- the model ------------------------------------------------------------------------------------------------


def read(path: Path = FILE) -> dict:
    """The measured costs, by device: `{"cpu": …, "cuda": …}`; a device that nobody measured is not there."""
    return read_yaml(path) if path.is_file() else {}


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
    stand_in = plan.settings.get("stand_ins", {}).get(dataset)
    if plan.settings["sources"] == "stand_in" and stand_in:
        train, test = (stand_in[f"{split}_per_class"] * classes for split in ("train", "test"))
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
    return seconds, seeds * seconds_of(length, measured["bytes"])


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
    """The sum of amounts by their coefficients; a term that the benchmark found to cost nothing has a 0."""
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
