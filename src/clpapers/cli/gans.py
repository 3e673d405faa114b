"""The command of rules/gans.smk."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clpapers.cli.job_context import Training
    from clpapers.config.gans import Gans


def gans(task: Training[tuple[Gans, int]]) -> None:
    """results/<scale>/gans/<dataset>/<order>/<gan>-<hash>/seed<k>.npz, from the data set and the seed's stream."""
    from clpapers.datasets import arrays
    from clpapers.runs import process, shared_gans
    from clpapers.runs.checkpoint import Checkpoint, identity
    from clpapers.streams.stream import load

    shared, seed = task.job.subject
    spec = shared.spec
    device, _ = task.device()
    with task.recording(
        gans=spec,
        seeds=[seed],
        precision=spec["precision"],
        hardware=task.hardware(device),
    ) as record:
        process.prepare(device, spec["precision"])
        split = arrays.load(task.job.inputs[0], "train")
        stream = load(shared.stream(seed), len(split.y))
        data = (split.x, split.y, len(task.plan.datasets[shared.dataset]["classes"]))
        checkpoint = Checkpoint(task.out, identity(record, "gans"))
        record |= {"resumed": checkpoint.resumed, "earlier": checkpoint.earlier}
        trained, seconds = shared_gans.train(spec, shared.last, data, stream, device, checkpoint)
        shared_gans.save(trained, task.out)
        record["training_seconds"] = {str(seed): seconds}
    checkpoint.remove()
