"""Experience replay from an episodic memory, of so many items of each class of each completed task."""

import torch

from clpapers.runs.device_step import row
from clpapers.runs.learner import Observed, Setting
from clpapers.runs.learners.a_gem import AGEM
from clpapers.runs.losses import cross_entropy

DECLARATION = {
    "like": "a_gem",
    "options": {"new_share": {"enum": ["half", "by_tasks"], "examples": ["half", "by_tasks"]}},
}


class ERByTask(AGEM):
    """ER as in van de Ven et al. 2022 (Nature Machine Intelligence), with the memory of A-GEM.

    memory: per task, read once the task is completed.  replay: as A-GEM draws its replay batch. The step descends the
    weighted mean of both losses. Where classes are restricted, the classes of an item's task compete.

    Parameters
    ----------
    write: as of A-GEM.
    new_share: the weight of new data; replayed data have the rest. `half`: 1/2. `by_tasks`: 1/(tasks seen so far).
    """

    def __init__(self, setting: Setting, *, write: str, new_share: str):
        super().__init__(setting, write=write)
        self.by_tasks = new_share == "by_tasks"

    def observe(self, t: int, x: torch.Tensor, y: torch.Tensor) -> Observed:
        logits = self.net(x)
        loss = new_loss = self.loss(t, logits, y)
        if self.task[t]:
            x_r, y_r, allowed = self.memory.read(self.filled.gather(1, row(self.draws, t, first=self.start)))
            replayed = self.net(x_r)
            if allowed is not None:
                replayed = replayed.masked_fill(~allowed, -torch.inf)
            share = 1 / (1 + int(self.task[t])) if self.by_tasks else 0.5
            loss = share * new_loss + (1 - share) * cross_entropy(replayed, y_r, self.weight)
        self.step(loss)
        return Observed(new_loss, logits)

    def report(self, s: int) -> dict:
        """For each task `memory`, its items in the memory."""
        return {"memory": super().report(s)["memory"]}
