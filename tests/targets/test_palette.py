"""One look a method, told apart within every figure of the papers, without colour vision too."""

from itertools import combinations

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from clpapers.catalogue import methods
from clpapers.config.plan import Plan
from clpapers.config.settings import all_papers
from clpapers.metrics.factors import flat
from clpapers.targets.palette import ALSO, LINES, METHODS, TEN, method_styles

# Machado, Oliveira and Fernandes (2009): what full deuteranopes and protanopes see of linear RGB
DEUTERANOPIA = [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
PROTANOPIA = [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]


@pytest.fixture(scope="module")
def figures():
    """By figure of the papers, the methods' labels in the order of its grid."""
    return {
        name: list(dict.fromkeys(flat(factors)["learner"] for factors, _ in target.cells))
        for name, target in Plan("paper", all_papers()).targets.items()
        if target.spec["kind"] == "figure" and target.cells and target.spec.get("rows", "learner") == "learner"
    }


def seen(colour, matrix):
    """A colour as an eye sees it: linear RGB through a matrix, then back to sRGB."""
    linear = np.array([c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)])
    mixed = np.clip(matrix @ linear, 0, 1)
    return np.where(mixed <= 0.0031308, 12.92 * mixed, 1.055 * mixed ** (1 / 2.4) - 0.055)


def test_no_two_methods_look_alike():
    assert len(set(METHODS.values())) == len(METHODS)
    assert {colour for colour, _ in METHODS.values()} <= set(TEN)


def test_every_method_has_a_look_of_its_own_or_another_name():
    known = {*METHODS, *ALSO}
    versions = {"gdumb_retrained", "multi_model_one_mean", "a_gem_all_classes", "icarl_by_tasks"}  # in no figure
    versions |= {"icarl_in_training", "vcl_narrowed", "gr_shared", "er_by_task"}
    assert {name for name in methods.methods() if name not in known} == versions
    assert set(ALSO.values()) <= set(METHODS)


def test_within_a_figure_of_the_papers_methods_differ_in_colour(figures):
    assert len(figures) > 15
    for name, labels in figures.items():
        found = method_styles(labels)
        assert len({(look.colour, look.line) for look in found.values()}) == len(labels), name


def test_what_colour_blind_eyes_may_confuse_differs_by_marker_or_line(figures):
    confused = 0
    for name, labels in figures.items():
        for one, other in combinations(method_styles(labels).values(), 2):
            for matrix in (DEUTERANOPIA, PROTANOPIA):
                apart = np.linalg.norm(seen(one.colour, np.array(matrix)) - seen(other.colour, np.array(matrix)))
                if apart < 0.15:
                    confused += 1
                    assert (one.marker, one.line) != (other.marker, other.line), (name, one, other)
    assert confused


def test_a_label_of_every_paper_has_the_look_of_the_method_it_trains(figures):
    """`van`, `single` and `online_mlp` are one method; a coreset alone is another than VCL with one."""
    for target in Plan("paper", all_papers()).targets.values():
        for factors, cell in target.cells:
            label, method = flat(factors).get("learner"), cell.spec["learner"]["name"]
            if label is None or label.startswith("coreset_only") or (method == "single" and label in ("ewc", "si")):
                continue  # table 1 of `rules`: with one task, EWC and SI are plain training
            assert method_styles([label])[label].colour == method_styles([method])[method].colour, (target.name, label)


def test_versions_of_a_method_share_its_colour_and_differ_by_line():
    found = method_styles(["van", "van_je", "a_gem_je", "a_gem", "s_gem", "ewc_s", "ewc_b"])
    assert [LINES.index(look.line) for look in found.values()] == [0, 1, 1, 0, 2, 0, 1]
    for one, other in (("van", "van_je"), ("a_gem", "a_gem_je"), ("a_gem", "s_gem"), ("ewc_s", "ewc_b")):
        assert found[one].colour == found[other].colour
        assert found[one].hatch != found[other].hatch
    assert len({look.colour for look in found.values()}) == 3


def test_a_version_alone_has_the_full_line():
    assert method_styles(["vcl_permuted"])["vcl_permuted"] == method_styles(["vcl"])["vcl"]


def test_a_method_of_ones_own_has_a_colour_that_no_other_has_here():
    alone = method_styles(["mine"])["mine"]
    assert alone == method_styles(["mine"])["mine"]
    for known in METHODS:
        found = method_styles([known, "mine", "mine_big"])
        assert found["mine"].colour != found[known].colour
        assert found["mine_big"].colour == found["mine"].colour
        assert found["mine_big"].line != found["mine"].line


def test_levels_of_other_factors_follow_a_palette_that_is_no_methods():
    found = method_styles(["none", "split", 0.5], "oracle")
    assert len({look.colour for look in found.values()}) == 3
    assert not {look.colour for look in found.values()} & set(TEN)


@pytest.mark.parametrize("factor", ["learner", "oracle"])
@pytest.mark.parametrize("labels", [["er", *(f"er_{k}" for k in range(60))], [f"mine{k}" for k in range(90)]])
def test_no_two_lines_points_or_bars_look_alike_whatever_their_number(labels, factor):
    found = method_styles(labels, factor).values()
    assert len({(look.colour, look.marker, look.line) for look in found}) == len(labels)
    assert len({(look.colour, look.marker, look.fill) for look in found}) == len(labels)
    assert len({(look.colour, look.hatch) for look in found}) == len(labels)
