"""Values that follow from a text alone, kept for later processes, by the text's digest.

It stands in .snakemake/clpapers/, where Snakemake has its folder; nothing is kept elsewhere. Every job begins with the
same files, and every plan with the same pieces.
"""

import contextlib
import hashlib
import json
from collections.abc import Callable
from typing import Any, TypeVar

from clpapers.home import place

FOLDER = place(".snakemake")
T = TypeVar("T")
LARGEST_CACHE = 1 << 24  # bytes of a file, before it is begun again


class Cache:
    """Values that JSON has, in a file of their own, a line each. A line that is none is passed over."""

    def __init__(self, name: str):
        self.file = FOLDER / "clpapers" / f"{name}.jsonl"
        self.values: dict[str, Any] | None = None

    def get(self, text: str, work: Callable[[], T]) -> T:
        """The value that `work` makes of a text, once. A caller that changes it changes the cache."""
        if self.values is None:
            self.values = self._read()
        digest = hashlib.sha256(text.encode()).hexdigest()
        if digest not in self.values:
            value = work()
            self.values[digest] = value
            self._append(digest, value)
        return self.values[digest]

    def _read(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        with contextlib.suppress(OSError):
            if self.file.stat().st_size > LARGEST_CACHE:
                self.file.unlink()
            for line in self.file.read_text(encoding="utf-8", errors="replace").splitlines():
                with contextlib.suppress(ValueError, TypeError, RecursionError):
                    digest, value = json.loads(line)
                    found[digest] = value
        return found

    def _append(self, digest: str, value: Any) -> None:
        with contextlib.suppress(OSError, ValueError, TypeError, RecursionError):  # a value may be none that JSON has
            line = json.dumps([digest, value])
            if FOLDER.is_dir() and json.loads(line)[1] == value:  # JSON has no keys but texts
                self.file.parent.mkdir(exist_ok=True)
                with self.file.open("ab", buffering=0) as file:  # in one piece, as others append too
                    file.write(f"\n{line}".encode())
