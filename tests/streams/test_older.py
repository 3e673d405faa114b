"""Streams of published runs against today's: which have other items, and at how many positions."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from clpapers.streams.older import OTHER_ITEMS, streams_learnt

ROOT = Path(__file__).parents[2]
LINE = re.compile(
    r"^(\S+) ([0-9a-f]{10}): (?:([\d,]+) positions have another item, (\d+) another class|not drawn here)$"
)


def drawn_again(*settings):
    """For each setting: SHA-256 (ten digits) of a published stream of `stf` that differs now → positions, classes."""
    script = [sys.executable, "docs/findings/older_streams.py", "results/published/stf.zip"]
    environments = [os.environ | setting for setting in settings]
    runs = [subprocess.Popen(script, cwd=ROOT, env=each, stdout=subprocess.PIPE, text=True) for each in environments]
    for lines in [run.communicate()[0].splitlines() for run in runs]:
        found = [match for match in map(LINE.match, lines) if match]
        yield {each[2]: (int(each[3].replace(",", "")), int(each[4])) if each[3] else None for each in found}


def test_published_streams_that_are_drawn_otherwise_now_are_listed_if_items_differ():
    listed = {digest[:10]: positions for digest, positions in OTHER_ITEMS.items()}
    here, with_avx2 = drawn_again({}, {"NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL"})
    assert len(here) == len(with_avx2) == 10
    assert listed.keys() <= here.keys()
    found = {digest: here[digest] or with_avx2[digest] for digest in here}
    found = {digest: each for digest, each in found.items() if each}
    if not found:
        pytest.skip("this processor draws none of them")
    assert {digest: positions for digest, (positions, _) in found.items()} == {key: listed.get(key, 0) for key in found}
    assert not any(classes for _, classes in found.values())


def test_the_files_of_a_block_of_seeds_are_told_apart():
    older, newer = next(iter(OTHER_ITEMS)), "0" * 64
    inputs = [{"path": f"results/paper/streams/cifar10/stf-0.057735/seed{k}.npz", "sha256": newer} for k in (10, 11)]
    inputs[1]["sha256"] = older
    assert streams_learnt({"inputs": [{"path": "results/paper/datasets/cifar10.npz"}, *inputs]}) == {11: older[:10]}
