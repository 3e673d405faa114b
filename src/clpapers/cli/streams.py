"""The commands of rules/streams.smk: streams, and the simulation of stf's appendix E."""

from __future__ import annotations

import math

from clpapers import provenance
from clpapers.cli.task import Refusal, Task


def stream(task: Task) -> None:
    """results/<scale>/streams/<dataset>/<order>/seed<k>.npz, from data set, order and seed."""
    import dataclasses

    import numpy as np

    from clpapers.datasets.arrays import instances, labels
    from clpapers.streams import orders
    from clpapers.streams.stream import data_of, save

    name, order, seed = task.job.subject
    with task.recording(dataset=name, order=order, seed=seed) as record:
        if task.job.inputs:
            (file,) = task.job.inputs
            y, recorded = labels(file, "train"), instances(file)
            pixels = math.prod(task.plan.datasets[name]["shape"])
        else:  # a toy, whose name has the size of each class
            y = np.repeat(np.arange(name.count("-")), [int(size) for size in name.split("-")[1:]])
            pixels, recorded = 0, None
        try:
            made = orders.make(order, y, seed, pixels, recorded)
            save(dataclasses.replace(made, data=data_of(record, name)), task.out)
        except ValueError as error:
            raise Refusal(f"{task.out}: {error}") from None


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
