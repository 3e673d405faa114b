"""The catalogue of methods: what is declared is read without importing it, and what is declared wrong is refused."""

import subprocess
import sys

import pytest

from clpapers.catalogue.methods import read

DECLARED = """\
\"\"\"A method.\"\"\"

import nowhere

DECLARATION = {
    "options": {
        "strength": {"type": "number", "minimum": 0, "examples": [1.0, 2.0]},
        "loss": {"type": "object", "examples": [{"name": "mse"}]},
    },
    "uses": ["changes"],
    "needs": {"budget.optimizer": ["sgd"]},
    "uses_batch": False,
    "where": {"loss.name": {"mse": {"uses": ["tasks"], "image_sides": 4}}, "strength": {0: {"tasks_once": True}}},
}

nowhere.to(be, found)
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "method.py"
    path.write_text(DECLARED)
    return path


def test_a_file_anywhere_is_read_and_never_executed(file):
    method = read(file)
    assert method.name == "method"
    assert method.uses == ["changes"]
    assert method.needs == {"budget.optimizer": ["sgd"]}
    assert (method.uses_batch, method.stackable, method.without_changes) == (False, True, None)


def test_an_options_value_may_decide_what_is_declared(file):
    method = read(file)
    given = method.with_options({"strength": 1, "loss": {"name": "mse"}})
    assert (given.uses, given.image_sides, given.tasks_once) == (["tasks"], 4, False)
    given = method.with_options({"strength": 0, "loss": {"name": "bce"}})
    assert (given.uses, given.image_sides, given.tasks_once) == (["changes"], 1, True)
    assert method.with_options({"strength": {"samples": 3}, "loss": "mse"}).uses == ["changes"]


def test_examples_are_complete_options(file):
    assert read(file).examples() == [
        {"strength": 1.0, "loss": {"name": "mse"}},
        {"strength": 2.0, "loss": {"name": "mse"}},
    ]


def test_reading_all_methods_imports_neither_torch_nor_a_learner():
    code = (
        "import sys; from clpapers.catalogue import methods; assert len(methods.methods()) > 20; "
        "print([m for m in sys.modules if m == 'torch' or m.startswith('clpapers.runs')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


CLASS = """\
from clpapers import Method


class Mine(Method):
    def __init__(self, rate=0.5, *, times: int = 3, way="up", on: bool = True, sizes=[1, 2]):
        self.rate = rate
"""


def test_a_class_of_one_seed_tells_its_options(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(CLASS)
    told = {option: (schema.get("type"), schema["default"]) for option, schema in read(file).options.items()}
    assert told == {
        "rate": ("number", 0.5),
        "times": ("integer", 3),
        "way": ("string", "up"),
        "on": ("boolean", True),
        "sizes": (None, [1, 2]),
    }
    file.write_text('DECLARATION = {"options": {"rate": {"type": "number", "minimum": 0, "default": 1}}}\n' + CLASS)
    assert list(read(file).options) == ["rate"]  # its own, with bounds, in the place of those


@pytest.mark.parametrize(
    ("body", "uses"),
    [
        ("", []),
        ("    def begin_task(self): ...\n", ["changes"]),
        ("    def end_task(self): ...\n", ["changes"]),
        ("    def observe(self, x, y):\n        return self.loss(x, y)\n", ["competing"]),
        ("    def end_task(self):\n        return self.loss\n", ["changes", "competing"]),
        ("    def loss(self, x, y): ...\n    def observe(self, x, y):\n        return self.loss(x, y)\n", []),
        ("    def observe(self, x, y):\n        self.loss = 1\n        return self.loss\n", []),
    ],
)
def test_a_class_of_one_seed_tells_what_it_uses(tmp_path, body, uses):
    file = tmp_path / "mine.py"
    file.write_text(CLASS + body)
    assert read(file).uses == uses
