"""A command's own job: its path resolved, its record, its device.

Neither this module nor its imports are in any code digest (`provenance.code_digest`): how a job is found, refused and
recorded decides none of its content. All other imports of a command are part of its jobs' code.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

from clpapers import provenance
from clpapers.archive.imported import RUN, folder_of
from clpapers.config import selected_runs, user_files
from clpapers.config.files import CONFIG, read_yaml
from clpapers.config.model import Target
from clpapers.config.paths import RESULTS
from clpapers.config.plan import Plan
from clpapers.config.settings import all_papers, check_settings
from clpapers.graph import jobs
from clpapers.graph.jobs import Job
from clpapers.provenance import Refusal
from clpapers.runs import machine
from clpapers.runs.result_schema import results

if TYPE_CHECKING:
    import torch

    from clpapers.runs.cards import Share

Taken = TypeVar("Taken", covariant=True)
Kind = TypeVar("Kind", bound=Job)


class OwnJob(Protocol[Taken]):
    """A job as training needs it: the job's own argument, `subject`, and its inputs."""

    @property
    def subject(self) -> Taken: ...
    @property
    def inputs(self) -> list[Path]: ...


class Options(Protocol):
    """Options as training needs them: whether it has a card, and whether seeds are one stack (None: the faster)."""

    @property
    def gpus(self) -> int: ...
    @property
    def stacking(self) -> int | None: ...


class DataSets(Protocol):
    """A plan as training needs it: the facts on data sets, with their `classes`."""

    @property
    def datasets(self) -> Mapping[str, Mapping]: ...


class CardShare(Protocol):
    """A share of a card as training needs it: whether it is all of the card."""

    @property
    def is_whole(self) -> bool: ...


class Training(Protocol[Taken]):
    """A job as training sees it: a `Task`, or one of a bundle (`cli.bundle_worker`)."""

    out: Path

    @property
    def options(self) -> Options: ...
    @property
    def plan(self) -> DataSets: ...
    @property
    def job(self) -> OwnJob[Taken]: ...
    def recording(self, **facts: object) -> contextlib.AbstractContextManager[dict]: ...
    def device(self) -> tuple[torch.device, CardShare | None]: ...
    def hardware(self, device: torch.device) -> dict: ...
    def measured(self, quantity: str, measure: Callable[[], float]) -> float: ...
    def out_of_memory(self, share: Any) -> Refusal: ...


CACHE: dict[tuple, Plan] | None = None  # of plans, in the server of a build, which checks that config/ is unchanged


def plan_of(path: Path, *, cuda: bool = False, choice_file: Path | None = None) -> Plan:
    """The plan of the scale a path lies in, over all papers, as the Snakefile makes it.

    choice_file: the file of the runs that the build uses; it uses all if None.
    """
    if len(path.parts) < 3 or path.parts[0] != "results":
        raise Refusal(f"{path}: not a path of the pipeline; it begins with results/<scale>/<stage>/")
    key = path.parts[1], cuda, choice_file
    plan = CACHE.get(key) if CACHE is not None else None
    if plan is None:
        choice = selected_runs.read(choice_file) if choice_file else None
        plan = Plan.load(path.parts[1], all_papers(), cuda=cuda, choice=choice)
    if CACHE is not None:
        CACHE[key] = plan
    return plan


class JobContext(Generic[Kind]):
    """The job that makes `options.out`.

    plan: `plan_of` this path. job: as `jobs.job_of` returns it.

    Raises `Refusal` or `ConfigError` for a path that the command does not make.
    """

    def __init__(self, options: argparse.Namespace):
        self.options, self.out = options, options.out
        runs = getattr(options, "runs", selected_runs.EVERY)
        self.choice_file = None if runs == selected_runs.EVERY else Path(runs)
        if self.choice_file and self.choice_file.parts[:2] != self.out.parts[:2]:
            raise Refusal(f"--runs {runs}: of another scale than {self.out}; give that scale's, or all")
        self.plan = plan_of(self.out, cuda=bool(getattr(options, "gpus", 0)), choice_file=self.choice_file)
        papers = getattr(options, "papers", None)
        if options.command == "report" and not papers:
            papers = check_settings(read_yaml(CONFIG / "config.yaml"), take=False)["papers"]
        job = jobs.job_of(self.plan, self.out, papers)
        if job.command != options.command:
            raise Refusal(f"{self.out}: clpapers {job.command} makes it, not {options.command}")
        self.job = cast(Kind, job)  # the command has one kind

    @contextlib.contextmanager
    def recording(self, **facts: object) -> Iterator[dict]:
        """The record of the job, with further facts. Raises `Refusal` for an imported run that no training wrote."""
        job = self.job
        if self.choice_file and job.depends_on_choice:
            facts["choice"] = str(self.choice_file)
        if files := user_files.rested_on(self.out, self.plan.datasets):
            facts["outside"] = files
        facts = {"settings": job.settings, **facts}
        with provenance.recording(job.stage, job.outputs, job.inputs, job.code, **facts) as record:
            for path in (path for path in job.inputs if provenance.is_imported(path) and RUN.fullmatch(str(path))):
                try:
                    results(path.read_bytes())
                except ValueError as error:
                    raise Refusal(f"{path}: {error}; {self.remedy_for_imported}") from None
            yield record

    @property
    def remedy_for_imported(self) -> str:
        """The remedy for a damaged imported run."""
        return f"delete {folder_of(self.plan.scale)} and import other crates"

    def data_folder(self, spec: dict) -> Path:
        """The parent of the user's own folder of a data set."""
        return user_files.data_folder(spec, self.options.data_folder)

    def reduced(self, target: Target) -> list[str]:
        """The target's departures from the paper's scale, a line each."""
        return jobs.reduced(self.plan, target)

    def measured(self, quantity: str, measure: Callable[[], float]) -> float:
        """A measurement of this machine, taken once."""
        return machine.measured(RESULTS / self.plan.scale, quantity, measure)

    def device(self) -> tuple[torch.device, Share | None]:
        """The device to compute on, and this process's share of a GPU's memory, if it is known."""
        import torch

        from clpapers.runs import cards

        options = self.options
        if not options.gpus:
            return torch.device("cpu"), None
        if options.gpu_mem_mb < 0:
            raise Refusal(f"--gpu-mem-mb {options.gpu_mem_mb}: give megabytes, or 0 for all of a card")
        share = cards.take(options.gpu_mem_mb)
        if not torch.cuda.is_available():
            raise Refusal("--gpus 1: PyTorch sees no GPU here; set device: cpu in config/config.yaml")
        if share and share.fraction < 1:
            torch.cuda.set_per_process_memory_fraction(share.fraction)  # so that no other job runs out of memory
        return torch.device("cuda"), share

    def hardware(self, device: torch.device) -> dict:
        """The facts on the device, for the record."""
        import torch

        return {"device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"}

    def out_of_memory(self, share: Share | None) -> Refusal:
        """The refusal of a job whose GPU's memory ran out, with the remedy."""
        if share is None or share.memory == share.card.memory:
            free = "" if share is None else f" ({share.card.free} of {share.card.memory} MB were free)"
            return Refusal(f"{self.out}: the GPU's memory ran out{free}; end what else uses it, or take another")
        more = min(4 * share.memory, share.card.memory)
        return Refusal(
            f"{self.out}: {share.memory} MB of the GPU's {share.card.memory} MB did not suffice; a retry asks for "
            f"more, and so does --set-resources {self.options.command}:gpu_mem_mb={more}"
        )
