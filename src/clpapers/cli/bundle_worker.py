"""A process that trains the jobs of a bundle one after another, without a configuration.

It reads a job a line from its standard input, as `bundle.pack` wrote it. When the job is done, it answers the seconds
and the fault.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from clpapers import provenance
from clpapers.cli.gans import gans
from clpapers.cli.runs import train
from clpapers.config.gans import Gans
from clpapers.config.model import Cell
from clpapers.config.paths import RESULTS
from clpapers.provenance import Refusal
from clpapers.runs import machine

if TYPE_CHECKING:
    import torch


class Options(NamedTuple):
    """The options of a job that travelled; whether its seeds are one stack is measured where it arrives."""

    gpus: int
    stacking: int | None = None


class Facts(NamedTuple):
    """The facts on its data set."""

    datasets: dict[str, dict]


class Job(NamedTuple):
    """The command's argument, and the job's inputs."""

    subject: Any
    inputs: list[Path]


class Share(NamedTuple):
    """The part of a card that a job beside others has."""

    is_whole: bool = False


class PackedJob:
    """One job of a bundle, with the parts of `cli.job_context.JobContext` that training uses.

    packed: the job: `command`, `out`, `seeds`, `spec` of the cell, `classes`, `inputs`, `chosen` (selections), `last`,
    `code`, `settings`, `git`. site: facts on this machine for the record.
    """

    def __init__(self, packed: dict, site: dict):
        self.packed, self.site, self.out = packed, site, Path(packed["out"])
        self.scale, spec, seeds = self.out.parts[1], packed["spec"], packed["seeds"]
        self.options = Options(int(site["cuda"] is not None))
        self.plan = Facts({spec["dataset"]: {"classes": range(packed["classes"])}})
        cell = Cell.make(self.scale, spec)
        shared = Gans(self.scale, Gans.key(spec), cell, last=packed["last"]) if "gan" in spec["learner"] else None
        subject: tuple = shared, seeds[0]
        if packed["command"] == "train":
            subject = cell, range(seeds[0], seeds[-1] + 1), list(map(Path, packed["chosen"])), shared
        self.job = Job(subject, list(map(Path, packed["inputs"])))

    @contextlib.contextmanager
    def recording(self, **facts: object) -> Iterator[dict]:
        """The record of the job, with further facts; code, settings and commit are the packing machine's."""
        there = {key: self.packed[key] for key in ("settings", "git", "packed_on")}
        command = f"clpapers {self.packed['command']} --out {self.out}"
        stage = self.out.parts[2]
        with provenance.recording(
            stage, [self.out], self.job.inputs, self.packed["code"], **there, command=command, **facts
        ) as record:
            yield record

    def device(self) -> tuple[torch.device, Share | None]:
        """The device to compute on; this process has a share of a card."""
        import torch

        if not self.options.gpus:
            return torch.device("cpu"), None
        return torch.device("cuda"), Share()

    def hardware(self, device: torch.device) -> dict:
        """The facts on the device, for the record."""
        import torch

        return {"device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"} | self.site

    def measured(self, quantity: str, measure: Callable[[], float]) -> float:
        """A measurement of this machine, taken once."""
        return machine.measured(RESULTS / self.scale, quantity, measure)

    def out_of_memory(self, share: object) -> Refusal:
        """The refusal where the memory ran out, which other jobs on the card may have taken."""
        return Refusal(f"{self.out}: the card's memory ran out beside other jobs; take fewer abreast")


def run(packed: dict, site: dict) -> str:
    """Do one job; returns why it failed, in one line, or nothing."""
    does: Callable[[PackedJob], None] = gans if packed["command"] == "gans" else train
    try:
        does(PackedJob(packed, site))
    except (Refusal, OSError, ValueError, MemoryError, RuntimeError) as error:
        return provenance.escaped(f"{type(error).__name__}: {error}")[:500]
    return ""


def main() -> None:
    """Do all jobs from the standard input."""
    site = json.loads(sys.argv[1])
    for line in sys.stdin:
        began = time.monotonic()
        fault = run(json.loads(line), site)
        print(json.dumps([round(time.monotonic() - began, 3), fault]), flush=True)
        if fault and site["cuda"] is not None:
            return  # CUDA may be in any state; another process takes over


if __name__ == "__main__":
    main()
