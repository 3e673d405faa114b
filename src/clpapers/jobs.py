"""What each job of the pipeline makes, of what and by which code: what commands record, and what the audit expects."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from clpapers import claims as claim_grammar
from clpapers.claims import Claim
from clpapers.config import (
    TOY,
    Cell,
    ConfigError,
    Plan,
    Selection,
    Target,
    block_seeds,
    dataset_path,
    read_yaml,
    reductions,
)
from clpapers.desiderata import line
from clpapers.metrics.inputs import inputs_of
from clpapers.provenance import PACKAGE, code_digest, read_record, record_path, sha256

SCORECARD_CODE = ("clpapers.targets.claims_table", "clpapers.targets.formats")
CLAIMS_CODE = ("clpapers.claims", "clpapers.targets.verdicts", *SCORECARD_CODE)


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
    return _job("metrics", [target.metrics], inputs_of(plan, target)[0], code, target.measured_digest)


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


# --- of what, and by which code ---------------------------------------------------------------------------------


def features_of(plan: Plan, dataset: str) -> tuple[Path, Path]:
    """The files of images and of weights that a data set of features is made of."""
    made = plan.datasets[dataset]["features"]
    return dataset_path(plan.scale, made["of"]), Path("results", plan.scale, "weights", f"{made['weights']}.npz")


def run_inputs(plan: Plan, cell: Cell, seeds: range) -> list[Path]:
    """The files that a run of those seeds reads: data, streams, and a selection and weights where it has any."""
    weights = [cell.weights] if cell.weights else []
    return [cell.dataset, *map(cell.stream, seeds), *selection_of(plan, cell), *weights]


def selection_of(plan: Plan, cell: Cell) -> list[Path]:
    """The file that some of a cell's values are read from, if any are."""
    return [plan.selections[cell.spec["selection"]["name"]].file] if "selection" in cell.spec else []


def searched_files(plan: Plan, search: Selection) -> list[Path]:
    """The results of a grid's points."""
    return list(dict.fromkeys(path for _, cell in search.points for path in plan.results(cell, search.seeds)))


def run_code(cell: dict) -> str:
    """The digest of the code that a cell's run depends on: its own learner, memory and net, not the others'."""
    return code_digest(
        "clpapers.runs.loop",
        f"clpapers.runs.learners.{cell['learner']['name']}",
        f"clpapers.runs.nets.{cell['net']['name']}",
    )


def net_code(spec: dict) -> str:
    """The digest of the code that builds and describes a net."""
    return code_digest("clpapers.runs.nets", f"clpapers.runs.nets.{spec['name']}")


def render_code(target: Target) -> str:
    """The digest of the code that draws a target."""
    writer = "figure" if target.spec["kind"] == "figure" else "formats"
    modules = [f"clpapers.targets.{target.spec['render']}", f"clpapers.targets.{writer}", "clpapers.desiderata"]
    return code_digest(*modules, *(["clpapers.targets.comparison"] if target.reported else []))


def report_code() -> str:
    """The digest of the code that makes the report, and of its templates."""
    templates = sorted((PACKAGE / "report" / "templates").iterdir())
    digests = [code_digest("clpapers.report.site"), *map(sha256, templates)]
    return hashlib.sha256(" ".join(digests).encode()).hexdigest()[:16]


def reduced(target: Target) -> list[str]:
    """How a target departs from the paper's scale, a line a difference."""
    return reductions(target, _at_paper_scale(target.paper)[f"{target.paper}/{target.name}"])


@functools.cache
def _at_paper_scale(paper: str) -> dict[str, Target]:
    return Plan("paper", [paper]).targets


def notes(plan: Plan, target: Target):
    """What a rendering must say of itself: scale, stand-ins and reductions behind its numbers; desiderata they meet."""
    from clpapers.targets.notes import Notes  # heavy, and rules import this module

    data = read_record(target.metrics).get("data", {})
    called = {name: "synthetic" if facts["standin"] else "part of the real data" for name, facts in data.items()}
    standins = {name: called[name] for name, facts in data.items() if facts["standin"] or facts["partial"]}
    cells = [cell for _, cell in (*target.cells, *(p for _, search in target.selections for p in search.points))]
    descends = [(cell.spec["dataset"], cell.weights.stem) for cell in cells if cell.weights]
    for name, facts in plan.datasets.items():
        if facts.get("features", {}).get("of") in data:
            descends.append((name, facts["features"]["weights"]))
            if facts["features"]["of"] in standins:
                standins[name] = standins[facts["features"]["of"]]
    for name in dict.fromkeys(name for name, weights in descends if weights in standins):
        standins[name] = ", ".join(filter(None, [standins.get(name), "random instead of trained weights"]))
    return Notes(plan.scale, standins, reduced(target), len(target.seeds), line(target, plan.datasets))


@functools.lru_cache(maxsize=1)  # a plan's claims are asked for once a paper
def claims_of(plan: Plan) -> dict[str, list[Claim]]:
    """The claims of each paper that has any, checked against the targets there are."""
    papers = [paper for paper in read_yaml(claim_grammar.FILE) if paper in plan.titles]
    originals = {name: target for paper in papers for name, target in _at_paper_scale(paper).items()}
    return claim_grammar.read(plan, originals)


def claimed_targets(plan: Plan, claims: list[Claim]) -> list[Target]:
    """The targets whose metrics decide a paper's claims."""
    return [plan.targets[name] for name in dict.fromkeys(name for claim in claims for name in claim.targets)]
