"""The words of verdicts, on printed numbers and on claims. Imports nothing."""

SAME, NEAR, OPEN, DIFFERS, NOT_COMPARABLE = "same", "near", "open", "differs", "not comparable"
GRADES = (SAME, NEAR, OPEN, DIFFERS)
TRAINED, CALIBRATED, GUESS, EXACT = "trained", "calibrated", "guess", "exact"
KINDS = (TRAINED, CALIBRATED, GUESS, EXACT)  # of numbers that are compared, each counted apart
SUPPORTED, CONTRADICTED, UNDECIDED = "supported", "contradicted", "undecided"
BY_CONSTRUCTION = "by construction"  # of a claim that holds, but that no run could have decided otherwise
COLOURS = {  # in pictures, badges and cells alike; Tol (2021), "bright"
    **dict.fromkeys((SAME, SUPPORTED), "#228833"),
    **dict.fromkeys((NEAR, BY_CONSTRUCTION), "#4477aa"),
    **dict.fromkeys((OPEN, UNDECIDED), "#ccbb44"),
    **dict.fromkeys((DIFFERS, CONTRADICTED), "#ee6677"),
    NOT_COMPARABLE: "#bbbbbb",
}
WEAK = "one run"  # the cause of a verdict on weak evidence
ONCE = ("runs", "metric", "basis")  # columns of a comparison that are alike where targets share it
