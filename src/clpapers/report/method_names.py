"""The page with the names that an author of a method meets, from docstrings."""

import inspect
import re
from collections.abc import Iterator

from clpapers.runs.method import Method, Net, Reservoir

HEAD = """\
# The names of a method

An author meets eight names: the class `Method`, its functions `begin_task`, `observe`, `end_task` and `predict`, and
its attributes `net`, `optimizer` and `memory`. Five more are there when they are needed: `classes`, `budget`, `loss`,
`masked` and `optimize`. All else is plain PyTorch. [own_method.md](own_method.md) has a session and examples.

Images are x `[B, C, H, W]`, labels y `[B]`, scores `[B, K]`: B items of a batch, K classes, D features.
"""
TITLES = {Method: "`clpapers.Method`", Net: "`self.net`", Reservoir: "`self.memory`"}
FUNCTIONS = {
    Method: ("begin_task", "observe", "end_task", "predict", "loss", "masked", "optimize"),
    Net: ("features",),
    Reservoir: ("add", "draw"),
}


def text(documented: object) -> Iterator[str]:
    """A docstring as Markdown: `name: description` is an item of a list, and its lines belong together."""
    for paragraph in (inspect.getdoc(documented) or "").split("\n\n"):
        joined = re.sub(r"\n +", " ", paragraph)
        items = re.sub(r"(?m)^(\w+): ", r"- `\1`: ", joined)
        yield items if items != joined else joined.replace("\n", " ")


def page() -> str:
    """The whole page."""
    parts = [HEAD.rstrip("\n")]
    for documented, title in TITLES.items():
        parts += [f"## {title}", *text(documented)]
        for name in FUNCTIONS[documented]:
            function = getattr(documented, name)
            taken = ", ".join(map(str, list(inspect.signature(function).parameters.values())[1:]))
            parts += [f"### `{name}({re.sub(r': [^,]*', '', taken)})`", *text(function)]
    return "\n\n".join(parts) + "\n"
