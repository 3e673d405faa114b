"""Compares printed numbers with ours, with a grade for each."""

import dataclasses
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from clpapers.catalogue import metrics as catalogue
from clpapers.catalogue.names import named, named_along, row_and_column
from clpapers.evidence.grades import MARGINS, MEANINGS, excludes_zero, judge, nearest
from clpapers.evidence.pooled import KEY, POOLED, pooled, pooled_texts
from clpapers.evidence.verdict_names import (
    CALIBRATED,
    DIFFERS,
    EXACT,
    GRADES,
    GUESS,
    NOT_COMPARABLE,
    OPEN,
    SAME,
    TRAINED,
    WEAK,
)
from clpapers.metrics.intervals import NIL, Estimate, critical, welch
from clpapers.targets.footnotes import Notes
from clpapers.targets.numbers import numbers
from clpapers.targets.table import NO_MEMORY, Table, bold_in, plus_minus, rounded, signed

EQUAL = "equal values"  # the cause of a verdict without a spread to go by
COLUMNS = [
    *("value", "decimals", "spread_kind", "half_width", "n", "cut", "note"),
    *("authors", "authors_half_width", "source"),
    *("basis", "basis_se", "basis_n", "below", "above"),
]
SPREAD_KIND = re.compile(r"(ci95_halfwidth|standard_error|spread|population_sd|mean)_(\d+)_runs")
MOST_DECIMALS = 3  # in numbers that only the authors give
WELCH, OWN_SPREAD, ONE_MORE, ALIKE = "Welch", "own spread", "one more run", "no interval"
RULES = {
    WELCH: "two runs or more here, and a printed spread: Welch’s t interval of the difference of two means",
    OWN_SPREAD: "two runs or more here, and no printed spread: our mean’s t interval, with an error of the "
    "paper’s runs, taken to vary as ours do, where it says how many there are",
    ONE_MORE: "one run here, and a printed spread: where one more run of the paper’s own would lie",
    ALIKE: "∞ (diverged) or OoM (out of memory) on either side: no interval; the same or not",
}
COMPARED = ", printed and ours"  # ends the title of the table of the comparison
EXPLANATION = (
    "Ours minus printed, with its 95 % interval, and the distance that the runs exclude: the least m for which "
    f"the 90 % interval lies within ±m. {'; '.join(f'‘{grade}’: {meaning}' for grade, meaning in MEANINGS.items())}. "
    f"The margins are {MARGINS}. ‘Resolved’: the same, though the interval leaves zero out. "
    "The interval is Welch’s, or our mean’s where no spread is printed. It is widened by half a unit of the "
    "printed last digit, unless a spread of no more digits is printed."
)
DIVERGED = " ∞ (diverged) is the same as ∞ alone."
SHORT = " OoM (out of memory) is the same as OoM; with a number it is not comparable, as memories differ in size."
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
ALL_EQUAL = " ‘Equal values’: a few runs without any spread give no interval."
CUT = (
    " The paper rounds some numbers and cuts others off: one printed stands for all from half a unit of its last digit "
    "below to a unit above."
)
AUTHORS = (
    " ‘Authors’: the number in a file that the paper's authors published. Difference and verdict are with it if the "
    "printed number is this one, rounded or cut off, or if none is printed; or else they are of different runs."
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

    The comparison takes `basis` with `basis_se` (standard error) and `basis_n`. This is the authors' number if the
    printed one is it, cut off or rounded, or if none is printed; or else the printed one. Its spread is the authors'
    or, if they give none, the printed one. It may be `below` less and `above` more: half a unit of the last digit, 0
    beside a spread of no more digits; half a unit and a whole one if `cut`.

    The kind `spread_<n>_runs`, which the paper does not define, is read as a standard error. Lines of the kind
    `formula` are left out; those noted `out of memory` have no number.
    """
    lines, rows = transcribed(path, paper, target), []
    lines = lines[lines["spread_kind"] != "formula"]
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
        basis, authors = (value, se, n, half_unit, unit if cut else half_unit), (np.nan, np.nan)
        own = line.get("authors", "")
        if own:
            finer = _authors(own, line["authors_sd"], line["authors_runs"])
            authors = finer[0], _half_width(*finer[1:])
            if np.isnan(value) or -unit / 2 <= finer[0] - value < unit:
                spread = (se, n) if np.isnan(finer[1]) else finer[1:]  # the printed one, where the authors give none
                basis = (finer[0], *spread, 0.0, 0.0)
        decimals = max(digits, spread_digits) if line["value"] else min(len(own.partition(".")[2]), MOST_DECIMALS)
        rows.append(
            {
                **{key: line[key] for key in KEY},
                **{"value": value, "decimals": decimals, "spread_kind": kind, "half_width": _half_width(se, n)},
                **{"n": n, "cut": cut, "note": line["note"]},
                **dict(zip(("authors", "authors_half_width"), authors)),
                "source": line.get("source", ""),
                **dict(zip(("basis", "basis_se", "basis_n", "below", "above"), basis)),
            }
        )
    reported = pd.DataFrame(rows, columns=[*KEY, *COLUMNS])
    return reported.assign(decimals=reported.groupby("metric")["decimals"].transform("max"))


def _authors(value: str, sd: str, runs: str) -> tuple[float, float, int]:
    """An authors' number, its standard error (NaN without a population standard deviation), and its runs."""
    n = int(runs or 0)
    return float(value), float(sd) / np.sqrt(n - 1) if sd else np.nan, n


def _half_width(se: float, n: int) -> float:
    return se * float(critical(n - 1)) if n > 1 else np.nan


def _estimate(cell: pd.Series) -> tuple[Estimate, str]:
    """Ours − printed, from one merged line (see `compare`), and the rule that its interval follows."""
    if np.isinf([cell["mean"], cell.basis]).any() or NO_MEMORY in (cell.note, cell.note_reported):
        return Estimate(np.nan, np.nan, np.nan), ALIKE
    if cell.n == 1 and pd.notna(cell.basis_se):  # s·√(1 + 1/n), of a standard error s/√n
        return Estimate(
            cell["mean"] - cell.basis, cell.basis_se * np.sqrt(cell.basis_n + 1), cell.basis_n - 1
        ), ONE_MORE
    if pd.notna(cell.basis_se):
        return welch(cell["mean"], cell.se, cell.n, cell.basis, cell.basis_se, cell.basis_n), WELCH
    printed = cell.n / cell.basis_n if cell.basis_n else 0.0  # an error of the paper's runs, if they vary as those here
    return Estimate(cell["mean"] - cell.basis, cell.se * np.sqrt(1 + printed), cell.n - 1), OWN_SPREAD


class Verdict(NamedTuple):
    """The verdict on one cell; `cause` in two words and `reason` at length say why it is weak or cannot be compared."""

    verdict: str
    cause: str = ""
    reason: str = ""


def _obstacle(cell: pd.Series, notes: Notes) -> Verdict | None:
    """Why a number cannot be compared, if it cannot."""
    neither_fits = cell.note == cell.note_reported == NO_MEMORY
    if pd.isna(cell.basis) and not neither_fits:
        cause = "out of memory in the paper" if cell.note_reported == NO_MEMORY else "not printed"
        reason = ": ".join(filter(None, ["the paper prints no number", cell.note_reported]))
        return Verdict(NOT_COMPARABLE, cause, reason)
    if pd.isna(cell["mean"]) and not neither_fits:
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


def _verdict_on(cell: pd.Series, rule: str, estimate: Estimate, low: float, grade: str) -> Verdict:
    if rule == ALIKE:
        return Verdict(SAME if cell["mean"] == cell.basis or cell.note == NO_MEMORY else DIFFERS)
    if np.isnan(low):
        return Verdict(NOT_COMPARABLE, "one run", "one run gives no interval, and none is printed")
    if estimate.se <= NIL and cell.kind != EXACT:
        return Verdict(OPEN, EQUAL, f"{cell.n} equal values give no interval")
    if cell.n == 1 and cell.kind != EXACT:
        return Verdict(grade, WEAK, "weak evidence: one run, held against the printed spread")
    return Verdict(grade)


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
    - `difference` (ours − authors' or else printed), `difference_low`, `difference_high` (95 %);
    - `distance` (which the runs exclude), `margin_same`, `margin_near`, `rule` (of `RULES`);
    - `verdict` (a grade, or not comparable), `cause` and `reason` (see `Verdict`), `kind` (of `KINDS`);
    - `calibrated` (the choice that was read off the printed number, or empty);
    - `spread_kind`, `basis`, `basis_se`, `basis_n` (see `read_reported`);
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
        margins = catalogue.margins_of(cell["metric"], cell.basis)
        counted = cell.kind == EXACT and estimate.se <= NIL  # so that its last digit is no rounded one
        judged = judge(estimate, margins, *((0.0, 0.0) if counted else (cell.below, cell.above)))
        verdict = _obstacle(cell, notes) or _verdict_on(cell, rule, estimate, float(judged.low), str(judged.grade))
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
                "basis": cell.basis,
                "basis_se": cell.basis_se,
                "basis_n": cell.basis_n,
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
    floats = ("printed", "authors", "ours", "difference", "distance", "margin", "basis")
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
    """One row of `compare` as texts: `printed`, `authors`, `ours`, `runs`, `difference` and `verdict`.

    The authors' number has one decimal more than the printed one.
    """
    decimals = row["decimals"]
    difference = row["difference"], row["difference_low"], row["difference_high"]
    sides = {
        side: plus_minus(row[side], row[f"{side}_high"] - row[side], decimals, row[f"{side}_note"])
        for side in ("printed", "ours")
    }
    finer = decimals + pd.notna(row["printed"])
    return sides | {
        "authors": plus_minus(row["authors"], row["authors_high"] - row["authors"], finer),
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
                "Authors": texts["authors"],
                "Ours": texts["ours"],
                named(target, "Runs"): texts["runs"],
                "Difference": texts["difference"],
                "Verdict": texts["verdict"],
            }
        )
    body = pd.DataFrame(lines)
    if single:
        body = body.drop(columns=named(target, across))
    if compared["authors"].isna().all():
        body = body.drop(columns="Authors")
    remarks = {
        DIVERGED: np.isinf(compared[["printed", "ours"]]).any(axis=None),
        SHORT: (compared[["printed_note", "ours_note"]] == NO_MEMORY).any(axis=None),
        CUT: any(compared["cut"]),
        AUTHORS: compared["authors"].notna().any(),
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
