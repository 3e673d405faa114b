"""Renders a paper's claims with their verdicts, and the scorecard of all papers."""

import re
import unicodedata
from collections.abc import Mapping

import numpy as np
import pandas as pd

from clpapers.catalogue import metrics as catalogue
from clpapers.catalogue.names import named
from clpapers.evidence.claim import SOURCE, TRENDS, Claim, Part, Side
from clpapers.evidence.sentences import by_sentence
from clpapers.evidence.verdict_names import BY_CONSTRUCTION, FAILS, HOLDS, STANDINGS
from clpapers.evidence.verdicts import VERDICTS, ClaimVerdict, Decided
from clpapers.metrics.intervals import CONFIDENCE
from clpapers.targets.footnotes import REDUCED, STANDIN, Notes
from clpapers.targets.table import Table, bold_in

EXPLANATION = (
    "What the paper says, as a test on what was measured here ({seeds} runs a cell). Result: what the test is on, a "
    "number, a difference, a ratio (×) or a slope, with the Student-t interval that decides, paired by seed where both "
    "sides learnt from the same streams, Welch’s elsewhere; where one seed has repetitions, these are the runs. Its "
    "confidence is 95 %; where this interval lies outside of the claim’s bounds it is wider, by Holm’s correction for "
    "the number of parts, and says so. Holds: the interval lies within the bounds, for all parts of a claim. Does not "
    "hold: for one part at least it lies outside. Undecided: it crosses a bound, or a few equal values have none. By "
    "construction: it holds, but no run could have decided otherwise: both sides are one run, guesses, or computed. "
    "Not comparable: other data or hardware than the paper’s, a reduced scale, or a demand, which finds nothing. "
    "Calibrated: a choice was read off the sentence or the numbers. CHOICE: a number of the test that the sentence "
    "does not give. A claim of several parts is shown by the one, of those that decide it, that is farthest from "
    "holding."
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
    """The unit of a claim's effect: × for ratios of two sides, empty for pure numbers."""
    of_metric = catalogue.metrics()[side.metric].unit
    if _on_number(claim):
        return of_metric
    if claim.spec.get("ratio"):
        return "×"
    of_metric = of_metric.replace("%", "points")
    return " ".join(filter(None, [of_metric, "a level" if claim.spec["test"] in TRENDS else ""]))


def _on_number(claim: Claim) -> bool:
    """Whether a claim holds a side itself against a number, and no difference, ratio or slope."""
    return isinstance(claim.spec.get("than"), int | float)


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
    if len(part.sides) == 1:
        return _levels(part.sides[0].levels, specs[part.sides[0].target]) or part.sides[0].metric
    shared, own = _sides_in_words(part, specs)
    named_sides = [each or side.metric for each, side in zip(own, (part.sides[0], part.sides[-1]))]
    return ": ".join(filter(None, [shared, (" … " if len(part.sides) > 2 else " vs ").join(named_sides)]))


def _sides_in_words(part: Part, specs: Mapping[str, Mapping]) -> tuple[str, list[str]]:
    """The levels that the first and the last side share, and each one's own, with its target if they differ in it."""
    first, last = part.sides[0], part.sides[-1]
    alike = {key for key, level in first.levels.items() if last.levels.get(key) == level}
    shared = _levels({k: v for k, v in first.levels.items() if k in alike}, specs[first.target])
    own = []
    for side in (first, last):
        levels = _levels({k: v for k, v in side.levels.items() if k not in alike}, specs[side.target])
        place = side.target.partition("/")[2] if first.target != last.target else ""
        own.append(" ".join(filter(None, [levels, f"in {place}" if place else ""])))
    return shared, own


def result(claim: Claim, part: Decided, specs: Mapping[str, Mapping]) -> str:
    """A part's result in a sentence: `A of A-GEM less GEM (Split CIFAR): −8.54 [−15, −2.03] points, not within ±2`.

    Empty of a part without a number. specs: the targets' specs, by name.
    """
    if np.isnan(part.effect):
        return ""
    first = part.part.sides[0]
    sign = "" if _on_number(claim) or claim.spec.get("ratio") else "+"
    shown = effect(part.effect, part.low, part.high, unit(claim, first), sign, part.confidence)
    relation = {HOLDS: ",", BY_CONSTRUCTION: ",", FAILS: ", not"}.get(part.verdict, "; claimed:")
    return f"{_subject(claim, part.part, specs)}: {shown}{relation} {_within(part.bounds, sign)}"


def _subject(claim: Claim, part: Part, specs: Mapping[str, Mapping]) -> str:
    """What a part's effect is: `Memory of GEM over A-GEM (Split CIFAR)`."""
    spec, first = claim.spec, part.sides[0]
    less = _plain(specs[first.target], first.less.levels["learner"]) if first.less else ""
    measured = _source(spec["of"], {**spec, "metric": first.metric}, specs, claim.paper)
    if len(part.sides) == 1:
        levels = "; ".join(filter(None, [_levels(first.levels, specs[first.target]), less and f"less {less}"]))
        return f"{'slope of ' * (spec['test'] in TRENDS)}{measured}" + (f" of {levels}" if levels else "")
    shared, own = _sides_in_words(part, specs)
    given = "; ".join(filter(None, [shared, less and f"each less its baseline, {less} of the first"]))
    given = f" ({given})" if given else ""
    if spec["test"] in TRENDS:
        return f"slope of {measured} from {' to '.join(own)}{given}"
    other = _source(spec["than"], spec, specs, claim.paper)
    joined = "over" if spec.get("ratio") else "less"
    if other == measured or part.sides[0].target != part.sides[1].target:
        of = "" if own[0].startswith("in ") else "of "
        return f"{measured} {of}{own[0]} {joined} {own[1]}{given}"
    sides = [" of ".join(filter(None, pair)) for pair in zip((measured, other), own)]
    return f"{f' {joined} '.join(sides)}{given}"


def _within(bounds: tuple[float, float], sign: str) -> str:
    """The bounds of an effect in words: `below 0.02`, `within ±2`, `from 7.07 to 14.1`."""
    low, high = (round(bound, 9) + 0.0 for bound in bounds)
    if np.isinf(high) or np.isinf(low) or bounds[0] == 0:  # a ratio below a number is above 0
        return f"above {_number(low, sign)}" if np.isinf(high) else f"below {_number(high, sign)}"
    if sign and low == -high:
        return f"within ±{_number(high, sign)}"
    return f"from {_number(low, sign)} to {_number(high, sign)}"


def _number(value: float, sign: str) -> str:
    """A number to three significant digits, or, of 10 and more that is no difference, to four: 99.85 is no 99.9."""
    digits = 3 if sign or abs(value) < 10 else 4
    return f"{value:,.0f}" if abs(value) >= 10**digits else f"{value:.{digits}g}".replace("-", "−")


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
        said = result(claim, shown, specs) if shown else ""
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
                "confidence": shown.confidence if shown else np.nan,
                "unit": unit(claim, shown.part.sides[0]) if shown else "",
                "parts": len(verdict.parts),
                "result": said,
                "verdict": verdict.verdict,
                "calibrated": claim.calibrated,
                "reason": verdict.reason,
            }
        )
        body.append(
            {
                "Claim": f"{claim.name} ({claim.spec['section']})",
                "The paper says": f"“{claim.spec['statement']}”",
                "Test": tested(rows[-1]),
                "Result": said or "–",
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
                "Result": result(claim, each, specs) or "–",
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
        bold=_failing(cells),
        data=pd.DataFrame(rows),
        footnotes=_footnotes(notes),
        appended=[_appended(heading, parts)] if parts else [],
        prose={"Claim": 0.12, "The paper says": 0.24, "Test": 0.17, "Result": 0.17, "Verdict": 0.09, "Why": 0.13},
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
    prose = {"Part": 0.2, "Result": 0.25, "Why": 0.2}
    return Table(f"{heading}, part by part", PARTS, cells, _failing(cells), cells, prose=prose)


def _failing(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells to print bold: the verdicts that a claim does not hold."""
    return bold_in(cells, Verdict=cells["Verdict"].str.startswith(FAILS))


def tested(claim: Mapping[str, str]) -> str:
    """A claim's test (from a row of the table's data), the choice that the sentence leaves open, and the note."""
    choice = f"CHOICE: {claim['choice']}" if claim["choice"] and "CHOICE" not in claim["note"] else ""
    return ". ".join(filter(None, [claim["test"], choice, claim["note"].removesuffix(".")]))


def effect(value: float, low: float, high: float, measure: str, sign: str, confidence: float = CONFIDENCE) -> str:
    """`+9.9 [5.1, 14.7] points`; `−∞` of a run that diverged.

    sign: `+` before what is a difference or a slope. confidence: of the interval, told if it is not 95 %.
    """
    if np.isinf(value):
        return "∞" if value > 0 else "−∞"
    value, low, high = (round(x, 9) + 0.0 for x in (value, low, high))  # no rounding errors, no −0
    text = f"{sign * bool(value >= 0)}{_number(value, sign)}"
    if not np.isnan(low):
        wider = "" if confidence == CONFIDENCE else f"{100 * confidence:.4g} %: "
        text += f" [{wider}{_number(low, sign)}, {_number(high, sign)}]"
    return f"{text} {measure}".strip()


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
            **{f"sentences {name}": by_sentence(frame.to_dict("records"))[name] for name in STANDINGS},
        }
        for paper, frame in claims.items()
    ]
    data = pd.DataFrame(counted)
    total = {"paper": "all", **data.drop(columns="paper").sum().to_dict()}
    body = pd.DataFrame([*counted, total]).assign(paper=[*(f"{paper}: {titles[paper]}" for paper in claims), "all"])
    body = body.rename(columns=str.capitalize).map(str)
    return Table(
        title="Scorecard of the papers’ claims",
        caption=f"How many claims of each paper hold on what was measured at the scale ‘{scale}’; its tables "
        "of claims say which, and on what data.",
        body=body,
        bold=bold_in(body),
        data=data,
    )
