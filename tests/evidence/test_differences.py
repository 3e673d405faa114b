"""The pictures of what was judged: what they show, and that they show it without a number too."""

import pandas as pd
import pytest
from matplotlib.text import Text

from clpapers.evidence.differences import COLUMNS, LOOKS, forest, scatter
from clpapers.evidence.verdict_names import DIVERGES
from clpapers.evidence.verdict_names import GRADES as ALL

GRADES = [grade for grade in ALL if grade != DIVERGES]  # which have a difference


def lines(count=4, **given):
    """Compared numbers of one target, a grade after the other."""
    each = {"place": "table1", "named": "A", "column": "MNIST", "metric": "final_accuracy", "kind": "trained"}
    each |= {"margin_same": 2.0, "margin_near": 5.0, "graded_against": 50.0, "against_se": 1.0}
    each |= {"difference_low": -1.0, "difference_high": 3.0}
    return pd.DataFrame(
        each | {"row": f"M{i}", "runs": f"cell{i}", "verdict": GRADES[i % 4], "ours": 51.0, "difference": 1.0} | given
        for i in range(count)
    )


def test_every_grade_has_a_colour_and_a_marker_of_its_own():
    assert [*LOOKS] == [*GRADES]
    assert len({colour for colour, _ in LOOKS.values()}) == len({marker for _, marker in LOOKS.values()}) == 4


def test_the_scatter_counts_trained_percentages_once():
    shown = pd.concat([lines(), lines(1), lines(1, kind="guess", runs="g"), lines(1, metric="forgetting", runs="f")])
    (axes,) = scatter(shown).axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [f"{grade} (1)" for grade in GRADES]


def test_the_forest_has_a_panel_a_table_and_metric_and_a_line_a_number():
    shown = pd.concat([lines(), lines(3, place="table2", named="F", metric="forgetting", column="CIFAR", runs="")])
    figure = forest(shown)
    assert [axes.get_title(loc="right") for axes in figure.axes] == ["table1: A", "table2: F"]
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["M0", "M1", "M2", "M3"]
    assert "points" in figure.axes[0].get_xlabel()


@pytest.mark.parametrize(("difference", "marker"), [(90.0, ">"), (-90.0, "<"), (1.0, "o")])
def test_what_lies_far_out_is_an_arrow_at_the_edge(difference, marker):
    (axes,) = forest(lines(1, difference=difference, difference_low=difference, difference_high=difference)).axes
    assert [line.get_marker() for line in axes.lines if line.get_marker() != "None"] == [marker]


@pytest.mark.parametrize(("low", "high", "arrows"), [(-90.0, 3.0, "<"), (-1.0, 90.0, ">"), (-90.0, 90.0, "<>")])
def test_an_interval_that_goes_on_beyond_the_edge_has_an_arrow_there(low, high, arrows):
    (axes,) = forest(lines(1, difference_low=low, difference_high=high)).axes
    drawn = {line.get_marker(): line.get_xdata()[0] for line in axes.lines if line.get_marker() in ("<", ">")}
    assert drawn == {arrow: axes.get_xlim()["<>".index(arrow)] for arrow in arrows}


def test_no_long_name_of_a_line_or_a_panel_is_cut():
    long = "a method whose name has been written by somebody who had much time and never thought of a picture"
    figure = forest(pd.concat([lines(2, row=long), lines(2, place="table2", named=long, runs="")]))
    figure.draw_without_rendering()
    for axes in figure.axes:
        titles = [text for text in axes.findobj(Text) if text.get_text() == axes.get_title(loc="right")]
        assert titles
        for text in (*axes.get_yticklabels(), *titles):
            box = text.get_window_extent()
            assert figure.bbox.x0 <= box.x0 <= box.x1 <= figure.bbox.x1


def test_what_is_no_training_says_so_and_exact_numbers_are_left_out():
    shown = pd.concat([lines(1, kind="guess", runs="g"), lines(1), lines(1, kind="exact", runs="e")])
    (axes,) = forest(shown).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["M0 (guess)", "M0"]


def test_without_a_number_there_is_a_picture_that_says_so():
    nothing = pd.DataFrame(columns=COLUMNS)
    assert [text.get_text() for text in forest(nothing).texts] == ["no number is compared"]
    assert len(scatter(nothing).axes) == 1
