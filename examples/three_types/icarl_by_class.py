"""iCaRL with as many exemplars of each class throughout, which join the data of later tasks."""

import torch
import torch.nn.functional as F

from clpapers.randomness import generator
from clpapers.runs.images import joined
from clpapers.runs.learner import Setting
from clpapers.runs.learners.icarl import Binary, ICaRL

DECLARATION = {
    "options": {"temperature": {"type": "number", "exclusiveMinimum": 0, "default": 2.0}},
    "uses": ["changes", "tasks", "competing"],
    "stackable": False,
    "needs": {"oracle.name": ["chunks"]},
}


class ICaRLByClass(ICaRL):
    """iCaRL. Rebuffi et al. 2017, in four respects as the code of van de Ven et al. 2022 (e6d795a) has it.

    Each class keeps the budget's memory divided by all classes, from its task on; of its task's items alone, after the
    task. Exemplars are mixed with the items of later tasks, so that a batch holds the share of them that the data do.

    temperature: of the targets for old classes.
    """

    def __init__(self, setting: Setting, *, temperature: float):
        loss = {"name": "binary", "temperature": temperature}
        super().__init__(setting, loss=loss, space="features", exemplars="task")
        self.budget = setting.budget["memory"] // self.classes  # of a class
        self.objective = Mixed(self, temperature=temperature)

    def choose(self, t: int, *, herded: bool = True) -> None:
        mine, self.budget = self.budget, self.budget * len(self.classes_until(t))
        super().choose(t, herded=herded)  # which divides it among the classes seen
        self.budget = mine

    def classes_until(self, t: int) -> list[int]:
        """The classes seen up to step t."""
        return self.setting.labels[0, : self.setting.step(t).stop].unique().tolist()


class Mixed(Binary):
    """iCaRL's `Binary` on batches in which exemplars take the places of some items of the stream.

    An item is an exemplar with the share that exemplars have among the task's items and them.
    """

    def __init__(self, learner: ICaRLByClass, *, temperature: float):
        super().__init__(learner, temperature=temperature)
        self.rng = generator(learner.setting.seeds[0], "mixed exemplars")
        self.own = 0  # distinct items of the task

    def task_change(self, t: int) -> None:
        super().task_change(t)
        setting = self.learner.setting
        self.own = len(setting.items[0, setting.tasks[0] == setting.tasks[0, setting.step(t).start]].unique())

    def __call__(self, t: int, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        learner, b, kept = self.learner, x.shape[1], x.shape[1]
        all_x, all_y = x, y
        if self.own:
            exemplars, labels = torch.cat(list(learner.exemplars.values())), learner.labels_of_exemplars()
            drawn = self.rng.permutation(len(exemplars))
            drawn = drawn[: self.rng.binomial(b, len(drawn) / (len(drawn) + self.own))]
            places, kept = torch.from_numpy(drawn).to(y.device), b - len(drawn)
            all_x = joined(x, learner.setting.images(exemplars[None, places]))
            all_y = torch.cat([y, labels[None, places]], dim=1)
        logits = learner.net(all_x)
        target = F.one_hot(all_y, learner.classes).to(x.dtype)
        if self.old is not None:
            with torch.no_grad():
                target[..., self.known] = torch.sigmoid(self.old(all_x)[..., self.known] / self.temperature)
        each = F.binary_cross_entropy_with_logits(logits, target, reduction="none").sum(dim=2)
        loss = torch.cat([each[:, :kept], each[:, b:]], dim=1).mean(dim=1)  # exemplars for the batch's last items
        return loss, each[:, :b].mean(dim=1), logits[:, :b]
