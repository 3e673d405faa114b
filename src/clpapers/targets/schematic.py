"""Draws how prior-focused and likelihood-focused continual learning go from one task to the next."""

from itertools import pairwise
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from clpapers.catalogue.names import named
from clpapers.targets.diagram import arrow, box
from clpapers.targets.footnotes import Notes
from clpapers.targets.palette import TEN
from clpapers.targets.style import STYLE, WIDTH, panels

RENDERER = {"draws": "figure"}

HEIGHT, SIDE = 1.6, WIDTH / 2 - 0.1  # inches, of a panel
FIRST, SECOND = 1.3, 0.3  # heights of the tasks' rows above the bottom
SIZE = 0.46, 0.3  # of a box
PRIOR, LIKELIHOOD, POSTERIOR = 0.29, 1.16, 2.15  # the boxes' left edges
PAST, PRESENT = 0.88, 1.48  # the left edges of two likelihoods instead of one
PRIORS, LIKELIHOODS, POSTERIORS = TEN[3], TEN[0], TEN[1]
LABEL: dict[str, Any] = {"size": 5.5, "linespacing": 1.2}


def _row(axes: Axes, y: float, task: str, factors: list[tuple[float, str, str, bool]], posterior: str) -> None:
    """A task: boxes (left edge, colour, name, whether exact), their product, and the posterior."""
    axes.text(0.11, y, task, rotation="vertical", ha="center", va="center", **LABEL)
    edges = []
    for left, colour, name, exact in [*factors, (POSTERIOR, POSTERIORS, posterior, True)]:
        box(axes, left, y, SIZE, colour, name, "", exact)
        edges.append((left, left + SIZE[0]))
    for i, ((_, right), (left, _)) in enumerate(pairwise(edges)):
        sign = r"$\rightarrow$" if i == len(factors) - 1 else r"$\times$"
        axes.text((left + right) / 2, y, sign, ha="center", va="center", size=7)


def _middle(left_edge: float) -> float:
    return left_edge + SIZE[0] / 2


@mpl.rc_context(STYLE)
def render(target: dict, data: pd.DataFrame, notes: Notes) -> Figure:
    """Draw two tasks a panel, one below the other: prior times likelihoods, and the posterior.

    Estimates have dotted outlines (`desiderata`, Figure 1 and section 4.1).

    target: key `names` (of the panels, `prior_focused` and `likelihood_focused`).
    data: columns `chunk`, `class` of a stream whose first two chunks are the tasks, as measured by `stream_tasks`.
    """
    classes = data.groupby("chunk")["class"].unique()
    tasks = [f"Task {t + 1}\nclasses {', '.join(map(str, sorted(classes[t])))}" for t in range(2)]
    prior, first, second = r"$p(\mathbf{w})$", r"$p(\mathcal{D}_1|\mathbf{w})$", r"$p(\mathcal{D}_2|\mathbf{w})$"
    posteriors = [rf"$q_{t}(\mathbf{{w}})$" for t in (1, 2)]
    below, above = FIRST - SIZE[1] / 2, SECOND + SIZE[1] / 2

    figure, ((left, right),) = panels(target, notes, [], 1, 2, HEIGHT + 0.2)
    for axes, kind in ((left, "prior_focused"), (right, "likelihood_focused")):
        factors = [(PRIOR, PRIORS, prior, True), (LIKELIHOOD, LIKELIHOODS, first, True)]
        _row(axes, FIRST, tasks[0], factors, posteriors[0])
        axes.set_title(notes.mark(named(target, kind)))
        axes.set(xlim=(0, SIDE), ylim=(0, HEIGHT))
        axes.axis("off")

    carried = [(PRIOR, POSTERIORS, posteriors[0], False), (LIKELIHOOD, LIKELIHOODS, second, True)]
    _row(left, SECOND, tasks[1], carried, posteriors[1])
    turn = (below + above) / 2
    left.plot([_middle(POSTERIOR)] * 2 + [_middle(PRIOR)], [below, turn, turn], color="0.25", linewidth=0.7)
    arrow(left, (_middle(PRIOR), turn), (_middle(PRIOR), above))
    left.text(_middle(LIKELIHOOD), turn + 0.05, "the posterior becomes the prior", ha="center", **LABEL)

    estimate = r"$\hat{p}(\mathcal{D}_1|\mathbf{w})$"
    replayed = [
        (PRIOR, PRIORS, prior, True),
        (PAST, LIKELIHOODS, estimate, False),
        (PRESENT, LIKELIHOODS, second, True),
    ]
    _row(right, SECOND, tasks[1], replayed, posteriors[1])
    arrow(right, (_middle(PRIOR), below), (_middle(PRIOR), above))
    arrow(right, (_middle(LIKELIHOOD), below), (_middle(PAST), above))
    middle = (_middle(LIKELIHOOD) + _middle(PAST)) / 2
    right.text(_middle(PRIOR) + 0.05, turn, "fixed", va="center", **LABEL)
    right.text(middle + 0.12, turn, "estimated by generated\ndata or by a coreset", va="center", **LABEL)
    return figure
