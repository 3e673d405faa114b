"""The words of verdicts, on printed numbers and on claims. Imports nothing."""

AGREES, DIFFERS, NOT_COMPARABLE = "agrees", "differs", "not comparable"
SUPPORTED, CONTRADICTED, UNDECIDED = "supported", "contradicted", "undecided"
