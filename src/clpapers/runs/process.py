"""Prepares a process for training: one CPU thread, freed memory kept, results that are the same again.

And does work in a process apart, which knows nothing of what happens here.
"""

import ctypes
import multiprocessing
import os
import pickle
from collections.abc import Callable
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Generic, Self, TypeVar

import torch

from clpapers.machine import end_with_parent

T = TypeVar("T")

# mallopt's M_TRIM_THRESHOLD and M_MMAP_THRESHOLD at their highest: memory that a step frees is there for the next one.
KEPT = {-1: 2**31 - 1, -3: 1 << 25}


def prepare(device: torch.device, precision: str) -> None:
    """Take one CPU thread, as there are as many jobs as cores, keep freed memory, and make results reproducible."""
    torch.set_num_threads(1)
    keep_memory()
    if device.type == "cuda":
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # deterministic algorithms ask for it
        if torch.cuda.current_stream(device) == torch.cuda.default_stream(device):
            torch.cuda.set_stream(torch.cuda.Stream(device))  # steps on the default one cannot be captured
        torch.use_deterministic_algorithms(True)
        # A third of a step's launches; no learner reads such memory.
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]  # in no stub
        torch.backends.cudnn.benchmark = False
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"


def sent(values: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Values of the host on a device, which has not to come to rest for the copy."""
    return values.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else values


def keep_memory() -> None:
    """Make the C library keep freed memory: handing gradients' memory back and forth took a fifth of an MLP's steps.

    Does nothing without glibc.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for option, value in KEPT.items():
            mallopt(option, value)


class Apart(Generic[T]):
    """Work in a process of its own. It is forked now, begins when told to, and ends with the `with` block at last."""

    def __init__(self, work: Callable[[], T]):
        fork = multiprocessing.get_context("fork")
        self.link, theirs = fork.Pipe()
        self.process = fork.Process(target=_apart, args=(work, theirs))
        self.process.start()
        theirs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.link.close()
        self.process.kill()
        self.process.join()

    def begin(self) -> None:
        """Let the work begin."""
        self.link.send(None)

    def result(self, seconds: float | None = None) -> T:
        """The result of work that has begun, or its error; `TimeoutError` where it takes longer than some seconds."""
        if not self.link.poll(seconds):
            raise TimeoutError(f"it takes longer than {seconds:.0f} s")
        try:
            done, found = self.link.recv()
        except EOFError:
            raise RuntimeError("its process ended without a word") from None
        if not done:
            raise found
        return found


def _apart(work: Callable[[], T], link: Connection) -> None:
    end_with_parent()
    try:
        link.recv()
    except EOFError:  # nobody waits
        return
    torch.set_num_threads(1)  # the other process's threads were not forked, and waiting for them would never end
    try:
        answer: tuple[bool, object] = True, work()
    except Exception as error:  # which the other process raises
        answer = False, error
    try:
        link.send(answer)
    except (pickle.PicklingError, TypeError, AttributeError):  # an error of a kind that cannot be sent
        link.send((False, RuntimeError(f"{type(answer[1]).__name__}: {answer[1]}")))
