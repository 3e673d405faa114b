"""The line of progress: what it counts, what it shows at a terminal and in a file, and what is shown beside it."""

import contextlib
import logging
import os
import pty
import re
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from rich.console import Console
from snakemake.logging import DefaultFormatter
from snakemake_interface_logger_plugins.common import LogEvent
from world import Project

from clpapers.builds import progress
from clpapers.builds.progress import SHORT, LogHandler, Progress, subject

RUN = "results/paper/runs/cifar10/stf-0.057735/er-b6ecdc1dcc/seed0.json"


def test_work_is_weighed_by_what_jobs_are_predicted_to_take():
    """Two jobs of SHORT and one that takes 96 s more: 102 core-seconds in all, of which 2 and then all are done."""
    line = Progress(3, {RUN: 96.0}, cores=2, now=0)
    assert line.total == 3 * SHORT + 96 == 102
    assert line.remaining(0) == 51  # on two cores
    line.start(1, "table", "results/paper/targets/stf/table1.csv", 0)
    line.finish(1)
    line.start(2, "train", RUN, 10)
    assert line.share(10) == pytest.approx(2 / 102)
    assert line.share(59) == pytest.approx(51 / 102)
    assert line.remaining(59) == pytest.approx(59)  # half of it took so long
    assert line.share(10_000) == pytest.approx(100 / 102)  # a run takes longer than predicted, and is not done
    line.finish(2)
    line.finish(3)
    assert (line.share(10_000), line.remaining(10_000), line.finished) == (1, 0, 3)


def test_the_line_names_trainings_first_and_when_all_is_done():
    """1,200 jobs of SHORT and a run of two hours are 9,600 s on one core, of which one has gone by."""

    def end():
        return time.strftime("%H:%M", time.localtime(time.time() + 9599))

    line = Progress(1200, {RUN: 7200.0}, cores=1, now=0)
    line.start(1, "train", RUN, 0)
    line.start(2, "table", "results/paper/targets/stf/table1.md", 1)
    first, said, last = end(), line.text(1), end()
    told = "  0 %  0 of 1,200 jobs  about 2.7 h left, until {}  train cifar10 er seed0, table stf/table1"
    assert said in (told.format(first), told.format(last))
    line.fail(1)
    assert line.text(1).endswith("  table stf/table1")


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (RUN, "cifar10 er seed0"),
        ("results/paper/gans/mnist/split-5/gan-0123456789/seed3.npz", "mnist gan seed3"),
        ("results/paper/datasets/mnist.npz", "mnist"),
        ("results/paper/streams/mnist/split-5/seed1.npz", "mnist/split-5/seed1"),
        ("results/paper/targets/rules/table1.reported.csv", "rules/table1"),
        ("", ""),
    ],
)
def test_what_a_file_is_of(output, said):
    assert subject(output) == said


@pytest.fixture
def logged(tmp_path, monkeypatch):
    """A handler that writes to no terminal: a function that hands it records, and one for what it wrote."""
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(time, "monotonic", lambda: clock.now)
    handler = LogHandler(SimpleNamespace(nocolor=True), None)
    handler.setFormatter(DefaultFormatter())
    out = (tmp_path / "said").open("w+")
    handler.console = Console(file=out)

    def log(event=None, text="", level=logging.INFO, after=0.0, **more):
        clock.now += after
        handler.emit(logging.makeLogRecord({"msg": text, "levelno": level, "event": event, **more}))

    yield log, lambda: (out.flush(), (tmp_path / "said").read_text())[1]
    handler.close()
    out.close()


def job(number):
    facts = {"input": [], "output": [RUN.replace("seed0", f"seed{number}")], "log": [f"logs/{number}.log"]}
    return {"jobid": number, "rule_name": "train", "rule_msg": None, "conda_env": None, "shellcmd": "false"} | facts


def test_a_file_gets_a_line_now_and_then(logged):
    log, said = logged
    log(LogEvent.RUN_INFO, stats={"train": 100, "total": 100})
    for number in range(100):
        log(LogEvent.JOB_INFO, **job(number), after=1)
        log(LogEvent.JOB_FINISHED, job_id=number, after=1)
    lines = said().splitlines()
    assert 16 < len(lines) <= 20  # a twentieth each, and what rounding lets pass
    assert lines[0].startswith("  5 %  5 of 100 jobs  about 3 min left")
    assert lines[-1].startswith("100 %  100 of 100 jobs  about 0.0 s left, until ")


@pytest.mark.parametrize(("predicted", "before", "due"), [(1000.0, 49, 51), (10_000.0, 119, 120)])
def test_and_one_while_a_long_job_runs(logged, monkeypatch, predicted, before, due):
    """Each two minutes or each twentieth: 5 % of some 1,000 s are done before two minutes are over, of 10,000 not."""
    log, said = logged
    monkeypatch.setattr(progress, "INTERVAL", 0.001)
    monkeypatch.setitem(progress.PREDICTED, RUN, predicted)
    log(LogEvent.RUN_INFO, stats={"total": 1})
    log(LogEvent.JOB_INFO, **job(0))
    log(after=before)
    time.sleep(0.05)
    assert said() == ""
    log(after=due - before)
    for _ in range(1000):  # of the time that goes on while the handler's clock stands
        if said():
            break
        time.sleep(0.01)
    assert "  train cifar10 er seed0" in said()


def test_errors_are_shown_in_full_and_chatter_is_not(logged):
    log, said = logged
    log(text="Using shell: /usr/bin/bash")
    log(LogEvent.RUN_INFO, text="Job stats: …", stats={"total": 2})
    log(LogEvent.JOB_INFO, **job(0))
    log(LogEvent.SHELLCMD, text="Shell command: false", shellcmd="false")
    assert said() == ""
    log(LogEvent.JOB_ERROR, text="Error in rule train", level=logging.ERROR, aux={}, **job(0))
    log(text="a warning [not markup]", level=logging.WARNING)
    log(text="Nothing to be done (all requested files are present and up to date).")
    assert "Error in rule train:" in said()
    assert "log: logs/0.log (check log file(s) for error details)" in said()
    assert "a warning [not markup]" in said()
    assert "Nothing to be done" in said()


@pytest.mark.workflow
def test_a_build_at_a_terminal_shows_one_line_its_errors_and_its_page(tmp_path):
    """One of the two methods fails: said in full; then, mended, the page at the end stands alone."""
    project = Project.create(tmp_path / "project")
    er = "src/clpapers/runs/learners/er.py"
    project.edit(er, "self.memory.write(t)", "raise OSError('no luck')")

    def build():
        ours, theirs = pty.openpty()
        command = [sys.executable, "-c", "from clpapers.cli.snakemake import main; main()", "all", "--cores", "2"]
        environment = project.environment() | {"TERM": "xterm", "COLUMNS": "100", "LINES": "30"}
        said, ends = [], {"stdin": theirs, "stdout": theirs, "stderr": theirs}
        with subprocess.Popen(command, cwd=project.folder, env=environment, **ends) as process:
            os.close(theirs)
            with contextlib.suppress(OSError):  # the other end is closed
                while True:
                    said.append(os.read(ours, 65536))
        os.close(ours)
        return process.returncode, b"".join(said).decode()

    code, said = build()
    assert code == 1
    assert re.search(r"\d+ %  \d+ of \d+ jobs  about .* left, until \d\d:\d\d  ", said)
    assert "Error in rule train:" in said
    assert re.search(r"log: results/mini/logs/runs/mnist/\S+/er-\w+/seed\d.log", said)
    project.edit(er, "raise OSError('no luck')", "self.memory.write(t)")
    code, said = build()
    assert code == 0
    assert "Finished jobid" not in said
    log = max((project.folder / ".snakemake/log").iterdir())
    assert "Finished jobid" in log.read_text()  # all of it
    last = re.split(r"\x1b\[2K", said)[-1]
    assert not re.search(r"\d+ %  \d+ of \d+ jobs", last)
    assert "rendered: 3 of 3 tables and figures" in last
    assert f"Complete log(s): {log}" in last.replace("\r\n", "")
