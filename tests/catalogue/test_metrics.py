"""What measures and renderers declare is what their modules do."""

import ast
import dataclasses
import importlib
import itertools
import re

import pytest

from clpapers.catalogue import metrics as catalogue
from clpapers.config.model import Target
from clpapers.config.schemas import schema
from clpapers.metrics import learning, streaming
from clpapers.targets.table import Table

FACTS = {
    "better": ("larger", "smaller", None),
    "competing": ("task", "test", "training", "all", "none"),
    "unit": ("", "%", "s", "min", "MB", "nats", "events", "steps"),
}


def looked_up(module: str) -> set[str | None]:
    """The keys of `target` that a module of metrics, or a measure that it calls, looks up; None for one not written."""
    tree, keys = ast.parse((catalogue.PACKAGE / "metrics" / f"{module}.py").read_text()), set()
    for node in ast.walk(tree):
        match node:
            case (
                ast.Subscript(value=ast.Name(id="target"), slice=key)
                | ast.Call(func=ast.Attribute(value=ast.Name(id="target")), args=[key, *_])
            ):
                keys.add(key.value if isinstance(key, ast.Constant) else None)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=other), attr="measure")):
                keys |= looked_up(other)
    return keys


@pytest.mark.parametrize("name", catalogue.measures())
def test_a_measure_declares_the_keys_that_it_looks_up_which_decide_the_digest_of_its_metrics(name):
    spec = dict.fromkeys([*schema("paper")["$defs"]["target"]["properties"]], 1) | {"measure": name}
    target = Target("smoke", "toy", "figure", spec, range(1))
    measure = catalogue.measures()[name]
    assert {*measure.reads} <= looked_up(name) <= measure.keys == set(target.measured)
    for key in target.measured:
        changed = dataclasses.replace(target, spec=spec | {key: 2}) if key != "measure" else target
        assert (changed.measured_digest == target.measured_digest) == (key == "measure")
    for key in {"title", "caption", "names", "section", "render"}:
        assert dataclasses.replace(target, spec=spec | {key: 2}).measured_digest == target.measured_digest


@pytest.mark.parametrize("name", catalogue.renderers())
def test_a_renderer_draws_what_it_declares(name):
    renderer, module = catalogue.renderers()[name], importlib.import_module(f"clpapers.targets.{name}")
    assert module.render.__annotations__["return"].__name__ == renderer.draws.title()
    assert (renderer.draws == "table") == (getattr(module, "Table", None) is Table)


@pytest.mark.parametrize(
    ("folder", "function", "there"),
    [("metrics", "measure", catalogue.measures()), ("targets", "render", catalogue.renderers())],
)
def test_every_module_that_measures_or_renders_is_in_the_catalogue(folder, function, there):
    files = (catalogue.PACKAGE / folder).glob("*.py")
    defining = {file.stem for file in files if re.search(rf"^def {function}\(\s*target: dict", file.read_text(), re.M)}
    assert defining == set(there)


def test_facts_of_metrics_are_the_words_that_others_know_and_each_metric_is_of_one_measure():
    for metric, (fact, words) in itertools.product(catalogue.metrics().values(), FACTS.items()):
        assert getattr(metric, fact) in words
    declared = [name for measure in catalogue.measures().values() for name in measure.metrics]
    assert sorted(declared) == sorted(set(declared))


def test_learning_and_streaming_compute_the_metrics_that_they_declare_and_no_others():
    scalars = {name for name, metric in catalogue.measures()["learning"].metrics.items() if not metric.over}
    assert scalars == set(learning.SCALARS)
    assert set(learning.METRICS) == {*learning.SCALARS, *learning.CURVES, *learning.GRIDS}
    curves = {name for name, metric in catalogue.measures()["streaming"].metrics.items() if metric.over}
    assert curves == set(streaming.CURVES)


def test_only_what_is_answered_within_tasks_competes_with_its_task():
    of_tasks = {*learning.LIFELONG, *learning.LIFELONG_CURVES}
    competing = {name: metric.competing for name, metric in catalogue.metrics().items()}
    within = {name for name, which in competing.items() if which == "task"}
    assert within == {name for name in of_tasks if competing[name] not in ("none", "all")}


def test_the_metrics_of_a_target_are_those_named_or_all_of_the_measure():
    assert catalogue.metrics_of({"measure": "learning", "metrics": ["roc"]}) == ["roc"]
    assert catalogue.metrics_of({"measure": "stream_classes", "statistic": "prevalence"}) == ["prevalence"]
    assert "jump" in catalogue.metrics_of({"measure": "boundary_detection"})
    assert catalogue.metrics_of({"measure": "timestamps"}) == []
