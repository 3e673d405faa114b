"""Sentences and conclusions, each tested by one claim or several."""

import pytest

from clpapers.evidence.sentences import by_sentence, standing
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

SAID = [
    ([HOLDS, HOLDS, BY_CONSTRUCTION], HOLDS),
    ([BY_CONSTRUCTION, BY_CONSTRUCTION], BY_CONSTRUCTION),
    ([HOLDS, UNDECIDED], WHERE_TESTED),
    ([UNDECIDED, HOLDS], UNDECIDED),
    ([NOT_COMPARABLE, HOLDS], UNDECIDED),
    ([BY_CONSTRUCTION, UNDECIDED], UNDECIDED),
    ([BY_CONSTRUCTION, NOT_COMPARABLE], UNDECIDED),
    ([HOLDS, FAILS], IN_PART),
    ([FAILS, UNDECIDED], FAILS),
    ([NOT_COMPARABLE, NOT_COMPARABLE], NOT_TESTED),
    ([UNDECIDED, NOT_COMPARABLE], UNDECIDED),
    ([], NOT_TESTED),
]


@pytest.mark.parametrize(("verdicts", "expected"), SAID)
def test_what_is_said_first_must_have_been_tested(verdicts, expected):
    assert standing(verdicts) == expected


def test_sentences_are_counted_by_standing():
    claims = [{"statement": str(i), "verdict": each} for i, (verdicts, _) in enumerate(SAID) for each in verdicts]
    assert by_sentence(claims) == {
        HOLDS: 1, BY_CONSTRUCTION: 1, WHERE_TESTED: 1, UNDECIDED: 5, IN_PART: 1, FAILS: 1, NOT_TESTED: 1
    }  # fmt: skip
