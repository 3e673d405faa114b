"""The graph of jobs: outputs, inputs, code and settings of each. The rules, the commands and the audit ask it."""

import dataclasses
import functools
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, TypeVar

from clpapers.cache import load_or_make
from clpapers.config import gans
from clpapers.config.gans import Gans
from clpapers.config.model import Cell, Selection, Target, digest
from clpapers.config.paths import RESULTS, block_seeds, dataset_path, stream_path
from clpapers.config.plan import Plan
from clpapers.config.reductions import reductions
from clpapers.config.refusals import ConfigError, names
from clpapers.config.targets import paper_file
from clpapers.evidence.claim import Claim
from clpapers.evidence.conditions import sentence
from clpapers.graph import claims as claim_grammar
from clpapers.graph import pages
from clpapers.metrics.inputs import files_beside
from clpapers.provenance import code_digest, is_imported, record_path, sha256

TABLE = (".csv", ".md", ".tex", ".html")  # the formats of a table
Value = TypeVar("Value")


@dataclass
class Job:
    """One job. The kinds of jobs below it have what their commands ask for, too.

    - command: its name at the command line.
    - module: cli/<module>.py, whose function `command` is the code that makes the outputs.
    - outputs: files.
    - inputs: files that it reads.
    - decisive: all else in the configuration that decides the outputs.
    - modules: further code that makes them, which the configuration names; a method from outside by its path.
    - depends_on_choice: whether it also depends on the runs, or methods from outside, that the build uses.
    """

    command: str
    module: str
    outputs: list[Path]
    inputs: list[Path]
    decisive: object
    _: KW_ONLY
    modules: tuple[str, ...] = ()
    depends_on_choice: bool = False

    @property
    def stage(self) -> str:
        """The stage, as the record names it."""
        return "features" if self.command == "features" else self.outputs[0].parts[2]

    @property
    def subject(self) -> Any:
        """The argument of a training, which also travels in a bundle."""
        raise NotImplementedError

    @property
    def code(self) -> str:
        """The digest of the code that makes the outputs from the inputs."""
        return code_digest(*self.sources)

    @property
    def sources(self) -> list[str]:
        """This code, as `code_digest` takes it."""
        named = (name if name.endswith(".py") else f"clpapers.{name}" for name in self.modules)
        return [f"clpapers.cli.{self.module}:{self.command}", *named]

    @functools.cached_property
    def settings(self) -> str:
        """The digest of all that is decisive; a param of the rule, unless the path decides all."""
        return digest(self.decisive)


@dataclass
class DataJob(Job):
    """A data set, its features or weights. facts: the entry in config/."""

    name: str
    facts: dict


@dataclass
class StreamJob(Job):
    """One seed's stream."""

    dataset: str
    order: dict
    seed: int


@dataclass
class EntropyJob(Job):
    """So many simulations of stf's appendix E."""

    simulations: int


@dataclass
class GansJob(Job):
    """The GANs, along one seed's stream, that runs share."""

    shared: Gans
    seed: int

    @property
    def subject(self) -> tuple[Gans, int]:
        return self.shared, self.seed


@dataclass
class RunJob(Job):
    """Seeds of a cell, the files of the selection that sets some of its values, and the GANs that it shares, if any."""

    cell: Cell
    seeds: range
    selections: list[Path]
    shared: Gans | None

    @property
    def subject(self) -> tuple[Cell, range, list[Path], Gans | None]:
        return self.cell, self.seeds, self.selections, self.shared


@dataclass
class NetJob(Job):
    """The description of a net, which has so many outputs."""

    dataset: str
    net: dict
    classes: int


@dataclass
class SelectionJob(Job):
    """A choice of hyper-parameters."""

    search: Selection


@dataclass
class TargetJob(Job):
    """A target's metrics, its rendering or its comparison."""

    target: Target


@dataclass
class ClaimsJob(Job):
    """A paper's claims, with the targets whose metrics decide them."""

    claims: list[Claim]
    targets: list[Target]


@dataclass
class PapersJob(Job):
    """The scorecard or the report of some papers."""

    papers: list[str]


def job_of(plan: Plan, path: Path, papers: Collection[str] | None = None) -> Job:
    """The job that makes `path`, results/<scale>/<stage>/…, or a record.

    papers: the papers of a scorecard or report; all of the plan's if None.

    Raises `ConfigError`, with the names to choose from, where no job of the plan makes it.
    """
    for paper in papers or ():
        if paper not in plan.titles:
            raise ConfigError(f"papers: {paper!r} is not one of {', '.join(plan.titles)}")
    maker = MAKERS.get(path.parts[2]) if len(path.parts) > 3 else None
    job = maker(plan, path, plan.titles if papers is None else papers) if maker else None
    if job is None or (path not in job.outputs and path != record_path(job.outputs[0])):
        outputs = f"; there are: {', '.join(each.name for each in job.outputs)}" if job else ""
        raise ConfigError(f"{path}: no job of config/ makes it{outputs}")
    return job


def ancestors(
    plan: Plan, targets: Iterable[Target], plan_of: Callable[[Path], Plan | None] = lambda record: None
) -> dict[Path, Job]:
    """All jobs that targets descend from, their own included, by the paths of their records.

    plan_of: returns the plan, with its runs and methods, by which a record's job was done. Where the record does not
    say, it returns None; then the plan of a job that read the file holds, or `plan`.
    """
    jobs: dict[Path, Job] = {}
    queue = [(path, plan) for target in targets for path in target.outputs]
    while queue:
        path, reader_plan = queue.pop()
        record = record_path(path)
        if record not in jobs and record.parts[0] != "config" and not is_imported(record):
            own_plan = plan_of(record) or reader_plan
            jobs[record] = job_of(own_plan, record)
            queue += [(file, own_plan) for file in jobs[record].inputs]
    return jobs


def _name(path: Path) -> str:
    return record_path(path).name.removesuffix(".record.json")


def _path(plan: Plan, *parts: str) -> Path:
    return RESULTS.joinpath(plan.scale, *parts)


def _lookup(path: Path, kind: str, name: str, available: Mapping[str, Value]) -> Value:
    """The value of `name`; raises `ConfigError`, with the names to choose from, for one that is not available."""
    if name not in available:
        choices = names(available, name) or "none"
        raise ConfigError(f"{path}: no {kind} {name!r} in what config/ asks for; there are: {choices}")
    return available[name]


# --- by stage ------------------------------------------------------------------------------------------------


def _dataset(plan: Plan, path: Path, _: object) -> Job:
    name, facts = _name(path), _lookup(path, "data set", _name(path), plan.datasets)
    files = [path.with_name(f"{name}.npz")]
    if features := facts.get("features"):
        read = [dataset_path(plan.scale, features["of"]), _path(plan, "weights", f"{features['weights']}.npz")]
        return DataJob("features", "datasets", files, read, repr(facts), name, facts)
    sizes, partial = plan.settings.get("stand_ins", {}).get(name), plan.settings.get("partial_data", False)
    of_content = {key: value for key, value in facts.items() if key != "class_sizes"}
    decisive = of_content, plan.settings["sources"], sizes, partial
    return DataJob("dataset", "datasets", files, [], repr(decisive), name, facts)


def _weights(plan: Plan, path: Path, _: object) -> Job:
    name, facts = _name(path), _lookup(path, "weights", _name(path), plan.weights)
    decisive = repr((facts, plan.settings["sources"]))
    return DataJob("weights", "datasets", [path.with_name(f"{name}.npz")], [], decisive, name, facts)


def _stream(plan: Plan, path: Path, _: object) -> Job:
    name, files = _name(path), [path.with_name(f"{_name(path)}.npz")]
    if path.parts[3] == "entropy":
        simulated = {k: t.spec["simulations"] for k, t in plan.targets.items() if "simulations" in t.spec}
        count = _lookup(path, "target of simulations", name.replace("-", "/", 1), simulated)
        return EntropyJob("entropy", "streams", files, [], count, count)
    dataset, seed = path.parts[3], block_seeds(name)[0]
    orders = {"/".join(key): order for key, order in plan.orders.items()}
    order = _lookup(path, "order", f"{dataset}/{path.parent.name}", orders)
    read, decisive = plan.drawn_from(dataset), list[object]([dataset, order, name])
    if not read and dataset in plan.datasets:
        decisive += [plan.class_sizes(dataset), plan.datasets[dataset]["sha256"]["train"]]
    return StreamJob("stream", "streams", files, read, decisive, dataset, order, seed)


def _gans(plan: Plan, path: Path, _: object) -> Job:
    shared = _lookup(path, "GANs", str(path.parent), {str(each.folder): each for each in gans.shared(plan).values()})
    (seed,) = block_seeds(_name(path))
    read = [dataset_path(plan.scale, shared.dataset), shared.stream(seed)]
    net = (f"runs.nets.{shared.spec['gan']['name']}",)
    facts, own = (shared.decisive, shared, seed), bool(plan.methods)
    return GansJob("gans", "gans", [shared.file(seed)], read, *facts, modules=net, depends_on_choice=own)


def _run(plan: Plan, path: Path, _: object) -> Job:
    name = _name(path)
    if len(path.parts) == 4:
        choice = plan.choice.digest if plan.choice else None
        decisive = [plan.digest, choice, *(str(cell.folder) for cell in plan.cells.values())]
        return Job("index", "runs", [path.with_name("index.csv")], [], decisive, depends_on_choice=True)
    if path.parts[3] == "nets":
        key, dataset = f"{path.parent.name}/{name}", name.partition("-")[0]
        net, classes = _lookup(path, "net", key, plan.nets), plan.outputs[key]
        files, code = [plan.net_file(*key.split("/"))], (f"runs.nets.{net['name']}",)
        return NetJob("net", "runs", files, [], repr((net, classes)), dataset, net, classes, modules=code)
    cell = plan.cells.get(path.parent.name.rpartition("-")[2])
    if cell is None:
        index = _path(plan, "runs", "index.csv")
        raise ConfigError(f"{path}: no cell {path.parent.name!r} in what config/ asks for; {index} lists them")
    seeds, shared, spec = block_seeds(name), gans.of_cell(plan, cell), cell.spec
    selections = [plan.selections[spec["selection"]["name"]].file] if "selection" in spec else []
    read = [
        cell.dataset,
        *map(cell.stream, seeds),
        *selections,
        *([cell.weights] if cell.weights else []),
        *([cell.method] if cell.method and RESULTS in cell.method.parents else []),  # a paper's has no job
        *(map(shared.file, seeds) if shared else ()),
    ]
    modules = str(cell.method or f"runs.learners.{spec['learner']['name']}"), f"runs.nets.{spec['net']['name']}"
    facts, files = (cell, seeds, selections, shared), [cell.folder / f"{name}.json"]
    outside = cell.method is not None
    return RunJob("train", "runs", files, read, [spec, name], *facts, modules=modules, depends_on_choice=outside)


def _method(plan: Plan, path: Path, _: object) -> Job:
    return Job("method", "methods", [path.with_name(f"{_name(path)}.py")], [], None)  # the path decides the content


def _selection(plan: Plan, path: Path, _: object) -> Job:
    search = _lookup(path, "selection", f"{path.parent.name}/{_name(path)}", plan.selections)
    read = [*dict.fromkeys(file for _, cell in search.points for file in plan.results(cell, search.seeds))]
    decisive = repr((search.spec, search.published))
    return SelectionJob("selection", "runs", [search.file], read, decisive, search, depends_on_choice=True)


def _target(plan: Plan, path: Path) -> Target:
    paper, name = path.parent.name, path.name.split(".")[0]
    of_paper = {key: target for key, target in plan.targets.items() if target.paper == paper}
    return _lookup(path, "target", f"{paper}/{name}", of_paper or plan.targets)


def _metrics(plan: Plan, path: Path, _: object) -> Job:
    target = plan.present(_target(plan, path))
    read, modules = _measured(plan, target), (f"metrics.{target.spec['measure']}",)
    decisive: object = target.measured_digest
    if plan.choice is not None:
        files = [plan.results(cell, target.seeds) for _, cell in target.cells]
        decisive = [decisive, [{str(path): seeds for path, seeds in of_cell.items()} for of_cell in files]]
    of_job = [target.metrics], read, decisive, target
    return TargetJob("metrics", "metrics", *of_job, modules=modules, depends_on_choice=True)


def _measured(plan: Plan, target: Target) -> list[Path]:
    """The files that a target's metrics are computed from, in the order in which `metrics.inputs` reads them."""
    if target.cells:
        runs = ((factors, path) for factors, cell in target.cells for path in plan.results(cell, target.seeds))
        files = (f for factors, path in runs for f in (path, *files_beside(plan, target, factors, path)))
        return [*dict.fromkeys(files)]
    if target.selections:
        return [search.file for _, search in target.selections]
    if target.streams:
        sets = dict.fromkeys(file for dataset, *_ in target.streams for file in plan.drawn_from(dataset))
        return [*(stream_path(plan.scale, *where) for where in target.streams), *sets]
    if "nets" in target.spec:
        return [plan.net_file(target.paper, name) for name in target.spec["nets"]]
    if "simulations" in target.spec:
        return [_path(plan, "streams", "entropy", f"{target.paper}-{target.name}.npz")]
    whole = plan.targets[f"{target.paper}/{target.name}"]
    if whole.cells or whole.selections or whole.streams:  # the build has nothing of it
        return []
    raise ConfigError(f"{paper_file(target.paper)}: targets.{target.name}: needs a grid, streams, nets or simulations")


def _rendering(plan: Plan, path: Path, papers: Collection[str]) -> Job:
    if len(path.parts) == 4:
        return _scorecard(plan, path, papers)
    if path.name.split(".")[0] == "claims":
        return _claims(plan, path)
    target = _target(plan, path)
    kind = _name(path).removeprefix(target.name)
    files = [file for file in plan.rendered(target) if _name(file) == target.name + kind]
    if not files:
        raise ConfigError(f"{path}: no job of config/ makes it")
    read = [target.metrics, *([target.reported] if target.reported and kind != ".paired" else [])]
    modules = () if kind or target.note in files else (f"targets.{target.spec['render']}",)
    command = kind.removeprefix(".") or ("note" if target.note in files else target.spec["kind"])
    # the line of conditions depends on declarations of methods, which are no code
    conditions = [] if kind else [sentence(target, plan.datasets)]
    decisive = [target.digest, reduced(plan, target), *conditions, *_left_out(plan, target)]
    return TargetJob(command, "targets", files, read, decisive, target, modules=modules, depends_on_choice=True)


def _left_out(plan: Plan, target: Target) -> list:
    """The runs that a build leaves out, as footnotes list them."""
    return [] if plan.choice is None else [dataclasses.asdict(plan.unrun(target))]


def _claims(plan: Plan, path: Path) -> Job:
    claims = _lookup(path, "claims of", path.parent.name, claims_of(plan))
    targets = claimed_targets(plan, claims)
    decisive = [
        [[claim.name, claim.spec, repr(claim.parts)] for claim in claims],
        [[each.digest, reduced(plan, each), *_left_out(plan, each)] for each in targets],
    ]
    files, read = [path.with_name(f"claims{suffix}") for suffix in TABLE], [each.metrics for each in targets]
    return ClaimsJob("claims", "claims", files, read, decisive, claims, targets, depends_on_choice=True)


def _scorecard(plan: Plan, path: Path, papers: Collection[str]) -> Job:
    claiming = claim_grammar.claiming(papers)
    files = [path.with_name(f"scorecard{suffix}") for suffix in TABLE]
    read = [path.with_name(paper) / "claims.csv" for paper in claiming]
    return PapersJob("scorecard", "claims", files, read, claiming, claiming)


def _report(plan: Plan, path: Path, papers: Collection[str]) -> Job:
    left_out = [each for target in pages.targets_of(plan, papers) for each in _left_out(plan, target)]
    written = (*pages.THEME.rglob("*.*"), *pages.written())
    decisive = [list(papers), *left_out, [sha256(file) for file in sorted(written) if file.suffix != ".pyc"]]
    of_job = pages.outputs(plan), pages.inputs(plan, papers), decisive, list(papers)
    return PapersJob("report", "report", *of_job, depends_on_choice=True)


MAKERS = {
    "datasets": _dataset,
    "weights": _weights,
    "streams": _stream,
    "gans": _gans,
    "runs": _run,
    "selection": _selection,
    "methods": _method,
    "metrics": _metrics,
    "targets": _rendering,
    "report": _report,
}


# --- reductions and claims -----------------------------------------------------------------------------------


def reduced(plan: Plan, target: Target) -> list[str]:
    """The departures of a plan's target from the paper's scale, a line each."""
    whole = plan.targets if plan.scale == "paper" else _at_paper_scale(target.paper)
    return reductions(target.of_paper, whole[f"{target.paper}/{target.name}"].of_paper)


@functools.cache
def _at_paper_scale(paper: str) -> dict[str, Target]:
    return Plan.load("paper", [paper]).targets


@functools.lru_cache(maxsize=1)  # a plan's claims are requested once a paper
def claims_of(plan: Plan) -> dict[str, list[Claim]]:
    """The claims of each paper that has any, checked against the plan's targets."""
    if plan.state:
        return load_or_make(f"claims of {plan.scale}: {list(plan.titles)}", plan.state, lambda: _read_claims(plan))
    return _read_claims(plan)


def _read_claims(plan: Plan) -> dict[str, list[Claim]]:
    papers = claim_grammar.claiming(plan.titles)
    if plan.scale == "paper":
        return claim_grammar.read(plan, plan.targets)
    originals = {name: target for paper in papers for name, target in _at_paper_scale(paper).items()}
    return claim_grammar.read(plan, originals)


def claimed_targets(plan: Plan, claims: list[Claim]) -> list[Target]:
    """The targets whose metrics decide a paper's claims."""
    return [plan.targets[name] for name in dict.fromkeys(name for claim in claims for name in claim.targets)]
