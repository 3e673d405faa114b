"""Refuse bad configuration in one line that names the file, the key, the value and the remedy."""

import difflib
import reprlib
from collections.abc import Collection, Iterable

from clpapers.provenance import Refusal

LONGEST = 400  # characters of a refusal


class ConfigError(Refusal):
    """Bad configuration; the text is one line: file, key, value, remedy.

    The line has printable characters alone, at most `LONGEST` of them, whatever the files hold.
    """

    def __init__(self, text: str):
        line = "".join(c if c.isprintable() else " " for c in text)
        super().__init__(line if len(line) <= LONGEST else f"{line[: LONGEST - 103]} … {line[-100:]}")


def dotted(path: Iterable) -> str:
    """A place in a file, `targets.table1.metrics[0]`, from its keys and indices."""
    return "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in path).lstrip(".") or "(top)"


_SHOW = reprlib.Repr()
_SHOW.maxstring = _SHOW.maxother = 60


def short_repr(value: object) -> str:
    """A value as Python writes it, cut where it is long."""
    return _SHOW.repr(value)


def names(allowed: Iterable, name: object) -> str:
    """The allowed names: all of them, or from a long list the ones closest to `name`."""
    allowed = [str(each) for each in allowed]
    if len(", ".join(allowed)) <= 240:
        return ", ".join(allowed)
    close = difflib.get_close_matches(str(name)[:60], allowed, n=6, cutoff=0)
    return f"{', '.join(close)}, … ({len(allowed)} in all)"


def required(where: str, block: Collection, keys: Iterable[str]) -> None:
    """Refuse a block, found `where`, that lacks one of the keys."""
    for name in keys:
        if name not in block:
            raise ConfigError(f"{where}: '{name}' is missing")


def one_of(where: str, value: object, allowed: Collection) -> None:
    """Refuse a `value`, found `where`, that is not among the `allowed` ones."""
    if value not in list(allowed):
        raise ConfigError(f"{where}: {short_repr(value)} is not one of {', '.join(map(str, allowed)) or 'none'}")
