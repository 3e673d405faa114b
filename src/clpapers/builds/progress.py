"""A plugin for Snakemake's logger that shows a running build as one line; all else is in its log.

At a terminal the line is updated in place; elsewhere, for example in a file, a new one is written now and then.
Warnings and errors are shown in full, with the logs of failed jobs. `clpapers.cli.snakemake` chooses the plugin.
"""

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
PREDICTED: dict[str, float] = {}  # core-seconds of a budget's jobs, by first output; the Snakefile sets them
SHORT = 2.0  # core-seconds of any other job, mostly Python's start
MEASURED = 0.05  # share of the work from which the remaining time follows the pace until then, not the prediction
SHARE, SECONDS = 0.05, 120.0  # without a terminal: a new line after this share of the work, or this time
INTERVAL = 5.0  # seconds between two checks whether to write a new line
ERRORS = (LogEvent.JOB_ERROR, LogEvent.GROUP_ERROR, LogEvent.ERROR)
MESSAGES = ("Nothing to be done", "Complete log(s)")  # beginnings of other texts to show
LONG = ("train", "gans", "features", "dataset", "weights")  # rules whose jobs are named before others


class Progress:
    """The progress of a build. jobs: how many it runs. predicted: core-seconds, by first output. now: in seconds."""

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
        """A job has failed: it no longer runs, and is not done."""
        self.running.pop(job, None)

    def _seconds(self, output: str) -> float:
        return SHORT + self.predicted.get(output, 0.0)

    def share(self, now: float) -> float:
        """The share of the predicted work that is done, from 0 to 1; a running job counts at most its prediction."""
        running = list(self.running.values())  # a copy, since another thread draws the line
        begun = sum(min(now - since, self._seconds(output)) for _, output, since in running)
        return min((self.spent + begun) / self.total, 1.0) if self.total else 1.0

    def remaining(self, now: float) -> float:
        """Seconds until the end: as predicted, on all cores; later at the pace until now."""
        done = self.share(now)
        if done >= MEASURED:
            return (now - self.began) * (1 - done) / done
        return self.total * (1 - done) / max(self.cores, 1)

    def text(self, now: float) -> str:
        """Percent, jobs, remaining time, its end, and the running jobs: trainings first, then the latest."""
        order = sorted([*self.running.values()], key=lambda job: (job[0] not in LONG, -job[2]))
        running = ", ".join(f"{rule} {subject(output)}".strip() for rule, output, _ in order)
        done = [f"{100 * self.share(now):3.0f} %", f"{self.finished:,} of {self.jobs:,} jobs"]
        remaining = self.remaining(now)
        end = time.strftime("%H:%M", time.localtime(time.time() + remaining))
        return "  ".join([*done, f"about {duration(remaining)} left, until {end}", running]).rstrip()


def subject(output: str) -> str:
    """The subject of a file in a few words: `cifar10 er seed0`, `stf/table1`; of another file, its name."""
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
        self.last_line = 0.0, 0.0  # the share and the time of the last line without a terminal

    def emit(self, record: logging.LogRecord) -> None:
        """Update the progress of jobs; print warnings and errors."""
        event, now = getattr(record, "event", None), time.monotonic()
        try:
            if event is None or event in ERRORS or record.levelno >= logging.WARNING:
                self._print(record, event)
            self._update(record, event, now)
        except Exception:  # a fault of the line must not end the build
            self.handleError(record)

    def _print(self, record: logging.LogRecord, event: LogEvent | None) -> None:
        text = self.format(record)
        severe = record.levelno >= logging.WARNING or event in ERRORS
        if text and (severe or text.startswith(MESSAGES)):
            style = "red" if record.levelno >= logging.ERROR else "yellow" if severe else ""
            self.console.print(Text(text, style=style), soft_wrap=True)

    def _update(self, record: logging.LogRecord, event: LogEvent | None, now: float) -> None:
        facts: dict = record.__dict__
        if event == LogEvent.RESOURCES_INFO:
            self.cores = facts.get("cores") or facts.get("nodes") or self.cores
        elif event == LogEvent.RUN_INFO and self.progress is None and not self.over.is_set():
            self.progress = Progress(facts["stats"]["total"], PREDICTED, self.cores, now)
            self.last_line = 0.0, now
            if self.console.is_terminal:
                self.live = Live(get_renderable=self._text, console=self.console, transient=True, refresh_per_second=2)
                self.live.start()
                self.console.show_cursor()  # a killed build would leave none
            else:
                threading.Thread(target=self._watch, daemon=True).start()
        elif self.progress is None:
            return
        elif event == LogEvent.JOB_INFO:
            output = next(iter(facts["output"]), "").partition(" ")[0]
            self.progress.start(facts["jobid"], facts["rule_name"], output, now)
        elif event == LogEvent.JOB_ERROR:
            self.progress.fail(facts["jobid"])
        elif event == LogEvent.JOB_FINISHED:
            self.progress.finish(facts["job_id"])
            self._write(now, last=self.progress.finished == self.progress.jobs)

    def _text(self) -> Text:
        text = self.progress.text(time.monotonic()) if self.progress else ""
        return Text(text, no_wrap=True, overflow="ellipsis")

    def _watch(self) -> None:
        """Without a terminal: write lines now and then while jobs run."""
        while not self.over.wait(INTERVAL):
            self._write(time.monotonic())

    def _write(self, now: float, *, last: bool = False) -> None:
        """Without a terminal: write a line, if enough has changed."""
        if self.live or self.over.is_set() or self.progress is None:
            return
        share, (before, since) = self.progress.share(now), self.last_line
        if last or share - before >= SHARE or now - since >= SECONDS:
            self.last_line = share, now
            self.console.print(Text(self.progress.text(now)), soft_wrap=True)

    def close(self) -> None:
        """End the line."""
        self.over.set()
        live, self.live = self.live, None
        if live:
            live.stop()
        super().close()


def end(handlers: Iterable[logging.Handler]) -> None:
    """End the line, if one of Snakemake's handlers shows it, so that later output does not mix with it."""
    for handler in handlers:
        if isinstance(handler, LogHandler):
            handler.close()
