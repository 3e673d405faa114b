"""What each job of the pipeline makes, of what and by which code: what commands record, and what the audit expects."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from clpapers.cli import (
    CLAIMS_CODE,
    claimed_targets,
    claims_of,
    features_of,
    measured_files,
    net_code,
    reduced,
    render_code,
    run_code,
    run_inputs,
    searched_files,
)
from clpapers.config import TOY, ConfigError, Plan, Target, block_seeds
from clpapers.provenance import code_digest, record_path


@dataclass(frozen=True)
class Job:
    """One job.

    stage: as in its record. outputs, inputs: files. code: the digest of the code that makes the one of the other.
    settings: a digest of all else in the configuration that decides the outputs; the rule has it among its params.
    """

    stage: str
    outputs: list[Path]
    inputs: list[Path]
    code: str
    settings: str


def of(plan: Plan, path: Path) -> Job | None:
    """The job that makes `path`, results/<scale>/<stage>/…; None where none of the plan does."""
    makers = {
        "datasets": _dataset,
        "weights": _weights,
        "streams": _stream,
        "runs": _run,
        "selection": _selection,
        "metrics": _metrics,
        "targets": _rendering,
    }
    maker = makers.get(path.parts[2])
    made = maker(plan, path) if maker else None
    return made if made and path in (*made.outputs, record_path(made.outputs[0])) else None


def behind(plan: Plan, targets: Iterable[Target]) -> dict[Path, Job]:
    """All jobs that targets descend from, their own included, by the path of the record of each."""
    found: dict[Path, Job] = {}
    queue = [path for target in targets for path in target.outputs]
    while queue:
        place = record_path(queue.pop())
        job = None if place in found or place.parts[0] == "config" else of(plan, place)
        if job is not None:
            found[place] = job
            queue += job.inputs
    return found


def _job(stage: str, outputs: list[Path], inputs: Iterable[Path], code: str, settings: object) -> Job:
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]
    return Job(stage, outputs, list(inputs), code, digest)


def _name(path: Path) -> str:
    return path.stem.removesuffix(".record")


def _dataset(plan: Plan, path: Path) -> Job | None:
    name, files = _name(path), [path.with_name(f"{_name(path)}.npz")]
    if name not in plan.datasets:
        return None
    if "features" in plan.datasets[name]:
        code = code_digest("clpapers.datasets.features")
        return _job("features", files, features_of(plan, name), code, repr(plan.datasets[name]))
    return _job("datasets", files, [], code_digest("clpapers.datasets.build"), dataset_settings(plan, name))


def dataset_settings(plan: Plan, name: str) -> str:
    """What decides the bytes of a data set that is fetched."""
    sizes = plan.settings.get("stand_ins", {}).get(name)
    partial = plan.settings.get("partial_data", False)
    return repr((plan.datasets[name], plan.settings["sources"], sizes, partial))


def _weights(plan: Plan, path: Path) -> Job | None:
    name, files = _name(path), [path.with_name(f"{_name(path)}.npz")]
    if name not in plan.weights:
        return None
    return _job("weights", files, [], code_digest("clpapers.datasets.weights"), weights_settings(plan, name))


def weights_settings(plan: Plan, name: str) -> str:
    """What decides the bytes of pre-trained weights."""
    return repr((plan.weights[name], plan.settings["sources"]))


def _stream(plan: Plan, path: Path) -> Job | None:
    files = [path.with_name(f"{_name(path)}.npz")]
    if path.parts[3] == "entropy":
        target = plan.targets.get(_name(path).replace("-", "/", 1))
        if target is None or "simulations" not in target.spec:
            return None
        return _job("streams", files, [], code_digest("clpapers.streams.entropy"), target.spec["simulations"])
    dataset, slug = path.parts[3], path.parent.name
    if (dataset, slug) not in plan.orders:
        return None
    inputs = [] if TOY.match(dataset) else [Path(*path.parts[:2], "datasets", f"{dataset}.npz")]
    code = code_digest("clpapers.streams.orders", "clpapers.streams.stream")
    return _job("streams", files, inputs, code, [dataset, plan.orders[dataset, slug], _name(path)])


def _run(plan: Plan, path: Path) -> Job | None:
    files = [path.with_name(f"{_name(path)}.json")]
    if path.parts[3] == "nets":
        key = f"{path.parent.name}/{_name(path)}"
        if key not in plan.nets:
            return None
        net = plan.nets[key]
        return _job("runs", files, [], net_code(net), repr((net, plan.outputs[key])))
    if len(path.parts) == 4:
        return _job("runs", [path.with_name("index.csv")], [], code_digest("clpapers.config"), plan.digest)
    cell = plan.cells.get(path.parent.name.rpartition("-")[2])
    if cell is None:
        return None
    try:
        inputs = run_inputs(plan, cell, block_seeds(_name(path)))
    except ConfigError:
        return None
    return _job("runs", files, inputs, run_code(cell.spec), [cell.spec, _name(path)])


def _selection(plan: Plan, path: Path) -> Job | None:
    search = plan.selections.get(f"{path.parent.name}/{_name(path)}")
    if search is None:
        return None
    code, settings = code_digest("clpapers.metrics.selection"), repr((search.spec, search.published))
    return _job("selection", [search.file], searched_files(plan, search), code, settings)


def _target(plan: Plan, path: Path) -> Target | None:
    return plan.targets.get(f"{path.parent.name}/{path.name.split('.')[0]}")


def _metrics(plan: Plan, path: Path) -> Job | None:
    target = _target(plan, path)
    if target is None:
        return None
    code = code_digest(f"clpapers.metrics.{target.spec['measure']}")
    return _job("metrics", [target.metrics], measured_files(plan, target), code, target.measured_digest)


def _rendering(plan: Plan, path: Path) -> Job | None:
    if path.name.split(".")[0] == "claims":
        return _claims(plan, path)
    target = _target(plan, path)
    if target is None:
        return None
    kind = _name(path).removeprefix(target.name)
    files = [file for file in target.outputs if _name(file) == target.name + kind]
    inputs = [target.metrics, *([target.reported] if target.reported and kind != ".paired" else [])]
    if kind:
        module = {".reported": "comparison", ".paired": "paired"}.get(kind, "formats")
        code = code_digest(f"clpapers.targets.{module}", "clpapers.targets.formats")
    else:
        code = render_code(target)
    return _job("targets", files, inputs, code, [target.digest, reduced(target)]) if files else None


def _claims(plan: Plan, path: Path) -> Job | None:
    from clpapers.targets.formats import TABLE_SUFFIXES  # heavy, and rules import this module

    claims = claims_of(plan).get(path.parent.name)
    if claims is None:
        return None
    targets = claimed_targets(plan, claims)
    settings = [[claim.spec for claim in claims], [[each.digest, reduced(each)] for each in targets]]
    files, read = [path.with_name(f"claims{suffix}") for suffix in TABLE_SUFFIXES], [each.metrics for each in targets]
    return _job("targets", files, read, code_digest(*CLAIMS_CODE), settings)
