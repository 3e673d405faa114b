"""Decides claims: estimates each part with its interval, and draws the verdict."""

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from clpapers.catalogue import metrics as catalogue
from clpapers.evidence.claim import CURVE, Claim, Part, Side
from clpapers.evidence.verdict_names import BY_CONSTRUCTION, FAILS, HOLDS, NOT_COMPARABLE, UNDECIDED
from clpapers.metrics.intervals import CONFIDENCE, NIL, Estimate, Numbers, holm_shares, welch
from clpapers.metrics.learning import OUT_OF_MEMORY
from clpapers.streams.older import AS_DRAWN_NOW
from clpapers.targets.footnotes import Notes

VERDICTS = (HOLDS, FAILS, UNDECIDED, BY_CONSTRUCTION, NOT_COMPARABLE)
PLURAL = {HOLDS: "hold", FAILS: "do not hold"}
ONE_SIDED = (1 - CONFIDENCE) / 2


class Obstacle(Exception):
    """Why a part cannot be compared."""


@dataclasses.dataclass(frozen=True)
class Decided:
    """A part with its verdict.

    effect: what was measured: the first side less the second, or over it if the claim is on ratios; the side itself if
        it is held against a number; the slope of a trend.
    low, high, confidence: the interval of `effect` that decides: 95 %, or wider by Holm's correction.
    bounds: the two numbers between which the claim puts `effect`.
    weakness: one-sided p of the part, the larger the farther from holding; NaN without an estimate.
    """

    part: Part
    effect: float
    low: float
    high: float
    confidence: float
    bounds: tuple[float, float]
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


def _same_streams(part: Part, frames: Mapping[str, pd.DataFrame]) -> bool:
    """Whether the two sides of a part learnt the same streams at all common seeds, so that these are pairs."""
    if not part.paired or len(part.sides) != 2:
        return False
    learnt: list[dict[int, str]] = []
    for side in part.sides:
        rows = frames[side.target]
        for key in side.levels.keys() - CURVE:
            rows = rows[rows[key] == side.levels[key]]
        learnt.append(dict(zip(rows["seed"], rows["stream"] if "stream" in rows else [AS_DRAWN_NOW] * len(rows))))
    first, second = learnt
    return all(first[seed] == second[seed] for seed in first.keys() & second.keys())


def _compared(part: Part, samples: Sequence[pd.Series], *, same_streams: bool) -> Estimate:
    """The mean of one sample, or the difference of two; paired over common seeds if the streams are the same."""
    if len(samples) == 1:
        return _mean(samples[0])
    first, second = samples
    diverged = [np.isinf(each).any() for each in samples]
    if all(diverged):
        raise Obstacle("both diverged")
    if same_streams and not any(diverged):
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
    found = _compared(part, samples, same_streams=_same_streams(part, frames))
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

    A part holds if the 95 % interval of its effect lies in the claimed range (`within`: two one-sided tests); the
    claim, if all parts do. This needs no correction for their number: if any part is false, all are found to hold with
    a probability of at most 2.5 % (intersection-union test, Berger 1982). One false part is enough for the claim not
    to hold, however, so errors add up there. So a part does not hold if a one-sided test at 2.5 %, its level divided
    over the claim's parts by Holm's method, puts its effect elsewhere. Nothing is corrected over claims, as each is a
    question of its own. With `most`, more than half of the parts must hold; Holm's method then corrects both ways, as
    both are counts.

    The interval of a part is the one that decides: of a part whose 95 % interval lies elsewhere, the one at the divided
    level. So a part holds where it lies inside, does not hold where it lies outside, and is undecided where it crosses.

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
    weak = [max(each.above(low), each.below(high)) if each else np.nan for each in tested]
    against = zip(p, holm_shares(own, ONE_SIDED))
    favour = zip(weak, holm_shares(weak, ONE_SIDED) if claim.spec.get("most") else np.ones(len(weak)))
    parts = zip(claim.parts, estimates, obstacles, against, favour)
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


def _decided(
    claim: Claim,
    part: Part,
    estimated: Estimate | None,
    why: str,
    against: tuple[float, float],
    favour: tuple[float, float],
) -> Decided:
    """A part's verdict.

    against, favour: one-sided p that it does not hold, and that it holds; and over how many tests 2.5 % is divided.
    """
    ratio, number = claim.spec.get("ratio", False), part.number or 0.0
    least, most = _bounds(claim.spec)
    bounds = _measured(least, number, ratio), _measured(most, number, ratio)
    if estimated is None:
        return Decided(part, np.nan, np.nan, np.nan, CONFIDENCE, bounds, 0, NOT_COMPARABLE, why, np.nan)
    share = next((share for p, share in (against, favour) if p <= ONE_SIDED), 1.0)
    confidence = 1 - (1 - CONFIDENCE) / share
    ends = estimated.interval(confidence) if estimated.se > 0 and np.isfinite(estimated.effect) else (np.nan, np.nan)
    value, low, high = (_measured(x, number, ratio) for x in (estimated.effect, *ends))
    n, constructed = int(estimated.n), _constructed(claim, part)
    if why:
        verdict = NOT_COMPARABLE
    elif n < 2:
        verdict, why = UNDECIDED, f"one {'timing' if part.timed else 'run'} gives no interval"
    elif estimated.se == 0 and np.isfinite(estimated.effect) and not constructed:
        verdict, why = UNDECIDED, f"{n} equal values give no interval"
    elif _rejects(against):
        verdict = FAILS
    elif _rejects(favour):
        verdict, why = (BY_CONSTRUCTION, _why(claim, part)) if constructed else (HOLDS, "")
    else:
        verdict, why = UNDECIDED, f"the interval of {n} runs allows both"
        if share > 1:
            left, right = (_measured(x, number, ratio) for x in estimated.interval())
            why += f"; one of {len(claim.parts)} parts, it is wider than 95 %, [{left:.3g}, {right:.3g}]".replace(
                "-", "−"
            )
    return Decided(part, value, low, high, confidence, bounds, n, verdict, why, favour[0])


def _rejects(tested: tuple[float, float]) -> bool:
    """Whether a p lies within its share of 2.5 %."""
    p, share = tested
    return p * share <= ONE_SIDED


def _measured(effect: Numbers, number: float, ratio: bool) -> float:
    """An effect as it is shown: of a ratio no logarithm, and with the number that it was held against."""
    if ratio:
        return float(np.exp(effect)) * (number or 1.0)
    return float(effect + number)


def _why(claim: Claim, part: Part) -> str:
    """Why no run could decide a part otherwise."""
    if stated := claim.spec.get("by_construction"):
        return stated
    if all(side.guesses for side in part.sides):
        return "nothing is trained"
    computed = all(catalogue.metrics()[side.metric].sample == "none" for side in part.sides)
    return "computed, not measured" if computed else "one run on both sides"


def _verdict(claim: Claim, parts: list[Decided]) -> ClaimVerdict:
    """The claim's verdict: does not hold, undecided or not comparable if any part is so, in this order, else holds.

    It holds by construction if all parts do. With `most`, more than half of the parts decide. The part to show is the
    one with that verdict that is farthest from holding.
    """
    if not parts:
        return ClaimVerdict(NOT_COMPARABLE, "not run at this scale", None, [])
    count = Counter(part.verdict for part in parts)
    order = [FAILS, UNDECIDED, NOT_COMPARABLE, HOLDS, BY_CONSTRUCTION]
    if claim.spec.get("most") and 2 * (count[HOLDS] + count[BY_CONSTRUCTION]) > len(parts):
        order = order[3:]
    elif claim.spec.get("most") and 2 * count[FAILS] < len(parts):
        order = order[1:3]
    verdict = next(each for each in order if count[each])
    deciding = [part for part in parts if part.verdict == verdict]
    shown = max(deciding, key=lambda part: -1 if np.isnan(part.weakness) else part.weakness)
    why = list(dict.fromkeys(part.reason for part in deciding if part.reason))
    if verdict == UNDECIDED:
        why = [shown.reason]
    if len(parts) > 1:
        words = {each: PLURAL.get(each, each) if count[each] > 1 else each for each in VERDICTS}
        counts = [f"{count[each]} {words[each]}" for each in VERDICTS if count[each]]
        why.insert(0, f"{len(parts)} parts: {', '.join(counts)}")
    return ClaimVerdict(verdict, "; ".join(why), shown, parts)
