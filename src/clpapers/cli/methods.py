"""The command that copies a method from outside; `clpapers.graph.own` calls it as a build begins, no rule does."""

from clpapers import provenance
from clpapers.cli.task import Task


def method(task: Task) -> None:
    """results/<scale>/methods/<label>-<digest>.py, from the file of the option `--file`."""
    with task.recording(), provenance.write_atomically(task.out) as temporary:
        temporary.write_bytes(task.options.file.read_bytes())
