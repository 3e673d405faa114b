"""Text in Markdown: no character of it is taken for markup."""

import re
from collections.abc import Iterable


def markdown(text: str) -> str:
    """Text that no reader of Markdown takes for markup; not all know an escaped `<`.

    An underscore within a word is no markup: a name such as `ls_er` stands as it is typed.
    """
    text = re.sub(r"&(?=#?\w+;)", "&amp;", text).replace("<", "&lt;").replace("\n", " ")
    return re.sub(r"([\\|*`]|(?<![^\W_])_|_(?![^\W_])|(?<=\])\()", r"\\\1", text)


def markdown_table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """The lines of a Markdown table."""
    heads = list(heads)
    lines = [[str(cell).replace("|", "\\|") for cell in row] for row in rows]
    return [f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *lines)]


def unescaped(text: str) -> str:
    """The text that `markdown` made this of; its newlines are spaces."""
    return re.sub(r"\\(.)", r"\1", text).replace("&lt;", "<").replace("&amp;", "&")
