"""How far a training is that was interrupted: read from its checkpoint, without torch."""

import json
from pathlib import Path

from clpapers import provenance


def checkpoint_of(result: Path) -> Path:
    """The file that holds the state of the training that makes a result."""
    return result.with_name(f".{result.stem}.checkpoint")


def share_done(result: Path, code: str) -> float:
    """The share of its steps, from 0 to 1, that the training of a result has taken and that a job goes on from.

    0 where no checkpoint is there, or one of other code or of another processor. The state itself is not read.
    """
    try:
        with checkpoint_of(result).open("rb") as file:
            header = json.loads(file.readline())
        same = header["identity"]["code"] == code and (
            header["identity"]["processor"] == provenance.hardware()["processor"]
        )
        return float(header["share"]) if same else 0.0
    except (OSError, ValueError, KeyError, TypeError):
        return 0.0
