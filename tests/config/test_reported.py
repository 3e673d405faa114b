"""Transcriptions are checked line by line."""

from pathlib import Path

import pytest
from tiny_paper import PRINTED, plan, printed

from clpapers.config.refusals import ConfigError

pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (["tiny,tabel1,ER,MNIST,x,80,,,"], "line 2.target: 'tabel1' is not one of table1, figure1, table2"),
        (["tyni,table1,ER,MNIST,final_accuracy,80,,,"], "line 2.paper: 'tyni' is not one of tiny"),
        (["tiny,table1,ER,MNIST,final_accuracy,80,,"], "line 2 does not have 9 columns; quote what holds a comma"),
        (["tiny,table1,E,R,MNIST,final_accuracy,80,,,"], "line 2 does not have 9 columns; quote what holds a comma"),
        (["tiny,table1,ER,MNIST,final_accuracy,8O,,,"], "line 2.value: '8O' must have the form "),
        (["tiny,table1,ER,MNIST,final_accuracy,80,1,spread_1_runs,"], "line 2.spread_kind: 'spread_1_runs' must have "),
        (["tiny,table1,ER,MNIST,final_accuracy,80,-1,spread_9_runs,"], "line 2.spread: '-1' must have the form "),
        (["tiny,table1,ER,MNIST,final_accuracy,80,,,"] * 2, "line 3 is of the same target, row, column and metric as "
         "line 2"),
        (['tiny,table1,"ER,MNIST,final_accuracy,80,,,'], "line 2: unexpected end of data"),
    ],
)  # fmt: skip
def test_a_wrong_line_of_a_transcription_is_refused_before_anything_starts(lines, told):
    printed(*lines)
    with pytest.raises(ConfigError) as refusal:
        plan()
    assert str(refusal.value).startswith(f"{PRINTED}: {told}")


def test_the_authors_numbers_are_columns_of_their_own_and_checked():
    header = (
        "paper,target,row,column,metric,value,spread,spread_kind,note,digits,authors,authors_sd,authors_runs,source"
    )
    line = "tiny,table1,ER,MNIST,final_accuracy,80,,,,cut,80.7,0.5,5,cell 3"
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
