"""`clpapers …` in forks of a process that has imported everything: each is a real process, to be limited and killed.

As a script it is that process: for each request, a line of JSON, it forks, and answers with another.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

from world import ROOT, Project, refusal


@dataclasses.dataclass
class Done:
    """How a command ended: its exit code or minus a signal, all that it said, and how long it took."""

    returncode: int
    said: str
    seconds: float

    @property
    def line(self) -> str:
        """The one line that tells what is wrong."""
        return refusal(self.said)


class Nursery:
    """The other end of the script, which runs the code of one project."""

    def __init__(self, process: subprocess.Popen):
        self.process = process

    def clpapers(self, project: Project, *arguments: str, kill_after: float | None = None, **limits: int) -> Done:
        """`clpapers …` in the folder of a project.

        kill_after: seconds after which it is killed (SIGKILL) if it still runs.
        limits: `FSIZE`, bytes of any file it writes; `AS`, bytes of memory above those that importing took.
        """
        request = {"folder": str(project.folder), "arguments": arguments, "kill_after": kill_after, "limits": limits}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return Done(**json.loads(self.process.stdout.readline()))


@contextlib.contextmanager
def nursery(project: Project) -> Iterator[Nursery]:
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


def _child(request: dict, output: int) -> None:
    import resource

    from clpapers import cli

    os.dup2(output, 1)
    os.dup2(output, 2)
    os.chdir(request["folder"])
    limits = request["limits"]
    if "FSIZE" in limits:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limits["FSIZE"],) * 2)
    if "AS" in limits:
        with open("/proc/self/statm") as memory:
            pages = int(memory.read().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + limits["AS"],) * 2)
    sys.argv = ["clpapers", *request["arguments"]]
    code = cli.main(request["arguments"])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _serve(request: dict) -> Done:
    with tempfile.TemporaryFile() as output:
        began = time.monotonic()
        child = os.fork()
        if child == 0:
            try:
                _child(request, output.fileno())
            except BaseException:
                sys.excepthook(*sys.exc_info())
            os._exit(70)
        status, limit = 0, request["kill_after"]
        while limit is not None and (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
            if time.monotonic() - began > limit:
                os.kill(child, signal.SIGKILL)
                limit = None
            time.sleep(0.001)
        status = os.waitpid(child, 0)[1] if limit is None else ended[1]
        seconds = time.monotonic() - began
        output.seek(0)
        said = output.read().decode(errors="replace")
    return Done(os.waitstatus_to_exitcode(status), said, seconds)


def _main() -> None:
    import matplotlib.pyplot  # noqa: F401
    import pandas  # noqa: F401
    import torch  # noqa: F401

    from clpapers.cli import commands, job_context  # noqa: F401
    from clpapers.graph import jobs  # noqa: F401
    from clpapers.runs import loop  # noqa: F401
    from clpapers.streams import orders  # noqa: F401
    from clpapers.targets import figure, formats  # noqa: F401

    for line in sys.stdin:
        print(json.dumps(dataclasses.asdict(_serve(json.loads(line)))), flush=True)


if __name__ == "__main__":
    _main()
