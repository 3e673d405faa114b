"""Imports point downward: no circle, no room that reads one above it, and nothing that renders reaches the plan."""

import networkx as nx
import pytest

from clpapers import provenance
from clpapers.provenance import PACKAGE, imported

ROOMS = [  # from the ground up
    "randomness", "home", "cache", "machine", "provenance", "catalogue", "datasets", "streams", "runs", "metrics",
    "targets", "evidence", "config", "graph", "archive", "audit", "budget", "results", "report", "builds", "bundle",
    "cli",
]  # fmt: skip
CONFIG = [
    "refusals", "files", "user_files", "parts", "schemas", "reported", "paths", "selected_runs", "model", "reductions",
    "layers", "identity", "facts", "checks", "grid", "targets", "settings", "plan", "gans", "origins",
]  # fmt: skip


def module(file):
    """The dotted name of a module's file, below the package."""
    return ".".join(file.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


ARROWS = nx.DiGraph(
    (module(file), module(other))
    for file in PACKAGE.rglob("*.py")
    for name in provenance._parsed(file, "")[1]
    if (other := provenance.module_file(name)) not in (None, file)
)


def reached(*names):
    """The modules that those named import, transitively, themselves included."""
    return {module(file) for file, _ in imported(*(f"clpapers.{name}" for name in names))}


def test_no_imports_go_in_a_circle():
    assert len(ARROWS) > 100
    assert [circle for circle in nx.strongly_connected_components(ARROWS) if len(circle) > 1] == []


def test_a_room_stands_on_those_below_it():
    """Every room is listed; what only type checkers import counts for nothing, as it is never run."""
    places = [[name.partition(".")[0] for name in arrow] for arrow in ARROWS.edges if "__init__" not in arrow]
    between = {(a, b) for a, b in places if a != b and "new" not in (a, b)}
    assert {room for arrow in between for room in arrow} == set(ROOMS)
    assert {(a, b) for a, b in between if ROOMS.index(a) < ROOMS.index(b)} == set()
    assert ("targets", "runs") not in between


def test_each_floor_of_the_configuration_stands_on_those_below_it_and_is_asked_for_by_name():
    inside = {(a, b) for a, b in ARROWS.edges if a.startswith("config.") and b.startswith("config.")}
    floors = [f"config.{name}" for name in CONFIG]
    assert {name for arrow in inside for name in arrow} == set(floors)
    assert {(a, b) for a, b in inside if floors.index(a) <= floors.index(b)} == set()
    assert (PACKAGE / "config/__init__.py").read_text().count("\n") == 1


@pytest.mark.parametrize("folder", ["datasets", "streams", "runs", "runs/learners", "runs/nets", "metrics", "targets"])
def test_what_makes_results_reaches_nothing_that_plans_or_refuses(folder):
    names = [f"{folder.replace('/', '.')}.{file.stem}" for file in (PACKAGE / folder).glob("[a-z]*.py")]
    assert names
    for name in names:
        assert {each for each in reached(name) if each.startswith(("config", "graph", "cli"))} == set()


@pytest.mark.parametrize(
    "command",
    ["datasets:dataset", "streams:stream", "runs:train", "metrics:metrics", "targets:table", "targets:figure",
     "targets:reported", "targets:paired", "claims:claims"],
)  # fmt: skip
def test_a_job_is_made_by_no_code_of_the_configuration(command):
    made_by = reached(f"cli.{command}")
    assert f"cli.{command.partition(':')[0]}" in made_by
    assert {each for each in made_by if each.startswith(("config", "graph"))} == set()


def test_gans_that_runs_share_are_made_by_no_code_of_tests_metrics_or_learners():
    """So that an edit of these trains none of them anew."""
    made_by = reached("cli.gans:gans")
    assert {"cli.gans", "runs.shared_gans", "runs.gans"} <= made_by
    others = ("metrics", "runs.evaluation", "runs.learners", "runs.memories", "runs.loop", "cli.runs")
    assert {each for each in made_by if each.startswith(others)} == set()
