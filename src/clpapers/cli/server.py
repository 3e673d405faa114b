"""The server of a build's jobs: has imported what they import and read what they read, and forks a child a job.

The Snakefile starts one for a build on local cores, on Linux; it ends with its Snakemake, its last jobs done. A command
of the build (front.py) hands over its arguments, environment, folder, umask and open files; the child sets these and
runs the same `main`. The server refuses a job, which then runs as it would without one, where code, packages or config/
changed since the server began, or where the job's process differs from the server's, as it began, in more than the
command. The server learns from jobs which modules they import.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import ctypes
import functools
import gc
import hashlib
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
import sysconfig
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from clpapers.cli import SERVER, commands, task
from clpapers.cli.front import HEAD, TAKEN
from clpapers.config import choice
from clpapers.config.files import CONFIG
from clpapers.config.schemas import SCHEMAS
from clpapers.provenance import PACKAGE

REFUSED = b"-"
SLOWEST = 5.0  # seconds in which a job hands over its command
LARGEST = 1 << 24  # bytes of it
OWN = {  # of a job's environment: what may differ from the server's, for no import looks at it
    SERVER,
    choice.VARIABLE,
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
    """Start a server and tell this process's children of it, by `CLPAPERS_SERVER`; None where there is to be none.

    The server ends when this process has. Its address is a socket in a private folder, which both remove at their end.
    """
    limited = resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY  # of which imports take some
    if os.environ.get(SERVER) == "0" or limited or not hasattr(os, "pidfd_open"):
        return None
    os.environ.pop(SERVER, None)  # of a build of which this one is a job
    try:
        folder = tempfile.mkdtemp(prefix="clpapers-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        address = f"{folder}/jobs"
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(address)
            listening.listen(socket.SOMAXCONN)
            ours, alive = socket.socketpair()  # ours ends with this process, for it is in no child
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
    except OSError:  # no room in the folder of temporary files, or its name is too long for a socket
        return None
    ours.detach()  # open until this process ends
    os.environ[SERVER] = address
    return server


# --- what a job hands over -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Request:
    """A command with all that it inherits, as `front.told` gives it; files: its stdin, stdout and stderr."""

    program: str
    package: str
    umask: int
    folder: str
    arguments: list[str]
    environment: dict[str, str]
    files: list[int]

    @classmethod
    def read(cls, link: socket.socket, files: list[int]) -> Request:
        """The request that comes over a link; adds its open files to `files`, whatever happens.

        Raises `OSError` or `ValueError` for a malformed one.
        """
        link.settimeout(SLOWEST)
        message, received, *_ = socket.recv_fds(link, 1 << 16, 3)
        files += received
        size = int.from_bytes(message[:HEAD], "big")
        if len(message) < HEAD or len(files) != 3 or size > LARGEST:
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


def kept(environment: dict[str, str]) -> dict[str, str]:
    """The part of an environment that a job must share with the server."""
    return {name: value for name, value in environment.items() if name not in OWN}


def surroundings(process: int) -> list:
    """The conditions of a process besides its environment: user, limits, priority, cores and control groups."""
    limits = sorted({getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")})
    return [
        os.stat(f"/proc/{process}").st_uid,
        [resource.prlimit(process, each) for each in limits],
        os.getpriority(os.PRIO_PROCESS, process),
        os.sched_getaffinity(process),
        Path(f"/proc/{process}/cgroup").read_text(),
    ]


def state() -> str:
    """Digest of all that must not change under a server: code and folders of packages by date, config/ by content.

    Raises `OSError` where something cannot be read.
    """
    found = hashlib.sha256()
    packages = (Path(sysconfig.get_path(name)) for name in ("purelib", "platlib"))
    for path in (*sorted(PACKAGE.rglob("*.py")), *packages):
        dated = path.stat()
        found.update(f"{path}\0{dated.st_mtime_ns} {dated.st_size} {dated.st_ino}\0".encode())
    for path in sorted(path for folder in (CONFIG, SCHEMAS) for path in folder.rglob("*") if path.is_file()):
        content = path.read_bytes()
        found.update(f"{path}\0{len(content)}\0".encode() + content)
    return found.hexdigest()


# --- the server ----------------------------------------------------------------------------------------------


@dataclass
class Child:
    """A job at work: its process, the front that waits for it, and the file in which it tells what it imported."""

    number: int
    command: str
    link: socket.socket
    learnt: int


class Server:
    """Forks a child for each command that comes over the socket `listening`, until `alive` says that none will.

    began: the `state` before this process did.
    """

    def __init__(self, listening: socket.socket, alive: socket.socket, began: str):
        self.listening, self.alive, self.began = listening, alive, began
        self.interrupted = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for Snakemake and its jobs
        task.HELD = {}
        self.environment, self.folder = kept(dict(os.environ)), os.getcwd()
        self.imports: dict[str, list[str]] = {}  # by command: what its last job had to import
        self.selector = selectors.DefaultSelector()
        self.selector.register(listening, selectors.EVENT_READ, self.accept)
        self.selector.register(alive, selectors.EVENT_READ, self.end)

    def run(self) -> None:
        """Until Snakemake has ended, and then the last job."""
        while self.selector.get_map():
            for key, _ in self.selector.select():
                if self.selector.get_map().get(key.fd) is key:  # which none before it has ended
                    key.data()

    def end(self) -> None:
        """Take no more jobs, nor leave the private folder to a Snakemake that was killed."""
        shutil.rmtree(os.path.dirname(self.listening.getsockname()), ignore_errors=True)
        for each in (self.listening, self.alive):
            self.selector.unregister(each)
            each.close()

    def accept(self) -> None:
        """Take one job, or refuse it: then it runs in the process that asks."""
        files: list[int] = []
        with contextlib.ExitStack() as undone, contextlib.suppress(Exception):  # no request, or nobody waits any more
            link = undone.enter_context(self.listening.accept()[0])
            try:
                request = Request.read(link, files)
                options = self.taken(link, request)
                if options is None:
                    link.sendall(REFUSED)
                else:
                    self.warm(options, request)
                    self.fork(link, request)
                    undone.pop_all()
            finally:
                close(files)

    def taken(self, link: socket.socket, request: Request) -> argparse.Namespace | None:
        """The options of the command, if a child of this process does just what the process that asks would do.

        Not where its options are wrong, nor on a GPU, whose driver survives no fork.
        """
        process, *_ = struct.unpack("3i", link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        alike = (
            request.program == sys.executable
            and request.package == os.path.dirname(__file__)
            and request.folder == self.folder
            and kept(request.environment) == self.environment
            and surroundings(process) == surroundings(os.getpid())
            and len(os.listdir("/proc/self/task")) == 1  # other threads' locks would stay locked in a child
            and state() == self.began
        )
        with contextlib.suppress(SystemExit):
            options = commands.options_of(request.arguments)
            if alike and options.makes and not (hasattr(options, "gpu_mem_mb") and options.gpus):
                return options
        return None

    def warm(self, options: argparse.Namespace, request: Request) -> None:
        """Import the modules of the command's last job, and read the code and configuration that this one will.

        An error here recurs in the child, which can report it.
        """
        for name in self.imports.pop(options.command, ()):
            with contextlib.suppress(Exception):
                importlib.import_module(name)
        os.environ.pop(choice.VARIABLE, None)
        if choice.VARIABLE in request.environment:
            os.environ[choice.VARIABLE] = request.environment[choice.VARIABLE]
        with contextlib.suppress(Exception, SystemExit):
            job = task.Task(options).job
            job.code, job.settings  # noqa: B018
        gc.collect()
        gc.freeze()  # so that a child's collections leave the pages shared

    def fork(self, link: socket.socket, request: Request) -> None:
        """Start a job, and look out for its end."""
        if left(link):
            raise OSError("its process runs the command itself")
        learnt, server = os.memfd_create("imports"), os.getpid()
        try:
            number = os.fork()
        except OSError:
            os.close(learnt)
            raise
        if not number:
            self.be(server, link, request, learnt)
        with contextlib.suppress(OSError):  # it has just been killed, which `pass_on` will be told of
            link.sendall(TAKEN)
        child, watch = Child(number, request.arguments[0], link, learnt), os.pidfd_open(number)
        self.selector.register(link, selectors.EVENT_READ, functools.partial(self.pass_on, child))
        self.selector.register(watch, selectors.EVENT_READ, functools.partial(self.tell, child, watch))

    def pass_on(self, child: Child) -> None:
        """Give a job the signals that its front got; kill it if that is no more."""
        try:
            numbers = child.link.recv(64)
        except OSError:
            numbers = b""
        for number in numbers or [signal.SIGKILL]:
            os.kill(child.number, number)
        if not numbers:
            self.selector.unregister(child.link)

    def tell(self, child: Child, watch: int) -> None:
        """Tell the front how its job ended, and learn what it imported."""
        self.selector.unregister(watch)
        if child.link in self.selector.get_map():
            self.selector.unregister(child.link)
        status = os.waitstatus_to_exitcode(os.waitpid(child.number, 0)[1])
        with contextlib.suppress(OSError):
            child.link.sendall(status.to_bytes(4, "big", signed=True))
        child.link.close()
        with open(child.learnt, "rb") as file:
            file.seek(0)
            self.imports[child.command] = file.read().decode().split()
        os.close(watch)

    # the child

    def be(self, server: int, link: socket.socket, request: Request, learnt: int) -> NoReturn:
        """Do a job in this process, a child of the server's, and end it."""
        status = 70
        try:
            before = set(sys.modules)
            self.become(server, link, request)
            status = done(request.arguments)
            tell_imports(before, learnt)
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(status)

    def become(self, server: int, link: socket.socket, request: Request) -> None:
        """Set up this process as one of its own would have begun."""
        ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)
        if os.getppid() != server:  # it ended before that
            os.kill(os.getpid(), signal.SIGKILL)
        for key in list(self.selector.get_map().values()):  # other jobs', whose fronts see by them that the server ends
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
        atexit._clear()  # what imports left for the end of the server


def opened(number: int, before: io.TextIOWrapper) -> io.TextIOWrapper:
    """A standard stream as the interpreter begins with it, of the encoding of the one `before`."""
    raw = open(number, "wb" if number else "rb", closefd=False)  # noqa: SIM115
    by_line = number == 2 or os.isatty(number)
    through = before.write_through
    return io.TextIOWrapper(raw, before.encoding, before.errors, line_buffering=by_line, write_through=through)


def done(arguments: list[str]) -> int:
    """Run a command to the end of its process; the exit status, as the interpreter has it."""
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


def tell_imports(before: set[str], file: int) -> None:
    """Write the names of modules that were imported since, in order: those that the same names would import again."""
    new = [name for name, module in list(sys.modules.items()) if name not in before and named(module) == name]
    with open(file, "w", encoding="utf-8") as told:
        told.write("\n".join(new))


def named(module: object) -> str | None:
    """The name that a module was imported by."""
    return getattr(getattr(module, "__spec__", None), "name", None)


def left(link: socket.socket) -> bool:
    """Whether the other end of a link, which says nothing before a job is taken, is closed."""
    ready, *_ = select.select([link], [], [], 0)
    return bool(ready)


def close(files: list[int]) -> None:
    """Close files, and forget their numbers."""
    while files:
        os.close(files.pop())


def main() -> None:
    """Serve on the sockets that are inherited by the numbers given, with what stood before this process began."""
    listening, alive = (socket.socket(fileno=int(number)) for number in sys.argv[1:3])
    Server(listening, alive, sys.argv[3]).run()


if __name__ == "__main__":
    main()
