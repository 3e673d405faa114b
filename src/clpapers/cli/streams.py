"""The commands of rules/streams.smk: streams, and the simulation of stf's appendix E."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from clpapers import provenance
from clpapers.cli.job_context import JobContext
from clpapers.provenance import Refusal

if TYPE_CHECKING:  # not imported, so that an edit of the configuration's messages makes no stream stale
    from clpapers.config.facts import Facts
    from clpapers.config.plan import Plan
    from clpapers.graph.jobs import EntropyJob, StreamJob


def stream(task: JobContext[StreamJob]) -> None:
    """results/<scale>/streams/<dataset>/<order>/seed<k>.npz, from data set, order and seed."""
    from clpapers.streams.stream import data_of

    name, order, seed = task.job.dataset, task.job.order, task.job.seed
    with task.recording(dataset=name, order=order, seed=seed):
        source = [(file, data_of(name, file)) for file in task.job.inputs]
        write(task.plan, name, order, seed, task.out, *source)


def write(
    facts: Facts | Plan, name: str, order: dict, seed: int, out: Path, source: tuple[Path, tuple] | None = None
) -> None:
    """Write a seed's stream over the training split of a data set or of a toy.

    source: the data set's file, and the description of the indexed data (`streams.stream.Stream`). None where the sizes
    of classes are known (`Facts.class_sizes`).
    """
    import dataclasses
    import math

    from clpapers.datasets import known
    from clpapers.datasets.arrays import instances, labels
    from clpapers.streams import orders
    from clpapers.streams.stream import ITEM_ORDER, data_of, save

    of_set = facts.datasets.get(name)
    if source:
        (file, data) = source
        y, recorded = labels(file, "train"), instances(file)
    else:
        y, recorded = known.labels(facts, name, "train"), None
        data = (name, ITEM_ORDER, of_set["sha256"]["train"] or "") if of_set else data_of(name, None)
    pixels = math.prod(of_set["shape"]) if of_set else 0
    try:
        save(dataclasses.replace(orders.make(order, y, seed, pixels, recorded, facts.classes(name)), data=data), out)
    except ValueError as error:
        raise Refusal(f"{out}: {error}") from None


def entropy(task: JobContext[EntropyJob]) -> None:
    """results/<scale>/streams/entropy/<paper>-<target>.npz: `ratios` float64 [simulations]; from their number."""
    import numpy as np

    from clpapers.streams.entropy import entropy_captured

    simulations = task.job.simulations
    with (
        task.recording(simulations=simulations, seed=0),
        provenance.write_atomically(task.out) as temporary,
    ):
        np.savez(temporary, ratios=entropy_captured(simulations, 0))
