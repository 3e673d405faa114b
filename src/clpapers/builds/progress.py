"""What a build shows of itself while it runs: one line, of a plugin for Snakemake's logger; all else is in its log.

At a terminal the line stays in its place; elsewhere, as in a file, a new one is written now and then. Warnings and
errors are shown in full, with the logs of the jobs that failed. `clpapers.cli.snakemake` chooses the plugin.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.text import Text
from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from clpapers.budget.costs import duration

NAME = "clpapers"  # `--logger clpapers`
PREDICTED: dict[str, float] = {}  # core-seconds of a budget's jobs, by first output; the Snakefile tells them
SHORT = 2.0  # core-seconds of any job besides, most of them Python's start (benchmarks/bench_jobs.py)
KNOWN = 0.05  # of the work, after which the time left is told by how fast that was, and no more by prediction
SHARE, SECONDS = 0.05, 120.0  # without a terminal: a new line after so much more of the work, or so long
LOOK = 5.0  # seconds, after which it is seen whether a new line is due
SHOWN = (LogEvent.JOB_ERROR, LogEvent.GROUP_ERROR, LogEvent.ERROR)
TOLD = ("Nothing to be done", "Complete log(s)")
LONG = ("train", "gans", "features", "dataset", "weights")  # rules whose jobs are named before others


class Progress:
    """How far a build is. jobs: all that it runs. predicted: core-seconds, by first output. now: in seconds."""

    def __init__(self, jobs: int, predicted: Mapping[str, float], cores: int, now: float):
        self.jobs, self.predicted, self.cores, self.began = jobs, dict(predicted), cores, now
        self.total = SHORT * jobs + sum(self.predicted.values())
        self.running: dict[int, tuple[str, str, float]] = {}  # by job: rule, first output, since when
        self.finished = 0
        self.spent = 0.0  # core-seconds that finished jobs were predicted to take

    def start(self, job: int, rule: str, output: str, now: float) -> None:
        """A job begins."""
        self.running[job] = rule, output, now

    def finish(self, job: int) -> None:
        """A job is done."""
        _, output, _ = self.running.pop(job, ("", "", 0.0))
        self.finished += 1
        self.spent += self._seconds(output)

    def fail(self, job: int) -> None:
        """A job has failed: it runs no more, and is not done."""
        self.running.pop(job, None)

    def _seconds(self, output: str) -> float:
        return SHORT + self.predicted.get(output, 0.0)

    def share(self, now: float) -> float:
        """How much of the predicted work is done, from 0 to 1; of a running job no more than was predicted."""
        running = list(self.running.values())  # at once, for the line is drawn by another thread
        begun = sum(min(now - since, self._seconds(output)) for _, output, since in running)
        return min((self.spent + begun) / self.total, 1.0) if self.total else 1.0

    def left(self, now: float) -> float:
        """Seconds until the end: as predicted, on all cores; later at the pace so far."""
        done = self.share(now)
        if done >= KNOWN:
            return (now - self.began) * (1 - done) / done
        return self.total * (1 - done) / max(self.cores, 1)

    def line(self, now: float) -> str:
        """Percent, jobs, time left, when that ends, and what runs: trainings first, then what began last."""
        order = sorted([*self.running.values()], key=lambda each: (each[0] not in LONG, -each[2]))
        runs = ", ".join(f"{rule} {subject(output)}".strip() for rule, output, _ in order)
        told = [f"{100 * self.share(now):3.0f} %", f"{self.finished:,} of {self.jobs:,} jobs"]
        left = self.left(now)
        end = time.strftime("%H:%M", time.localtime(time.time() + left))
        return "  ".join([*told, f"about {duration(left)} left, until {end}", runs]).rstrip()


def subject(output: str) -> str:
    """What a file is of, in a few words: `cifar10 er seed0`, `stf/table1`; of another file, its name."""
    path = Path(output)
    parts = path.parts[2:]
    if parts[:1] in (("runs",), ("gans",)) and len(parts) == 5:
        return f"{parts[1]} {re.sub('-[0-9a-f]{10}$', '', parts[3])} {path.stem}"
    return "/".join([*parts[1:-1], path.name.partition(".")[0]])


class LogHandler(LogHandlerBase):
    """The plugin. Snakemake hands it all that it logs, in a thread of its own."""

    writes_to_stream, writes_to_file = True, False
    has_filter, has_formatter, needs_rulegraph = False, False, False  # Snakemake's own serve

    def __post_init__(self) -> None:
        self.console = Console(stderr=True, no_color=self.common_settings.nocolor or None)
        self.progress: Progress | None = None
        self.live: Live | None = None
        self.cores, self.over = 1, threading.Event()
        self.told = 0.0, 0.0  # the share and the time of the last line without a terminal

    def emit(self, record: logging.LogRecord) -> None:
        """Take in what is news of jobs; print what must not be missed."""
        event, now = getattr(record, "event", None), time.monotonic()
        try:
            if event is None or event in SHOWN or record.levelno >= logging.WARNING:
                self._tell(record, event)
            self._note(record, event, now)
        except Exception:  # a build does not end for its line
            self.handleError(record)

    def _tell(self, record: logging.LogRecord, event: LogEvent | None) -> None:
        text = self.format(record)
        severe = record.levelno >= logging.WARNING or event in SHOWN
        if text and (severe or text.startswith(TOLD)):
            style = "red" if record.levelno >= logging.ERROR else "yellow" if severe else ""
            self.console.print(Text(text, style=style), soft_wrap=True)

    def _note(self, record: logging.LogRecord, event: LogEvent | None, now: float) -> None:
        known: dict = record.__dict__
        if event == LogEvent.RESOURCES_INFO:
            self.cores = known.get("cores") or known.get("nodes") or self.cores
        elif event == LogEvent.RUN_INFO and self.progress is None and not self.over.is_set():
            self.progress = Progress(known["stats"]["total"], PREDICTED, self.cores, now)
            self.told = 0.0, now
            if self.console.is_terminal:
                self.live = Live(get_renderable=self._line, console=self.console, transient=True, refresh_per_second=2)
                self.live.start()
                self.console.show_cursor()  # a killed build would leave none
            else:
                threading.Thread(target=self._watch, daemon=True).start()
        elif self.progress is None:
            return
        elif event == LogEvent.JOB_INFO:
            output = next(iter(known["output"]), "").partition(" ")[0]
            self.progress.start(known["jobid"], known["rule_name"], output, now)
        elif event == LogEvent.JOB_ERROR:
            self.progress.fail(known["jobid"])
        elif event == LogEvent.JOB_FINISHED:
            self.progress.finish(known["job_id"])
            self._write(now, last=self.progress.finished == self.progress.jobs)

    def _line(self) -> Text:
        text = self.progress.line(time.monotonic()) if self.progress else ""
        return Text(text, no_wrap=True, overflow="ellipsis")

    def _watch(self) -> None:
        """Without a terminal: write the lines that are due while jobs run."""
        while not self.over.wait(LOOK):
            self._write(time.monotonic())

    def _write(self, now: float, *, last: bool = False) -> None:
        """Without a terminal: a line, if there is news enough."""
        if self.live or self.over.is_set() or self.progress is None:
            return
        share, (before, since) = self.progress.share(now), self.told
        if last or share - before >= SHARE or now - since >= SECONDS:
            self.told = share, now
            self.console.print(Text(self.progress.line(now)), soft_wrap=True)

    def close(self) -> None:
        """End the line."""
        self.over.set()
        live, self.live = self.live, None
        if live:
            live.stop()
        super().close()


def end(handlers: Iterable[logging.Handler]) -> None:
    """End the line, if one of Snakemake's handlers shows it: what is said next stands alone."""
    for handler in handlers:
        if isinstance(handler, LogHandler):
            handler.close()
