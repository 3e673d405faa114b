"""The trial of a method from outside: a sound one passes every contract, and each broken one is told with its line."""

import sys

import pytest

from clpapers.cli.new import TEMPLATES
from clpapers.runs import contract_check

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


def test_a_sound_method_keeps_every_contract(tried):
    assert all(line.startswith(kept) for line, kept in zip(tried(REPLAY), KEPT, strict=True))


def test_the_template_keeps_every_contract_of_one_seed(tried):
    said = tried((TEMPLATES / "method.py").read_text())
    assert all(line.startswith(kept) for line, kept in zip(said, [*KEPT[:2], KEPT[3]], strict=True))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("import torch\n", "import torch\nnowhere\n", "mine.py:2: reading it: NameError: name 'nowhere'"),
        ("self.memory.write(t)", "self.memory.writ(t)", "mine.py:20: learning: AttributeError: 'Memory' object"),
        ("*, weight)", "*, strength)", "mine.py:9: Mine takes 'strength', which its declaration has not"),
        ("*, weight)", "*, other=1)", "mine.py:9: Mine does not take 'weight', which is declared"),
        ("loss = loss + ", "loss = loss.mean() + ", "mine.py: a seed depends on those beside it"),
        ("self.step(loss)", "self.step(loss * (1 + torch.rand(1).item()))",
         "mine.py: trained again, and tested twice as often, it ends otherwise"),
        ("    def observe", "    def task_change(self, t):\n        self.weight /= 2\n\n    def observe",
         "mine.py:9: Mine has a task_change that is never called"),
        ("        self.step(loss)",
         "        globals().setdefault('n', []).append(t)\n        self.step(loss * (len(n) < 20))",
         "mine.py: trained again, and tested twice as often, it ends otherwise"),
    ],
)  # fmt: skip
def test_a_contract_that_is_broken_is_told_in_one_line(tried, old, new, told):
    assert old in REPLAY
    with pytest.raises(contract_check.Broken) as broken:
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
        ("Observed(loss, logits)", "Observed(loss.mean(), logits)",
         "mine.py:8: observe returns loss of float64 []; there are 2 seeds, return [2] or None"),
        ("self.step(loss)", "raise KeyError", "mine.py:11: learning: KeyError: in observe of mine.py"),
        ("self.step(loss)", "self.scores_of([], x)", "mine.py:11: learning: NotImplementedError: in scores_of"),
    ],
)  # fmt: skip
def test_a_step_that_answers_otherwise_is_told_in_one_line(tried, old, new, told):
    assert old in OBSERVE
    with pytest.raises(contract_check.Broken) as broken:
        tried(OBSERVE.replace(old, new, 1))
    assert told in str(broken.value)
    assert "\n" not in str(broken.value)


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
    ("old", "new", "told"),
    [
        ("return self.net(x)\n", "return self.net(x).argmax(1)\n", ":15: predict returns int64 ["),
        ("return self.net(x)\n",
         "next(self.net.parameters()).data.add_(1)\n        return self.net(x)\n", ":15: asked twice, predict"),
        ("return self.net(x)\n",
         "self.heard = getattr(self, 'heard', 0) + 1\n        return self.net(x) * self.heard\n",
         ":15: asked twice, predict"),
        ("logits = self.net(x)\n", "logits = self.net(x) * getattr(self, 'heard', 1)\n", None),
        ("return logits", "return loss", ":7: observe returns float64 []"),
        ("def observe(self, x, y)", "def observes(self, x, y)", ":6: Mine has no observe"),
        ("loss.backward()", "loss.backwards()", ":11: learning: AttributeError: 'Tensor' object"),
        ("return logits", "return logits[:, self.setting.tasks]", ":13: learning: AttributeError: "),
        ("class Mine", "WEIGHTS = open(__file__.replace('mine.py', 'beside.txt')).read()\n\n\nclass Mine",
         ":6: it reads "),
        ("logits = self.net(x)\n", "logits = self.net(x) * float(open('beside.txt').read())\n", ":8: it reads "),
    ],
)  # fmt: skip
def test_a_class_of_one_seed_that_breaks_a_contract_is_told_in_one_line(tried, tmp_path, monkeypatch, old, new, told):
    (tmp_path / "beside.txt").write_text("1.0")
    monkeypatch.chdir(tmp_path)
    assert old in PLAIN
    if told is None:
        assert len(tried(PLAIN.replace(old, new, 1))) == 3
        return
    with pytest.raises(contract_check.Broken) as broken:
        tried(PLAIN[::-1].replace(old[::-1], new[::-1], 1)[::-1])
    assert str(broken.value).startswith(f"{tmp_path}/mine.py{told}")
    assert "\n" not in str(broken.value)


def test_what_is_learnt_in_a_test_shows_even_where_that_test_does_not(tried):
    """It answers alike when it is asked twice, and the step after it learns otherwise."""
    text = PLAIN.replace("loss.backward()", "(loss / len(getattr(self, 'heard', 'a'))).backward()")
    text = text.replace(
        "        return self.net(x)\n", "        self.heard = getattr(self, 'heard', 'a') + 'a'\n" + PLAIN[-27:]
    )
    with pytest.raises(contract_check.Broken, match="tested twice as often"):
        tried(text)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return logits", "y -= 1\n        y.clamp_(min=0)\n        return logits"),
        ("logits = self.net(x)\n", "logits = self.net(x + 0.1 * torch.randn_like(x))\n"),
        ("return logits", "self.seen = getattr(self, 'seen', 0) + len(y)\n        return logits"),
        ("loss = F", "self.kept = [*getattr(self, 'kept', []), (x, y)]\n"
         "        x, y = self.kept[len(self.kept) // 2]\n        loss = F"),
        ("return self.net(x)\n", "return -torch.cdist(x.flatten(1), torch.ones(4, x[0].numel())).log()\n"),
        ("class Mine", "SIZES = open('/proc/meminfo').read()\n\n\nclass Mine"),
    ],
)  # fmt: skip
def test_what_an_author_writes_anyway_keeps_every_contract(tried, old, new):
    assert old in PLAIN
    said = tried(PLAIN[::-1].replace(old[::-1], new[::-1], 1)[::-1])
    assert all(line.startswith(kept) for line, kept in zip(said, [*KEPT[:2], KEPT[3]], strict=True))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("loss = self.loss(t, logits, y)", "loss = self.loss(t, logits, y) * self.setting.tasks.sum()",
         ":10: setting.tasks is not there"),
        ("    def observe", "    def scores(self, x, tasks):\n        return self.net(x) + tasks[..., None]\n\n"
         "    def observe", ":9: tasks is not there"),
        ("    def observe", "    def scores(self, x, tasks):\n        return self.net(x)[:1]\n\n    def observe",
         ":8: scores returns float64 [1, "),
        ("    def observe", "    def scores(self, x, tasks):\n        self.parameters[0].data += 1\n"
         "        return self.net(x)\n\n    def observe", ":8: asked twice, scores"),
    ],
)  # fmt: skip
def test_a_learner_of_stacks_is_held_to_the_same(tried, old, new, told):
    with pytest.raises(contract_check.Broken) as broken:
        tried(OBSERVE.replace(old, new, 1))
    assert str(broken.value).partition("mine.py")[2].startswith(told)


def test_labels_that_a_learner_of_stacks_changes_are_its_own(tried, monkeypatch):
    """In place and not, it ends in the same answers."""
    found = []
    train = contract_check.Problem.train
    monkeypatch.setattr(
        contract_check.Problem, "train", lambda *given, **kept: found.append(train(*given, **kept)) or found[-1]
    )
    for change in ("y -= 1\n        y.clamp_(min=0)", "y = (y - 1).clamp(min=0)"):
        tried(OBSERVE.replace("        loss =", f"        {change}\n        loss ="))
    assert found[0] == found[len(found) // 2]


def with_state(begin, step):
    """A method that begins with some state and uses it in each step."""
    init = f"    def __init__(self, setting):\n        super().__init__(setting)\n        {begin}\n\n    def observe"
    return OBSERVE.replace("    def observe", init).replace("self.step(loss)", step)


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
    with pytest.raises(contract_check.Broken, match="gone on with in another process, it ends otherwise"):
        tried(text)


def test_an_attribute_that_no_checkpoint_holds_is_named(tried):
    said = tried(with_state("self.rate = lambda t: 1 / (1 + t)", "self.step(loss * self.rate(t))"))
    assert said[-1].startswith("a killed run of it starts over: self.rate is a lambda")


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
    with pytest.raises(contract_check.Broken) as broken:
        tried(text)
    assert f"mine.py:{line}: learning: " in str(broken.value)
