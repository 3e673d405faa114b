"""How a target departs from the paper's scale, by the cases of reductions.yaml."""

from pathlib import Path

import pytest
import yaml
from tiny_paper import PAPER, SCALE, edit, plan

from clpapers.config.plan import Plan
from clpapers.config.reductions import reductions

CASES = yaml.safe_load(Path(__file__).with_name("reductions.yaml").read_text())


@pytest.mark.parametrize("case", CASES)
def test_reductions_tell_each_difference_from_the_papers_scale_once(folder, case):
    for file, old, new in case["edits"]:
        edit({"paper": PAPER, "scale": SCALE}[file], old, new)
    ours, theirs = plan().targets, Plan("real", ["tiny"]).targets
    for name, lines in case["told"].items():
        assert reductions(ours[f"tiny/{name}"], theirs[f"tiny/{name}"]) == lines
    assert not any(reductions(target, target) for target in theirs.values())
