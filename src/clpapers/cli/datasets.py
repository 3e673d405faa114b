"""The commands of rules/datasets.smk: data sets, weights, features."""

from __future__ import annotations

from collections.abc import Callable

from clpapers.cli.task import Refusal, Task


def dataset(task: Task) -> None:
    """results/<scale>/datasets/<dataset>.npz, from its name and what config/datasets.yaml says of it."""
    from clpapers.datasets.build import build

    settings = task.plan.settings
    small = None if settings["sources"] == "real" else settings.get("stand_ins", {}).get(task.out.stem)
    _fetch(task, build, standin=small, allow_partial=settings.get("partial_data", False))


def weights(task: Task) -> None:
    """results/<scale>/weights/<weights>.npz, from their name and what config/weights.yaml says of them."""
    from clpapers.datasets.weights import build

    _fetch(task, build, standin=task.plan.settings["sources"] != "real")


def _fetch(task: Task, build: Callable[..., dict], **more: object) -> None:
    """Have the subject built from those of its sources that the scale allows."""
    from clpapers.datasets.build import DatasetError

    name, spec = task.job.subject
    options, allowed = task.options, task.plan.settings["sources"]
    if allowed == "stand_in":
        spec = spec | {"sources": [source for source in spec["sources"] if source["kind"] == "standin"]}
    with task.recording(sources=allowed) as record:
        try:
            facts = build(
                name, spec, data_folder=options.data_folder, downloads=options.downloads, out=options.out, **more
            )
        except DatasetError as error:
            raise Refusal(str(error)) from None
        record["data"] = {name: facts}


def features(task: Task) -> None:
    """results/<scale>/datasets/<dataset>.npz, made of another's; from its name and what config/datasets.yaml says."""
    import torch

    from clpapers.datasets.features import build

    (_, spec), (device, share) = task.job.subject, task.device()
    with task.recording(features=spec["features"], hardware=task.hardware(device)):
        try:
            build(spec, *task.job.inputs, device, task.out)
        except torch.OutOfMemoryError:
            raise task.too_little(share) from None
