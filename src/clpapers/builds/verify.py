"""Verifies published runs: a random sample is trained again here, from the seeds on, and compared."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from clpapers.archive.archive import CrateError, check, opened
from clpapers.archive.imported import FOLDER, RUN, accuracies, accuracy_gap, published
from clpapers.budget import costs
from clpapers.builds.preparation import Data, reason
from clpapers.config import choice
from clpapers.config.paths import RESULTS, block_seeds, dataset_path
from clpapers.config.plan import Plan
from clpapers.config.refusals import ConfigError
from clpapers.config.settings import all_papers
from clpapers.graph import jobs
from clpapers.provenance import PACKAGE, as_published, escaped, read_record, record_path
from clpapers.runs.cards import resolve_device
from clpapers.runs.form import results

SAME, CLOSE, DIFFERS, UNTRIED = "same bits", "same accuracies", "differs", "not trained"
AS_SEEDS, UNTOLD = "as seeds differ", "cannot be told"  # of another processor, code or versions than there
ALPHA = 0.01  # the chance that a run which differs from its seed as other seeds do is called one that differs
MADE_HERE = ("dataset", "weights", "features", "stream", "selection")  # a run needs these, unless they are there
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")  # 1, as Snakemake sets them for a rule


class Outcome(NamedTuple):
    """How a run came out here. why: how far both are apart, or what is lacking. seconds: as predicted."""

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

    settings: as `check_settings` gives them. crates: none for the project's own. hours: core-hours to spend, by
    prediction. draw: the seed of the sample. within: how far apart accuracies at the end, shares from 0 to 1, may be
    and still be the same. of_each: whether to take one or two runs of each crate, as many at once as there are cores.

    Raises `CrateError` where there is nothing to train or no run could be, `ConfigError` for values that make no sense.
    """
    if not hours > 0 or not 0 <= within < 1:
        raise ConfigError(f"verify: --hours {hours} --within {within}: give hours above 0, and within from 0 to 1")
    scale = settings["scale"]
    own = published(scale)
    crates = crates or sorted(own.parent.glob(own.name))
    if not crates:
        raise CrateError(f"{own}: no crate; name one, or publish what is finished")
    plan = Plan(scale, all_papers(), cuda=resolve_device(settings["device"]) == "cuda")
    by_crate = [_runs(plan, path) for path in crates]
    runs = {name: run for each in by_crate for name, run in each.items()}
    seeds: dict[str, dict[int, dict]] = {}  # of a cell, all that are published
    for name, run in runs.items():
        seeds.setdefault(Path(name).parent.name, {}).update(results(run.content)[1])
    drawn, left = _drawn(plan, runs, draw), hours * 3600
    if (cheapest := min(drawn.values(), default=0.0)) > left or not drawn:
        takes = f"no run fits; the cheapest takes {cheapest / 3600:.3f} core-hours"
        none = "the crates hold no run of a cell that config/ has now; name others"
        raise CrateError(f"verify --hours {hours}: {takes if drawn else none}")
    if of_each:
        of_crates = [{name: took for name, took in drawn.items() if name in each} for each in by_crate]
        drawn = _of_each(Data(plan, Path(settings["data_folder"]), Path(settings["downloads"])), of_crates, left)
    tried, lacking, made = 0, Counter[str](), dict[str, str]()
    with tempfile.TemporaryDirectory(prefix="clpapers-verify-") as scratch:
        here = _Scratch(plan, settings, Path(scratch))

        def make(name: str) -> str:
            return here.make(Path(name), stacking=runs[name].stacking)

        if of_each:
            took = f"{costs.duration(sum(drawn.values()))} of one core"
            print(f"clpapers: training {len(drawn)} published runs again, predicted {took}", file=sys.stderr)
            with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
                made = dict(zip(drawn, threads.map(make, drawn)))
        for name, seconds in drawn.items():
            seconds += here.before(Path(name))
            if seconds > left:
                continue
            verdict, why = UNTRIED, made[name] if name in made else make(name)
            if why and Path(name) not in here.faults:  # what it is made of cannot be had: another takes its turn
                lacking[why] += 1
                if lacking[why] > 1:
                    continue
            else:
                left -= seconds
            if not why:
                ours, theirs = (here.folder / name).read_bytes(), runs[name].content
                verdict, why = _compared(ours, theirs, within)
                with contextlib.chdir(here.folder):
                    other = _otherwise(jobs.job_of(here.plan, Path(name)), read_record(name), runs[name].record)
                if verdict == DIFFERS and other:
                    verdict, spread = _beside_seeds(ours, theirs, seeds[Path(name).parent.name].values())
                    why = "; ".join([why, spread, f"there: {', '.join(other)}"])
                tried += 1
            yield Outcome(name, verdict, why, seconds)
    for fault, count in lacking.items():
        if count > 1:
            yield Outcome(f"{count - 1} more", UNTRIED, fault, 0.0)
    if not tried:
        raise CrateError("verify: no run of the sample could be trained; see above, or try another --draw")


def _of_each(data: Data, crates: Iterable[Mapping[str, float]], left: float) -> dict[str, float]:
    """The cheapest run of each crate, then one more of each as drawn, as far as `left` seconds go; fetches their data.

    crates: the seconds of each one's runs, in the order of a draw; one whose data cannot be had is left out.
    """
    found: dict[str, float] = {}
    cheapest = [dict(sorted(each.items(), key=lambda run: run[1])) for each in crates]
    cheapest.sort(key=lambda each: min(each.values(), default=0.0))
    for drawn in (*cheapest, *crates):
        for name, seconds in drawn.items():
            cell = Path(name).parent
            unmade = "features" in data.facts(cell.parts[3]) and not data.path(cell.parts[3]).is_file()
            if seconds > left or unmade or cell in {Path(each).parent for each in found}:
                continue
            needed = data.plan.data_of(data.plan.cells[cell.name[-10:]])
            data.look(needed)
            data.get(needed)
            if data.absent.keys().isdisjoint(needed):
                found[name] = seconds
                left -= seconds
                break
    return found


class Run(NamedTuple):
    """A published result file: its bytes, its record, and whether its seeds were stacked where a machine may choose."""

    content: bytes
    record: dict
    stacking: bool


def _runs(plan: Plan, path: Path) -> dict[str, Run]:
    """A crate's result files of the plan's cells, by the path where they are made."""
    wrong, _ = check(path)
    if wrong:
        file, reason = wrong[0]
        raise CrateError(f"{path}: {file}: {reason}; fetch or make it anew")
    found = {}
    with opened(path) as (members, _):
        for name in members:
            match = RUN.fullmatch(name)
            if match and match["scale"] == plan.scale and match["hash"] in plan.cells:
                with members[name]() as stream, members[str(record_path(name))]() as record:
                    content, recorded = stream.read(), json.load(record)
                try:
                    results(content)
                except ValueError as error:
                    raise CrateError(f"{path}: {name}: {error}; fetch or make it anew") from None
                apart = recorded.get("stacking") is False  # where it is not told, no machine chose yet
                found[as_published(name)] = Run(content, recorded, stacking=not apart)
    return found


def _drawn(plan: Plan, runs: Collection[str], draw: int) -> dict[str, float]:
    """All runs in the order of a draw, with the seconds that each is predicted to take.

    One of a kind that nobody rehearsed is left out.
    """
    each = costs.predict(plan)
    cost = {}
    for name in sorted(runs):
        path = Path(name)
        seconds = each[path.parent.name[-10:]]
        if seconds is not None:
            cost[name] = costs.JOBS["train"] + len(block_seeds(path.stem)) * seconds
    order = list(cost)
    random.Random(draw).shuffle(order)
    return {name: cost[name] for name in order}


def _compared(here: bytes, there: bytes, within: float) -> tuple[str, str]:
    """The verdict on a run trained here and as it was published, and how far apart both are."""
    if hashlib.sha256(here).digest() == hashlib.sha256(there).digest():
        return SAME, ""
    (_, ours), (_, theirs) = results(here), results(there)
    unlike = [seed for seed in sorted({*ours, *theirs}) if ours.get(seed) != theirs.get(seed)]
    if not unlike:
        return SAME, ""
    by = _apart(ours, theirs)
    return (CLOSE if by <= within else DIFFERS), f"{len(unlike)} of {len(theirs)} seeds, by {by:.4f} in accuracy"


def _apart(ours: Mapping[int, dict], theirs: Mapping[int, dict]) -> float:
    """The largest difference in accuracy between results by seed; infinite where one lacks a seed or an accuracy."""
    return max(accuracy_gap(ours.get(seed, {}), theirs.get(seed, {})) for seed in {*ours, *theirs})


def _otherwise(job: jobs.Job, here: Mapping, there: Mapping) -> list[str]:
    """What changes bits and differs between the records of a run made here and of the same run as it was published."""
    found = [] if job.of_this_code(there) else [f"other code, of commit {there['git'].get('commit')}"]
    told = [("hardware", "processor"), ("hardware", "device"), ("packages", "torch")]
    for part, key in told:
        if (value := (there.get(part) or {}).get(key)) != here[part][key]:
            found.append(f"{key} {value}")
    return [escaped(each) for each in found]


def _beside_seeds(here: bytes, there: bytes, seeds: Collection[dict]) -> tuple[str, str]:
    """The verdict on a run whose bits are not to be expected: whether it is as far off as two seeds may be, and this.

    Rounding that differs makes another run of a long training, at most as far from the first as a run of another seed.
    With n published seeds of standard deviation s the difference of two has the bound t s √2, t of n − 1 degrees of
    freedom, at the level `ALPHA` for all seeds of the file and all restrictions at test together (Bonferroni).

    seeds: results of the published seeds of the cell.
    """
    from scipy.stats import t

    (_, ours), (_, theirs) = results(here), results(there)
    known = [found for each in seeds if (found := accuracies(each))]
    views = sorted(set.intersection(*map(set, known))) if known else []
    if len(known) < 2 or not views or _apart(ours, theirs) == math.inf:
        return UNTOLD if len(known) < 2 else DIFFERS, f"published seeds: {len(known)}"
    factor = math.sqrt(2) * float(t.ppf(1 - ALPHA / (2 * len(theirs) * len(views)), len(known) - 1))
    bounds = {view: factor * statistics.stdev(each[view] for each in known) for view in views}
    inside = all(
        abs(accuracies(ours[seed])[view] - accuracies(theirs[seed])[view]) <= bounds[view]
        for seed in theirs
        for view in views
    )
    return AS_SEEDS if inside else DIFFERS, f"two of {len(known)} seeds may be {max(bounds.values()):.4f} apart"


class _Scratch:
    """A folder in which jobs are done by the ordinary commands, from the project's data sets where it has them."""

    def __init__(self, plan: Plan, settings: dict, folder: Path):
        self.plan, self.settings, self.folder = plan, settings, folder
        self.faults: dict[Path, str] = {}  # why a file cannot be made
        for part in ("config", "workflow"):
            (folder / part).symlink_to(Path(part).absolute())
        place = folder / RESULTS / plan.scale
        place.mkdir(parents=True)
        for part in ("datasets", "weights"):  # files, since those that are lacking are made beside them
            (place / part).mkdir()
            for path in (RESULTS / plan.scale / part).glob("*.*"):
                (place / part / path.name).symlink_to(path.absolute())
        for part in ("selection", FOLDER):
            if (RESULTS / plan.scale / part).is_dir():
                (place / part).symlink_to((RESULTS / plan.scale / part).absolute())

    @functools.cached_property
    def environment(self) -> dict[str, str]:
        sources = os.pathsep.join(filter(None, [str(PACKAGE.parent), os.environ.get("PYTHONPATH")]))
        inherited = {k: v for k, v in os.environ.items() if k != choice.VARIABLE}  # which is another build's
        return inherited | {"PYTHONPATH": sources} | dict.fromkeys(THREADS, "1")

    def before(self, run: Path) -> float:
        """The predicted seconds of the features that a run learns from, if they are yet to be made."""
        dataset = run.parts[3]
        made = self.folder / dataset_path(self.plan.scale, dataset)
        if "features" not in self.plan.datasets[dataset] or made.exists():
            return 0.0
        return costs.features(self.plan, dataset)

    def make(self, path: Path, *, stacking: bool = True) -> str:
        """Make a file and what it is made of, as far as that is lacking; the reason where that cannot be.

        stacking: of a run, as its record has it.
        """
        if path in self.faults:  # of many runs, which need not wait for its sources again
            return self.faults[path]
        job = jobs.job_of(self.plan, path)
        for each in job.inputs:
            if not (self.folder / each).exists() or not (self.folder / record_path(each)).exists():
                maker = jobs.job_of(self.plan, each).command if each.parts[2] != FOLDER else FOLDER
                fault = self.make(each) if maker in MADE_HERE else f"it is made of {each}, which is not there"
                if fault:
                    return fault
        asked = []
        if job.command in ("dataset", "weights"):
            for key in ("data_folder", "downloads"):
                asked += [f"--{key.replace('_', '-')}", str(Path(self.settings[key]).absolute())]
        if job.command in ("train", "features", "selection"):
            asked = ["--gpus", str(int(self.plan.cuda))]
        if job.command == "train":
            asked += ["--stacking", str(int(stacking))]
        command = [sys.executable, "-m", "clpapers.cli", job.command, "--out", str(path), *asked]
        done = subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True, text=True)
        if done.returncode:
            self.faults[path] = reason(done)
        return self.faults.get(path, "")
