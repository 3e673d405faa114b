"""Transcriptions are checked line by line."""

from pathlib import Path

import pytest
from tiny_paper import PRINTED, SCALE, edit, plan, printed

from clpapers.evidence.comparison import read_reported

pytestmark = pytest.mark.usefixtures("folder")


def test_a_row_that_a_scale_leaves_out_is_named_all_the_same():
    edit(SCALE, "    targets: {", "    targets: {table1: {grid: {learner: [er]}}, ")
    printed("tiny,table1,ace,mnist,final_accuracy,80,,,")
    assert plan().targets["tiny/table1"].reported == Path(PRINTED)


@pytest.mark.parametrize("change", ["\r\n", "\r", "\n\n"])
def test_line_ends_of_any_system_are_read(change):
    printed("tiny,table1,er,mnist,final_accuracy,80,,,")
    Path(PRINTED).write_bytes(Path(PRINTED).read_text().replace("\n", change).encode("utf-8-sig"))
    assert plan().targets["tiny/table1"].reported == Path(PRINTED)
    assert read_reported(PRINTED, "tiny", "table1")["value"].tolist() == [80]
