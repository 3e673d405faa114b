"""Compares printed numbers with ours, with a grade for each."""

import dataclasses
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from clpapers.catalogue import metrics as catalogue
from clpapers.catalogue.names import named, named_along, row_and_column
from clpapers.evidence.grades import ALIKE, MEANINGS, Judged, estimated, excludes_zero, judge, nearest
from clpapers.evidence.pooled import KEY, POOLED, pooled, pooled_texts
from clpapers.evidence.verdict_names import (
    CALIBRATED,
    DIFFERS,
    DIVERGES,
    EXACT,
    GRADES,
    GUESS,
    NOT_COMPARABLE,
    OPEN,
    SAME,
    TRAINED,
    WEAK,
)
from clpapers.metrics.intervals import NIL, Estimate, critical
from clpapers.targets.footnotes import Notes
from clpapers.targets.numbers import numbers
from clpapers.targets.table import NO_MEMORY, Table, bold_in, plus_minus, rounded, signed

EQUAL = "equal values"  # the cause of a verdict without a spread to go by
COLUMNS = [
    *("value", "decimals", "spread_kind", "half_width", "n", "cut", "note"),
    *("authors", "authors_half_width", "source"),
    *("graded_against", "against_se", "against_n", "below", "above"),
]
SPREAD_KIND = re.compile(r"(ci95_halfwidth|standard_error|spread|population_sd|mean)_(\d+)_runs")
MOST_DECIMALS = 3  # in numbers that only the authors give
COMPARED = ", printed and ours"  # ends the title of the table of the comparison
EXPLANATION = (
    "Ours minus printed, with its 95 % interval, and the distance that the runs exclude: the least m for which "
    f"the 90 % interval lies within ±m. {'; '.join(f'‘{grade}’: {meaning}' for grade, meaning in MEANINGS.items())}. "
    f"The margins are {catalogue.margins_told()}. ‘Resolved’: the same, though the interval leaves zero out. "
    "The interval is Welch’s, or our mean’s where no spread is printed. It is widened by half a unit of the "
    "printed last digit, unless a spread of no more digits is printed."
)
DIVERGED = " ∞ is a run that diverged; over ∞ it ‘diverges, as printed’, and over a number it differs."
SHORT = " OoM (out of memory) is not comparable, as memories differ in size."
DEVIATION = (
    " The spreads that the paper prints are population standard deviations; ‘printed’ shows the 95 % half-width that "
    "follows."
)
AMBIGUOUS = (
    " Brackets of which the paper does not say whether they are standard errors or standard deviations are read as "
    "standard errors; ‘printed’ shows the 95 % half-width that follows."
)
SINGLE = (
    " ‘One run’: weak evidence; the interval is the one in which one more run of the paper's own would differ, by the "
    "printed spread."
)
CUT = (
    " The paper rounds some numbers and cuts others off: one printed stands for all from half a unit of its last digit "
    "below to a unit above."
)
AUTHORS = (
    " ‘Graded against’: the authors' own number, from the file named. It serves a target in which each printed number "
    "that has one is this one, rounded or cut off. Or else the target is graded against print."
)
ALL_EQUAL = (
    " ‘Equal values’: runs without any spread give no interval; they are the same if they are the printed value."
)
CHOSEN = " ‘Calibrated’: a choice that the paper leaves open was read off this number, so it is no check."
GUESSED = " ‘Guess’: nothing is trained. ‘Exact’: no run decides it."


def transcribed(path: Path | str, paper: str, target: str) -> pd.DataFrame:
    """The lines of a transcription `config/reported/*.csv` on one target of a paper, as texts.

    Every plan has checked them (`config.reported`), so that renderings need not depend on the checks.
    """
    lines = pd.read_csv(path, dtype=str, keep_default_na=False)
    return lines[(lines["paper"] == paper) & (lines["target"] == target)]


def read_reported(path: Path | str, paper: str, target: str) -> pd.DataFrame:
    """The numbers that `paper` prints in `target`, from a transcription `config/reported/*.csv`.

    Returns the columns `row`, `column`, `metric`, `value` (∞ if the paper says that the method diverged, NaN if it
    prints none), `decimals` (the most printed for this metric), `spread_kind` (without the runs), `half_width` (95 %,
    NaN if none is printed), `n` (the paper's runs, 0 if unknown), `cut` (whether the paper may have cut digits off) and
    `note`. The authors' own number has `authors`, `authors_half_width` (both NaN if there is none) and `source`.

    The comparison takes `graded_against` with `against_se` (standard error) and `against_n` (runs). It is the authors'
    number, if each printed number of the target that has one is it, cut off or rounded; or else it is the printed one.
    A number without a spread takes that of the other, where both are one. A printed number may be `below` less and
    `above` more: half a unit of the last digit, 0 beside a spread of no more digits; half a unit and a whole one if
    `cut`.

    The kind `spread_<n>_runs`, which the paper does not define, is read as a standard error. Lines of the kind
    `formula` are left out; those noted `out of memory` have no number.
    """
    lines, rows = transcribed(path, paper, target), []
    lines = lines[lines["spread_kind"] != "formula"]
    own_lines = [line for line in lines.to_dict("records") if line["value"] and line.get("authors")]
    served = all(_is_one(line["value"], line["authors"]) for line in own_lines)
    for line in lines.to_dict("records"):
        value = np.nan if line["note"] == NO_MEMORY else float(line["value"] or "nan")
        kind, se, n = "", np.nan, 0
        if match := SPREAD_KIND.fullmatch(line["spread_kind"]):
            kind, n = match[1], int(match[2])
        if line["spread"]:
            scale = {"ci95_halfwidth": critical(n - 1), "population_sd": np.sqrt(n - 1)}.get(kind, 1.0)
            se = float(line["spread"]) / float(scale)
        digits, spread_digits = (len(line[part].partition(".")[2]) for part in ("value", "spread"))
        cut, unit = line.get("digits") == "cut", 10.0**-digits
        half_unit = unit / 2 if spread_digits > digits or not line["spread"] or cut else 0.0
        spread, authors, own = (se, n), (np.nan, np.nan), line.get("authors", "")
        against, below, above = value, half_unit, unit if cut else half_unit
        if own:
            finer, finer_se, finer_n = _authors(own, line["authors_sd"], line["authors_runs"])
            authors = finer, _half_width(finer_se, finer_n)
            if served:
                against, below, above = finer, 0.0, 0.0
            if not np.isnan(finer_se) and (served or (np.isnan(se) and _is_one(line["value"], own))):
                spread = finer_se, finer_n
        decimals = max(digits, spread_digits) if line["value"] else min(len(own.partition(".")[2]), MOST_DECIMALS)
        rows.append(
            {
                **{key: line[key] for key in KEY},
                **{"value": value, "decimals": decimals, "spread_kind": kind, "half_width": _half_width(se, n)},
                **{"n": n, "cut": cut, "note": line["note"]},
                **dict(zip(("authors", "authors_half_width"), authors)),
                "source": line.get("source", ""),
                **{"graded_against": against, "against_se": spread[0], "against_n": spread[1]},
                **{"below": below, "above": above},
            }
        )
    reported = pd.DataFrame(rows, columns=[*KEY, *COLUMNS])
    return reported.assign(decimals=reported.groupby("metric")["decimals"].transform("max"))


def _is_one(printed: str, authors: str) -> bool:
    """Whether a printed number is the authors', rounded or cut off."""
    unit = 10.0 ** -len(printed.partition(".")[2])
    return bool(printed) and -unit / 2 <= float(authors) - float(printed) < unit


def _authors(value: str, sd: str, runs: str) -> tuple[float, float, int]:
    """An authors' number, its standard error (NaN without a population standard deviation), and its runs."""
    n = int(runs or 0)
    return float(value), float(sd) / np.sqrt(n - 1) if sd else np.nan, n


def _half_width(se: float, n: int) -> float:
    return se * float(critical(n - 1)) if n > 1 else np.nan


def _estimate(cell: pd.Series) -> tuple[Estimate, str]:
    """Ours − printed, from one merged line (see `compare`), and the rule that its interval follows."""
    if np.isinf([cell["mean"], cell.graded_against]).any():
        return Estimate(np.nan, np.nan, np.nan), ALIKE
    without_error = cell.kind == EXACT and pd.isna(cell.against_se)  # no run of the paper decided it
    runs = np.inf if without_error else cell.against_n
    return estimated(cell["mean"], cell.se, cell.n, cell.graded_against, cell.against_se, runs)


class Verdict(NamedTuple):
    """The verdict on one cell; `cause` in two words and `reason` at length say why it is weak or cannot be compared."""

    verdict: str
    cause: str = ""
    reason: str = ""


def _obstacle(cell: pd.Series, notes: Notes) -> Verdict | None:
    """Why a number cannot be compared, if it cannot."""
    if pd.isna(cell.graded_against):
        cause = "out of memory in the paper" if cell.note_reported == NO_MEMORY else "not printed"
        reason = ": ".join(filter(None, ["the paper prints no number", cell.note_reported]))
        return Verdict(NOT_COMPARABLE, cause, reason)
    if pd.isna(cell["mean"]):
        if cell.note == NO_MEMORY:
            return Verdict(NOT_COMPARABLE, "out of memory here", "memory did not suffice here")
        return Verdict(NOT_COMPARABLE, "not run", notes.why_not_run())
    obstacles = {"stand-in data": f"{cell.dataset}: {cell.standin}"} if cell.standin else {}
    if notes.reductions:
        obstacles["reduced scale"] = "; ".join(notes.reductions)
    if cell.hardware:
        obstacles["other hardware"] = f"{cell.hardware} here, another GPU in the paper"
    if obstacles:
        reasons = [f"{cause}: {detail}" for cause, detail in obstacles.items()]
        return Verdict(NOT_COMPARABLE, ", ".join(obstacles), "; ".join(reasons))
    return None


def _verdict_on(cell: pd.Series, rule: str, estimate: Estimate, judged: Judged) -> Verdict:
    if rule == ALIKE:
        return Verdict(DIVERGES if cell["mean"] == cell.graded_against else DIFFERS)
    if np.isnan(judged.low):
        return Verdict(NOT_COMPARABLE, "one run", "one run gives no interval, and none is printed")
    if estimate.se <= NIL and cell.kind != EXACT:
        printed = not excludes_zero(judged.low, judged.high)
        reason = f"{cell.n} equal values give no interval"
        return Verdict(SAME if printed else OPEN, EQUAL, f"{reason}; they are the printed one" if printed else reason)
    if cell.n == 1 and cell.kind != EXACT:
        return Verdict(str(judged.grade), WEAK, "weak evidence: one run, held against the printed spread")
    return Verdict(str(judged.grade))


def _kind(target: dict, cell: pd.Series, notes: Notes) -> str:
    """The kind of a number: `exact` if no run decides it, a `guess` if nothing is trained, or else of a training."""
    if {"streams", "nets", "simulations"} & {*target} or _listed(target, "exact", cell):
        return EXACT
    row, _ = row_and_column(target)
    if row == "learner" and cell["row"].partition(",")[0] in [named(target, level) for level in notes.guesses]:
        return GUESS
    return CALIBRATED if _listed(target, "calibrated", cell) else TRAINED


def _listed(target: dict, key: str, cell: pd.Series) -> str:
    """The `choice` or the reason `why` with which a target lists a number at `key`; empty if it does not."""
    for each in target.get(key, []):
        rows, columns = ([named(target, level) for level in each[axis]] for axis in ("rows", "columns"))
        rows = [named_along(target, level, value) for level in each["rows"] for value in each.get("along", ())] or rows
        if (
            cell["row"] in rows
            and cell["column"] in columns
            and cell["metric"] in each.get("metrics", [cell["metric"]])
        ):
            return each.get("choice") or each["why"]
    return ""


def compare(target: dict, data: pd.DataFrame, reported: pd.DataFrame, notes: Notes) -> pd.DataFrame:
    """A row for each printed number, with our number and the verdict.

    target, data: as for `numbers`; a metric for which `data` name the `hardware` is not comparable. The target's
        `calibrated` lists `rows` and `columns` (levels) of the printed numbers that a `choice` was read off, `exact`
        those that no run decides, with `why`.
    reported: as from `read_reported`.

    Returns the columns

    - `row`, `column`, `metric`;
    - `printed`, `printed_low`, `printed_high`, `ours`, `ours_low`, `ours_high`;
    - `sd`, `se` (of our runs), `n_seeds`;
    - `authors`, `authors_low`, `authors_high`, `source` (see `read_reported`);
    - `difference` (ours − `graded_against`), `difference_low`, `difference_high` (95 %);
    - `distance` (which the runs exclude), `margin_same`, `margin_near`, `rule` (of `grades.RULES`);
    - `verdict` (a grade, or not comparable), `cause` and `reason` (see `Verdict`), `kind` (of `KINDS`);
    - `calibrated` (the choice that was read off the printed number, or empty);
    - `spread_kind`, `graded_against`, `against_se`, `against_n` (see `read_reported`);
    - `runs` (the cells whose runs are compared, and where on a curve);
    - `printed_note` (as transcribed), `ours_note` (see `numbers`).
    """
    reproduced = numbers(target, data, notes)
    cells = reported.merge(reproduced, on=KEY, how="left", suffixes=("_reported", ""), validate="one_to_one")
    cells = cells.fillna({"n": 0, "dataset": "", "standin": "", "note": "", "runs": ""}).astype({"n": int})
    by_metric = data.dropna(subset="hardware").groupby("metric")["hardware"] if "hardware" in data else []
    hardware = {metric: ", ".join(names.unique()) for metric, names in by_metric}
    cells = cells.assign(hardware=[hardware.get(metric, "") for metric in cells["metric"]])
    cells = cells.assign(kind=[_kind(target, cell, notes) for _, cell in cells.iterrows()])
    lines = []
    for _, cell in cells.iterrows():
        estimate, rule = _estimate(cell)
        margins = catalogue.margins_of(cell["metric"], cell.graded_against)
        counted = cell.kind == EXACT and estimate.se <= NIL  # so that its last digit is no rounded one
        judged = judge(estimate, margins, *((0.0, 0.0) if counted else (cell.below, cell.above)))
        verdict = _obstacle(cell, notes) or _verdict_on(cell, rule, estimate, judged)
        lines.append(
            {
                **cell[KEY],
                "printed": cell.value,
                "printed_low": cell.value - cell.half_width_reported,
                "printed_high": cell.value + cell.half_width_reported,
                "ours": cell["mean"],
                "ours_low": cell["mean"] - cell.half_width,
                "ours_high": cell["mean"] + cell.half_width,
                "sd": cell.sd,
                "se": cell.se,
                "n_seeds": cell.n,
                "authors": cell.authors,
                "authors_low": cell.authors - cell.authors_half_width,
                "authors_high": cell.authors + cell.authors_half_width,
                "source": cell.source,
                "difference": judged.difference,
                "difference_low": judged.low,
                "difference_high": judged.high,
                "distance": judged.distance,
                "margin_same": margins[0],
                "margin_near": margins[1],
                "rule": rule if verdict.verdict in GRADES else "",
                **verdict._asdict(),
                "kind": cell.kind,
                "calibrated": _listed(target, "calibrated", cell),
                "spread_kind": cell.spread_kind,
                "graded_against": cell.graded_against,
                "against_se": cell.against_se,
                "against_n": cell.against_n,
                "runs": cell.runs,
                "printed_note": cell.note_reported,
                "ours_note": cell.note,
                "dataset": cell.dataset,
                "decimals": cell.decimals,
                "cut": cell.cut,
            }
        )
    return pd.DataFrame(lines)


def read_compared(file: Path) -> pd.DataFrame:
    """The lines of a `*.reported.csv`, as `compare` returns them: numbers are floats, absent texts are empty."""
    frame = pd.read_csv(file, keep_default_na=False, dtype={"runs": str})
    floats = ("printed", "authors", "ours", "difference", "distance", "margin", "graded_against", "against")
    numbers = [key for key in frame if key.startswith(floats) and "note" not in key]
    frame[[*numbers, "sd", "se"]] = frame[[*numbers, "sd", "se"]].apply(pd.to_numeric)
    return frame


def graded(row: dict) -> str:
    """A verdict with its bound of the difference: `near, within 4.1`, `differs by at least 1.4: one run, guess`."""
    verdict, decimals = row["verdict"], int(row["decimals"])
    if verdict == DIFFERS and pd.notna(row["distance"]):
        least = float(nearest(row["difference_low"], row["difference_high"]))
        verdict += f" by at least {rounded(least, decimals, up=False)}"
    elif verdict in GRADES and pd.notna(row["distance"]) and row["cause"] != EQUAL:
        verdict += f", within {rounded(row['distance'], decimals, up=True)}"
        if verdict.startswith(SAME) and excludes_zero(row["difference_low"], row["difference_high"]):
            verdict += ", resolved"
    verdict = ": ".join(filter(None, [verdict, row["cause"]]))
    return verdict if row["kind"] == TRAINED or row["verdict"] not in GRADES else f"{verdict}, {row['kind']}"


def printed(row: dict) -> dict[str, str]:
    """One row of `compare` as texts: `printed`, `against`, `ours`, `runs`, `difference` and `verdict`.

    `against` has the number that ours is graded against, if it is not the printed one, with its source; and the note of
    the transcription. The authors' number has one decimal more than the printed one.
    """
    decimals = row["decimals"]
    difference = row["difference"], row["difference_low"], row["difference_high"]
    sides = {
        side: plus_minus(row[side], row[f"{side}_high"] - row[side], decimals, row[f"{side}_note"])
        for side in ("printed", "ours")
    }
    against = ""
    if row["graded_against"] == row["authors"] != row["printed"]:
        finer = decimals + pd.notna(row["printed"])
        against = f"{plus_minus(row['authors'], row['authors_high'] - row['authors'], finer)}, {row['source']}"
    return sides | {
        "against": "; ".join(filter(None, [against, row["printed_note"]])),
        "runs": f"{row['n_seeds']:,}",
        "difference": signed(*difference, decimals),
        "verdict": graded(row),
    }


def attach(table: Table, target: dict, data: pd.DataFrame, compared: pd.DataFrame, notes: Notes) -> Table:
    """`table` with the comparison appended below it, and below that its pooled lines, if there are any.

    target, data: as for `numbers`. compared: as from `compare`; if empty, the table is returned as it is.
    """
    if compared.empty:
        return table
    single = not any(compared["column"])
    down, across = ("row", "column") if single else row_and_column(target)
    lines = []
    for line in compared.to_dict("records"):
        texts = printed(line)
        column = notes.mark(line["column"], line["dataset"]) if across == "dataset" else line["column"]
        lines.append(
            {
                named(target, down): line["row"],
                named(target, across): column,
                "Metric": named(target, line["metric"]),
                "Printed": texts["printed"],
                "Graded against": texts["against"],
                "Ours": texts["ours"],
                named(target, "Runs"): texts["runs"],
                "Difference": texts["difference"],
                "Verdict": texts["verdict"],
            }
        )
    body = pd.DataFrame(lines)
    if single:
        body = body.drop(columns=named(target, across))
    if not any(body["Graded against"]):
        body = body.drop(columns="Graded against")
    remarks = {
        DIVERGED: np.isinf(compared[["printed", "ours"]]).any(axis=None),
        SHORT: (compared[["printed_note", "ours_note"]] == NO_MEMORY).any(axis=None),
        CUT: any(compared["cut"]),
        AUTHORS: (
            (compared["graded_against"] == compared["authors"]) & (compared["authors"] != compared["printed"])
        ).any(),
        DEVIATION: any(compared["spread_kind"] == "population_sd"),
        AMBIGUOUS: any(compared["spread_kind"] == "spread"),
        CHOSEN: any(compared["kind"] == CALIBRATED),
        GUESSED: compared["kind"].isin([GUESS, EXACT]).any(),
        SINGLE: (compared["cause"] == WEAK).any(),
        ALL_EQUAL: (compared["cause"] == EQUAL).any(),
    }
    comparison = Table(
        title=f"{table.title}{COMPARED}",
        caption=EXPLANATION + "".join(remark for remark, due in remarks.items() if due),
        body=body,
        bold=bold_in(body, Verdict=compared["verdict"] == DIFFERS),
        data=compared,
    )
    lines = pooled(target, data, compared)
    texts = pd.DataFrame([pooled_texts(target, row) for row in lines.to_dict("records")])
    below = [Table(f"{table.title}, pooled", POOLED, texts, bold_in(texts), lines)] if len(lines) else []
    return dataclasses.replace(table, appended=[*table.appended, comparison, *below])
