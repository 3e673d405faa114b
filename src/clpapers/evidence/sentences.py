"""Whether a sentence or a conclusion holds, by the claims that test its parts. Imports nothing heavy."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from clpapers.evidence.verdict_names import (
    BY_CONSTRUCTION,
    FAILS,
    HOLDS,
    IN_PART,
    NOT_COMPARABLE,
    NOT_TESTED,
    UNDECIDED,
    WHERE_TESTED,
)


def standing(verdicts: Sequence[str]) -> str:
    """Whether what several claims test holds, of `verdict_names.STANDINGS`.

    verdicts: the claims' verdicts; first the one on what is said first. It holds where tested only if this one holds by
    runs: otherwise the others say nothing of what it is about.
    """
    found = set(verdicts)
    held = found & {HOLDS, BY_CONSTRUCTION}
    if FAILS in found:
        return IN_PART if held else FAILS
    if found == {BY_CONSTRUCTION}:
        return BY_CONSTRUCTION
    if found and found == held:
        return HOLDS
    if verdicts and verdicts[0] == HOLDS:
        return WHERE_TESTED
    return NOT_TESTED if found <= {NOT_COMPARABLE} else UNDECIDED


def by_sentence(claims: Iterable[Mapping[str, str]]) -> Counter[str]:
    """How many sentences have each standing.

    claims: of one paper, with `statement` and `verdict`.
    """
    verdicts: dict[str, list[str]] = {}
    for claim in claims:
        verdicts.setdefault(claim["statement"], []).append(claim["verdict"])
    return Counter(map(standing, verdicts.values()))
