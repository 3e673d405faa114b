"""The caption of a figure, in a file beside it: Markdown that the report and notebooks read, and a float for LaTeX."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from clpapers.targets.markdown import markdown, unescaped
from clpapers.targets.tex import latex

_FLOAT = r"""%% In the preamble: \usepackage{graphicx}, and \graphicspath{{<the folder above this one>/}}
\begin{%(float)s}
\centering
\includegraphics{%(name)s.pdf}
\caption{%(caption)s}
\label{%(label)s}
\end{%(float)s}
%(sources)s"""


@dataclass(frozen=True)
class Caption:
    """A figure's caption.

    notes: texts of the marks and signs in the picture. sources: on the runs behind it, which a paper need not print.
    """

    title: str
    text: str
    notes: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)

    def to_markdown(self) -> str:
        """A paragraph of title and text, and one a note and source."""
        first = f"**{markdown(self.title)}.** {markdown(self.text)}"
        return "\n\n".join([first, *map(markdown, [*self.notes, *self.sources])]) + "\n"

    def to_latex(self, stem: Path, wide: bool) -> str:
        """A float with the figure's PDF, over both columns if `wide`; its sources are comments.

        LaTeX numbers it, so the number in its title follows as the paper's.
        """
        title = re.sub(r"^(Figure \d+): (.+)", r"\2 (\1 of the paper)", self.title)
        return _FLOAT % {
            "float": "figure*" if wide else "figure",
            "name": f"{stem.parent.name}/{stem.name}",  # papers share names of figures
            "caption": " ".join(map(latex, [f"{title}.", self.text, *self.notes])),
            "label": f"fig:{stem.parent.name}-{stem.name}",
            "sources": "".join(f"% {source}\n" for source in self.sources),
        }


def read_caption(file: Path) -> Caption:
    """The caption of such a Markdown file; sources are among its notes."""
    first, *notes = file.read_text(encoding="utf-8").rstrip("\n").split("\n\n")
    title, _, text = first.removeprefix("**").partition(".** ")
    return Caption(unescaped(title), unescaped(text), [unescaped(note) for note in notes])
