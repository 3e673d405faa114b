"""Values that follow from a text, or from the state of code and configuration, kept for later processes.

They stand in .snakemake/clpapers/, where Snakemake has its folder; nothing is kept elsewhere. Every job begins with the
same files, and every plan with the same pieces.
"""

import contextlib
import hashlib
import io
import json
import os
import pickle
from collections.abc import Callable
from typing import Any, TypeVar

from clpapers.home import project_path

FOLDER = project_path(".snakemake")
T = TypeVar("T")
PLAIN = {("builtins", "range"), ("builtins", "set"), ("pathlib", "PosixPath")}  # kept, besides our own classes
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


def load_or_make(name: str, state: str, make: Callable[[], T]) -> T:
    """The object that `make` makes, as an earlier process left it under a name at the same state.

    state: of all that the object is made of. The file is a SHA-256 of the state and of a pickle, and this pickle, which
    may hold objects of this project's own classes alone.
    """
    file = FOLDER / "clpapers" / f"{hashlib.sha256(name.encode()).hexdigest()[:16]}.pickle"
    with contextlib.suppress(Exception):  # no file, or none that can be read
        found = file.read_bytes()
        digest, content = found[:32], found[32:]
        if hashlib.sha256(state.encode() + content).digest() == digest:
            return _OwnUnpickler(io.BytesIO(content)).load()
    made = make()
    with contextlib.suppress(OSError, pickle.PicklingError):
        if FOLDER.is_dir():
            file.parent.mkdir(exist_ok=True)
            content, part = pickle.dumps(made), file.with_suffix(f".{os.getpid()}")
            part.write_bytes(hashlib.sha256(state.encode() + content).digest() + content)
            os.replace(part, file)
    return made


class _OwnUnpickler(pickle.Unpickler):
    """Reads objects of this project's own classes."""

    def find_class(self, module: str, name: str) -> Any:
        own = module.startswith("clpapers.") and "." not in name  # a dotted name leads into what a module imports
        found = super().find_class(module, name) if own or (module, name) in PLAIN else None
        if not isinstance(found, type):
            raise pickle.UnpicklingError(f"{module}.{name}")
        return found
