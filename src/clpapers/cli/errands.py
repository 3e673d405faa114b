"""Jobs that travelled: a process that trains one after another, as a bundle tells them, where no configuration is.

It reads a job a line from its standard input, as `bundle.pack` wrote it, and answers a line when the job is done.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

from clpapers import provenance
from clpapers.cli.refusal import Refusal
from clpapers.config.model import Cell
from clpapers.config.paths import RESULTS
from clpapers.runs import machine


class Errand:
    """One job, with all of `cli.task.Task` that training asks for.

    told: the job: `command`, `out`, `seeds`, `spec`, `classes`, `inputs`, `chosen`, `gans` (files of shared GANs, one a
    seed), `last`, `code`, `settings`, `git`. site: facts on this machine for the record.
    """

    def __init__(self, told: dict, site: dict):
        self.told, self.site, self.out = told, site, Path(told["out"])
        scale, spec = self.out.parts[1], told["spec"]
        self.options = SimpleNamespace(gpus=int(site["cuda"] is not None), stacking=None, command=told["command"])
        self.plan = SimpleNamespace(datasets={spec["dataset"]: {"classes": range(told["classes"])}})
        inputs = list(map(Path, told["inputs"]))
        if told["command"] == "gans":
            stream = inputs[1]
            made = SimpleNamespace(spec=spec, last=told["last"], dataset=spec["dataset"], stream=lambda _: stream)
            subject: tuple = (made, told["seeds"][0])
        else:
            files = dict(zip(told["seeds"], map(Path, told["gans"])))
            shared = SimpleNamespace(file=files.__getitem__) if files else None
            chosen = list(map(Path, told["chosen"]))
            subject = Cell.make(scale, spec), range(told["seeds"][0], told["seeds"][-1] + 1), chosen, shared
        self.job = SimpleNamespace(subject=subject, inputs=inputs)
        self.scale = scale

    @contextlib.contextmanager
    def recording(self, **facts: object) -> Iterator[dict]:
        """The record of the job, with further facts; command, code and commit come from where it was packed."""
        told = self.told
        packed = {"settings": told["settings"], "git": told["git"], "packed_on": told["packed_on"]}
        command = f"clpapers {told['command']} --out {self.out}"
        stage = self.out.parts[2]
        with provenance.recording(
            stage, [self.out], self.job.inputs, told["code"], **packed, command=command, **facts
        ) as record:
            yield record

    def device(self):
        """The device to compute on; of a card this process has a share."""
        import torch

        if not self.options.gpus:
            return torch.device("cpu"), None
        return torch.device("cuda"), SimpleNamespace(whole=False)

    def hardware(self, device) -> dict:
        """The facts on the device, for the record."""
        import torch

        return {"device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"} | self.site

    def measured(self, what: str, measure: Callable[[], float]) -> float:
        """A measurement of this machine, taken once."""
        return machine.measured(RESULTS / self.scale, what, measure)

    def too_little(self, share: object) -> Refusal:
        """That the memory ran out, which other jobs on the card may have taken."""
        return Refusal(f"{self.out}: the card's memory ran out beside other jobs; take fewer abreast")


def run(told: dict, site: dict) -> str:
    """Do one job; returns why it failed, in one line, or nothing."""
    module = importlib.import_module(f"clpapers.cli.{'gans' if told['command'] == 'gans' else 'runs'}")
    try:
        getattr(module, told["command"])(Errand(told, site))
    except (Refusal, provenance.ProvenanceError, OSError, ValueError, MemoryError, RuntimeError) as error:
        return provenance.escaped(f"{type(error).__name__}: {error}")[:500]
    return ""


def main() -> None:
    """Do the jobs that come, until no more do."""
    site = json.loads(sys.argv[1])
    for line in sys.stdin:
        began, told = time.monotonic(), json.loads(line)
        fault = run(told, site)
        answer = {"out": told["out"], "fault": fault, "seconds": round(time.monotonic() - began, 3)}
        print(json.dumps(answer), flush=True)
        if fault and site["cuda"] is not None:
            return  # CUDA may be in any state; another process takes over


if __name__ == "__main__":
    main()
