"""The words of verdicts, on printed numbers and on claims. Imports nothing.

The pages colour them by these words (report/templates/report.css).
"""

SAME, NEAR, OPEN, DIFFERS, NOT_COMPARABLE = "same", "near", "open", "differs", "not comparable"
GRADES = (SAME, NEAR, OPEN, DIFFERS)
TRAINED, CALIBRATED, GUESS, EXACT = "trained", "calibrated", "guess", "exact"
KINDS = (TRAINED, CALIBRATED, GUESS, EXACT)  # of numbers that are compared, each counted apart
SUPPORTED, CONTRADICTED, UNDECIDED = "supported", "contradicted", "undecided"
BY_CONSTRUCTION = "by construction"  # of a claim that holds, but that no run could have decided otherwise
WEAK = "one run"  # the cause of a verdict on weak evidence
ONCE = ("runs", "metric", "basis")  # columns of a comparison that are alike where targets share it
