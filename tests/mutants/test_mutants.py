"""The program of mutants: what is noticed, what survives and what is an error; each listed change can be made."""

import dataclasses

import pytest
import run
from run import EQUIVALENT, ERROR, NOTICED, SURVIVED, Mutant, Unfit

SOURCE = '''\
LIMIT = 10


class Shelf:
    def room(self, held):
        """Places that are left."""
        return LIMIT - held


def shelf_of(book, width=2):
    return book // width
'''
TESTS = """\
import pytest

from clpapers.shelves import Shelf, shelf_of


@pytest.mark.parametrize("books", [4], ids=["four - in [two] rows"])
def test_shelves(books):
    assert (shelf_of(books), Shelf().room(3)) == (2, 7)
"""
CHANGE = Mutant("shelves", "shelves.py", "shelf_of", "book // width", "book + width", "", ("tests/test_shelves.py",))


def other(**given):
    return dataclasses.replace(CHANGE, **given)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project whose package has the name of the installed one."""
    root = tmp_path_factory.mktemp("project")
    for name, text in {"src/clpapers/shelves.py": SOURCE, "tests/test_shelves.py": TESTS}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "src/clpapers/__init__.py").touch()
    (root / "tests/test_fails.py").write_text("def test_fails():\n    assert False\n")
    return root


def test_each_change_is_tried_alone_in_a_copy(project):
    """A broken property is noticed, a harmless change survives, and errors are no passes; the source stays."""
    tried = [
        CHANGE,
        other(function="shelf_of", before="width=2", after="width=3"),
        other(function="Shelf.room", before="- held", after="+ held"),
        other(function="LIMIT", before="10", after="9"),
        other(before="book // width", after="(book - book % width) // width"),
        other(before="book // width", after="int(book / width)", equivalent="books have small numbers"),
        other(before="book * width"),
        other(file="drawers.py"),
        other(tests=("tests/test_drawers.py",)),
    ]
    found = list(run.run(project, tried, jobs=1))
    assert [mutant for mutant, _, _ in found] == tried
    assert [state for _, state, _ in found] == [NOTICED] * 4 + [SURVIVED, EQUIVALENT] + [ERROR] * 3
    assert found[0][2].endswith(" s tests/test_shelves.py::test_shelves[four - in [two] rows]")
    assert (project / "src/clpapers/shelves.py").read_text() == SOURCE


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"before": "width"}, "stands 2 times there"),
        ({"before": "held"}, "stands 0 times there"),
        ({"function": "shelf"}, "shelf is defined 0 times"),
        ({"function": "Shelf.shelf_of"}, "shelf_of is defined 0 times"),
        ({"after": "book // width # the same"}, "changes nothing"),
        ({"after": "book // width)"}, "is no Python"),
    ],
)
def test_a_change_that_cannot_be_made_says_why(given, told):
    with pytest.raises(Unfit, match=told):
        other(**given).changed(SOURCE)


def test_a_test_that_fails_without_the_change_has_noticed_nothing(project):
    *_, (_, state, told) = run.run(project, [other(tests=("tests/test_fails.py",))])
    assert (state, told) == (ERROR, "tests/test_fails.py::test_fails fails without the change too")


@pytest.mark.parametrize(
    ("mutants", "code"),
    [([CHANGE], 0), ([other(after="width and book // width")], 1), ([other(file="drawers.py")], 1)],
)
def test_what_survives_or_cannot_be_tried_fails_the_program(project, mutants, code, capsys):
    assert run.main(["--jobs", "1"], project, mutants) == code
    assert f"all: {1 - code} noticed, " in capsys.readouterr().out


def test_a_sample_is_of_its_commit_alone(project, capsys):
    mutants = [other(before=f"a{i}") for i in range(50)]

    def drawn(seed):
        assert run.main(["--list", "--sample", "5", "--seed", seed], project, mutants) == 0
        return capsys.readouterr().out.partition("\n")[2]

    assert drawn("c0ffee") == drawn("c0ffee") != drawn("decade")


def test_every_listed_change_can_be_made():
    mutants = run.read()
    names = [(each.name, each.after) for each in mutants]
    assert len(mutants) >= 110
    assert len(names) == len({*names})
    for each in mutants:
        each.changed((run.ROOT / run.SOURCE / each.file).read_text(encoding="utf-8"))
        assert all((run.ROOT / test).is_file() for test in each.tests), each.name
