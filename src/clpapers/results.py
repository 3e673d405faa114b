"""What was measured, printed, compared and run, as tidy pandas frames, for notebooks and scripts of one's own.

They work in any folder: the functions read config/ and results/<scale>/ of the project, the one at hand or the one
that the package comes from. A target is named as `snakemake` takes it, `stf/table1`. `metrics` and `compare` of one
that is not built are those of the published runs. Each refuses in one line a name that is none (`ConfigError`), and a
file that is not built or not as its record says (`ProvenanceError`).
"""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from clpapers import provenance
from clpapers.archive.imported import PUBLISHED, imported
from clpapers.audit import lineage as ancestry
from clpapers.audit.audit import fitting
from clpapers.budget import priority
from clpapers.catalogue import metrics as catalogue
from clpapers.config.model import Target
from clpapers.config.plan import Plan
from clpapers.config.refusals import ConfigError
from clpapers.config.settings import all_papers
from clpapers.evidence.comparison import read_reported
from clpapers.home import at_home
from clpapers.metrics.learning import CHANCE_PREFIX


@at_home
def metrics(name: str, scale: str = "paper") -> pd.DataFrame:
    """What was measured for a target: one line a cell, seed and metric.

    Returns a column for each factor of its grid (`dataset`, `learner`, `budget.memory`, …); `cell` (the hash) and
    `seed`, where it is made from runs; `metric`, with `chance_…` for chance levels; `time`, the place on a curve's
    axis, NaN for a scalar; `value`, in `unit` (`%`, `s`, `steps`, …; empty for pure numbers).
    """
    target = _target(name, scale)
    return _with_units(pd.read_csv(_built(target.metrics, target)))


@at_home
def reported(name: str, scale: str = "paper") -> pd.DataFrame:
    """What the paper prints in a target, as transcribed in config/reported; the same at every scale.

    Returns `row`, `column`, `metric`; `value`, in `unit`, ∞ where the method diverged, NaN where no number is printed;
    `decimals` printed; `spread_kind`, `half_width` (of the 95 % interval, in `unit`) and `n`, the paper's runs (0:
    unknown), and more, as `targets.comparison.read_reported` explains; `note`.
    """
    target = _target(name, scale)
    if target.reported is None:
        raise ConfigError(f"{name}: config/reported/{target.paper}.csv has no line of it; take another target")
    return _with_units(read_reported(target.reported, target.paper, target.name))


@at_home
def compare(name: str, scale: str = "paper") -> pd.DataFrame:
    """Reproduced beside reported numbers, one line a printed number, as built beside a target.

    Returns the columns of `targets.comparison.compare`: `row`, `column`, `metric`; `reported`, `reproduced`, their 95 %
    limits (`…_low`, `…_high`), `sd`, `se` and `difference` with its limits, in `unit`; `authors` (NaN where they
    published none); `n_seeds`; `verdict` with its `cause` and `reason`, and more. Text is empty where there is nothing
    to say.
    """
    target = _target(name, scale)
    file = next((path for path in target.outputs if path.name.endswith(".reported.csv")), None)
    if file is None:
        raise ConfigError(f"{name}: the paper prints no number there; metrics({name!r}) has what was measured")
    frame = pd.read_csv(_built(file, target), keep_default_na=False, dtype={"runs": str})
    floats = ("reported", "authors", "reproduced", "difference", "distance", "margin", "basis")
    numbers = [key for key in frame if key.startswith(floats) and "note" not in key]
    frame[[*numbers, "sd", "se"]] = frame[[*numbers, "sd", "se"]].apply(pd.to_numeric)
    return _with_units(frame)


@at_home
def runs(name: str | None = None, scale: str = "paper") -> pd.DataFrame:
    """The finished runs of a target or a paper, or of all: one line a cell and seed, from their records.

    Of a seed that was trained here that run, otherwise one that was imported.

    Returns `cell` (the hash), `seed`, `targets` (a list of names), `file`; the cell's settings by dotted key
    (`budget.memory`, in items; `learner.name`, …; NaN where a cell has none of the kind; selected values filled in);
    `training_seconds` of the seed alone, in s; of the job, which may have trained several seeds, `wall_seconds` and
    `cpu_seconds`, in s, `peak_memory_bytes`; `device`; `started`, in UTC; `code` (the digest) and `commit`.
    """
    plan, rows = fitting(scale), []
    users: dict[str, list[str]] = {}
    for target in plan.named_targets([name] if name else []):
        for key in dict.fromkeys(cell.hash for _, cell in target.cells):
            users.setdefault(key, []).append(f"{target.paper}/{target.name}")
    trained = {key: {p: s for p, s in plan.results(plan.cells[key]).items() if p.is_file()} for key in users}
    for key, files in priority.used(plan, trained, imported(scale)).items():
        for file, seeds in sorted(files.items(), key=lambda item: item[1]) if key in users else ():
            record = provenance.read_record(file)
            settings = {
                f"{part}.{option}" if option else part: value
                for part, block in record["cell"].items()
                for option, value in (block.items() if isinstance(block, dict) else [("", block)])
            }
            job = {each: record[each] for each in ("wall_seconds", "cpu_seconds", "peak_memory_bytes", "code")}
            job |= {"device": record["hardware"]["device"], "commit": record["git"]["commit"]}
            job["started"] = pd.Timestamp(record["started"])
            for seed in seeds:
                own = {"cell": key, "seed": seed, "targets": users[key], "file": str(file)}
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

    Returns `path`, `reader` (the file that was made of it; of several, the first), `depth` (0: the target's own file),
    `sha256`, `state` (`as recorded`, or what is wrong); of files with a record, `stage`, `command`, `code` (the
    digest), `commit`, `started` (UTC), `wall_seconds` and `cpu_seconds`, in s, `peak_memory_bytes`, and `data`, by data
    set the content checksums, as JSON.
    """
    target = _target(name, scale)
    file = _built(target.outputs[0], target, proven=False)
    node = ancestry.tree(file) if row is None else ancestry.of_cell(fitting(scale), target, row, column)
    rows: list[dict] = []

    def walk(node: dict, reader: str, depth: int) -> None:
        told = {key: node.get(key) for key in ("stage", "command", "code", "commit", "started")}
        told |= {key: node.get(key) for key in ("wall_seconds", "cpu_seconds", "peak_memory_bytes")}
        data = json.dumps({key: facts["sha256"] for key, facts in node.get("data", {}).items()})
        if not node.get("seen"):
            own = {key: node[key] for key in ("path", "sha256", "state")}
            rows.append(own | {"reader": reader, "depth": depth} | told | {"data": data})
        for item in node.get("inputs", []):
            walk(item, node["path"], depth + 1)

    walk(node, "", 0)
    frame = pd.DataFrame(rows)
    return frame.assign(started=pd.to_datetime(frame["started"], utc=True))


def _target(name: str, scale: str) -> Target:
    """A target by its name; `ConfigError` for a paper's, or for none."""
    paper = name.partition("/")[0]
    plan = Plan(scale, [paper] if paper in all_papers() else all_papers())
    (target, *more) = plan.named_targets([name])
    if more:
        raise ConfigError(f"{name}: a paper; name one of its targets: {', '.join(plan.targets)}")
    return target


def _built(file: Path, target: Target, *, proven: bool = True) -> Path:
    """A file of a target as its record has it, unless not to be `proven`; one not built, as published if that is."""
    again = f"snakemake {target.paper}/{target.name} --cores --config scale={target.scale}"
    there = PUBLISHED / "metrics" / target.paper / file.name
    if not file.is_file() and target.scale == "paper" and there.is_file():
        return there
    if not file.is_file():
        raise provenance.ProvenanceError(f"{file}: not built; {again}")
    if proven:
        provenance.believed({"path": str(file), "sha256": provenance.sha256(file)})
    return file


def _with_units(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame and the unit of each line's metric."""
    known = catalogue.metrics()
    names = frame["metric"].str.removeprefix(CHANCE_PREFIX)
    return frame.assign(unit=[known[name].unit if name in known else "" for name in names])
