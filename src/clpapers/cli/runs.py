"""The commands of rules/runs.smk: training, selections, nets, and the index of all cells."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from clpapers import provenance
from clpapers.provenance import Refusal

if TYPE_CHECKING:
    from clpapers.cli.job_context import JobContext, Training
    from clpapers.config.gans import Gans
    from clpapers.config.model import Cell
    from clpapers.graph.jobs import Job, NetJob, SelectionJob


def train(task: Training[tuple[Cell, range, list[Path], Gans | None]]) -> None:
    """results/<scale>/runs/<dataset>/<order>/<learner>-<hash>/seed<k>.json or seeds<a>-<b>.json

    From the cell and the seeds, the files of the selection that sets some of the cell's values, if any, and the GANs
    that its learner shares with other runs, if any. The training of GANs counts as the run's.
    """
    import torch

    from clpapers.datasets import arrays
    from clpapers.runs import loop, process, shared_gans, stacking
    from clpapers.runs.checkpoint import Checkpoint, identity
    from clpapers.runs.scenario import ScenarioError
    from clpapers.streams.stream import data_of, load

    cell, seeds, selections, shared = task.job.subject
    spec = cell.spec
    device, share = task.device()
    with task.recording(
        cell=spec, seeds=list(seeds), precision=spec["precision"], hardware=task.hardware(device)
    ) as record:
        train_split, test_split = (arrays.load(cell.dataset, split) for split in ("train", "test"))
        classes = len(task.plan.datasets[spec["dataset"]]["classes"])
        attributes = arrays.attributes(cell.dataset)
        start = arrays.by_name(cell.weights) if cell.weights else None
        data = loop.Data(train_split.x, train_split.y, test_split.x, test_split.y, classes, attributes, start)
        *_, checksum = data_of(spec["dataset"], cell.dataset)
        try:
            loaded = {seed: load(cell.stream(seed), len(data.train_y), checksum) for seed in seeds}
        except ValueError as error:
            raise Refusal(str(error)) from None
        for file in selections:
            chosen = json.loads(file.read_text(encoding="utf-8"))
            if chosen.get("search") != spec["selection"]:
                raise Refusal(
                    f"{file}: is of another search than config/ describes; delete it and let Snakemake make it"
                )
            spec = record["cell"] = fill(spec, chosen["selected"])
        if shared:
            data.gans = {seed: shared_gans.load(shared.file(seed)) for seed in seeds}
        checkpoint = Checkpoint(task.out, identity(record, "cell"))
        if not task.options.gpus:  # a stack that did not fit may fit now: that depends on other processes
            fitted = {s: done for s, done in checkpoint.finished.items() if done is not None or len(s) > 1}
            checkpoint.finished = fitted
        record |= checkpoint.seconds | {"resumed": checkpoint.resumed, "earlier": checkpoint.earlier}
        stacked = True
        if len(seeds) > 1 and loop.undecided(spec, device):
            process.prepare(device, spec["precision"])
            option = task.options.stacking
            stacked = task.measured("stacking", stacking.gain) > 1 if option is None else bool(option)
            record["stacking"] = stacked
        try:
            results = loop.train(spec, data, loaded, device, checkpoint=checkpoint, stacking=stacked)
        except ScenarioError as error:
            raise Refusal(f"{task.out}: {error}") from None
        if any("out_of_memory" in result for result in results):  # a result only of a GPU that was all the job's own
            if not task.options.gpus:
                raise MemoryError
            if share and not share.is_whole:
                checkpoint.remove()  # which would say so again
                raise task.out_of_memory(share)
        text = json.dumps({"cell": spec, "seeds": results}, separators=(",", ":"))
        provenance.write_text(task.out, text + "\n")
        if shared:
            for seed, spent in record["training_seconds"].items():
                of_gans = provenance.read_record(shared.file(int(seed)))["training_seconds"][str(seed)]
                record["training_seconds"][seed] = spent + of_gans
        record["peak_device_bytes"] = torch.cuda.max_memory_allocated(device) if device.type == "cuda" else None
    checkpoint.remove()


def fill(spec: dict, selected: dict) -> dict:
    """A cell's description with the selected values, by dotted key, for the parts and options that it has."""
    for key, value in selected.items():
        part, option = key.split(".")
        if option in spec[part]:
            spec = spec | {part: spec[part] | {option: value}}
    return spec


def selection(task: JobContext[SelectionJob]) -> None:
    """results/<scale>/selection/<paper>/<dataset>-<learner>.json, from the search."""
    from clpapers.metrics.selection import choose

    search = task.job.search
    with task.recording(selection=search.spec):
        runs = {}
        for _, cell in search.points:
            files = task.plan.results(cell, search.seeds)
            entries = [(run, seeds) for path, seeds in files.items() for run in json.loads(path.read_text())["seeds"]]
            runs[cell.hash] = [run for run, seeds in entries if run["seed"] in seeds]
        chosen = choose(search.spec, search.published, [values for values, _ in search.points], runs)
        provenance.write_text(task.out, json.dumps(chosen, indent=1, ensure_ascii=False) + "\n")


def net(task: JobContext[NetJob]) -> None:
    """results/<scale>/runs/nets/<paper>/<dataset>.json or <dataset>-<learner>.json; from data set, net and outputs."""
    from clpapers.runs.nets import describe

    name, spec, outputs = task.job.dataset, task.job.net, task.job.classes
    facts = task.plan.datasets[name]
    h, w, c = facts["shape"]
    with task.recording(dataset=task.out.stem, net=spec):
        described = describe(spec, (c, h, w), outputs, facts.get("attributes"))
        provenance.write_text(task.out, json.dumps(described, indent=1, ensure_ascii=False) + "\n")


def index(task: JobContext[Job]) -> None:
    """results/<scale>/runs/index.csv: cell, path, seeds, targets, and every factor of the cell in a column."""
    import pandas as pd

    plan, rows = task.plan, []
    for cell in plan.cells.values():
        uses = [name for name, target in plan.targets.items() if any(c.hash == cell.hash for _, c in target.cells)]
        uses += [search.name for search in plan.selections.values() if cell.hash in search.spec["points"]]
        seeds = " ".join(path.stem for path in plan.results(cell))
        factors = {f"{part}.{key}" if key else part: value for part, key, value in _flat(cell.spec)}
        row = {"cell": cell.hash, "path": str(cell.folder), "seeds": seeds, "targets": " ".join(uses)}
        rows.append(row | factors)
    with task.recording():
        provenance.write_text(task.out, pd.DataFrame(rows).to_csv(index=False, lineterminator="\n"))


def _flat(spec: dict) -> Iterator[tuple]:
    for part, value in spec.items():
        if isinstance(value, dict):
            yield from ((part, key, inner) for key, inner in value.items())
        else:
            yield part, "", value
