"""Checkpoints: the state of a long training, from which the same command goes on to the same bits.

A job resumes a checkpoint only of its own code, cell, seeds, inputs, device and versions, and only if the file ends in
its SHA-256. The SHA-256 finds files that were cut short or damaged. It does not stop an attacker, since it involves no
secret: anyone who can write below `results/` can plant a checkpoint, as they can plant a result. But a checkpoint
cannot run code. It is JSON and the plain bytes of arrays. Reading it makes objects of this package's classes and of
torch's layers, optimisers and their schedules alone. These are found by name among the loaded classes, and filled
without calling them. The state that is read must fit the run that resumes it (`fit.misfit`). A file that asks for
anything else, or does not fit, is removed and ends the process, so that the next process starts clean.
"""

import collections
import contextlib
import functools
import hashlib
import importlib
import json
import math
import pkgutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO, Literal, NoReturn, TypeVar

import numpy as np
import torch
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from tqdm import tqdm

from clpapers import provenance, runs
from clpapers.runs.fit import misfit

INTERVAL = 300  # seconds
SHARE = 20  # saving takes at most one part in this many of the time
DIGEST = hashlib.sha256().digest_size

T = TypeVar("T")

DTYPES = {
    str(each): each
    for each in (
        *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
        *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
    )
}
FACTORIES: dict[str, Callable[[], object]] = {
    kind.__name__: kind for kind in (dict, list, set, int, float)
}  # of missing values in a defaultdict
SEQUENCES: dict[str, type] = {"list": list, "tuple": tuple, "set": set, "Size": torch.Size}
MAPPINGS: dict[str, type[dict]] = {"dict": dict, "OrderedDict": collections.OrderedDict}


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


class CheckpointError(provenance.ProvenanceError):
    """A checkpoint holds a state that no training of ours saves; the text is one line: file, fault, remedy."""


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
        self.path = None if result is None else result.with_name(f".{result.stem}.checkpoint")
        self.identity, self.interval = json.loads(json.dumps(identity)), interval
        self.finished: dict[tuple[int, ...], list[dict] | None] = {}
        self.seconds: dict[str, dict[int, float]] = {"training_seconds": {}, "testing_seconds": {}}
        self.resumed: list[dict] = []
        self.earlier: dict = {}
        self.waiting: tuple[tuple[int, ...], int, bytes] | None = None  # seeds of a group, its step and written state
        self.started = time.monotonic()
        if self.path is not None:
            self._read(self.path)
        self.next = math.inf if self.path is None else time.monotonic() + interval

    def _read(self, path: Path) -> None:
        provenance.sweep(path)
        if not path.is_file():
            return
        content = path.read_bytes()
        line, _, state = content[:-DIGEST].partition(b"\n")
        try:
            if hashlib.sha256(memoryview(content)[:-DIGEST]).digest() != content[-DIGEST:]:
                raise ValueError
            header = json.loads(line)
            other = [key for key, value in self.identity.items() if header["identity"].get(key) != value]
            finished = {tuple(seeds): results for seeds, results in header["finished"]}
            seconds = {key: {int(s): _spent(v) for s, v in header["seconds"][key].items()} for key in self.seconds}
            seeds, step = tuple(header["seeds"]), int(header["step"])
            spent = {key: _spent(header["spent"][key]) for key in provenance.spent(self.started, {})}
            resumed = [{"seeds": list(each["seeds"]), "step": int(each["step"])} for each in header["resumed"]]
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
            self._discard("it is damaged")
            return
        if other:
            self._discard(f"it is of another {', '.join(other)}")
            return
        self.finished, self.seconds, self.resumed, self.earlier = finished, seconds, resumed, spent
        self.waiting = (seeds, step, state)

    def _discard(self, reason: str) -> None:
        print(f"{self.path}: not resumed, {reason}; training starts over", file=sys.stderr)
        self.remove()

    def resume(
        self, seeds: Sequence[int], constants: dict[str, object], begun: Callable[[int], T] | None = None
    ) -> T | None:
        """The saved state of the group of these seeds, with the same `constants`; None where there is none.

        begun: gives a state that has just begun, but for the number of its next step, which the resumed one must fit.

        Raises `CheckpointError`, which ends the process, for a state that is refused; the file is removed.
        """
        if self.waiting is None or self.waiting[0] != tuple(seeds):
            return None
        (_, step, written), self.waiting = self.waiting, None
        try:
            state = _Reader(written, constants).state
            mistake = misfit(begun and begun(step), state, constants.values())
        except (MemoryError, torch.OutOfMemoryError):
            raise
        except Exception as error:  # of any kind: no saving of ours wrote it
            mistake = _one_line(error)
        if mistake:
            self.refuse(mistake)
        self.resumed.append({"seeds": list(seeds), "step": step})
        return state

    def refuse(self, mistake: str) -> NoReturn:
        """Remove the file, and end the process with a line on its mistake: `CheckpointError`."""
        self.remove()
        raise CheckpointError(
            f"{self.path}: not resumed, {mistake}; it is removed, give the same command again to start over"
        )

    @contextlib.contextmanager
    def blamed(self, seeds: Sequence[int]) -> Iterator[None]:
        """Inside, a group trains. Where it was resumed, an error is one line that names the file, which stays.

        The state of such a group has the form of the run's, and values that no training comes to; or it is not to
        blame, as where a GPU fails. Errors of memory or of room on a disk have messages of their own.
        """
        try:
            yield
        except (MemoryError, OSError, provenance.ProvenanceError):
            raise
        except Exception as error:
            if not any(each["seeds"] == list(seeds) for each in self.resumed) or out_of_memory(error):
                raise
            raise CheckpointError(
                f"{self.path}: resumed, and then failed ({_one_line(error)}); give the same command again, and where "
                f"that fails too, delete {self.path}"
            ) from None

    def is_due(self) -> bool:
        """Whether it is time to save."""
        return time.monotonic() >= self.next

    def save(self, seeds: Sequence[int], step: int, state: object, constants: dict[str, object]) -> None:
        """Write the state of the group of these seeds before a step, all finished results, and the time spent.

        Where writing fails, as on a full disk, a line on stderr says so, and the last checkpoint stays.
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
        }
        try:
            with provenance.write_atomically(self.path) as temporary, temporary.open("wb") as file:
                _write(file, header, state, constants)
        except Exception as error:  # of any kind: the run is worth more than its checkpoint
            tqdm.write(f"{self.path}: not written, training goes on: {_one_line(error)}", file=sys.stderr)
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


def _spent(value: Any) -> float:
    """A number of seconds or bytes that were spent; `ValueError` for what can be none."""
    if type(value) not in (int, float) or not 0 <= value < math.inf:
        raise ValueError
    return value


def out_of_memory(error: Exception) -> bool:
    """Whether memory ran out: Python's, a GPU's or a CPU's, for which PyTorch has no type."""
    messages = ("can't allocate memory", "ALLOC_FAILED")  # PyTorch's CPU allocator; cuBLAS and cuDNN
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or any(text in str(error) for text in messages)


def _write(file: BinaryIO, header: dict, state: object, constants: dict[str, object]) -> None:
    """Write header, state and the digest of both."""
    digest = hashlib.sha256()
    for part in (json.dumps(header).encode(), b"\n", *_Writer(state, constants).parts()):
        digest.update(part)
        file.write(part)
    file.write(digest.digest())


# --- a state as JSON and bytes -------------------------------------------------------------------------------
#
# The state is one line of JSON, `{"root": value, "nodes": [node, …], "sizes": [bytes, …]}`, and then blocks of memory
# of these sizes, one after the other. A value is null, true, false, a number or a text. For any other object it is a
# list of one number, the number of its node, so that one object stays one. A node is a list that begins with its kind.


@functools.cache
def _classes() -> dict[str, type]:
    """The classes whose objects a state may hold, by module and name.

    They are the classes of `clpapers.runs`; of other loaded modules, all classes of each module that derives one from
    these; torch's layers that are loaded; and its optimisers with their schedules.
    """
    for module in pkgutil.walk_packages(runs.__path__, f"{runs.__name__}."):
        importlib.import_module(module.name)
    ours = [module for name, module in sys.modules.items() if name.startswith(f"{runs.__name__}.")]
    found = [each for module in ours for each in _defined(module) if not issubclass(each, BaseException)]
    derived = list(found)
    while derived:
        of_others = [each for each in type.__subclasses__(derived.pop()) if each.__module__ in sys.modules]
        derived += of_others
        found += [each for other in of_others for each in _defined(sys.modules[other.__module__])]
    layers = [module for name, module in sys.modules.items() if name.startswith("torch.nn.modules.")]
    found += [each for module in layers for each in _defined(module) if issubclass(each, torch.nn.Module)]
    rates = [module for name, module in sys.modules.items() if name.startswith("torch.optim.")]
    found += [each for module in rates for each in _defined(module) if issubclass(each, Optimizer | LRScheduler)]
    return {f"{each.__module__}.{each.__name__}": each for each in found}


def _defined(module: ModuleType) -> list[type]:
    """The classes that a module defines."""
    return [each for each in vars(module).values() if isinstance(each, type) and each.__module__ == module.__name__]


class _Writer:
    """Takes a state apart. Raises `TypeError` where it holds an object that no state may hold."""

    def __init__(self, state: object, constants: dict[str, object]):
        self.constants = {id(item): name for name, item in constants.items()}
        self.nodes: list[list] = []
        self.blocks: list[memoryview] = []
        self.places: dict[int, int] = {}  # id of an object → number of its node
        self.storages: dict[int, int] = {}  # address of a tensor's memory → number of its block
        self.alive: list[object] = []  # so that no id is given twice
        self.root = self.value(state)

    def parts(self) -> list[bytes | memoryview]:
        """The parts to write, in sequence."""
        sizes = [block.nbytes for block in self.blocks]
        written = json.dumps({"root": self.root, "nodes": self.nodes, "sizes": sizes}, separators=(",", ":"))
        return [written.encode(), b"\n", *self.blocks]

    def value(self, item: Any) -> object:
        if item is None or type(item) in (bool, int, float, str):
            return item
        if id(item) not in self.places:
            self.places[id(item)] = number = len(self.nodes)
            self.alive.append(item)
            self.nodes.append([])
            self.nodes[number] = self.node(item)
        return [self.places[id(item)]]

    def values(self, items: Sequence) -> list:
        return [self.value(item) for item in items]

    def node(self, item: Any) -> list:
        kind = type(item)
        if id(item) in self.constants:
            return ["constant", self.constants[id(item)]]
        if kind in (torch.Tensor, torch.nn.Parameter):
            return ["tensor", *self.tensor(item)]
        if kind is np.ndarray or isinstance(item, np.generic):
            return ["array", *self.array(item)]
        if kind in SEQUENCES.values():
            return [kind.__name__, self.values(item)]
        if kind in MAPPINGS.values():
            return [kind.__name__, *map(self.values, item.items())]
        if kind is collections.defaultdict and item.default_factory in FACTORIES.values():
            return ["defaultdict", item.default_factory.__name__, *map(self.values, item.items())]
        if kind is np.random.Generator and type(item.bit_generator) is np.random.PCG64:
            source = item.bit_generator
            assert isinstance(source.seed_seq, np.random.SeedSequence)  # no other is given to it
            origin = {key: source.seed_seq.state[key] for key in ("entropy", "spawn_key", "n_children_spawned")}
            return ["Generator", source.state, origin]
        if kind is torch.Generator:
            return ["torch.Generator", str(item.device), self.value(item.get_state())]
        if isinstance(item, torch.dtype | torch.device | np.dtype):
            return ["numpy.dtype" if isinstance(item, np.dtype) else kind.__name__, str(item)]
        if kind is slice:
            return ["slice", item.start, item.stop, item.step]
        return self.of_ours(item)

    def of_ours(self, item: Any) -> list:
        kind = type(item)
        name = f"{kind.__module__}.{kind.__name__}"
        if _classes().get(name) is not kind or isinstance(item, type):
            raise TypeError(f"it would hold {kind.__module__}.{kind.__qualname__}")
        if isinstance(item, tuple):
            return ["tuple of ours", name, self.values(item)]
        state = item.__getstate__()
        if not isinstance(state, dict | None):
            raise TypeError(f"it would hold a {name}, which keeps its state in other than attributes")
        return ["object", name, {key: self.value(each) for key, each in (state or {}).items()}]

    def array(self, item: np.ndarray | np.generic) -> list:
        given = np.asarray(item)
        if given.dtype.hasobject:
            raise TypeError("it would hold an array of objects")
        order: Literal["C", "F"] = "F" if given.flags.f_contiguous and not given.flags.c_contiguous else "C"
        bytes_of = np.frombuffer(given.tobytes(order), np.uint8)
        return [given.dtype.str, list(given.shape), order, isinstance(item, np.generic), self.block(bytes_of)]

    def tensor(self, item: torch.Tensor) -> list:
        if item.layout is not torch.strided or str(item.dtype) not in DTYPES:
            raise TypeError(f"it would hold a tensor of {item.dtype}, {item.layout}")
        storage = item.untyped_storage()
        if storage._cdata not in self.storages:
            self.alive.append(storage)
            flat = torch.empty(0, dtype=torch.uint8, device=item.device).set_(storage, 0, (storage.nbytes(),), (1,))
            self.storages[storage._cdata] = self.block(flat.cpu().numpy())
        place = [self.storages[storage._cdata], str(item.device), str(item.dtype), item.storage_offset()]
        gradient = item.grad if item.is_leaf else None
        kind = [type(item) is torch.nn.Parameter, item.requires_grad]
        return [*place, list(item.shape), list(item.stride()), *kind, self.value(gradient)]

    def block(self, content: np.ndarray) -> int:
        self.blocks.append(content.data)
        return len(self.blocks) - 1


class _Reader:
    """Puts a state together again, as `state`; any error means that no `_Writer` wrote it."""

    def __init__(self, written: bytes, constants: dict[str, object]):
        line, _, rest = written.partition(b"\n")
        encoded = json.loads(line)
        self.constants, self.nodes = constants, encoded["nodes"]
        self.made: dict[int, Any] = {}  # by number of the node
        self.blocks: list[np.ndarray] = []
        start = 0
        for size in encoded["sizes"]:
            if not 0 <= size <= len(rest) - start:
                raise ValueError("its memory is not of the size that it says")
            self.blocks.append(np.frombuffer(rest, np.uint8, size, start))
            start += size
        self.storages: dict[tuple[int, str], torch.UntypedStorage] = {}
        self.state: Any = self.value(encoded["root"])

    def value(self, encoded: Any) -> Any:
        if not isinstance(encoded, list):
            if encoded is None or isinstance(encoded, bool | int | float | str):
                return encoded
            raise ValueError("it holds JSON that stands for nothing")
        (number,) = encoded
        if number not in self.made:
            kind, *parts = self.nodes[number]
            if kind not in KINDS:
                raise ValueError(f"it asks for {kind}")
            self.made[number] = item = KINDS[kind](self, number, kind, *parts)
            return item
        return self.made[number]

    def values(self, encoded: list) -> list:
        return [self.value(each) for each in encoded]

    def constant(self, number: int, kind: str, name: str) -> object:
        if name not in self.constants:
            raise ValueError(f"it asks for {name}, which is no constant")
        return self.constants[name]

    def sequence(self, number: int, kind: str, encoded: list) -> object:
        if kind != "list":
            return SEQUENCES[kind](self.values(encoded))
        made: list = []
        self.made[number] = made  # first, since its items may refer to it
        made += self.values(encoded)
        return made

    def mapping(self, number: int, kind: str, *encoded: Any) -> dict:
        made: dict = MAPPINGS[kind]() if kind in MAPPINGS else collections.defaultdict(FACTORIES[encoded[0]])
        self.made[number] = made
        for pair in encoded if kind in MAPPINGS else encoded[1:]:
            key, each = self.values(pair)
            made[key] = each
        return made

    def of_ours(self, number: int, kind: str, name: str, encoded: Any) -> object:
        found: Any = _classes().get(name)
        if found is None or issubclass(found, tuple) is not (kind == "tuple of ours"):
            raise ValueError(f"it asks for {name}")
        if kind == "tuple of ours":
            return found._make(self.values(encoded))
        self.made[number] = made = found.__new__(found)
        state = {key: self.value(each) for key, each in encoded.items()}
        if hasattr(found, "__setstate__"):
            made.__setstate__(state)
        else:
            vars(made).update(state)
        return made

    def array(
        self, number: int, kind: str, dtype: str, shape: list, order: Literal["C", "F"], scalar: bool, block: int
    ) -> object:
        if np.dtype(dtype).hasobject:
            raise ValueError("it asks for an array of objects")
        made = np.frombuffer(self.blocks[block].tobytes(), np.dtype(dtype)).reshape(shape, order=order).copy("K")
        return made[()] if scalar else made

    def tensor(
        self, number: int, kind: str, block: int, device: str, dtype: str, offset: int, *encoded: Any
    ) -> torch.Tensor:
        shape, strides, parameter, requires_grad, gradient = encoded
        if (block, device) not in self.storages:
            flat = torch.from_numpy(self.blocks[block].copy()).to(device)
            self.storages[block, device] = flat.untyped_storage()
        made = torch.empty(0, dtype=DTYPES[dtype], device=device)
        last = offset + sum((length - 1) * stride for length, stride in zip(shape, strides, strict=True))
        if 0 not in shape and not (last + 1) * made.itemsize <= len(self.blocks[block]):
            raise ValueError("it asks for a tensor beyond its memory")
        made.set_(self.storages[block, device], offset, shape, strides)
        made = torch.nn.Parameter(made, requires_grad) if parameter else made.requires_grad_(requires_grad)
        made.grad = self.value(gradient)
        return made

    def generator(self, number: int, kind: str, state: Any, origin: dict) -> np.random.Generator:
        source = np.random.PCG64(np.random.SeedSequence(**origin))
        source.state = state
        return np.random.Generator(source)

    def source(self, number: int, kind: str, device: str, state: list) -> torch.Generator:
        return torch.Generator(device).set_state(self.value(state))

    def constructed(self, number: int, kind: str, *arguments: Any) -> object:
        if kind == "dtype":
            return DTYPES[arguments[0]]
        makers: dict[str, Callable[..., object]] = {"device": torch.device, "numpy.dtype": np.dtype, "slice": slice}
        return makers[kind](*arguments)


KINDS: dict[str, Callable[..., object]] = {  # kind of a node → the method that puts it together again
    "constant": _Reader.constant,
    **dict.fromkeys(SEQUENCES, _Reader.sequence),
    **dict.fromkeys([*MAPPINGS, "defaultdict"], _Reader.mapping),
    **dict.fromkeys(["object", "tuple of ours"], _Reader.of_ours),
    "array": _Reader.array,
    "tensor": _Reader.tensor,
    "Generator": _Reader.generator,
    "torch.Generator": _Reader.source,
    **dict.fromkeys(["dtype", "device", "numpy.dtype", "slice"], _Reader.constructed),
}
