"""Averaged gradient episodic memory whose reference loss tells apart the classes of all completed tasks."""

import torch

from clpapers.runs.device_step import row
from clpapers.runs.learners.a_gem import AGEM

DECLARATION = {"like": "a_gem"}


class AGEMAllClasses(AGEM):
    """A-GEM as its authors' code had it before 9 December 2018: a reading of `agem`, eq. 10.

    Where classes are restricted at all, the classes of all completed tasks compete in the loss on the replay batch, and
    not an item's own task's alone. The stream's loss is A-GEM's.

    Parameters
    ----------
    write: as of A-GEM.
    """

    def references(self, t: int) -> list[torch.Tensor]:
        x, y, allowed = self.memory.read(self.filled.gather(1, row(self.draws, t, first=self.start)))
        if allowed is not None:
            allowed = self.setting.task_classes[:, : self.task[t]].any(dim=1)[:, None]
        gradient = self.reference(x, y, allowed, self.weight)
        return [each[:, None] for each in self.rows(gradient)]
