"""Transcriptions are checked line by line."""

from pathlib import Path

import pytest
from tiny_paper import PAPER, PRINTED, SCALE, edit, plan, printed

from clpapers.config.refusals import ConfigError
from clpapers.evidence.comparison import read_reported

pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (["tiny,tabel1,er,mnist,x,80,,,"], "line 2.target: 'tabel1' is not one of table1, figure1, table2"),
        (["tyni,table1,er,mnist,final_accuracy,80,,,"], "line 2.paper: 'tyni' is not one of tiny"),
        (["tiny,table1,er,mnist,final_accuracy,80,,"], "line 2 does not have 9 columns; quote what holds a comma"),
        (["tiny,table1,er,mnist,final_accuracy,8O,,,"], "line 2.value: '8O' must have the form "),
        (["tiny,table1,er,mnist,final_accuracy,80,1,spread_1_runs,"], "line 2.spread_kind: 'spread_1_runs' must have "),
        (["tiny,table1,er,mnist,final_accuracy,80,,,"] * 2, "line 3 is of the same target, row, column and metric as "
         "line 2"),
        (['tiny,table1,"er,mnist,final_accuracy,80,,,'], "line 2: unexpected end of data"),
        (['tiny,table1,er,mnist,final_accuracy,80,1,"spread_9_runs\n",'], "line 3.spread_kind: "),
    ],
)  # fmt: skip
def test_a_wrong_line_of_a_transcription_is_refused_before_anything_starts(lines, told):
    printed(*lines)
    with pytest.raises(ConfigError) as refusal:
        plan()
    assert str(refusal.value).startswith(f"{PRINTED}: {told}")


NAMED = "    names: {er: Experience replay, mnist: MNIST, cifar10: Café}\n"
ALONG = "    {along}\n    grid: {dataset: [mnist, cifar10], learner: [er, ace]"


@pytest.mark.parametrize(
    ("line", "place", "found", "nearest"),
    [
        ("Experience replay ,MNIST,final_accuracy", "row", "'Experience replay '", "'Experience replay'"),
        ("Experience\xa0replay,MNIST,final_accuracy", "row", r"'Experience\xa0replay'", "'Experience replay'"),
        ("er,MNIST,final_accuracy", "row", "'er'", "'Experience replay'"),
        (",MNIST,final_accuracy", "row", "''", "'Experience replay'"),
        ("ace,mnist,final_accuracy", "column", "'mnist'", "'MNIST'"),
        ("ace,Cafe\N{COMBINING ACUTE ACCENT},final_accuracy", "column", r"'Cafe\u0301'", r"'Caf\xe9'"),
        ("ace,MNIST,final_acuracy", "metric", "'final_acuracy'", "'final_accuracy'"),
    ],
)  # fmt: skip
def test_a_name_that_its_target_lacks_is_refused_with_the_nearest(line, place, found, nearest):
    edit(PAPER, "    grid: {dataset: [mnist, cifar10]", f"{NAMED}    grid: {{dataset: [mnist, cifar10]")
    printed(f"tiny,table1,{line},80,,,")
    with pytest.raises(ConfigError) as refusal:
        plan()
    assert (
        str(refusal.value) == f"{PRINTED}: line 2.{place}: {found} is no name in its target; the nearest is {nearest}"
    )


def test_a_row_that_a_scale_leaves_out_is_named_all_the_same():
    edit(SCALE, "    targets: {", "    targets: {table1: {grid: {learner: [er]}}, ")
    printed("tiny,table1,ace,mnist,final_accuracy,80,,,")
    assert plan().targets["tiny/table1"].reported == Path(PRINTED)


@pytest.mark.parametrize(
    ("along", "rows", "others"),
    [
        (
            "along: time",
            ["er, time 3", "ace, time 0.5"],
            ["er", "er, time", "er, time x", "er, time 3.0", "er, task 3", "err, time 3"],
        ),
        ("along: budget.memory", ["er, budget.memory 5", "ace, budget.memory 10"], ["er, budget.memory 7", "er"]),
    ],
)
def test_a_row_of_a_curve_ends_in_its_place_on_it(along, rows, others):
    memory = ", budget.memory: [5, 10]" if "memory" in along else ""
    edit(PAPER, "    grid: {dataset: [mnist, cifar10], learner: [er, ace]", ALONG.replace("{along}", along) + memory)
    printed()
    for row, passes in [*((row, True) for row in rows), *((row, False) for row in others)]:
        printed(f'tiny,table1,"{row}",mnist,final_accuracy,80,,,')
        if passes:
            plan()
        else:
            with pytest.raises(ConfigError, match=f"^{PRINTED}: line 2.row: "):
                plan()


@pytest.mark.parametrize("target", ["figure1", "table2"])
def test_a_target_without_numbers_of_its_own_is_compared_with_none(target):
    printed(f"tiny,{target},er,mnist,final_accuracy,80,,,")
    with pytest.raises(ConfigError, match=f"^{PRINTED}: line 2.row: .* no numbers to compare"):
        plan()


def test_levels_of_one_name_are_refused_where_a_line_may_mean_either():
    edit(
        PAPER,
        "    grid: {dataset: [mnist, cifar10]",
        "    names: {er: ER, ace: ER}\n    grid: {dataset: [mnist, cifar10]",
    )
    plan()
    printed("tiny,table1,ER,mnist,final_accuracy,80,,,")
    with pytest.raises(ConfigError, match=f"^{PRINTED}: .* er and ace "):
        plan()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            lambda text: text.replace(",", ";").encode(),
            "line 1 is not .*; its columns are parted by semicolons, save it",
        ),
        (lambda text: text.replace(",", "\t").encode(), "line 1 is not .*; .* parted by tabs, save it"),
        (lambda text: text.encode("utf-16"), ".*; save it as UTF-8"),
        (lambda text: text.replace("er", "\xe9r").encode("cp1252"), ".*; save it as UTF-8"),
    ],
)
def test_what_a_spreadsheet_saves_otherwise_is_refused_with_the_remedy(change, told):
    printed("tiny,table1,er,mnist,final_accuracy,80,,,")
    Path(PRINTED).write_bytes(change(Path(PRINTED).read_text()))
    with pytest.raises(ConfigError, match=f"^{PRINTED}: {told}"):
        plan()


@pytest.mark.parametrize("change", ["\r\n", "\r", "\n\n"])
def test_line_ends_of_any_system_are_read(change):
    printed("tiny,table1,er,mnist,final_accuracy,80,,,")
    Path(PRINTED).write_bytes(Path(PRINTED).read_text().replace("\n", change).encode("utf-8-sig"))
    assert plan().targets["tiny/table1"].reported == Path(PRINTED)
    assert read_reported(PRINTED, "tiny", "table1")["value"].tolist() == [80]


@pytest.mark.parametrize("value", ["\N{MINUS SIGN}0.5", '"1,234.5"', "50.5%", "50.5 ± 1.0", '"50,5"', "５０", "50.5\0"])
def test_a_number_that_a_paper_prints_otherwise_is_refused(value):
    printed(f"tiny,table1,er,mnist,final_accuracy,{value},,,")
    with pytest.raises(ConfigError, match=f"^{PRINTED}: line 2.value: "):
        plan()


def test_the_authors_numbers_are_columns_of_their_own_and_checked():
    header = (
        "paper,target,row,column,metric,value,spread,spread_kind,note,digits,authors,authors_sd,authors_runs,source"
    )
    line = "tiny,table1,er,mnist,final_accuracy,80,,,,cut,80.7,0.5,5,cell 3"
    printed()
    Path(PRINTED).write_text(f"{header}\n{line}\n")
    plan()
    for old, new, told in (
        ("cut", "cutt", "line 2.digits: 'cutt' must have the form "),
        ("80.7", "8O.7", "line 2.authors: '8O.7' must have the form "),
        (",5,", ",0,", "line 2.authors_runs: '0' must have the form "),
    ):
        Path(PRINTED).write_text(f"{header}\n{line.replace(old, new)}\n")
        with pytest.raises(ConfigError) as refusal:
            plan()
        assert str(refusal.value).startswith(f"{PRINTED}: {told}")


def test_a_transcription_without_its_first_line_is_refused():
    printed()
    Path(PRINTED).write_text("paper,target\n")
    with pytest.raises(ConfigError, match=f"^{PRINTED}: line 1 is not paper,target,row,column,metric,value,spread,"):
        plan()
