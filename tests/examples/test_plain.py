"""The examples in the class for authors: each in all papers at smoke scale, and each by its formulae."""

import ast
import io
import itertools
import math
import re
from contextlib import chdir, redirect_stderr
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from tiny import CPU, MLP, Way, images, made, two_tasks

from clpapers.budget import costs, rehearsals
from clpapers.config.plan import Plan
from clpapers.config.schemas import schema
from clpapers.config.settings import project_papers
from clpapers.graph import user_methods
from clpapers.report import method_names
from clpapers.runs import contract_check, loop
from clpapers.runs.method import Method

ROOT = Path(__file__).parents[2]
FILES = {file.stem: file for file in sorted((ROOT / "examples").glob("*.py"))}
NAMES = {"Method", "begin_task", "observe", "end_task", "predict", "net", "optimizer", "memory"}
FURTHER = {"loss", "masked", "optimize", "classes", "budget"}


@pytest.fixture(scope="module")
def plan():
    with chdir(ROOT):
        yield Plan("smoke", project_papers(), methods=[str(file) for file in FILES.values()])


def smallest(plan, paper, label):
    """The cell of a method in a paper with the fewest pixels; of searched values the first that is tried."""
    targets = [target for target in plan.targets.values() if target.paper == paper]
    found = [cell for target in targets for _, cell in target.cells if "selection" not in cell.spec]
    found += [cell for target in targets for _, search in target.selections for _, cell in search.points]

    def pixels(cell):
        size = costs.sizes(plan, cell.spec["dataset"])
        return (cell.spec["order"].get("length") or size.train) * math.prod(size.shape)

    return min((cell for cell in found if cell.spec["learner"]["name"] == label), key=pixels)


@pytest.mark.parametrize("paper", project_papers())
@pytest.mark.parametrize("label", FILES)
def test_it_trains_in_every_paper(plan, paper, label):
    """In the smallest cell there, on random images of its data set's form: every step and every test."""
    cell = smallest(plan, paper, label)
    size = costs.sizes(plan, cell.spec["dataset"])
    data = rehearsals.noise(size, features="features" in plan.datasets[cell.spec["dataset"]])
    stream = costs.stream_of(cell.spec["order"], size, 0, data.train_y)
    with redirect_stderr(io.StringIO()):
        (found,) = loop.train(cell.spec, data, {0: stream}, CPU)
    assert found["steps"] == len(found["online"]["correct"])
    assert found["diverged"] is None
    right, total = (sum(found["test"]["none"][key]) for key in ("correct", "total"))
    assert 0 <= right <= total > 0


@pytest.mark.parametrize("label", FILES)
def test_it_keeps_every_contract_is_short_and_uses_eight_names_at_most(label):
    assert len(list(contract_check.contracts(FILES[label]))) == 3
    nodes = list(ast.walk(ast.parse(FILES[label].read_text())))
    texts = [node for node in nodes if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)]
    assert len({node.lineno for node in nodes if isinstance(node, ast.stmt) and node not in texts}) <= 30
    used = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    used |= {node.attr for node in nodes if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self"}
    assert len(used & (NAMES | FURTHER)) + 1 <= 8


class Walk(Way):
    """An example on its way along a small stream."""

    def __init__(self, label, **options):
        data = images()
        file = ROOT / f"examples/{label}.py"
        spec = two_tasks({"name": file.stem, "file": str(file), **options}, MLP)
        super().__init__(spec, data, [made(spec, data)])
        self.method = getattr(self.learner, "method", None)  # of one seed

    def steps(self):
        """Take the steps in turn; yields each batch before its step."""
        for t in range(len(self.changes)):
            x, y = self.batch(t)
            if self.changes[t]:
                self.learner.task_change(t)
            yield x[0], y[0]
            self.learner.observe(t, x, y)

    def parameters(self):
        return [p.detach().clone() for p in self.method.net.parameters()]

    def assert_descends(self, loss_of):
        """Each step is plain descent on a loss of its batch."""
        wanted = self.parameters()
        for x, y in self.steps():
            torch.testing.assert_close(self.parameters(), wanted)
            own = list(self.method.net.parameters())
            wanted = [p - 0.1 * g for p, g in zip(own, torch.autograd.grad(loss_of(x, y), own))]
        torch.testing.assert_close(self.parameters(), wanted)


def test_slda_s_means_and_covariance_are_those_of_all_items():
    """The covariance is the mean of what each item is off its class's mean so far, eq. 2 there."""
    walk = Walk("slda")
    z, y = map(torch.cat, zip(*[(walk.method.net.features(x).detach(), y) for x, y in walk.steps()]))
    means, counts, covariance = z.new_zeros(4, z.shape[1]), [0] * 4, z.new_zeros(z.shape[1], z.shape[1])
    for t, (each, c) in enumerate(zip(z, y)):
        off = each - means[c]
        covariance = (t * covariance + t / (t + 1) * torch.outer(off, off)) / (t + 1)
        counts[c] += 1
        means[c] = z[: t + 1][y[: t + 1] == c].mean(0)
    torch.testing.assert_close(walk.method.means, means)
    torch.testing.assert_close(walk.method.covariance, covariance)
    precision = torch.linalg.inv((1 - 1e-4) * covariance + 1e-4 * torch.eye(len(covariance)))
    scores = z @ precision @ means.T - torch.diag(means @ precision @ means.T) / 2
    x = walk.setting.images(walk.setting.items[0])
    with walk.learner.evaluation():
        torch.testing.assert_close(walk.learner.predicted(x), scores)


def test_the_nearest_mean_answers_and_no_class_unseen():
    walk = Walk("nearest_mean")
    for x, _ in walk.steps():
        scores = walk.learner.predicted(x).detach()
        unseen = walk.method.counts == 0
        assert scores[:, unseen].isinf().all()
        assert scores[:, ~unseen].isfinite().all()
    assert walk.method.counts.sum() == 80


def test_der_pp_s_loss_by_hand():
    """With a memory of one item both draws are this item, whose logits are those that it had when it came."""
    walk = Walk("der_pp", alpha=0.3, beta=0.7)
    net, memory = walk.method.net, walk.method.memory
    memory.capacity = 1

    def loss(x, y):
        own = F.cross_entropy(net(x), y)
        if not len(memory):
            return own
        old_x, old_y, old_z = memory.kept
        answers = net(old_x)
        return own + 0.3 * (answers - old_z).square().mean() + 0.7 * F.cross_entropy(answers, old_y)

    walk.assert_descends(loss)


def test_lwf_is_that_of_stacks():
    one, other = (Walk(label, strength=0.7, temperature=3.0) for label in ("lwf", "stacked/lwf"))
    torch.testing.assert_close(list(one.walk().method.net.parameters()), other.walk().parameters)
    assert one.changes.any()


def test_the_cosine_schedule_ends_at_zero_and_clips():
    walk, rates = Walk("cosine", rate=0.2, momentum=0.0, clip=1e-3), []
    before = walk.parameters()
    for _ in walk.steps():
        rates.append(walk.method.optimizer.param_groups[0]["lr"])
    steps = len(rates)
    torch.testing.assert_close(rates, [0.1 * (1 + math.cos(math.pi * t / steps)) for t in range(steps)])
    moved = torch.cat([(p - q).flatten() for p, q in zip(walk.parameters(), before)]).norm()
    assert 0 < moved <= 1e-3 * sum(rates)


def test_the_teacher_is_the_moving_average():
    walk = Walk("mean_teacher", decay=0.9)
    average = walk.parameters()
    for t, _ in enumerate(itertools.chain(walk.steps(), [None])):
        if t:
            average = [0.9 * a + 0.1 * p for a, p in zip(average, walk.parameters())]
    torch.testing.assert_close([p.detach() for p in walk.method.teacher.parameters()], average)


def test_an_expanding_net_adds_an_expert_a_task_and_earlier_ones_stay():
    walk, first = Walk("expanding"), None
    for t, _ in enumerate(walk.steps()):
        experts = walk.method.experts
        assert len(experts) == 1 + int(walk.changes[: t + 1].sum())
        if len(experts) == 2 and first is None:
            first = [p.detach().clone() for p in experts[0].parameters()]
    assert all(torch.equal(a, b) for a, b in zip(first, experts[0].parameters()))
    assert not torch.equal(first[0], next(experts[1].parameters()))


def test_the_page_of_names_is_what_the_docstrings_say(monkeypatch):
    """Thirteen names; the budget's keys are those of the papers."""
    monkeypatch.chdir(ROOT)
    page = method_names.page()
    budget = {*schema("paper")["$defs"]["budget"]["properties"], "steps"} - {"memory_per_class"}  # it becomes `memory`
    listed = page.partition("The budget has these keys:")[2].partition("###")[0]
    assert set(re.findall(r"^- `(\w+)`", listed, re.MULTILINE)) == budget
    assert all(f"`{name}" in page for name in NAMES | FURTHER)
    public = {name for name in (*vars(Method), *Method.__annotations__) if not name.startswith("_")}
    assert public == NAMES - {"Method"} | FURTHER


def test_what_the_guide_shows_keeps_every_contract(tmp_path):
    shown = re.search(r"```python\n(.*?)```", (ROOT / "docs/own_method.md").read_text(encoding="utf-8"), re.DOTALL)[1]
    file = tmp_path / "shown.py"
    file.write_text(shown)
    user_methods.check(file)
    assert len(list(contract_check.contracts(file))) == 3
