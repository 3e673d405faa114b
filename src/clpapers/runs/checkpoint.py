"""Checkpoints: where a long training stood, so that the same command goes on from there, to the same bits.

A checkpoint is believed only by whom it belongs to: the same code, cell, seeds, inputs, device and versions, and only
with the SHA-256 that it ends with. That finds what was cut short or damaged; it stops nobody who means to deceive, for
no secret goes into it. Who can write below `results/` can plant a checkpoint, as they can plant a result. What they
cannot do is have their own code run by it: unpickling admits the classes of `clpapers.runs` and of torch's layers, and
besides nothing but the few functions listed here, which build tensors, arrays and generators.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import pickle
import sys
import time
import types
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch
from tqdm import tqdm

from clpapers import provenance

INTERVAL = 300  # seconds
SHARE = 20  # the time that saving takes is at most one part in so many
DIGEST = hashlib.sha256().digest_size

CLASSES = ("clpapers.runs.", "torch.nn.modules.")
ADMITTED = {
    "builtins": {"dict", "set", "slice"},
    "collections": {"OrderedDict", "defaultdict"},
    "numpy": {"dtype", "ndarray"},
    "numpy._core.multiarray": {"_reconstruct", "scalar"},
    "numpy._core.numeric": {"_frombuffer"},
    "numpy.random._pcg64": {"PCG64"},
    "numpy.random._pickle": {"__bit_generator_ctor", "__generator_ctor"},
    "numpy.random.bit_generator": {"SeedSequence", "__pyx_unpickle_SeedSequence"},
    "torch": {"Size", "device", "float32", "float64"},
    "torch._C": {"Generator"},
    "torch._utils": {"_rebuild_parameter", "_rebuild_tensor_v2"},
    "torch.optim.adam": {"Adam"},
    __name__: {"with_gradient"},
}


class Checkpoint:
    """What a job has come to, in memory and, every so often, in the file `.<stem>.checkpoint` beside its result.

    The file is a line of JSON, the pickled state of the group of seeds that was training, and the SHA-256 of both. What
    never changes in training, such as images, is left out of the state (`constants`).

    Parameters
    ----------
    result: the file that the job makes. Without it nothing is ever read nor written.
    identity: what the job is, ready for JSON. A checkpoint that differs in it, or is damaged, is removed with a line on
        stderr.
    interval: seconds from one saving to the next. It is longer where saving itself takes long (`SHARE`).

    Attributes
    ----------
    finished: seeds of a group that is through → its results, ready for JSON; None where memory did not suffice.
    seconds: `training_seconds` and `testing_seconds`, each seed → seconds.
    resumed: from where it was resumed: each time the group's `seeds` and the number of the `step` that came next.
    earlier: what the parts up to the checkpoint took (`provenance.spent`); empty where there were none.
    """

    def __init__(self, result: Path | None = None, identity: dict | None = None, interval: float = INTERVAL):
        self.path = None if result is None else result.with_name(f".{result.stem}.checkpoint")
        self.identity, self.interval = json.loads(json.dumps(identity)), interval
        self.finished: dict[tuple[int, ...], list[dict] | None] = {}
        self.seconds: dict[str, dict[int, float]] = {"training_seconds": {}, "testing_seconds": {}}
        self.resumed: list[dict] = []
        self.earlier: dict = {}
        self.waiting: tuple[tuple[int, ...], int, bytes] | None = None  # seeds of a group, its step and pickled state
        self.started = time.monotonic()
        if self.path is not None:
            self._read()
        self.next = math.inf if self.path is None else time.monotonic() + interval

    def _read(self) -> None:
        provenance.sweep(self.path)
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return
        if hashlib.sha256(memoryview(content)[:-DIGEST]).digest() != content[-DIGEST:]:
            self._discard("it is damaged")
            return
        line_end = content.index(b"\n")
        header = json.loads(content[:line_end])
        other = [key for key, value in self.identity.items() if header["identity"].get(key) != value]
        if other:
            self._discard(f"it is of another {', '.join(other)}")
            return
        self.finished = {tuple(seeds): results for seeds, results in header["finished"]}
        for key, of_seeds in header["seconds"].items():
            self.seconds[key] = {int(seed): value for seed, value in of_seeds.items()}
        self.resumed, self.earlier = header["resumed"], header["spent"]
        self.waiting = (tuple(header["seeds"]), header["step"], content[line_end + 1 : -DIGEST])

    def _discard(self, reason: str) -> None:
        print(f"{self.path}: not resumed, {reason}; training starts over", file=sys.stderr)
        self.remove()

    def resume(self, seeds: Sequence[int], constants: dict[str, object]) -> object | None:
        """The state of the group of these seeds as it was saved, with the same `constants`; None where there is none.

        A state that is refused is removed, with a line on stderr.
        """
        if self.waiting is None or self.waiting[0] != tuple(seeds):
            return None
        (_, step, pickled), self.waiting = self.waiting, None
        try:
            state = torch.load(
                io.BytesIO(pickled), weights_only=False, pickle_module=_module(Unpickler=Unpickler), constants=constants
            )
        except Exception as error:  # whatever is wrong with it, training can start over
            self._discard(_line(error))
            return None
        self.resumed.append({"seeds": list(seeds), "step": step})
        return state

    def due(self) -> bool:
        """Whether it is time to save."""
        return time.monotonic() >= self.next

    def save(self, seeds: Sequence[int], step: int, state: object, constants: dict[str, object]) -> None:
        """Write the state of the group of these seeds before a step, all that is finished, and what it took.

        Where that fails, as on a full disk, a line on stderr says so, and what was saved before stays.
        """
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
        except Exception as error:  # whatever it is, the run is worth more than its checkpoint
            tqdm.write(f"{self.path}: not written, training goes on: {_line(error)}", file=sys.stderr)
        now = time.monotonic()
        self.next = now + max(self.interval, (now - began) * (SHARE - 1))

    def remove(self) -> None:
        """Remove the file, if there is one."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def constants(**things: object) -> dict[str, object]:
    """These objects, and the tensors and arrays that they hold, by name: what a state refers to, and does not hold."""
    found = dict(things)
    for name, thing in things.items():
        held = {key: value for key, value in vars(thing).items() if isinstance(value, torch.Tensor | np.ndarray)}
        found |= {f"{name}.{key}": value for key, value in held.items()}
    return found


def _line(error: Exception) -> str:
    """The first line of what an error says."""
    return str(error).partition("\n")[0] or type(error).__name__


class _Digested:
    """A file that is written, the SHA-256 of that, and the error that came, which PyTorch turns into another."""

    def __init__(self, file: BinaryIO):
        self.file, self.digest = file, hashlib.sha256()
        self.error: OSError | None = None

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        try:
            return self.file.write(data)
        except OSError as error:
            self.error = error
            raise

    def flush(self) -> None:
        self.file.flush()


def _write(file: BinaryIO, header: dict, state: object, constants: dict[str, object]) -> None:
    """Header, pickled state and the digest of both."""
    out = _Digested(file)
    out.write(json.dumps(header).encode() + b"\n")
    try:
        torch.save(state, out, _module(Pickler=_pickler(constants)), pickle.HIGHEST_PROTOCOL)
    except RuntimeError as error:
        raise out.error or error from None
    file.write(out.digest.digest())


def _module(**classes: type) -> types.SimpleNamespace:
    """What `torch.save` and `torch.load` take for a pickle module."""
    return types.SimpleNamespace(__name__=__name__, **classes)


def _pickler(constants: dict[str, object]) -> type[pickle.Pickler]:
    """A pickler that only names the constants. It holds on to none, for a class lives until garbage is collected."""
    names = {id(thing): name for name, thing in constants.items()}

    class Pickler(pickle.Pickler):
        def reducer_override(self, thing: object):
            if id(thing) in names:
                return constant, (names[id(thing)],)
            if isinstance(thing, torch.Tensor) and thing.is_leaf and thing.grad is not None:
                made, given = thing.__reduce_ex__(pickle.HIGHEST_PROTOCOL)  # which forgets the gradient
                return made, given, thing.grad, None, None, with_gradient
            return NotImplemented

    return Pickler


class Unpickler(pickle.Unpickler):
    """Looks up the constants, and admits nothing that is not listed."""

    def __init__(self, file: BinaryIO, constants: dict[str, object], **options):
        super().__init__(file, **options)
        self.constants = constants

    def find_class(self, module: str, name: str) -> object:
        if (module, name) == (__name__, constant.__name__):
            return self.constants.__getitem__
        if name in ADMITTED.get(module, ()):
            return super().find_class(module, name)
        if module.startswith(CLASSES) and "." not in name:
            found = super().find_class(module, name)
            if isinstance(found, type) and found.__module__ == module:
                return found
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")


def constant(name: str) -> object:
    """What stands in a pickled state for a constant; to unpickle it is to look it up."""
    raise LookupError(name)


def with_gradient(tensor: torch.Tensor, gradient: torch.Tensor) -> None:
    """Give an unpickled tensor its gradient back."""
    tensor.grad = gradient
