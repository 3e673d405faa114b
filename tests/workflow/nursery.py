"""`clpapers …` in forks of a process that has imported everything: each is a real process, to be limited and killed.

As a script it is that process: for each request, a line of JSON, it forks, and answers with another.
"""

import contextlib
import importlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import namedtuple

from world import ROOT, refusal

from clpapers import cli


class Done(namedtuple("Done", ("returncode", "said", "seconds"))):
    """How a command ended: its exit code or minus a signal, all that it said, and how long it took."""

    @property
    def line(self):
        """The one line that tells what is wrong."""
        return refusal(self.said)


class Nursery:
    """The other end of the script, which runs the code of one project."""

    def __init__(self, process):
        self.process = process

    def clpapers(self, project, *arguments, kill_after=None, **limits):
        """`clpapers …` in the folder of a project.

        kill_after: seconds after which it is killed (SIGKILL) if it still runs.
        limits: `FSIZE`, bytes of any file it writes; `AS`, bytes of memory above those that importing took.
        """
        print(json.dumps([str(project.folder), arguments, kill_after, limits]), file=self.process.stdin, flush=True)
        return Done(*json.loads(self.process.stdout.readline()))


@contextlib.contextmanager
def nursery(project):
    """A nursery with a project's code."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    environment = project.environment()
    environment["PYTHONPATH"] += f"{os.pathsep}{ROOT / 'tests'}"
    with subprocess.Popen([sys.executable, __file__], env=environment, **pipes) as process:
        try:
            yield Nursery(process)
        finally:
            process.stdin.close()


# --- the script ----------------------------------------------------------------------------------------------


def run(folder, arguments, limits):
    """Do a command; returns its exit code."""
    os.chdir(folder)
    with open("/proc/self/statm") as memory:
        taken = {"AS": int(memory.read().split()[0]) * resource.getpagesize(), "FSIZE": 0}
    for name, limit in limits.items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (taken[name] + limit,) * 2)
    sys.argv = ["clpapers", *arguments]
    code = cli.main(arguments)
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def serve(folder, arguments, kill_after, limits):
    """Fork for a command; returns how it ended."""
    with tempfile.TemporaryFile() as output:
        began = time.monotonic()
        if not (child := os.fork()):
            code = 70
            try:
                os.dup2(output.fileno(), 1)
                os.dup2(output.fileno(), 2)
                code = run(folder, arguments, limits)
            except BaseException:
                sys.excepthook(*sys.exc_info())
            finally:
                os._exit(code)
        while kill_after is not None and time.monotonic() - began < kill_after:
            if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                break
            time.sleep(0.001)
        else:
            if kill_after is not None:
                os.kill(child, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        seconds = time.monotonic() - began
        output.seek(0)
        return status, output.read().decode(errors="replace"), seconds


if __name__ == "__main__":
    for each in ("cli.commands", "cli.job_context", "graph.jobs", "runs.loop", "streams.orders", "targets.formats"):
        importlib.import_module(f"clpapers.{each}")
    importlib.import_module("clpapers.targets.figure")  # and so Matplotlib, as the others import torch and pandas
    for line in sys.stdin:
        print(json.dumps(serve(*json.loads(line))), flush=True)
