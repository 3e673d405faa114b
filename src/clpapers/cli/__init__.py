"""The command line: `clpapers <stage> --out FILE` makes one file of the pipeline, exactly as its rule does.

The path says what is to be made; `config/` says how. A job of a build hands its command to the server of that build
(server.py), which has imported everything, where there is one. What each command takes stands in commands.py. The
commands of rules/<stage>.smk stand in <stage>.py and are part of their jobs' code; those of people.py make no file of
the pipeline.
"""

from __future__ import annotations

import os

SERVER = "CLPAPERS_SERVER"  # of the environment: the address of a build's server; `0` for a build without one


def main(arguments: list[str] | None = None) -> int:
    """Run one command; 0 on success, 1 where an audit fails, 2 where config or data do, with one line on stderr.

    arguments: those of the command line if None, as in a job. Until a server has refused nothing slow is imported.
    """
    if arguments is None and os.environ.get(SERVER, "0") != "0":
        from clpapers.cli.front import served

        status = served(os.environ[SERVER])
        if status is not None:
            return status
    from clpapers.cli.commands import main as run

    return run(arguments)
