"""The commands of rules/streams.smk: streams, and the simulation of stf's appendix E."""

from __future__ import annotations

import math
from pathlib import Path

from clpapers import provenance
from clpapers.cli.task import Refusal, Task


def stream(task: Task) -> None:
    """results/<scale>/streams/<dataset>/<order>/seed<k>.npz, from data set, order and seed."""
    from clpapers.streams.stream import data_of

    name, order, seed = task.job.subject
    with task.recording(dataset=name, order=order, seed=seed):
        file, shape = (*task.job.inputs, None)[0], task.plan.datasets.get(name, {}).get("shape", [0])
        write(order, seed, file, math.prod(shape), data_of(name, file), task.out)


def write(order: dict, seed: int, file: Path | None, pixels: int, data: tuple[str, str, str], out: Path) -> None:
    """Write a seed's stream over the training split in `file`, of images of so many `pixels`, H·W·C.

    data: what the indices point into (`streams.stream.Stream`). Where there is no file they point into a toy, whose
    name has the size of each class.
    """
    import dataclasses

    import numpy as np

    from clpapers.datasets.arrays import instances, labels
    from clpapers.streams import orders
    from clpapers.streams.stream import save

    if file:
        y, recorded = labels(file, "train"), instances(file)
    else:
        sizes = [int(size) for size in data[0].split("-")[1:]]
        y, recorded = np.repeat(np.arange(len(sizes)), sizes), None
    try:
        save(dataclasses.replace(orders.make(order, y, seed, pixels, recorded), data=data), out)
    except ValueError as error:
        raise Refusal(f"{out}: {error}") from None


def entropy(task: Task) -> None:
    """results/<scale>/streams/entropy/<paper>-<target>.npz: `ratios` float64 [simulations]; from their number."""
    import numpy as np

    from clpapers.streams.entropy import entropy_captured

    simulations = task.job.subject
    with (
        task.recording(simulations=simulations, seed=0),
        provenance.write_atomically(task.out) as temporary,
    ):
        np.savez(temporary, ratios=entropy_captured(simulations, 0))
