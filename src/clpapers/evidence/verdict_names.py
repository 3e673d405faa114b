"""The words of verdicts, on printed numbers and on claims. Imports nothing."""

SAME, NEAR, OPEN, DIFFERS, NOT_COMPARABLE = "same", "near", "open", "differs", "not comparable"
DIVERGES = "diverges, as printed"  # ∞ on either side: no number came out the same
GRADES = (SAME, NEAR, OPEN, DIFFERS, DIVERGES)
TRAINED, CALIBRATED, GUESS, EXACT = "trained", "calibrated", "guess", "exact"
KINDS = (TRAINED, CALIBRATED, GUESS, EXACT)  # of numbers that are compared, each counted apart
HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "undecided"
BY_CONSTRUCTION = "by construction"  # of a claim that holds, but that no run could have decided otherwise
IN_PART, WHERE_TESTED, NOT_TESTED = "holds in part", "holds where tested", "not tested"  # of several claims together
STANDINGS = (HOLDS, BY_CONSTRUCTION, WHERE_TESTED, IN_PART, FAILS, UNDECIDED, NOT_TESTED)
COLOURS = {  # in pictures, badges and cells alike; Tol (2021), "bright"
    **dict.fromkeys((SAME, HOLDS, WHERE_TESTED), "#228833"),
    NEAR: "#4477aa",
    **dict.fromkeys((OPEN, UNDECIDED, IN_PART), "#ccbb44"),
    **dict.fromkeys((DIFFERS, FAILS), "#ee6677"),
    BY_CONSTRUCTION: "#aa3377",
    **dict.fromkeys((DIVERGES, NOT_COMPARABLE, NOT_TESTED), "#bbbbbb"),
}
LINES = {WHERE_TESTED: "dashed", BY_CONSTRUCTION: "dotted"}  # below words that the runs bear out in part, or not at all
WEAK = "one run"  # the cause of a verdict on weak evidence
ONCE = ("runs", "metric", "graded_against")  # columns of a comparison that are alike where targets share it


def style(word: str) -> str:
    """The name of a word's look on pages: `not-comparable`, `diverges`."""
    return word.partition(",")[0].replace(" ", "-")
