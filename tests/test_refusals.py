"""The file of sentences holds one for each case of a refusal, sorted, and no others."""

import refusals


def test_each_sentence_is_of_a_case():
    rooms = sorted(file.parent.relative_to(refusals.TESTS) for file in refusals.TESTS.rglob("cases.yaml"))
    places = sorted(case.place for room in rooms for case in refusals.cases(str(room)))
    known = refusals.sentences()
    if refusals.WRITE:
        refusals.write({place: known[place] for place in places if place in known})
    else:
        assert list(known) == places
