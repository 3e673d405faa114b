"""Checkpoints: the state of a long training, from which the same command goes on to the same bits.

A job resumes a checkpoint only of its own code, cell, seeds, inputs, device and versions, and only if the file ends in
its SHA-256. The state is a pickle. It names constants, such as images, and does not hold them (`constants`). It holds
objects of what `clpapers.runs` defines, methods from outside among it, and of types of torch, NumPy and Python that
states are made of (`_admitted`). A file that asks for anything else is removed, and training starts over.
"""

import functools
import hashlib
import importlib
import io
import json
import math
import pickle
import re
import sys
import time
import types
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from tqdm import tqdm

from clpapers import provenance, runs
from clpapers.runs.resumable import checkpoint_of

INTERVAL = 300  # seconds
SHARE = 20  # saving takes at most one part in this many of the time
DIGEST = hashlib.sha256().digest_size

# A state may hold these besides objects of our runs, numbers, texts, lists, tuples and dictionaries.
PLAIN = {
    "builtins": {"bool", "bytearray", "complex", "dict", "float", "frozenset", "int", "list", "range", "set", "slice"},
    "collections": {"Counter", "OrderedDict", "defaultdict", "deque"},
    "functools": {"partial"},
    "numpy": {"dtype", "ndarray"},
    "numpy._core.multiarray": {"_reconstruct", "scalar"},
    "numpy._core.numeric": {"_frombuffer"},
    "numpy.random._pickle": {"__bit_generator_ctor", "__generator_ctor", "__randomstate_ctor"},
    "numpy.random.bit_generator": {"__pyx_unpickle_SeedSequence"},
    "random": {"Random"},
}
OF_TORCH = torch.nn.Module, Optimizer, LRScheduler, torch.Tensor, torch.Size, torch.device


def identity(record: dict, *decisive: str) -> dict:
    """All that a training's bits depend on, these facts included: trainings equal in it may share a checkpoint."""
    return {
        "code": record["code"],
        **{key: record[key] for key in decisive},
        "seeds": record["seeds"],
        "inputs": {entry["path"]: entry["sha256"] for entry in record["inputs"]},
        "device": record["hardware"]["device"],
        "processor": provenance.hardware()["processor"],
        "versions": {"torch": torch.__version__, "numpy": np.__version__},
    }


class Checkpoint:
    """The progress of a job, in memory and, at intervals, in the file `.<stem>.checkpoint` beside its result.

    The file is a line of JSON, the state of the group of seeds that was training (`_Writer`), and the SHA-256 of both.
    Objects that never change in training, such as images, are left out of the state (`constants`).

    Parameters
    ----------
    result: the file that the job makes. Without it nothing is read or written.
    identity: the facts that identify the job, ready for JSON. A checkpoint with other facts, or a damaged one, is
        removed with a line on stderr.
    interval: seconds from one saving to the next. It is longer where saving itself takes long (`SHARE`).

    Attributes
    ----------
    finished: seeds of a finished group → its results, ready for JSON; None where memory did not suffice.
    seconds: `training_seconds` and `testing_seconds`, each seed → seconds.
    resumed: one entry each time it was resumed: the group's `seeds` and the number of the next `step`.
    earlier: the time and memory spent up to the checkpoint (`provenance.spent`); empty where there was none.
    """

    def __init__(self, result: Path | None = None, identity: dict | None = None, interval: float = INTERVAL):
        self.path = None if result is None else checkpoint_of(result)
        self.identity, self.interval = json.loads(json.dumps(identity)), interval
        self.finished: dict[tuple[int, ...], list[dict] | None] = {}
        self.seconds: dict[str, dict[int, float]] = {"training_seconds": {}, "testing_seconds": {}}
        self.resumed: list[dict] = []
        self.earlier: dict = {}
        self.waiting: tuple[tuple[int, ...], int, bytes] | None = None  # seeds of a group, its step and written state
        self.told = ""  # why the last saving failed
        self.started = time.monotonic()
        self.count = len((self.identity or {}).get("seeds", ())) or 1
        if self.path is not None:
            self._read(self.path)
        self.next = math.inf if self.path is None else time.monotonic() + interval

    def _read(self, path: Path) -> None:
        provenance.sweep(path)
        if not path.is_file():
            return
        content = path.read_bytes()
        if hashlib.sha256(memoryview(content)[:-DIGEST]).digest() != content[-DIGEST:]:
            self._discard("it is damaged")
            return
        line, _, state = content[:-DIGEST].partition(b"\n")
        header = json.loads(line)
        if other := [key for key, value in self.identity.items() if header["identity"].get(key) != value]:
            self._discard(f"it is of another {', '.join(other)}")
            return
        self.finished = {tuple(seeds): results for seeds, results in header["finished"]}
        self.seconds = {key: {int(s): v for s, v in each.items()} for key, each in header["seconds"].items()}
        self.resumed, self.earlier = header["resumed"], header["spent"]
        self.waiting = tuple(header["seeds"]), header["step"], state

    def _discard(self, reason: str) -> None:
        print(f"{self.path}: not resumed, {reason}; training starts over", file=sys.stderr)
        self.remove()

    def resume(self, seeds: Sequence[int], constants: dict[str, object]) -> Any:
        """The saved state of the group of these seeds, with the same `constants`; None where there is none.

        A state that cannot be read is removed with a line on stderr.
        """
        if self.waiting is None or self.waiting[0] != tuple(seeds):
            return None
        (_, step, written), self.waiting = self.waiting, None
        try:
            state = _Unpickler(written, constants).load()
        except (MemoryError, torch.OutOfMemoryError):
            raise
        except Exception as error:  # of any kind, as objects raise their own
            self._discard(_one_line(error))
            return None
        self.resumed.append({"seeds": list(seeds), "step": step})
        return state

    def is_due(self) -> bool:
        """Whether it is time to save."""
        return time.monotonic() >= self.next

    def save(self, seeds: Sequence[int], step: int, state: object, constants: dict[str, object], *, steps: int) -> None:
        """Write the state of the group of these seeds before a step of `steps`, all finished results, the time spent.

        Where writing fails, as on a full disk, a line on stderr says so once, and the last checkpoint stays.
        """
        assert self.path is not None  # without one no saving is due
        began = time.monotonic()
        header = {
            "identity": self.identity,
            "finished": [[seeds, results] for seeds, results in self.finished.items()],
            "seconds": self.seconds,
            "resumed": self.resumed,
            "spent": provenance.spent(self.started, self.earlier),
            "seeds": list(seeds),
            "step": step,
            "share": (sum(map(len, self.finished)) + len(seeds) * step / steps) / self.count,
        }
        try:
            with provenance.write_atomically(self.path) as temporary, temporary.open("wb") as file:
                _write(file, header, state, constants)
        except Exception as error:  # of any kind: the run is worth more than its checkpoint
            reason = _one_line(error) if isinstance(error, OSError) else unkept(state, constants) or _one_line(error)
            if reason != self.told:
                tqdm.write(f"{self.path}: not written, training goes on: {reason}", file=sys.stderr)
            self.told = reason
        now = time.monotonic()
        self.next = now + max(self.interval, (now - began) * (SHARE - 1))

    def remove(self) -> None:
        """Remove the file, if there is one."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def constants(**objects: object) -> dict[str, object]:
    """These objects, and the tensors and arrays in them, by name: a state refers to them and does not hold them."""
    found = dict(objects)
    for name, each in objects.items():
        inside = {key: value for key, value in vars(each).items() if isinstance(value, torch.Tensor | np.ndarray)}
        found |= {f"{name}.{key}": value for key, value in inside.items()}
    return found


def _one_line(error: Exception) -> str:
    """An error's text as one line."""
    return provenance.escaped(str(error).partition("\n")[0] or type(error).__name__)[:200]


def out_of_memory(error: Exception) -> bool:
    """Whether memory ran out: Python's, a GPU's or a CPU's, for which PyTorch has no type."""
    messages = ("can't allocate memory", "ALLOC_FAILED")  # PyTorch's CPU allocator; cuBLAS and cuDNN
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or any(text in str(error) for text in messages)


# --- a state as a pickle -------------------------------------------------------------------------------------


def _admitted(module: str, name: str) -> Any:
    """The class, function or type of this name, if a state may hold it; otherwise None."""
    ours = module.startswith(f"{runs.__name__}.")
    if not (ours or module in PLAIN or module.partition(".")[0] in ("torch", "numpy")):
        return None
    try:
        found = functools.reduce(getattr, name.split("."), importlib.import_module(module))
    except (ImportError, AttributeError):
        return None
    if ours or module == "torch.nn.functional":
        fit = isinstance(found, type | types.FunctionType) and found.__module__ == module
    elif module.startswith("torch"):
        fit = isinstance(found, torch.dtype) or (isinstance(found, type) and issubclass(found, OF_TORCH))
    else:
        numbers = np.random.BitGenerator, np.random.SeedSequence, np.generic
        fit = name in PLAIN.get(module, ()) or (isinstance(found, type) and issubclass(found, numbers))
    return found if fit else None


def _address(item: object) -> int:
    """The number that identifies an object; many objects stand for a tensor's memory, which counts as one."""
    return item._cdata if isinstance(item, torch.UntypedStorage) else id(item)


def _fixed(constants: dict[str, object]) -> dict[str, object]:
    """The constants by name, and the memory of tensors among them, since a state may hold parts of it."""
    tensors = {name: item for name, item in constants.items() if isinstance(item, torch.Tensor)}
    return {f"memory of {name}": item.untyped_storage() for name, item in tensors.items()} | constants


class _Pickler(pickle.Pickler):
    """Pickles a state. Raises `TypeError`, among others, where it holds an object that no state may hold."""

    def __init__(self, file: Any, constants: dict[str, object]):
        super().__init__(file, protocol=5)
        self.fixed = _fixed(constants)
        self.names = {_address(item): name for name, item in self.fixed.items()}
        self.storages: dict[int, torch.UntypedStorage] = {}  # one object for the memory that tensors share

    def persistent_id(self, item: Any) -> str | None:
        return self.names.get(_address(item))

    def reducer_override(self, item: Any) -> Any:
        """How to make an object again: (function, arguments, …); `NotImplemented` where pickle knows."""
        if isinstance(item, type | types.FunctionType | types.BuiltinFunctionType):
            if _admitted(item.__module__, item.__qualname__) is not item:
                raise TypeError
        elif isinstance(item, torch.Tensor):
            if type(item) not in (torch.Tensor, torch.nn.Parameter) or item.layout is not torch.strided:
                raise TypeError
            storage = item.untyped_storage()
            storage = self.storages.setdefault(storage._cdata, storage)
            form = item.dtype, item.storage_offset(), tuple(item.shape), item.stride(), item.requires_grad
            attached = item.grad if item.is_leaf else None, vars(item)
            return _tensor, (type(item), storage, *form), attached, None, None, _attach
        elif isinstance(item, torch.UntypedStorage):
            flat = torch.empty(0, dtype=torch.uint8, device=item.device).set_(item)
            return _storage, (str(item.device), pickle.PickleBuffer(flat.cpu().numpy().data))
        elif isinstance(item, torch.Generator):
            return _generator, (str(item.device), item.get_state())
        elif isinstance(item, Optimizer):  # whose own state lacks attributes of subclasses; a schedule wraps its step
            return _bare, (type(item),), {key: each for key, each in vars(item).items() if key != "step"}
        elif isinstance(item, types.MethodType):
            return _method, (item.__self__, item.__name__)
        return NotImplemented


def _tensor(kind: type, storage: torch.UntypedStorage, dtype: torch.dtype, *form: Any) -> torch.Tensor:
    *place, requires_grad = form
    made = torch.empty(0, dtype=dtype, device=storage.device).set_(storage, *place)
    return torch.nn.Parameter(made, requires_grad) if kind is torch.nn.Parameter else made.requires_grad_(requires_grad)


def _attach(tensor: torch.Tensor, attached: tuple[torch.Tensor | None, dict]) -> None:
    tensor.grad, others = attached
    vars(tensor).update(others)


def _storage(device: str, content: bytearray) -> torch.UntypedStorage:
    made = torch.empty(len(content), dtype=torch.uint8, device=device)
    if content:
        made.copy_(torch.frombuffer(content, dtype=torch.uint8))  # into memory that is aligned as any tensor's
    return made.untyped_storage()


def _generator(device: str, state: torch.Tensor) -> torch.Generator:
    return torch.Generator(device).set_state(state)


def _bare(kind: Any) -> object:
    return kind.__new__(kind)


def _method(owner: Any, name: str) -> types.MethodType:
    return getattr(owner, name)


class _Unpickler(pickle.Unpickler):
    """Reads a state; raises `UnpicklingError` where it asks for an object that no state may hold."""

    def __init__(self, state: bytes, constants: dict[str, object]):
        super().__init__(io.BytesIO(state))
        self.fixed = _fixed(constants)

    def persistent_load(self, name: str) -> object:
        return self.fixed[name]

    def find_class(self, module: str, name: str) -> Any:
        if (found := _admitted(module, name)) is None:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        return found


class _Digesting:
    """A file whose content is digested as it is written."""

    def __init__(self, file: BinaryIO):
        self.file, self.digest = file, hashlib.sha256()

    def write(self, part: Any) -> None:
        self.digest.update(part)
        self.file.write(part)


def _write(file: BinaryIO, header: dict, state: object, constants: dict[str, object]) -> None:
    """Write header, state and the digest of both."""
    digesting = _Digesting(file)
    digesting.write(json.dumps(header).encode() + b"\n")
    _Pickler(digesting, constants).dump(state)
    file.write(digesting.digest.digest())


def unkept(state: object, constants: dict[str, object]) -> str:
    """The part of a state that no checkpoint can hold: a line of its path, kind and remedy; empty where all is held."""
    return _unkept(state, constants, "", set())


def _unkept(item: Any, constants: dict[str, object], path: str, met: set[int]) -> str:
    try:
        _Pickler(io.BytesIO(), constants).dump(item)
    except (MemoryError, torch.OutOfMemoryError):
        raise
    except Exception:  # of any kind, as objects raise their own
        for name, part in _parts(item):
            if id(part) not in met:
                met.add(id(part))
                if found := _unkept(part, constants, f"{path}{name}", met):
                    return found
        if isinstance(item, types.FunctionType | types.BuiltinFunctionType):
            kind, remedy = "lambda" if item.__name__ == "<lambda>" else "function", "make it a method of the class"
        else:
            kind, remedy = f"{type(item).__module__}.{type(item).__qualname__}", "hold its numbers in tensors or arrays"
        own = re.sub(r"^\.?(learner\.)?(method\.)?", "self.", path, count=1)  # as its author writes it
        return f"{own} is a {kind}, which no checkpoint holds; {remedy}"
    return ""


def _parts(item: Any) -> Iterator[tuple[str, Any]]:
    """The parts of an object, each with the end of its path."""
    if isinstance(item, dict):
        yield from ((f"[{key!r}]", part) for key, part in item.items())
    elif isinstance(item, list | tuple | set):
        yield from ((f"[{i}]", part) for i, part in enumerate(item))
    elif not isinstance(item, type | types.FunctionType):
        yield from ((f".{name}", part) for name, part in getattr(item, "__dict__", {}).items())
