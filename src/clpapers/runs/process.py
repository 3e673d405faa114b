"""Prepares a process for training: one CPU thread, freed memory kept, results that are the same again."""

import ctypes
import os

import torch

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
