"""Measurements, printed numbers, comparisons and runs as tidy pandas frames, for your own notebooks and scripts.

They work in any folder: the functions read config/ and results/<scale>/ of the project, which is the working folder or
the one that the package comes from. A target is named as `snakemake` takes it, `stf/table1`. For a target that is not
built, `metrics` and `compare` return the numbers of the published runs. Each function refuses in one line an unknown
name (`ConfigError`), and a file that is not built or not as its record says (`ProvenanceError`).
"""

import contextlib
import json
from pathlib import Path

import pandas as pd

from clpapers import provenance
from clpapers.archive.imported import PUBLISHED, files_in, imported
from clpapers.audit import lineage as ancestry
from clpapers.audit.audit import fitting
from clpapers.budget import priority
from clpapers.catalogue import metrics as catalogue
from clpapers.config import selected_runs
from clpapers.config.model import Target
from clpapers.config.plan import Plan
from clpapers.config.refusals import ConfigError
from clpapers.config.settings import all_papers
from clpapers.evidence.comparison import read_compared, read_reported
from clpapers.home import at_home, project_path
from clpapers.metrics.learning import CHANCE_PREFIX


@at_home
def metrics(name: str, scale: str = "paper") -> pd.DataFrame:
    """A target's measurements: one line a cell, seed and metric.

    Returns a column for each factor of its grid (`dataset`, `learner`, `budget.memory`, …), and

    - `cell` (the hash) and `seed`, where it is made from runs
    - `metric`, with `chance_…` for chance levels
    - `time`, the place on a curve's axis, NaN for a scalar
    - `value`, in `unit` (`%`, `s`, `steps`, …; empty for pure numbers)
    """
    target = _target(name, scale)
    return _with_units(pd.read_csv(_built(target.metrics, target)))


@at_home
def printed(name: str, scale: str = "paper") -> pd.DataFrame:
    """The paper's numbers in a target, as transcribed in config/reported; the same at every scale.

    Returns

    - `row`, `column`, `metric`
    - `value`, in `unit`, ∞ where the method diverged, NaN where no number is printed, and the `decimals` printed
    - `spread_kind`, `half_width` (of the 95 % interval, in `unit`) and `n`, the paper's runs (0: unknown)
    - `note`, and more, as `evidence.comparison.read_reported` explains
    """
    target = _target(name, scale)
    if target.reported is None:
        raise ConfigError(f"{name}: config/reported/{target.paper}.csv has no line of it; take another target")
    return _with_units(read_reported(target.reported, target.paper, target.name))


@at_home
def compare(name: str, scale: str = "paper") -> pd.DataFrame:
    """Ours beside the printed numbers, one line a printed number, as built beside a target.

    Returns the columns of `evidence.comparison.compare`, among them

    - `row`, `column`, `metric`
    - `printed`, `ours`, their 95 % limits (`…_low`, `…_high`), `sd`, `se` and `difference` with its limits, in
      `unit`
    - `graded_against` (printed, or the authors' own), `authors` (NaN where they published none)
    - `n_seeds`
    - `verdict` with its `cause` and `reason`; texts may be empty
    """
    target = _target(name, scale)
    file = next((path for path in target.outputs if path.name.endswith(".reported.csv")), None)
    if file is None:
        raise ConfigError(f"{name}: the paper prints no number there; metrics({name!r}) has what was measured")
    return _with_units(read_compared(_built(file, target)))


@at_home
def runs(name: str | None = None, scale: str = "paper") -> pd.DataFrame:
    """The finished runs of a target or a paper, or of all: one line a cell and seed, from their records.

    These are all seeds that the targets have, and methods from outside that their last build had. A run trained here
    comes before an imported run of the same seed.

    Returns

    - `cell` (the hash), `seed`, `targets` (a list of names), `file`
    - the cell's settings by dotted key, with selected values filled in (`budget.memory`, in items; `learner.name`, …);
      NaN where a cell does not have the setting
    - `training_seconds` of the seed alone, in s
    - of the job, which may have trained several seeds, `wall_seconds` and `cpu_seconds`, in s, `peak_memory_bytes`
    - `device`, `started`, in UTC, `code` (the digest) and `commit`
    """
    plan, rows = fitting(scale), []
    users: dict[str, list[str]] = {}
    plans: dict[str, Plan] = {}  # by the file of a choice, in which a build may have methods from outside
    trained: dict[str, dict[Path, range]] = {}
    for target in plan.named_targets([name] if name else []):
        full = f"{target.paper}/{target.name}"
        if (file := _choice_of(target)) not in plans:
            plans[file] = plan.using(selected_runs.read(project_path(file))) if file else plan
        cells = dict.fromkeys(cell for _, cell in plans[file].targets[full].cells)
        for cell in cells:
            users.setdefault(cell.hash, []).append(full)
            trained[cell.hash] = files_in(cell.folder)
    files: dict[str, dict[Path, list[int]]] = {}
    for each in plans.values():
        files |= priority.files_of_seeds(each, trained, imported(scale))
    for key in users:
        for path, seeds in sorted(files.get(key, {}).items(), key=lambda item: item[1]):
            record = provenance.read_record(path)
            settings = {
                f"{part}.{option}" if option else part: value
                for part, block in record["cell"].items()
                for option, value in (block.items() if isinstance(block, dict) else [("", block)])
            }
            job = {each: record[each] for each in ("wall_seconds", "cpu_seconds", "peak_memory_bytes", "code")}
            job |= {"device": record["hardware"]["device"], "commit": record["git"]["commit"]}
            job["started"] = pd.Timestamp(record["started"])
            for seed in seeds:
                own = {"cell": key, "seed": seed, "targets": users[key], "file": str(path)}
                rows.append(own | settings | {"training_seconds": record["training_seconds"].get(str(seed))} | job)
    if not rows:
        raise provenance.ProvenanceError(
            f"results/{scale}/runs: no finished run of {name or 'any target'}; "
            f"snakemake {name or 'all'} --cores --config scale={scale}"
        )
    return pd.DataFrame(rows)


@at_home
def lineage(name: str, row: str | None = None, column: str = "", scale: str = "paper") -> pd.DataFrame:
    """The ancestry of a target's first file, or of the number in a row and column of its CSV: one line a file.

    Returns

    - `path`, `reader` (the file that was made of it; of several, the first), `depth` (0: the target's own file)
    - `sha256`, `state` (`as recorded`, or the problem)
    - of files with a record, `stage`, `command`, `code` (the digest), `commit`, `started` (UTC), `wall_seconds` and
      `cpu_seconds`, in s, `peak_memory_bytes`
    - `data`, by data set the content checksums, as JSON
    """
    target = _target(name, scale)
    file = _built(target.outputs[0], target, proven=False)
    node = ancestry.tree(file) if row is None else ancestry.of_cell(fitting(scale), target, row, column)
    rows: list[dict] = []

    def walk(node: dict, reader: str, depth: int) -> None:
        job = {key: node.get(key) for key in ("stage", "command", "code", "commit", "started")}
        job |= {key: node.get(key) for key in ("wall_seconds", "cpu_seconds", "peak_memory_bytes")}
        data = json.dumps({key: facts["sha256"] for key, facts in node.get("data", {}).items()})
        if not node.get("seen"):
            own = {key: node[key] for key in ("path", "sha256", "state")}
            rows.append(own | {"reader": reader, "depth": depth} | job | {"data": data})
        for item in node.get("inputs", []):
            walk(item, node["path"], depth + 1)

    walk(node, "", 0)
    frame = pd.DataFrame(rows)
    return frame.assign(started=pd.to_datetime(frame["started"], utc=True))


def _target(name: str, scale: str) -> Target:
    """A target by its name; `ConfigError` for a paper's name or an unknown one."""
    paper = name.partition("/")[0]
    plan = Plan(scale, [paper] if paper in all_papers() else all_papers())
    (target, *more) = plan.named_targets([name])
    if more:
        raise ConfigError(f"{name}: a paper; name one of its targets: {', '.join(plan.targets)}")
    return target


def _choice_of(target: Target) -> str:
    """The file with the choice of runs that a target was built of; empty where none is, or it was built of all."""
    with contextlib.suppress(provenance.ProvenanceError):
        return provenance.read_record(target.metrics).get("choice") or ""
    return ""


def _built(file: Path, target: Target, *, proven: bool = True) -> Path:
    """A built file of a target, or the published one. If `proven`, a built file must be as its record says."""
    published = PUBLISHED / "metrics" / target.paper / file.name
    if not file.is_file() and target.scale == "paper" and published.is_file():
        return published
    if not file.is_file():
        command = f"snakemake {target.paper}/{target.name} --cores --config scale={target.scale}"
        raise provenance.ProvenanceError(f"{file}: not built; {command}")
    if proven:
        provenance.verified_record({"path": str(file), "sha256": provenance.sha256(file)})
    return file


def _with_units(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame and the unit of each line's metric."""
    metrics = catalogue.metrics()
    names = frame["metric"].str.removeprefix(CHANCE_PREFIX)
    return frame.assign(unit=[metrics[name].unit if name in metrics else "" for name in names])
