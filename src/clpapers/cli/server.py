"""The server of a build's jobs: it has their modules and files in memory, and forks a child for each job.

The Snakefile starts one for a build on local cores, on Linux; it ends with its Snakemake, after the last jobs. A
command of the build (server_client.py) hands over its arguments, environment, folder, umask and open files. The child
sets these and runs the same `main`. Before that, the server imports the modules of the job's code.

The server refuses a job where code, packages or config/ changed since the server began. It also refuses a job whose
process differs from the server's first state in more than the command. A refused job runs as it would without a server.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import ctypes
import functools
import gc
import importlib
import io
import os
import random
import resource
import select
import selectors
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from clpapers.cli import SERVER, commands, job_context
from clpapers.cli.server_client import HEAD, TAKEN
from clpapers.config.plan import state
from clpapers.provenance import PACKAGE, imported

REFUSED = b"-"
SLOWEST = 5.0  # seconds in which a job hands over its command
LARGEST_MESSAGE = 1 << 24  # bytes of it
OWN_VARIABLES = {  # variables of a job's environment that may differ from the server's, as no import reads them
    SERVER,
    *("TMPDIR", "TMP", "TEMP", "TEMPDIR"),
    *("PWD", "OLDPWD", "SHLVL", "_"),
    "PS1",  # which an activated environment exports, and a shell that runs a job drops
}
ONE_THREAD = dict.fromkeys(  # as Snakemake sets them for a job of one thread
    (
        "OMP_NUM_THREADS",
        "GOTO_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
        "NUMEXPR_NUM_THREADS",
    ),
    "1",
)
DIE_WITH_PARENT = 1  # of prctl


# --- the side of Snakemake -----------------------------------------------------------------------------------


def start() -> subprocess.Popen | None:
    """Start a server and announce it to this process's children, by `CLPAPERS_SERVER`; None where none may run.

    The server ends after this process. Its address is a socket in a private folder, which both remove at their end.
    """
    limited = resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY  # imports would take some memory
    if os.environ.get(SERVER) == "0" or limited or sys.platform != "linux":
        return None
    os.environ.pop(SERVER, None)  # of a build of which this one is a job
    try:
        folder = tempfile.mkdtemp(prefix="clpapers-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        address = f"{folder}/jobs"
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(address)
            listening.listen(socket.SOMAXCONN)
            ours, alive = socket.socketpair()  # ours closes with this process, as no child inherits it
            with alive:
                inherited = listening.fileno(), alive.fileno()
                server = subprocess.Popen(
                    [sys.executable, "-P", "-m", "clpapers.cli.server", *map(str, inherited), state()],
                    pass_fds=inherited,
                    env=os.environ | ONE_THREAD,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
    except OSError:  # no space in the folder of temporary files, or its name is too long for a socket
        return None
    ours.detach()  # open until this process ends
    os.environ[SERVER] = address
    return server


# --- a job's request -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Request:
    """A command with all that it inherits (`server_client.request`); files: its stdin, stdout and stderr."""

    program: str
    package: str
    umask: int
    folder: str
    arguments: list[str]
    environment: dict[str, str]
    files: list[int]

    @classmethod
    def read(cls, link: socket.socket, files: list[int]) -> Request:
        """Read a request from a link; adds its open files to `files` in any case.

        Raises `OSError` or `ValueError` for a malformed one.
        """
        link.settimeout(SLOWEST)
        message, received, *_ = socket.recv_fds(link, 1 << 16, 3)
        files += received
        size = int.from_bytes(message[:HEAD], "big")
        if len(message) < HEAD or len(files) != 3 or size > LARGEST_MESSAGE:
            raise ValueError("no request")
        while len(message) < HEAD + size:
            more = link.recv(HEAD + size - len(message))
            if not more:
                raise ValueError("no whole request")
            message += more
        program, package, umask, folder, count, *texts = map(os.fsdecode, message[HEAD:].split(b"\0")[:-1])
        arguments, pairs = texts[: int(count)], (text.partition("=") for text in texts[int(count) :])
        environment = {name: value for name, _, value in pairs}
        return cls(program, package, int(umask), folder, arguments, environment, files)


def shared(environment: dict[str, str]) -> dict[str, str]:
    """The part of an environment that a job must share with the server."""
    return {name: value for name, value in environment.items() if name not in OWN_VARIABLES}


def surroundings(process: int) -> list:
    """The conditions of a process besides its environment: user, limits, priority, cores and control groups."""
    if sys.platform != "linux":  # as `start` made sure
        raise OSError("the server of jobs runs on Linux alone")
    limits = sorted({getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")})
    return [
        os.stat(f"/proc/{process}").st_uid,
        [resource.prlimit(process, each) for each in limits],
        os.getpriority(os.PRIO_PROCESS, process),
        os.sched_getaffinity(process),
        Path(f"/proc/{process}/cgroup").read_text(),
    ]


# --- the server ----------------------------------------------------------------------------------------------


@dataclass
class Child:
    """A running job: its process, and the link to the front that waits for it."""

    number: int
    link: socket.socket


class Server:
    """Forks a child for each command that comes over the socket `listening`, until `alive` closes.

    began: the `state` before this process began.
    """

    def __init__(self, listening: socket.socket, alive: socket.socket, began: str):
        self.listening, self.alive, self.began = listening, alive, began
        self.interrupted = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for Snakemake and its jobs
        job_context.CACHE = {}
        self.environment, self.folder = shared(dict(os.environ)), os.getcwd()
        self.selector = selectors.DefaultSelector()
        self.selector.register(listening, selectors.EVENT_READ, self.accept)
        self.selector.register(alive, selectors.EVENT_READ, self.end)

    def run(self) -> None:
        """Serve until Snakemake has ended, and then the last job."""
        while self.selector.get_map():
            for key, _ in self.selector.select():
                if self.selector.get_map().get(key.fd) is key:  # no earlier callback has ended it
                    key.data()

    def end(self) -> None:
        """Accept no more jobs, and remove the private folder, as a killed Snakemake cannot."""
        shutil.rmtree(os.path.dirname(self.listening.getsockname()), ignore_errors=True)
        for each in (self.listening, self.alive):
            self.selector.unregister(each)
            each.close()

    def accept(self) -> None:
        """Take one job, or refuse it: then it runs in the requesting process."""
        files: list[int] = []
        with contextlib.ExitStack() as closing, contextlib.suppress(Exception):  # no request, or nobody waits any more
            link = closing.enter_context(self.listening.accept()[0])
            try:
                request = Request.read(link, files)
                options = self.options_of(link, request)
                if options is None:
                    link.sendall(REFUSED)
                else:
                    self.warm(options)
                    self.fork(link, request)
                    closing.pop_all()
            finally:
                close(files)

    def options_of(self, link: socket.socket, request: Request) -> argparse.Namespace | None:
        """The options of the command, if a child of this process would do the same as the requesting process.

        None also where its options are wrong, and on a GPU, whose driver survives no fork.
        """
        if sys.platform != "linux":
            return None
        process, *_ = struct.unpack("3i", link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        same = (
            request.program == sys.executable
            and request.package == os.path.dirname(__file__)
            and request.folder == self.folder
            and shared(request.environment) == self.environment
            and surroundings(process) == surroundings(os.getpid())
            and len(os.listdir("/proc/self/task")) == 1  # other threads' locks would stay locked in a child
            and state() == self.began
        )
        with contextlib.suppress(SystemExit):
            options = commands.options_of(request.arguments)
            if same and options.makes and not (hasattr(options, "gpu_mem_mb") and options.gpus):
                return options
        return None

    def warm(self, options: argparse.Namespace) -> None:
        """Import the modules of the job's code, and read the configuration that it will.

        An error here recurs in the child, which can report it.
        """
        with contextlib.suppress(Exception, SystemExit):
            made: job_context.JobContext = job_context.JobContext(options)
            made.job.code, made.job.settings  # noqa: B018
            for file, _ in sorted(imported(*made.job.sources)):
                if file.is_relative_to(PACKAGE):
                    parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
                    importlib.import_module(".".join(parts).removesuffix(".__init__"))
        gc.collect()
        gc.freeze()  # so that a child's collections leave the pages shared

    def fork(self, link: socket.socket, request: Request) -> None:
        """Start a job, and wait for its end in the selector."""
        if sys.platform != "linux":
            return
        if closed(link):
            raise OSError("its process runs the command itself")
        server, number = os.getpid(), os.fork()
        if not number:
            self.run_job(server, link, request)
        with contextlib.suppress(OSError):  # it has just been killed, and `pass_on` will notice
            link.sendall(TAKEN)
        child, watch = Child(number, link), os.pidfd_open(number)
        self.selector.register(link, selectors.EVENT_READ, functools.partial(self.pass_on, child))
        self.selector.register(watch, selectors.EVENT_READ, functools.partial(self.finish, child, watch))

    def pass_on(self, child: Child) -> None:
        """Send a job the signals that its front got; kill it if the front has ended."""
        try:
            numbers = child.link.recv(64)
        except OSError:
            numbers = b""
        for number in numbers or [signal.SIGKILL]:
            os.kill(child.number, number)
        if not numbers:
            self.selector.unregister(child.link)

    def finish(self, child: Child, watch: int) -> None:
        """Send the front its job's exit status."""
        self.selector.unregister(watch)
        if child.link in self.selector.get_map():
            self.selector.unregister(child.link)
        status = os.waitstatus_to_exitcode(os.waitpid(child.number, 0)[1])
        with contextlib.suppress(OSError):
            child.link.sendall(status.to_bytes(4, "big", signed=True))
        child.link.close()
        os.close(watch)

    # the child

    def run_job(self, server: int, link: socket.socket, request: Request) -> NoReturn:
        """Do a job in this process, a child of the server's, and end the process."""
        status = 70
        try:
            self.set_up(server, link, request)
            status = run_command(request.arguments)
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(status)

    def set_up(self, server: int, link: socket.socket, request: Request) -> None:
        """Set up this process like a new process of the command."""
        ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)
        if os.getppid() != server:  # it ended before that
            os.kill(os.getpid(), signal.SIGKILL)
        for key in list(self.selector.get_map().values()):  # links of other jobs, which must close with the server
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
            else:
                os.close(key.fd)
        self.selector.close()
        link.close()
        for number, name in enumerate(("stdin", "stdout", "stderr")):
            os.dup2(request.files[number], number)
            setattr(sys, name, opened(number, getattr(sys, name)))
        close(request.files)
        signal.signal(signal.SIGINT, self.interrupted)
        os.umask(request.umask)
        os.environ.clear()
        os.environ.update(request.environment)
        sys.argv[:] = ["clpapers", *request.arguments]
        tempfile.tempdir = None
        random.seed()
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed()
        atexit._clear()  # functions that imports registered for the end of the server


def opened(number: int, before: io.TextIOWrapper) -> io.TextIOWrapper:
    """A standard stream like the interpreter's at its start, with the encoding of the stream `before`."""
    raw = open(number, "wb" if number else "rb", closefd=False)  # noqa: SIM115
    by_line = number == 2 or os.isatty(number)
    through = before.write_through
    return io.TextIOWrapper(raw, before.encoding, before.errors, line_buffering=by_line, write_through=through)


def run_command(arguments: list[str]) -> int:
    """Run a command to the end of its process; returns the exit status that the interpreter would have."""
    status: int | str | None
    try:
        status = commands.main(arguments)
    except SystemExit as end:
        status = end.code
    except BaseException as error:
        sys.excepthook(*sys.exc_info())
        status = 1
        if isinstance(error, KeyboardInterrupt):
            sys.stderr.flush()
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
    atexit._run_exitfuncs()
    if isinstance(status, str):
        print(status, file=sys.stderr)
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        return 120
    return 1 if isinstance(status, str) else (status or 0) & 0xFF


def closed(link: socket.socket) -> bool:
    """Whether the other end of a link, which sends nothing before its job is taken, is closed."""
    ready, *_ = select.select([link], [], [], 0)
    return bool(ready)


def close(files: list[int]) -> None:
    """Close files, and forget their numbers."""
    while files:
        os.close(files.pop())


def main() -> None:
    """Serve on the inherited sockets; the command line has their numbers and the `state` before this process."""
    listening, alive = (socket.socket(fileno=int(number)) for number in sys.argv[1:3])
    Server(listening, alive, sys.argv[3]).run()


if __name__ == "__main__":
    main()
