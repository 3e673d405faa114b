"""Read and check config/reported/*.csv, the transcriptions of the numbers that papers print."""

import csv
import difflib
import io
import re
import unicodedata
from collections.abc import Collection, Mapping
from pathlib import Path

from clpapers.catalogue import metrics as catalogue
from clpapers.catalogue.names import CURVE, named, named_along, row_and_column
from clpapers.config.files import text_of
from clpapers.config.refusals import ConfigError, short_repr
from clpapers.config.schemas import schema, validate
from clpapers.metrics.factors import flat

OTHERS = {"semicolons": ";", "tabs": "\t"}  # that spreadsheets write between columns in the place of commas


def read_csv(
    path: Path, rules: str = "reported", unique: tuple[str, ...] = ("target", "row", "column", "metric")
) -> dict[str, dict[str, str]]:
    """Read a CSV file's lines, by place, such as `line 2`, and check them by a schema: by default a transcription's.

    rules: the schema's name; its required keys are the columns, and all of its keys if it has more. unique: columns in
    which no two lines are the same.

    Raises `ConfigError` that names file, line and column.
    """
    lines: dict[str, dict[str, str]] = {}
    of_line = schema(rules)["additionalProperties"]
    first_lines: dict[tuple[str, ...], str] = {}
    columns = of_line["required"]
    try:
        reader = csv.DictReader(io.StringIO(text_of(path)), strict=True)
        if reader.fieldnames == list(of_line["properties"]):
            columns = reader.fieldnames
        if reader.fieldnames != columns:
            other = next((each for each in OTHERS if OTHERS[each].join(columns) in (reader.fieldnames or ())), "")
            remedy = f"; its columns are parted by {other}, save it with commas" if other else ""
            raise ConfigError(f"{path}: line 1 is not {','.join(columns)}{remedy}")
        for line in reader:
            where = f"line {reader.line_num}"
            if None in line or None in line.values():
                raise ConfigError(f"{path}: {where} does not have {len(columns)} columns; quote what holds a comma")
            first = first_lines.setdefault(tuple(line[key] for key in unique), where)
            if first != where:
                same = f"{', '.join(unique[:-1])} and {unique[-1]}"
                raise ConfigError(f"{path}: {where} is of the same {same} as {first}")
            lines[where] = line
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file") from None
    except csv.Error as error:
        raise ConfigError(f"{path}: line {reader.reader.line_num}: {error}") from None
    validate(lines, schema(rules), path)
    return lines


def check_names(file: Path, lines: Mapping[str, Mapping[str, str]], target: Mapping, levels: Mapping) -> None:
    """Refuse lines that name no row, column or metric of their target, each with the nearest name.

    lines: of a transcription, by place. levels: by factor of the target's grid, its levels at this and at the paper's
    scale; empty where it has no grid. A formula holds of all columns, so that its column may have any name.
    """
    metrics, along = catalogue.metrics_of(target), target.get("along")
    if levels:
        rows, columns = (_displayed(file, target, factor, levels) for factor in row_and_column(target))
        if along:  # the places on a curve are known once it is measured: any number stands for 1
            places = [1] if along in CURVE else [each for each in levels[along] if isinstance(each, int | float)]
            rows = [named_along(target, row, place) for row in rows for place in places]
    else:
        declared = catalogue.measures()[target["measure"]].rows
        rows, metrics = [named(target, row) for row in declared], [*metrics, *declared.values()]
        columns = [named(target, stream["dataset"]) for stream in target.get("streams", [])] or [""]
    for place, line in lines.items():
        row, _, number = line["row"].rpartition(" ")
        on_curve = along in CURVE and re.fullmatch(r"(0|[1-9]\d*)(\.\d*[1-9])?", number, re.ASCII)
        named_there = {"row": (f"{row} 1" if on_curve else line["row"], rows), "metric": (line["metric"], metrics)}
        if line["spread_kind"] != "formula":
            named_there["column"] = line["column"], columns
        for key, (name, allowed) in named_there.items():
            _one_of(f"{file}: {place}.{key}", name, allowed, target)


def _displayed(file: Path, target: Mapping, factor: str, levels: Mapping) -> list[str]:
    """The display names of a factor's levels; refuses two levels of one name, which no line can tell apart."""
    found: dict[str, object] = {}
    for level in flat(dict(enumerate(levels[factor]))).values():
        other = found.setdefault(named(target, level), level)
        if other != level:
            both = f"{other} and {level} are both {short_repr(named(target, level))}"
            raise ConfigError(f"{file}: its lines cannot tell levels of {factor} apart: {both}; give them other names")
    return [*found]


def _one_of(where: str, name: str, allowed: Collection[str], target: Mapping) -> None:
    """Refuse a name that is not allowed, with the nearest that is; in escapes where both look the same.

    The nearest to the name of a level itself is the one that its target displays.
    """
    if name in allowed:
        return
    if not allowed:
        raise ConfigError(f"{where}: {short_repr(name)}: its target has no numbers to compare; take the line out")
    by_form = {each.strip().casefold(): each for each in allowed}
    (form,) = difflib.get_close_matches(named(target, name).strip().casefold(), by_form, n=1, cutoff=0)
    near = by_form[form]
    shown = ascii if unicodedata.normalize("NFKC", name) == unicodedata.normalize("NFKC", near) else short_repr
    raise ConfigError(f"{where}: {shown(name)} is no name in its target; the nearest is {shown(near)}")
