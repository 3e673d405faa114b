"""Progressive networks."""

import copy
from collections.abc import Sequence

import torch

from clpapers.runs.learner import Learner, Observed, Setting
from clpapers.runs.nets.progressive import Column, Heights, Tower

DECLARATION = {
    "options": {},
    "uses": ["changes", "tasks", "competing"],
    "needs": {"budget.optimizer": ["sgd"], "net.name": ["mlp", "resnet18_reduced", "resnet18"]},
    "tasks_once": True,
    "answers_by_task": True,
    "past_tasks_frozen": True,
    "own_nets": True,
}

AHEAD = 32  # steps


class ProgNN(Learner):
    """PROG-NN. Rusu et al. 2016, as in the A-GEM authors' code: a column of full width, with a head, for each task.

    A task trains its column and the laterals into it from all earlier columns, which are frozen. An image is answered
    by its task's column. As in the authors' code, all columns exist from the start, so that an untrained column answers
    for a task not yet begun, with laterals from the untrained columns in between.

    Needs tasks numbered in the order in which they come, and plain descent (`progressive.Repeated`).
    """

    net: Tower  # type: ignore[assignment]  # which takes the earlier columns' inputs too

    def __init__(self, setting: Setting):
        super().__init__(setting)
        steps = setting.tasks.diff(dim=1)
        if setting.tasks[:, 0].any() or ((steps < 0) | (steps > 1)).any():
            raise ValueError("progressive networks need tasks that come one after another, numbered as they come")
        columns = []
        for task in range(setting.task_count):
            spec = {"name": "progressive", "net": setting.spec, "earlier": task}
            column = setting.net(f"init {task}" if task else "init", net=spec).net
            assert isinstance(column, Column)
            columns.append(column)
        self.net = Tower(columns).train()
        # Frozen columns do not mix images, so several batches pass them together, unless maps would fill the memory.
        self.ahead = AHEAD if setting.spec["name"] == "mlp" else 1
        self.begin(0)

    def begin(self, task: int) -> None:
        """Make this task's column the only learning one."""
        self.net.begin(task)
        self.parameters = list(self.net.columns[task].parameters())
        self.optimizer = self.optimize(self.parameters)
        self.known: dict[int, Heights] = {}  # by step

    def task_change(self, t: int) -> None:
        self.optimizer.zero_grad()
        self.begin(int(self.setting.tasks[0, self.setting.step(t).start]))

    def observe(self, t: int, x: torch.Tensor, y: torch.Tensor) -> Observed:
        logits = self.net(x, self.before(t))
        loss = self.loss(t, logits, y)
        self.step(loss)
        return Observed(loss, logits)

    def before(self, t: int) -> Heights:
        """The frozen columns' inputs to the levels, for the batch of step t."""
        if t not in self.known:
            slices = [self.setting.step(n) for n in range(t, min(t + self.ahead, len(self.setting.ends)))]
            images = self.setting.images(self.setting.items[:, slices[0].start : slices[-1].stop])
            sizes = [each.stop - each.start for each in slices]
            levels = [[None] * len(sizes) if h is None else h.split(sizes, dim=1) for h in self.net.before(images)]
            self.known = {t + i: [level[i] for level in levels] for i in range(len(sizes))}
        return self.known[t]

    def scores(self, x: torch.Tensor, tasks: torch.Tensor) -> torch.Tensor:
        present = tasks.unique()
        logits = self.net.answers(x, present.tolist())
        chosen = torch.searchsorted(present, tasks.contiguous())[..., None, None].expand(-1, -1, self.classes, 1)
        return logits.gather(3, chosen)[..., 0]

    def snapshot(self, task: int) -> Column | None:
        return copy.deepcopy(self.net.column(task)) if task == self.net.top else None

    def scores_of(self, snapshots: Sequence[Column], x: torch.Tensor) -> torch.Tensor:
        return self.net.answers_of(snapshots, x)

    def uncounted(self) -> Sequence[object]:
        return [self.known]

    def report(self, s: int) -> dict:
        counts = [self.net.column(c).count() // len(self.setting.seeds) for c in range(len(self.net.columns))]
        return {"columns": len(counts), "parameters": sum(counts)}
