"""The ancestry of a file, or of one number of a table, from records: as a tree, and as text."""

import dataclasses
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import pandas as pd

from clpapers import provenance
from clpapers.archive.imported import folder_of, source_of
from clpapers.catalogue.names import named, row_and_column
from clpapers.config.model import Cell, Target
from clpapers.config.paths import dataset_path, stream_path
from clpapers.config.plan import Plan
from clpapers.config.refusals import ConfigError
from clpapers.metrics.factors import flat
from clpapers.provenance import (
    AS_RECORDED,
    BY_CHECKSUM,
    CHANGED,
    MISSING,
    NOT_AS_RECORDED,
    Files,
    ProvenanceError,
    as_published,
    read_record,
    record_apart,
    record_path,
)

T = TypeVar("T")


# --- the tree ------------------------------------------------------------------------------------------------


def tree(path: Path | str, files: Files | None = None, keep: Callable[[str], bool] | None = None) -> dict:
    """The ancestry of a file, down to the data sets.

    files: pass the same to several calls to read no file twice.
    keep: whether to follow an input, by its path; by default all.

    Returns
    -------

    - `path`, `sha256` (None if missing) and `state`, one of

        - `as recorded`
        - `NOT AS RECORDED`, if the bytes differ from its record
        - `CHANGED since it was read`, if a later job has made it again since its descendant read it
        - `MISSING`
        - `by checksum`, if the file is absent and only the record that an imported run was trained with exists
        - `no record`, as for a file of the configuration
        - `seal is not of its content`, of a record that is an input

    - for an imported run, `source`: the crate (`name`, `imported`, `manifest`)
    - with a record, its `stage`, `command`, `code`, `commit`, `dirty`, `started`, `wall_seconds`, `cpu_seconds`,
      `peak_memory_bytes`, `device`, `machine`, `data`, and `inputs`, a list of such dictionaries

    A file met before has only the first three and `seen`.
    """
    files, seen = files or Files(), set()

    def describe(item: dict) -> dict:
        file = item["path"]
        own, since = files.state(file), files.state_since(item) if "sha256" in item else AS_RECORDED
        state = since if since in (MISSING, BY_CHECKSUM) or (since == CHANGED and own != NOT_AS_RECORDED) else own
        node = {"path": file, "sha256": files.digest(file) or None, "state": state}
        if state == BY_CHECKSUM:
            record = record_apart(Path(file).parts[1], item) or b""
            return with_facts(node | {"sha256": item["sha256"]}, json.loads(record))
        found = files.record(file)
        if state == MISSING or found is None or Path(file) == record_path(file):
            return node
        if provenance.is_imported(file):
            crate = source_of(Path(file), files.digest(file)) or {"name": "no crate", "imported": "–", "manifest": "–"}
            node["source"] = crate
        return with_facts(node, found)

    def with_facts(node: dict, record: dict) -> dict:
        if node["path"] in seen:
            return node | {"seen": True}
        seen.add(node["path"])
        return node | {
            **{key: record[key] for key in ("stage", "command", "code")},
            **record["git"],
            **{key: record[key] for key in ("started", "wall_seconds", "cpu_seconds", "peak_memory_bytes")},
            "device": record["hardware"].get("device", "cpu"),
            "machine": provenance.device_of(record["hardware"]),
            "data": record["data"],
            "inputs": [describe(item) for item in record["inputs"] if not keep or keep(item["path"])],
        }

    return describe({"path": str(path)})


def of_cell(plan: Plan, target: Target, row: str, column: str) -> dict:
    """The ancestry of one number of a table: its CSV's ancestry, without the runs of other numbers.

    row, column: as the CSV prints them; if it has no such columns, its two factors (`selection`), or its `net` and "".

    Returns the keys of `tree`, and

    - `row`, `column`
    - `value`, the CSV's lines on it, each a dictionary of texts
    - `cells`: for each cell that it descends from `cell` (the hash), `factors`, `view` and `settings`, with selected
      values filled in
    - `narrowed`: False if the number's own files are unknown; then these are all of the table's

    Raises `ConfigError` if the table has no such row or column, `ProvenanceError` if it is not built.
    """
    if target.spec["kind"] != "table":
        raise ConfigError(f"{target.paper}/{target.name}: a figure has no cells; ask for the whole file's lineage")
    file = target.stem.with_name(f"{target.name}.csv")
    if not file.is_file():
        raise ProvenanceError(f"{file}: no such file; build it with snakemake")
    printed = _printed(file)
    down, across = _headings(target, printed)
    rows, columns = printed[down], printed[across] if across else pd.Series("", index=printed.index)
    for axis, name, names in (("row", row, rows), ("column", column, columns[rows == row])):
        if name not in set(names):
            available = ", ".join(repr(each) for each in dict.fromkeys(names))
            raise ConfigError(f"{file}: no {axis} {name!r}; there are: {available}")
    part = _part_of_number(target, row, column, display=down == "row")
    dropped = set() if part is None else _sources(plan, target) - _sources(plan, part)
    node = tree(file, keep=lambda path: not {own := Path(as_published(path)), own.parent} & dropped)
    chosen = part or target
    points = [point for _, search in chosen.selections for point in search.points]
    return node | {
        "row": row,
        "column": column,
        "value": printed[(rows == row) & (columns == column)].to_dict("records"),
        "cells": [cell_facts(*pair) for pair in (*chosen.cells, *points)],
        "narrowed": part is not None,
    }


def cell_facts(factors: dict, cell: Cell) -> dict:
    """A cell that a number descends from: `cell`, `factors`, `view` and `settings` (see `of_cell`)."""
    return {"cell": cell.hash, "factors": factors, "view": cell.test_restriction, "settings": trained_settings(cell)}


def _printed(file: Path) -> pd.DataFrame:
    try:
        return pd.read_csv(file, dtype=str, keep_default_na=False)
    except ValueError as error:  # pandas cannot parse the file
        raise ProvenanceError(f"{file}: not a table ({error}); snakemake {file} --cores --force") from None


def _headings(target: Target, printed: pd.DataFrame) -> tuple[str, str | None]:
    """The columns of a table's CSV that name its rows and its columns; None if it has one column of numbers."""
    for down, across in (("row", "column"), row_and_column(target.spec)):
        if {down, across} <= set(printed):
            return down, across
    return printed.columns[0], None


def _part_of_number(target: Target, row: str, column: str, *, display: bool) -> Target | None:
    """The target with only the cells, selections, streams and nets of one number; None if these are unknown.

    display: whether its CSV has display names. A row without a level of that name combines several: a ratio combines
    its two learners, the chance level all methods of its column.
    """
    spec = target.spec
    down, across = row_and_column(spec)
    parts = {
        "cells": [flat(factors) for factors, _ in target.cells],
        "selections": [flat(factors) for factors, _ in target.selections],
        "streams": [{across: dataset} for dataset, *_ in target.streams],
        "nets": [{"net": net} for net in spec.get("nets", [])],
    }
    part, factors = next(((part, each) for part, each in parts.items() if each), (None, []))
    if part is None:
        return target  # of one simulation
    frame = pd.DataFrame(factors)  # types as in the metrics' file, so that levels are named as in the table
    names = frame.map(lambda level: named(spec, level) if display else str(level))
    heading = "net" if part == "nets" else down
    matches = pd.Series(True, index=frame.index)
    if heading in names:
        rows = names[heading]
        learners = [row] if row in set(rows) else [named(spec, each) for each in _divided(spec, row)]
        matches = rows.isin(learners or rows)
    if across in names:
        matches &= names[across] == column
    if not matches.any():
        return None
    if part == "cells" and spec.get("ideal"):  # the divisor of Ω_all: the ideal's run with the same other factors
        others = [repr(_without_learner(each)) for each, _ in target.cells]
        divided = {each for each, match in zip(others, matches) if match}
        is_ideal = frame["learner"] == spec["ideal"]
        matches |= is_ideal & pd.Series(others).isin(divided)

    def matching(items: Sequence[T]) -> tuple[T, ...]:
        return tuple(item for item, match in zip(items, matches) if match)

    if part == "cells":
        return dataclasses.replace(target, cells=matching(target.cells))
    if part == "selections":
        return dataclasses.replace(target, selections=matching(target.selections))
    if part == "streams":
        return dataclasses.replace(target, streams=matching(target.streams))
    spec = spec | {"nets": [*matching(spec["nets"])]}
    return dataclasses.replace(target, spec=spec, nets=matching(target.nets))


def _divided(spec: dict, row: str) -> list[str]:
    """The two learners whose ratio a row of a table of costs shows; none if it is no ratio."""
    if not spec.get("ratios"):
        return []
    from clpapers.targets.cost_table import ratio_name

    return next((pair for pair in spec["ratios"] if ratio_name(spec, pair) == row), [])


def _without_learner(factors: dict) -> dict:
    return {key: value for key, value in factors.items() if key.partition(".")[0] != "learner"}


def _sources(plan: Plan, target: Target) -> set[Path]:
    """The files that a target's numbers may be read from; of runs, the folders."""
    datasets = {dataset for dataset, *_ in target.streams} | {factors["dataset"] for factors, _ in target.cells}
    nets = {plan.net_file(target.paper, name) for name in (*target.spec.get("nets", []), *datasets)}
    streams = {stream_path(plan.scale, *stream) for stream in target.streams}
    drawn_from = {dataset_path(plan.scale, dataset) for dataset, *_ in target.streams}
    runs = {cell.folder for _, cell in target.cells}
    return nets | streams | drawn_from | runs | {search.file for _, search in target.selections}


def trained_settings(cell: Cell) -> dict:
    """A cell's settings by its runs' records, or else by the plan."""
    folders = cell.folder, folder_of(cell.scale) / Path(*cell.folder.parts[3:])
    for file in (file for folder in folders for file in sorted(folder.glob("seed*.record.json"))):
        recorded = read_record(file).get("cell")
        return recorded if isinstance(recorded, dict) else cell.spec
    return cell.spec


# --- as text -------------------------------------------------------------------------------------------------


def text(node: dict, depth: int = 0) -> Iterator[str]:
    """A tree as lines, indented by generation, down to the data sets' checksums."""
    pad = "  " * depth
    if depth == 0 and "row" in node:
        yield f"{node['row']}, {node['column']}" if node["column"] else node["row"]
        for line in node["value"]:
            yield "    " + ", ".join(f"{key} {value}" for key, value in line.items() if value)
        if not node["narrowed"]:
            yield "    not narrowed down: this is the ancestry of the whole table"
        for cell in node["cells"]:
            yield f"    cell {cell['cell']}: " + ", ".join(f"{key} {value}" for key, value in cell["factors"].items())
    mark = "" if node["state"] == AS_RECORDED else f"  {node['state']}"
    digest = f"  {node['sha256'][:12]}" if node["sha256"] else ""
    yield f"{pad}{node['path']}{digest}{mark}{' (see above)' if node.get('seen') else ''}"
    if "stage" not in node:
        return
    commit = f"{(node['commit'] or 'no git')[:10]}{'+dirty' if node['dirty'] else ''}"
    yield f"{pad}    {node['command']}"
    yield f"{pad}    code {node['code']} at {commit}, {node['started']}, {node['wall_seconds']} s"
    if source := node.get("source"):
        crate = f"{source['name']} on {source['imported']}, manifest {source['manifest'][:12]}"
        yield f"{pad}    trained at commit {commit}, on {node['machine']}, imported from {crate}"
    if node["stage"] in ("datasets", "weights"):
        for name, facts in node["data"].items():
            sums = ", ".join(f"{split} {digest}" for split, digest in facts["sha256"].items())
            yield f"{pad}    data {name} from {facts['source']}, {facts['proof']}: {sums}"
    for each in node["inputs"]:
        yield from text(each, depth + 1)
