"""The command line: `clpapers <stage> --out FILE` makes one file of the pipeline, exactly as its rule does.

The path names the file to make; `config/` says how. A job of a build hands its command to the build's server
(server.py), if there is one, which has imported everything. commands.py has the options of the commands. <stage>.py has
the commands of rules/<stage>.smk, which are part of their jobs' code. The commands in describe.py make no file of the
pipeline.
"""

import os

SERVER = "CLPAPERS_SERVER"  # in the environment: the address of a build's server; `0` for a build without one


def main(arguments: list[str] | None = None) -> int:
    """Run one command; 0 on success, 1 where an audit fails, 2 where config or data do, with one line on stderr.

    arguments: if None, the command line's, as in a job. Nothing slow is imported before a server has refused.
    """
    if arguments is None and os.environ.get(SERVER, "0") != "0":
        from clpapers.cli.server_client import served

        status = served(os.environ[SERVER])
        if status is not None:
            return status
    from clpapers.cli.commands import main as run

    return run(arguments)
