"""iCaRL task by task whose herding and answers are made in training mode."""

from collections.abc import Iterator

import torch

from clpapers.runs.learner import Setting
from clpapers.runs.learners.icarl import ICaRL, Softmax

DECLARATION = {
    "options": {"strength": {"type": "number", "minimum": 0, "examples": [1.0]}},
    "uses": ["changes", "tasks", "competing"],
    "stackable": False,  # as iCaRL
}


class ICaRLInTraining(ICaRL):
    """iCaRL of `agem`, Table 4, in three more respects as GEM's authors' code (`model/icarl.py`) has it.

    At the end of a task the net stays in training mode. It passes the images of one class at a time, so that batch
    statistics are that class's, and running statistics follow them. Each choice of an exemplar sums the logits of those
    chosen before, as their own batch. The answers for distillation are stored then, class by class. Classes of earlier
    tasks keep all their exemplars: only a new class has m = ⌊budget / classes seen⌋, so that more than the budget is
    held from the second task on.

    Parameters
    ----------
    strength: λ, as of iCaRL's `Softmax`.
    """

    objective: "Stored"

    def __init__(self, setting: Setting, *, strength: float):
        super().__init__(setting, loss={"name": "softmax", "strength": strength}, space="logits", exemplars="task")
        self.objective = Stored(self, strength=strength)

    @torch.no_grad()
    def choose(self, t: int, *, herded: bool = True) -> None:
        super().choose(t, herded=herded)
        self.objective.store(t)

    def shorten(self, m: int) -> None:
        """Nothing: old classes keep all their exemplars."""

    def herded(self, t: int, pools: list[torch.Tensor], m: int) -> Iterator[torch.Tensor]:
        competing = self.competing(t)
        for pool in pools:
            mean = self.live(pool)[:, competing].mean(dim=0)
            points = self.live(pool)[:, competing]  # a second pass, as there: it moves running statistics
            chosen = torch.empty(0, dtype=torch.int64, device=pool.device)
            for k in range(min(m, len(pool))):
                before = self.live(pool[chosen])[:, competing].sum(dim=0) if k else 0
                distance = (mean - (points + before) / (k + 1)).norm(dim=1)
                distance[chosen] = torch.inf
                chosen = torch.cat([chosen, distance.argmin()[None]])
            yield pool[chosen]

    def live(self, items: torch.Tensor) -> torch.Tensor:
        """The logits [N, K] of items [N], one batch in training mode."""
        return self.net(self.setting.images(items[None]))[0]


class Stored(Softmax):
    """iCaRL's `Softmax`, whose answers are stored at the end of a task, by `store`."""

    learner: ICaRLInTraining

    def task_change(self, t: int) -> None:
        """Nothing."""

    def store(self, t: int) -> None:
        """Store the answers to all exemplars after step t."""
        exemplars = self.learner.exemplars
        self.past.append(([c for c in exemplars if c not in self.then], self.learner.competing(t)))
        self.then = {c: (items, self.learner.live(items)) for c, items in exemplars.items()}
