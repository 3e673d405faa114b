"""The ancestry of a file, or of one number of a table, from records: as a tree, text and a picture."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd

from clpapers import provenance
from clpapers.archive.imported import folder_of, source_of
from clpapers.catalogue.names import named, row_and_column
from clpapers.config.model import Cell, Target
from clpapers.config.paths import stream_path
from clpapers.config.plan import Plan
from clpapers.config.refusals import ConfigError
from clpapers.metrics.factors import flat
from clpapers.provenance import ProvenanceError, as_published, read_record, record_path

AS_RECORDED, NOT_AS_RECORDED = "as recorded", "NOT AS RECORDED"
CHANGED, MISSING, NO_RECORD = "CHANGED since it was read", "MISSING", "no record"
BY_CHECKSUM = "by checksum"  # an input of an imported run, where it was trained


# --- the tree ------------------------------------------------------------------------------------------------


def tree(
    path: Path | str, digest: Callable[[str], str] | None = None, keep: Callable[[str], bool] | None = None
) -> dict:
    """The ancestry of a file, down to the data sets.

    digest: gives a file's SHA-256; give several calls one `functools.cache(provenance.sha256)` to read no file twice.
    keep: whether to follow an input, by its path; by default all.

    Returns
    -------
    `path`, `sha256` (None if missing), `state`: `as recorded`; `NOT AS RECORDED`, if the bytes differ from its record;
    `CHANGED since it was read`, if a later job than the one that its descendant read made it anew; `MISSING`;
    `by checksum`, if it is not here but the record that an imported run was trained with; or `no record`, as for a file
    of the configuration. Of an imported run `source`: the crate (`name`, `imported`, `manifest`). With a record: its
    `stage`, `command`, `code`, `commit`, `dirty`, `started`, `wall_seconds`, `cpu_seconds`, `peak_memory_bytes`,
    `device`, `machine`, `data`, and `inputs`, a list of such dictionaries. A file met before has only the first three
    and `seen`.
    """
    digest, seen = digest or functools.cache(provenance.sha256), set()

    def describe(file: str, read: str | None, with_record: str = "") -> dict:
        if not Path(file).is_file():
            place = provenance.record_apart(Path(file).parts[1], with_record) if with_record else None
            if place is None or not place.is_file():
                return {"path": file, "sha256": None, "state": MISSING}
            return told({"path": file, "sha256": read, "state": BY_CHECKSUM}, provenance.parse_record(place, file))
        found = digest(file)
        node = {"path": file, "sha256": found, "state": AS_RECORDED if read in (None, found) else CHANGED}
        if Path(file) == record_path(file):
            return node
        try:
            record = read_record(file)
        except ProvenanceError:
            return node if node["state"] == CHANGED else node | {"state": NO_RECORD}
        own = next((o["sha256"] for o in record["outputs"] if Path(o["path"]).name == Path(file).name), None)
        if own != found:
            node["state"] = NOT_AS_RECORDED
        if provenance.is_imported(file):
            node["source"] = source_of(Path(file), found) or {"name": "no crate", "imported": "–", "manifest": "–"}
        return told(node, record)

    def told(node: dict, record: dict) -> dict:
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
            "inputs": [
                describe(item["path"], item["sha256"], str(item.get("record", "")))
                for item in record["inputs"]
                if not keep or keep(item["path"])
            ],
        }

    return describe(str(path), None)


def of_cell(plan: Plan, target: Target, row: str, column: str, digest: Callable[[str], str] | None = None) -> dict:
    """The ancestry of one number of a table: that of its CSV, without the runs of other numbers.

    row, column: as the CSV prints them; if it has no such columns, its two factors (`selection`), or its `net` and "".
    digest: as for `tree`.

    Returns as `tree`, and `row`, `column`; `value`, the CSV's lines on it, each a dictionary of texts; `cells`: of each
    cell behind it `cell` (the hash), `factors`, `view` and `settings`, with selected values filled in; `narrowed`:
    False if the number's own files are unknown, so that these are all of the table's.

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
    for axis, given, there in (("row", row, rows), ("column", column, columns[rows == row])):
        if given not in set(there):
            known = ", ".join(repr(each) for each in dict.fromkeys(there))
            raise ConfigError(f"{file}: no {axis} {given!r}; there are: {known}")
    own = _behind(target, row, column, display=down == "row")
    dropped = set() if own is None else _places(plan, target) - _places(plan, own)
    node = tree(file, digest, lambda path: not {own := Path(as_published(path)), own.parent} & dropped)
    chosen = own or target
    points = [point for _, search in chosen.selections for point in search.points]
    return node | {
        "row": row,
        "column": column,
        "value": printed[(rows == row) & (columns == column)].to_dict("records"),
        "cells": [described(*pair) for pair in (*chosen.cells, *points)],
        "narrowed": own is not None,
    }


def described(factors: dict, cell: Cell) -> dict:
    """A cell behind a number: `cell`, `factors`, `view` and `settings` (see `of_cell`)."""
    return {"cell": cell.hash, "factors": factors, "view": cell.test_restriction, "settings": trained(cell)}


def rows_and_columns(target: Target) -> list[tuple[str, str]]:
    """The rows and columns of a built table, as `of_cell` takes them; numbers that share both share their ancestry."""
    printed = _printed(target.stem.with_name(f"{target.name}.csv"))
    down, across = _headings(target, printed)
    columns = printed[across] if across else [""] * len(printed)
    return list(dict.fromkeys(zip(printed[down], columns)))


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


def _behind(target: Target, row: str, column: str, *, display: bool) -> Target | None:
    """The target with only the cells, selections, streams and nets behind one number; None if these are unknown.

    display: whether its CSV has display names. A row without a level of that name combines several: a ratio, its two
    learners; chance level, all methods of its column.
    """
    spec = target.spec
    down, across = row_and_column(spec)
    made_of = {
        "cells": [flat(factors) for factors, _ in target.cells],
        "selections": [flat(factors) for factors, _ in target.selections],
        "streams": [{across: dataset} for dataset, *_ in target.streams],
        "nets": [{"net": net} for net in spec.get("nets", [])],
    }
    part, factors = next(((part, each) for part, each in made_of.items() if each), (None, []))
    if part is None:
        return target  # of one simulation
    frame = pd.DataFrame(factors)  # types as in the metrics' file, so that levels are named as in the table
    names = frame.map(lambda level: named(spec, level) if display else str(level))
    heading = "net" if part == "nets" else down
    matches = pd.Series(True, index=frame.index)
    if heading in names:
        rows = names[heading]
        wanted = [row] if row in set(rows) else [named(spec, each) for each in _divided(spec, row)]
        matches = rows.isin(wanted or rows)
    if across in names:
        matches &= names[across] == column
    if not matches.any():
        return None
    if part == "cells" and spec.get("ideal"):  # the divisor of Ω_all: the ideal's run, all else alike
        alike = [repr(_apart_from_learner(each)) for each, _ in target.cells]
        divided = {each for each, match in zip(alike, matches) if match}
        is_ideal = frame["learner"] == spec["ideal"]
        matches |= is_ideal & pd.Series(alike).isin(divided)
    kept = [i for i, match in enumerate(matches) if match]
    if part == "nets":
        spec = spec | {"nets": [spec["nets"][i] for i in kept]}
    taken = tuple(getattr(target, part)[i] for i in kept)
    return dataclasses.replace(target, spec=spec, **{part: taken})


def _divided(spec: dict, row: str) -> list[str]:
    """The two learners whose ratio a row of a table of costs shows; none if it is no ratio."""
    if not spec.get("ratios"):
        return []
    from clpapers.targets.cost_table import ratio_name

    return next((pair for pair in spec["ratios"] if ratio_name(spec, pair) == row), [])


def _apart_from_learner(factors: dict) -> dict:
    return {key: value for key, value in factors.items() if key.partition(".")[0] != "learner"}


def _places(plan: Plan, target: Target) -> set[Path]:
    """The files that a target's numbers may be read from; of runs, the folders."""
    datasets = {dataset for dataset, *_ in target.streams} | {factors["dataset"] for factors, _ in target.cells}
    nets = {plan.net_file(target.paper, name) for name in (*target.spec.get("nets", []), *datasets)}
    streams = {stream_path(plan.scale, *stream) for stream in target.streams}
    shown = {Path("results", plan.scale, "datasets", f"{dataset}.npz") for dataset, *_ in target.streams}
    runs = {cell.folder for _, cell in target.cells}
    return nets | streams | shown | runs | {search.file for _, search in target.selections}


def trained(cell: Cell) -> dict:
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


# --- as a picture --------------------------------------------------------------------------------------------

COLOURS = {  # of the boxes, by stage
    "configuration": "#eeeeee",
    "datasets": "#cfe3f5",
    "weights": "#cfe3f5",
    "features": "#cfe3f5",
    "streams": "#d5ecd9",
    "selection": "#f3e2f0",
    "gans": "#fdebc8",
    "runs": "#fdebc8",
    "metrics": "#f8d7cd",
    "targets": "#e0daf2",
}
ONE_BY_ONE, OF_A_CELL = 6, 24  # siblings drawn one by one, for a file and for one number; more share a box
WIDTH, HEIGHT = 2.3, 0.62  # inches from box to box


def graph(node: dict, one_by_one: int = ONE_BY_ONE) -> tuple[dict[str, dict], set[tuple[str, str]]]:
    """A tree's files as boxes; more than `one_by_one` siblings, of one stage, data set and state, share a box.

    Returns the boxes, by name: `label`, `stage`, `state` and `files`; and the pairs of an input's box and its reader's.
    """
    files: dict[str, dict] = {}
    read: set[tuple[str, str]] = set()

    def walk(each: dict) -> None:
        known = files.setdefault(each["path"], each)
        if "stage" not in known and "stage" in each:
            files[each["path"]] = each
        for item in each.get("inputs", []):
            read.add((item["path"], each["path"]))
            walk(item)

    walk(node)
    groups: dict[tuple, list[str]] = {}
    for path, each in files.items():
        parts = Path(path).parts
        stage = each.get("stage") or (parts[2] if parts[0] == "results" and len(parts) > 3 else "configuration")
        of = parts[3] if stage in ("streams", "gans", "runs") and len(parts) > 4 else ""
        groups.setdefault((stage, of, each["state"]), []).append(path)
    boxes, box_of = {}, {}
    for (stage, of, state), paths in groups.items():
        together = [paths] if len(paths) > one_by_one else [[path] for path in paths]
        for each in together:
            name = each[0] if len(each) == 1 else f"{stage} {of} {state}"
            label = _short(each[0]) if len(each) == 1 else " ".join([str(len(each)), stage, of]).strip()
            boxes[name] = {"label": label, "stage": stage, "state": state, "files": each}
            box_of |= dict.fromkeys(each, name)
    return boxes, {(box_of[a], box_of[b]) for a, b in read if box_of[a] != box_of[b]}


def _short(path: str) -> str:
    """A file's label: its path below its stage, a line a part."""
    parts = Path(path).parts
    return "\n".join(parts[3:] if parts[0] == "results" and len(parts) > 3 else parts[1:] or parts)


def picture(node: dict, path: Path | str, one_by_one: int = ONE_BY_ONE) -> None:
    """Draw a tree, from the data on the left to the file on the right, as an SVG: same tree, same bytes.

    A box whose files are not as recorded has a red border and says so.
    """
    import matplotlib as mpl
    import networkx
    from matplotlib.figure import Figure

    boxes, arrows = graph(node, one_by_one)
    readers = networkx.DiGraph((reader, read) for read, reader in arrows)
    readers.add_nodes_from(boxes)
    layers = enumerate(networkx.topological_generations(readers))  # by the longest way to the file
    columns = {layer: sorted(names, key=list(boxes).index) for layer, names in layers}
    deepest, tallest = max(columns), max(map(len, columns.values()))
    place = {
        name: ((deepest - layer) * WIDTH, (len(names) - 1) / 2 * HEIGHT - i * HEIGHT)
        for layer, names in columns.items()
        for i, name in enumerate(names)
    }
    settings = {"svg.fonttype": "none", "svg.hashsalt": "clpapers", "font.family": "DejaVu Sans", "font.size": 6}
    with mpl.rc_context(settings), provenance.write_atomically(Path(path)) as temporary:
        figure = Figure(figsize=((deepest + 1) * WIDTH, max(tallest, 2) * HEIGHT))
        axes = figure.add_axes([0, 0, 1, 1])
        half = max(tallest, 2) / 2 * HEIGHT
        axes.set(xlim=(-WIDTH / 2, (deepest + 0.5) * WIDTH), ylim=(-half, half))
        axes.axis("off")
        drawn = {}
        for name, box in boxes.items():
            fine = box["state"] in (AS_RECORDED, NO_RECORD, BY_CHECKSUM)
            style = {"boxstyle": "round,pad=0.5", "fc": COLOURS.get(box["stage"], "white"), "lw": 0.6}
            label = box["label"] if fine else f"{box['label']}\n{box['state']}"
            drawn[name] = axes.text(
                *place[name], label, ha="center", va="center", bbox=style | {"ec": "0.5" if fine else "#bd1f01"}
            )
        for a, b in sorted(arrows):
            axes.annotate(
                "",
                xy=place[b],
                xytext=place[a],
                zorder=5,  # after the boxes, which only then know where they end
                arrowprops={
                    "arrowstyle": "-|>",
                    "mutation_scale": 6,
                    "lw": 0.6,
                    "color": "0.5",
                    "patchA": drawn[a].get_bbox_patch(),
                    "patchB": drawn[b].get_bbox_patch(),
                },
            )
        figure.savefig(temporary, format="svg", metadata={"Date": None, "Creator": None})
