"""The trial of a method from outside: a sound one passes every contract, and each broken one is told with its line."""

import sys

import pytest

from clpapers.cli.new import TEMPLATES
from clpapers.runs import checkpoint, trial

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
        checkpoint._classes.cache_clear()
        return [line.removeprefix(f"{file}: ") for line in trial.contracts(file)]

    return of


@pytest.mark.parametrize("text", [(TEMPLATES / "method.py").read_text(), REPLAY], ids=["template", "replay"])
def test_a_sound_method_keeps_every_contract(tried, text):
    said = tried(text)
    assert all(line.startswith(kept) for line, kept in zip(said, KEPT, strict=True))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("import torch\n", "import torch\nnowhere\n", "mine.py:2: NameError: name 'nowhere' is not defined"),
        ("self.memory.write(t)", "self.memory.writ(t)", "mine.py:20: AttributeError: 'Memory' object has no attribute"),
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
        ("self.step(loss)", "raise KeyError", "mine.py:11: KeyError: in observe of mine.py"),
        ("self.step(loss)", "self.scores_of([], x)", "mine.py:11: NotImplementedError: in scores_of of learner.py"),
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
