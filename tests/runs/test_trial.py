"""The trial of a method from outside: a sound one passes every contract, and each broken one is told with its line."""

import sys

import pytest

from clpapers.cli.new import TEMPLATES
from clpapers.runs import trial

REPLAY = """\
import torch
from clpapers import Observed, Replay
from clpapers.runs.losses import cross_entropy
from clpapers.runs.memories import Draws

DECLARATION = {"options": {"weight": {"type": "number", "default": 0.5}}}


class Mine(Replay):
    def __init__(self, setting, *, weight):
        super().__init__(setting)
        self.weight, self.replay = weight, Draws(self.memory, setting.budget["replay_batch"])

    def observe(self, t, x, y):
        logits = self.net(x)
        loss, replay = cross_entropy(logits, y), self.replay(t)
        if replay is not None:
            loss = loss + self.weight * cross_entropy(self.net(replay.x), replay.y, replay.weight)
        self.step(loss)
        self.memory.write(t)
        return Observed(loss, logits)
"""
KEPT = ["it learns 2 streams", "twice the same bytes", "a seed alone is as it is", "killed and gone on with"]


@pytest.fixture
def tried(tmp_path):
    """Try a method's text."""

    def of(text):
        file = tmp_path / "mine.py"
        file.write_text(text)
        sys.modules.pop("clpapers.runs.learners.mine", None)
        return [line.removeprefix(f"{file}: ") for line in trial.contracts(file)]

    return of


@pytest.mark.parametrize("text", [(TEMPLATES / "method.py").read_text(), REPLAY], ids=["template", "replay"])
def test_a_sound_method_keeps_every_contract(tried, text):
    said = tried(text)
    assert all(line.startswith(kept) for line, kept in zip(said, KEPT, strict=True))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("import torch\n", "import torch\nnowhere\n", "mine.py:2: reading it: NameError: name 'nowhere'"),
        ("self.memory.write(t)", "self.memory.writ(t)", "mine.py:20: learning: AttributeError: 'Memory' object"),
        ("*, weight)", "*, strength)", "mine.py:9: Mine takes 'strength', which its declaration has not"),
        ("*, weight)", "*, other=1)", "mine.py:9: Mine does not take 'weight', which is declared"),
        ("loss = loss + ", "loss = loss.mean() + ", "mine.py: a seed depends on those beside it"),
        ("self.step(loss)", "self.step(loss * (1 + torch.rand(1).item()))",
         "mine.py: twice trained alike, it ends otherwise"),
        ("    def observe", "    def task_change(self, t):\n        self.weight /= 2\n\n    def observe",
         "mine.py:9: Mine has a task_change that is never called"),
        ("        self.step(loss)",
         "        globals().setdefault('n', []).append(t)\n        self.step(loss * (len(n) < 20))",
         "mine.py: twice trained alike, it ends otherwise"),
    ],
)  # fmt: skip
def test_a_contract_that_is_broken_is_told_in_one_line(tried, old, new, told):
    assert old in REPLAY
    with pytest.raises(trial.Broken) as broken:
        tried(REPLAY.replace(old, new, 1))
    assert told in str(broken.value)
    assert "\n" not in str(broken.value)


def test_what_no_small_problem_has_is_not_tried(tried):
    assert tried(REPLAY.replace('"options"', '"needs": {"net.name": ["resnet18"]}, "options"'))[0].startswith(
        "not tried"
    )


OBSERVE = """\
import torch
from clpapers import Learner, Observed

DECLARATION = {"options": {}}


class Mine(Learner):
    def observe(self, t, x, y):
        logits = self.net(x)
        loss = self.loss(t, logits, y)
        self.step(loss)
        return Observed(loss, logits)
"""


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (OBSERVE[OBSERVE.index("    def observe"):], "    pass\n",
         "mine.py:7: Mine has no observe; write observe(self, t, x, y), one step"),
        ("        return Observed(loss, logits)\n", "",
         "mine.py:8: observe returns NoneType; return Observed(loss, logits)"),
        ("return Observed(loss, logits)", "return loss",
         "mine.py:8: observe returns Tensor; return Observed(loss, logits)"),
        ("Observed(loss, logits)", "Observed(loss.mean(), logits)",
         "mine.py:8: observe returns loss of []; there are 2 seeds, return [2] or None"),
        ("Observed(loss, logits)", "Observed(0.0, logits)", "mine.py:8: observe returns loss of float; "),
        ("Observed(loss, logits)", "Observed(loss, logits[0])", "return [2, 5, 4] or None"),
        ("self.step(loss)", "raise KeyError", "mine.py:11: learning: KeyError: in observe of mine.py"),
        ("self.step(loss)", "self.scores_of([], x)", "mine.py:11: learning: NotImplementedError: in scores_of"),
    ],
)  # fmt: skip
def test_a_step_that_answers_otherwise_is_told_in_one_line(tried, old, new, told):
    assert old in OBSERVE
    with pytest.raises(trial.Broken) as broken:
        tried(OBSERVE.replace(old, new, 1))
    assert told in str(broken.value)
    assert "\n" not in str(broken.value)


def test_a_loss_that_diverges_is_told_with_its_step(tried):
    said = tried(OBSERVE.replace("self.step(loss)", "self.step(loss * (1.0 if t < 3 else 1e300))"))
    assert said[1] == "its loss is no finite number from step 4 on there, at a learning rate of 0.1"
    assert len(said) == 5


@pytest.mark.parametrize(
    "optimizer",
    [
        "Adam(self.parameters, lr=0.01)",
        "AdamW(self.net.parameters(), amsgrad=True)",
        "SGD(self.parameters, lr=0.1, momentum=0.9, nesterov=True)",
        "RMSprop([{'params': self.parameters[:1]}, {'params': self.parameters[1:], 'lr': 0.1}])",
        "Adagrad(self.parameters)",
    ],
)
@pytest.mark.parametrize("schedule", ["StepLR(self.own, 3, 0.5)", "CosineAnnealingLR(self.own, 10)"])
def test_the_state_of_an_optimiser_of_pytorch_is_kept(tried, optimizer, schedule):
    text = OBSERVE.replace(
        "    def observe",
        "    def __init__(self, setting):\n"
        "        super().__init__(setting)\n"
        f"        self.own = torch.optim.{optimizer}\n"
        f"        self.schedule = torch.optim.lr_scheduler.{schedule}\n\n"
        "    def observe",
    )
    stepped = (
        "self.own.zero_grad()\n        loss.sum().backward()\n        self.own.step()\n        self.schedule.step()"
    )
    assert tried(text.replace("self.step(loss)", stepped))[-1] == "killed and gone on with, it ends in the same bytes"


def with_state(begin, step):
    """A method that begins with some state and uses it in each step."""
    init = f"    def __init__(self, setting):\n        super().__init__(setting)\n        {begin}\n\n    def observe"
    return OBSERVE.replace("    def observe", init).replace("self.step(loss)", step)


@pytest.mark.parametrize(
    ("begin", "step"),
    [
        ("self.seen = 0", "self.seen += 1\n        self.step(loss / self.seen)"),
        ("self.kept = []", "self.kept.append(x)\n        self.step(loss * self.kept[t // 2].mean((1, 2, 3, 4)))"),
        ("self.mean = None", "self.mean = x if self.mean is None else (self.mean + x) / 2\n"
         "        self.step(loss + self.mean.mean())"),
        ("self.rule = self.optimizer.descend", "self.rule(loss)"),
        ("self.rng = torch.Generator().manual_seed(3)",
         "self.step(loss * torch.rand(1, generator=self.rng, dtype=loss.dtype))"),
        ("self.teacher = __import__('copy').deepcopy(self.net)",
         "for one, other in zip(self.teacher.parameters(), self.parameters):\n"
         "            one.data.lerp_(other.data, 0.1)\n"
         "        self.step(loss + (self.teacher(x).detach() - logits).square().mean((1, 2)))"),
        ("self.own = torch.optim.LBFGS(self.parameters, lr=0.1, max_iter=3)",
         "def closure():\n"
         "            self.own.zero_grad()\n"
         "            again = self.loss(t, self.net(x), y).sum()\n"
         "            again.backward()\n"
         "            return again\n"
         "        self.own.step(closure)"),
    ],
    ids=["counter", "list", "lazy tensor", "bound method", "generator", "teacher", "LBFGS"],
)  # fmt: skip
def test_state_that_changes_is_kept_as_it_is(tried, begin, step):
    text = with_state(begin, step)
    if "LBFGS" in begin:
        text = text.replace('"options"', '"stackable": False, "options"')
    assert tried(text)[-1] == "killed and gone on with, it ends in the same bytes"


@pytest.mark.parametrize(
    "text",
    [
        OBSERVE.replace("import torch", "import torch\nSEEN = []").replace(
            "        self.step(loss)",
            "        if t == 0:\n            SEEN.clear()\n        SEEN.append(t)\n        self.step(loss / len(SEEN))",
        ),
        OBSERVE.replace('"options"', '"stackable": False, "options"').replace(
            "        self.step(loss)",
            "        if t == 0:\n            torch.manual_seed(self.setting.seeds[0])\n"
            "        self.step(loss * torch.rand(1, dtype=loss.dtype))",
        ),
    ],
    ids=["module's list", "torch's own generator"],
)
def test_state_outside_the_object_is_refused(tried, text):
    """It would be lost with the process."""
    with pytest.raises(trial.Broken, match="gone on with in another process, it ends otherwise"):
        tried(text)


def test_an_attribute_that_no_checkpoint_holds_is_named(tried):
    said = tried(with_state("self.rate = lambda t: 1 / (1 + t)", "self.step(loss * self.rate(t))"))
    assert said[-1].startswith("a killed run of it starts over: learner.rate is a lambda")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (with_state("self.seen = 0", "self.step(loss)").replace("        super().__init__(setting)\n", ""), 8),
        (with_state("self.seen = self.nett", "self.step(loss)"), 10),
        (OBSERVE.replace("self.step(loss)", "self.step(logits @ logits)"), 11),
    ],
    ids=["no super", "in the constructor", "in a step"],
)
def test_an_error_names_the_line_that_is_to_be_mended(tried, text, line):
    with pytest.raises(trial.Broken) as broken:
        tried(text)
    assert f"mine.py:{line}: learning: " in str(broken.value)
