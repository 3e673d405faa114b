"""A process that trains the jobs of a bundle one after another, without a configuration.

It reads a job a line from its standard input, as `bundle.pack` wrote it, and answers a line when the job is done.
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


class GansToTrain(NamedTuple):
    """GANs to train along one stream."""

    spec: dict
    last: bool
    dataset: str
    file: Path

    def stream(self, seed: int) -> Path:
        """The file of the seed's stream; a job has one seed."""
        return self.file


class GansOfSeeds(NamedTuple):
    """The files of GANs that its seeds draw from."""

    files: dict[int, Path]

    def file(self, seed: int) -> Path:
        """The file of a seed's."""
        return self.files[seed]


class Job(NamedTuple):
    """The command's argument, and the job's inputs."""

    subject: Any
    inputs: list[Path]


class Share(NamedTuple):
    """The part of a card that a job beside others has."""

    is_whole: bool = False


class Errand:
    """One job of a bundle, with the parts of `cli.job_context.JobContext` that training uses.

    errand: the job: `command`, `out`, `seeds`, `spec`, `classes`, `inputs`, `chosen`, `gans` (files of shared GANs, one
    a seed), `last`, `code`, `settings`, `git`. site: facts on this machine for the record.
    """

    def __init__(self, errand: dict, site: dict):
        self.errand, self.site, self.out = errand, site, Path(errand["out"])
        scale, spec, seeds = self.out.parts[1], errand["spec"], errand["seeds"]
        self.options = Options(int(site["cuda"] is not None))
        self.plan = Facts({spec["dataset"]: {"classes": range(errand["classes"])}})
        inputs = list(map(Path, errand["inputs"]))
        subject: tuple
        if errand["command"] == "gans":
            subject = GansToTrain(spec, errand["last"], spec["dataset"], inputs[1]), seeds[0]
        else:
            files = dict(zip(seeds, map(Path, errand["gans"])))
            selections = list(map(Path, errand["chosen"]))
            shared = GansOfSeeds(files) if files else None
            subject = Cell.make(scale, spec), range(seeds[0], seeds[-1] + 1), selections, shared
        self.job = Job(subject, inputs)
        self.scale = scale

    @contextlib.contextmanager
    def recording(self, **facts: object) -> Iterator[dict]:
        """The record of the job, with further facts; code, settings and commit are the packing machine's."""
        packed = {key: self.errand[key] for key in ("settings", "git", "packed_on")}
        command = f"clpapers {self.errand['command']} --out {self.out}"
        stage = self.out.parts[2]
        with provenance.recording(
            stage, [self.out], self.job.inputs, self.errand["code"], **packed, command=command, **facts
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


def run(errand: dict, site: dict) -> str:
    """Do one job; returns why it failed, in one line, or nothing."""
    does: Callable[[Errand], None] = gans if errand["command"] == "gans" else train
    try:
        does(Errand(errand, site))
    except (Refusal, OSError, ValueError, MemoryError, RuntimeError) as error:
        return provenance.escaped(f"{type(error).__name__}: {error}")[:500]
    return ""


def main() -> None:
    """Do all jobs from the standard input."""
    site = json.loads(sys.argv[1])
    for line in sys.stdin:
        began, errand = time.monotonic(), json.loads(line)
        fault = run(errand, site)
        answer = {"out": errand["out"], "fault": fault, "seconds": round(time.monotonic() - began, 3)}
        print(json.dumps(answer), flush=True)
        if fault and site["cuda"] is not None:
            return  # CUDA may be in any state; another process takes over


if __name__ == "__main__":
    main()
