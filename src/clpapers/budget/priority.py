"""Chooses the runs of a build: finished runs, and within a budget of core-hours the runs that decide most.

A run is worth the printed numbers that it makes comparable and the claims that it decides. Within a budget a build with
methods from outside trains their runs alone, and those that their numbers are divided by; the first seed of a cell
counts most. `rank` puts all missing runs in one order for all budgets, and `cut` takes a prefix of it: a larger budget
trains all runs of a smaller one. No torch is imported.
"""

import contextlib
import dataclasses
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from clpapers.budget import card_costs, costs
from clpapers.catalogue.names import named, named_along, row_and_column
from clpapers.config import gans
from clpapers.config.model import Cell, Selection, Target
from clpapers.config.paths import RESULTS, block_name, block_seeds, dataset_path, neighbours
from clpapers.config.plan import Plan
from clpapers.config.refusals import ConfigError
from clpapers.config.reported import read_csv
from clpapers.config.selected_runs import SelectedRuns
from clpapers.evidence.claim import CURVE, Claim
from clpapers.evidence.forecast import Key, gain, read_trained
from clpapers.graph import jobs
from clpapers.graph.pages import targets_of
from clpapers.metrics.factors import flat
from clpapers.provenance import ProvenanceError, read_record
from clpapers.runs.resumable import share_done

NUMBER, CLAIM, SHOWN, OWN, OTHER = "number", "claim", "shown", "own", "other"
WORTH_SHOWN = 0.02  # a cell that a target shows without a printed number
MORE_SEEDS = (2, 3, 5, 10, 20)  # runs a cell; the k-th narrows a comparison
WORTH_MORE = 0.1  # as a share of the first seed's worth, divided by k, where no build has compared yet
WORTH_DECIDED = 0.01  # the same, of a number that is decided
GROWTH = 0.5  # a step takes at most this share of the time of all steps before it
LEAST_PRICE = 0.0001  # core-hours of a target that lacks runs: a price of 0 says that their data are not at hand

Run = tuple[str, int]  # a cell's hash, a seed
Files = Mapping[str, Mapping[Path, Collection[int]]]  # by a cell's hash, result files with the seeds to read from each


@dataclasses.dataclass(frozen=True)
class Need:
    """A number of a cell's seeds."""

    cell: str
    count: int
    seeds: tuple[int, ...]

    def missing(self, finished: Collection[Run]) -> list[Run]:
        """The first seeds yet to be trained."""
        lacking = [run for seed in self.seeds if (run := (self.cell, seed)) not in finished]
        count = self.count - (len(self.seeds) - len(lacking))
        return lacking[: max(count, 0)]


@dataclasses.dataclass(frozen=True)
class Question:
    """A question that runs decide: a printed number, a claim, a cell that a figure shows, a method from outside.

    worth: in printed numbers.
    """

    paper: str
    name: str
    kind: str
    worth: float
    needs: tuple[Need, ...]

    def missing(self, finished: Collection[Run]) -> tuple[Run, ...]:
        """The runs that it waits for, sorted."""
        return tuple(sorted({run for need in self.needs for run in need.missing(finished)}))


# --- the questions -------------------------------------------------------------------------------------------


def questions(plan: Plan, targets: Collection[Target], claims: Mapping[str, Iterable[Claim]]) -> list[Question]:
    """The printed numbers of some targets, the claims that these decide by themselves, and every cell they show.

    claims: by paper.
    """
    questions: list[Question] = []
    printed: dict[str, list[dict[str, str]]] = {}
    for target in targets:
        name = f"{target.paper}/{target.name}"
        if target.reported:
            numbers = printed.setdefault(target.paper, list(read_csv(target.reported).values()))
            of_target = [number for number in numbers if number["target"] == target.name]
            questions += _numbers(target, of_target, _compared(target))
        for _, cell in target.cells:
            questions.append(Question(target.paper, name, SHOWN, WORTH_SHOWN, (_need(cell.hash, 1, target.seeds),)))
    names = {f"{target.paper}/{target.name}" for target in targets}
    all_claims = itertools.chain.from_iterable(claims.values())
    decidable = (claim for claim in all_claims if claim.decidable and names.issuperset(claim.targets))
    return questions + [_claim(plan, claim) for claim in decidable]


def questions_of_own(plan: Plan, targets: Iterable[Target]) -> Iterator[Question]:
    """Every seed of a method from outside that some targets show, with the ideal's that it is divided by.

    The first counts most.
    """
    for target in targets:
        if not (own := target.spec.get("own")):
            continue
        name = f"{target.paper}/{target.name}"
        for factors, cell in target.cells:
            if factors["learner"] in own:
                of_selections = tuple(_of_selections(selections_of(plan, cell)))
                for count in range(1, len(target.seeds) + 1):
                    divisors = [_need(each.hash, count, target.seeds[:count]) for each in target.divisors(factors)]
                    needs = (_need(cell.hash, count, target.seeds), *divisors, *of_selections)
                    yield Question(target.paper, name, OWN, 1 / count, needs)
        for factors, search in target.selections:
            if factors["learner"] in own:
                yield Question(target.paper, name, OWN, 1, tuple(_of_selections([search])))


def selections_of(plan: Plan, cell: Cell) -> list[Selection]:
    """The search that sets some of a cell's values, if any."""
    return [plan.selections[cell.spec["selection"]["name"]]] if "selection" in cell.spec else []


def _need(cell: str, count: int, seeds: Iterable[int]) -> Need:
    seeds = tuple(seeds)
    return Need(cell, min(count, len(seeds)), seeds)


def _numbers(
    target: Target, numbers: list[dict[str, str]], compared: Mapping[Key, Mapping[str, float]]
) -> Iterator[Question]:
    """The numbers that a paper prints in a target, except times, which other hardware took.

    compared: those that the last build compared, as from `read_trained`.
    """
    for number in numbers:
        printed = number["spread_kind"] != "formula" and (number["value"] or number.get("authors"))
        if not printed or number["metric"] in gans.TIMED:
            continue
        parts = [f"{target.paper}/{target.name}:", number["row"], number["column"], number["metric"]]
        name = " ".join(filter(None, parts))
        if target.selections:
            searches = (search for _, search in target.of_paper.selections)
            yield Question(target.paper, name, NUMBER, 1, tuple(_of_selections(searches)))
            continue
        cells = [cell.hash for cell in _cells_of(target, number)]
        first = _runs_to_compare(number)
        yet = compared.get((number["row"], number["column"], number["metric"]))
        gained = 0.0
        for count in (first, *(more for more in MORE_SEEDS if cells and more > first)):
            if count > len(target.seeds):
                break
            worth = 1.0 if count == first else WORTH_MORE / count
            decides = count == first
            if yet is not None and count > yet["n_seeds"]:
                expected = max(gained, gain(yet, count))
                decides = gained < expected == 1.0
                worth, gained = max(expected - gained, WORTH_DECIDED / count), expected
            needs = tuple(_need(cell, count, target.seeds) for cell in cells)
            yield Question(target.paper, name, NUMBER if decides else SHOWN, worth, needs)


def _compared(target: Target) -> dict[Key, dict[str, float]]:
    """The numbers of a target that the last build compared with a training; none before one."""
    files = (path for path in target.outputs if path.name.endswith(".reported.csv"))
    return read_trained(path for path in files if path.is_file())


def _runs_to_compare(number: Mapping[str, str]) -> int:
    """The fewest runs that compare with a printed number: one for a spread or ∞, otherwise two, for an interval."""
    spread = number["spread"] or number.get("authors_sd")
    return 1 if spread or number["value"] == "inf" else 2


def _of_selections(searches: Iterable[Selection]) -> Iterator[Need]:
    for search in searches:
        yield from (_need(cell.hash, len(search.seeds), search.seeds) for _, cell in search.points)


def _cells_of(target: Target, number: Mapping[str, str]) -> list[Cell]:
    """The cells that a printed number is measured on: its row and column's, and its divisor's."""
    spec = target.spec
    (row, column), along = row_and_column(spec), spec.get("along")

    def in_row(levels: Mapping) -> bool:
        if along in levels:
            return named_along(spec, levels.get(row), levels[along]) == number["row"]
        name = named(spec, levels.get(row))
        return number["row"].startswith(f"{name}, ") if along else number["row"] == name  # along a run's own curve

    cells = [(flat(factors), cell) for factors, cell in target.cells]
    cells = [each for each in cells if in_row(each[0])] or cells
    cells = [each for each in cells if named(spec, each[0].get(column)) == number["column"]] or cells
    ideal = spec.get("ideal")
    datasets = {levels.get("dataset") for levels, _ in cells}
    ideals = [
        cell for factors, cell in target.cells if factors.get("learner") == ideal and factors.get("dataset") in datasets
    ]
    return list({cell.hash: cell for cell in (*(cell for _, cell in cells), *ideals)}.values())


def _claim(plan: Plan, claim: Claim) -> Question:
    """A claim; two runs of every cell on either side may decide it."""
    needs: dict[str, Need] = {}
    for side in (side for part in claim.parts for side in part.sides if side.runs):
        target = plan.targets[side.target]
        levels = {key: level for key, level in side.levels.items() if key not in CURVE}
        for factors, cell in target.cells:
            if levels.items() <= flat(factors).items():
                needs[cell.hash] = _need(cell.hash, 2, target.seeds)
    return Question(claim.paper, f"{claim.paper}: {claim.name}", CLAIM, 1, tuple(needs.values()))


# --- the order -----------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Step:
    """Runs that decide questions only together, these questions, and the cost."""

    paper: str
    runs: tuple[Run, ...]
    seconds: float
    decides: tuple[Question, ...]


def rank(
    questions: Sequence[Question],
    finished: Collection[Run],
    seconds: Mapping[str, float],
    prerequisites: Callable[[Run], Mapping[str, float]] = lambda _: {},
    begun: Mapping[Run, float] = MappingProxyType({}),
) -> Iterator[Step]:
    """All runs that can be trained, in the order in which budgets take them.

    The next step decides most a second, for the paper with the least time until then. It takes at most half the time of
    all steps before it, unless no cheaper step remains: so little of a budget remains unused.

    - seconds: of a seed's training, by cell. A question that needs another cell, whose data cannot be had, stays open.
    - prerequisites: files that a run needs and that are yet to be made (features, GANs), with their seconds. These
      count for the first run that needs them.
    - begun: the share, from 0 to 1, that is done of a run that was interrupted and goes on.
    """
    trained, made = set(finished), set[str]()
    missing = {i: question.missing(trained) for i, question in enumerate(questions)}
    waiting = {i: runs for i, runs in missing.items() if runs and all(cell in seconds for cell, _ in runs)}
    groups: dict[tuple[Run, ...], dict[int, None]] = defaultdict(dict)  # the questions that wait for the same runs
    users: dict[str, list[int]] = defaultdict(list)  # by cell, the questions that need it
    for i, runs in waiting.items():
        groups[runs][i] = None
        for need in questions[i].needs:
            users[need.cell].append(i)
    spent, total = {question.paper: 0.0 for question in questions}, 0.0
    prices: dict[tuple[Run, ...], float] = {}

    def price(runs: tuple[Run, ...]) -> float:
        if runs not in prices:
            files = {name: took for run in runs for name, took in prerequisites(run).items() if name not in made}
            prices[runs] = sum(seconds[run[0]] * (1 - begun.get(run, 0.0)) for run in runs) + sum(files.values())
        return prices[runs]

    while groups:
        limit = max(GROWTH * total, min(map(price, groups)))
        affordable = {runs: group for runs, group in groups.items() if price(runs) <= limit}
        worth: dict[tuple[str, tuple[Run, ...]], float] = defaultdict(float)
        for runs, group in affordable.items():
            for i in group:
                worth[questions[i].paper, runs] += questions[i].worth
        *_, runs, paper = min(
            (spent[paper], -gained / max(price(runs), 1e-9), runs, paper) for (paper, runs), gained in worth.items()
        )
        touched = [i for i in dict.fromkeys(i for cell, _ in runs for i in users[cell]) if i in waiting]
        yield Step(paper, runs, price(runs), tuple(questions[i] for i in touched if set(waiting[i]) <= set(runs)))
        total, spent[paper] = total + price(runs), spent[paper] + price(runs)
        trained.update(runs)
        for i in touched:
            before = waiting.pop(i)
            del groups[before][i]
            if not groups[before]:
                del groups[before]
            if left := questions[i].missing(trained):
                waiting[i] = left
                groups[left][i] = None
        if new := {name for run in runs for name in prerequisites(run)} - made:
            made |= new
            prices.clear()


def others(
    plan: Plan,
    targets: Iterable[Target],
    trained: Collection[Run],
    seconds: Mapping[str, float],
    prerequisites: Callable[[Run], Mapping[str, float]] = lambda _: {},
    begun: Mapping[Run, float] = MappingProxyType({}),
) -> Iterator[Step]:
    """The runs of targets that no question waits for, in the order in which leftover hours take them.

    A cell's first missing seed comes before any second one, and the cheaper of two first. Parameters as `rank` has
    them; `trained` are runs that are there, or come before.
    """
    missing: dict[Run, Question] = {}
    for target in targets:
        for cell, seeds in _runs(plan, target):
            for run in ((cell.hash, seed) for seed in seeds if cell.hash in seconds):
                if run not in trained:
                    need = Need(cell.hash, 1, (run[1],))
                    missing.setdefault(run, Question(target.paper, f"{target.paper}/{target.name}", OTHER, 0, (need,)))
    turn: Counter[str] = Counter()
    order = []
    for run in sorted(missing):
        order.append((turn[run[0]], seconds[run[0]], run))
        turn[run[0]] += 1
    made = {name for run in trained if run[0] in seconds for name in prerequisites(run)}
    for *_, run in sorted(order):
        files = {name: took for name, took in prerequisites(run).items() if name not in made}
        made |= files.keys()
        price = seconds[run[0]] * (1 - begun.get(run, 0.0)) + sum(files.values())
        yield Step(missing[run].paper, (run,), price, (missing[run],))


def cut(steps: Iterable[Step], hours: float) -> list[Step]:
    """The first steps, as many as fit into a budget of core-hours."""
    fitting, remaining = [], hours * 3600
    for step in steps:
        if step.seconds > remaining:
            break
        fitting.append(step)
        remaining -= step.seconds
    return fitting


# --- the choice -----------------------------------------------------------------------------------------------


def finished(plan: Plan) -> dict[str, dict[Path, list[int]]]:
    """Runs that were trained here with the present code: by cell, the result files and their seeds.

    Runs of other code do not count; a build that needs them trains them again.
    """
    top = RESULTS / plan.scale / "runs"
    runs: dict[str, dict[Path, list[int]]] = {}
    folders = {cell.folder: cell for cell in plan.cells.values()}
    for record in sorted(top.glob("*/*/*/[!.]*.record.json")) if top.is_dir() else ():
        cell, path = folders.get(record.parent), record.with_name(record.name.replace(".record.json", ".json"))
        if cell is None or not path.is_file():
            continue
        try:
            seeds = block_seeds(path.stem)
            if jobs.job_of(plan, path).code == read_record(path)["code"]:
                runs.setdefault(cell.hash, {})[path] = list(seeds)
        except (ConfigError, ProvenanceError):
            continue  # the audit reports it
    return runs


def begun_trainings(plan: Plan) -> dict[Path, float]:
    """The trainings that were interrupted and go on: the share that is done, from 0 to 1, by the file to be made."""
    found = {}
    for checkpoint in (RESULTS / plan.scale / "runs").glob("*/*/*/.seed*.checkpoint"):
        result = checkpoint.with_name(f"{checkpoint.stem[1:]}.json")
        with contextlib.suppress(ConfigError):  # of a cell that the plan no longer has
            if not result.is_file() and (share := share_done(result, jobs.job_of(plan, result).code)):
                found[result] = share
    return found


def files_of_seeds(
    plan: Plan, *sources: Mapping[str, Mapping[Path, Iterable[int]]]
) -> dict[str, dict[Path, list[int]]]:
    """One file for each wanted seed, from the first source that has any."""
    runs: dict[str, dict[Path, list[int]]] = {}
    for key, cell in plan.cells.items():
        remaining = set(plan.seeds_of(cell))
        for source in sources:
            for path, seeds in source.get(key, {}).items():
                if chosen := sorted(remaining & set(seeds)):
                    runs.setdefault(key, {})[path] = chosen
                    remaining -= set(chosen)
    return runs


def files_to_make(plan: Plan, runs: Collection[Run], named: Files) -> dict[str, dict[Path, Collection[int]]]:
    """The files that jobs make of some runs: named ones, and of all others one a range of neighbours within a block."""
    made = {key: dict(files) for key, files in named.items()}
    others = set(runs) - runs_of(named)
    for key in dict.fromkeys(key for key, _ in sorted(others)):
        cell = plan.cells[key]
        for block in plan.blocks(cell):
            for seeds in neighbours(seed for seed in block if (key, seed) in others):
                made.setdefault(key, {})[cell.folder / f"{block_name(seeds)}.json"] = list(seeds)
    return made


@dataclasses.dataclass(frozen=True)
class Request:
    """The runs that a build is asked for.

    - targets: within `hours` (∞: all), the runs that decide most of these are chosen. The hours are a core's, or a
      card's where the plan's runs go to one.
    - named: targets requested by name without hours. All their runs whose data can be had are chosen, at any cost.
    - runs: files of runs requested by name, which are made even where other files hold their seeds.
    """

    targets: Collection[Target] = ()
    hours: float = 0.0
    named: Collection[Target] = ()
    runs: Files = dataclasses.field(default_factory=dict)

    @property
    def all_targets(self) -> list[Target]:
        return [*self.targets, *self.named]

    def cells(self, plan: Plan) -> dict[str, Cell]:
        """The cells, by hash, that it may train."""
        return relevant(plan, self.all_targets, self.runs)


@dataclasses.dataclass(frozen=True)
class Budget:
    """A choice, and its reasons.

    made: the files of runs that are to be made.
    pending: predicted seconds by file that is to be made: runs, and once each the features and GANs that they share.
    present: the runs that existed before.
    begun: the share that is done of each file's training that goes on, by the file.
    too_dear: the first step of each paper that asked for hours and has none of the steps.
    processor: `core` or `card`, whose seconds these and the steps' are.
    """

    choice: SelectedRuns
    steps: Sequence[Step] = ()
    made: Files = dataclasses.field(default_factory=dict)
    pending: Mapping[str, float] = dataclasses.field(default_factory=dict)
    present: Collection[Run] = ()
    questions: Sequence[Question] = ()
    processor: str = "core"
    begun: Mapping[Path, float] = dataclasses.field(default_factory=dict)
    too_dear: Sequence[Step] = ()

    @property
    def hours(self) -> float:
        """The hours of a core, or of a card, that its steps are predicted to take."""
        return sum(step.seconds for step in self.steps) / 3600

    @property
    def decided(self) -> str:
        """How much its steps decide: `12 printed numbers and 3 claims`; empty where that is nothing."""
        counts = Counter(question.kind for step in self.steps for question in step.decides)
        numbers, claims = counts[NUMBER], counts[CLAIM]
        return f"{numbers} printed numbers and {claims} claims" if numbers or claims else ""


@dataclasses.dataclass(frozen=True)
class Seconds:
    """The predicted seconds of a seed, by cell.

    measured: of a core, None where nobody measured; and by its folder, of GANs that runs share.
    core: the same of cells, guessed where nobody measured.
    processor: of a core, or of a card where the plan's runs go to one.
    """

    measured: Mapping[str, float | None]
    core: Mapping[str, float]
    processor: Mapping[str, float]

    @classmethod
    def predict(cls, plan: Plan, cells: Mapping[str, Cell], table: costs.Table) -> "Seconds":
        """Predict the seconds of some cells."""
        measured = costs.predict(plan, table, cells)
        core = {key: measured[key] or table.guess(plan, cell) for key, cell in cells.items()}
        if not plan.cuda:
            return cls(measured, core, core)
        return cls(measured, core, {key: card_costs.seconds(plan, cell, core[key]) for key, cell in cells.items()})


def choose(
    plan: Plan,
    request: Request,
    claims: Mapping[str, Iterable[Claim]],
    *,
    present: Files,
    absent: Mapping[str, str],
    table: costs.Table | None = None,
    begun: Mapping[Path, float] = MappingProxyType({}),
) -> Budget:
    """Choose the runs of a build: all present ones, and more of those that are requested.

    - claims: by paper.
    - present: as from `files_of_seeds`.
    - absent: data sets and weights that cannot be had, with their remedies.
    - begun: as from `begun_trainings`.
    """
    cells = request.cells(plan)
    seconds = Seconds.predict(plan, cells, table or costs.rehearsed(plan.scale))
    available = {key: cell for key, cell in cells.items() if absent.keys().isdisjoint(plan.data_of(cell))}
    prerequisites = _Prerequisites(plan, seconds.measured)
    targets = request.targets
    to_decide = list(questions_of_own(plan, targets)) if plan.methods else questions(plan, targets, claims)
    before, steps, too_dear = runs_of(present), list[Step](), list[Step]()
    shares = {(path.parent.name[-10:], seed): share for path, share in begun.items() for seed in block_seeds(path.stem)}
    chosen = before | requested_runs(plan, request, available)
    if 0 < request.hours < math.inf:
        given = {key: seconds.processor[key] for key in available}, prerequisites, shares

        def in_order(asked: Sequence[Question]) -> Iterator[Step]:
            """The steps that decide, and then, except with methods from outside, all other runs."""
            reached = set(chosen)
            for step in rank(asked, chosen, *given):
                reached.update(step.runs)
                yield step
            of_papers = {question.paper for question in asked}
            if not plan.methods:
                yield from others(plan, (each for each in targets if each.paper in of_papers), reached, *given)

        steps = cut(in_order(to_decide), request.hours)
        with_step = {step.paper for step in steps}
        for paper in (
            each for each in dict.fromkeys(question.paper for question in to_decide) if each not in with_step
        ):
            too_dear += itertools.islice(in_order([each for each in to_decide if each.paper == paper]), 1)
        chosen |= {run for step in steps for run in step.runs}
    made = files_to_make(plan, chosen - before, request.runs)
    pending = {
        str(path): len(of_file) * seconds.processor[key] * (1 - begun.get(path, 0.0))
        for key, files in made.items()
        for path, of_file in files.items()
    }
    for run in sorted(runs_of(made)):
        pending.update(prerequisites(run))
    goes_on = {path: begun[path] for files in made.values() for path in files if path in begun}

    def left_out(*runs: tuple[Cell, Iterable[int]]) -> list[Run]:
        return [run for cell, seeds in runs for seed in seeds if (run := (cell.hash, seed)) not in chosen]

    def price(target: Target) -> float:
        runs = dict.fromkeys(left_out(*(each for each in _runs(plan, target) if each[0].hash in available)))
        files = {file: took for run in runs for file, took in prerequisites(run).items() if file not in pending}
        hours = round((sum(seconds.core[key] for key, _ in runs) + sum(files.values())) / 3600, 4)
        return max(hours, LEAST_PRICE) if runs else 0.0

    unrun = {
        key: None if seconds.measured[key] is None else round(seconds.core[key] * count / 3600, 4)
        for key, cell in cells.items()
        if (count := len(left_out((cell, plan.seeds_of(cell)))))
    }
    prices = {f"{target.paper}/{target.name}": price(target) for target in request.all_targets}
    choice = SelectedRuns(files_of_seeds(plan, present, made), unrun, dict(absent), plan.methods, prices)
    processor = "card" if plan.cuda else "core"
    return Budget(choice, steps, made, pending, before, to_decide, processor, goes_on, too_dear)


def left(plan: Plan, present: Files) -> dict[str, float]:
    """Core-hours of the runs that are still to be trained, by target, and at `all` of its targets' runs.

    All data count as at hand. present: as for `choose`.
    """
    every, of_all = (
        choose(plan, Request(targets), {}, present=present, absent={}).choice
        for targets in (plan.targets.values(), targets_of(plan, plan.titles))
    )
    return {**every.prices, "all": sum(hours or 0.0 for hours in of_all.unrun.values())}


def runs_of(files: Files) -> set[Run]:
    """The runs in some files."""
    return {(key, seed) for key, of_cell in files.items() for seeds in of_cell.values() for seed in seeds}


def requested_runs(plan: Plan, request: Request, available: Mapping[str, Cell]) -> set[Run]:
    """The runs that are requested at any cost. available: the cells, by hash, whose data can be had."""
    named = itertools.chain.from_iterable(_runs(plan, target) for target in request.named)
    runs = [*named, *_searched(plan, (plan.cells[key] for key in request.runs))]
    if math.isinf(request.hours):
        runs += [(cell, plan.seeds_of(cell)) for cell in available.values()]
    of_cells = {(cell.hash, seed) for cell, seeds in runs if cell.hash in available for seed in seeds}
    return of_cells | runs_of(request.runs)


def relevant(plan: Plan, targets: Iterable[Target], named_runs: Collection[str] = ()) -> dict[str, Cell]:
    """The cells, by hash, of some targets and of runs requested by name."""
    runs = itertools.chain.from_iterable(_runs(plan, target) for target in targets)
    cells = {key: plan.cells[key] for key in named_runs}
    return cells | {cell.hash: cell for cell, _ in (*runs, *_searched(plan, cells.values()))}


def _runs(plan: Plan, target: Target) -> Iterator[tuple[Cell, Sequence[int]]]:
    yield from ((cell, target.seeds) for _, cell in target.cells)
    yield from _searched(plan, (cell for _, cell in target.cells), [search for _, search in target.selections])


def _searched(
    plan: Plan, cells: Iterable[Cell], searches: Iterable[Selection] = ()
) -> Iterator[tuple[Cell, Sequence[int]]]:
    """The runs of some searches, and of the searches that some cells read their values from."""
    for search in dict.fromkeys((*searches, *(each for cell in cells for each in selections_of(plan, cell)))):
        yield from ((cell, search.seeds) for _, cell in search.points)


class _Prerequisites:
    """Files that a run needs and that are yet to be made, with seconds: its data set's features, its seed's GANs."""

    def __init__(self, plan: Plan, measured: Mapping[str, float | None]):
        self.plan, self.measured = plan, measured
        self.features = {
            name: costs.features(plan, name)
            for name, facts in plan.datasets.items()
            if "features" in facts and not dataset_path(plan.scale, name).is_file()
        }
        self.gans = {key: gans.of_cell(plan, plan.cells[key]) for key in measured if key in plan.cells}
        self.exists: dict[Path, bool] = {}

    def __call__(self, run: Run) -> dict[str, float]:
        key, seed = run
        dataset = self.plan.cells[key].spec["dataset"]
        features = str(dataset_path(self.plan.scale, dataset))
        files = {features: self.features[dataset]} if dataset in self.features else {}
        if shared := self.gans[key]:
            file = shared.file(seed)
            if not self.exists.setdefault(file, file.is_file()):
                files[str(file)] = self.measured[str(shared.folder)] or 0.0
        return files
