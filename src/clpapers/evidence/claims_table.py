"""Renders a paper's claims with their verdicts, and the scorecard of all papers."""

import re
import unicodedata
from collections.abc import Mapping

import numpy as np
import pandas as pd

from clpapers.catalogue import metrics as catalogue
from clpapers.catalogue.names import named
from clpapers.evidence.claim import SOURCE, TRENDS, Claim, Part, Side
from clpapers.evidence.sentences import SENTENCES, by_sentence
from clpapers.evidence.verdicts import CONTRADICTED, VERDICTS, ClaimVerdict
from clpapers.targets.footnotes import REDUCED, STANDIN, Notes
from clpapers.targets.table import Table, bold_in

EXPLANATION = (
    "What the paper says, as a test on what was measured here ({seeds} runs a cell). Effect: the difference that the "
    "test is on, or the ratio (×), with its Student-t 95 % interval, paired by seed where both sides learnt from the "
    "same streams, Welch’s elsewhere; where one seed has repetitions, these are the runs. Supported: the interval "
    "lies where the sentence says, for all parts of a claim. Contradicted: for one part at least it lies elsewhere, "
    "by a one-sided test at 2.5 % with Holm’s correction for the number of parts; a part that is undecided by this "
    "correction alone has both p. By construction: it holds, but no run could have decided otherwise: both sides are "
    "one run, guesses, or computed. A few equal values give no interval and leave it undecided. Not comparable: other "
    "data or hardware than the paper’s, a reduced scale, or a demand, which finds nothing. Calibrated: a choice was "
    "read off the sentence or the numbers. CHOICE: a number of the test that the sentence does not give. A claim of "
    "several parts is shown by the least supported one of those that decide it."
)
TAKEN = {
    "mean": "mean ",
    "first": "first ",
    "last": "final ",
    "min": "least ",
    "max": "largest ",
    "sd": "standard deviation over time of ",
}
WORDS = {"by": "by", "margin": "margin", "than": "bound"}
PARTS = "Every comparison that a claim of several stands on."


def unit(claim: Claim, side: Side) -> str:
    """The unit of a claim's effect: × for ratios, empty for pure numbers."""
    if claim.spec.get("ratio"):
        return "×"
    of_metric = catalogue.metrics()[side.metric].unit.replace("%", "points")
    return " ".join(filter(None, [of_metric, "a level" if claim.spec["test"] in TRENDS else ""]))


def test_in_words(claim: Claim, specs: Mapping[str, Mapping]) -> str:
    """A claim's test in words. `specs`: the targets' specs, by name."""
    spec = claim.spec
    target, than = specs[claim.targets[0]], spec.get("than")
    measured = _source(spec["of"], spec, specs, claim.paper)
    text = " of ".join(filter(None, [measured, _levels(spec["of"], target)]))
    less = [f"{_plain(target, one)} less {_plain(target, other)}" for one, other in spec.get("less", {}).items()]
    given = "; ".join(filter(None, [_levels(spec.get("where", {}), target), ", ".join(less)]))
    given = f" ({given})" if given else ""
    if spec["test"] in TRENDS:
        return f"{text}: {spec['test']} along {_plain(target, spec['along'])}{given}"
    if isinstance(than, Mapping):
        source = _source(than, spec, specs, claim.paper)
        compared = _levels(than, specs[claim.targets[-1]])
        compared = " of ".join(filter(None, ["" if source == measured else source, compared]))
    else:
        compared = f"{than:g}"
    return f"{text} {_relation(spec)} {compared}{given}"


def choices(claim: Claim) -> str:
    """The numbers of a test that its sentence does not give: `by 10, margin 3`; empty if it gives them all."""
    spec = claim.spec
    numbers = {key: spec[key] for key in ("by", "margin", "than") if isinstance(spec.get(key), int | float)}
    given = re.findall(r"\d+(?:\.\d+)?|\.\d+", spec["statement"].replace(",", ""))
    given_numbers = {*map(float, given), 0.0}
    return ", ".join(f"{WORDS[key]} {value:g}" for key, value in numbers.items() if abs(value) not in given_numbers)


def _relation(spec: Mapping) -> str:
    """The relation that the claim asserts between its sides: `more than 5 above`, `3 to 30 times`."""
    test, ratio, margin = spec["test"], spec.get("ratio"), spec.get("margin")
    by = spec.get("by", 1 if ratio else 0)
    if ratio and test == "within":
        return f"{by / margin:.3g} to {by * margin:.3g} times"
    if ratio and by != 1:
        return f"{'more' if test == 'above' else 'less'} than {by:g} times"
    if test == "within":
        return f"within {margin:g} of" + (f" {by:g} above" if by else "")
    if ratio or not by:
        return test
    if (test == "above") == (by > 0):
        return f"more than {abs(by):g} {test}"
    return f"{test}, or less than {abs(by):g} {'below' if test == 'above' else 'above'},"


def _source(side: Mapping, spec: Mapping, specs: Mapping, paper: str) -> str:
    """`final Acc. in figure2`: the metric, the value taken of a curve, and the target unless it is the claim's."""
    name = side.get("target", spec["target"])
    metric, take = (side.get(key, spec.get(key)) for key in ("metric", "take"))
    text = f"{TAKEN.get(take, '')}{_plain(specs[f'{paper}/{name}'], metric)}"
    return text if name == spec["target"] else f"{text} in {name}"


def _plain(target: Mapping, key: object) -> str:
    """A display name on one line, without its arrow; of a formula, its letters: `Scale of μ_σ`."""
    name = named(target, key).replace("\n", " ").rstrip(" ↑↓")
    return re.sub(r"\$(.*?)\$", lambda formula: _letters(formula[1]), name)


def _letters(formula: str) -> str:
    """A formula's letters, the Greek ones as such, without braces."""
    greek = re.sub(r"\\([a-z]+)", lambda name: unicodedata.lookup(f"GREEK SMALL LETTER {name[1]}"), formula)
    return re.sub("[{}]", "", greek)


def _levels(levels: Mapping, target: Mapping) -> str:
    """`CIFAR-10, EMNIST; ER`, factor by factor; numbers follow their factor's name."""
    texts = []
    for key, value in levels.items():
        if key in SOURCE:
            continue
        factor = _plain(target, key)
        if value in ("all", "others", "first", "last"):
            word = {"all": "every", "others": "every other"}.get(value, value)
            texts.append(f"{word} {factor}")
            continue
        values = value if isinstance(value, list) else [value]
        shown = ", ".join(_plain(target, level) for level in values)
        texts.append(shown if all(isinstance(level, str) for level in values) else f"{factor} {shown}")
    return "; ".join(texts)


def part_name(part: Part, specs: Mapping[str, Mapping]) -> str:
    """`CIFAR-10: ACE vs ER`: the levels that both sides share, then those in which they differ."""
    first, last = part.sides[0], part.sides[-1]
    alike = {key for key, level in first.levels.items() if last.levels.get(key) == level}
    if len(part.sides) == 1:
        return _levels(first.levels, specs[first.target]) or first.metric
    shared = _levels({k: v for k, v in first.levels.items() if k in alike}, specs[first.target])
    own = []
    for side in (first, last):
        levels = _levels({k: v for k, v in side.levels.items() if k not in alike}, specs[side.target])
        place = side.target.partition("/")[2] if first.target != last.target else ""
        own.append(" ".join(filter(None, [levels, f"in {place}" if place else ""])) or side.metric)
    joined = " … ".join(own) if len(part.sides) > 2 else " vs ".join(own)
    return ": ".join(filter(None, [shared, joined]))


def render(
    title: str,
    claims: list[Claim],
    verdicts: list[ClaimVerdict],
    specs: Mapping[str, Mapping],
    notes: Mapping[str, Notes],
) -> Table:
    """One row a claim; a table below lists the parts of claims that have several.

    title: the paper's. verdicts: one a claim. specs, notes: the targets' specs and notes, by name.
    """
    rows, body, parts = [], [], []
    for claim, verdict in zip(claims, verdicts, strict=True):
        shown = verdict.shown
        measure = unit(claim, shown.part.sides[0]) if shown else ""
        rows.append(
            {
                "claim": claim.name,
                "section": claim.spec["section"],
                "statement": claim.spec["statement"],
                "test": test_in_words(claim, specs),
                "note": claim.spec.get("note", ""),
                "choice": choices(claim),
                "target": " ".join(claim.targets),
                "effect": shown.effect if shown else np.nan,
                "ci_low": shown.low if shown else np.nan,
                "ci_high": shown.high if shown else np.nan,
                "unit": measure,
                "verdict": verdict.verdict,
                "calibrated": claim.calibrated,
                "reason": _reason(verdict, specs),
            }
        )
        body.append(
            {
                "Claim": f"{claim.name} ({claim.spec['section']})",
                "The paper says": f"“{claim.spec['statement']}”",
                "Test": tested(rows[-1]),
                "Effect": "–" if shown is None else effect(shown.effect, shown.low, shown.high, measure),
                "Verdict": verdict.verdict + ", calibrated" * bool(claim.calibrated),
                "Why": "; ".join(
                    filter(None, [rows[-1]["reason"], claim.calibrated and f"calibrated: {claim.calibrated}"])
                ),
            }
        )
        parts += [
            {
                "Claim": claim.name,
                "Part": part_name(each.part, specs),
                "Effect": effect(each.effect, each.low, each.high, unit(claim, each.part.sides[0])),
                "Runs": str(each.n),
                "Verdict": each.verdict,
                "Why": each.reason,
            }
            for each in (verdict.parts if len(verdict.parts) > 1 else [])
        ]
    marks = STANDIN * any(each.standins for each in notes.values()), REDUCED * any(n.reductions for n in notes.values())
    heading = f"Claims of “{title}”{''.join(marks)}"
    seeds = sorted({each.seeds for each in notes.values()})
    return Table(
        title=heading,
        caption=EXPLANATION.replace("{seeds}", " or ".join(map(str, seeds))),
        body=(cells := pd.DataFrame(body)),
        bold=_contradicted(cells),
        data=pd.DataFrame(rows),
        footnotes=_footnotes(notes),
        appended=[_appended(heading, parts)] if parts else [],
        prose={"Claim": 0.12, "The paper says": 0.24, "Test": 0.2, "Effect": 0.12, "Verdict": 0.09, "Why": 0.15},
    )


def _footnotes(notes: Mapping[str, Notes]) -> list[str]:
    """The footnotes on stand-in data and on a reduced scale, whose reductions the targets' own footnotes list."""
    standins = {name: kind for each in notes.values() for name, kind in each.standins.items()}
    texts = []
    if standins:
        listed = "; ".join(f"{name}: {kind}" for name, kind in standins.items())
        texts.append(f"{STANDIN} Stand-in data, not the paper's: {listed}.")
    if reduced := [name for name, each in notes.items() if each.reductions]:
        scale = next(iter(notes.values())).scale
        texts.append(f"{REDUCED} Reduced scale ‘{scale}’ in {', '.join(reduced)}; how, their own footnotes say.")
    return texts


def _appended(heading: str, parts: list[dict]) -> Table:
    cells = pd.DataFrame(parts)
    return Table(f"{heading}, part by part", PARTS, cells, _contradicted(cells), cells, prose={"Part": 0.3, "Why": 0.3})


def _contradicted(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells to print bold: contradicted verdicts."""
    return bold_in(cells, Verdict=cells["Verdict"].str.startswith(CONTRADICTED))


def _reason(verdict: ClaimVerdict, specs: Mapping[str, Mapping]) -> str:
    reasons = [verdict.reason]
    if verdict.shown is not None and len(verdict.parts) > 1:
        reasons.append(f"shown: {part_name(verdict.shown.part, specs)}")
    return "; ".join(filter(None, reasons))


def tested(claim: Mapping[str, str]) -> str:
    """A claim's test (from a row of the table's data), the choice that the sentence leaves open, and the note."""
    choice = f"CHOICE: {claim['choice']}" if claim["choice"] and "CHOICE" not in claim["note"] else ""
    return ". ".join(filter(None, [claim["test"], choice, claim["note"].removesuffix(".")]))


def effect(value: float, low: float, high: float, measure: str) -> str:
    """`+9.9 [5.1, 14.7] points`, to three significant digits; `–` where there is none, `−∞` of a run that diverged."""
    if np.isnan(value):
        return "–"
    if np.isinf(value):
        return "∞" if value > 0 else "−∞"
    sign = "" if measure == "×" else "+"
    value, low, high = (round(x, 9) + 0.0 for x in (value, low, high))  # no rounding errors, no −0
    text = f"{value:{sign}.3g}"
    if not np.isnan(low):
        text += f" [{low:.3g}, {high:.3g}]"
    return f"{text} {measure}".strip().replace("-", "−")


def scorecard(claims: Mapping[str, pd.DataFrame], titles: Mapping[str, str], scale: str) -> Table:
    """Count each paper's claims by verdict, and its sentences; the last row counts all.

    claims: each paper's claims, with the columns `statement` and `verdict`. titles: the papers'.
    """
    counted = [
        {
            "paper": paper,
            "claims": len(frame),
            **{verdict: int((frame["verdict"] == verdict).sum()) for verdict in VERDICTS},
            "sentences": frame["statement"].nunique(),
            **{f"sentences {name}": by_sentence(frame.to_dict("records"))[name] for name in SENTENCES},
        }
        for paper, frame in claims.items()
    ]
    data = pd.DataFrame(counted)
    total = {"paper": "all", **data.drop(columns="paper").sum().to_dict()}
    body = pd.DataFrame([*counted, total]).assign(paper=[*(f"{paper}: {titles[paper]}" for paper in claims), "all"])
    body = body.rename(columns=str.capitalize).map(str)
    return Table(
        title="Scorecard of the papers’ claims",
        caption=f"How many claims of each paper are supported by what was measured at the scale ‘{scale}’; its tables "
        "of claims say which, and on what data.",
        body=body,
        bold=bold_in(body),
        data=data,
    )
