"""Any damage to any config file makes a plan that means it, or one line that says what and where; never a traceback.

`CLPAPERS_EXAMPLES=5000 pytest tests/config/test_config_properties.py` tries so many of each kind, new ones every time.
"""

import copy
import csv
import dataclasses
import functools
import io
import json
import os
import re
import shutil
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from clpapers.budget import costs
from clpapers.config.files import CONFIG, read_yaml
from clpapers.config.plan import Plan
from clpapers.config.refusals import LONGEST, ConfigError
from clpapers.config.settings import all_papers, check_settings
from clpapers.evidence.comparison import read_reported
from clpapers.graph import claims
from clpapers.streams.orders import slug

ROOT = Path(__file__).parents[2]
DAMAGE = yaml.safe_load(Path(__file__).with_name("damage.yaml").read_text(encoding="utf-8"))
LIMIT = os.environ.get("CLPAPERS_EXAMPLES")
FIXED = settings(
    max_examples=int(LIMIT or 40),
    derandomize=LIMIT is None,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(autouse=True, scope="module")
def project(tmp_path_factory):
    """A copy of all that a plan is made from, and in it the working directory."""
    folder = tmp_path_factory.mktemp("project")
    shutil.copytree(ROOT / "config", folder / "config")
    shutil.copytree(ROOT / "workflow", folder / "workflow")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield


# --- what reads each file ------------------------------------------------------------------------------------


def planned(scale, paper):
    """All that a plan says, in a form that can be compared."""
    plan = Plan(scale, [paper])
    for target in plan.targets.values():
        assert target.outputs
        for path in target.outputs:
            assert re.fullmatch(rf"results/{scale}/targets/{paper}/\w+\.[a-z.]+", str(path))
    for cell in plan.cells.values():
        assert re.fullmatch(r"[0-9a-f]{10}", cell.hash)
        assert json.loads(json.dumps(cell.spec)) == cell.spec
        assert re.fullmatch(rf"results/{scale}/runs/\w+/[\w.-]+/\w+-{cell.hash}", str(cell.folder))
        assert plan.results(cell)
    said = {name: [target.digest, str(target.outputs), target.spec] for name, target in plan.targets.items()}
    said |= {"scale": {key: value for key, value in plan.settings.items() if key != "papers"}}
    said |= {"cells": sorted(plan.cells), "orders": sorted(slug(order) for order in plan.orders.values())}
    return said | {name: getattr(plan, name) for name in ("datasets", "weights", "titles", "nets", "outputs")}


def of_scale(file, path):
    paper = path[1] if path[:1] == ("papers",) and len(path) > 1 and path[1] in all_papers() else "stf"
    return planned(file.stem, paper)


def printed(file, path):
    plan = Plan("smoke", [file.stem])
    return {
        name: read_reported(target.reported, file.stem, target.name).to_csv()
        for name, target in plan.targets.items()
        if target.reported
    }


@functools.cache
def plans():
    """All papers' plan at a small scale and their targets at the papers' own."""
    return Plan("smoke", all_papers()), Plan("paper", all_papers()).targets


def claimed(file, path):
    found = claims.read(*plans())
    return {paper: [(each.name, each.spec, repr(each.parts)) for each in of_paper] for paper, of_paper in found.items()}


# By the pattern of a file's path: what is made of it, given the file and the path of the damage.
READERS = {
    "config/claims.yaml": claimed,
    "config/config.yaml": lambda file, path: check_settings(read_yaml(file)),
    "config/papers/*.yaml": lambda file, path: planned("smoke", file.stem),
    "config/scales/*.yaml": of_scale,
    "config/datasets.yaml": lambda file, path: planned("smoke", "streaming"),
    "config/weights.yaml": lambda file, path: planned("paper", "agem"),
    "config/costs.csv": lambda file, path: costs.read(file),
    "config/reported/*.csv": printed,
}
FILES = sorted(path.relative_to(ROOT) for path in (ROOT / CONFIG).rglob("*.*") if path.suffix in (".yaml", ".csv"))
KNOWN = [file for file in FILES if any(file.match(pattern) for pattern in READERS)]
YAML, CSV = ([file for file in KNOWN if file.suffix == suffix] for suffix in (".yaml", ".csv"))


def test_every_config_file_has_a_reader_here():
    assert KNOWN == FILES


@dataclasses.dataclass(frozen=True)
class Damage:
    """A file, what is done to it in a few words, and what it holds then."""

    file: Path
    done: object
    said: object = dataclasses.field(repr=False)


def reader(file):
    return next(read for pattern, read in READERS.items() if file.match(pattern))


@functools.cache
def original(file):
    return (ROOT / file).read_bytes()


@functools.cache
def content(file):
    """What a YAML file holds, no value standing at two places."""
    return json.loads(json.dumps(read_yaml(ROOT / file)))


@functools.cache
def whole(file, at):
    """What the undamaged file makes; `at`, the first keys of the damage's path, decides what is looked at."""
    return reader(file)(file, at)


def damaged(file, damage, path=()):
    """What comes of `file` with the bytes `damage`: what its reader makes of it, or the line that refuses it."""
    file.write_bytes(damage)
    try:
        return reader(file)(file, path), None
    except ConfigError as error:
        return None, str(error)
    finally:
        file.write_bytes(original(file))


def checked(line):
    """The refusal, a line for people: of a file, printable, not too long."""
    assert line.startswith("config/")
    assert line.isprintable()  # so no second line either
    assert len(line) <= LONGEST
    return line


# --- damage to what a YAML file says -------------------------------------------------------------------------


def places(node, path=()):
    """The paths of all values below `node`."""
    pairs = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in pairs:
        yield (*path, key)
        yield from places(value, (*path, key))


@functools.cache
def all_places(file):
    return list(places(content(file)))


def elsewhere(file, path):
    """The places that are neither in nor above a path."""
    return [other for other in all_places(file) if other[: len(path)] != path and path[: len(other)] != other]


def at(node, path):
    return functools.reduce(lambda inner, key: inner[key], path, node)


def keys_in(node):
    return {key for path in places(node) for key in path if isinstance(key, str)}


def nest(levels):
    return functools.reduce(lambda inner, _: [inner], range(levels), 1)


JUNK = st.one_of(
    *map(st.sampled_from, DAMAGE["junk"]),
    st.sampled_from(["x" * 5000, {"x" * 5000: 1}, nest(25), nest(200)]),
    st.text(max_size=12),
    st.integers(),
    st.floats(),
    st.lists(st.integers(-3, 3), max_size=3),
)


def typed_wrong(name, how):
    """A key with two letters swapped, one left out, one too many, or in capitals."""
    return [name[1:] or "x", f"{name}s", name[:-2] + name[-2:][::-1], name.upper(), f"{name} ", f"x/{name}"][how]


@st.composite
def mutations(draw, files):
    """Damage to what a YAML file says; `done` are the places that are touched."""
    file = draw(st.sampled_from(files))
    path = draw(st.sampled_from(all_places(file)))
    said, touched = copy.deepcopy(content(file)), [path]
    inside, key = at(said, path[:-1]), path[-1]
    kind = draw(st.sampled_from(["delete", "rename", "replace", "replace", "replace", "repeat", "swap", "add"]))
    if kind == "delete":
        del inside[key]
    elif kind == "rename" and isinstance(inside, dict):
        new = typed_wrong(key, draw(st.integers(0, 5)))
        inside[new] = inside.pop(key)
        touched.append((*path[:-1], new))
    elif kind == "repeat" and isinstance(inside, list):
        inside.append(copy.deepcopy(inside[key]))
    elif kind == "swap" and (others := elsewhere(file, path)):
        other = draw(st.sampled_from(others))
        there = at(said, other[:-1])
        inside[key], there[other[-1]] = there[other[-1]], inside[key]
        touched.append(other)
    elif kind == "add" and isinstance(inside, dict):
        new = draw(st.sampled_from(["x", "memroy", "läge", "seed s", ".", "__proto__"]))
        inside[new] = draw(JUNK)
        touched = [(*path[:-1], new)]
    else:
        inside[key] = draw(JUNK)
    return Damage(file, touched, said)


def names(file, touched, said):
    """What a refusal may name: the keys that were touched, what holds them, and what was or is in them."""
    found = set()
    for path in touched:
        found |= set([key for key in path if isinstance(key, str)][-2:])
        for node in (content(file), said):
            try:
                found |= keys_in(at(node, path))
            except (KeyError, IndexError, TypeError):
                continue
    return {name[:30].strip() for name in found} | {"(top)"}


OPEN = ("oracles", "learners")  # mappings to which anyone may add an entry that nothing asks for yet


def dead(file, path):
    """Whether the value at `path` of the undamaged file decides nothing: it is laid over, or nothing asks for it.

    So it is where the plan stays as it is without the value, or without something that holds it.
    """
    for end in range(len(path), 0, -1):
        said = copy.deepcopy(content(file))
        try:
            del at(said, path[: end - 1])[path[end - 1]]
        except (KeyError, IndexError, TypeError):  # is not there, but was added
            continue
        if damaged(file, dumped(said), path)[0] == whole(file, path[:2]):
            return True
    return path[-2:-1] in [(name,) for name in OPEN]


def dumped(said):
    return yaml.dump(said, Dumper=yaml.CSafeDumper, allow_unicode=True, sort_keys=False).encode()


def along(**changed):
    """Figure 8 of `agem`, whose axis is a factor of its grid, with other keys."""
    file, said = CONFIG / "papers/agem.yaml", copy.deepcopy(content(CONFIG / "papers/agem.yaml"))
    assert said["targets"]["figure8"]["along"] == "order.epochs"
    said["targets"]["figure8"] |= changed
    return Damage(file, [("targets", "figure8", key) for key in changed], said)


@FIXED
@given(mutations(YAML))
@example(along(grid={"dataset": ["cifar100"], "learner": ["van_s", "van_b", "ewc_s", "ewc_b"]}))
@example(along(along="learner"))
@example(along(along="x"))
def test_a_changed_value_is_planned_or_refused_by_its_name(mutation):
    file, touched, said = mutation.file, mutation.done, mutation.said
    made, refused = damaged(file, dumped(said), touched[0])
    if refused is not None:
        line = checked(refused)
        # A transcription's line may name what its target has no more.
        told = re.search(r": line \d+ |^config/reported/\w+\.csv: line \d+\.(row|column|metric|target): ", line)
        assert told or any(name in line for name in names(file, touched, said)), line
    elif said != content(file) and made == whole(file, touched[0][:2]):
        assert all(dead(file, path) for path in touched), f"{file}: {touched} changed, and nothing with it"


# --- damage to the text --------------------------------------------------------------------------------------

LAUGHS = "l0: &l0 [x, x]\n" + "".join(f"l{i + 1}: &l{i + 1} [*l{i}, *l{i}]\n" for i in range(99))
MERGED = "m0: &m0 {a: {b: 1}}\n" + "".join(f"m{i + 1}: &m{i + 1} {{x: *m{i}, y: *m{i}}}\n" for i in range(99))
LONG = [f"x: 0x{'f' * 6000}\n", f"x: {'9' * 5000}\n", f"x: {'[' * 200}{']' * 200}\n", "x: " + "[" * 10**6]
SNIPPETS = [*DAMAGE["snippets"], *LONG, "- " * 10**6 + "\n", "x: " + "{a: " * 900, LAUGHS, MERGED]


WORDS = st.one_of(st.sampled_from([*DAMAGE["words"], "x" * 500]), st.text(max_size=8))
BYTES = st.one_of(st.binary(min_size=1, max_size=3), st.sampled_from([b"\r", b"\n", b'"', b"," * 3, b"x" * 200000]))
KINDS = ["cut", "repeat", "drop", "move", "bytes"]
OF_YAML, OF_CSV = ["indent", *["snippet"] * 6], ["short", "long", "swap", *["cell"] * 3]


@st.composite
def damages(draw, files):
    """Damage to the text of a file."""
    file = draw(st.sampled_from(files))
    lines = original(file).decode().splitlines(keepends=True)
    i, j = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
    kind, added = draw(st.sampled_from(KINDS + (OF_YAML if file.suffix == ".yaml" else OF_CSV))), ""
    if kind == "repeat":
        lines.insert(j, lines[i])
    elif kind == "drop":
        del lines[i]
    elif kind == "move":
        lines.insert(j, lines.pop(i))
    elif kind == "indent":
        lines[i] = draw(st.sampled_from(["  ", "\t", " "])) + lines[i]
    elif kind == "snippet":
        added = draw(st.sampled_from(["", re.match(" *", lines[i])[0]])) + draw(st.sampled_from(SNIPPETS))
        lines.insert(i, added)
    elif kind in OF_CSV:
        row = next(csv.reader([lines[i]]))
        j, added, out = draw(st.integers(0, len(row) - 1)), draw(WORDS), io.StringIO()
        of_kind = {"cell": [added], "long": [added, row[j]], "short": [], "swap": [row[j], row[0]]}
        row[j : j + 1] = of_kind[kind]
        csv.writer(out, lineterminator="\n").writerow(row)
        lines[i] = out.getvalue()
    text = "".join(lines).encode("utf-8", "surrogatepass")
    if kind in ("bytes", "cut"):
        j = draw(st.integers(0, len(text)))
        added = draw(BYTES) if kind == "bytes" else b""
        text = text[:j] + added + text[j:] * (kind == "bytes")
    return Damage(file, (kind, i, j, added[:60]), text)


def of_stf(done, said):
    return Damage(CONFIG / "papers/stf.yaml", done, said)


@settings(FIXED, max_examples=2 * FIXED.max_examples)
@given(damages(YAML) | damages(CSV))
@example(of_stf("empty", b""))
@example(of_stf("a list", b"- x"))
@example(of_stf("a billion laughs", LAUGHS.encode()))
@example(of_stf("the same with keys", MERGED.encode()))
@example(Damage(CONFIG / "datasets.yaml", "a deep nest", b"x: " + b"[" * 10**6))
@example(Damage(CONFIG / "weights.yaml", "UTF-16", b"\xff\xfea\x00"))
@example(Damage(CONFIG / "reported/stf.csv", "empty", b""))
def test_a_damaged_text_is_planned_or_refused_in_a_line(damage):
    """Of a transcription with the line's number."""
    _, refused = damaged(damage.file, damage.said)
    if refused is not None:
        line = checked(refused)
        if damage.file.suffix == ".csv":
            assert line.startswith(str(damage.file))
            assert re.search(r": line \d+|codec", line), line


# --- settings on the command line ----------------------------------------------------------------------------


@FIXED
@given(st.dictionaries(st.sampled_from([*content(CONFIG / "config.yaml"), "sclae", "x"]), JUNK, min_size=1, max_size=2))
def test_a_setting_is_taken_or_refused_by_its_name(given_):
    try:
        taken = check_settings(content(CONFIG / "config.yaml") | given_)
    except ConfigError as error:
        line = checked(str(error))
        assert any(key in line for key in given_), line
    else:
        assert taken["scale"] in ("smoke", "paper")
        assert set(taken["papers"]) <= set(all_papers())
