"""Refuse incomplete blocks, and values that do not fit the data set, the net or the learner."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from clpapers.catalogue import metrics as catalogue
from clpapers.catalogue.methods import Method
from clpapers.catalogue.names import CURVE
from clpapers.config.facts import Facts
from clpapers.config.model import pretrained
from clpapers.config.parts import CELL, PARTS
from clpapers.config.refusals import ConfigError, dotted, one_of, required, short_repr
from clpapers.config.schemas import validate
from clpapers.runs.norms import fewest, least_side
from clpapers.streams.chunks import (
    CLASS_CHUNKS,
    DOMAINS,
    chunks_of_classes,
    class_of_output,
    classes_of,
    domains_of_classes,
    overlapping_classes,
)
from clpapers.streams.oracles import shared_out
from clpapers.streams.orders import canonical
from clpapers.streams.restrictions import RESTRICTIONS
from clpapers.streams.stf import GAMMA
from clpapers.targets.tex import latex


def _with(facts: Facts, key: str) -> str:
    """The data sets that have `key` in their entry: `cub200 or awa2`."""
    return " or ".join(name for name, each in facts.datasets.items() if key in each)


# --- blocks ----------------------------------------------------------------------------------------------------


def complete(where: str, part: str, block: dict) -> None:
    """Refuse a part that lacks one of its options, has an option of another, or a value out of its bounds."""
    validate(block, {"type": "object"}, where, (part,), name="part")
    named = PARTS[part]
    if isinstance(named, Mapping):
        one_of(f"{where}: {part}.name", block.get("name"), named)
        name = block["name"]
        options = {key: value for key, value in block.items() if key != "name"}
        validate(options, named[name].rules(), where, (part,), name=f"{part} {name}")
    else:
        validate(block, named.rules(), where, (part,), name=part)


def in_items(where: str, order: dict, batch: int | str | None) -> dict:
    """An order whose `iterations`, where it has them, are counted in items of so many a `batch`."""
    if "iterations" not in order:
        return order
    if not isinstance(batch, int) or "items" in order:
        wanted = "leave out items" if "items" in order else f"a number for budget.batch, not {batch}"
        raise ConfigError(f"{where}: order.iterations: {order['iterations']} needs {wanted}")
    return {key: value for key, value in order.items() if key != "iterations"} | {"items": order["iterations"] * batch}


def order(where: str, facts: Facts, written: dict, dataset: str, batch: int | str | None = None) -> dict:
    """The canonical form of an order; refuses one that is incomplete or does not fit the data set.

    batch: of the budget; `iterations` are counted in such batches.
    """
    complete(where, "order", written)
    order = in_items(where, written, batch)
    if "mu_sigma" in order:
        factor = order.get("mu_sigma_factor", 1)
        order = {"name": order["name"], "length": order["length"], "mu_sigma": order["mu_sigma"] * factor}
        if round(order["mu_sigma"], 6) >= GAMMA:
            given = f"mu_sigma_factor {factor} gives mu_sigma {order['mu_sigma']:.4g}"
            raise ConfigError(f"{where}: order.{given}; it must be less than {GAMMA}")
    if order["name"] == "instances" and "instances" not in facts.datasets.get(dataset, {}):
        raise ConfigError(f"{where}: order instances: {dataset} has no instances; take {_with(facts, 'instances')}")
    try:
        order = canonical(order)
        chunks_of_classes(order, facts.classes(dataset), seed=0)
        if order["name"] == "split_overlapping":
            overlapping_classes(order, facts.classes(dataset), seed=0)
        if order["name"] == DOMAINS:
            domains_of_classes(order, facts.classes(dataset), seed=0)
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from None
    items = facts.most_items(dataset)
    if order["length"] is not None and order["length"] > items:
        raise ConfigError(f"{where}: order.length: {order['length']} is more than the {items} items")
    return order


def oracle(where: str, facts: Facts, oracle: dict, dataset: str) -> None:
    """Refuse an oracle that is incomplete or does not fit the data set's classes."""
    complete(where, "oracle", oracle)
    classes = facts.classes(dataset)
    if oracle["name"] == "split" and oracle["tasks"] > classes:
        raise ConfigError(f"{where}: oracle.tasks: {oracle['tasks']} is more than the {classes} classes")
    if oracle["name"] == "dominant_tasks":
        try:
            shared_out(oracle["shares"], classes)
        except ValueError as error:
            raise ConfigError(f"{where}: oracle: {error}") from None


def net(where: str, facts: Facts, net: dict, dataset: str) -> None:
    """Refuse a net that is incomplete, or that does not fit the data set or its pre-trained weights."""
    complete(where, "net", net)
    entry, weights = facts.datasets[dataset], pretrained(net)
    if "features" in entry and net["name"] not in ("mlp", "exstream_mlp"):
        raise ConfigError(f"{where}: net.name {net['name']}: {dataset} has features; take mlp or exstream_mlp")
    height, width, _ = entry["shape"]
    if min(height, width) < (least := least_side(net)):
        raise ConfigError(
            f"{where}: net.name {net['name']}: it takes images of {least} pixels a side or more, and those of "
            f"{dataset} are {height}×{width}; take another net, or larger images"
        )
    if net.get("head") == "joint_embedding" and "attributes" not in entry:
        has = _with(facts, "attributes")
        raise ConfigError(f"{where}: net.head joint_embedding: it needs attributes, which only {has} has")
    if weights is None:
        return
    if "init" in net:
        raise ConfigError(f"{where}: net.init: {net['init']!r} does not go with weights {net['weights']}")
    one_of(f"{where}: net.weights", weights, facts.weights)
    for key, found in (("width", net["width"]), ("channels", entry["shape"][2])):
        if found != facts.weights[weights][key]:
            wanted = f"{key} {facts.weights[weights][key]}, not {found}"
            raise ConfigError(f"{where}: net.weights {net['weights']} needs {wanted}; or write weights: none")


def learner(file: Path, path: tuple, facts: Facts, label: str, options: dict, learners: dict) -> None:
    """Refuse options that the method does not take, at a `path` of keys in `file`; `learners` are the paper's."""
    one_of(f"{file}: {dotted(path)}", label, learners)
    name = options.get("method", learners[label].get("method", label))
    one_of(f"{file}: {dotted(path)}.method", name, facts.methods)
    whole = facts.methods[name].option_rules
    rules = whole | {"required": [], "properties": whole["properties"] | {"method": {}, "cell": {}}}
    validate(options, rules, file, path, name=f"piece of learner {name}")


def takes(method: Method, key: str) -> bool:
    """Whether a method has the option that a grid's `key` names, such as `learner.epochs`."""
    options = method.options
    for part in key.split(".")[1:]:
        if part not in options:
            return False
        options = options[part].get("properties", {})
    return True


# --- cells -----------------------------------------------------------------------------------------------------


def parts(where: str, facts: Facts, method: Method, spec: dict) -> None:
    """Refuse a cell that lacks a part, or with a wrong value of a part that has no name of its own."""
    options = {option: value for option, value in spec["learner"].items() if option not in ("name", "file")}
    label = f"learner {method.file or method.name}"
    validate(options, method.option_rules, where, ("learner", method.name), name=label)
    written = {key: value for key, value in spec.items() if key not in ("dataset", "learner")}
    validate(written, CELL | {"required": [*CELL["properties"]]}, where, ("cell",), name="cell")
    for part in ("restriction", "budget", "evaluation"):
        complete(where, part, spec[part])


def cell(where: str, facts: Facts, method: Method, spec: dict) -> None:
    """Refuse a cell, with its order in canonical form, whose parts do not fit each other or the data set."""
    dataset, order, multiple = spec["dataset"], spec["order"], method.image_sides
    net(where, facts, spec["net"], dataset)
    _scaling(where, facts, spec)
    _steps(where, spec["budget"])
    _needs(where, method, spec, [key for key in method.needs if not key.startswith("oracle.")])
    for key in spec["evaluation"]:
        if key in facts.measured and key not in method.measures:
            raise ConfigError(
                f"{where}: evaluation.{key}: learner {method.name} does not measure it; write it in the cell of a "
                f"learner that does, such as {facts.measured[key]}"
            )
    if spec["budget"]["batch"] == 1 < fewest(spec["net"], facts.datasets[dataset]["shape"]) and _trains(method):
        without = " or net.batch_norm false" if "batch_norm" in spec["net"] else ""
        raise ConfigError(
            f"{where}: budget.batch: 1: batch norm of net {spec['net']['name']} has no variance of one item; take 2 or "
            f"more,{without or ' or larger images'}"
        )
    height, width, _ = facts.datasets[dataset]["shape"]
    if height % multiple or width % multiple:
        raise ConfigError(
            f"{where}: learner {method.name} needs sides that are multiples of {multiple} pixels, not {height}×{width}"
        )
    if method.memory_of_classes:
        slots = memory_slots(facts, order, dataset)
        if spec["budget"]["memory"] < slots:
            raise ConfigError(
                f"{where}: budget.memory: {spec['budget']['memory']} is fewer than one item for each class of each "
                f"task; take {slots} or more"
            )
    if "cycles" in order and method.tasks_once:
        raise ConfigError(f"{where}: order.cycles: learner {method.name} needs tasks that come once; leave it out")


def memory_slots(facts: Facts, order: dict, dataset: str) -> int:
    """The classes of all tasks of an order, one for each task that a class or output comes in."""
    classes = facts.classes(dataset)
    if order["name"] in ("split_overlapping", "permuted_pixels", DOMAINS):
        return order["tasks"] * order.get("per_task", len(class_of_output(order, classes, seed=0)))
    return len(classes_of(order, classes))


def budget(where: str, facts: Facts, written: dict, order: dict, dataset: str) -> dict:
    """A budget with its memory in items, where it is written for each class; `order` is in canonical form."""
    budget = dict(written)
    per_class = budget.pop("memory_per_class", None)
    if per_class is not None and "memory" in budget:
        raise ConfigError(
            f"{where}: budget.memory_per_class: {per_class} beside memory {budget['memory']}; leave one out"
        )
    if per_class is not None:
        budget["memory"] = per_class * memory_slots(facts, order, dataset)
    required(f"{where}: budget", budget, ["memory"])
    return budget


def _trains(method: Method) -> bool:
    """Whether a method's steps train the cell's net on the stream batch."""
    return method.uses_batch and not method.own_nets


def _needs(where: str, method: Method, spec: dict, keys: Iterable[str]) -> None:
    """Refuse a cell without a value that a method's declaration needs at one of these dotted keys."""
    for key in keys:
        part, _, option = key.partition(".")
        found, allowed = spec[part].get(option) if option else spec[part], method.needs[key]
        if found not in allowed:
            raise ConfigError(
                f"{where}: learner {method.name} needs {key} {' or '.join(map(str, allowed))}, not {found}"
            )


def knowledge(where: str, method: Method, spec: dict, oracle: dict) -> None:
    """Refuse a complete oracle, or a restriction, that does not fit the learner or the order."""
    learner, name = spec["learner"], spec["restriction"]["name"]
    if RESTRICTIONS[name].test == "data" and spec["order"]["name"] not in CLASS_CHUNKS:
        raise ConfigError(f"{where}: restriction {name} needs an order of {' or '.join(CLASS_CHUNKS)}")
    if spec["order"]["name"] == DOMAINS and oracle["name"] in ("split", "dominant_tasks"):
        raise ConfigError(
            f"{where}: oracle {oracle['name']} groups classes, which {DOMAINS} does not tell; take chunks"
        )
    if oracle["name"] == "chunks" and spec["order"]["name"] not in CLASS_CHUNKS and RESTRICTIONS[name].test != "none":
        raise ConfigError(
            f"{where}: restriction {name} tests by the oracle's tasks, and the chunks of order {spec['order']['name']} "
            f"are no groups of classes; take single_head or ea, or an order of {' or '.join(CLASS_CHUNKS)}"
        )
    if oracle["name"] == "entropy" and "changes" in method.uses:
        raise ConfigError(f"{where}: learner {method.name} needs an oracle that names tasks, not entropy")
    _needs(where, method, {"oracle": oracle}, [key for key in method.needs if key.startswith("oracle.")])
    for option in method.by_tasks:
        tasks = spec["order"].get("tasks", 1) if oracle["name"] == "chunks" else oracle.get("tasks", 1)
        tasks = str(len(oracle["shares"]) if "shares" in oracle else tasks)
        if tasks not in learner[option]:
            raise ConfigError(f"{where}: learner.{option}: {tasks} tasks are not among {', '.join(learner[option])}")


def _scaling(where: str, facts: Facts, spec: dict) -> None:
    scaling, entry = spec["scaling"], facts.datasets[spec["dataset"]]
    if "features" in entry and scaling != "none":
        raise ConfigError(f"{where}: scaling {scaling}: {spec['dataset']} has features; take none")
    if scaling == "imagenet" and entry["shape"][2] != 3:
        raise ConfigError(f"{where}: scaling imagenet: it needs 3 channels, {spec['dataset']} has {entry['shape'][2]}")
    if scaling in ("centred", "standardised", "imagenet") and spec["order"]["name"] == "permuted_pixels":
        raise ConfigError(f"{where}: scaling {scaling}: not with permuted_pixels; take unit or symmetric")


def _steps(where: str, budget: dict) -> None:
    for key in ("momentum", "clip"):
        if key in budget and budget["optimizer"] != "sgd":
            raise ConfigError(f"{where}: budget.{key}: {budget['optimizer']} takes none; leave it out, or take sgd")


# --- targets ---------------------------------------------------------------------------------------------------


def target(where: str, spec: dict, datasets: Mapping) -> None:
    """Refuse a target that lacks a key, or a name in it that is not known; `datasets` are the paper's."""
    required(where, spec, ("title", "caption", "section", "kind", "measure", "render"))
    for key, declared in (("measure", catalogue.measures()), ("render", catalogue.renderers())):
        one_of(f"{where}.{key}", spec[key], declared)
    if catalogue.renderers()[spec["render"]].draws != spec["kind"]:
        raise ConfigError(f"{where}.kind: render {spec['render']} draws no {spec['kind']}")
    grid = spec.get("grid", {})
    learners = grid.get("learner", [])
    named = [(f"ratios[{i}]", learner) for i, pair in enumerate(spec.get("ratios", [])) for learner in pair]
    named += [("ideal", spec["ideal"])] if spec.get("ideal") is not None else []
    for key, learner in named:
        if learner not in learners:
            raise ConfigError(f"{where}.{key}: {learner!r} is not in the grid")
    for key in ("rows", "columns"):
        if spec.get(key, "dataset") not in ("row", "dataset", *grid):
            factors = ", ".join(grid) or "none"
            raise ConfigError(f"{where}.{key}: {spec[key]!r} is not a factor of the grid: {factors}")
    along = spec.get("along")
    if along not in (None, *CURVE, *grid):
        raise ConfigError(f"{where}.along: {short_repr(along)} is not one of {', '.join((*grid, *CURVE))}")
    if not all(isinstance(level, int | float) for level in grid.get(along, ())):
        raise ConfigError(f"{where}.along: the levels of {short_repr(along)} in the grid are not all numbers")
    for key, text in [("title", spec["title"]), ("caption", spec["caption"]), *spec.get("names", {}).items()]:
        try:
            latex(str(text))
        except ConfigError as error:
            named_key = key if key in ("title", "caption") else f"names.{key}"
            raise ConfigError(f"{where}.{named_key}: {error}") from None
    for dataset in spec.get("per_class", []):
        one_of(f"{where}.per_class", dataset, datasets)


def grid(where: str, facts: Facts, spec: dict, content: dict) -> None:
    """Refuse a target's grid with names that `content`, the paper's, lacks, or with exceptions for values it lacks."""
    grid = spec["grid"]
    for key in ("dataset", "learner"):
        if key not in grid:
            raise ConfigError(f"{where}.grid: '{key}' is missing; a cell needs a dataset and a learner")
        for i, value in enumerate(grid[key]):
            one_of(f"{where}.grid.{key}[{i}]", value, content.get(f"{key}s", {}))
    methods = [facts.methods[content["learners"][label].get("method", label)] for label in grid["learner"]]
    for key in grid:
        if key.startswith("learner.") and not any(takes(each, key) for each in methods):
            raise ConfigError(f"{where}.grid.{key}: none of {', '.join(grid['learner'])} takes it")
    for label in spec.get("learners", {}):
        one_of(f"{where}.learners", label, grid["learner"])
    for i, left_out in enumerate(spec.get("without", [])):
        for key, values in left_out.items():
            for value in values:
                if value not in grid.get(key, []):
                    raise ConfigError(f"{where}.without[{i}].{key}: {value!r} is not in the grid")
    for metric, learners in spec.get("undefined", {}).items():
        one_of(f"{where}.undefined", metric, spec.get("metrics", []))
        for learner in learners:
            one_of(f"{where}.undefined.{metric}", learner, grid["learner"])


def defined(where: str, metrics: Iterable[str], spec: dict, classes: int) -> None:
    """Refuse a cell of fewer tasks than one of the metrics is defined on, or without the tests of its tasks."""
    order = spec["order"]
    tasks = classes if order["name"] in ("dominant", "dominant_ordered") else order.get("tasks", 1)
    for metric in (catalogue.metrics()[name] for name in metrics):
        if metric.tasks and spec["evaluation"].get("shots") is None:
            raise ConfigError(f"{where}: metric {metric.name} needs a number for evaluation.shots, such as 0")
        if tasks < metric.tasks and order["name"] != "instances":
            raise ConfigError(
                f"{where}: metric {metric.name} is defined on {metric.tasks} tasks or more, and order {order['name']} "
                f"has {tasks}; take more tasks, or leave it out"
            )


def measured(where: str, measure: catalogue.Measure, spec: dict, usual: dict) -> None:
    """Refuse a cell without a number that its measure needs, or, for costs, with another net than the `usual` one."""
    for key in measure.cells:
        part, option = key.split(".")
        found = spec[part].get(option)
        if found is None and "name" in spec[part]:
            wanted = f"{part}s of {option}, not {spec[part]['name']}"
        elif not isinstance(found, int):
            wanted = f"a number for {key}" + (f", not {found}" if found else "")
        else:
            continue
        raise ConfigError(f"{where}: measure {measure.name} needs {wanted}")
    for key in ("name", "width", "hidden") if "net" in measure.beside else ():
        if spec["net"].get(key) != usual.get(key):
            raise ConfigError(
                f"{where}: costs are explained by the net of {spec['dataset']}; a learner with "
                f"net.{key} {spec['net'][key]} has another"
            )
