"""The commands of rules/datasets.smk: data sets, weights, features."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from clpapers.cli.job_context import JobContext

if TYPE_CHECKING:
    from clpapers.graph.jobs import DataJob


def dataset(task: JobContext[DataJob]) -> None:
    """results/<scale>/datasets/<dataset>.npz, from its name and its entry in config/datasets.yaml."""
    from clpapers.datasets.build import build

    _fetch(task, build, **substitutes(task.plan.settings, task.out.stem))


def substitutes(settings: dict, name: str) -> dict:
    """The substitutes of a data set that a scale's settings allow, as arguments of `datasets.build.build`."""
    small = None if settings["sources"] == "real" else settings.get("stand_ins", {}).get(name)
    return {"standin": small, "allow_partial": settings.get("partial_data", False)}


def permitted(settings: dict, spec: dict) -> dict:
    """The entry of a data set or of weights, with the sources that a scale's settings allow.

    Where a scale allows stand-ins alone, a data set from outside, which has none, keeps its user's own folder.
    """
    if settings["sources"] != "stand_in":
        return spec
    kind = "folder" if "declared" in spec else "standin"
    return spec | {"sources": [source for source in spec["sources"] if source["kind"] == kind]}


def weights(task: JobContext[DataJob]) -> None:
    """results/<scale>/weights/<weights>.npz, from their name and their entry in config/weights.yaml."""
    from clpapers.datasets.weights import build

    _fetch(task, build, standin=task.plan.settings["sources"] != "real")


def _fetch(task: JobContext[DataJob], build: Callable[..., dict], **more: object) -> None:
    """Build the subject from the sources that the scale allows."""
    name, options, spec = task.job.name, task.options, permitted(task.plan.settings, task.job.facts)
    with task.recording(sources=task.plan.settings["sources"]) as record:
        folders = {"data_folder": task.data_folder(spec), "downloads": options.downloads}
        record["data"] = {name: build(name, spec, **folders, out=options.out, **more)}


def features(task: JobContext[DataJob]) -> None:
    """results/<scale>/datasets/<dataset>.npz, of another data set's images; from its name and its entry."""
    import torch

    from clpapers.datasets.features import build

    spec, (device, share) = task.job.facts, task.device()
    with task.recording(features=spec["features"], hardware=task.hardware(device)):
        try:
            images, weights = task.job.inputs
            build(spec, images, weights, device, task.out)
        except torch.OutOfMemoryError:
            raise task.out_of_memory(share) from None
