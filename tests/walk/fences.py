"""The fenced commands of README and of the pages that it leads to, in the order in which a reader comes to them."""

import re
from pathlib import Path
from typing import NamedTuple

BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```", re.M | re.S)
COMMENT = re.compile(r"\s+#\s.*|^#\s.*")
ASSIGNMENTS = re.compile(r"(\w+=[^\s;]+;? ?)+")


class Command(NamedTuple):
    """A command that a page gives, and the lines that the page shows below it as its output."""

    text: str
    shown: list[str]


def pages(root: Path) -> list[Path]:
    """README, the pages that it links to in that order, and those that these link to."""
    found = [root / "README.md"]
    for page in found:
        links = re.findall(r"\]\(([^)#\s]+\.md)", page.read_text(encoding="utf-8"))
        found += dict.fromkeys(path for link in links if (path := (page.parent / link).resolve()) not in found)
    return found


def blocks(page: Path, language: str = "") -> list[str]:
    """The text of a page's blocks in a language; commands stand in blocks of none."""
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [re.sub(rf"^{indent}", "", text, flags=re.M) for indent, kind, text in found if kind == language]


def commands(page: Path) -> list[Command]:
    """The commands of a page; where a block shows output they follow a `$`. Variables go with what they are set for."""
    found: list[Command] = []
    for block in blocks(page):
        lines, before = block.replace("\\\n", " ").splitlines(), ""
        session = lines[0].startswith("$ ")
        for line in lines:
            text = re.sub(r"\s+", " ", COMMENT.sub("", line.removeprefix("$ "))).strip()
            if session and not line.startswith("$ "):
                found[-1].shown.append(line)
            elif ASSIGNMENTS.fullmatch(text):
                before = f"{text}; "
            elif text and not text.startswith('"'):  # a line of a file
                found.append(Command(before + text if "$" in text else text, []))
    return found
