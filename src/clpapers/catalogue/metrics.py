"""The catalogue of metrics, measures and renderers: their files' declarations, read without importing them or pandas.

A module of `metrics/` with a function `measure` declares `MEASURE` and, if it makes metrics, `METRICS`; a module of
`targets/` with a function `render` declares `RENDERER`. Each is a literal with the keys of `Measure`, `Metric` or
`Renderer`.
"""

import ast
import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
PERCENT = {"bounds": (0, 100), "margins": (2, 5), "shares": (0.1, 0.2)}  # of a metric in %
FRACTION = {"margins": (0.02, 0.05)}  # of one between 0 or -1 and 1 without a unit
COUNTED = (0.05, 0.1)  # margins as shares of the printed value: of one from 0 up, of counts


@dataclass(frozen=True)
class Metric:
    """The declaration of a metric.

    measure: the name of its measure.
    unit: the unit of its values; empty for pure numbers.
    better: `larger`, `smaller` or None.
    competing: the classes among which an item is answered. They are the classes of its `task`, the classes that the
        restriction at `test` leaves, the classes that compete in `training`, or `all`; `none` if no item is answered.
    over: the axis of a curve; None for a scalar.
    bounds: the least and the largest possible value; None where there is no bound.
    margins: how far a reproduced value may be from a printed one to be the `same`, and to be `near`, in its unit.
    shares: the margins as shares of the printed value. The narrower ones hold; without either, only an equal value is
        the same. `PERCENT`, `FRACTION` and `COUNTED` have both for most metrics.
    sample: the source of one independent value: a `seed`; a `block` of seeds, which share one clock; or `none`, if the
        value is computed and not measured.
    needs: keys that a target with this metric must have.
    tasks: the fewest tasks that it is defined on, whose tests `evaluation.shots` turns on; 0 where it looks at no task.
    """

    name: str
    measure: str
    unit: str = ""
    better: str | None = None
    competing: str = "none"
    over: str | None = None
    bounds: tuple[float | None, float | None] = (None, None)
    margins: tuple[float, float] | None = None
    shares: tuple[float, float] | None = None
    sample: str = "seed"
    needs: tuple[str, ...] = ()
    tasks: int = field(default=0, repr=False)  # which decides no number, so no digest


@dataclass(frozen=True)
class Measure:
    """The declaration of a measure.

    metrics: its own metrics, by name.
    named_by: the target's key that names the metrics to make; None if all are made.
    takes_from: measures whose scalars it makes as well.
    needs: keys that a target must have.
    reads: further keys of a target that it looks at.
    rules: JSON Schema of the target's keys.
    cells: dotted keys that must be numbers in each cell.
    beside: its inputs beside a result or a stream (see `metrics.inputs`).
    rows: of a measure without a grid, the rows that a printed number may stand beside, each with its metric.
    searches: whether its inputs are selections.
    """

    name: str
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    named_by: str | None = None
    takes_from: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    rules: Mapping = field(default_factory=dict)
    cells: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    rows: Mapping[str, str] = field(default_factory=dict)
    searches: bool = False

    @property
    def keys(self) -> set[str]:
        """The keys of a target that decide its metrics."""
        return {"measure", *self.needs, *self.reads}

    @property
    def allowed(self) -> list[str]:
        """The metrics that a target of this measure may name."""
        others = [measures()[name].metrics.values() for name in self.takes_from]
        return [*(metric.name for each in others for metric in each if not metric.over), *self.metrics]


@dataclass(frozen=True)
class Renderer:
    """The declaration of a renderer.

    draws: `table` or `figure`. needs, rules: as of a measure. head: the head that the target's nets must have.
    prints: whether the paper's own lines are an input.
    """

    name: str
    draws: str
    needs: tuple[str, ...] = ()
    rules: Mapping = field(default_factory=dict)
    head: str | None = None
    prints: bool = False


def _declared(folder: str, name: str) -> dict[str, dict]:
    """By module of a folder that assigns `name`: the literals of that name and of `METRICS`."""
    found = {}
    for file in sorted((PACKAGE / folder).glob("[a-z]*.py")):
        text = file.read_text(encoding="utf-8")
        if f"\n{name} = " not in text:
            continue
        assigned = [node for node in ast.parse(text).body if isinstance(node, ast.Assign)]
        literals = {node.targets[0].id: node.value for node in assigned if isinstance(node.targets[0], ast.Name)}
        found[file.stem] = {key: ast.literal_eval(literals[key]) for key in (name, "METRICS") if key in literals}
    return found


@functools.cache
def measures() -> dict[str, Measure]:
    """All measures by name."""
    found = {}
    for name, literals in _declared("metrics", "MEASURE").items():
        made = {key: Metric(key, name, **_complete(facts)) for key, facts in literals.get("METRICS", {}).items()}
        found[name] = Measure(name, made, **literals["MEASURE"])
    return found


def _complete(facts: Mapping) -> Mapping:
    """A literal with the keys that metrics of its kind share; its `judged` names the kind where its form does not."""
    kind, own = facts.get("judged"), {key: value for key, value in facts.items() if key != "judged"}
    if facts.get("unit") == "%":
        return PERCENT | own
    if kind == "fraction" or ("unit" not in facts and facts.get("bounds") in ((0, 1), (-1, 1))):
        return FRACTION | own
    return {"shares": COUNTED} | own if kind == "count" or facts.get("bounds") == (0, None) else own


@functools.cache
def metrics() -> dict[str, Metric]:
    """All metrics by name."""
    return {name: metric for measure in measures().values() for name, metric in measure.metrics.items()}


def margins_of(name: str, printed: float) -> tuple[float, float]:
    """The margins of a printed value, in the metric's unit; a name that is no metric is of a count."""
    metric = metrics().get(name)
    margins, shares = (metric.margins, metric.shares) if metric else (None, COUNTED)
    widths = [margins or (), [share * abs(printed) for share in shares or ()]]
    first, second = (min(each) for each in zip(*filter(None, widths))) if any(widths) else (0.0, 0.0)
    return first, second


def margins_told() -> str:
    """The margins of all kinds of metrics, in words."""
    points, fractions = (" and ".join(map(str, kind["margins"])) for kind in (PERCENT, FRACTION))
    most, counts = (f"{less:.0%} and {more:.0%}".replace("%", " %") for less, more in (PERCENT["shares"], COUNTED))
    return (
        f"{points} points for percentages, at most {most} of the printed value; {fractions} for F, LCA, AUC, Ω and "
        f"correlations; {counts} of the printed value for counts, steps, nats, MB and times"
    )


@functools.cache
def renderers() -> dict[str, Renderer]:
    """All renderers by name."""
    found = _declared("targets", "RENDERER")
    return {name: Renderer(name, **literals["RENDERER"]) for name, literals in found.items()}


def metrics_of(target: Mapping) -> list[str]:
    """The metrics that a target's measure makes for it."""
    measure = measures()[target["measure"]]
    if measure.named_by is None:
        return list(measure.metrics)
    named = target[measure.named_by]
    return [named] if isinstance(named, str) else list(named)


def _refused(other: Measure, measure: Measure) -> dict:
    """The rule that refuses another measure's metrics."""
    foreign = [name for name in other.metrics if name not in measure.allowed]
    return {"not": {"enum": foreign, "description": f"a metric of measure {other.name}, not of {measure.name}"}}


def complete(schema: dict) -> None:
    """Add to the schema of a paper's file the names of all metrics, and each declaration's rules for a target."""
    definitions, selection = schema["$defs"], schema["properties"]["selection"]["properties"]
    definitions["metric"] = {"enum": list(metrics())}
    selection["metric"] = {
        "enum": [name for name in measures()["selection"].allowed if metrics()[name].better == "larger"]
    }
    rules = definitions["target"]["allOf"] = []
    for key, table in (("measure", measures()), ("render", renderers())):
        for name, each in table.items():
            properties = dict(each.rules)
            if isinstance(each, Measure) and each.named_by:
                others = [_refused(other, each) for other in measures().values() if other is not each]
                properties[each.named_by] = (
                    {"items": {"allOf": others}} if each.named_by == "metrics" else {"allOf": others}
                )
            needed = {"required": list(each.needs), "properties": properties}
            rules.append({"if": {"required": [key], "properties": {key: {"const": name}}}, "then": needed})
    for name, metric in metrics().items():
        if metric.needs:
            wanted = {"required": ["measure", "metrics"], "properties": {"metrics": {"contains": {"const": name}}}}
            rules.append({"if": wanted, "then": {"required": list(metric.needs)}})
