"""The command that copies a method from outside; `graph.user_methods` calls it as a build begins, no rule does."""

from clpapers import provenance
from clpapers.cli.job_context import JobContext


def method(task: JobContext) -> None:
    """results/<scale>/methods/<label>-<digest>.py, from the file of the option `--file`."""
    with task.recording():
        provenance.write_bytes(task.out, task.options.file.read_bytes())
