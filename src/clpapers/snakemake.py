"""The command `snakemake` of this environment: Snakemake's own, with two things done before it starts.

A bare `--cores` means all of them: Snakemake's help promises that, the parser of Snakemake 9 refuses it, and `snakemake
all --cores` is what people type. And the folders that Snakemake writes to, with a traceback where it cannot, are tried:
that of the project is told of in one line, that of a home which cannot be written is replaced by one of the project's.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

OWN = Path(".snakemake")


def completed(arguments: list[str]) -> list[str]:
    """The arguments, with `all` given to a `--cores` or `-c` that has no number."""
    following = [*arguments[1:], "--"]
    return [
        "--cores=all" if argument in ("--cores", "-c") and after.startswith("-") else argument
        for argument, after in zip(arguments, following)
    ]


def fault_of(folder: Path) -> str:
    """Why no file can be made in a folder, which is made if it is not there; empty where one can."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder) as file:
            file.write(bytes(4096))
    except OSError as error:
        return error.strerror or str(error)
    return ""


def prepare() -> None:
    """Try the folders; ends the process with one line where Snakemake could not begin."""
    fault = fault_of(OWN)
    if fault:
        sys.exit(
            f"clpapers: {OWN}: Snakemake cannot write there ({fault}); make the project's folder writable, or free "
            "space and inodes (df -h, df -i), and give the same command again"
        )
    home = os.path.expanduser("~/.cache")
    caches = Path(os.environ.get("XDG_CACHE_HOME") or home)
    if not caches.is_absolute() or fault_of(caches / "snakemake"):  # as where nobody knows a home
        os.environ["XDG_CACHE_HOME"] = str(OWN.absolute() / "cache")


def main() -> None:
    """Run Snakemake."""
    if Path("Snakefile").is_file() and not {"--help", "-h", "--version", "-v"} & set(sys.argv[1:]):
        prepare()
    from snakemake.cli import main as run

    run(completed(sys.argv[1:]))
