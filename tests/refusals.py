"""Refusals as cases: `cases.yaml` of a room says what is named, `refusals.txt` how it is said.

A `cases.yaml` is a list of groups:

    - call: plan()                      # Python, in the names of the room's test file, of its fixtures and of the case
      error: ConfigError                # the class of the error
      fixtures: [folder]                # of pytest, asked for before the call
      first: "None"                     # Python that makes ready, if anything is to be
      in: config/papers/tiny.yaml       # the file that the cases edit; the line names it
      cases:
      - {edit: ["memory: 10", "memroy: 10"], names: [defaults.budget, memroy, memory]}

`names` are the key, the value and the remedy, each a part of the line. `edit` is a text and what stands in its place
(null for the whole file). Any other key of a case or a group is a name that the call may use; `!py` marks Python.
`each` makes a case of every value of one name, for which `{}` stands in `names`. Its id is its names, or `id`.

`CLPAPERS_WRITE_REFUSALS=1 pytest -k refus` writes `refusals.txt` anew, to be read as text before it is committed.
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
    """YAML with `!py`."""


Loader.add_constructor("!py", lambda loader, node: Code(node.value))


@dataclass(frozen=True)
class Case:
    """An edit or an input, and what the line that refuses it names."""

    room: str
    call: str
    error: str
    names: list
    id: str
    first: str = "None"
    file: str = ""
    edit: list | None = None
    fixtures: list = field(default_factory=list)
    given: dict = field(default_factory=dict)

    @property
    def place(self):
        return f"{self.room}: {printable(self.id)}"


def printable(text):
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def cases(room):
    """The cases of a room, each with an id of its own."""
    found = []
    for group in yaml.load((TESTS / room / "cases.yaml").read_text(encoding="utf-8"), Loader):
        for each in group.pop("cases"):
            whole = group | each
            head = {name: whole.pop(name) for name in HEAD if name in whole}
            file, told, many = whole.pop("in", ""), whole.pop("id", None), whole.pop("each", {})
            ((key, values),) = many.items() if many else [("", [""])]
            for value in values:
                names = [str(name).replace("{}", str(value) if many else "{}") for name in head["names"]]
                id_ = told or ", ".join([*[file] * bool(file), *names])
                if many and names == [str(name) for name in head["names"]]:
                    id_ += f" [{value}]"
                alike = sum(id_ == case.id.partition(" #")[0] for case in found)
                id_ += f" #{alike + 1}" * bool(alike)
                given = whole | ({key: value} if many else {})
                found.append(Case(room, **head | {"names": names}, id=id_, file=file, given=given))
    return found


def sentences():
    """The line of each case, by its place."""
    parts = SENTENCES.read_text(encoding="utf-8").split("\n\n") if SENTENCES.is_file() else []
    return dict(part.strip().split("\n    ", 1) for part in parts if part.strip())


def write(found):
    text = "\n\n".join(f"{place}\n    {found[place]}" for place in sorted(found))
    SENTENCES.write_text(f"{text}\n", encoding="utf-8")


def files(folder):
    """The files of a folder, each with its bytes."""
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def scope_of(case, names, request):
    """What the call may use; the working folder is the test's own."""
    scope = names | {name: request.getfixturevalue(name) for name in [*case.fixtures, "tmp_path", "monkeypatch"]}
    scope["monkeypatch"].chdir(scope["tmp_path"])
    scope |= case.given  # of which Python may make use
    scope |= {key: meant(value, scope) for key, value in case.given.items()}
    eval(case.first, scope)
    return scope


def meant(value, scope):
    return eval(value, scope) if isinstance(value, Code) else value


def edited(file, old, new):
    """Write `new` for the first `old` in a file."""
    text = Path(file).read_text(encoding="utf-8")
    assert old is None or old in text, f"{file} holds no {old!r}"
    Path(file).write_text(new if old is None else text.replace(old, new, 1), encoding="utf-8")


def tests(room, names):
    """Two tests for a room: of its cases, and of the calls without an edit; `names` are the test file's `globals()`."""
    found = cases(room)
    whole = {(case.call, case.first, case.file, *case.fixtures): case for case in found if case.edit}

    @pytest.mark.parametrize("case", found, ids=lambda case: printable(case.id))
    def test_it_is_refused(case, request, tmp_path):
        scope = scope_of(case, names, request)
        if case.edit:
            edited(case.file, *(meant(text, scope) for text in case.edit))
        before = files(tmp_path)
        try:
            eval(case.call, scope)
        except (Exception, SystemExit) as refusal:
            told, error = str(refusal), refusal
        else:
            pytest.fail(f"{case.call} refused nothing")
        line = re.sub(rf"{tmp_path.parent}/(\w+?)\d+\b", r"\1", told.replace(str(tmp_path), "HERE"))
        line = line.replace(str(TESTS.parent), "ROOT")
        if type(error).__name__ != case.error:
            raise error
        missing = [name for name in [case.file, *case.names] if name not in line]
        assert not missing, f"{missing} not named in: {line}"
        assert "\n" not in told, f"more than a line: {told}"
        assert files(tmp_path) == before, "something was written before it was refused"
        known, line = sentences(), printable(line).strip()
        if WRITE:
            write(known | {case.place: line})
        else:
            assert known.get(case.place) == line, f"refusals.txt does not say: {line}"

    @pytest.mark.parametrize("case", whole.values(), ids=lambda case: f"{case.call} {case.file}")
    def test_it_passes_without_the_edit(case, request):
        eval(case.call, scope_of(case, names, request))

    return test_it_is_refused, test_it_passes_without_the_edit if whole else None
