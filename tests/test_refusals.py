"""The runner of cases notices what it should; the file of sentences has one for each case, sorted, and no others."""

from pathlib import Path

import pytest
import refusals
from refusals import Case


def no(text, file=None):
    if file:
        Path(file).touch()
    raise ValueError(text)


@pytest.mark.parametrize(
    ("call", "fault"),
    [
        ("no('a.yaml: key: 3; take 4')", None),
        ("no('a.yaml: kex: 3; take 4')", r"\['key'\] not named"),
        ("no('key: 3; take 4')", r"\['a.yaml'\] not named"),
        ("no('a.yaml: key: 3;\\ntake 4')", "more than a line"),
        ("no('a.yaml: key: 3; take 4', 'b')", "was written"),
        ("len('a.yaml')", "refused nothing"),
    ],
)
def test_a_line_names_all_that_it_must_before_anything_is_written(call, fault, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    case = Case("here", call, "ValueError", ["key", "3", "4"], file="a.yaml")
    if fault is None:
        assert refusals.line_of(case, {"no": no, "tmp_path": tmp_path}) == "a.yaml: key: 3; take 4"
        return
    with pytest.raises(AssertionError, match=fault):
        refusals.line_of(case, {"no": no, "tmp_path": tmp_path})


def test_each_sentence_is_of_a_case():
    rooms = [file.parent.relative_to(refusals.TESTS) for file in refusals.TESTS.rglob("cases.yaml")]
    places = sorted(case.place for room in rooms for case in refusals.cases(str(room)))
    known = refusals.sentences()
    if refusals.WRITE:
        refusals.write({place: known[place] for place in places if place in known})
    else:
        assert list(known) == places
