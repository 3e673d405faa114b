"""Decides claims: estimates each part with its interval, and draws the verdict."""

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from clpapers.catalogue import metrics as catalogue
from clpapers.evidence.claim import CURVE, Claim, Part, Side
from clpapers.evidence.verdict_names import BY_CONSTRUCTION, CONTRADICTED, NOT_COMPARABLE, SUPPORTED, UNDECIDED
from clpapers.metrics.intervals import CONFIDENCE, NIL, Estimate, holm, welch
from clpapers.metrics.learning import OUT_OF_MEMORY
from clpapers.targets.footnotes import Notes

VERDICTS = (SUPPORTED, CONTRADICTED, UNDECIDED, BY_CONSTRUCTION, NOT_COMPARABLE)
ONE_SIDED = (1 - CONFIDENCE) / 2


class Obstacle(Exception):
    """Why a part cannot be compared."""


@dataclasses.dataclass(frozen=True)
class Decided:
    """A part with its verdict. `low` and `high` bound the 95 % interval of `effect`; all are ratios if the claim's are.

    weakness: one-sided p of the part, the larger the less supported; NaN without an estimate.
    """

    part: Part
    effect: float
    low: float
    high: float
    n: int
    verdict: str
    reason: str
    weakness: float


class ClaimVerdict(NamedTuple):
    """A claim's verdict, the part to show for it (None if it has none at this scale), and all parts."""

    verdict: str
    reason: str
    shown: Decided | None
    parts: list[Decided]


def sample(frame: pd.DataFrame, side: Side) -> pd.Series:
    """The values of one side by seed, less the values of `side.less`; of one seed by repetition, if it has some.

    Repetitions of one seed start from one model, so that they are not independent. A run that
    diverged, whose metrics are ∞, is worse than any other: −∞ if larger is better.

    Raises `Obstacle` if memory did not suffice, if nothing was measured, and if no value is defined.
    """
    rows, factors = frame, side.levels.keys() - CURVE
    if rows.empty or factors - {*rows}:  # of no run, or of none that has a factor, there are no such columns
        raise Obstacle("not run yet")
    for key in factors:
        rows = rows[rows[key] == side.levels[key]]
    if (rows["metric"] == OUT_OF_MEMORY).any():
        raise Obstacle("out of memory")
    rows = rows[rows["metric"] == side.metric]
    for key in CURVE:
        if key in side.levels:
            rows = rows[rows[key] == side.levels[key]]
    if "time" in rows:
        rows = rows.sort_values("time", kind="stable")
    if rows.empty:
        raise Obstacle("not run yet")
    if catalogue.metrics()[side.metric].better != "smaller":
        rows = rows.assign(value=rows["value"].replace(np.inf, -np.inf))
    runs = ["seed", "repetition"] if "repetition" in rows and rows["seed"].nunique() == 1 else ["seed"]
    values = rows.groupby(runs)["value"].agg("std" if side.take == "sd" else side.take)
    if side.less:
        values = values - sample(frame, side.less)
    values = values.dropna()
    if values.empty:
        raise Obstacle("undefined")
    return values


def _mean(values: pd.Series) -> Estimate:
    """The mean of a sample."""
    n = len(values)
    if np.isinf(values).any():
        return Estimate(float(values[np.isinf(values)].iloc[0]), 0.0, n - 1, n)
    return Estimate(float(values.mean()), float(values.std() / np.sqrt(n)), n - 1, n)


def _compared(part: Part, samples: Sequence[pd.Series]) -> Estimate:
    """The mean of one sample, or the difference of two; paired over common seeds if the streams are the same."""
    if len(samples) == 1:
        return _mean(samples[0])
    first, second = samples
    diverged = [np.isinf(each).any() for each in samples]
    if all(diverged):
        raise Obstacle("both diverged")
    if part.paired and not any(diverged):
        return _mean((first - second)[first.index.intersection(second.index)])
    one, other = _mean(first), _mean(second)
    return welch(one.effect, one.se, one.n, other.effect, other.se, other.n)


def _trend(part: Part, frames: Mapping[str, pd.DataFrame], along: str) -> Estimate:
    """The mean over seeds of the least-squares slope per level, levels counted 0, 1, … in their order."""
    if along in CURVE:
        (side,) = part.sides
        frame = frames[side.target]
        times = sorted(frame.loc[frame["metric"] == side.metric, along].dropna().unique())
        sides = tuple(side.at_level(along, time) for time in times)
    else:
        sides = part.sides
    if len(sides) < 2:
        raise Obstacle(f"one level of {along} at this scale")
    values = pd.concat([sample(frames[side.target], side) for side in sides], axis=1).dropna()
    if np.isinf(values).any(axis=None):
        raise Obstacle("diverged")
    steps = np.arange(len(sides)) - (len(sides) - 1) / 2
    return _mean(values @ steps / (steps @ steps))


def estimate(claim: Claim, part: Part, frames: Mapping[str, pd.DataFrame]) -> Estimate:
    """The effect that a claim tests: first side minus the other or the number; of a ratio, its logarithm.

    Raises `Obstacle` if there is none.
    """
    found = _estimate(claim, part, frames)
    return found._replace(se=0.0) if found.se <= NIL * max(1.0, float(np.abs(found.effect))) else found


def _estimate(claim: Claim, part: Part, frames: Mapping[str, pd.DataFrame]) -> Estimate:
    if not all(side.runs for side in part.sides):
        raise Obstacle("not run at this scale")
    if "along" in claim.spec:
        return _trend(part, frames, claim.spec["along"])
    number = part.number or 0.0
    if any("mean" in frames[side.target] for side in part.sides):
        (side,) = part.sides
        (row,) = frames[side.target].query("metric == @side.metric").itertuples()
        return Estimate(row.mean - number, row.se, row.n - 1, row.n)
    samples = [sample(frames[side.target], side) for side in part.sides]
    if claim.spec.get("ratio"):
        if not all((each > 0).all() and np.isfinite(each).all() for each in samples):
            raise Obstacle("a ratio of what is not above zero")
        samples, number = [np.log(each) for each in samples], np.log(number) if number else 0.0
    found = _compared(part, samples)
    return found._replace(effect=found.effect - number)


def _bounds(spec: Mapping) -> tuple[float, float]:
    """The two numbers between which the effect must lie; at a bound, `within` holds, but not `above` or `below`."""
    ratio = spec.get("ratio", False)
    by = np.log(spec.get("by", 1)) if ratio else spec.get("by", 0)
    margin = np.log(spec["margin"]) if ratio and "margin" in spec else spec.get("margin", 0)
    if spec["test"] == "within":
        return np.nextafter(by - margin, -np.inf), np.nextafter(by + margin, np.inf)
    if spec["test"] in ("above", "increasing"):
        return np.nextafter(by, np.inf), np.inf
    return -np.inf, np.nextafter(by, -np.inf)


def decide(claim: Claim, frames: Mapping[str, pd.DataFrame], notes: Mapping[str, Notes]) -> ClaimVerdict:
    """The verdict on one claim, which holds if all of its parts hold.

    A part is supported if the 95 % interval of its effect lies in the claimed range (`within`: two one-sided tests);
    the claim, if all parts are. This needs no correction for their number: if any part is false, all are found
    supported with a probability of at most 2.5 % (intersection-union test, Berger 1982). One false part contradicts
    the claim, however, so errors add up there. A part is contradicted if a one-sided test at 2.5 %, its p adjusted over
    the claim's parts by Holm's method, puts its effect elsewhere. A single part is contradicted if its interval lies
    wholly elsewhere. Nothing is corrected over claims, as each is a question of its own. With `most`, more than half of
    the parts must hold; Holm's method then corrects both ways, as both are counts.

    A part that no run could decide otherwise (`Part.constructed`) holds by construction. A few equal values have no
    interval and decide nothing, however far they lie.

    frames: measured values, by target.
    notes: the targets' notes, by target. A part on other data, on other hardware or at a reduced scale keeps its effect
        and interval, but is not comparable.
    """
    low, high = _bounds(claim.spec)
    estimates, obstacles = [], []
    for part in claim.parts:
        try:
            found = estimate(claim, part, frames)
        except Obstacle as obstacle:
            found, why = None, str(obstacle)
        else:
            why = _incomparable(claim, part, frames, notes)
        estimates.append(found)
        obstacles.append(why)
    tested = [found if found and not why and found.n > 1 else None for found, why in zip(estimates, obstacles)]
    p = [min(each.below(low), each.above(high)) if each else np.nan for each in tested]
    own = [np.nan if _constructed(claim, part) else each for part, each in zip(claim.parts, p)]
    adjusted = [each if np.isnan(corrected) else corrected for each, corrected in zip(p, holm(own))]
    weak = [max(each.above(low), each.below(high)) if each else np.nan for each in tested]
    if claim.spec.get("most"):
        weak = list(holm(weak))
    parts = zip(claim.parts, estimates, obstacles, p, adjusted, weak)
    return _verdict(claim, [_decided(claim, *each) for each in parts])


def _constructed(claim: Claim, part: Part) -> bool:
    return part.constructed or "by_construction" in claim.spec


def _incomparable(claim: Claim, part: Part, frames: Mapping[str, pd.DataFrame], notes: Mapping[str, Notes]) -> str:
    """Why a part that was measured cannot be held against the paper; empty if it can."""
    if claim.spec.get("demand"):
        return "a demand, not a finding"
    if other := claim.spec.get("other_data"):
        return f"other data: the sentence is about {other}"
    if part.timed:
        hardware = [frames[side.target].get("hardware", pd.Series(dtype=str)) for side in part.sides]
        return f"other hardware: {', '.join(pd.concat(hardware).dropna().unique())} here, another GPU in the paper"
    datasets = sorted({side.dataset for side in part.sides if side.dataset in notes[side.target].standins})
    reduced = any(notes[side.target].reductions for side in part.sides)
    texts = [f"stand-in data: {', '.join(datasets)}" if datasets else "", "reduced scale" if reduced else ""]
    return "; ".join(filter(None, texts))


def _undecided(n: int, alone: float, adjusted: float) -> str:
    """Why `n` runs decide nothing: the interval allows both, or Holm's correction took a contradiction back."""
    if alone > ONE_SIDED:
        return f"the interval of {n} runs allows both"
    return f"p {alone:.2g}, by Holm’s correction {adjusted:.2g}: contradicted alone, not among the claim’s parts"


def _decided(
    claim: Claim,
    part: Part,
    estimated: Estimate | None,
    why: str,
    alone: float,
    adjusted: float,
    weakness: float,
) -> Decided:
    """A part's verdict.

    alone, adjusted: one-sided p of its contradiction, by itself and among the claim's parts. weakness: of its support.
    """
    if estimated is None:
        return Decided(part, np.nan, np.nan, np.nan, 0, NOT_COMPARABLE, why, np.nan)
    ends = estimated.interval() if np.isfinite(estimated.effect) else (np.nan, np.nan)
    value, low, high = (float(np.exp(x) if claim.spec.get("ratio") else x) for x in (estimated.effect, *ends))
    n, constructed = int(estimated.n), _constructed(claim, part)
    if why:
        verdict = NOT_COMPARABLE
    elif n < 2:
        verdict, why = UNDECIDED, f"one {'timing' if part.timed else 'run'} gives no interval"
    elif estimated.se == 0 and np.isfinite(estimated.effect) and not constructed:
        verdict, why = UNDECIDED, f"{n} equal values give no interval"
    elif adjusted <= ONE_SIDED:
        verdict = CONTRADICTED
    elif weakness <= ONE_SIDED:
        verdict, why = (BY_CONSTRUCTION, _why(claim, part)) if constructed else (SUPPORTED, "")
    else:
        verdict, why = UNDECIDED, _undecided(n, alone, adjusted)
    return Decided(part, value, low, high, n, verdict, why, weakness)


def _why(claim: Claim, part: Part) -> str:
    """Why no run could decide a part otherwise."""
    if stated := claim.spec.get("by_construction"):
        return stated
    if all(side.guesses for side in part.sides):
        return "nothing is trained"
    computed = all(catalogue.metrics()[side.metric].sample == "none" for side in part.sides)
    return "computed, not measured" if computed else "one run on both sides"


def _verdict(claim: Claim, parts: list[Decided]) -> ClaimVerdict:
    """The claim's verdict: contradicted, undecided or not comparable if any part is, in this order, else supported.

    It holds by construction if all parts do. With `most`, more than half of the parts decide. The part to show is the
    least supported one with that verdict.
    """
    if not parts:
        return ClaimVerdict(NOT_COMPARABLE, "not run at this scale", None, [])
    count = Counter(part.verdict for part in parts)
    order = [CONTRADICTED, UNDECIDED, NOT_COMPARABLE, SUPPORTED, BY_CONSTRUCTION]
    if claim.spec.get("most") and 2 * (count[SUPPORTED] + count[BY_CONSTRUCTION]) > len(parts):
        order = order[3:]
    elif claim.spec.get("most") and 2 * count[CONTRADICTED] < len(parts):
        order = order[1:3]
    verdict = next(each for each in order if count[each])
    deciding = [part for part in parts if part.verdict == verdict]
    shown = max(deciding, key=lambda part: -1 if np.isnan(part.weakness) else part.weakness)
    why = list(dict.fromkeys(part.reason for part in deciding if part.reason))
    if verdict == UNDECIDED:
        why = [shown.reason]
    if len(parts) > 1:
        counts = [f"{count[each]} {each}" for each in VERDICTS if count[each]]
        why.insert(0, f"{len(parts)} parts: {', '.join(counts)}")
    return ClaimVerdict(verdict, "; ".join(why), shown, parts)
