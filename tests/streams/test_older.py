"""Streams of published runs against today's: which have other items, and at how many positions."""

import re
import subprocess
import sys
from pathlib import Path

from clpapers.streams.older import OTHER_ITEMS, streams_learnt

ROOT = Path(__file__).parents[2]
LINE = re.compile(
    r"^(\S+) ([0-9a-f]{10}): (?:([\d,]+) positions have another item, (\d+) another class|not drawn here)$"
)


def test_published_streams_that_are_drawn_otherwise_now_are_listed_if_items_differ():
    script = [sys.executable, "docs/findings/older_streams.py", "results/published/stf.zip"]
    lines = subprocess.run(script, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    found = [match.groups() for match in map(LINE.match, lines) if match]
    listed = {digest[:10]: positions for digest, positions in OTHER_ITEMS.items()}
    assert len(found) == 10  # of 31; the processor decides which of them the older code draws again
    assert listed.keys() <= {digest for _, digest, *_ in found}
    for _, digest, positions, classes in found:
        assert positions is None or (int(positions.replace(",", "")), classes) == (listed.get(digest, 0), "0")


def test_the_files_of_a_block_of_seeds_are_told_apart():
    older, newer = next(iter(OTHER_ITEMS)), "0" * 64
    inputs = [{"path": f"results/paper/streams/cifar10/stf-0.057735/seed{k}.npz", "sha256": newer} for k in (10, 11)]
    inputs[1]["sha256"] = older
    assert streams_learnt({"inputs": [{"path": "results/paper/datasets/cifar10.npz"}, *inputs]}) == {11: older[:10]}
