"""The one maker beside Snakemake: it makes a file, and before it the inputs that it lacks, by their jobs' commands."""

import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from clpapers.config.plan import Plan
from clpapers.graph import jobs
from clpapers.provenance import is_imported, record_path

TRIED = ". Tried:"  # ends the line of a data set that no source serves, above a line for each source
OF_DATA, OF_DEVICE = ("dataset", "weights"), ("train", "features", "selection")  # commands with such options


class Maker:
    """Makes files of a plan in a folder.

    run: does a command of clpapers, without this word; returns why it failed, and nothing where it did not. folder: the
    project's. settings: `data_folder` and `downloads` for data and weights; by default the commands' own. commands: the
    only ones that make an input; all by default.
    """

    def __init__(
        self,
        plan: Plan,
        run: Callable[[list[str]], str],
        folder: Path = Path(),
        settings: Mapping = {},
        commands: Collection[str] | None = None,
    ) -> None:
        self.plan, self.run, self.folder, self.commands = plan, run, folder, commands
        self.folders = [
            part
            for key in ("data_folder", "downloads")
            if key in settings
            for part in (f"--{key.replace('_', '-')}", str(settings[key]))
        ]
        self.faults: dict[Path, str] = {}  # why a file cannot be made
        self.guard = threading.Lock()
        self.locks: dict[Path, threading.Lock] = {}  # by a job's first output: it runs once at a time

    def has(self, path: Path) -> bool:
        """Whether a file and its record are there, or a file of the configuration."""
        there = (self.folder / path).exists()
        return there and (path.parts[0] == "config" or (self.folder / record_path(path)).exists())

    def make(self, path: Path, *options: str) -> str:
        """Make a file if it is not there; returns why it cannot be made, if so. Threads may share a maker.

        options: further ones of its command. Many files may need one: what could not be made is not tried again.
        """
        if self.has(path) or path in self.faults:
            return self.faults.get(path, "")
        job = jobs.job_of(self.plan, path)
        with self.guard:
            lock = self.locks.setdefault(job.outputs[0], threading.Lock())
        with lock:  # jobs form no cycle, so none waits for itself
            return "" if self.has(path) else self.faults.get(path) or self._fault(path, job, options)

    def _fault(self, path: Path, job: jobs.Job, options: Sequence[str]) -> str:
        """Do a job; returns why it cannot be done, if so."""
        for each in job.inputs:
            if not self.has(each) and (is_imported(each) or not self.may(each)):
                return f"it is made of {each}, which is not there"
            if fault := self.make(each):
                return fault
        command = [job.command, "--out", str(path), *options]
        command += self.folders if job.command in OF_DATA else []
        command += ["--gpus", str(int(self.plan.cuda))] if job.command in OF_DEVICE else []
        if job.depends_on_choice and self.plan.choice is not None:
            command += ["--runs", str(self.plan.choice.write(self.plan.scale))]
        if fault := self.run(command):
            self.faults[path] = fault
        return fault

    def may(self, path: Path) -> bool:
        """Whether an input's command is one to do."""
        return self.commands is None or jobs.job_of(self.plan, path).command in self.commands


def process(
    command: list[str],
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    *,
    remarks: bool = False,
) -> str:
    """Do a command in a process of its own; returns why it failed, and nothing where it did not.

    remarks: whether to pass on what a command that did not fail says on stderr.
    """
    arguments = [sys.executable, "-m", "clpapers.cli", *command]
    done = subprocess.run(arguments, cwd=folder, env=environment, capture_output=True, text=True)
    if remarks and not done.returncode:
        sys.stderr.write(done.stderr)
    return reason(done) if done.returncode else ""


def reason(failed: subprocess.CompletedProcess[str]) -> str:
    """Why a command failed, in a line of its stderr: the last, or the one above the sources that were tried."""
    lines = failed.stderr.strip().splitlines() or [f"exit {failed.returncode}"]
    lines = [line for line in lines if line.endswith(TRIED)] or lines
    return lines[-1].removeprefix("clpapers: ").removesuffix(TRIED)
