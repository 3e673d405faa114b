"""Refuse bad configuration in one line that names the file, the key, the value and the remedy."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Collection, Iterable

LONGEST = 400  # characters of a refusal


class ConfigError(Exception):
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


def shown(value: object) -> str:
    """A value as Python writes it, cut where it is long."""
    return _SHOW.repr(value)


def names(known: Iterable, wanted: object) -> str:
    """The allowed names: all of them, or from a long list the ones closest to the name `wanted`."""
    known = [str(name) for name in known]
    if len(", ".join(known)) <= 240:
        return ", ".join(known)
    close = difflib.get_close_matches(str(wanted)[:60], known, n=6, cutoff=0)
    return f"{', '.join(close)}, … ({len(known)} in all)"


def required(at: str, block: Collection, keys: Iterable[str]) -> None:
    """Refuse a block, standing at `at`, that lacks one of the keys."""
    for name in keys:
        if name not in block:
            raise ConfigError(f"{at}: '{name}' is missing")


def one_of(at: str, value: object, there: Collection) -> None:
    """Refuse a `value`, standing at `at`, that is not among those `there`."""
    if value not in list(there):
        raise ConfigError(f"{at}: {shown(value)} is not one of {', '.join(map(str, there)) or 'none'}")
