"""Renders the costs of learning: times and formulas of memory; below, ratios of times and footprints."""

import ast
import dataclasses
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from clpapers.catalogue.names import named
from clpapers.metrics.cost import MB, METRICS
from clpapers.targets.footnotes import Notes, levels
from clpapers.targets.numbers import clocks, failures, numbers
from clpapers.targets.table import Table, bold_in, plus_minus

RENDERER = {
    "draws": "table",
    "needs": ["metrics", "ratios", "decimals"],
    "rules": {"decimals": {"type": "integer"}},
    "prints": True,
}

SECONDS, *PHASES = METRICS
RATIO = "time_ratio"
SYMBOLS = ("P", "B", "H", "T", "M")
ARITHMETIC = {ast.Add: operator.add, ast.Mult: operator.mul}


def evaluate(formula: str, symbols: dict[str, float]) -> float:
    """The value of a formula of sums and products of numbers and `symbols`; ValueError for anything else."""

    def value(node: ast.expr) -> float:
        match node:
            case ast.BinOp() if type(node.op) in ARITHMETIC:
                return ARITHMETIC[type(node.op)](value(node.left), value(node.right))
            case ast.Name() if node.id in symbols:
                return symbols[node.id]
            case ast.Constant() if isinstance(node.value, int | float):
                return node.value
        raise ValueError(f"'{ast.unparse(node)}' is no sum or product of numbers and {', '.join(symbols)}")

    try:
        return value(ast.parse(formula, mode="eval").body)
    except SyntaxError:
        raise ValueError(f"'{formula}' is no formula") from None


def render(target: dict, data: pd.DataFrame, notes: Notes, printed: pd.DataFrame) -> Table:
    """Lay out seconds, and formulas as printed; below, ratios of times, and megabytes by the formulas and as measured.

    target: keys `title`, `caption`, `metrics`, `grid` (learners and data sets), `names`, `decimals` (a number), and
        `ratios`, pairs of learners whose times are divided.
    data: columns `dataset`, `learner`, `seed`, `metric`, `value`, `hardware`, as measured by `cost`.
    printed: the paper's lines (`comparison.transcribed`): its `training_seconds`, and formulas of each row's memory in
        numbers (kind `formula`). Raises ValueError for a formula that cannot be evaluated.
    """
    measured, lines = numbers(target, data, notes), printed[printed["spread_kind"] == "formula"]
    formulas = {(line.row, line.metric): line.value for line in lines.itertuples()}
    summary = pd.concat([measured, _predicted(measured, formulas), _ratios(target, measured, printed)])
    cells = summary.set_index(["row", "column", "metric"]).sort_index()
    learners = [named(target, level) for level in levels(target, data, "learner")]
    datasets = {named(target, level): level for level in levels(target, data, "dataset")}

    def laid_out(
        title: str, caption: str, rows: list[str], columns: dict[tuple, tuple[str, str]], **options: Any
    ) -> Table:
        """A table with these rows, and under each heading the numbers of a (column, metric)."""
        body = {(named(target, "learner"), ""): rows}
        for heading, (column, metric) in columns.items():
            shown = cells.reindex([(row, column, metric) for row in rows])
            body[heading] = [
                plus_minus(mean, np.nan, target["decimals"], note) for mean, note in zip(shown["mean"], shown["note"])
            ]
        frame = pd.DataFrame(body)
        return Table(title, caption, frame, bold_in(frame), summary, **options)

    marked = {notes.mark(across, level): across for across, level in datasets.items()}
    title, units = notes.mark(target["title"]), {phase: named(target, phase) for phase in PHASES}
    table = laid_out(
        title,
        notes.caption(target),
        learners,
        {(named(target, SECONDS), mark): (across, SECONDS) for mark, across in marked.items()},
        footnotes=[*notes.footnotes(target, data["dataset"]), *clocks(target, data), *failures(target, data)],
        sources=notes.commits,
    )
    for phase in PHASES:
        table.body["Memory", units[phase]] = [formulas.get((row, phase), "–") for row in learners]
        table.bold["Memory", units[phase]] = False
    ratios = laid_out(
        f"{title}, ratios of training times",
        "Of mean times, here and as the paper prints them.",
        [ratio_name(target, pair) for pair in target["ratios"]],
        {
            (mark, whose): (across, metric)
            for mark, across in marked.items()
            for whose, metric in (("here", RATIO), ("paper", f"{RATIO}_paper"))
        },
    )
    memory = laid_out(
        f"{title}, memory in MB",
        "What the printed formulas give with the net's own numbers, four bytes a number (eight where it computes in "
        "double precision), beside what the learner holds between steps at the end. The formulas hold hidden states, "
        "B*H, which are measured nowhere; gradients, images in memory and copies of importances are measured.",
        learners,
        {
            (mark, f"{units[phase]}, {whose}"): (across, metric)
            for mark, across in marked.items()
            for phase in PHASES
            for whose, metric in (("formula", f"{phase}_formula"), ("held", phase))
        },
    )
    return dataclasses.replace(table, appended=[ratios, memory])


def ratio_name(target: dict, pair: Sequence[str]) -> str:
    """The name of the ratio of two learners: `GEM : A-GEM`."""
    return " : ".join(named(target, learner) for learner in pair)


def _predicted(measured: pd.DataFrame, formulas: dict[tuple[str, str], str]) -> pd.DataFrame:
    """The megabytes by each learner's formulas on each data set, as lines of `numbers`."""
    lines = []
    for _, cell in measured.groupby(["row", "column"], sort=False):
        line = cell.iloc[0]
        symbols = dict(zip(cell["metric"], cell["mean"]))
        for phase in PHASES:
            formula = formulas.get((line["row"], phase))
            if formula is None or not symbols.keys() >= {*SYMBOLS}:
                continue
            try:
                count = evaluate(formula, {name: symbols[name] for name in SYMBOLS})
            except ValueError as error:
                raise ValueError(f"{line['row']}: {phase}: {error}; see the paper's file in config/reported/") from None
            lines.append(_spreadless(line, line["row"], f"{phase}_formula", count * symbols["bytes"] / MB))
    return pd.DataFrame(lines, columns=measured.columns)


def _ratios(target: dict, measured: pd.DataFrame, printed: pd.DataFrame) -> pd.DataFrame:
    """The target's ratios of mean times on each data set, here and in the paper, as lines of `numbers`."""
    times = printed[printed["metric"] == SECONDS]
    theirs = pd.to_numeric(times.set_index(["row", "column"])["value"]).replace(np.inf, np.nan)
    seconds = measured[measured["metric"] == SECONDS]
    ours, lines = seconds.set_index(["row", "column"])["mean"], []
    for across, cells in seconds.groupby("column", sort=False):
        for pair in target["ratios"]:
            keys = [(named(target, learner), across) for learner in pair]
            for metric, values in ((RATIO, ours), (f"{RATIO}_paper", theirs)):
                first, second = (values.get(key, np.nan) for key in keys)
                lines.append(_spreadless(cells.iloc[0], ratio_name(target, pair), metric, first / second))
    return pd.DataFrame(lines, columns=measured.columns)


def _spreadless(like: pd.Series, row: str, metric: str, mean: float) -> pd.Series:
    """A line of `numbers` on the same data set as `like`, with a mean but no spread."""
    spread = dict.fromkeys(["sd", "se", "half_width"], np.nan)
    return pd.Series({**like, "row": row, "metric": metric, "mean": mean, "note": "", **spread})
