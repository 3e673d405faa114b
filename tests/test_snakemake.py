"""The command `snakemake`: a bare `--cores` means all cores."""

import pytest

from clpapers.snakemake import completed


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("all --cores", "all --cores=all"),
        ("all -c", "all --cores=all"),
        ("--cores -n all", "--cores=all -n all"),
        ("all --cores 4 -n", "all --cores 4 -n"),
        ("all --cores all", "all --cores all"),
        ("all -c2", "all -c2"),
        ("all -n", "all -n"),
        ("", ""),
    ],
)
def test_completed(given, meant):
    assert completed(given.split()) == meant.split()
