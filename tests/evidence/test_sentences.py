"""Sentences, each tested by one claim or several."""

from clpapers.evidence.sentences import SENTENCES, by_sentence
from clpapers.evidence.verdict_names import BY_CONSTRUCTION, FAILS, NOT_COMPARABLE, HOLDS, UNDECIDED


def test_a_sentence_holds_wholly_partly_or_not():
    said = {
        "a": [HOLDS, HOLDS, BY_CONSTRUCTION],
        "b": [HOLDS, UNDECIDED],
        "c": [HOLDS, FAILS],
        "d": [BY_CONSTRUCTION],
        "e": [UNDECIDED, NOT_COMPARABLE],
        "f": [BY_CONSTRUCTION, UNDECIDED],
    }
    claims = [{"statement": name, "verdict": each} for name, verdicts in said.items() for each in verdicts]
    assert [by_sentence(claims)[name] for name in SENTENCES] == [1, 1, 1, 1, 2]
