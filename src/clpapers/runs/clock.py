"""The seconds of training and of testing."""

import contextlib
import time
from collections.abc import Iterator

import torch


class Clock:
    """A stopwatch that starts when it is made and times training and tests apart.

    A GPU works asynchronously, so the clock waits for it at each stop and restart, and nowhere else: steps are not
    slowed. `seconds`, of training, and `tested`, of tests, count up to the last stop; a restored clock resumes there.
    """

    def __init__(self, device: torch.device, seconds: float = 0.0, tested: float = 0.0):
        self.device, self.seconds, self.tested = device, seconds, tested
        self.started = self._now()

    def __getstate__(self) -> dict:
        return {"device": self.device, "seconds": self.seconds, "tested": self.tested}

    def __setstate__(self, state: dict) -> None:
        vars(self).update(state)
        self.started = self._now()

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        """Inside, time does not count."""
        self.seconds += self._now() - self.started
        yield
        self.started = self._now()

    @contextlib.contextmanager
    def testing(self) -> Iterator[None]:
        """Inside, time counts as testing."""
        with self.stopped():
            started = time.perf_counter()
            yield
        self.tested += self.started - started

    def _now(self) -> float:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return time.perf_counter()
