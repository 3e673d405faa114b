"""Verdicts against hand-worked intervals and SciPy's own tests."""

# ruff: noqa: F401, names that by_hand.yaml uses
import dataclasses

import by_hand
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from clpapers.evidence.claim import Claim, Part, Side
from clpapers.evidence.verdict_names import BY_CONSTRUCTION, FAILS, HOLDS, NOT_COMPARABLE, UNDECIDED
from clpapers.evidence.verdicts import decide
from clpapers.metrics import cost
from clpapers.targets.footnotes import Notes

ACE, ER, GDUMB = [50.0, 52.0, 51.0], [40.0, 41.0, 42.5], [45.0, 50.0, 55.0]
STREAM = ("mnist", "split-5")


def side(learner, metric="average_accuracy", take="mean", runs=True, stream=STREAM, **levels):
    return Side("stf/table1", metric, take, {"learner": learner, **levels}, runs, "mnist", stream)


def claim(*parts, test="above", **spec):
    return Claim("stf", "ours", {"test": test, **spec}, parts)


def frame(metric="average_accuracy", **values):
    rows = [
        {"dataset": "mnist", "learner": learner, "seed": seed, "metric": metric, "time": np.nan, "value": value}
        for learner, each in values.items()
        for seed, value in enumerate(each)
    ]
    return {"stf/table1": pd.DataFrame(rows)}


MEASURED = frame(ace=ACE, er=ER, gdumb=GDUMB)


def verdict(made, frames=MEASURED, **circumstances):
    return decide(made, frames, {"stf/table1": Notes("paper", **circumstances)})


def curve(*seeds):
    rows = [
        {"learner": "ace", "seed": s, "metric": "average_accuracy", "time": t, "value": v}
        for s, values in enumerate(seeds)
        for t, v in sorted(enumerate(values), reverse=True)
    ]
    return {"stf/table1": pd.DataFrame(rows)}


def repeated(seeds):
    """Two learners' values [repetitions] of each seed."""
    given = {"metric": "average_accuracy", "time": np.nan}
    rows = [
        {"learner": learner, "seed": seed, "repetition": r, "value": value} | given
        for learner, values in (("ace", ACE), ("er", GDUMB))
        for seed in range(seeds)
        for r, value in enumerate(values)
    ]
    return {"stf/table1": pd.DataFrame(rows)}


def against(number, learner="ace"):
    return Part((side(learner),), float(number))


PAIR, BACK = Part((side("ace"), side("er"))), Part((side("er"), side("ace")))
APART = Part((side("ace"), side("er", stream=("mnist", "other"))))
GUESSED = Part((dataclasses.replace(side("ace"), guesses=True),), 45.0)


def held(*parts, frames=MEASURED, **spec):
    return verdict(claim(*parts, **spec), frames).verdict


def why(*parts, frames=MEASURED, **spec):
    return verdict(claim(*parts, **spec), frames).reason


def shown(*parts):
    found = verdict(claim(*parts))
    return found.verdict, found.shown.part


def taken(frames, **side_of):
    return verdict(claim(Part((side("ace", **side_of),), 0.0)), frames).shown.effect


test_by_hand = by_hand.tests(globals())


def test_paired_by_hand():
    """10, 11 and 8.5: mean 59/6, standard deviation √(19/12), t of two degrees at 97.5 % 4.3027."""
    found = verdict(claim(PAIR))
    half = 4.302652729911275 * np.sqrt(19 / 12 / 3)
    assert found.shown.effect == pytest.approx(59 / 6)
    assert (found.shown.low, found.shown.high) == pytest.approx((59 / 6 - half, 59 / 6 + half))
    assert (found.verdict, found.shown.n) == (HOLDS, 3)


def test_paired_and_unpaired_are_scipys():
    paired = verdict(claim(PAIR)).shown
    expected = stats.ttest_rel(ACE, ER).confidence_interval()
    assert (paired.low, paired.high) == pytest.approx((expected.low, expected.high))
    welch = verdict(claim(APART)).shown
    expected = stats.ttest_ind(ACE, ER, equal_var=False).confidence_interval()
    assert (welch.low, welch.high) == pytest.approx((expected.low, expected.high))
    assert welch.effect == pytest.approx(paired.effect)
    assert welch.high - welch.low != pytest.approx(paired.high - paired.low)


def test_seeds_that_learnt_other_streams_are_no_pairs():
    """The same stream at all common seeds makes pairs; another at one seed leaves Welch's interval of all runs."""
    measured = MEASURED["stf/table1"]
    older = {("ace", 2), ("er", 2)}
    for marked, test in ((older, stats.ttest_rel(ACE, ER)), ({("er", 2)}, stats.ttest_ind(ACE, ER, equal_var=False))):
        learnt = ["0123456789" if run in marked else "as drawn now" for run in zip(measured.learner, measured.seed)]
        found = verdict(claim(PAIR), {"stf/table1": measured.assign(stream=learnt)}).shown
        expected = test.confidence_interval()
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_repetitions_of_one_seed_are_its_runs():
    made = claim(APART)
    found = verdict(made, repeated(1)).shown
    expected = stats.ttest_ind(ACE, GDUMB, equal_var=False).confidence_interval()
    assert (found.low, found.high, found.n) == (pytest.approx(expected.low), pytest.approx(expected.high), 3)


def test_against_a_number_is_scipys():
    shown = verdict(claim(Part((side("ace"),), 45.0))).shown
    expected = stats.ttest_1samp(ACE, 45).confidence_interval()
    assert (shown.effect, shown.low, shown.high) == pytest.approx((51, expected.low, expected.high))
    assert shown.bounds == (pytest.approx(45), np.inf)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [  # 2, 2.2 and 1.8 times
        ({"test": "within", "by": 2, "margin": 1.5}, HOLDS),
        ({"test": "above", "by": 1.2}, HOLDS),
        ({"test": "above", "by": 3}, FAILS),
        ({"test": "above", "by": 2}, UNDECIDED),
        ({"test": "below"}, FAILS),
    ],
)
def test_ratios(spec, expected):
    frames = frame(ace=[20.0, 22.0, 18.0], er=[10.0, 10.0, 10.0])
    found = verdict(claim(Part((side("ace"), side("er"))), ratio=True, **spec), frames)
    logs = stats.ttest_1samp(np.log([2, 2.2, 1.8]), 0).confidence_interval()
    assert found.shown.effect == pytest.approx((2 * 2.2 * 1.8) ** (1 / 3))
    assert (found.shown.low, found.shown.high) == pytest.approx((np.exp(logs.low), np.exp(logs.high)))
    assert found.verdict == expected


def test_a_trend_is_the_mean_slope_of_the_seeds():
    frames = {
        "stf/table1": pd.concat(
            [frame(ace=[v, v + k * k])["stf/table1"].assign(k=k) for k, v in enumerate((1, 3, 5.5))]
        )
    }
    made = claim(Part(tuple(side("ace", k=k) for k in range(3))), test="increasing", along="k")
    slopes = [np.polyfit(range(3), y, 1)[0] for y in ([1, 3, 5.5], [1, 4, 9.5])]
    found = verdict(made, frames)
    expected = stats.ttest_1samp(slopes, 0).confidence_interval()
    assert found.shown.effect == pytest.approx(np.mean(slopes))
    assert (found.shown.low, found.shown.high) == pytest.approx((expected.low, expected.high))
    steep = {"stf/table1": frames["stf/table1"].assign(value=lambda f: 10 * f["k"] + 0.01 * f["seed"] * f["k"])}
    assert verdict(made, steep).verdict == HOLDS
    assert verdict(claim(*made.parts, test="decreasing", along="k"), steep).verdict == FAILS
    assert verdict(claim(Part(made.parts[0].sides[:1]), test="increasing", along="k"), steep).reason == (
        "one level of k at this scale"
    )


def test_a_claim_on_an_advantage_subtracts_seed_by_seed():
    """ACE less ER: 10, 11, 8.5; GDUMB less ER: 5, 9, 12.5; the first less the second: 5, 2, −4."""
    er = side("er")
    ours, theirs = (dataclasses.replace(side(name), less=er) for name in ("ace", "gdumb"))
    shown = verdict(claim(Part((ours, theirs)))).shown
    expected = stats.ttest_1samp([5, 2, -4], 0).confidence_interval()
    assert (shown.effect, shown.low, shown.high) == pytest.approx((1, expected.low, expected.high))


def test_the_trend_of_a_gap_along_time():
    """Gaps of 0, 1, 3 and of 0, 2, 5: slopes 1.5 and 2.5."""
    first = curve([1, 3, 6], [2, 5, 9])["stf/table1"]
    second = curve([1, 2, 3], [2, 3, 4])["stf/table1"].assign(learner="er")
    gap = dataclasses.replace(side("ace"), less=side("er"))
    found = verdict(claim(Part((gap,)), test="increasing", along="time"), {"stf/table1": pd.concat([first, second])})
    assert (found.shown.effect, found.shown.n) == (2.0, 2)


def test_the_interval_of_what_holms_correction_takes_back_is_the_one_that_decides():
    """(51 − 53.6) / (1/√3) is −4.503: one-sided p .0230 by two degrees, .0459 as one of two; t of 1.25 % 6.205."""
    barely, open_ = Part((side("ace"),), 53.6), Part((side("ace"),), 50.0)
    found = verdict(claim(barely, open_)).parts
    assert stats.t.cdf((51 - 53.6) * np.sqrt(3), 2) == pytest.approx(0.023, abs=1e-4)
    half = 6.205346816571397 / np.sqrt(3)
    assert (found[0].confidence, found[0].low, found[0].high) == pytest.approx((0.975, 51 - half, 51 + half))
    assert found[0].low < 53.6 < found[0].high
    assert (found[0].verdict, found[1].verdict) == (UNDECIDED, UNDECIDED)
    assert found[0].reason.endswith("one of 2 parts, it is wider than 95 %, [48.5, 53.5]")
    assert found[1].confidence == 0.95
    assert found[1].reason == "the interval of 3 runs allows both"


PARTS = st.lists(st.floats(45, 57), min_size=1, max_size=6)


@given(PARTS, st.booleans(), st.sampled_from(["above", "below", "within"]))
def test_the_interval_that_stands_there_decides(numbers, most, test):
    """Inside of the bounds a part holds, outside it does not, across one it is undecided, whatever was corrected."""
    spec = {"margin": 3.0} if test == "within" else {}
    parts = [Part((side("ace"),), number) for number in numbers]
    for part in verdict(claim(*parts, test=test, most=most, **spec)).parts:
        low, high = part.bounds
        inside, outside = low <= part.low and part.high <= high, part.high < low or part.low > high
        assert part.verdict == (HOLDS if inside else FAILS if outside else UNDECIDED)


def test_times_have_an_interval_over_blocks_and_decide_nothing_on_other_hardware():
    """ACE takes 9 s and 9 s, ER 1 s and 1 s: a block has one clock for all its seeds."""
    net, cell = {"parameters": 1, "layers": []}, {"order": {"tasks": 1}, "budget": {"batch": 1, "memory": 1}}

    def block(learner, seconds, seeds):
        runs = [{"seed": seed, "learner_bytes": {}} for seed in seeds]
        record = {"training_seconds": {str(seed): seconds for seed in seeds}, "hardware": {"device": "a GPU"}}
        return {"learner": learner}, "abc", {"cell": cell | {"precision": "float32"}, "seeds": runs}, record, net

    def timed(*blocks):
        return verdict(made, {"stf/table1": cost.measure({}, blocks)})

    made = claim(Part((side("ace", "training_seconds"), side("er", "training_seconds"))), test="below")
    found = timed(block("ace", 9.0, (0, 1)), block("er", 1.0, (0, 1)))
    assert (found.verdict, found.reason) == (NOT_COMPARABLE, "other hardware: a GPU here, another GPU in the paper")
    assert (found.shown.effect, found.shown.n) == (8, 1)
    three = [block(name, s + k / 8, (2 * k, 2 * k + 1)) for name, s in (("ace", 9.0), ("er", 1.0)) for k in range(3)]
    found = timed(*three)
    assert (found.verdict, found.shown.n) == (NOT_COMPARABLE, 3)
    expected = stats.ttest_ind([9, 9.125, 9.25], [1, 1.125, 1.25], equal_var=False).confidence_interval()
    assert (found.shown.low, found.shown.high) == pytest.approx((expected.low, expected.high))


RUNS = st.lists(st.sampled_from([0.0, 40.0, 41.5, 100.0, np.inf, np.nan]), min_size=1, max_size=4)


@given(RUNS, RUNS, st.sampled_from(["above", "below", "within"]), st.booleans(), st.booleans())
def test_whatever_runs_there_are_there_is_a_verdict(ace, er, test, paired, ratio):
    other = side("er") if paired else side("er", stream=("mnist", "other"))
    spec = {"margin": 1.5} if test == "within" else {}
    found = verdict(claim(Part((side("ace"), other)), test=test, ratio=ratio, **spec), frame(ace=ace, er=er))
    assert found.verdict in {HOLDS, FAILS, UNDECIDED, NOT_COMPARABLE}
    if min(len(ace), len(er)) == 1:
        assert found.verdict in {UNDECIDED, NOT_COMPARABLE}


def test_a_summary_is_taken_as_it_is():
    """99.84 ± t·0.01 of a hundred simulations."""
    frames = {
        "stf/table1": pd.DataFrame(
            {"row": ["simulation"], "metric": ["average_accuracy"], "mean": 99.84, "se": 0.01, "n": 100}
        )
    }
    entropy = Side("stf/table1", "average_accuracy", "mean", {}, True, None, None)
    shown = verdict(claim(Part((entropy,), 99.8), test="within", margin=0.1), frames).shown
    assert (shown.verdict, shown.effect) == (HOLDS, pytest.approx(99.84))
    assert shown.high - shown.effect == pytest.approx(0.01 * stats.t.ppf(0.975, 99))
