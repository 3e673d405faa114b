"""Pack a bundle: a tar of code, resolved jobs in the order to train, and the files that they read with their records.

The tar unpacks to one folder. `python -m clpapers.cli train --jobs jobs.json` trains it there (`bundle.train`).
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import tqdm

from clpapers import machine, provenance
from clpapers.archive.imported import records_apart
from clpapers.config import gans
from clpapers.config.paths import block_name
from clpapers.config.plan import Plan
from clpapers.config.refusals import ConfigError
from clpapers.graph import jobs
from clpapers.provenance import PACKAGE, is_imported

STACKS = {"mlp": 10}  # seeds a job: on a GPU a stack of ten takes hardly longer than one (docs/machines.md)
JOBS = "jobs.json"
Run = tuple[str, int]  # a cell's hash, a seed


def pack(
    plan: Plan,
    runs: Iterable[Run],
    out: Path,
    *,
    make: Callable[[Path], str],
    seconds: Mapping[str, float | None],
    of_card: Mapping[str, float],
    stack: int | None,
) -> str:
    """Write a bundle of some runs, a compressed tar; returns a line that counts them.

    Parameters
    ----------

    - runs: in the order in which to train them.
    - make: makes an input that is not there; returns why it cannot.
    - seconds: the predicted seconds of a seed on a core here, by cell; None where nobody measured.
    - of_card: the predicted seconds of a whole card, where there is a prediction.
    - stack: seeds a job, neighbours of one cell; by net (`STACKS`) if None.

    Raises `ConfigError` where inputs cannot be made, a search is to be trained first, or the file is there already.
    """
    if out.exists():
        raise ConfigError(f"{out}: there is something already; name a new file")
    files = list(_files(plan, runs, stack))
    if not files:
        raise ConfigError("pack: no run is missing of what was named; name other targets, or cells by their hash")
    planned = {file: jobs.job_of(plan, file) for file in files}
    own_gans = {file for file, job in planned.items() if job.command == "gans"}  # the bundle itself trains them
    inputs = list(dict.fromkeys(path for job in planned.values() for path in job.inputs if path not in own_gans))
    absent = [path for path in inputs if not path.is_file()]
    if searches := [path for path in absent if path.parts[2] == "selection"]:
        raise ConfigError(
            f"{searches[0]}: a search to train first; snakemake {searches[0]} --cores, or name other runs"
        )
    absent.sort(key=lambda path: path.parts[2] == "streams")  # these read others, and are many
    at_once = 1 if absent and absent[0].parts[2] != "streams" else machine.cores()
    with ThreadPoolExecutor(at_once) as threads:
        for path, fault in zip(absent, threads.map(make, absent)):
            if fault:
                raise ConfigError(f"pack: {path}: could not be made: {fault}")
    origin = {"git": provenance.git_state(), "packed_on": provenance.hardware()}
    listed = [_resolved(plan, job, seconds, of_card) | origin for job in planned.values()]
    records = provenance.ancestry(*inputs)
    apart = [
        each for path, record in records.items() if is_imported(path) for each in records_apart(plan.scale, record)
    ]
    with provenance.write_atomically(out) as temporary, tarfile.open(temporary, "w:gz", compresslevel=6) as tar:
        top = out.name.partition(".")[0]
        info, text = tarfile.TarInfo(f"{top}/{JOBS}"), json.dumps(listed).encode()
        info.size = len(text)
        tar.addfile(info, io.BytesIO(text))
        for package in (PACKAGE, Path(tqdm.__file__).parent):  # tqdm is pure Python, and few nodes have it
            for path in sorted(package.rglob("*.py")):
                tar.add(path, f"{top}/src/{path.relative_to(package.parent)}", filter=_anonymous)
        for path in dict.fromkeys([*inputs, *records, *apart]):
            tar.add(path.resolve(), f"{top}/{path}", filter=_anonymous)
    count = sum(len(each["seeds"]) for each in listed if each["command"] == "train")
    return f"{out}: {count} runs in {len(listed)} jobs, {out.stat().st_size / 1e6:.1f} MB"


def _anonymous(info: tarfile.TarInfo) -> tarfile.TarInfo:
    """The entry of a file, without its owner's name."""
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


def _files(plan: Plan, runs: Iterable[Run], stack: int | None) -> Iterator[Path]:
    """The files of jobs for some runs, in their order, each after the GANs that it draws from."""
    groups: dict[tuple[str, int], list[int]] = {}
    for key, seed in runs:
        size = stack or STACKS.get(plan.cells[key].spec["net"]["name"], 1)
        groups.setdefault((key, seed // size), []).append(seed)
    seen: set[Path] = set()
    for (key, _), seeds in groups.items():
        cell = plan.cells[key]
        for block in _neighbours(sorted(set(seeds))):
            shared = gans.of_cell(plan, cell)
            before = [shared.file(seed) for seed in block if not shared.file(seed).is_file()] if shared else []
            for path in [*before, cell.folder / f"{block_name(block)}.json"]:
                if path not in seen:
                    seen.add(path)
                    yield path


def _neighbours(seeds: list[int]) -> Iterator[range]:
    """Ascending seeds as ranges without gaps."""
    start = 0
    for i in range(1, len(seeds) + 1):
        if i == len(seeds) or seeds[i] != seeds[i - 1] + 1:
            yield range(seeds[start], seeds[i - 1] + 1)
            start = i


def _resolved(plan: Plan, job: jobs.Job, seconds: Mapping[str, float | None], of_card: Mapping[str, float]) -> dict:
    """A job as `cli.bundle_worker` takes it, without the configuration."""
    if isinstance(job, jobs.RunJob):
        cell, seeds, chosen, last, key = job.cell, list(job.seeds), job.selections, False, job.cell.hash
    else:
        assert isinstance(job, jobs.GansJob)
        shared = job.shared
        cell, seeds, chosen, last, key = shared.cell, [job.seed], [], shared.last, str(shared.folder)
    if cell.method:
        raise ConfigError(f"{cell.method}: a method from outside does not travel yet; pack the project's own")
    seconds_each = seconds.get(key)
    return {
        "command": job.command,
        "out": str(job.outputs[0]),
        "seeds": seeds,
        "spec": cell.spec,
        "classes": len(plan.datasets[cell.spec["dataset"]]["classes"]),
        "inputs": list(map(str, job.inputs)),
        "chosen": list(map(str, chosen)),
        "last": last,
        "code": job.code,
        "settings": job.settings,
        "seconds": None if seconds_each is None else seconds_each * len(seeds),
        "card_seconds": of_card[key] * len(seeds) if key in of_card else None,
    }
