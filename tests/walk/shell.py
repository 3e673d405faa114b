"""A user at a terminal."""

import os
import subprocess
from pathlib import Path
from typing import NamedTuple

TIMEOUT = 3600  # seconds a command may take before it counts as hung; no test asserts a time


class Said(NamedTuple):
    """What a command printed, by stream, and how it ended."""

    code: int
    out: str
    err: str


class Shell(NamedTuple):
    """A user at a terminal: in a folder, with the commands of an environment and a home of their own.

    before: words before each command, such as `setpriv …`. umask: -1 for this process's.
    """

    folder: Path
    environment: Path
    home: Path
    before: tuple[str, ...] = ()
    umask: int = -1

    def run(self, command: str) -> Said:
        """Run a line of the shell to its end."""
        inherited = {
            k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYTEST", "VIRTUAL_ENV", "MAKE"))
        }
        path = os.pathsep.join([str(self.environment / "bin"), os.environ["PATH"]])
        done = subprocess.run(
            [*self.before, "bash", "-c", command],
            cwd=self.folder,
            env=inherited | {"PATH": path, "HOME": str(self.home), "MPLBACKEND": "agg"},
            umask=self.umask,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def ok(self, command: str) -> str:
        """Run a line of the shell, which must end well; what it printed to its output."""
        said = self.run(command)
        assert said.code == 0, f"$ {command}\n{said.out}{said.err}"
        return said.out
