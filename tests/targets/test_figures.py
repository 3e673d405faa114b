"""Every figure has its marks and labels, and no text is cut off; `figures.yaml` says what each shows."""

import dataclasses
import re
from collections import Counter
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from matplotlib.collections import PathCollection
from matplotlib.colors import to_rgb
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.text import Text
from rendering import crossed, figure  # noqa: F401, one of which figures.yaml uses

from clpapers.metrics.intervals import mean_interval
from clpapers.targets.figure import write_figure
from clpapers.targets.footnotes import BANDS_FROM
from clpapers.targets.palette import METHODS
from clpapers.targets.style import WIDTH, class_colours, legend_above
from clpapers.targets.unrun import Unrun

SHOWN = yaml.safe_load(Path(__file__).with_name("figures.yaml").read_text(encoding="utf-8"))


def rendered(case, notes):
    module, target, data = case
    return import_module(f"clpapers.targets.{module}").render(target, data, notes)


def kinds(*names):
    return pytest.mark.parametrize("figure_case", names, indirect=True)


def texts(figure):
    return [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]


def words(figure):
    return [text.get_text() for text in texts(figure)]


def dots(axes):
    """The places of the small dots, one a run."""
    found = [each.get_offsets() for each in axes.collections if isinstance(each, PathCollection)]
    return np.concatenate(found) if found else np.empty((0, 2))


def bands(axes):
    return [each.get_paths()[0].vertices for each in axes.collections if not isinstance(each, PathCollection)]


# --- by figures.yaml ----------------------------------------------------------------------------------------------


def plain(value):
    """The same of lists, numbers of four digits and texts."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if np.iterable(value) else str(round(float(value), 4) + 0.0)


def seen(axes, wanted):
    """The facts of a panel, under the names of figures.yaml; a list as long as is wanted."""
    boxes = [
        (box.get_x() + box.get_width() / 2, box.get_y(), box.get_height())
        for box in axes.patches
        if hasattr(box, "get_x")
    ]
    said = [text for text in axes.texts if text.get_text()]
    lists = {
        "lines": [line.get_xydata() for line in axes.lines],
        "xs": [line.get_xdata() for line in axes.lines],
        "ys": [line.get_ydata() for line in axes.lines],
        "labels": [line.get_label() for line in axes.lines],
        "bars": boxes,
        "heights": [height for _, _, height in boxes],
        "texts": [text.get_text() for text in said],
        "at": [getattr(text, "xy", text.get_position())[0] for text in said],
    }
    found = {
        "row": axes.get_subplotspec().rowspan.start,
        "title": axes.get_title(),
        **{"x": axes.get_xlabel(), "y": axes.get_ylabel(), "xscale": axes.get_xscale(), "yscale": axes.get_yscale()},
        **{"xlim": axes.get_xlim(), "ylim": axes.get_ylim(), "xticks": axes.get_xticks()},
        "yticklabels": [label.get_text() for label in axes.get_yticklabels()],
        "dotted": [line.get_xdata()[0] for line in axes.lines if line.get_linestyle() == ":"],
        "dotted_boxes": sum(box.get_linestyle() == ":" for box in axes.patches),
        "count": {key: len(lists[key]) for key in wanted.get("count", ())},
        "among": {text: lists["texts"].count(text) for text in wanted.get("among", ())},
    }
    return {key: lists[key][: len(wanted[key])] if key in lists else found[key] for key in wanted}


@pytest.mark.parametrize("shown", SHOWN, ids=lambda shown: shown["shows"])
def test_a_figure_shows(shown, learnt, real):
    module, target, data = figure(shown["kind"], learnt) if "kind" in shown else (shown["of"], {}, None)
    scope = globals() | {"data": data, "target": target}
    target |= eval(shown.get("target", "{}"), scope)
    drawn = rendered((module, target, eval(shown.get("data", "data"), scope)), real)
    for place, wanted in enumerate(shown.get("panels", [])):
        assert plain(seen(drawn.axes[place], wanted)) == plain(wanted)
    if "legend" in shown:
        assert [text.get_text() for text in drawn.legends[0].get_texts()] == shown["legend"]
    if "notes" in shown:
        assert len(drawn.notes) == len(shown["notes"])
        for note, told in zip(drawn.notes, shown["notes"]):
            assert fnmatchcase(note, told)
    drawn.draw_without_rendering()


# --- every kind ---------------------------------------------------------------------------------------------------


def test_every_stand_in_and_reduction_is_marked_and_nothing_is_cut_off(figure_case, reduced):
    figure = rendered(figure_case, reduced)
    if "dataset" in figure_case[2]:
        titles = [title for axes in figure.axes for title in (axes.get_title(), axes.get_ylabel())]
        assert {title.count("†‡") for title in titles if "EMNIST" in title} == {1}
        assert figure.get_supxlabel() == "† stand-in data, ‡ reduced scale"
        assert figure.notes[0].startswith("† Stand-in data, not the paper's.")
    else:
        assert figure.get_supxlabel() == "‡ reduced scale"
    assert any(note.startswith("‡ Reduced scale ‘small’") for note in figure.notes)
    figure.draw_without_rendering()
    drawn, page = figure.get_tightbbox(), figure.bbox_inches
    assert page.x0 <= drawn.x0 <= drawn.x1 <= page.x1
    assert page.y0 <= drawn.y0 <= drawn.y1 <= page.y1


def test_a_picture_of_the_papers_own_data_has_labels_no_marks_and_no_words_on_runs(figure_case, real):
    unrun = Unrun(wanted=5, runs=2)
    told = dataclasses.replace(real, conditions="Conditions: yes.", imported={"a" * 40: 3}, unrun=unrun)
    figure = rendered(figure_case, real)
    assert words(rendered(figure_case, told)) == words(figure)
    assert not {"†", "‡"} & set("".join(words(figure)))
    placed = [axes for axes in figure.axes if axes.axison and axes.get_subplotspec()]  # no colour bar
    bottom = [axes for axes in placed if axes.get_subplotspec().is_last_row()]
    assert all(axes.get_xlabel() for axes in bottom)
    assert not bottom or any([figure.get_supylabel(), *(axes.get_ylabel() for axes in figure.axes)])


def test_no_long_name_is_cut_or_covers_another(figure_case, reduced, tmp_path):
    """Names of sixty to ninety characters, with and without spaces."""
    module, target, data = figure_case
    if module in ("schematic", "diagram"):
        pytest.skip("the names that these draw are of fixed parts of a net")
    said = [
        "a name that nobody would want to see written on an axis, as it has no end",
        "a_label_of_a_method_that_somebody_gave_in_one_word_with_its_settings",
    ]
    names = {key: f"{i + 10} {said[i % 2]}" for i, key in enumerate(target["names"])}
    figure = rendered((module, target | {"names": names}, data), reduced)
    write_figure(figure, tmp_path / "figure", (".svg",))
    figure.draw_without_rendering()
    ticks = {label for axes in figure.axes for axis in (axes.xaxis, axes.yaxis) for label in axis.get_ticklabels()}
    shown = [
        text for text in texts(figure) if text not in ticks | {text for axes in figure.axes for text in axes.texts}
    ]
    boxes = [text.get_window_extent() for text in shown]
    page = figure.bbox
    for text, box in zip(shown, boxes):
        assert page.x0 - 1 <= box.x0 <= box.x1 <= page.x1 + 1, text
        assert page.y0 - 1 <= box.y0 <= box.y1 <= page.y1 + 1, text
    assert [(shown[i], shown[j]) for j, b in enumerate(boxes) for i, a in enumerate(boxes[:j]) if a.overlaps(b)] == []
    whole = ["".join(text.get_text().split()) for text in shown]
    for name in names.values():
        begun = [text for text in whole if name.replace(" ", "")[:9] in text]
        assert all(name.replace(" ", "") in text for text in begun)  # on however many lines


@kinds("diagram", "schematic")
def test_no_two_texts_of_a_diagram_overlap(figure_case, reduced):
    figure = rendered(figure_case, reduced)
    figure.draw_without_rendering()
    extents = [text.get_window_extent() for text in texts(figure)]
    assert [(i, j) for j, b in enumerate(extents) for i, a in enumerate(extents[:j]) if a.overlaps(b)] == []


@kinds("curves", "dispersion", "scatter", "bars", "roc")
def test_a_panel_of_which_nothing_was_run_stands_empty_and_says_why(figure_case, real):
    module, target, data = figure_case
    factor, level = ("learner", "ace") if module == "roc" else ("dataset", "cifar10")
    left = dataclasses.replace(real, unrun=Unrun(({factor: level},), 1, 9))
    figure = rendered((module, target, data[data[factor] != level]), left)
    said = [[text.get_text() for text in axes.texts if text.get_text() == "not run yet"] for axes in figure.axes]
    across = 2 if module == "bars" else 1  # metrics
    assert said == [[]] * across + [["not run yet"]] * across
    figure.draw_without_rendering()


# --- colours and legends ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [3, 10, 47, 100, 200])
def test_classes_have_colours_of_their_own(classes):
    colours = np.array([to_rgb(colour) for colour in class_colours(classes)])
    assert len(np.unique(colours.round(2), axis=0)) == classes
    assert np.linalg.norm(np.diff(colours, axis=0), axis=1).min() > 0.1  # neighbours in the stack


@kinds("curves", "dispersion", "scatter", "bars", "factor_curves")
def test_a_method_has_its_colour_in_every_figure(figure_case, real):
    axes = rendered(figure_case, real).axes[0]
    drawn = {to_rgb(patch.get_facecolor()) for patch in axes.patches}
    drawn |= {to_rgb(line.get_color()) for line in axes.lines if line.get_marker() in "o^"}
    assert drawn >= {to_rgb(METHODS[method][0]) for method in ("er", "ace")}


@kinds("deviations")
def test_lines_that_are_no_methods_have_no_methods_colours(figure_case, real):
    split, stf = rendered(figure_case, real).axes[0].lines
    assert not {split.get_color(), stf.get_color()} & {colour for colour, _ in METHODS.values()}


@pytest.mark.parametrize(("entries", "columns"), [(1, 1), (6, 6), (7, 4), (8, 4), (13, 5)])
def test_a_legends_rows_are_of_one_length(entries, columns):
    figure = Figure(figsize=(WIDTH, 2))
    legend_above(figure, figure.subplots().plot(np.zeros((2, entries))), ["x"] * entries)
    figure.draw_without_rendering()
    lefts = Counter(round(text.get_window_extent().x0) for text in figure.legends[0].get_texts())
    assert len(lefts) == columns


@pytest.mark.parametrize(("classes", "legends"), [(12, 1), (13, 0)])
def test_only_few_classes_have_a_legend(real, classes, legends):
    data = pd.DataFrame(
        {"class": range(classes), "time": 0.5, "value": 1 / classes, "dataset": "emnist", "order": "stf"}
    )
    figure = rendered(("class_frequency", {"chunks": 1}, data), real)
    assert sum(axes.get_legend() is not None for axes in figure.axes) == legends


# --- few runs and many --------------------------------------------------------------------------------------------


def with_five_runs(data):
    """The same with more seeds: 0 and 110 twice, a mean between and an interval beyond what an accuracy can be."""
    chance, first = data["metric"].str.startswith("chance_"), data["seed"] == data["seed"].min()
    more = [data[first & ~chance].assign(seed=10 + s, value=v) for s, v in enumerate((0.0, 100.0, 0.0, 100.0, 95.0))]
    return pd.concat([data[chance], *more])


def of_other_runs(data, factor, counts):
    """The same with so many runs at each place along the line: value 40 + 10 for every second run."""
    one = data[~data["metric"].str.startswith("chance_") & (data["seed"] == data["seed"].min())]
    several = [
        one[one[factor] == place].assign(seed=s, value=40.0 + 10 * (s % 2))
        for place, n in counts.items()
        for s in range(n)
    ]
    return pd.concat([data[data["metric"].str.startswith("chance_")], *several])


def pieces(line):
    """The lengths of the pieces that a drawn line has."""
    drawn = np.isfinite(np.asarray(line.get_ydata(), float))
    return [len(piece) for piece in "".join("x" if each else " " for each in drawn).split()]


@kinds("curves")
def test_below_five_runs_each_is_a_dot_and_there_is_no_band(figure_case, real):
    for axes in rendered(figure_case, real).axes:
        assert len(dots(axes)) == 2 * 11 * 3
        assert bands(axes) == []


@kinds("curves")
def test_a_band_ends_where_the_metric_can_be_no_higher_or_lower(figure_case, real):
    """The mean is 59; half the interval of these five runs, 65."""
    module, target, data = figure_case
    for axes in rendered((module, target, with_five_runs(data)), real).axes:
        edges = np.concatenate(bands(axes))[:, 1]
        assert (edges.min(), edges.max(), len(dots(axes))) == (0, 100, 0)


@kinds("dispersion", "factor_curves")
def test_a_line_joins_no_mean_of_few_runs_to_one_of_many(figure_case, real):
    """One run at the first place, six at the second, two at those that follow."""
    module, target, data = figure_case
    factor = "scale" if module == "dispersion" else "order.epochs"
    places = sorted(data[factor].unique())
    counts = dict(zip(places, [1, 6, 2, 2]))
    for axes in rendered((module, target, of_other_runs(data, factor, counts)), real).axes:
        for line in [line for line in axes.lines if line.get_label() in ("ER", "ACE")]:
            assert pieces(line) == [1, 1, len(places) - 2]
            marked = [line.get_ydata()[i] for i in line.get_markevery()]
            assert np.isfinite(marked).sum() == len(places)  # each mean has its marker
        assert len(dots(axes)) == 2 * sum(n for n in counts.values() if n < BANDS_FROM)


@kinds("curves")
def test_where_a_curve_has_two_runs_it_has_no_band(figure_case, real):
    """Six runs up to step 4, two from there on."""
    module, target, data = figure_case
    mixed = of_other_runs(data, "time", {step: 6 if step < 5 else 2 for step in range(11)})
    for axes in rendered((module, target, mixed), real).axes:
        assert [band[:, 0].max() for band in bands(axes)] == [4, 4]
        assert sorted({x for x, _ in dots(axes)}) == [*range(5, 11)]
        assert pieces(axes.lines[0]) == [5, 6]


@kinds("dispersion", "factor_curves")
def test_no_whisker_at_an_end_of_the_axis_is_cut(figure_case, real):
    """Only the first place has runs, and the last is far away."""
    module, target, data = figure_case
    factor = "scale" if module == "dispersion" else "order.epochs"
    first = data[factor].min()
    target = target | {"grid": target["grid"] | {factor: [first, 3 * first, 30 * first]}}
    figure = rendered((module, target, of_other_runs(data, factor, {first: 6})), real)
    figure.draw_without_rendering()
    cut, seen = [], 0
    for axes in figure.axes:
        for cap in [cap for each in axes.containers if isinstance(each, ErrorbarContainer) for cap in each.lines[1]]:
            reach = cap.get_markersize() / 2 * figure.dpi / 72
            places = axes.transData.transform(cap.get_xydata())[:, 0]
            cut += [x for x in places if x - reach < axes.bbox.x0 or x + reach > axes.bbox.x1]
            seen += len(places)
    assert seen
    assert cut == []


@kinds("scatter")
def test_of_a_point_few_runs_are_dots_and_more_an_interval_within_what_can_be(figure_case, real):
    module, target, data = figure_case
    timed, learnt = data["metric"] == "training_minutes", data["metric"] == "final_accuracy"
    for axes, dataset in zip(rendered(figure_case, real).axes, ("emnist", "cifar10")):
        assert sorted(dots(axes)[:, 1]) == pytest.approx(sorted(data["value"][learnt & (data["dataset"] == dataset)]))
    more = [data[learnt & (data["seed"] == s)].assign(seed=3 + s) for s in (0, 1)]
    emnist, _ = rendered((module, target, pd.concat([data, *more])), real).axes
    mean, half = mean_interval(np.array([79.0, 80.0, 81.0, 79.0, 80.0]) + 0.1)
    whiskers = emnist.containers[0].lines[2][0].get_segments()[0][:, 1]
    np.testing.assert_allclose(np.sort(whiskers), [mean - half, mean + half])
    five = pd.concat([data[timed], with_five_runs(data[learnt])])
    for axes in rendered((module, target, five), real).axes:
        ends = np.concatenate([each.get_segments()[0][:, 1] for each in axes.collections])
        assert (ends.min(), ends.max()) == (0, 100)


@kinds("bars")
def test_on_bars_few_runs_are_dots_and_more_have_an_interval_costs_as_shares_of_the_highest(figure_case, real):
    module, target, data = figure_case
    for axes, scale in zip(rendered(figure_case, real).axes, (1, 90)):
        assert sorted(dots(axes)[:, 1]) == pytest.approx([v / scale for v in (79, 80, 81, 89, 90, 91)])
        assert not [each for each in axes.containers if hasattr(each, "has_yerr")]
    more = [data[data["seed"] == s].assign(seed=3 + s) for s in (0, 1)]
    panels = rendered((module, target, pd.concat([data, *more])), real).axes
    assert [axes.get_xlabel() for axes in panels] == ["Fin. Acc.", "training_seconds"] * 2
    assert [axes.get_ylabel() for axes in panels] == ["EMNIST", "", "CIFAR-10", ""]
    mean, half = mean_interval([79.0, 80.0, 81.0, 79.0, 80.0])
    for axes, scale in ((panels[0], 1), (panels[1], mean + 10)):
        assert [bar.get_height() * scale for bar in axes.patches] == pytest.approx([mean, mean + 10])
        whiskers = np.sort(axes.collections[0].get_segments()[0][:, 1])
        np.testing.assert_allclose(whiskers * scale, [mean - half, mean + half])


@kinds("deviations")
def test_lines_may_be_of_orders_and_bands_of_a_standard_deviation(figure_case, real):
    """The values at the first batch are 1, 2, 3, 3 and 1: 2 ± 1."""
    module, target, data = figure_case
    more = [data[data["repetition"] == r].assign(repetition=again) for again, r in ((3, 2), (4, 0))]
    data = pd.concat([data, *more], ignore_index=True)
    (axes,) = rendered((module, target, data), real).axes
    split, stf = axes.lines
    assert [split.get_label(), stf.get_label()] == ["disjoint tasks", "STF"]
    np.testing.assert_allclose(split.get_ydata(), 20 / np.arange(1, 16))
    edges = bands(axes)[1]
    assert sorted({*edges[edges[:, 0] == 1, 1].round(9)}) == [1, 3]
    assert axes.get_ylim()[1] >= 30  # the whole band is shown
    data.loc[(data["time"] == 1) & (data["repetition"] == 0), "value"] = np.inf  # a ratio to nothing
    assert rendered((module, target, data), real).axes[0].lines[0].get_xdata()[0] == 2


@kinds("boundary_trace")
def test_a_trace_of_five_runs_has_a_band_that_ends_at_zero(figure_case, real):
    """Before the second epoch all five runs have 1; before the fourth, 12 thrice and 9 twice."""
    module, target, data = figure_case
    more = [data[data["seed"] == s % 2].assign(seed=s) for s in range(2, 5)]
    above, below = rendered((module, target, pd.concat([data, *more])), real).axes
    for axes in (above, below):
        assert min(line.get_linewidth() for line in axes.lines) >= 0.8
        assert min(band[:, 1].min() for band in bands(axes)) >= 0
    edges = bands(above)[0]
    mean, half = mean_interval([12, 9, 12, 9, 12])
    np.testing.assert_allclose(sorted(set(edges[edges[:, 0] == 3, 1])), [mean - half, mean + half])
    assert set(edges[edges[:, 0] == 1, 1]) == {1}


@kinds("roc")
def test_a_roc_of_five_runs_has_a_band_between_0_and_1(figure_case, real):
    """At the first step heights are 0.5 or 0, which five runs have thrice and twice: 0.3 ± 0.34."""
    module, target, data = figure_case
    assert rendered(figure_case, real).axes[0].lines[2].get_drawstyle() == "steps-post"
    more = [data[data["seed"] == s % 2].assign(seed=s) for s in range(2, 5)]
    er = rendered((module, target, pd.concat([data, *more])), real).axes[0]
    heights = bands(er)[0][:, 1]
    assert (heights.min(), heights.max()) == (0, 1)
    assert np.isclose(heights, 0.3 + mean_interval([0.5, 0, 0.5, 0, 0.5])[1]).any()
    assert len(er.lines) == 2  # the mean and chance
    assert er.texts[0].get_text() == "AUC 0.50 ± 0.00"


# --- single kinds -------------------------------------------------------------------------------------------------


def test_stacked_areas_fill_the_panel(real):
    data = pd.DataFrame({"class": [0, 1, 1], "time": [0.25, 0.25, 0.75], "value": [0.4, 0.6, 1.0]})
    figure = rendered(("class_frequency", {"chunks": 2}, data.assign(dataset="emnist", order="stf")), real)
    tops = {patch.get_label(): patch.get_data() for patch in figure.axes[0].patches}
    np.testing.assert_allclose(tops["0"].values, [0.4])
    np.testing.assert_allclose(tops["1"].values, [1, 1])
    np.testing.assert_allclose(tops["1"].edges, [0, 0.5, 1])


@kinds("curves")
def test_a_method_that_diverged_stretches_no_axis(figure_case, real):
    module, target, data = figure_case
    ill = (data["dataset"] == "emnist") & (data["learner"] == "ace")
    without = rendered((module, target, data[~ill]), real).axes[0].get_ylim()
    data.loc[ill & (data["seed"] == 1), "value"] = np.inf
    assert rendered((module, target, data), real).axes[0].get_ylim() == without


@kinds("cycles")
def test_the_numbers_of_cycles_cover_no_line_and_a_guess_is_inside(figure_case, real):
    figure = rendered(figure_case, real)
    (axes,) = figure.axes
    figure.draw_without_rendering()
    lowest = min(text.get_window_extent().y0 for text in axes.texts)
    assert axes.transData.inverted().transform((0, lowest))[1] > axes.lines[1].get_ydata().max()
    assert axes.get_ylim()[0] < 12.5


@kinds("diagram")
def test_a_diagram_has_no_number_that_the_net_does_not_have(figure_case, real):
    shown = " ".join(words(rendered(figure_case, real).axes[0])).replace("stage 1", "")
    told = "3×64×64 8×16×16 1,176 16×16×16 1,152 16×1×1 16 85 85×16 1,360 50"
    assert {*re.findall(r"\d+", shown)} == {*re.findall(r"\d+", told)}


def test_a_task_has_the_colour_of_its_dominant_class_and_the_others_are_paler(real):
    data = pd.DataFrame({"chunk": 0, "class": [0, 1], "task": [1, 0], "value": [0.25, 0.75]})
    classes, tasks = rendered(("sequence", {"chunks": 1}, data.assign(dataset="emnist", order="stf")), real).axes
    assert classes.patches[0].get_facecolor() == tasks.patches[0].get_facecolor()
    assert classes.patches[1].get_facecolor() != tasks.patches[1].get_facecolor()


def test_bursts_draw_each_item_in_its_categorys_colour_and_its_instances_shade(real):
    """Three classes: batches of 4, 3 and 1 items, and the same items in bursts."""
    runs = {
        "split": [(0, 1, 4, 1), (0, 1, 3, 1), (0, 1, 4, 2), (1, 0, 0, 3), (2, 2, 5, 1)],
        "instances": [(0, 1, 4, 3), (1, 2, 5, 1), (2, 0, 0, 3), (3, 1, 3, 1)],
    }
    rows = [(order, *run) for order, those in runs.items() for run in those]
    data = pd.DataFrame(rows, columns=["order", "chunk", "class", "instance", "value"]).assign(dataset="emnist")
    batches, stream = rendered(("bursts", {"names": {"emnist": "E"}}, data), real).axes
    lines = [
        [[tuple(np.round(c, 6)) for c in image.get_array()[0]] for image in axes.images] for axes in (batches, stream)
    ]
    whole = [tuple(np.round(to_rgb(colour), 6)) for colour in class_colours(3)]
    pale = tuple(np.round(np.array(whole[1]) * 0.45 + 0.55, 6))  # the second of class 1's two instances
    assert lines[0] == [[pale, whole[1], pale, pale], [whole[0]] * 3, [whole[2]]]
    assert lines[1] == [[pale] * 3 + [whole[2]], [whole[0]] * 3 + [whole[1]]]  # goes on from line to line
    assert all(box.get_width() > len(line) for box, line in zip(batches.patches, lines[0], strict=True))
    assert max(box.zorder for box in batches.patches) < min(image.zorder for image in batches.images)
    assert not stream.patches
    assert [label.get_text() for label in batches.get_yticklabels()] == ["1", "2", "3"]
    assert [label.get_text() for label in stream.get_yticklabels()] == ["0", "4"]
    assert batches.get_xlim() == stream.get_xlim()
