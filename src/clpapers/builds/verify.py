"""Verifies published runs: a random sample is trained again here, from the seeds on, and compared."""

import hashlib
import math
import os
import random
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from clpapers import home, machine
from clpapers.archive.check import CrateError
from clpapers.archive.imported import FOLDER, RUN, accuracies, accuracy_gap, published, published_folder
from clpapers.archive.published import Run, runs_of
from clpapers.budget import costs
from clpapers.builds.preparation import Data
from clpapers.config.paths import RESULTS, block_seeds, dataset_path
from clpapers.config.plan import Plan
from clpapers.config.refusals import ConfigError
from clpapers.config.settings import all_papers, project_papers
from clpapers.graph import jobs
from clpapers.graph.maker import Maker, process
from clpapers.provenance import PACKAGE, as_published, escaped, read_record
from clpapers.runs.cards import resolve_device
from clpapers.runs.result_schema import results

SAME, CLOSE, DIFFERS, UNTRIED = "same bits", "same accuracies", "differs", "not trained"
AS_SEEDS, UNDECIDED = "as seeds differ", "cannot be told"  # where processor, code or versions are others
ALPHA = 0.01  # the chance that `DIFFERS` is the verdict on a run which differs only as seeds do
MADE_HERE = ("dataset", "weights", "features", "stream", "selection")  # a run needs these, and they may be absent
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")  # 1, as Snakemake sets them for a rule


class Outcome(NamedTuple):
    """The verdict on a run. why: the difference between both, or the reason of none. seconds: as predicted."""

    run: str
    verdict: str
    why: str
    seconds: float

    def __str__(self) -> str:
        took = f" (predicted {costs.duration(self.seconds)})" if self.seconds else ""
        return f"{self.run}: {self.verdict}{self.why and f', {self.why}'}{took}"


def verify(
    settings: dict, crates: list[Path], hours: float, draw: int, within: float, *, of_each: bool = False
) -> Iterator[Outcome]:
    """Train runs of crates again in a scratch folder, and compare them.

    - settings: as `check_settings` returns them.
    - crates: none for the project's own.
    - hours: core-hours to spend, by prediction.
    - draw: the seed of the sample.
    - within: the largest difference between accuracies at the end, shares from 0 to 1, that counts as the same.
    - of_each: whether to take one or two runs of each paper, or given crate, one on each core at a time.

    Raises `CrateError` where there is nothing to train or no run could be trained, `ConfigError` for wrong values.
    """
    if not hours > 0 or not 0 <= within < 1:
        raise ConfigError(f"verify: --hours {hours} --within {within}: give hours above 0, and within from 0 to 1")
    scale = settings["scale"]
    groups = [[path] for path in crates] or [published(scale, paper) for paper in sorted(project_papers())]
    if not any(groups):
        raise CrateError(f"{published_folder(scale)}: no crate; name one, or publish what is finished")
    plan = Plan(scale, all_papers(), cuda=resolve_device(settings["device"]) == "cuda")
    by_crate = [published_runs(plan, group) for group in groups]
    runs = {name: run for each in by_crate for name, run in each.items()}
    seeds: dict[str, dict[int, dict]] = {}  # by cell, all published results
    for name, run in runs.items():
        seeds.setdefault(Path(name).parent.name, {}).update(results(run.content)[1])
    sample, remaining = _sample(plan, runs, draw), hours * 3600
    if (cheapest := min(sample.values(), default=0.0)) > remaining or not sample:
        takes = f"no run fits; the cheapest takes {cheapest / 3600:.3f} core-hours"
        none = "the crates hold no run of a cell that config/ has now; name others"
        raise CrateError(f"verify --hours {hours}: {takes if sample else none}")
    if of_each:
        of_crates = [{name: took for name, took in sample.items() if name in each} for each in by_crate]
        data = Data(plan, Path(settings["data_folder"]), Path(settings["downloads"]))
        sample = _runs_of_each(data, of_crates, remaining)
    tried, lacking, made = 0, Counter[str](), dict[str, str]()
    with tempfile.TemporaryDirectory(prefix="clpapers-verify-") as folder:
        scratch = Scratch(plan, settings, Path(folder))

        def make(name: str) -> str:
            return scratch.make(Path(name), "--stacking", str(int(stacked(runs[name].record))))

        if of_each:
            took = f"{costs.duration(sum(sample.values()))} of one core"
            print(f"clpapers: training {len(sample)} published runs again, predicted {took}", file=sys.stderr)
            with ThreadPoolExecutor(machine.cores()) as threads:
                made = dict(zip(sample, threads.map(make, sample)))
        for name, seconds in sample.items():
            seconds += scratch.seconds_of_features(Path(name))
            if seconds > remaining:
                continue
            verdict, why = UNTRIED, made[name] if name in made else make(name)
            if why and Path(name) not in scratch.faults:  # its inputs cannot be had: another run takes its turn
                lacking[why] += 1
                if lacking[why] > 1:
                    continue
            else:
                remaining -= seconds
            if not why:
                ours, theirs = (scratch.folder / name).read_bytes(), runs[name].content
                verdict, why = _compare(ours, theirs, within)
                with home.entered(scratch.folder):
                    job = jobs.job_of(scratch.plan, Path(name))
                    conditions = _other_conditions(job, read_record(name), runs[name].record)
                if verdict == DIFFERS and conditions:
                    verdict, spread = _compare_with_seeds(ours, theirs, seeds[Path(name).parent.name].values())
                    why = "; ".join([why, spread, f"there: {', '.join(conditions)}"])
                tried += 1
            yield Outcome(name, verdict, why, seconds)
    for fault, count in lacking.items():
        if count > 1:
            yield Outcome(f"{count - 1} more", UNTRIED, fault, 0.0)
    if not tried:
        raise CrateError("verify: no run of the sample could be trained; see above, or try another --draw")


def _runs_of_each(data: Data, crates: Iterable[Mapping[str, float]], budget: float) -> dict[str, float]:
    """The cheapest run of each crate, then one more of each in order, within a budget of seconds; fetches their data.

    crates: the seconds of each one's runs, in the order of a draw. A run whose data cannot be had is left out.
    """
    chosen: dict[str, float] = {}
    cheapest = [dict(sorted(each.items(), key=lambda run: run[1])) for each in crates]
    cheapest.sort(key=lambda each: min(each.values(), default=0.0))
    for runs in (*cheapest, *crates):
        for name, seconds in runs.items():
            cell = Path(name).parent
            unmade = "features" in data.facts(cell.parts[3]) and not data.path(cell.parts[3]).is_file()
            if seconds > budget or unmade or cell in {Path(each).parent for each in chosen}:
                continue
            required = data.plan.data_of(data.plan.cells[cell.name[-10:]])
            data.note_absent(required)
            data.get(required)
            if data.absent.keys().isdisjoint(required):
                chosen[name] = seconds
                budget -= seconds
                break
    return chosen


def published_runs(plan: Plan, crates: Iterable[Path]) -> dict[str, Run]:
    """The result files of the plan's cells in crates, by the path where they are made."""
    return {
        as_published(name): run
        for name, run in runs_of(crates)[0].items()
        if (match := RUN.fullmatch(name)) and match["scale"] == plan.scale and match["hash"] in plan.cells
    }


def stacked(record: Mapping) -> bool:
    """Whether a run's seeds were stacked where a machine may choose."""
    return record.get("stacking") is not False  # older records lack it: no machine chose then


def _sample(plan: Plan, runs: Collection[str], draw: int) -> dict[str, float]:
    """All runs in a random order, with the predicted seconds of each; without runs of kinds that nobody rehearsed."""
    seconds_a_seed = costs.predict(plan)
    cost = {}
    for name in sorted(runs):
        path = Path(name)
        seconds = seconds_a_seed[path.parent.name[-10:]]
        if seconds is not None:
            cost[name] = costs.JOBS["train"] + len(block_seeds(path.stem)) * seconds
    order = list(cost)
    random.Random(draw).shuffle(order)
    return {name: cost[name] for name in order}


def _compare(result: bytes, published: bytes, within: float) -> tuple[str, str]:
    """The verdict on a run trained here and the published one, and the difference between both."""
    if hashlib.sha256(result).digest() == hashlib.sha256(published).digest():
        return SAME, ""
    (_, ours), (_, theirs) = results(result), results(published)
    unlike = [seed for seed in sorted({*ours, *theirs}) if ours.get(seed) != theirs.get(seed)]
    if not unlike:
        return SAME, ""
    gap = _gap(ours, theirs)
    return (CLOSE if gap <= within else DIFFERS), f"{len(unlike)} of {len(theirs)} seeds, by {gap:.4f} in accuracy"


def _gap(ours: Mapping[int, dict], theirs: Mapping[int, dict]) -> float:
    """The largest difference in accuracy between results by seed; infinite where one lacks a seed or an accuracy."""
    return max(accuracy_gap(ours.get(seed, {}), theirs.get(seed, {})) for seed in {*ours, *theirs})


def _other_conditions(job: jobs.Job, record: Mapping, published: Mapping) -> list[str]:
    """The published conditions that change bits and differ here, by the records of both runs."""
    conditions = [] if job.code == published["code"] else [f"other code, of commit {published['git'].get('commit')}"]
    for part, key in [("hardware", "processor"), ("hardware", "device"), ("packages", "torch")]:
        if (value := (published.get(part) or {}).get(key)) != record[part][key]:
            conditions.append(f"{key} {value}")
    return [escaped(condition) for condition in conditions]


def _compare_with_seeds(result: bytes, published: bytes, seeds: Collection[dict]) -> tuple[str, str]:
    """The verdict on a run under other conditions, where equal bits are not expected, and the bound for two seeds.

    Other rounding turns a long training into another run, at most as far from the first as a run of another seed. With
    n published seeds of standard deviation s, the bound for the difference of two is t s √2, with t of n − 1 degrees of
    freedom. Its level is `ALPHA` for all seeds of the file and all restrictions at test together (Bonferroni).

    seeds: results of the published seeds of the cell.
    """
    from scipy.stats import t

    (_, ours), (_, theirs) = results(result), results(published)
    tested = [by_view for each in seeds if (by_view := accuracies(each))]
    views = sorted(set.intersection(*map(set, tested))) if tested else []
    if len(tested) < 2 or not views or _gap(ours, theirs) == math.inf:
        return UNDECIDED if len(tested) < 2 else DIFFERS, f"published seeds: {len(tested)}"
    factor = math.sqrt(2) * float(t.ppf(1 - ALPHA / (2 * len(theirs) * len(views)), len(tested) - 1))
    bounds = {view: factor * statistics.stdev(each[view] for each in tested) for view in views}
    inside = all(
        abs(accuracies(ours[seed])[view] - accuracies(theirs[seed])[view]) <= bounds[view]
        for seed in theirs
        for view in views
    )
    return AS_SEEDS if inside else DIFFERS, f"two of {len(tested)} seeds may be {max(bounds.values()):.4f} apart"


class Scratch(Maker):
    """A folder in which the ordinary commands do jobs, with the project's data sets where it has them."""

    def __init__(self, plan: Plan, settings: dict, folder: Path):
        absolute = {key: Path(settings[key]).absolute() for key in ("data_folder", "downloads") if key in settings}
        super().__init__(plan, self._run, folder, absolute, MADE_HERE)
        for part in ("config", "workflow"):
            (folder / part).symlink_to(Path(part).absolute())
        top = folder / RESULTS / plan.scale
        top.mkdir(parents=True)
        for part in ("datasets", "weights"):  # links to files, since missing ones are made beside them
            (top / part).mkdir()
            for path in (RESULTS / plan.scale / part).glob("*.*"):
                (top / part / path.name).symlink_to(path.absolute())
        for part in ("selection", FOLDER):
            if (RESULTS / plan.scale / part).is_dir():
                (top / part).symlink_to((RESULTS / plan.scale / part).absolute())

    def _run(self, command: list[str]) -> str:
        sources = os.pathsep.join(filter(None, [str(PACKAGE.parent), os.environ.get("PYTHONPATH")]))
        environment = os.environ | {"PYTHONPATH": sources} | dict.fromkeys(THREADS, "1")
        return process(command, self.folder, environment)

    def seconds_of_features(self, run: Path) -> float:
        """The predicted seconds of the features that a run learns from, if they are yet to be made."""
        dataset = run.parts[3]
        file = self.folder / dataset_path(self.plan.scale, dataset)
        if "features" not in self.plan.datasets[dataset] or file.exists():
            return 0.0
        return costs.features(self.plan, dataset)
