"""The trial of a method from outside: a sound one passes every contract, and each broken one is told with its line."""

import sys

import pytest
from tiny import CPU, SPLIT, cell

from clpapers.cli.new import TEMPLATES
from clpapers.runs import contract_check, loop
from clpapers.runs.contracts import Broken

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
        return [line.removeprefix(f"{file}: ") for line in contract_check.contracts(file)]

    return of


def assert_kept(said, contracts):
    assert all(line.startswith(kept) for line, kept in zip(said, contracts, strict=True))


def test_a_sound_method_keeps_every_contract(tried):
    assert_kept(tried(REPLAY), KEPT)


def test_the_template_keeps_every_contract_of_one_seed(tried):
    assert_kept(tried((TEMPLATES / "method.py").read_text()), [*KEPT[:2], KEPT[3]])


def test_what_no_small_problem_has_is_not_tried(tried):
    (said,) = tried(REPLAY.replace('"options"', '"needs": {"net.name": ["resnet18"]}, "options"'))
    assert said.startswith("not tried")


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


def test_a_loss_that_diverges_is_told_with_its_step(tried):
    said = tried(OBSERVE.replace("self.step(loss)", "self.step(loss * (1.0 if t < 3 else 1e300))"))
    assert said[1] == "its loss is no finite number from step 4 on there, at a learning rate of 0.1"
    assert len(said) == 5


PLAIN = """\
import torch
import torch.nn.functional as F
from clpapers import Method


class Mine(Method):
    def observe(self, x, y):
        logits = self.net(x)
        loss = F.cross_entropy(logits, y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return logits

    def predict(self, x):
        return self.net(x)
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return logits", "y -= 1\n        y.clamp_(min=0)\n        return logits"),
        ("logits = self.net(x)\n", "logits = self.net(x + 0.1 * torch.randn_like(x))\n"),
        ("return self.net(x)\n", "return self.net(x + 0.1 * torch.randn_like(x))\n"),
        ("return logits", "self.seen = getattr(self, 'seen', 0) + len(y)\n        return logits"),
        ("loss = F", "self.kept = [*getattr(self, 'kept', []), (x, y)]\n"
         "        x, y = self.kept[len(self.kept) // 2]\n        loss = F"),
        ("return self.net(x)\n", "return -torch.cdist(x.flatten(1), torch.ones(4, x[0].numel())).log()\n"),
        ("class Mine", "SIZES = open('/proc/meminfo').read()\n\n\nclass Mine"),
        ("logits = self.net(x)\n", "logits = self.net(x) * getattr(self, 'heard', 1)\n"),
    ],
)  # fmt: skip
def test_what_an_author_writes_anyway_keeps_every_contract(tried, old, new):
    assert old in PLAIN
    assert_kept(tried(new.join(PLAIN.rsplit(old, 1))), [*KEPT[:2], KEPT[3]])


def test_labels_that_a_learner_of_stacks_changes_are_its_own(data, chunked, written):
    """In place and not, it ends in the same answers."""
    found = []
    for change in ("y -= 1\n        y.clamp_(min=0)", "y = (y - 1).clamp(min=0)"):
        mine = written(f"    def observe(self, t, x, y):\n        {change}\n        return super().observe(t, x, y)\n")
        found.append(loop.train(cell("single", {}, "mlp", order=SPLIT) | {"learner": mine}, data, chunked, CPU))
    assert found[0] == found[1]


def with_state(begin, step):
    """A method that begins with some state and uses it in each step."""
    init = f"    def __init__(self, setting):\n        super().__init__(setting)\n        {begin}\n\n    def observe"
    return OBSERVE.replace("    def observe", init).replace("self.step(loss)", step)


def test_an_attribute_that_no_checkpoint_holds_is_named(tried):
    said = tried(with_state("self.rate = lambda t: 1 / (1 + t)", "self.step(loss * self.rate(t))"))
    assert said[-1].startswith("a killed run of it starts over: self.rate is a lambda")


def test_a_step_that_does_not_end_is_told_with_its_line(tried, monkeypatch):
    monkeypatch.setattr(contract_check, "LONGEST", 1)  # instead of a minute
    with pytest.raises(Broken, match=r"mine\.py:12: .* has not ended within 1 s"):
        tried(PLAIN.replace("self.optimizer.step()", "while True: self.optimizer.step()"))
