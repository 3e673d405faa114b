"""The catalogue of methods: what is declared is read without importing it, and what is declared wrong is refused."""

import subprocess
import sys
from pathlib import Path

import pytest
import refusals
import yaml

from clpapers.catalogue.methods import read

DECLARED, CLASS = yaml.safe_load(Path(__file__).with_name("texts.yaml").read_text()).values()


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
    one, other = method.examples()  # complete options
    assert (one, other) == ({"strength": 1.0, "loss": {"name": "mse"}}, {"strength": 2.0, "loss": {"name": "mse"}})


@pytest.mark.parametrize(
    ("options", "declared"),
    [
        ({"strength": 1, "loss": {"name": "mse"}}, (["tasks"], 4, False)),
        ({"strength": 0, "loss": {"name": "bce"}}, (["changes"], 1, True)),
        ({"strength": {"samples": 3}, "loss": "mse"}, (["changes"], 1, False)),
    ],
)
def test_an_options_value_may_decide_what_is_declared(file, options, declared):
    given = read(file).with_options(options)
    assert (given.uses, given.image_sides, given.tasks_once) == declared


def test_reading_the_catalogue_imports_neither_torch_nor_pandas_nor_a_learner():
    code = (
        "import sys; from clpapers.catalogue import methods, metrics; assert len(methods.methods()) > 20; "
        "metrics.metrics(), metrics.renderers(); "
        "print([m for m in sys.modules if m in ('torch', 'pandas') or m.startswith('clpapers.runs')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


OPTIONS = {"rate": "number", "times": "integer", "way": "string", "on": "boolean", "sizes": None}


def test_a_class_of_one_seed_tells_its_options(file):
    file.write_text(CLASS)
    options = read(file).options
    assert {option: schema.get("type") for option, schema in options.items()} == OPTIONS
    assert [schema["default"] for schema in options.values()] == [0.5, 3, "up", True, [1, 2]]
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
def test_a_class_of_one_seed_tells_what_it_uses(file, body, uses):
    file.write_text(CLASS + body)
    assert read(file).uses == uses


test_refused, test_unedited = refusals.tests("catalogue", globals())
