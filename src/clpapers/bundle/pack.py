"""Pack a bundle: code, resolved cells, streams and data of some runs, in parts of bounded size, in the order to train.

    DIR/run.py        trains it: python run.py --minutes 9 --out OUT
    DIR/parts.json    each part's name, size and SHA-256
    DIR/part-01.zip … the package's code, `jobs.json`, and inputs as the first jobs need them

Inputs are files of the pipeline, each with its record, at their paths. Arrays are `packing.pieces`, below `data`.
"""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import tqdm

from clpapers import provenance
from clpapers.bundle import packing
from clpapers.config import gans
from clpapers.config.paths import block_name
from clpapers.config.plan import Plan
from clpapers.config.refusals import ConfigError
from clpapers.graph import jobs
from clpapers.provenance import PACKAGE, record_path

EPOCH = (1980, 1, 1, 0, 0, 0)  # the time of every entry
STACKS = {"mlp": 10}  # seeds a job: on a GPU a stack of ten takes hardly longer than one (docs/performance.md)
PARTS, JOBS, DATA, SITE = "parts.json", "jobs.json", "data", "site"
Run = tuple[str, int]  # a cell's hash, a seed


def pack(
    plan: Plan,
    runs: Iterable[Run],
    out: Path,
    *,
    seconds: Mapping[str, float | None],
    of_card: Mapping[str, float],
    megabytes: float,
    stack: int | None,
    options: list[str],
) -> str:
    """Write a bundle of some runs into a new folder; returns a line that counts them.

    Parameters
    ----------

    - runs: in the order in which to train them.
    - seconds: the predicted seconds of a seed on a core here, by cell; None where nobody measured.
    - of_card: the predicted seconds of a whole card, where there is a prediction.
    - megabytes: the largest size of a part.
    - stack: seeds a job, neighbours of one cell; by net (`STACKS`) if None.
    - options: Snakemake's, for inputs that are yet to be made.

    Raises `ConfigError` where inputs cannot be made, a search is to be trained first, or the folder is not empty.
    """
    if out.exists() and any(out.iterdir()):
        raise ConfigError(f"{out}: there is something already; name a new folder")
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
    _make(absent, options)
    origin = {"git": provenance.git_state(), "packed_on": provenance.hardware()}
    errands = [_errand(plan, job, seconds, of_card) | origin for job in planned.values()]
    out.mkdir(parents=True, exist_ok=True)
    writer = _Writer(out, int(megabytes * 1e6))
    writer.add(JOBS, json.dumps(errands).encode())
    for path in sorted(PACKAGE.rglob("*.py")):
        writer.add(f"src/{path.relative_to(PACKAGE.parent)}", path.read_bytes())
    package = Path(tqdm.__file__).parent  # pure Python, which training imports and few nodes have
    for path in sorted(package.rglob("*.py")):
        writer.add(f"{SITE}/{path.relative_to(package.parent)}", path.read_bytes())
    for path in inputs:
        writer.add_input(path)
    writer.end()
    provenance.write_text(out / "run.py", (Path(__file__).with_name("run.py")).read_text(encoding="utf-8"))
    seeds = sum(len(errand["seeds"]) for errand in errands if errand["command"] == "train")
    size = sum(part["bytes"] for part in writer.parts) / 1e6
    return f"{out}: {seeds} runs in {len(errands)} jobs, {len(writer.parts)} parts, {size:.1f} MB"


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


def _errand(plan: Plan, job: jobs.Job, seconds: Mapping[str, float | None], of_card: Mapping[str, float]) -> dict:
    """A job as `cli.errands` takes it."""
    errand: dict = {"chosen": [], "gans": [], "last": None}
    if job.command == "gans":
        shared, seed = job.subject
        spec, seeds, key, errand["last"] = shared.spec, [seed], str(shared.folder), shared.last
    else:
        cell, block, selections, shared = job.subject
        if cell.method:
            raise ConfigError(f"{cell.method}: a method from outside does not travel yet; pack the project's own")
        spec, seeds, key, errand["chosen"] = cell.spec, list(block), cell.hash, list(map(str, selections))
        errand["gans"] = [str(shared.file(seed)) for seed in seeds] if shared else []
    seconds_each = seconds.get(key)
    return errand | {
        "command": job.command,
        "out": str(job.outputs[0]),
        "seeds": seeds,
        "spec": spec,
        "classes": len(plan.datasets[spec["dataset"]]["classes"]),
        "inputs": list(map(str, job.inputs)),
        "code": job.code,
        "settings": job.settings,
        "seconds": None if seconds_each is None else seconds_each * len(seeds),
        "card_seconds": of_card[key] * len(seeds) if key in of_card else None,
    }


def _make(paths: list[Path], options: list[str]) -> None:
    """Let Snakemake make absent inputs."""
    if not paths:
        return
    command = [
        sys.executable,
        "-m",
        "clpapers.cli.snakemake",
        *map(str, paths),
        "--cores",
        "--quiet",
        "rules",
        *options,
    ]
    subprocess.run(command, stdout=sys.stderr)
    if lost := [path for path in paths if not path.is_file()]:
        raise ConfigError(f"pack: {lost[0]} and {len(lost) - 1} more could not be made; see above")


class _Writer:
    """Writes the parts, one after another; none is larger than `limit` bytes, unless a single piece is."""

    def __init__(self, out: Path, limit: int):
        self.out, self.limit = out, limit
        self.parts: list[dict] = []
        self._begin()

    def _begin(self) -> None:
        self.buffer = io.BytesIO()
        self.archive = zipfile.ZipFile(self.buffer, "w")

    def add(self, name: str, content: bytes) -> None:
        """Add a file to the present part, or begin the next."""
        stored = name.startswith(f"{DATA}/")
        most = len(content) // (1 if stored else 3) + 4096
        if self.archive.namelist() and self.buffer.tell() + most > self.limit:
            self.end()
            self._begin()
        packed = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
        self.archive.writestr(zipfile.ZipInfo(name, EPOCH), content, packed)

    def add_input(self, path: Path) -> None:
        """Add a file that jobs read, with its record; arrays in pieces."""
        record = record_path(path)
        if record.is_file() and record != path:
            self.add(str(record), record.read_bytes())
        if path.suffix == ".npz":
            slow = path.parts[2] in ("datasets", "weights")
            for name, content in (packing.cached_pieces if slow else packing.pieces)(path):
                self.add(f"{DATA}/{path}/{name}", content)
        else:
            self.add(str(path), path.read_bytes())

    def end(self) -> None:
        """Write the present part, and the list of all parts until now."""
        self.archive.close()
        content, name = self.buffer.getvalue(), f"part-{len(self.parts) + 1:02}.zip"
        (self.out / name).write_bytes(content)
        self.parts.append({"name": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()})
        provenance.write_text(self.out / PARTS, json.dumps(self.parts, indent=1) + "\n")
