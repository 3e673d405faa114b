"""A job's side of the server of its build: hand the command over, pass signals on, end as the job ended."""

import array
import os
import signal
import socket
import sys

PATIENCE = 60.0  # seconds that a server may take for its imports, beyond which the command runs here
HEAD = 8  # bytes, the length of what follows
TAKEN = b"+"


def request() -> bytes:
    """The command and all that it inherits but its open files, as `server.Request` reads it.

    Texts, each ended by a zero: program, package, umask, folder, the number of arguments, these, and the environment.
    """
    umask = os.umask(0)
    os.umask(umask)
    inherited = [sys.executable, os.path.dirname(__file__), str(umask), os.getcwd(), str(len(sys.argv) - 1)]
    pairs = (name + b"=" + value for name, value in os.environb.items())
    return b"".join(part + b"\0" for part in [*map(os.fsencode, [*inherited, *sys.argv[1:]]), *pairs])


def served(address: str) -> int | None:
    """Let the server at `address` do the command of `sys.argv`; returns its exit status, None where the server refuses.

    A job that a signal ended ends this process by the same. One whose server is killed has been killed with it.
    """
    link = socket.socket(socket.AF_UNIX)
    link.settimeout(PATIENCE)
    try:
        link.connect(address)
        message = request()
        files = socket.SCM_RIGHTS
        sent = link.sendmsg(
            [len(message).to_bytes(HEAD, "big") + message], [(socket.SOL_SOCKET, files, array.array("i", [0, 1, 2]))]
        )
        link.sendall((len(message).to_bytes(HEAD, "big") + message)[sent:])
        if link.recv(1) != TAKEN:
            return None
    except OSError:  # no server, one that is ending, a closed stdin
        return None

    def pass_on(number: int, _: object) -> None:
        try:
            link.send(bytes([number]))
        except OSError:
            return  # it has ended

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, pass_on)
    link.settimeout(None)
    try:
        answer = link.recv(4)
    except OSError:
        answer = b""
    status = int.from_bytes(answer, "big", signed=True) if answer else -signal.SIGKILL
    return status if status >= 0 else _end_by(-status)


def _end_by(number: int) -> int:
    """End this process by a signal, without a core dump: the job has left its own."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    return 128 + number  # of a signal that does not end a process
