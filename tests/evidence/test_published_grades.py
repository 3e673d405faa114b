"""The published comparisons: each difference is to one number, which the paper prints or the row shows."""

from pathlib import Path

import numpy as np
import pytest

from clpapers.evidence.comparison import printed, read_compared
from clpapers.evidence.verdict_names import GRADES

FILES = sorted(Path(__file__).parents[2].glob("results/published/metrics/*/*.reported.csv"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_each_difference_is_to_one_number_that_the_paper_prints_or_the_row_shows(file):
    frame = read_compared(file)
    finite = np.isfinite(frame[["ours", "graded_against"]]).all(axis=1)
    difference = frame["ours"] - frame["graded_against"]
    np.testing.assert_allclose(frame["difference"][finite], difference[finite], rtol=1e-4, atol=1e-8)
    for row in frame[frame["verdict"].isin(GRADES)].to_dict("records"):
        against = row["graded_against"]
        if against != row["printed"]:
            shown = printed(row)["against"].partition(" ±")[0].partition(",")[0]
            decimals = len(shown.partition(".")[2])
            assert float(shown.replace("−", "-")) == pytest.approx(against, abs=0.51 * 10.0**-decimals), row
            assert row["source"] in printed(row)["against"]


def test_a_target_has_one_source():
    """All numbers of one that the authors give too are graded against theirs, or none."""
    for file in FILES:
        frame = read_compared(file).dropna(subset=["authors", "graded_against"])
        of_authors = frame["graded_against"] == frame["authors"]
        assert of_authors.all() or (frame["graded_against"] == frame["printed"]).all(), file
