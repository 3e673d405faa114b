"""The rows, columns, marks and numbers of each kind of table."""

# ruff: noqa: F401, names that by_hand.yaml uses
import by_hand
import numpy as np
import pandas as pd
import pytest

from clpapers.evidence import comparison
from clpapers.metrics.intervals import mean_interval, paired
from clpapers.targets import architecture_table, number, results_table, statistics_table
from clpapers.targets.numbers import numbers
from clpapers.targets.paired import pairs
from clpapers.targets.table import plus_minus, rounded, signed


def uneven(learnt):
    """ACE better by 9.9, 10 and 10.1: equal differences have no spread to compare by."""
    return learnt.assign(value=learnt["value"] + (learnt["learner"] == "ace") * (learnt["seed"] - 1) / 10)


def test_results_table_has_the_papers_rows_columns_and_order(table_target, learnt, real):
    table = results_table.render(table_target, learnt, real)
    half = mean_interval([79.0, 80.0, 81.0])[1]
    assert list(table.body.columns) == [("Method", ""), ("EMNIST", "Fin. Acc."), ("CIFAR-10", "Fin. Acc.")]
    assert list(table.body["Method", ""]) == ["ER", "ACE"]
    assert list(table.body["EMNIST", "Fin. Acc."]) == [f"80.0 ± {half:.1f}", f"90.0 ± {half:.1f}"]
    assert not table.bold.to_numpy().any()  # it leads by ten in each of three runs, without a spread
    assert table.caption == "Means of 3 runs in %."
    assert not table.footnotes


def test_its_numbers_are_of_named_data_and_say_what_stands_in(table_target, learnt, reduced):
    data = results_table.render(table_target, learnt, reduced).data.set_index(["row", "column", "metric"])
    cell = data.loc[("ACE", "EMNIST", "final_accuracy")]
    assert (cell["mean"], cell["n"], cell["dataset"], cell["standin"]) == (90, 3, "emnist", "synthetic glyphs")
    assert set(data.loc[data["dataset"] == "cifar10", "standin"]) == {""}


def test_a_cell_that_the_experiment_leaves_out_is_not_applicable(table_target, learnt, real):
    missing = learnt[(learnt["dataset"] != "emnist") | (learnt["learner"] != "er")]
    body = results_table.render(table_target, missing, real).body
    assert body["EMNIST", "Fin. Acc."].iloc[0] == "N.A."
    table_target["names"] = table_target["names"] | {"absent": "–"}
    assert results_table.render(table_target, missing, real).body["EMNIST", "Fin. Acc."].iloc[0] == "–"


def guesses(learnt, **values):
    """Chances of each learner, equal over seeds where a number is given, else one a seed."""
    chance = learnt.assign(metric="chance_final_accuracy")
    chance["value"] = np.concatenate([np.resize(values[learner], 3) for learner in ("ace", "er", "ace", "er")])
    return pd.concat([learnt, chance])


def test_a_random_guess_stands_below_the_methods_and_is_never_bold(table_target, learnt, real):
    table = results_table.render(table_target, guesses(uneven(learnt), er=99.0, ace=99.0), real)
    assert list(table.body["Method", ""]) == ["ER", "ACE", "Random guess (expected)"]
    assert table.body["EMNIST", "Fin. Acc."].iloc[-1] == "99.0"  # no interval: every seed expects the same
    assert table.bold.to_numpy().tolist() == [[False] * 3, [False, True, True], [False] * 3]
    lines = table.data[table.data["row"] == "Random guess (expected)"]
    assert lines[["metric", "mean"]].to_numpy().tolist() == [["final_accuracy", 99]] * 2
    table_target["names"] = table_target["names"] | {"chance": "Guess"}
    assert results_table.render(table_target, guesses(learnt, er=9, ace=9), real).body["Method", ""].iloc[-1] == "Guess"


def test_guesses_that_differ_are_averaged_seed_by_seed(table_target, learnt, real):
    table = results_table.render(table_target, guesses(learnt, er=[10, 11, 12], ace=[20, 21, 22]), real)
    half = mean_interval([15.0, 16.0, 17.0])[1]
    assert table.body["EMNIST", "Fin. Acc."].iloc[-1] == f"16.0 ± {half:.1f}"
    assert (table.data["n"] == 3).all()


def test_guesses_are_no_methods(table_target, learnt, real):
    data = guesses(learnt, er=10, ace=10)
    pd.testing.assert_frame_equal(numbers(table_target, data, real), numbers(table_target, learnt, real))
    pd.testing.assert_frame_equal(pairs(table_target, data), pairs(table_target, learnt))


@pytest.fixture
def oracles(learnt):
    """(target, data): one data set, two learners under three oracles; ACE was not run under the third."""
    data = learnt[learnt["dataset"] == "emnist"]
    data = pd.concat([data.assign(oracle=oracle) for oracle in ("rand", "sp5", "dom")])
    grid = {"dataset": ["emnist"], "learner": ["er", "ace"], "oracle": ["sp5", "dom", "rand"]}
    names = {"learner": "Method", "er": "ER", "ace": "ACE", "sp5": "Sp=5", "emnist": "EMNIST"}
    target = {"title": "T", "caption": "C", "columns": "oracle", "metrics": ["final_accuracy"]}
    return target | {"grid": grid, "names": names}, data[(data["oracle"] != "rand") | (data["learner"] == "er")]


def test_oracles_across_have_one_line_of_headings(oracles, reduced):
    table = results_table.render(*oracles, reduced)
    assert list(table.body.columns) == list(table.bold.columns) == ["Method", "Sp=5", "dom", "rand"]
    assert list(table.body["rand"].str[:4]) == ["80.0", "N.A."]
    assert table.title == "T†‡"
    assert table.footnotes[0] == "† Stand-in data, not the paper's. EMNIST: synthetic glyphs."


def test_deviations_instead_of_intervals_and_an_ideal_that_is_not_ranked(table_target, learnt, real):
    usual = results_table.render(table_target, learnt, real)
    assert list(usual.body["CIFAR-10", "Fin. Acc."]) == ["40.0 ± 5.0", "50.0 ± 5.0"]
    third = uneven(learnt[learnt["learner"] == "er"]).assign(learner="mir", value=lambda f: f["value"] - 5 - f["seed"])
    table_target["grid"]["learner"].append("mir")
    both = pd.concat([uneven(learnt), third])
    assert list(results_table.render(table_target, both, real).bold["CIFAR-10", "Fin. Acc."]) == [False, True, False]
    table = results_table.render(table_target | {"spread": "sd", "ideal": "ace"}, both, real)
    assert list(table.body["CIFAR-10", "Fin. Acc."]) == ["40.0 ± 2.0", "50.0 ± 2.1", "34.0 ± 1.0"]
    assert list(table.bold["CIFAR-10", "Fin. Acc."]) == [True, False, False]


@pytest.mark.parametrize(
    ("third", "bold"),
    [
        ([70.0, 71.5, 69.0], True),
        ([88.0, 92.5, 86.0], False),  # 89.9, 90 and 91.1 lead by 1.9, −2.5 and 5.1
        ([70.0, 71.5], False),  # two runs compare with nothing
        ([70.0, np.inf, 69.0], True),  # a method that diverged is out
    ],
)
def test_bold_is_what_leads_each_other_method_by_the_corrected_comparison(table_target, learnt, real, third, bold):
    emnist = uneven(learnt[learnt["dataset"] == "emnist"])
    other = emnist[emnist["learner"] == "er"].iloc[: len(third)].assign(learner="mir", value=third)
    grid = {"dataset": ["emnist"], "learner": ["er", "ace", "mir"]}
    table = results_table.render(table_target | {"grid": grid}, pd.concat([emnist, other]), real)
    assert list(table.bold["EMNIST", "Fin. Acc."]) == [False, bold, False]


def test_the_best_of_two_is_not_bold_where_three_pairs_share_the_level(table_target, learnt, real):
    """Leads of 1, 2 and 3.3 over ER have a p of 0.089, of 1, 1.3 and 1.8 of 0.028; over MIR 0.019, by Holm 0.057."""
    emnist = learnt[learnt["dataset"] == "emnist"]
    er, ace = (emnist[emnist["learner"] == name] for name in ("er", "ace"))
    grid = {"dataset": ["emnist"], "learner": ["er", "ace"]}
    for leads, bold in (([1.0, 2.0, 3.3], False), ([1.0, 1.3, 1.8], True)):
        data = pd.concat([er, ace.assign(value=er["value"].to_numpy() + leads)])
        table = results_table.render(table_target | {"grid": grid}, data, real)
        assert list(table.bold["EMNIST", "Fin. Acc."]) == [False, bold]
    third = er.assign(learner="mir", value=er["value"] - [0.3, 0.1, 0.2])
    grid["learner"].append("mir")
    table = results_table.render(table_target | {"grid": grid}, pd.concat([data, third]), real)
    found = pairs(table_target | {"grid": grid}, pd.concat([data, third])).set_index(["first", "second"])
    assert found.loc[("ACE", "mir"), ["p", "p_holm"]].to_list() == pytest.approx([0.0190, 0.0569], abs=1e-3)
    assert not table.bold.to_numpy().any()


@pytest.mark.parametrize(
    ("metric", "best"), [("forgetting_events", "ER"), ("never_learnt", "ER"), ("unforgettable", "ACE")]
)
def test_forgetting_under_oracles(oracles, real, metric, best):
    target, data = oracles
    both = uneven(pd.concat([data, data.assign(metric=metric)]))
    table = results_table.render(target | {"metrics": ["final_accuracy", metric]}, both, real)
    assert ("Sp=5", metric) in table.body.columns
    bold = table.body["Method", ""][table.bold["Sp=5", metric]]
    assert list(bold) == [best]
    assert list(table.body["Method", ""][table.bold["Sp=5", "final_accuracy"]]) == ["ACE"]


def test_pairs_share_seeds_and_are_adjusted_together(table_target, learnt):
    third = learnt[learnt["learner"] == "er"].assign(learner="mir")
    third["value"] += np.tile([1.0, 2.0, 4.0], 2)
    table_target["grid"]["learner"].append("mir")
    found = pairs(table_target, pd.concat([learnt, third]))
    emnist = found[found["column"] == "EMNIST"].set_index(["first", "second"])
    assert list(emnist.index) == [("ER", "ACE"), ("ER", "mir"), ("ACE", "mir")]
    expected = paired(pd.Series([79.0, 80.0, 81.0]), pd.Series([80.0, 82.0, 85.0]))
    assert emnist.loc[("ER", "mir"), "difference"] == expected.difference
    assert emnist.loc[("ER", "mir"), "p"] == pytest.approx(expected.p)
    assert emnist.loc[("ER", "mir"), "p_holm"] == pytest.approx(expected.p)  # the larger of its two real tests
    assert emnist.loc[("ACE", "mir"), "p_holm"] == pytest.approx(2 * emnist.loc[("ACE", "mir"), "p"])
    first, second = emnist.loc[("ACE", "mir")], emnist.loc[("ER", "mir")]
    spread = np.std([9.0, 8.0, 6.0], ddof=1) / np.sqrt(3)
    assert first["high_holm"] - first["difference"] == pytest.approx(6.205346816571397 * spread)  # t of two at 98.75 %
    assert (second["low_holm"], second["high_holm"]) == pytest.approx((expected.low, expected.high))
    assert np.isnan(emnist.loc[("ER", "ACE"), "low_holm"])


def test_a_seed_of_another_stream_is_no_pair(table_target, learnt):
    older = (learnt["learner"] == "ace") & (learnt["seed"] == 1)
    found = pairs(table_target, learnt.assign(stream=older.map({True: "0123456789", False: "as drawn now"})))
    expected = pairs(table_target, learnt[learnt["seed"] != 1])
    assert set(found["n"]) == {2}
    pd.testing.assert_frame_equal(found, expected)


def test_each_metric_of_a_column_is_a_family_of_its_own(table_target, learnt):
    """Two methods make one pair a metric: nothing to correct for, however many metrics there are."""
    moved = learnt["value"] + learnt["seed"] ** 2 * (learnt["learner"] == "er")
    other = learnt.assign(metric="online_accuracy", value=moved)
    table_target["metrics"] = ["final_accuracy", "online_accuracy"]
    learnt = learnt.assign(value=learnt["value"] + learnt["seed"] * (learnt["learner"] == "ace"))
    found = pairs(table_target, pd.concat([learnt, other]))
    assert len(found) == 4
    assert found["p"].between(0, 1).all()
    assert list(found["p_holm"]) == list(found["p"])


test_by_hand = by_hand.tests(globals())


def test_architecture_table_ends_each_net_with_its_total(reduced):
    layers = pd.DataFrame(
        {
            "net": ["cnn", "cnn", "cnn", "mlp"],
            "input": "1×28×28",
            "classes": 10,
            "block": ["block1.0", "block1.1", "block1.2", np.nan],
            "layer": ["Conv2D", "ReLU", "Conv2D", "Linear"],
            "output": ["32×28×28", "32×28×28", "32×14×14", 10],
            "parameters": [1000, 0, 320, 7850],
            "total": [1320, 1320, 1320, 7850],
        }
    )
    table = architecture_table.render({"title": "T", "caption": "C", "names": {"cnn": "CNN"}}, layers, reduced)
    assert table.body.to_numpy().tolist() == [
        ["CNN", "", "Input, 10 classes", "1×28×28", ""],
        ["", "block1", "2 × Conv2D", "32×14×14", "1,320"],
        ["", "", "ReLU", "32×28×28", "0"],
        ["", "Total", "", "", "1,320"],
        ["mlp", "", "Input, 10 classes", "1×28×28", ""],
        ["", "", "Linear", "10", "7,850"],
        ["", "Total", "", "", "7,850"],
    ]
    assert list(table.bold.any(axis=1)) == [False, False, False, True, False, False, True]
    assert table.title == "T‡"


@pytest.fixture
def statistics():
    """(target, data) of two data sets, one of whose tasks differ in size."""
    rows = [
        row
        for dataset, shape in (("emnist", "1×28×28"), ("cifar10", "3×32×32"))
        for row in (("tasks", dataset, "total", 20, 0, "3 + 17"), ("input", dataset, "total", np.nan, np.nan, shape))
    ]
    rows += [("images", "emnist", "mean", 55000, 0, np.nan), ("images", "cifar10", "mean", 299.7, 1.2, "293–300")]
    data = pd.DataFrame(rows, columns=["row", "dataset", "metric", "mean", "half_width", "detail"])
    names = {"row": "Statistic", "images": "num. of images", "emnist": "EMNIST", "Runs": "Tasks"}
    target = {"title": "T", "caption": "C", "rows": "row", "names": names}
    return target, data.assign(sd=data["half_width"], se=data["half_width"], n=20)


def test_statistics_table_shows_numbers_with_their_details(statistics, reduced):
    table = statistics_table.render(*statistics, reduced)
    assert list(table.body.columns) == ["Statistic", "EMNIST†‡", "cifar10‡"]
    assert table.body.to_numpy().tolist() == [
        ["tasks", "20 (3 + 17)", "20 (3 + 17)"],
        ["input", "1×28×28", "3×32×32"],
        ["num. of images", "55,000", "299.7 (293–300)"],
    ]
    assert len(table.footnotes) == 2
    assert list(table.data["detail"].dropna()) == ["3 + 17", "1×28×28", "3 + 17", "3×32×32", "293–300"]


def test_statistics_are_compared_with_those_printed(statistics, real, tmp_path):
    target, data = statistics
    lines = ["paper,target,row,column,metric,value,spread,spread_kind,note"]
    lines += ["tasks,EMNIST,total,20", "num. of images,EMNIST,mean,60000"]
    lines += ["num. of images,cifar10,mean,300", "tasks,AWA,total,20"]
    (tmp_path / "p.csv").write_text("\n".join([lines[0], *(f"p,t,{line},,," for line in lines[1:])]))
    printed = comparison.read_reported(tmp_path / "p.csv", "p", "t")
    compared = comparison.compare(target | {"streams": []}, data, printed, real)
    assert list(compared["verdict"]) == ["same", "differs", "same", "not comparable"]
    (appended,) = comparison.attach(statistics_table.render(target, data, real), target, data, compared, real).appended
    assert list(appended.body.columns[:3]) == ["Statistic", "dataset", "Metric"]
    assert list(appended.body["Tasks"]) == ["20", "20", "20", "0"]


def test_number(real):
    data = pd.DataFrame([{"row": "a", "metric": "captured", "mean": 99.838, "half_width": 0.00123, "n": 100_000}])
    data = data.assign(sd=0.2, se=0.0006)
    target = {"title": "T", "caption": "C", "names": {"a": "Beta", "captured": "Captured (%)", "row": "Of"}}
    table = number.render(target, data, real)
    assert table.body.to_dict("records") == [
        {"Of": "Beta", "Captured (%)": "99.84", "95 % half-width": "0.0012", "Simulations": "100,000"}
    ]
    assert table.data["row"].item() == "Beta"


def test_an_entropy_is_neither_good_nor_bad_and_times_are_not_paired(table_target, learnt, real):
    table_target["metrics"] = ["mean_predictive_entropy", "training_minutes"]
    minutes = learnt.assign(metric="training_minutes", hardware="Abacus")
    table = results_table.render(
        table_target, uneven(pd.concat([learnt.assign(metric="mean_predictive_entropy"), minutes])), real
    )
    assert not table.bold.to_numpy().any()
    assert table.footnotes == [
        "Times on: Abacus. Seeds of one job share its clock: a job is one timing, in seconds a seed."
    ]
    minutes.loc[minutes["dataset"] == minutes["dataset"].iloc[0], "hardware"] = "Calculus"
    (told,) = results_table.render(table_target | {"metrics": ["training_minutes"]}, minutes, real).footnotes
    first, second = (table_target["names"].get(each, each) for each in minutes["dataset"].unique())
    assert told.startswith(f"Times on: {first}: Calculus; {second}: Abacus. ")
    elsewhere = minutes[:1].assign(metric="training_minutes elsewhere", hardware="GPU", seed=99)
    told = results_table.render(table_target, pd.concat([learnt, minutes, elsewhere]), real).footnotes
    assert told[1:] == ["Not compared: 1 timing on GPU."]
