"""Fetch npm and Debian packages by name with their own clients; callers prove the content."""

import contextlib
import errno
import os
import shutil
import signal
import subprocess
from pathlib import Path

from clpapers.datasets.download import workplace
from clpapers.datasets.files import Absent, SourceError

SECONDS = 900  # a client may take this long; the largest package has 139 MB


def npm(package: str, version: str, folder: Path) -> Path:
    """Fetch the package's tarball to `folder` unless it is there; run no scripts, leave npm's own cache alone."""
    kept = folder / tarball(package, version)
    if not kept.exists():
        with workplace(folder) as work:
            private = ["--ignore-scripts", f"--cache={work / 'cache'}", "--loglevel=error"]
            patience = ["--fetch-retries=1", "--fetch-timeout=30000"]
            _client(["npm", "pack", f"{package}@{version}", *private, *patience], work)
            _move(work, kept.name, kept)
    return kept


def tarball(package: str, version: str) -> str:
    """The name that npm gives a package's file."""
    return f"{package}-{version}.tgz"


def apt(package: str, folder: Path) -> Path:
    """Fetch the package's .deb to `folder` unless it is there, of the release that this machine's sources offer.

    Lists, cache and state are private, so neither root nor an earlier `apt-get update` is needed; only the
    configured sources and their keys are the system's.
    """
    kept = folder / f"{package}.deb"
    if not kept.exists():
        with workplace(folder) as work:
            for needed in ("state/lists/partial", "cache/archives/partial"):
                (work / needed).mkdir(parents=True)
            options = {
                "Dir::State": work / "state",
                "Dir::State::status": "/var/lib/dpkg/status",
                "Dir::Cache": work / "cache",
                "Acquire::Languages": "none",
                "Acquire::Retries": "1",
                "Acquire::http::Timeout": "30",
                "Acquire::https::Timeout": "30",
                "APT::Sandbox::User": "",  # root's unprivileged helper could not enter the private folder
            }
            command = ["apt-get", "-qq", *(f"-o{key}={value}" for key, value in options.items())]
            _client([*command, "update"], work)
            _client([*command, "download", package], work)
            _move(work, f"{package}_*.deb", kept)
    return kept


def _move(work: Path, pattern: str, target: Path) -> None:
    found = list(work.glob(pattern))
    if len(found) != 1:
        raise SourceError(f"the client left no {pattern}; try again later")
    found[0].replace(target)


def _client(command: list[str], work: Path) -> None:
    """Run one package client; end it with all its children when it takes too long or we are interrupted."""
    if shutil.which(command[0]) is None:
        raise Absent(f"{command[0]} is not installed")
    with subprocess.Popen(
        command,
        cwd=work,
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as client:
        try:
            output, _ = client.communicate(timeout=SECONDS)
        except BaseException as error:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(client.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                raise SourceError(f"{command[0]} took over {SECONDS} s and was ended; try again") from error
            raise
    if client.returncode:
        if "ENOSPC" in output or os.strerror(errno.ENOSPC) in output:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(work.parent))
        raise SourceError(f"{command[0]} failed ({' '.join(output.split())[:200]}); try again later")
