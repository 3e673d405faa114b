"""The graph of jobs: outputs, inputs, code and settings of each. The rules, the commands and the audit ask it."""

import dataclasses
import functools
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from clpapers.config import gans
from clpapers.config.model import Target, digest
from clpapers.config.paths import RESULTS, block_seeds, dataset_path, stream_path
from clpapers.config.plan import Plan
from clpapers.config.reductions import reductions
from clpapers.config.refusals import ConfigError, names
from clpapers.config.targets import paper_file
from clpapers.evidence.claim import Claim
from clpapers.evidence.desiderata import sentence
from clpapers.graph import claims as claim_grammar
from clpapers.graph import pages
from clpapers.metrics.inputs import files_beside
from clpapers.provenance import code_digest, is_imported, record_path, sha256

TABLE = (".csv", ".md", ".tex", ".html")  # the formats of a table
Subject = TypeVar("Subject")
Value = TypeVar("Value")


@dataclass(frozen=True)
class Job(Generic[Subject]):
    """One job. Many are planned and few examined, so that inputs and settings are computed on demand.

    - command: its name at the command line.
    - module: cli/<module>.py, whose function `command` is the code that makes the outputs.
    - outputs: files.
    - subject: the command's own argument, as its docstring says.
    - find: returns the files that it reads.
    - decide: returns all else in the configuration that decides the outputs.
    - modules: further code that makes them, imported by a name in `subject`. For a method from outside: its path.
    - depends_on_choice: whether it also depends on the runs, or methods from outside, that the build uses.
    """

    command: str
    module: str
    outputs: list[Path]
    subject: Subject
    find: Callable[[], Iterable[Path]]
    decide: Callable[[], object]
    modules: tuple[str, ...] = ()
    depends_on_choice: bool = False

    @property
    def stage(self) -> str:
        """The stage, as the record names it."""
        return "features" if self.command == "features" else self.outputs[0].parts[2]

    @functools.cached_property
    def inputs(self) -> list[Path]:
        """The files that it reads."""
        return list(self.find())

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
        """The digest of the value of `decide`; a param of the rule, unless the path decides all."""
        return digest(self.decide())


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
    if "features" in facts:
        features = facts["features"]
        images = dataset_path(plan.scale, features["of"])
        weights = _path(plan, "weights", f"{features['weights']}.npz")
        return Job("features", "datasets", files, (name, facts), lambda: [images, weights], lambda: repr(facts))
    sizes, partial = plan.settings.get("stand_ins", {}).get(name), plan.settings.get("partial_data", False)
    of_content = {key: value for key, value in facts.items() if key != "class_sizes"}
    decisive = of_content, plan.settings["sources"], sizes, partial
    return Job("dataset", "datasets", files, (name, facts), list, lambda: repr(decisive))


def _weights(plan: Plan, path: Path, _: object) -> Job:
    name, facts = _name(path), _lookup(path, "weights", _name(path), plan.weights)
    files = [path.with_name(f"{name}.npz")]
    return Job("weights", "datasets", files, (name, facts), list, lambda: repr((facts, plan.settings["sources"])))


def _stream(plan: Plan, path: Path, _: object) -> Job:
    name, files = _name(path), [path.with_name(f"{_name(path)}.npz")]
    if path.parts[3] == "entropy":
        simulated = {k: t.spec["simulations"] for k, t in plan.targets.items() if "simulations" in t.spec}
        count = _lookup(path, "target of simulations", name.replace("-", "/", 1), simulated)
        return Job("entropy", "streams", files, count, list, lambda: count)
    dataset, seed = path.parts[3], block_seeds(name)[0]
    orders = {"/".join(key): order for key, order in plan.orders.items()}
    order = _lookup(path, "order", f"{dataset}/{path.parent.name}", orders)
    read = plan.drawn_from(dataset)
    decisive: list[object] = [dataset, order, name]
    if not read and dataset in plan.datasets:
        decisive += [plan.class_sizes(dataset), plan.datasets[dataset]["sha256"]["train"]]
    return Job("stream", "streams", files, (dataset, order, seed), lambda: read, lambda: decisive)


def _gans(plan: Plan, path: Path, _: object) -> Job:
    shared = _lookup(path, "GANs", str(path.parent), {str(each.folder): each for each in gans.shared(plan).values()})
    (seed,) = block_seeds(_name(path))
    read = [dataset_path(plan.scale, shared.dataset), shared.stream(seed)]
    modules = (f"runs.nets.{shared.spec['gan']['name']}",)
    return Job("gans", "gans", [shared.file(seed)], (shared, seed), lambda: read, lambda: shared.decisive, modules)


def _run(plan: Plan, path: Path, _: object) -> Job:
    name = _name(path)
    if len(path.parts) == 4:
        folders = (str(cell.folder) for cell in plan.cells.values())
        choice = plan.choice.digest if plan.choice else None
        decisive = [plan.digest, choice, *folders]
        return Job("index", "runs", [path.with_name("index.csv")], None, list, lambda: decisive, depends_on_choice=True)
    if path.parts[3] == "nets":
        key, dataset = f"{path.parent.name}/{name}", name.partition("-")[0]
        net, outputs = _lookup(path, "net", key, plan.nets), plan.outputs[key]
        file, net_code = plan.net_file(*key.split("/")), (f"runs.nets.{net['name']}",)
        return Job("net", "runs", [file], (dataset, net, outputs), list, lambda: repr((net, outputs)), net_code)
    cell = plan.cells.get(path.parent.name.rpartition("-")[2])
    if cell is None:
        index = _path(plan, "runs", "index.csv")
        raise ConfigError(f"{path}: no cell {path.parent.name!r} in what config/ asks for; {index} lists them")
    seeds, shared = block_seeds(name), gans.of_cell(plan, cell)
    selections = [plan.selections[cell.spec["selection"]["name"]].file] if "selection" in cell.spec else []

    def read() -> list[Path]:
        return [
            cell.dataset,
            *map(cell.stream, seeds),
            *selections,
            *([cell.weights] if cell.weights else []),
            *([cell.method] if cell.method and RESULTS in cell.method.parents else []),  # a paper's has no job
            *(map(shared.file, seeds) if shared else ()),
        ]

    learner = str(cell.method or f"runs.learners.{cell.spec['learner']['name']}")
    return Job(
        "train",
        "runs",
        [cell.folder / f"{name}.json"],
        (cell, seeds, selections, shared),
        read,
        lambda: [cell.spec, name],
        modules=(learner, f"runs.nets.{cell.spec['net']['name']}"),
        depends_on_choice=cell.method is not None,
    )


def _method(plan: Plan, path: Path, _: object) -> Job:
    copy = path.with_name(f"{_name(path)}.py")
    return Job("method", "methods", [copy], copy, list, lambda: None)  # the path determines the content


def _selection(plan: Plan, path: Path, _: object) -> Job:
    search = _lookup(path, "selection", f"{path.parent.name}/{_name(path)}", plan.selections)

    def read() -> Iterable[Path]:
        return dict.fromkeys(file for _, cell in search.points for file in plan.results(cell, search.seeds))

    def decide() -> str:
        return repr((search.spec, search.published))

    return Job("selection", "runs", [search.file], search, read, decide, depends_on_choice=True)


def _target(plan: Plan, path: Path) -> Target:
    paper, name = path.parent.name, path.name.split(".")[0]
    of_paper = {key: target for key, target in plan.targets.items() if target.paper == paper}
    return _lookup(path, "target", f"{paper}/{name}", of_paper or plan.targets)


def _metrics(plan: Plan, path: Path, _: object) -> Job:
    target = plan.present(_target(plan, path))
    read, modules = functools.partial(_measured, plan, target), (f"metrics.{target.spec['measure']}",)

    def decide() -> object:
        if plan.choice is None:
            return target.measured_digest
        runs = [{str(k): v for k, v in plan.results(cell, target.seeds).items()} for _, cell in target.cells]
        return [target.measured_digest, runs]

    return Job("metrics", "metrics", [target.metrics], target, read, decide, modules, depends_on_choice=True)


def _measured(plan: Plan, target: Target) -> Iterable[Path]:
    """The files that a target's metrics are computed from, in the order in which `metrics.inputs` reads them."""
    if target.cells:
        runs = ((factors, path) for factors, cell in target.cells for path in plan.results(cell, target.seeds))
        return dict.fromkeys(f for factors, path in runs for f in (path, *files_beside(plan, target, factors, path)))
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

    def decide() -> list:  # with the line of desiderata: it depends on declarations of methods, which are no code
        desiderata = [] if kind else [sentence(target, plan.datasets)]
        return [target.digest, reduced(plan, target), *desiderata, *_left_out(plan, target)]

    return Job(command, "targets", files, target, lambda: read, decide, modules, depends_on_choice=True)


def _left_out(plan: Plan, target: Target) -> list:
    """The runs that a build leaves out, as footnotes list them."""
    return [] if plan.choice is None else [dataclasses.asdict(plan.unrun(target))]


def _claims(plan: Plan, path: Path) -> Job:
    claims = _lookup(path, "claims of", path.parent.name, claims_of(plan))
    targets = claimed_targets(plan, claims)

    def decide() -> list:
        return [
            [[claim.name, claim.spec, repr(claim.parts)] for claim in claims],
            [[each.digest, reduced(plan, each), *_left_out(plan, each)] for each in targets],
        ]

    files = [path.with_name(f"claims{suffix}") for suffix in TABLE]
    read = [each.metrics for each in targets]
    return Job("claims", "claims", files, (claims, targets), lambda: read, decide, depends_on_choice=True)


def _scorecard(plan: Plan, path: Path, papers: Collection[str]) -> Job:
    claiming = claim_grammar.claiming(papers)
    files = [path.with_name(f"scorecard{suffix}") for suffix in TABLE]
    read = [path.with_name(paper) / "claims.csv" for paper in claiming]
    return Job("scorecard", "claims", files, claiming, lambda: read, lambda: claiming)


def _report(plan: Plan, path: Path, papers: Collection[str]) -> Job:
    def decide() -> list:
        left_out = [each for target in pages.targets_of(plan, papers) for each in _left_out(plan, target)]
        written = (*pages.THEME.rglob("*.*"), *pages.written())
        return [list(papers), *left_out, [sha256(file) for file in sorted(written) if file.suffix != ".pyc"]]

    files, read = pages.outputs(plan), functools.partial(pages.inputs, plan, papers)
    return Job("report", "report", files, papers, read, decide, depends_on_choice=True)


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
    return Plan("paper", [paper]).targets


@functools.lru_cache(maxsize=1)  # a plan's claims are requested once a paper
def claims_of(plan: Plan) -> dict[str, list[Claim]]:
    """The claims of each paper that has any, checked against the plan's targets."""
    papers = claim_grammar.claiming(plan.titles)
    if plan.scale == "paper":
        return claim_grammar.read(plan, plan.targets)
    originals = {name: target for paper in papers for name, target in _at_paper_scale(paper).items()}
    return claim_grammar.read(plan, originals)


def claimed_targets(plan: Plan, claims: list[Claim]) -> list[Target]:
    """The targets whose metrics decide a paper's claims."""
    return [plan.targets[name] for name in dict.fromkeys(name for claim in claims for name in claim.targets)]
