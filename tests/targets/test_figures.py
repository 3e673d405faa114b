"""What every figure must have: its marks, its labels, and no text cut off."""

import dataclasses
import re
from importlib import import_module

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PathCollection
from matplotlib.colors import to_rgb
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.text import Text

from clpapers.metrics.intervals import mean_interval
from clpapers.targets import bars, bursts, class_frequency, curves, roc, scatter, sequence, stream_curves
from clpapers.targets.figure import write_figure
from clpapers.targets.footnotes import BANDS_FROM
from clpapers.targets.palette import METHODS
from clpapers.targets.style import WIDTH, class_colours, legend_above
from clpapers.targets.unrun import Unrun


def rendered(case, notes):
    module, target, data = case
    return import_module(f"clpapers.targets.{module}").render(target, data, notes)


def texts(figure):
    return [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]


def test_no_stand_in_and_no_reduction_goes_unmarked(figure_case, reduced):
    figure = rendered(figure_case, reduced)
    if "dataset" in figure_case[2]:
        titles = [title for axes in figure.axes for title in (axes.get_title(), axes.get_ylabel())]
        assert any("EMNIST†‡" in title for title in titles)
        assert not any("EMNIST" in title and "EMNIST†‡" not in title for title in titles)
        assert figure.get_supxlabel() == "† stand-in data, ‡ reduced scale"
        assert figure.notes[0].startswith("† Stand-in data, not the paper's.")
    else:
        assert figure.get_supxlabel() == "‡ reduced scale"
    assert any(note.startswith("‡ Reduced scale ‘small’") for note in figure.notes)


def test_real_data_at_the_papers_scale_is_not_marked(figure_case, real):
    shown = "".join(text.get_text() for text in texts(rendered(figure_case, real)))
    assert "†" not in shown
    assert "‡" not in shown


def test_nothing_is_cut_off(figure_case, reduced):
    figure = rendered(figure_case, reduced)
    figure.draw_without_rendering()
    drawn, page = figure.get_tightbbox(), figure.bbox_inches
    assert drawn.x0 >= page.x0
    assert drawn.y0 >= page.y0
    assert drawn.x1 <= page.x1
    assert drawn.y1 <= page.y1


def test_no_words_on_runs_stand_in_a_picture(figure_case, real):
    unrun = Unrun(wanted=5, runs=2)
    told = dataclasses.replace(real, conditions="Conditions: yes.", imported={"a" * 40: 3}, unrun=unrun)
    plain, figure = rendered(figure_case, real), rendered(figure_case, told)
    assert [each.get_text() for each in texts(figure)] == [each.get_text() for each in texts(plain)]


def test_axes_are_labelled(figure_case, real):
    figure = rendered(figure_case, real)
    placed = [axes for axes in figure.axes if axes.axison and axes.get_subplotspec()]  # no colour bar
    bottom = [axes for axes in placed if axes.get_subplotspec().is_last_row()]
    assert all(axes.get_xlabel() for axes in bottom)
    assert not bottom or any([figure.get_supylabel(), *(axes.get_ylabel() for axes in figure.axes)])


@pytest.mark.parametrize("classes", [3, 10, 47, 100, 200])
def test_classes_have_colours_of_their_own(classes):
    colours = np.array([to_rgb(colour) for colour in class_colours(classes)])
    assert len(np.unique(colours.round(2), axis=0)) == classes
    assert np.linalg.norm(np.diff(colours, axis=0), axis=1).min() > 0.1  # neighbours in the stack


def test_stacked_areas_fill_the_panel(real):
    data = pd.DataFrame({"class": [0, 1, 1], "time": [0.25, 0.25, 0.75], "value": [0.4, 0.6, 1.0]})
    data = data.assign(dataset="emnist", order="stf")
    figure = class_frequency.render({"chunks": 2}, data, real)
    tops = {patch.get_label(): patch.get_data() for patch in figure.axes[0].patches}
    np.testing.assert_allclose(tops["0"].values, [0.4])
    np.testing.assert_allclose(tops["1"].values, [1, 1])
    np.testing.assert_allclose(tops["1"].edges, [0, 0.5, 1])


@pytest.mark.parametrize("figure_case", ["curves"], indirect=True)
def test_curves_show_means_over_seeds(figure_case, real):
    _, target, data = figure_case
    emnist, cifar10 = curves.render(target, data, real).axes
    er, _ = emnist.lines
    assert er.get_label() == "ER"
    np.testing.assert_allclose(er.get_ydata(), 40 + np.arange(11))
    np.testing.assert_allclose(cifar10.lines[1].get_ydata(), 25 + np.arange(11))


def with_five_runs(data):
    """The same with more seeds: 0 and 110 twice, a mean between and an interval beyond what an accuracy can be."""
    first = data[data["seed"] == data["seed"].min()]
    more = [first.assign(seed=10 + s, value=v) for s, v in enumerate((0.0, 100.0, 0.0, 100.0, 95.0))]
    chance = data["metric"].str.startswith("chance_")
    return pd.concat([data[chance], *(each[~each["metric"].str.startswith("chance_")] for each in more)])


def dots(axes):
    """The places of the small dots, one a run."""
    found = [each.get_offsets() for each in axes.collections if isinstance(each, PathCollection)]
    return np.concatenate(found) if found else np.empty((0, 2))


@pytest.mark.parametrize("figure_case", ["curves"], indirect=True)
def test_below_five_runs_each_is_a_dot_and_there_is_no_band(figure_case, real):
    _, target, data = figure_case
    runs = data["seed"].nunique()
    assert runs < BANDS_FROM
    for axes in curves.render(target, data, real).axes:
        dots = [each for each in axes.collections if len(each.get_offsets()) > 1]
        assert [len(each.get_offsets()) for each in dots] == [11 * runs] * 2
        assert len(axes.collections) == 2


@pytest.mark.parametrize("figure_case", ["curves"], indirect=True)
def test_a_band_ends_where_the_metric_can_be_no_higher_or_lower(figure_case, real):
    """The mean is 59; half the interval of these five runs, 65."""
    _, target, data = figure_case
    for axes in curves.render(target, with_five_runs(data), real).axes:
        edges = np.concatenate([band.get_paths()[0].vertices[:, 1] for band in axes.collections])
        assert (edges.min(), edges.max()) == (0, 100)
        assert len(axes.collections) == 2  # bands alone


def of_other_runs(data, **runs):
    """The same with so many runs at each place along the line, by its name: value 40 + 10 for every second run."""
    (factor, counts), chance = runs.popitem(), data["metric"].str.startswith("chance_")
    one = data[~chance & (data["seed"] == data["seed"].min())]
    several = [
        one[one[factor] == place].assign(seed=s, value=40.0 + 10 * (s % 2))
        for place, n in counts.items()
        for s in range(n)
    ]
    return pd.concat([data[chance], *several])


def pieces(line):
    """The lengths of the pieces that a drawn line has."""
    drawn = np.isfinite(np.asarray(line.get_ydata(), float))
    return [len(piece) for piece in "".join("x" if each else " " for each in drawn).split()]


@pytest.mark.parametrize("figure_case", ["dispersion", "factor_curves"], indirect=True)
def test_a_line_joins_no_mean_of_few_runs_to_one_of_many(figure_case, real):
    """One run at the first place, six at the second, two at those that follow."""
    module, target, data = figure_case
    factor = "scale" if module == "dispersion" else "order.epochs"
    places = sorted(data[factor].unique())
    counts = dict(zip(places, [1, 6, 2, 2]))
    for axes in rendered((module, target, of_other_runs(data, **{factor: counts})), real).axes:
        for line in [line for line in axes.lines if line.get_label() in ("ER", "ACE")]:
            assert pieces(line) == [1, 1, len(places) - 2]
            marked = [line.get_ydata()[i] for i in line.get_markevery()]
            assert np.isfinite(marked).sum() == len(places)  # each mean has its marker
        assert len(dots(axes)) == 2 * sum(n for n in counts.values() if n < BANDS_FROM)


@pytest.mark.parametrize("figure_case", ["curves"], indirect=True)
def test_where_a_curve_has_two_runs_it_has_no_band(figure_case, real):
    """Six runs up to step 4, two from there on."""
    _, target, data = figure_case
    mixed = of_other_runs(data, time={step: 6 if step < 5 else 2 for step in range(11)})
    for axes in curves.render(target, mixed, real).axes:
        bands = [each.get_paths()[0].vertices for each in axes.collections if not len(each.get_offsets()) > 1]
        assert [band[:, 0].max() for band in bands] == [4, 4]
        assert sorted({x for x, _ in dots(axes)}) == [*range(5, 11)]
        assert pieces(axes.lines[0]) == [5, 6]


@pytest.mark.parametrize("figure_case", ["dispersion", "factor_curves"], indirect=True)
def test_no_whisker_at_an_end_of_the_axis_is_cut(figure_case, real):
    """Only the first place has runs, and the last is far away."""
    module, target, data = figure_case
    factor = "scale" if module == "dispersion" else "order.epochs"
    first = data[factor].min()
    target = target | {"grid": target["grid"] | {factor: [first, 3 * first, 30 * first]}}
    figure = rendered((module, target, of_other_runs(data, **{factor: {first: 6}})), real)
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
    inside = {text for axes in figure.axes for text in axes.texts}
    shown = [text for text in texts(figure) if text not in ticks | inside]
    boxes = [text.get_window_extent() for text in shown]
    page = figure.bbox
    for text, box in zip(shown, boxes):
        assert page.x0 - 1 <= box.x0 <= box.x1 <= page.x1 + 1, text
        assert page.y0 - 1 <= box.y0 <= box.y1 <= page.y1 + 1, text
    covered = [(shown[i], shown[j]) for j, b in enumerate(boxes) for i, a in enumerate(boxes[:j]) if a.overlaps(b)]
    assert covered == []
    whole = ["".join(text.get_text().split()) for text in shown]
    for name in names.values():
        begun = [text for text in whole if name.replace(" ", "")[:9] in text]
        assert all(name.replace(" ", "") in text for text in begun)  # on however many lines


@pytest.mark.parametrize("figure_case", ["scatter"], indirect=True)
def test_of_a_point_few_runs_are_dots_and_more_an_interval_within_what_can_be(figure_case, real):
    _, target, data = figure_case
    timed, learnt = data["metric"] == "training_minutes", data["metric"] == "final_accuracy"
    for axes, dataset in zip(scatter.render(target, data, real).axes, ("emnist", "cifar10")):
        here = data[(data["dataset"] == dataset) & learnt]
        assert sorted(dots(axes)[:, 1]) == pytest.approx(sorted(here["value"]))
    more = [data[learnt & (data["seed"] == s)].assign(seed=3 + s) for s in (0, 1)]
    emnist, _ = scatter.render(target, pd.concat([data, *more]), real).axes
    mean, half = mean_interval(np.array([79.0, 80.0, 81.0, 79.0, 80.0]) + 0.1)
    whiskers = emnist.containers[0].lines[2][0].get_segments()[0][:, 1]
    np.testing.assert_allclose(np.sort(whiskers), [mean - half, mean + half])
    for axes in scatter.render(target, pd.concat([data[timed], with_five_runs(data[learnt])]), real).axes:
        ends = np.concatenate([each.get_segments()[0][:, 1] for each in axes.collections])
        assert (ends.min(), ends.max()) == (0, 100)


@pytest.mark.parametrize("figure_case", ["bars"], indirect=True)
def test_on_bars_few_runs_are_dots_without_an_interval(figure_case, real):
    _, target, data = figure_case
    panels = bars.render(target, data, real).axes
    for axes, scale in ((panels[0], 1), (panels[1], 90)):
        assert sorted(dots(axes)[:, 1]) == pytest.approx([v / scale for v in (79, 80, 81, 89, 90, 91)])
        assert not [each for each in axes.containers if hasattr(each, "has_yerr")]


@pytest.mark.parametrize("figure_case", ["bars"], indirect=True)
def test_a_bar_of_nothing_says_zero(figure_case, real):
    _, target, data = figure_case
    axes = bars.render(target, data.assign(value=0.0 * data["value"]), real).axes[0]
    assert [text.get_text() for text in axes.texts] == ["0", "0"]
    assert axes.get_ylim() == (0, 1)


@pytest.mark.parametrize("figure_case", ["curves", "dispersion", "scatter", "bars", "roc"], indirect=True)
def test_a_panel_of_which_nothing_was_run_stands_empty_and_says_why(figure_case, real):
    module, target, data = figure_case
    factor, level = ("learner", "ace") if module == "roc" else ("dataset", "cifar10")
    left = dataclasses.replace(real, unrun=Unrun(({factor: level},), 1, 9))
    figure = rendered((module, target, data[data[factor] != level]), left)
    said = [[text.get_text() for text in axes.texts if text.get_text() == "not run yet"] for axes in figure.axes]
    across = 2 if module == "bars" else 1  # metrics
    assert said == [[]] * across + [["not run yet"]] * across
    figure.draw_without_rendering()


@pytest.mark.parametrize("figure_case", ["curves"], indirect=True)
def test_a_method_of_which_one_seed_diverged_is_not_drawn_from_the_others_and_is_told(figure_case, real):
    _, target, data = figure_case
    ill = (data["dataset"] == "emnist") & (data["learner"] == "ace")
    data.loc[ill & (data["seed"] == 1), "value"] = np.inf
    diverged = pd.DataFrame([{"dataset": "emnist", "learner": "ace", "seed": 1, "metric": "diverged", "value": 7.0}])
    figure = curves.render(target, pd.concat([data, diverged]), real)
    emnist, cifar10 = figure.axes
    assert [line.get_ydata().size for line in emnist.lines] == [11, 0]
    assert [line.get_ydata().size for line in cifar10.lines] == [11, 11]
    assert emnist.get_ylim() == curves.render(target, data[~ill], real).axes[0].get_ylim()
    assert figure.notes == ["∞: at least one seed diverged. ACE, EMNIST: seed 1 after 7 steps."]
    figure.draw_without_rendering()


@pytest.mark.parametrize("figure_case", ["factor_curves"], indirect=True)
def test_curves_run_over_the_factor_that_is_left_metrics_side_by_side(figure_case, real):
    accuracy, forgetting = rendered(figure_case, real).axes
    assert accuracy.get_subplotspec().rowspan == forgetting.get_subplotspec().rowspan
    assert [axes.get_ylabel() for axes in (accuracy, forgetting)] == ["Fin. Acc.", "forgetting"]
    assert [axes.get_title() for axes in (accuracy, forgetting)] == ["EMNIST"] * 2
    for axes, scale in ((accuracy, 1), (forgetting, 100)):
        er = axes.lines[0]
        np.testing.assert_allclose(er.get_xdata(), [1, 10, 30])
        np.testing.assert_allclose(er.get_ydata(), np.array([81, 90, 110]) / scale)
        assert list(axes.get_xticks()) == [1, 10, 30]


@pytest.mark.parametrize("figure_case", ["curves", "dispersion", "scatter", "bars", "factor_curves"], indirect=True)
def test_a_method_has_its_colour_in_every_figure(figure_case, real):
    for axes in rendered(figure_case, real).axes[:1]:
        drawn = [to_rgb(patch.get_facecolor()) for patch in axes.patches]
        drawn += [to_rgb(line.get_color()) for line in axes.lines if line.get_marker() in "o^"]
        assert set(drawn) >= {to_rgb(METHODS[method][0]) for method in ("er", "ace")}


@pytest.mark.parametrize("figure_case", ["deviations"], indirect=True)
def test_lines_that_are_no_methods_have_no_methods_colours(figure_case, real):
    split, stf = rendered(figure_case, real).axes[0].lines
    assert not {split.get_color(), stf.get_color()} & {colour for colour, _ in METHODS.values()}


@pytest.mark.parametrize(("entries", "columns"), [(1, 1), (6, 6), (7, 4), (8, 4), (13, 5)])
def test_a_legends_rows_are_of_one_length(entries, columns):
    figure = Figure(figsize=(WIDTH, 2))
    lines = figure.subplots().plot(np.zeros((2, entries)))
    legend_above(figure, lines, ["x"] * entries)
    assert figure.legends[0]._ncols == columns


@pytest.mark.parametrize("figure_case", ["bars"], indirect=True)
def test_bars_show_means_with_intervals_and_costs_as_shares_of_the_highest(figure_case, real):
    module, target, data = figure_case
    more = [data[data["seed"] == s].assign(seed=3 + s) for s in (0, 1)]
    panels = rendered((module, target, pd.concat([data, *more])), real).axes
    assert [axes.get_xlabel() for axes in panels] == ["Fin. Acc.", "training_seconds"] * 2
    assert [axes.get_ylabel() for axes in panels] == ["EMNIST", "", "CIFAR-10", ""]
    mean, half = mean_interval([79.0, 80.0, 81.0, 79.0, 80.0])
    for axes, scale in ((panels[0], 1), (panels[1], mean + 10)):
        er, ace = (bar.get_height() for bar in axes.patches)
        assert (er, ace) == pytest.approx((mean / scale, (mean + 10) / scale))
        assert [bar.get_x() + bar.get_width() / 2 for bar in axes.patches] == pytest.approx([0, 1])
        whiskers = np.sort(axes.collections[0].get_segments()[0][:, 1])
        np.testing.assert_allclose(whiskers, [(mean - half) / scale, (mean + half) / scale])


@pytest.mark.parametrize("figure_case", ["bars"], indirect=True)
def test_signs_stand_for_bars_where_a_method_diverged_or_ran_out_of_memory(figure_case, real):
    _, target, data = figure_case
    emnist, cifar10, ace = data["dataset"] == "emnist", data["dataset"] == "cifar10", data["learner"] == "ace"
    data.loc[emnist & ace & (data["metric"] == "final_accuracy") & (data["seed"] == 2), "value"] = np.inf
    failed = data[cifar10 & ace].assign(metric="out_of_memory", value=1.0)
    panels = bars.render(target, pd.concat([data[~(cifar10 & ace)], failed]), real).axes
    signs = [[(text.get_text(), text.xy[0]) for text in axes.texts] for axes in panels]
    assert signs == [[("∞", 1)], [], [("OoM", 1)], [("OoM", 1)]]
    assert [len(axes.patches) for axes in panels] == [1, 2, 1, 1]
    assert panels[3].patches[0].get_height() == 1  # the highest of those that finished


@pytest.mark.parametrize("figure_case", ["bars"], indirect=True)
def test_a_measure_that_a_method_does_not_have_leaves_its_place_empty(figure_case, real):
    _, target, data = figure_case
    without = data[(data["learner"] != "ace") | (data["metric"] != "final_accuracy")]
    panel = bars.render(target, without, real).axes[0]
    assert (len(panel.patches), len(panel.texts)) == (1, 0)
    assert panel.get_xlim() == (-0.7, 1.7)


@pytest.mark.parametrize("figure_case", ["diagram"], indirect=True)
def test_a_diagram_says_what_the_net_has(figure_case, real):
    (axes,) = rendered(figure_case, real).axes
    assert axes.get_title() == "Split AWA"
    shown = [text.get_text() for text in axes.texts if text.get_text()]
    for name in ("stem", "stage 1", "pool", "softmax", r"$\omega$", r"$t^k$", r"$\phi_\theta\,\psi_\omega^\top + b$"):
        assert name in shown
    facts = [
        "3×64×64",
        "8×16×16\n1,176",
        "16×16×16\n1,152",
        "16×1×1",
        "16",
        "$C_k$×85",
        "85×16\n1,360",
        "$C_k$×16",
        "50",
    ]
    for fact in facts:
        assert shown.count(fact) == 1
    numbers = set(re.findall(r"\d+", " ".join(shown).replace("stage 1", "")))
    assert numbers == set(re.findall(r"\d+", " ".join(facts)))


@pytest.mark.parametrize("figure_case", ["diagram", "schematic"], indirect=True)
def test_no_two_texts_of_a_diagram_overlap(figure_case, reduced):
    figure = rendered(figure_case, reduced)
    figure.draw_without_rendering()
    extents = [text.get_window_extent() for text in texts(figure)]
    overlaps = [(i, j) for j, b in enumerate(extents) for i, a in enumerate(extents[:j]) if a.overlaps(b)]
    assert overlaps == []


@pytest.mark.parametrize("figure_case", ["diagram"], indirect=True)
def test_a_net_without_a_joint_embedding_has_no_diagram(figure_case, real):
    module, target, data = figure_case
    data.loc[data["block"] == "head", "layer"] = "Linear(16, 50)"
    with pytest.raises(ValueError, match=re.escape("awa2: it ends in Linear(16, 50), which is no joint embedding")):
        rendered((module, target, data), real)


@pytest.fixture
def sequence_data():
    """Two chunks of two classes; class 0 is task 1, class 1 task 0."""
    shares = {"chunk": [0, 0, 1, 1], "class": [0, 1, 0, 1], "task": [1, 0, 1, 0], "value": [0.25, 0.75, 0.9, 0.1]}
    return pd.DataFrame(shares).assign(dataset="emnist", order="stf")


def boxes(axes):
    return [[box.get_x() + box.get_width() / 2, box.get_y(), box.get_height()] for box in axes.patches]


def test_sequence_stacks_classes_from_the_dominant_one_and_tasks_in_their_order(sequence_data, real):
    classes, tasks = sequence.render({"chunks": 2}, sequence_data, real).axes
    assert boxes(classes) == [pytest.approx(b) for b in ([1, 0, 0.75], [1, 0.75, 0.25], [2, 0, 0.9], [2, 0.9, 0.1])]
    assert boxes(tasks) == [pytest.approx(b) for b in ([1, 0, 0.75], [1, 0.75, 0.25], [2, 0, 0.1], [2, 0.1, 0.9])]
    assert [text.get_text() for text in classes.texts] == ["1\n75%", "0", "0\n90%", "1"]
    assert [text.get_text() for text in tasks.texts] == ["1 (75%)", "2 (25%)", "1 (10%)", "2 (90%)"]
    dominant, tasked = classes.patches[0], tasks.patches[0]
    assert dominant.get_facecolor() == tasked.get_facecolor()
    assert classes.patches[1].get_facecolor() != tasks.patches[1].get_facecolor()  # paler


def test_sequence_draws_the_first_chunks_and_lists_only_perfect_tasks(sequence_data, real):
    figure = sequence.render({"chunks": 1}, sequence_data, real)
    assert len(figure.axes[0].patches) == 2
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["Task 1: classes 1", "Task 2: classes 0"]
    mixed = pd.concat([sequence_data, sequence_data.assign(task=0)]).assign(value=lambda d: d["value"] / 2)
    legend = [text.get_text() for text in sequence.render({"chunks": 1}, mixed, real).legends[0].get_texts()]
    assert legend == ["Task 1", "Task 2"]


@pytest.mark.parametrize(("classes", "legends"), [(12, 1), (13, 0)])
def test_only_few_classes_have_a_legend(real, classes, legends):
    data = pd.DataFrame({"class": range(classes), "time": 0.5, "value": 1 / classes})
    figure = class_frequency.render({"chunks": 1}, data.assign(dataset="emnist", order="stf"), real)
    assert sum(axes.get_legend() is not None for axes in figure.axes) == legends


def test_stream_curves_put_seeds_in_rows_and_orders_in_columns(real):
    cells = [("split", 0), ("split", 1), ("stf", 5), ("stf", 6)]
    data = pd.DataFrame([{"order": o, "seed": s, "time": t, "value": s + t} for o, s in cells for t in (0.0, 1.0)])
    figure = stream_curves.render({}, data.assign(dataset="emnist", metric="stream_loss"), real)
    starts = [axes.lines[0].get_ydata()[0] for axes in figure.axes]
    assert starts == [0, 5, 1, 6]
    assert not figure.notes


def test_what_is_no_curve_stands_below_stream_curves_as_a_mean(real):
    measured = [("loss", 0.5, 3.0), ("r", np.nan, 1.0)]
    cells = [(o, s, m, t, s * v) for o in ("split", "stf") for s in (1, 2) for m, t, v in measured]
    data = pd.DataFrame(cells, columns=["order", "seed", "metric", "time", "value"]).assign(dataset="emnist")
    data.loc[(data["metric"] == "r") & (data["order"] == "stf"), "value"] *= -1
    figure = stream_curves.render({"names": {"r": "Correlation", "stf": "STF"}}, data, real)
    assert figure.notes == ["Correlation: split 1.50; STF −1.50."]
    assert [axes.lines[0].get_ydata().tolist() for axes in figure.axes] == [[3], [3], [6], [6]]


def test_a_place_without_a_stream_curve_says_why(real):
    cells = [("split", 0, "loss", 0.5, 3.0), ("split", 1, "out_of_memory", np.nan, 1.0), ("stf", 0, "loss", 0.5, 3.0)]
    data = pd.DataFrame(cells, columns=["order", "seed", "metric", "time", "value"]).assign(dataset="emnist")
    figure = stream_curves.render({}, data, real)
    said = [[text.get_text() for text in axes.texts] for axes in figure.axes]
    assert said == [[], [], ["out of memory"], ["not run yet"]]
    assert figure.axes[0].get_xlim() == (0, 1)


@pytest.mark.parametrize("figure_case", ["cycles"], indirect=True)
def test_cycles_are_numbered_between_their_lines_and_a_guess_is_drawn(figure_case, real):
    figure = rendered(figure_case, real)
    (axes,) = figure.axes
    er, ace, guess, *parts = axes.lines
    assert list(er.get_xdata()) == [1, 2, 3, 4, 5, 6]
    assert set(guess.get_ydata()) == {12.5}
    assert axes.get_ylim()[0] < 12.5
    assert [line.get_xdata()[0] for line in parts] == [2.5, 4.5]
    assert [(text.get_text(), text.get_position()[0]) for text in axes.texts] == [
        ("cycle 1", 1.5),
        ("cycle 2", 3.5),
        ("cycle 3", 5.5),
    ]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["ER", "ACE", "Guess"]
    figure.draw_without_rendering()
    lowest = min(text.get_window_extent().y0 for text in axes.texts)
    assert axes.transData.inverted().transform((0, lowest))[1] > ace.get_ydata().max()


@pytest.mark.parametrize("figure_case", ["cycles"], indirect=True)
def test_a_guess_without_a_name_is_not_drawn_and_one_cycle_not_numbered(figure_case, real):
    module, target, data = figure_case
    names = {key: name for key, name in target["names"].items() if key != "chance"}
    (axes,) = rendered((module, target | {"names": names, "cell": {"order": {}}}, data), real).axes
    assert (len(axes.lines), len(axes.texts)) == (2, 0)


@pytest.mark.parametrize("figure_case", ["deviations"], indirect=True)
def test_lines_may_be_of_orders_and_bands_of_a_standard_deviation(figure_case, real):
    """Of the values 1, 2, 3, 3 and 1 at the first batch, 2 ± 1."""
    _, target, data = figure_case
    more = [data[data["repetition"] == r].assign(repetition=again) for again, r in ((3, 2), (4, 0))]
    data = pd.concat([data, *more], ignore_index=True)
    (axes,) = curves.render(target, data, real).axes
    split, stf = axes.lines
    assert [split.get_label(), stf.get_label()] == ["disjoint tasks", "STF"]
    np.testing.assert_allclose(split.get_ydata(), 20 / np.arange(1, 16))
    edges = axes.collections[1].get_paths()[0].vertices
    np.testing.assert_allclose([edges[edges[:, 0] == 1, 1].min(), edges[edges[:, 0] == 1, 1].max()], [1, 3])
    assert axes.get_ylim()[1] >= 30  # the whole band is shown
    first = (data["time"] == 1) & (data["repetition"] == 0)
    data.loc[first, "value"] = np.inf  # a ratio to nothing
    assert curves.render(target, data, real).axes[0].lines[0].get_xdata()[0] == 2


@pytest.mark.parametrize("figure_case", ["columns"], indirect=True)
def test_panels_across_may_be_of_orders(figure_case, real):
    _, target, data = figure_case
    (split, stf), (below, _) = np.reshape(curves.render(target, data, real).axes, (2, 2))
    assert [axes.get_title() for axes in (split, stf, below)] == ["EMNIST, disjoint tasks", "EMNIST, STF", ""]
    np.testing.assert_allclose(split.lines[0].get_ydata(), [45, 50, 55])
    np.testing.assert_allclose(stf.lines[0].get_ydata(), [85, 90, 95])
    assert (len(split.lines), len(stf.lines), len(below.lines)) == (2, 3, 2)  # a guess where there is one
    assert {axes.get_xlabel() for axes in (split, below)} == {"Items seen"}
    failed = data[(data["learner"] == "er") & (data["order"] == "stf")].head(1).assign(metric="out_of_memory", value=1)
    split, stf, *_ = curves.render(target, pd.concat([data, failed]), real).axes
    assert (split.lines[0].get_ydata().size, stf.lines[0].get_ydata().size) == (3, 0)


def drawn_lines(axes):
    """Of each line of a panel of bursts the colour of each item."""
    return [[tuple(np.round(colour, 6)) for colour in image.get_array()[0]] for image in axes.images]


def test_bursts_draw_each_item_in_its_categorys_colour_and_its_instances_shade(real):
    # Three classes: batches of 4, 3 and 1 items, and the same items in bursts.
    runs = {
        "split": [(0, 1, 4, 1), (0, 1, 3, 1), (0, 1, 4, 2), (1, 0, 0, 3), (2, 2, 5, 1)],
        "instances": [(0, 1, 4, 3), (1, 2, 5, 1), (2, 0, 0, 3), (3, 1, 3, 1)],
    }
    rows = [(order, *run) for order, those in runs.items() for run in those]
    data = pd.DataFrame(rows, columns=["order", "chunk", "class", "instance", "value"]).assign(dataset="emnist")
    batches, stream = bursts.render({"names": {"emnist": "E"}}, data, real).axes
    whole = [tuple(np.round(to_rgb(colour), 6)) for colour in class_colours(3)]
    pale = tuple(np.round(np.array(whole[1]) * 0.45 + 0.55, 6))  # the second of class 1's two instances
    assert drawn_lines(batches) == [[pale, whole[1], pale, pale], [whole[0]] * 3, [whole[2]]]
    assert drawn_lines(stream) == [[pale] * 3 + [whole[2]], [whole[0]] * 3 + [whole[1]]]  # goes on from line to line
    assert [box.get_width() > len(line) for box, line in zip(batches.patches, drawn_lines(batches))] == [True] * 3
    assert max(box.zorder for box in batches.patches) < min(image.zorder for image in batches.images)
    assert not stream.patches
    assert [label.get_text() for label in batches.get_yticklabels()] == ["1", "2", "3"]
    assert [label.get_text() for label in stream.get_yticklabels()] == ["0", "4"]
    assert batches.get_xlim() == stream.get_xlim()


@pytest.mark.parametrize("figure_case", ["scatter"], indirect=True)
def test_a_configuration_is_one_point_and_its_clock_is_told(figure_case, real):
    figure = rendered(figure_case, real)
    emnist, cifar10 = figure.axes
    assert [axes.get_title() for axes in (emnist, cifar10)] == ["EMNIST", "CIFAR-10"]
    er, ace, guess = emnist.lines
    assert sorted(zip(er.get_xdata(), er.get_ydata())) == [(90, pytest.approx(80.1)), (100, pytest.approx(81))]
    assert sorted(zip(ace.get_xdata(), ace.get_ydata())) == [(100, pytest.approx(90.1)), (110, pytest.approx(91))]
    assert set(guess.get_ydata()) == {10}
    assert emnist.get_xscale() == "log"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["ER", "ACE", "Guess"]
    assert figure.notes[0].startswith("Times on: Abacus.")


@pytest.mark.parametrize("figure_case", ["scatter"], indirect=True)
def test_a_configuration_that_failed_has_no_point_and_is_told(figure_case, real):
    module, target, data = figure_case
    data.loc[(data["cell"] == "emnister1") & (data["metric"] == "final_accuracy") & (data["seed"] == 1), "value"] = (
        np.inf
    )
    data.loc[(data["cell"] == "emnistace1") & (data["seed"] == 2), ["metric", "value"]] = "out_of_memory", 1.0
    figure = rendered((module, target, data), real)
    er, ace, _ = figure.axes[0].lines
    assert [y for y in er.get_ydata() if np.isfinite(y)] == [pytest.approx(81)]
    assert list(ace.get_ydata()) == [pytest.approx(91)]
    assert any(note.startswith("OoM: memory did not suffice") for note in figure.notes)


@pytest.mark.parametrize("figure_case", ["boundary_trace"], indirect=True)
def test_a_trace_shows_each_seed_their_mean_and_where_tasks_begin(figure_case, real):
    figure = rendered(figure_case, real)
    above, below = figure.axes
    assert [list(line.get_ydata()) for line in above.lines[:3]] == [
        [2, 1, 3, 12, 6, 3, 30],
        [2, 1, 1, 9, 6, 3, 40],
        [2, 1, 2, 10.5, 6, 3, 35],
    ]
    for axes in (above, below):
        starts = [line for line in axes.lines if line.get_linestyle() == ":"]
        assert [line.get_xdata()[0] for line in starts] == [0, 3, 6]
        assert {line.get_color() for line in starts} == {"black"}
    assert below.get_yscale() == "log"
    jumps = below.lines[0].get_ydata()
    np.testing.assert_allclose(jumps, [np.nan, 0.5, 2, 6, 0.5, 1 / 3, 30 / 7])
    (shaded,) = below.patches
    assert (shaded.get_y(), shaded.get_y() + shaded.get_height()) == pytest.approx((2, 30 / 7))
    told = "Every threshold from 2 to 4.29 finds each beginning and nothing else, in 2 runs."
    assert figure.notes == [told]


@pytest.mark.parametrize("figure_case", ["boundary_trace"], indirect=True)
def test_a_detector_that_no_threshold_makes_right_is_told(figure_case, real):
    module, target, data = figure_case
    data.loc[(data["metric"] == "threshold_from") & (data["seed"] == 0), "value"] = 5.0
    figure = rendered((module, target, data), real)
    assert not figure.axes[1].patches
    told = "No threshold finds each beginning and nothing else in all of 2 runs; in 1 of them one does."
    assert figure.notes == [told]


@pytest.mark.parametrize("figure_case", ["boundary_trace"], indirect=True)
def test_a_trace_of_five_runs_has_a_band_that_ends_at_zero(figure_case, real):
    """Before the second epoch all five runs have 1; before the fourth, 12 thrice and 9 twice."""
    module, target, data = figure_case
    more = [data[data["seed"] == s % 2].assign(seed=s) for s in range(2, 5)]
    above, below = rendered((module, target, pd.concat([data, *more])), real).axes
    for axes in (above, below):
        assert [line.get_linewidth() >= 0.8 for line in axes.lines] == [True] * len(axes.lines)
        assert min(band.get_paths()[0].vertices[:, 1].min() for band in axes.collections) >= 0
    edges = above.collections[0].get_paths()[0].vertices
    mean, half = mean_interval([12, 9, 12, 9, 12])
    np.testing.assert_allclose(sorted(set(edges[edges[:, 0] == 3, 1])), [mean - half, mean + half])
    assert set(edges[edges[:, 0] == 1, 1]) == {1}


@pytest.mark.parametrize("figure_case", ["uncertainty_grid"], indirect=True)
def test_an_uncertainty_grid_parts_seen_from_unseen_tasks(figure_case, real):
    axes = rendered(figure_case, real).axes[0]
    rows = [[text.get_text() for text in axes.texts[4 * k : 4 * k + 4]] for k in range(4)]
    assert rows[0] == ["0.00", "0.80", "0.80", "0.80"]
    assert rows[3] == ["0.30", "0.20", "0.10", "0.00"]
    corners = axes.lines[-1].get_xydata().tolist()
    assert corners[:4] == [[0.5, -0.5], [0.5, 0.5], [1.5, 0.5], [1.5, 1.5]]
    assert corners[-1] == [3.5, 2.5]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["1", "2", "3", "4"]


@pytest.mark.parametrize("figure_case", ["roc"], indirect=True)
def test_a_roc_is_a_mean_of_steps_with_the_mean_area_and_that_of_each_of_a_few_runs(figure_case, real):
    er, ace = rendered(figure_case, real).axes
    mean = er.lines[2]
    assert mean.get_drawstyle() == "steps-post"
    assert mean.get_xydata().tolist() == [[0, 0], [0, 0.25], [0.5, 0.75], [1, 1]]
    assert er.texts[0].get_text() == "AUC 0.50\nruns 0.50, 0.50"
    assert ace.texts[0].get_text() == "AUC 1.00\nruns 1.00, 1.00"


@pytest.mark.parametrize("figure_case", ["roc"], indirect=True)
def test_a_roc_of_five_runs_has_a_band_between_0_and_1(figure_case, real):
    """At the first step heights are 0.5 or 0, which five runs have thrice and twice: 0.3 ± 0.34."""
    _, target, data = figure_case
    more = [data[data["seed"] == s % 2].assign(seed=s) for s in range(2, 5)]
    er = roc.render(target, pd.concat([data, *more]), real).axes[0]
    band = er.collections[0].get_paths()[0].vertices
    half = mean_interval([0.5, 0, 0.5, 0, 0.5])[1]
    assert (band[:, 1].min(), band[:, 1].max()) == (0, 1)
    assert np.isclose(band[:, 1], 0.3 + half).any()
    assert len(er.lines) == 2  # the mean and chance
    assert er.texts[0].get_text() == "AUC 0.50 ± 0.00"


@pytest.mark.parametrize("figure_case", ["schematic"], indirect=True)
def test_a_schematic_keeps_prior_or_likelihoods(figure_case, real):
    panels = rendered(figure_case, real).axes
    assert [axes.get_title() for axes in panels] == ["Prior", "Likelihood"]
    prior, likelihood = ([text.get_text() for text in axes.texts if text.get_text()] for axes in panels)
    for shown in (prior, likelihood):
        assert "Task 1\nclasses 0, 7" in shown
        assert "Task 2\nclasses 2, 5" in shown
    fixed, first, estimated = r"$p(\mathbf{w})$", r"$q_1(\mathbf{w})$", r"$\hat{p}(\mathcal{D}_1|\mathbf{w})$"
    assert [prior.count(each) for each in (fixed, first, estimated)] == [1, 2, 0]
    assert [likelihood.count(each) for each in (fixed, first, estimated)] == [2, 1, 1]
    assert [sum(box.get_linestyle() == ":" for box in axes.patches) for axes in panels] == [1, 1]
