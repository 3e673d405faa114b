"""The machine of a process: what Linux tells in its own way, and what serves elsewhere."""

import contextlib
import ctypes
import os
import platform
import resource
import signal
import sys
from pathlib import Path

PR_SET_PDEATHSIG = 1  # of Linux


def cores() -> int:
    """The cores that this process may use; all of them where the system binds processes to none, as on macOS."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def processor() -> str:
    """The processor's name, as Linux or else Python tells it; it may be empty."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            lines = Path("/proc/cpuinfo").read_text().splitlines()
            return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "")
        return ""
    return platform.processor()


def end_with_parent() -> None:
    """Have this process killed when the one that began it ends, however that ends; Linux alone does it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def peak_memory() -> int:
    """The most memory that this process held, in bytes; `getrusage` counts kibibytes on Linux and bytes on macOS."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
