"""The command `snakemake` of this environment: Snakemake's own, but that a bare `--cores` means all of them.

Snakemake's help promises that; the parser of Snakemake 9 refuses it. `snakemake all --cores` is what people type.
"""

from __future__ import annotations

import sys


def completed(arguments: list[str]) -> list[str]:
    """The arguments, with `all` given to a `--cores` or `-c` that has no number."""
    following = [*arguments[1:], "--"]
    return [
        "--cores=all" if argument in ("--cores", "-c") and after.startswith("-") else argument
        for argument, after in zip(arguments, following)
    ]


def main() -> None:
    """Run Snakemake."""
    from snakemake.cli import main as run

    run(completed(sys.argv[1:]))
