"""Counts claims by sentence: several claims may test parts of one. Imports nothing heavy."""

from collections import Counter
from collections.abc import Iterable, Mapping

from clpapers.evidence.verdict_names import BY_CONSTRUCTION, CONTRADICTED, SUPPORTED

WHOLLY, PARTLY, FALSE, CONSTRUCTED, LEFT = "wholly supported", "partly", CONTRADICTED, BY_CONSTRUCTION, "open"
SENTENCES = (WHOLLY, PARTLY, FALSE, CONSTRUCTED, LEFT)


def by_sentence(claims: Iterable[Mapping[str, str]]) -> Counter[str]:
    """How many sentences are wholly supported, partly, contradicted in one claim, by construction alone, or open.

    claims: of one paper, with `statement` and `verdict`.
    """
    verdicts: dict[str, set[str]] = {}
    for claim in claims:
        verdicts.setdefault(claim["statement"], set()).add(claim["verdict"])
    return Counter(map(_verdict, verdicts.values()))


def _verdict(verdicts: set[str]) -> str:
    if CONTRADICTED in verdicts:
        return FALSE
    if verdicts == {BY_CONSTRUCTION}:
        return CONSTRUCTED
    if verdicts <= {SUPPORTED, BY_CONSTRUCTION}:
        return WHOLLY
    return PARTLY if SUPPORTED in verdicts else LEFT
