"""The streams of all published runs, drawn again by today's code, and those that differ drawn as older code did.

In the project's folder, in about a minute:
    python docs/findings/older_streams.py
It prints a line a paper: how many files have the same bytes. Then follows a line for each file that has not: whether
the older way to draw gives its bytes here, and at how many positions its items are not those of today's file. The older
way depends on the processor: NumPy sorts with AVX-512 where it can, and otherwise with AVX2. A second run shows the
rest:
    NPY_DISABLE_CPU_FEATURES="X86_V4 AVX512_ICL" python docs/findings/older_streams.py
"""

import json
import math
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import numpy as np

from clpapers.config.plan import Plan
from clpapers.config.settings import all_papers
from clpapers.datasets import known
from clpapers.provenance import sha256
from clpapers.streams import orders, stf
from clpapers.streams.stream import ITEM_ORDER, Stream, save


def published(crates: list[Path]) -> Iterator[tuple[str, Path, str]]:
    """Paper, path and SHA-256 of each stream file that a published run learnt, by its record."""
    for crate in crates:
        with zipfile.ZipFile(crate) as archive:
            names = [name for name in archive.namelist() if name.endswith(".record.json")]
            records = [json.loads(archive.read(name)) for name in names]
        inputs = (item for record in records for item in record["inputs"])
        found = {(item["path"], item["sha256"]) for item in inputs if Path(item["path"]).parts[2] == "streams"}
        for path, digest in sorted(found):
            yield crate.stem.partition("-")[0], Path(path), digest


def drawn(plan: Plan, path: Path) -> Stream | None:
    """Today's stream at a path; None where its items are known from their file alone."""
    dataset, order, seed = path.parts[3], plan.orders.get(path.parts[3:5]), int(path.stem.removeprefix("seed"))
    if order is None or plan.class_sizes(dataset) is None:
        return None
    facts, labels = plan.datasets[dataset], known.labels(plan, dataset, "train")
    stream = orders.make(order, labels, seed, math.prod(facts["shape"]), None, plan.classes(dataset))
    return replace(stream, data=(dataset, ITEM_ORDER, facts["sha256"]["train"]))


def as_older_code(plan: Plan, path: Path) -> Stream | None:
    """The stream at a path as it was drawn before `da0c8bdc`: numbers not rounded, a sort that is not stable."""
    argsort = np.argsort

    def unstable(values: np.ndarray, **options: object) -> np.ndarray:
        return argsort(values) if values.dtype == np.float64 else argsort(values, **options)

    with mock.patch.object(stf, "rounded", lambda numbers: numbers), mock.patch.object(np, "argsort", unstable):
        return drawn(plan, path)


def digest(stream: Stream) -> str:
    """The SHA-256 of a stream's file."""
    with TemporaryDirectory() as folder:
        save(stream, file := Path(folder) / "stream.npz")
        return sha256(file)


def main() -> None:
    plan, counts, lines = Plan.load("paper", all_papers()), Counter[tuple[str, str]](), []
    for paper, path, expected in published(
        [Path(name) for name in sys.argv[1:]] or sorted(Path("results/published").glob("*.zip"))
    ):
        today = drawn(plan, path)
        same = (
            "not drawn, its labels are in a file" if today is None else "same" if digest(today) == expected else "other"
        )
        counts[paper, same] += 1
        if same == "other":
            older = as_older_code(plan, path)
            here = digest(older) == expected
            positions = np.flatnonzero(older.indices != today.indices)
            labels = known.labels(plan, path.parts[3], "train")
            classes = int((labels[older.indices] != labels[today.indices]).sum())
            said = (
                f"{positions.size:,} positions have another item, {classes} another class" if here else "not drawn here"
            )
            lines.append(f"{'/'.join(path.parts[3:5])}/{path.stem} {expected[:10]}: {said}")
    for (paper, same), files in counts.items():
        print(f"{paper}: {files} files: {same}")
    print(*lines, sep="\n")


if __name__ == "__main__":
    main()
