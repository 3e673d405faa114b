"""The pages that are made of the configuration and the code: keys, targets, names of a method."""

from __future__ import annotations

from collections.abc import Mapping

from clpapers.budget import costs
from clpapers.config.plan import Plan
from clpapers.config.selected_runs import SelectedRuns
from clpapers.report import keys, method_names

TARGETS = """\
# Targets

This page lists every table, figure and number of the papers, at the settings of the scale `{scale}`. Each line has the
command that makes it, the runs that it needs, and two predicted costs of one core of the machine that built this page.
"Whole" is all of the target from nothing. "Still to train" is what remains beside the finished runs. Footnotes and
`clpapers next` give the same number on the same machine. Targets share runs, so the last line is less than the sum.
The targets `class_order` and those whose name begins with `sensitivity` are part neither of their papers nor of `all`.
[machines.md](machines.md#prices) says how costs are predicted, and how far that was right.

"""


def texts(plan: Plan, left: Mapping[str, float] | None = None) -> dict[str, str]:
    """The pages by their places in docs/. left: as for `costs.table`, by default of the plan's choice of runs."""
    if left is None:
        choice = plan.choice or SelectedRuns()
        left = {**choice.prices, "all": sum(hours or 0.0 for hours in choice.unrun.values())}
    targets = TARGETS.format(scale=plan.scale) + costs.table(plan.using(None), left=left, spent=False) + "\n"
    return {"keys.md": keys.page(), "targets.md": targets, "own_method_names.md": method_names.page()}
