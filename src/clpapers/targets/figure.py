"""Writes figures as PDF, SVG and PNG, and their captions beside them: same input, same bytes."""

from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from clpapers.provenance import write_atomically, write_text
from clpapers.targets.caption import Caption
from clpapers.targets.footnotes import Notes
from clpapers.targets.style import COLUMN, NotedFigure, fit

FIGURE_SUFFIXES = (".pdf", ".svg", ".png")


def _settle(figure: Figure) -> None:
    """Lay the figure out once and round its axes' positions: SVG hashes the solver's last bits into names."""
    fit(figure)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axes in figure.axes:
        left, bottom, width, height = (round(edge, 5) for edge in axes.get_position(original=True).bounds)
        axes.set_position((left, bottom, width, height))


def write_figure(figure: Figure, stem: Path | str, suffixes: tuple[str, ...] = FIGURE_SUFFIXES) -> list[Path]:
    """Write `<stem>.pdf .svg .png`, or some of them (fonts embedded, no dates inside), and return their paths."""
    metadata = {
        ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
        ".svg": {"Date": None, "Creator": None},
        ".png": {"Software": None},
    }
    _settle(figure)
    paths = [Path(f"{stem}{suffix}") for suffix in suffixes]
    for path in paths:
        with (
            mpl.rc_context({"pdf.fonttype": 42, "svg.fonttype": "path", "svg.hashsalt": "clpapers"}),
            write_atomically(path) as temporary,
        ):
            figure.savefig(temporary, metadata=metadata[path.suffix], dpi=200)
    return paths


def write_caption(figure: NotedFigure, target: dict, notes: Notes, stem: Path) -> None:
    """Write a target's `<stem>.caption.md` and, as a float, `<stem>.caption.tex`."""
    caption = Caption(
        notes.mark(target["title"]), notes.caption(target), figure.notes, [*notes.commits, *notes.sources(target)]
    )
    write_text(Path(f"{stem}.caption.md"), caption.to_markdown())
    write_text(Path(f"{stem}.caption.tex"), caption.to_latex(stem, wide=figure.get_figwidth() > COLUMN))
