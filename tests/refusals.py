"""Refusals as cases: `cases.yaml` of a room says what is named, `refusals.txt` how it is said.

A `cases.yaml` is a list of groups:

    - call: plan()                      # Python, in the names of the room's test file, of its fixtures and of the case
      error: ConfigError                # the class of the error
      fixtures: [folder]                # of pytest, asked for before the call
      first: edit(SCALE, "a", "b")      # Python that makes ready, if anything is to be
      in: config/papers/tiny.yaml       # the file that the cases edit, or another thing that each line names
      cases:
      - {edit: ["memory: 10", "memroy: 10"], names: [defaults.budget, memroy, memory]}

`names` are the key, the value and the remedy, parts of the line. `edit` is a text (null for all) and what replaces it.
A case may have its group's keys, and any other key is a name for the call; `!py` marks Python. `each` makes a case of
every value of a name, for which `{}` stands in `names`.
"""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

TESTS = Path(__file__).parent
SENTENCES = TESTS / "refusals.txt"
WRITE = os.environ.get("CLPAPERS_WRITE_REFUSALS")
HEAD = ("call", "error", "names", "first", "edit", "fixtures")


class Code(str):
    """Python, which a case gives in the place of a value."""


class Loader(yaml.SafeLoader):
    yaml_constructors = yaml.SafeLoader.yaml_constructors | {"!py": lambda loader, node: Code(node.value)}


@dataclass(frozen=True)
class Case:
    """An edit or an input, and what the line that refuses it names."""

    place: str
    call: str
    error: str
    names: list
    first: str = "None"
    file: str = ""
    edit: list | None = None
    fixtures: list = field(default_factory=list)
    given: dict = field(default_factory=dict)


def printable(text):
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def cases(room):
    """The cases of a room, each in a place of its own: its `id`, or what it names, with a number from the second on."""
    found, places = [], []
    for group in yaml.load((TESTS / room / "cases.yaml").read_text(encoding="utf-8"), Loader):
        for each in group["cases"]:
            given = {key: value for key, value in (group | each).items() if key != "cases"}
            head = {name: given.pop(name) for name in HEAD if name in given}
            file, told, many = given.pop("in", ""), given.pop("id", None), given.pop("each", {})
            for value in next(iter(many.values()), ["{}"]):
                names = [str(name).replace("{}", str(value)) for name in head["names"]]
                place = f"{room}: {printable(told or ', '.join([file] * bool(file) + names))}"
                if many and names == [str(name) for name in head["names"]]:
                    place += f" [{printable(str(value))}]"
                places.append(place)
                place += f" #{places.count(place)}" * (places.count(place) > 1)
                inputs = given | dict.fromkeys(many, value)
                found.append(Case(place, **head | {"names": names}, file=file, given=inputs))
    return found


def sentences():
    """The line of each case, by its place."""
    parts = SENTENCES.read_text(encoding="utf-8").split("\n\n") if SENTENCES.is_file() else []
    return dict(part.strip().split("\n    ", 1) for part in parts)


def write(found):
    SENTENCES.write_text("\n".join(f"{place}\n    {found[place]}\n" for place in sorted(found)), encoding="utf-8")


def files(folder):
    """The files of a folder, each with its bytes."""
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def scope_of(case, names, request):
    """The names that the call may use; the working folder is the test's own."""
    scope = names | {name: request.getfixturevalue(name) for name in [*case.fixtures, "tmp_path", "monkeypatch"]}
    scope["monkeypatch"].chdir(scope["tmp_path"])
    scope |= case.given  # of which Python may make use
    scope |= {key: eval(value, scope) for key, value in case.given.items() if isinstance(value, Code)}
    eval(case.first, scope)
    return scope


def edited(file, old, new):
    """Write `new` for the first `old` in a file."""
    text = Path(file).read_text(encoding="utf-8")
    assert old is None or old in text, f"{file} holds no {old!r}"
    Path(file).write_text(new if old is None else text.replace(old, new, 1), encoding="utf-8")


def line_of(case, scope):
    """The one line that refuses a case, once all that it must name was found in it; no file is touched before."""
    if case.edit:
        edited(case.file, *(eval(text, scope) if isinstance(text, Code) else text for text in case.edit))
    before = files(scope["tmp_path"])
    try:
        eval(case.call, scope)
    except (Exception, SystemExit) as error:
        if type(error).__name__ != case.error:
            raise
        told = str(error)
    else:
        raise AssertionError(f"{case.call} refused nothing")
    line = re.sub(rf"{scope['tmp_path'].parent}/(\w+?)\d+\b", r"\1", told.replace(str(scope["tmp_path"]), "HERE"))
    missing = [name for name in [case.file, *case.names] if name not in line]
    assert not missing, f"{missing} not named in: {line}"
    assert "\n" not in told, f"more than a line: {told}"
    assert files(scope["tmp_path"]) == before, "something was written before it was refused"
    return printable(line.replace(str(TESTS.parent), "ROOT")).strip()


def tests(room, names):
    """Two tests for a room: of its cases, and of the calls without an edit; `names` are what both may use."""
    found = cases(room)
    whole = {(case.call, case.first, case.file, *case.fixtures): case for case in found if case.edit}

    @pytest.mark.parametrize("case", found, ids=lambda case: case.place)
    def test_it_is_refused(case, request):
        line, known = line_of(case, scope_of(case, names, request)), sentences()
        if WRITE:
            write(known | {case.place: line})
        assert WRITE or known.get(case.place) == line, f"refusals.txt does not say: {line}"

    @pytest.mark.parametrize("case", whole.values(), ids=lambda case: f"{case.call} {case.file}")
    def test_it_passes_without_the_edit(case, request):
        eval(case.call, scope_of(case, names, request))

    return test_it_is_refused, test_it_passes_without_the_edit if whole else None
