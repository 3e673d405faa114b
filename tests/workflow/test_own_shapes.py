"""A method of one's own of each shape, built beside a paper's own."""

import pytest
from project import ROOT

pytestmark = pytest.mark.workflow

HEAD = """\
import copy
import torch
from clpapers import Learner, Observed, Replay
from clpapers.runs.losses import cross_entropy
from clpapers.runs.memories import Draws
"""
STEP = """
    def observe(self, t, x, y):
        logits = self.net(x)
        loss = self.loss(t, logits, y)
        self.step({loss})
        return Observed(loss, logits)
"""
SHAPES = {
    # looks at task changes
    "distils": (ROOT / "examples/stacked/lwf.py").read_text(encoding="utf-8"),
    # has one seed and plain tensors, a memory, task changes and answers of its own
    "plain": """\
import torch
import torch.nn.functional as F
from clpapers import Method


class Mine(Method):
    def __init__(self, *, weight: float = 0.5):
        self.weight, self.tasks = weight, 0

    def begin_task(self):
        self.tasks += 1

    def observe(self, x, y):
        loss = F.cross_entropy(self.net(x), y)
        if len(self.memory):
            old_x, old_y = self.memory.draw()
            loss = loss + self.weight * F.cross_entropy(self.net(old_x), old_y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.memory.add(x, y)

    def predict(self, x):
        return self.net(x) / self.tasks
""",
    # looks at the tasks of items: a bias of its own for each
    "by_task": HEAD
    + 'DECLARATION = {"options": {}, "uses": ["changes", "tasks"], "answers_by_task": True}\n'
    + """
class Mine(Learner):
    def __init__(self, setting):
        super().__init__(setting)
        self.bias = torch.zeros_like(setting.task_classes, dtype=setting.images.dtype).requires_grad_()
        self.seeds = torch.arange(len(setting.seeds), device=setting.items.device)[:, None]
        self.optimizer = self.optimize([*self.parameters, self.bias])

    def scores(self, x, tasks):
        return self.net(x) + self.bias[self.seeds, tasks]

    def observe(self, t, x, y):
        logits = self.scores(x, self.setting.tasks[:, self.setting.step(t)])
        loss = self.loss(t, logits, y)
        self.step(loss)
        return Observed(loss, logits)
""",
    # restricts the classes that compete
    "masks": HEAD
    + 'DECLARATION = {"options": {"weight": {"type": "number", "default": 0.5}}, "uses": ["competing"],\n'
    + '               "grid": {"learner.weight": [0.5, 1.0]}}\n\n\nclass Mine(Learner):\n'
    + "    def __init__(self, setting, *, weight):\n        super().__init__(setting)\n        self.weight = weight\n"
    + STEP.format(loss="self.weight * loss"),
    # keeps a memory of classes
    "remembers": HEAD
    + 'DECLARATION = {"options": {}, "memory_of_classes": True, "keeps": "some items"}\n'
    + """
class Mine(Replay):
    policy = "class_balanced"

    def __init__(self, setting):
        super().__init__(setting)
        self.replay = Draws(self.memory, setting.budget["replay_batch"])

    def observe(self, t, x, y):
        logits, drawn = self.net(x), self.replay(t)
        loss = total = self.loss(t, logits, y)
        if drawn is not None:
            total = loss + cross_entropy(self.net(drawn.x), drawn.y, drawn.weight)
        self.step(total)
        self.memory.write(t)
        return Observed(loss, logits)
""",
    # grows with every task
    "grows": HEAD
    + 'DECLARATION = {"options": {}, "uses": ["changes"], "grows": True}\n'
    + """
class Mine(Learner):
    def __init__(self, setting):
        super().__init__(setting)
        self.more = []

    def task_change(self, t):
        sizes = len(self.setting.seeds), 1, self.classes
        self.more.append(torch.zeros(sizes, dtype=self.setting.images.dtype, device=self.setting.items.device))

    def scores(self, x, tasks):
        return self.net(x) + sum(self.more)

    def observe(self, t, x, y):
        logits = self.net(x) + sum(self.more)
        loss = self.loss(t, logits, y)
        self.step(loss)
        for each in self.more:
            each += 1e-3
        return Observed(loss, logits)
""",
    # has no gradient: the class whose mean is nearest
    "means": HEAD
    + 'DECLARATION = {"options": {}, "own_nets": True, "answers_first": False}\n'
    + """
class Mine(Learner):
    def __init__(self, setting):
        super().__init__(setting)
        size = len(setting.seeds), self.classes, setting.images.pixels[0].numel()
        self.sums = torch.zeros(size, dtype=setting.images.dtype, device=setting.items.device)
        self.counts = torch.zeros((*size[:2], 1), dtype=setting.images.dtype, device=setting.items.device)

    def observe(self, t, x, y):
        x = x.flatten(2)
        self.sums.scatter_add_(1, y[..., None].expand(x.shape), x)
        self.counts.scatter_add_(1, y[..., None], torch.ones_like(x[..., :1]))
        return Observed()

    def scores(self, x, tasks):
        return -torch.cdist(x.flatten(2), self.sums / self.counts.clamp(min=1))

    def needed_to_answer(self):
        return [self.sums, self.counts]
""",
}


def test_a_paper_is_built_with_them(built, tmp_path):
    """A row for each; in which papers of the project each fits, `tests/config/test_own_plans.py` plans."""
    for names in (["masks", "remembers", "means", "plain"], ["distils", "by_task", "grows"]):
        files = [tmp_path / f"{name}.py" for name in names]
        for file in files:
            file.write_text(SHAPES[file.stem], encoding="utf-8")
        done = built.snakemake("all", "--cores", "2", "--config", f"methods=[{', '.join(map(str, files))}]")
        assert done.returncode == 0, done.stdout[-3000:]
        assert "Traceback" not in done.stdout
        table = (built.folder / "results/mini/targets/mini/table1.md").read_text(encoding="utf-8")
        assert all(name.replace("_", r"\_") + " §" in table for name in names)
