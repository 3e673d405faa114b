"""Compares reported and reproduced numbers, with a verdict for each."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from clpapers.metrics.intervals import Difference, critical, welch_from_summary
from clpapers.targets.names import named, row_and_column
from clpapers.targets.notes import Notes
from clpapers.targets.numbers import numbers
from clpapers.targets.table import OUT_OF_MEMORY, Table, bold_in, plus_minus, signed
from clpapers.targets.words import AGREES, DIFFERS, NOT_COMPARABLE

WEAK = "one run"  # the cause of a verdict on weak evidence
KEY = ["row", "column", "metric"]
COLUMNS = [
    *("value", "decimals", "spread_kind", "half_width", "half_width_if_sd", "n", "cut", "note"),
    *("authors", "authors_half_width", "source"),
    *("basis", "basis_half_width", "basis_n", "below", "above"),
]
SPREAD_KIND = re.compile(r"(ci95_halfwidth|spread|population_sd)_(\d+)_runs")
MOST_DECIMALS = 3  # in numbers that only the authors give
EXPLANATION = (
    "Reproduced minus reported, with Welch's 95 % interval; ‘agrees’: the interval holds zero. "
    "A number printed without an interval agrees where it lies in the reproduced interval, widened by half a "
    "unit of its last digit; Welch's interval is widened likewise where the spread is printed to more digits."
)
DIVERGED = " ∞ (diverged) agrees with ∞ alone."
SHORT = " OoM (out of memory) agrees with OoM; with a number it is not comparable, as memories differ in size."
DEVIATION = (
    " The spreads that the paper prints are population standard deviations; ‘reported’ shows the 95 % half-width that "
    "follows."
)
AMBIGUOUS = (
    " The paper prints a spread but not, or not consistently, whether it is a standard error or a standard deviation. "
    "It is read as a standard error, and ‘reported’ shows the 95 % half-width that follows. Read as a standard "
    "deviation, the stricter reading, it gives a narrower interval; a verdict that would change is followed by the "
    "other one."
)
SINGLE = (
    " ‘One run’: weak evidence; a single run agrees where it lies in the interval in which one more run of the paper's "
    "own would, by the printed spread."
)
CUT = (
    " The paper rounds some numbers and cuts others off: one printed stands for all from half a unit of its last digit "
    "below to a unit above."
)
AUTHORS = (
    " ‘Authors’: the number in a file that the paper's authors published. Difference and verdict are with it if the "
    "printed number is this one, rounded or cut off, or if none is printed; or else they are of different runs."
)
CALIBRATED = " ‘Calibrated’: a choice that the paper leaves open was read off this number, so it is no check."


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
    NaN if none is printed), `half_width_if_sd`, `n` (the paper's runs, 0 if unknown), `cut` (whether the paper may have
    cut digits off) and `note`; of the authors' own number `authors`, `authors_half_width` (both NaN if there is none)
    and `source`. What is compared is `basis` with `basis_half_width` and `basis_n`: the authors' number if the printed
    one is it, cut off or rounded, or if none is printed; or else the printed one. It may be `below` less and `above`
    more: half a unit of the last digit, 0 beside a spread of no more digits; half a unit and a whole one if `cut`. The
    kind `spread_<n>_runs`, which the paper does not define, is read as a standard error; `half_width_if_sd` follows
    from reading it as a standard deviation, and is NaN for other kinds. Lines of the kind `formula` are left out; those
    noted `out of memory` have no number.
    """
    lines, rows = transcribed(path, paper, target), []
    lines = lines[lines["spread_kind"] != "formula"]
    for line in lines.to_dict("records"):
        value = np.nan if line["note"] == OUT_OF_MEMORY else float(line["value"] or "nan")
        kind, half, half_if_sd, n = "", np.nan, np.nan, 0
        if line["spread"]:
            match = SPREAD_KIND.fullmatch(line["spread_kind"])
            kind, half, n = match[1], float(line["spread"]), int(match[2])
            if kind == "spread":
                half *= float(critical(n - 1))
                half_if_sd = half / np.sqrt(n)
            elif kind == "population_sd":
                half *= float(critical(n - 1)) / np.sqrt(n - 1)
        digits, spread_digits = (len(line[part].partition(".")[2]) for part in ("value", "spread"))
        cut, unit = line.get("digits") == "cut", 10.0**-digits
        half_unit = unit / 2 if spread_digits > digits or not line["spread"] or cut else 0.0
        basis, authors = (value, half, n, half_unit, unit if cut else half_unit), (np.nan, np.nan)
        own = line.get("authors", "")
        if own:
            finer = _authors(own, line["authors_sd"], line["authors_runs"])
            authors = finer[:2]
            if np.isnan(value) or -unit / 2 <= finer[0] - value < unit:
                basis = (*finer, 0.0, 0.0)
        decimals = max(digits, spread_digits) if line["value"] else min(len(own.partition(".")[2]), MOST_DECIMALS)
        rows.append(
            {
                **{key: line[key] for key in KEY},
                **{"value": value, "decimals": decimals, "spread_kind": kind, "half_width": half},
                **{"half_width_if_sd": half_if_sd, "n": n, "cut": cut, "note": line["note"]},
                **dict(zip(("authors", "authors_half_width"), authors)),
                "source": line.get("source", ""),
                **dict(zip(("basis", "basis_half_width", "basis_n", "below", "above"), basis)),
            }
        )
    reported = pd.DataFrame(rows, columns=[*KEY, *COLUMNS])
    return reported.assign(decimals=reported.groupby("metric")["decimals"].transform("max"))


def _authors(value: str, sd: str, runs: str) -> tuple[float, float, int]:
    """An authors' number, its 95 % half-width (NaN without a population standard deviation), and its runs."""
    n = int(runs or 0)
    return float(value), float(sd) * float(critical(n - 1)) / np.sqrt(n - 1) if sd else np.nan, n


def _difference(cell: pd.Series, half_reported: float) -> Difference:
    """Reproduced − reported with its 95 % interval, from one merged line (see `compare`); NaN if either is ∞.

    Of a single run it is the interval in which one more run of the paper's own would differ from the printed mean: the
    prediction interval t·s·√(1 + 1/n) that the printed spread gives.
    """
    if np.isinf([cell["mean"], cell.basis]).any():
        return Difference(np.nan, np.nan, np.nan)
    if cell.n == 1 and pd.notna(half_reported) and cell.basis_n > 1:
        reach = half_reported * np.sqrt(cell.basis_n + 1)  # t·s·√(1 + 1/n), of a half-width t·s/√n
        difference = cell["mean"] - cell.basis
        low, high = difference - reach, difference + reach
    elif pd.notna(half_reported):
        printed = cell.basis, half_reported, cell.basis_n
        difference, low, high = welch_from_summary(cell["mean"], cell.half_width, cell.n, *printed)
    else:
        difference = cell["mean"] - cell.basis
        low, high = difference - cell.half_width, difference + cell.half_width
    return Difference(difference, low - cell.above, high + cell.below)


class Agreement(NamedTuple):
    """The verdict on one cell; `cause` in two words and `reason` at length say why it cannot be compared."""

    verdict: str
    cause: str = ""
    reason: str = ""


def _agreement(cell: pd.Series, difference: Difference, notes: Notes) -> Agreement:
    neither_fits = cell.note == cell.note_reported == OUT_OF_MEMORY
    if pd.isna(cell.basis) and not neither_fits:
        cause = "out of memory in the paper" if cell.note_reported == OUT_OF_MEMORY else "not printed"
        reason = ": ".join(filter(None, ["the paper prints no number", cell.note_reported]))
        return Agreement(NOT_COMPARABLE, cause, reason)
    if pd.isna(cell["mean"]) and not neither_fits:
        if cell.note == OUT_OF_MEMORY:
            return Agreement(NOT_COMPARABLE, "out of memory here", "memory did not suffice here")
        return Agreement(NOT_COMPARABLE, "not run", notes.why_not_run())
    obstacles = {"stand-in data": f"{cell.dataset}: {cell.standin}"} if cell.standin else {}
    if notes.reductions:
        obstacles["reduced scale"] = "; ".join(notes.reductions)
    if cell.hardware:
        obstacles["other hardware"] = f"{cell.hardware} here, another GPU in the paper"
    if obstacles:
        reasons = [f"{cause}: {detail}" for cause, detail in obstacles.items()]
        return Agreement(NOT_COMPARABLE, ", ".join(obstacles), "; ".join(reasons))
    if neither_fits:
        return Agreement(AGREES)
    if np.isinf([cell["mean"], cell.basis]).any():
        return Agreement(AGREES if cell["mean"] == cell.basis else DIFFERS)
    if np.isnan(difference.low):
        return Agreement(NOT_COMPARABLE, "one run", "one run gives no interval, and none is printed")
    verdict = AGREES if difference.low <= 0 <= difference.high else DIFFERS
    if cell.n == 1:
        inside = "inside" if verdict == AGREES else "outside"
        return Agreement(verdict, WEAK, f"weak evidence: one run, {inside} the interval of one more run of the paper's")
    return Agreement(verdict)


def _calibrated(target: dict, cell: pd.Series) -> str:
    """The choice that was read off this number; empty for an independent check."""
    for choice in target.get("calibrated", []):
        rows, columns = ([named(target, level) for level in choice[key]] for key in ("rows", "columns"))
        if cell["row"] in rows and cell["column"] in columns:
            return choice["choice"]
    return ""


def compare(target: dict, data: pd.DataFrame, reported: pd.DataFrame, notes: Notes) -> pd.DataFrame:
    """One line a printed number, with the reproduced number and the verdict.

    target, data: as for `numbers`; a metric for which `data` name the `hardware` is not comparable. The target's
        `calibrated` lists `rows` and `columns` (levels) of the printed numbers that a `choice` was read off.
    reported: as from `read_reported`.

    Returns columns `row`, `column`, `metric`, `reported`, `reported_low`, `reported_high`, `reproduced`,
    `reproduced_low`, `reproduced_high`, `sd`, `se` (of the reproduced runs), `n_seeds`, `authors`, `authors_low`,
    `authors_high`, `source` (see `read_reported`), `difference` (reproduced − authors' or else reported),
    `difference_low`, `difference_high`, `verdict` (agrees, differs, not comparable), `cause` and `reason` (see
    `Agreement`), `calibrated` (the choice that was read off the printed number, or empty), `spread_kind` (see
    `read_reported`), `verdict_if_sd` (if the printed spread were a standard deviation; empty if the paper defines it),
    `reported_note` (as transcribed), `reproduced_note` (see `numbers`).
    """
    reproduced = numbers(target, data, notes)
    cells = reported.merge(reproduced, on=KEY, how="left", suffixes=("_reported", ""), validate="one_to_one")
    cells = cells.fillna({"n": 0, "dataset": "", "standin": "", "note": ""}).astype({"n": int})
    by_metric = data.dropna(subset="hardware").groupby("metric")["hardware"] if "hardware" in data else []
    hardware = {metric: ", ".join(names.unique()) for metric, names in by_metric}
    cells = cells.assign(hardware=[hardware.get(metric, "") for metric in cells["metric"]])
    lines = []
    for _, cell in cells.iterrows():
        difference = _difference(cell, cell.basis_half_width)
        if_sd = _agreement(cell, _difference(cell, cell.half_width_if_sd), notes)
        lines.append(
            {
                **cell[KEY],
                "reported": cell.value,
                "reported_low": cell.value - cell.half_width_reported,
                "reported_high": cell.value + cell.half_width_reported,
                "reproduced": cell["mean"],
                "reproduced_low": cell["mean"] - cell.half_width,
                "reproduced_high": cell["mean"] + cell.half_width,
                "sd": cell.sd,
                "se": cell.se,
                "n_seeds": cell.n,
                "authors": cell.authors,
                "authors_low": cell.authors - cell.authors_half_width,
                "authors_high": cell.authors + cell.authors_half_width,
                "source": cell.source,
                "difference": difference.difference,
                "difference_low": difference.low,
                "difference_high": difference.high,
                **_agreement(cell, difference, notes)._asdict(),
                "calibrated": _calibrated(target, cell),
                "spread_kind": cell.spread_kind,
                "verdict_if_sd": if_sd.verdict if pd.notna(cell.half_width_if_sd) else "",
                "reported_note": cell.note_reported,
                "reproduced_note": cell.note,
                "dataset": cell.dataset,
                "decimals": cell.decimals,
                "cut": cell.cut,
            }
        )
    return pd.DataFrame(lines)


def _verdict(line: dict) -> str:
    verdict = ": ".join(filter(None, [line["verdict"], line["cause"]]))
    if line["calibrated"]:
        verdict += ", calibrated"
    return verdict if line["verdict_if_sd"] in ("", line["verdict"]) else f"{verdict} ({line['verdict_if_sd']} if SD)"


def printed(line: dict) -> dict[str, str]:
    """One line of `compare` as texts: `reported`, `authors`, `reproduced`, `runs`, `difference` and `verdict`.

    The authors' number has one decimal more than the printed one.
    """
    decimals = line["decimals"]
    difference = Difference(line["difference"], line["difference_low"], line["difference_high"])
    sides = {
        side: plus_minus(line[side], line[f"{side}_high"] - line[side], decimals, line[f"{side}_note"])
        for side in ("reported", "reproduced")
    }
    finer = decimals + pd.notna(line["reported"])
    return sides | {
        "authors": plus_minus(line["authors"], line["authors_high"] - line["authors"], finer),
        "runs": f"{line['n_seeds']:,}",
        "difference": signed(*difference, decimals),
        "verdict": _verdict(line),
    }


def attach(table: Table, target: dict, compared: pd.DataFrame, notes: Notes) -> Table:
    """`table` with the comparison appended below it.

    target: as for `numbers`. compared: as from `compare`; if empty, the table is returned as it is.
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
                "Reported": texts["reported"],
                "Authors": texts["authors"],
                "Reproduced": texts["reproduced"],
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
        DIVERGED: np.isinf(compared[["reported", "reproduced"]]).any(axis=None),
        SHORT: (compared[["reported_note", "reproduced_note"]] == OUT_OF_MEMORY).any(axis=None),
        CUT: any(compared["cut"]),
        AUTHORS: compared["authors"].notna().any(),
        DEVIATION: any(compared["spread_kind"] == "population_sd"),
        AMBIGUOUS: any(compared["verdict_if_sd"]),
        CALIBRATED: any(compared["calibrated"]),
        SINGLE: (compared["cause"] == WEAK).any(),
    }
    comparison = Table(
        title=f"{table.title}, reported and reproduced",
        caption=EXPLANATION + "".join(remark for remark, due in remarks.items() if due),
        body=body,
        bold=bold_in(body, Verdict=compared["verdict"] == DIFFERS),
        data=compared,
    )
    return dataclasses.replace(table, appended=[*table.appended, comparison])
