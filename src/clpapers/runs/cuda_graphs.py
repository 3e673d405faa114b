"""Steps captured as graphs: a GPU replays all kernels of a step at one call, where a host launches each.

A `static` learner takes steps of few kinds (`Learner.graph_key`). All steps of a kind are one program on the same
memory, if what differs from step to step is read from tables, at a row whose number lies on the device. So the first
steps of a kind are taken as any other, the next one is captured, and it and later ones are replays. Bits are the same.
"""

from __future__ import annotations

import functools
import gc
import os
import sys
from collections.abc import Callable
from typing import Protocol

import numpy as np
import torch
from tqdm import tqdm

from clpapers.runs import contracts
from clpapers.runs.device_step import DeviceStep
from clpapers.runs.learner import Learner, Observed
from clpapers.runs.nets.stacked import StackedDropout

SWITCH = "CLPAPERS_GRAPHS"  # in the environment: `0` for steps without graphs
WARM = 3  # steps of a kind before it is captured, in which libraries choose their kernels


class Recorder(Protocol):
    """Captures a program and replays it."""

    def capture(self, program: Callable[[], Observed]) -> Observed:
        """Capture a program, whose kernels do not run; returns its tensors, which each replay fills."""

    def replay(self) -> None:
        """Run the kernels."""


class Graph:
    """A `Recorder` on a GPU: a CUDA graph. Graphs of one pool share the memory that they need within a step."""

    def __init__(self, pool: torch.cuda._POOL_HANDLE):
        self.graph, self.pool = torch.cuda.CUDAGraph(), pool
        self.replay = self.graph.replay

    def capture(self, program: Callable[[], Observed]) -> Observed:
        torch.cuda.synchronize()
        torch.cuda.empty_cache()  # what steps without a graph needed
        collecting = gc.isenabled()
        gc.disable()  # a tensor or graph that is collected would disturb the capture
        try:
            self.graph.capture_begin(pool=self.pool, capture_error_mode="thread_local")
            try:
                return program()
            finally:
                self.graph.capture_end()
        finally:
            if collecting:
                gc.enable()


def recorders(device: torch.device) -> Callable[[], Callable[[], Recorder]] | None:
    """Makes pools for a device; a pool makes recorders. None where steps are not captured.

    A pool ends with its last graph, and none can be captured in it afterwards.
    """
    if device.type != "cuda" or os.environ.get(SWITCH) == "0":
        return None

    def pool() -> Callable[[], Recorder]:
        return functools.partial(Graph, torch.cuda.graph_pool_handle())

    return pool


def drops_out(net: torch.nn.Module) -> bool:
    """Whether a net draws masks as it is trained, with generators that a graph would have to know."""
    return any(isinstance(layer, StackedDropout) for layer in net.modules())


def observe(learner: Learner, t: int) -> Observed:
    """Take step t of a learner, kernel by kernel; its batch is gathered where it is used."""
    if not learner.uses_batch:
        return learner.observe(t, None, None)  # type: ignore[arg-type]  # which such a learner takes
    items, labels = (learner.setting.columns(table, t) for table in (learner.setting.items, learner.setting.labels))
    x = learner.setting.images(items)
    if not learner.outside:
        return learner.observe(t, x, labels)
    observed = learner.observe(t, x, labels.clone())
    shape = (*labels.shape, learner.classes)
    return Observed(*contracts.checked_step(observed, len(labels), shape, type(learner).observe))


class Steps:
    """Takes a learner's steps, as graphs where it is `static`.

    Parameters
    ----------
    learner: the learner.
    changes: bool [T], whether the task changes before a step; then everything is captured again.
    pools: as of `recorders`. With them, a static learner reads tables by numbers on the device even where a step is not
        captured, so that a capture finds all kernels loaded.
    """

    def __init__(self, learner: Learner, changes: np.ndarray, pools: Callable[[], Callable[[], Recorder]] | None):
        self.learner, self.setting = learner, learner.setting
        self.pools, self.record = pools, None
        if pools is not None and learner.static and not drops_out(learner.net):
            self.record = pools()
        ends, device = self.setting.ends, self.setting.items.device
        sizes = np.diff(ends, prepend=0)
        self.sizes, self.segments = sizes.tolist(), np.cumsum(changes).tolist()
        self.segment = 0
        self.taken: dict[object, int] = {}  # steps so far, by kind
        self.graphs: dict[object, Captured] = {}
        if self.record is not None:
            self.at = torch.zeros(1, dtype=torch.int64, device=device)
            self.starts = torch.from_numpy(ends - sizes).to(device)
            self.offsets = torch.arange(sizes.max(), device=device)

    def __call__(self, t: int) -> Observed:
        """Take step t, as `Learner.observe` does."""
        if self.record is None:
            return observe(self.learner, t)
        self.at.fill_(t)
        kind = self.learner.graph_key(t)
        if kind is None:
            return observe(self.learner, self.on_device(t))
        if self.segments[t] != self.segment:
            self.forget()
            self.segment = self.segments[t]
        kind = self.sizes[t], kind
        graph = self.graphs.get(kind)
        if graph is None:
            self.taken[kind] = taken = self.taken.get(kind, 0) + 1
            if taken <= WARM or (graph := self.captured(t)) is None:
                return observe(self.learner, self.on_device(t))
            self.graphs[kind] = graph
        return graph.replay(t)

    def forget(self) -> None:
        """Forget all graphs."""
        if self.at.is_cuda:
            torch.cuda.synchronize()  # the last of them may be running
        self.taken.clear()
        self.graphs.clear()
        assert self.pools is not None
        self.record = self.pools()

    def on_device(self, t: int) -> DeviceStep:
        """Step t, whose number on the device is `at`."""
        step = DeviceStep(t)
        step.at = self.at
        step.positions = self.starts.index_select(0, self.at) + self.offsets[: self.sizes[t]]
        return step

    def captured(self, t: int) -> Captured | None:
        """The graph of step t's kind. Where it cannot be captured: None, and nothing will be, for this learner."""
        before = dict(vars(self.learner))
        assert self.record is not None
        try:
            return Captured(self.learner, self.record(), lambda: observe(self.learner, self.on_device(t)))
        except Exception as error:  # of any kind: the run is worth more than its speed
            vars(self.learner).clear()
            vars(self.learner).update(before)
            for parameter in self.learner.parameters:
                parameter.grad = None
            self.forget()
            self.record = None
            reason = str(error).partition("\n")[0] or type(error).__name__
            tqdm.write(f"step {t} is not captured, training goes on without graphs: {reason}", file=sys.stderr)
            return None


class Captured:
    """A captured step of a learner.

    Attributes that a step sets, and no later step reads, are set at each replay too.
    """

    def __init__(self, learner: Learner, recorder: Recorder, program: Callable[[], Observed]):
        self.learner, self.recorder = learner, recorder
        before = dict(vars(learner))
        observed = recorder.capture(program)
        self.observed = type(observed)(*(None if each is None else each.detach() for each in observed))
        self.set = {name: value for name, value in vars(learner).items() if before.get(name) is not value}

    def replay(self, t: int) -> Observed:
        """Take step t, as `Learner.observe` does."""
        self.recorder.replay()
        self.learner.mark_taken(t)
        vars(self.learner).update(self.set)
        return type(self.observed)(*(None if each is None else each.clone() for each in self.observed))
