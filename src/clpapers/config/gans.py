"""The GANs that runs share: which files hold them, and for which cells."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import TYPE_CHECKING

from clpapers.config.model import Cell, digest
from clpapers.config.paths import RESULTS, block_name, stream_path
from clpapers.streams.orders import slug

if TYPE_CHECKING:
    from clpapers.config.plan import Plan

TIMED = {"training_seconds", "training_minutes"}  # metrics


@dataclasses.dataclass
class Gans:
    """The GANs of one recipe along the streams of one order, shared by all cells that differ in other things.

    spec: everything that decides them except the seed: data set, order, scaling, precision, and the option `gan`.
    cell: one of the cells.
    seeds: the seeds of all cells.
    last: whether the GANs of the last task are trained too, from which no run draws: where a target shows the time.
    """

    scale: str
    spec: dict
    cell: Cell
    seeds: set[int] = dataclasses.field(default_factory=set)
    last: bool = False

    @staticmethod
    def key(spec: dict) -> dict:
        """The `spec` of the GANs that a cell, by its description, draws from."""
        shared = {key: spec[key] for key in ("dataset", "order", "scaling", "precision")}
        return shared | {"gan": spec["learner"]["gan"]}

    @property
    def tasks(self) -> int:
        """How many tasks have GANs of their own; tasks that differ in pixel permutations share theirs."""
        order = self.spec["order"]
        once = order["name"] != "permuted_pixels" and order.get("cycles", 1) == 1
        return order["tasks"] - (once and not self.last)

    @property
    def decisive(self) -> list:
        """Everything that decides the files' content."""
        return [self.spec, self.last]

    @functools.cached_property
    def folder(self) -> Path:
        place = RESULTS / self.scale / "gans" / self.spec["dataset"] / slug(self.spec["order"])
        return place / f"{self.spec['gan']['name']}-{digest(self.spec)[:10]}"

    @property
    def dataset(self) -> str:
        return self.spec["dataset"]

    def file(self, seed: int) -> Path:
        return self.folder / f"{block_name(range(seed, seed + 1))}.npz"

    def stream(self, seed: int) -> Path:
        return stream_path(self.scale, self.dataset, self.spec["order"], seed)


@functools.lru_cache(maxsize=2)
def shared(plan: Plan) -> dict[str, Gans]:
    """All GANs of a plan, by the digest of their `spec`."""
    found: dict[str, Gans] = {}
    timed = {c.hash for t in plan.targets.values() if TIMED & {*t.spec.get("metrics", ())} for _, c in t.cells}
    for cell in plan.cells.values():
        if "gan" in cell.spec["learner"]:
            spec = Gans.key(cell.spec)
            each = found.setdefault(digest(spec), Gans(plan.scale, spec, cell))
            each.seeds.update(seed for block in plan.blocks(cell) for seed in block)
            each.last |= cell.hash in timed
    return found


def of_cell(plan: Plan, cell: Cell) -> Gans | None:
    """The GANs that a cell's learner draws from; None for a learner without."""
    return shared(plan)[digest(Gans.key(cell.spec))] if "gan" in cell.spec["learner"] else None
