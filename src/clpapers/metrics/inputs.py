"""Reads the inputs of a measure: results of runs, selections, streams, nets or simulations."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from clpapers import provenance
from clpapers.catalogue import metrics as catalogue
from clpapers.streams.older import AS_DRAWN_NOW, streams_learnt

if TYPE_CHECKING:  # not imported, so that an edit of the configuration's messages makes no metric stale
    import numpy as np
    import pandas as pd

    from clpapers.config.model import Target
    from clpapers.config.plan import Plan
    from clpapers.streams.stream import Stream


def read(plan: Plan, target: Target, files: list[Path]) -> Iterable:
    """The inputs of a target's measure, read from `files` (`jobs.Job.inputs`); `ValueError` for unfit data."""
    if target.cells:
        return _runs(plan, target, files)
    if target.streams:
        return _streams(plan, target, files)
    if "simulations" in target.spec:
        import numpy as np

        with np.load(files[0], allow_pickle=False) as archive:
            return [archive["ratios"]]
    keys = [factors for factors, _ in target.selections] or target.spec.get("nets", [])
    return [(key, json.loads(file.read_text())) for key, file in zip(keys, files)]


def mark_older_streams(frame: pd.DataFrame, plan: Plan, target: Target, files: list[Path]) -> pd.DataFrame:
    """A target's metrics, with a column `stream` if any of its runs learnt one of `streams.older.OTHER_ITEMS`.

    There it has the first digits of that file's SHA-256, and `AS_DRAWN_NOW` for all other runs.
    """
    older: dict[tuple[str, int], str] = {}
    for _, cell in target.cells if {"cell", "seed"} <= {*frame} else ():
        for path in plan.results(cell, target.seeds):
            if path in files and provenance.record_path(path).is_file():
                record = provenance.read_record(path)
                older |= {(cell.hash, seed): digest for seed, digest in streams_learnt(record).items()}
    if not older:
        return frame
    return frame.assign(stream=[older.get(run, AS_DRAWN_NOW) for run in zip(frame["cell"], frame["seed"])])


def files_beside(plan: Plan, target: Target, factors: dict, path: Path) -> list[Path]:
    """The files that a target's measure reads beside the result at `path`: the record and the net, or none."""
    files = {"record": provenance.record_path(path), "net": plan.net_file(target.paper, factors["dataset"])}
    return [files[name] for name in catalogue.measures()[target.spec["measure"]].beside]


def _runs(plan: Plan, target: Target, files: list[Path]) -> Iterator[tuple]:
    for factors, cell in target.cells:
        for path, seeds in plan.results(cell, target.seeds).items():
            if path not in files:
                continue
            content = json.loads(path.read_text())
            content["seeds"] = [
                entry | ({"test": entry["test"][cell.test_restriction]} if "test" in entry else {})
                for entry in content["seeds"]
                if entry["seed"] in seeds
            ]
            beside = [json.loads(file.read_text()) for file in files_beside(plan, target, factors, path)]
            yield factors, cell.hash, content, *beside


def _streams(plan: Plan, target: Target, files: list[Path]) -> Iterator[tuple]:

    from clpapers.datasets import known
    from clpapers.datasets.arrays import instances, labels
    from clpapers.datasets.header import image_shape
    from clpapers.streams.chunks import class_of_output, output_labels
    from clpapers.streams.oracles import identify
    from clpapers.streams.stream import load

    datasets = {file.stem: file for file in files[len(target.streams) :]}  # where the sizes of classes are not known
    kinds = catalogue.measures()[target.spec["measure"]].beside

    def labels_of(name: str, split: str) -> np.ndarray:
        return labels(datasets[name], split) if name in datasets else known.labels(plan, name, split)

    def of_stream(kind: str, stream: Stream, y: np.ndarray, name: str, order: dict, spec: dict, seed: int) -> object:
        match kind:
            case "tasks":
                classes = len(stream.class_parameters)
                outputs_of_items = output_labels(order, y[stream.indices], stream.chunk, classes, seed)
                outputs = len(class_of_output(order, classes, seed))
                return identify(spec["oracle"], order, stream, outputs_of_items, y[:0], outputs, seed).train
            case "test_labels":
                return labels_of(name, "test")
            case "image_shape":
                return image_shape(datasets[name]) if name in datasets else tuple(plan.datasets[name]["shape"])
            case "instances":
                if name not in datasets or (recorded := instances(datasets[name])) is None:
                    which = f"which measure {target.spec['measure']} needs"
                    raise ValueError(f"{datasets.get(name, name)}: its images show no instances, {which}")
                return recorded[0]
        raise ValueError(kind)

    for (name, order, seed), file, spec in zip(target.streams, files, target.spec["streams"]):
        stream, y = load(file), labels_of(name, "train")
        factors = {"dataset": name, "order": order["name"], "seed": seed}
        beside = [of_stream(kind, stream, y, name, order, spec, seed) for kind in kinds]
        yield factors, vars(stream), y, *beside
