"""GANs that several runs draw from: trained along one seed's stream, task by task, and kept in a file.

The file holds every class's generator for each task: an array a tensor, named `task/tensor`, with the classes as its
first axis, and `task/classes`.
"""

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from clpapers.provenance import write_atomically
from clpapers.runs.checkpoint import Checkpoint
from clpapers.runs.clock import Clock
from clpapers.runs.gans import of_task
from clpapers.runs.images import Images
from clpapers.streams.chunks import output_labels
from clpapers.streams.stream import Stream, batches

Generators = dict[str, np.ndarray]  # of a task's classes: tensor → array [classes, …]


@dataclasses.dataclass
class Progress:
    """The next task, the generators of those before it as the file holds them, and the seconds so far."""

    step: int = 0
    kept: list[dict[str, np.ndarray]] = dataclasses.field(default_factory=list)
    seconds: float = 0.0


def train(
    spec: dict,
    last: bool,
    data: tuple[np.ndarray, np.ndarray, int],
    stream: Stream,
    device: torch.device,
    checkpoint: Checkpoint | None = None,
) -> tuple[Generators, float]:
    """Train the GANs of all tasks of a stream, each task's when its first visit ends, as a run of its own would.

    Parameters
    ----------
    spec, last: as of `config.gans.Gans`.
    data: training images uint8 [N, H, W, C], their classes int64 [N], and the number of classes.
    stream: the seed's stream.
    checkpoint: state to resume from, and where to save it between two tasks.

    Returns the arrays of the file, and the seconds that training took.
    """
    train_x, train_y, classes = data
    checkpoint = Checkpoint() if checkpoint is None else checkpoint
    dtype = torch.float64 if spec["precision"] == "float64" else torch.float32
    images = Images(train_x, spec["scaling"], device, dtype)
    order, seed = spec["order"], stream.seed
    labels = torch.from_numpy(output_labels(order, train_y[stream.indices], stream.chunk, classes, seed)).to(device)
    items = torch.from_numpy(stream.indices).to(device)
    ends = batches(stream.boundaries, len(labels), "task", order.get("epochs", 1)).tolist()

    progress = checkpoint.resume((seed,), {}) or Progress()
    for t in range(progress.step, len(ends)):
        now = slice(ends[t - 1] if t else 0, ends[t])
        own = labels[None, now].unique()[None]
        met = any(np.array_equal(each["classes"], own[0].cpu()) for each in progress.kept)
        if not met and (last or t + 1 < len(ends)):
            clock = Clock(device)
            gans, of_members, iterations = of_task(
                spec["gan"], images, [seed], items[None, now], labels[None, now], own
            )
            gans.train(of_members, spec["gan"]["epochs"] * iterations)
            with clock.stopped():
                progress.kept.append({"classes": own[0].cpu().numpy()} | gans.state())
            progress.seconds += clock.seconds
        progress.step = t + 1
        if checkpoint.is_due():
            checkpoint.save((seed,), t + 1, progress, {}, steps=len(ends))
    arrays = {f"{n}/{name}": array for n, task in enumerate(progress.kept) for name, array in task.items()}
    return arrays, progress.seconds


def save(arrays: dict[str, np.ndarray], path: Path) -> None:
    """Write the file, atomically; equal GANs make equal bytes."""
    with write_atomically(path) as temporary:
        np.savez(temporary, allow_pickle=False, **arrays)


def load(path: Path) -> dict[tuple[int, ...], Generators]:
    """The generators by the classes of their task."""
    with np.load(path, allow_pickle=False) as archive:
        return dict(_tasks(archive))


def _tasks(archive: np.lib.npyio.NpzFile) -> Iterator[tuple[tuple[int, ...], Generators]]:
    for name in (each for each in archive.files if each.endswith("/classes")):
        start = name.removesuffix("classes")
        found = {key.removeprefix(start): archive[key] for key in archive.files if key.startswith(start)}
        yield tuple(found.pop("classes").tolist()), found
