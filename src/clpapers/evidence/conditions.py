"""Derives from a target's cells which of Farquhar and Gal's five conditions it meets (`desiderata`, section 3).

They "ought either to be respected or to be explicitly mentioned as absent": a line on them stands under every table and
figure of runs. Imports nothing heavy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from clpapers.catalogue import methods
from clpapers.catalogue import metrics as catalogue
from clpapers.streams.chunks import CLASS_CHUNKS

if TYPE_CHECKING:  # not imported, as every rendering depends on this module
    from clpapers.config.model import Target

CONDITIONS = {
    "A": "cross-task resemblances",
    "B": "shared output head",
    "C": "no test-time assumed task labels",
    "D": "no unconstrained retraining on old tasks",
    "E": "more than two tasks",
}
YES, HEADS, KNOWN = "yes", "no (a head a task)", "no (task known at test)"


def sentence(target: Target, datasets: dict) -> str:
    """`Conditions of Farquhar & Gal: cross-task resemblances: yes; …`; empty for a target without runs."""
    phrases = "; ".join(f"{CONDITIONS[letter]}: {phrase}" for letter, phrase in met(target, datasets).items())
    return f"Conditions of Farquhar & Gal: {phrases}." if phrases else ""


def met(target: Target, datasets: dict) -> dict[str, str]:
    """By letter of `CONDITIONS`, a phrase on whether a target's cells meet it; empty for a target without runs.

    datasets: the content of config/datasets.yaml.
    """
    cells, metrics = target.cells, catalogue.metrics_of(target.spec)
    if target.selections:  # a grid's points differ in hyper-parameters only
        cells = tuple((factors, search.points[0][1]) for factors, search in target.selections)
        metrics = [search.metric for _, search in target.selections]
    by_letter: dict[str, list[tuple[dict, str]]] = {letter: [] for letter in CONDITIONS if cells}
    for factors, cell in cells:
        dataset = cell.spec["dataset"]
        derived = verdicts(cell.spec, cell.test_restriction, metrics, datasets[dataset])
        for letter, verdict in derived.items():
            by_letter[letter].append((factors, verdict))
    names = target.spec.get("names", {})
    return {letter: phrase(_without_guesses(pairs), names) for letter, pairs in by_letter.items()}


# --- one cell --------------------------------------------------------------------------------------------------


def verdicts(cell: dict, view: str, metrics: Iterable[str], facts: dict) -> dict[str, str]:
    """By letter `yes`, `no` or `n/a`, with the reason in brackets.

    cell, view: a cell's description, and its restriction at test. metrics: names of the target's metrics.
    facts: `classes` and `train` of the data set, from config/datasets.yaml.
    """
    tasks = number_of_tasks(cell["order"], facts)
    return {
        "A": _resemblance(cell["order"], tasks),
        "B": _shared_head(cell),
        "C": _no_labels_at_test(cell, view, metrics),
        "D": _no_retraining(cell, facts),
        "E": _more_than_two(tasks),
    }


def number_of_tasks(order: dict, facts: dict) -> int | None:
    """Number of a stream's tasks, parts drawn from one distribution each (section 2); 1 if it is stationary.

    None where the distribution drifts (`stf`) or follows a recording (`instances`).
    """
    if order["name"] in ("stf", "instances"):
        return None
    if order["name"] in ("random", "offline"):
        return 1
    return len(facts["classes"]) if order["name"] in ("dominant", "dominant_ordered") else order["tasks"]


def _more_than_two(tasks: int | None) -> str:
    if tasks is None:
        return "n/a (no tasks)"
    return "no (one task)" if tasks == 1 else f"{YES if tasks > 2 else 'no'} ({tasks} tasks)"


def _resemblance(order: dict, tasks: int | None) -> str:
    if tasks == 1:
        return "n/a (one task)"
    return "no (pixels permuted)" if order["name"] == "permuted_pixels" else YES


def _shared_head(cell: dict) -> str:
    method, oracle, order = methods.method_of(cell["learner"]), cell["oracle"], cell["order"]
    if method.guesses:
        return "n/a (nothing is trained)"
    separate = order["name"] == "split_overlapping"  # a class has an output in each of its tasks
    separate |= method.answers_by_task and _names_tasks(oracle, order)
    return HEADS if separate or _trains_by_task(cell) else YES


def _trains_by_task(cell: dict) -> bool:
    """Whether only classes of one task compete in training."""
    rule, order = cell["restriction"]["train"], cell["order"]
    if rule == "present":
        return order["name"] in CLASS_CHUNKS
    return rule == "oracle" and _groups_classes(cell["oracle"], order)


def _no_labels_at_test(cell: dict, view: str, metrics: Iterable[str]) -> str:
    oracle, order = cell["oracle"], cell["order"]
    competing = {catalogue.metrics()[metric].competing for metric in metrics} - {"none"}
    if not competing:
        return "n/a (nothing is tested)"
    restricting = {
        "task": order["name"] in CLASS_CHUNKS,
        "test": _restricts(view, cell),
        "training": _trains_by_task(cell),
        "all": False,
    }
    routed = methods.method_of(cell["learner"]).answers_by_task and _names_tasks(oracle, order)
    return KNOWN if routed or any(restricting[classes] for classes in competing) else YES


def _no_retraining(cell: dict, facts: dict) -> str:
    order, keeps = cell["order"], methods.method_of(cell["learner"]).keeps
    if keeps:
        return f"no ({keeps})"
    if order["name"] == "offline" and order["items"] > (order["length"] or facts["train"]):
        return "no (several epochs over all data)"
    cycles = 2 if order["name"] == "split_two" else order.get("cycles", 1)
    return YES if cycles == 1 else f"no (tasks come {'twice' if cycles == 2 else f'{cycles} times'})"


def _groups_classes(oracle: dict, order: dict) -> bool:
    """Whether an oracle's tasks are groups of classes, so that they can restrict which compete."""
    if oracle["name"] == "split":
        return oracle["tasks"] > 1
    return oracle["name"] == "dominant_tasks" or (oracle["name"] == "chunks" and order["name"] in CLASS_CHUNKS)


def _names_tasks(oracle: dict, order: dict) -> bool:
    """Whether an oracle tells an item's task; a random identifier does not."""
    return _groups_classes(oracle, order) or oracle["name"] == "chunks"


def _restricts(view: str, cell: dict) -> bool:
    """Whether a restriction at test lets only some classes compete."""
    name, _, partition = view.rpartition("/")
    if partition == "data":
        return cell["order"]["name"] in CLASS_CHUNKS
    oracle = cell["evaluation"]["oracles"][name] if name else cell["oracle"]
    return partition != "none" and _groups_classes(oracle, cell["order"])


# --- all cells in one phrase -------------------------------------------------------------------------------------


def _without_guesses(pairs: list[tuple[dict, str]]) -> list[tuple[dict, str]]:
    """The pairs of cells that train something, if any: a guess has no output head."""
    return [each for each in pairs if each[1] != "n/a (nothing is trained)"] or pairs


def phrase(pairs: list[tuple[dict, str]], names: dict[str, str]) -> str:
    """The verdicts on a grid's cells, each with the cell's factors, in one phrase: `yes, but no (why) for SINGLE`.

    Or level by level of a factor, `MNIST: yes / CIFAR: no, but yes for SINGLE`, if that is shorter or exceptions are
    no product of levels. A learner without an option has no level of it. `names`: display names of levels.
    """
    every, count = [factors for factors, _ in pairs], Counter(verdict for _, verdict in pairs)
    usual, *others = sorted(count, key=lambda verdict: (-count[verdict], not verdict.startswith(YES)))
    boxes = {other: _box([factors for factors, verdict in pairs if verdict == other], every, names) for other in others}
    if not others:
        return usual
    phrases = []
    if all(boxes.values()):
        phrases.append(usual + "".join(f", but {other} for {where}" for other, where in boxes.items()))
    for factor in (key for key in every[0] if all(key in factors for factors in every)):
        by_phrase: dict[str, list] = {}
        levels = _levels(every, factor)
        for level in levels if len(levels) > 1 else []:
            text = phrase([each for each in pairs if each[0][factor] == level], names)
            by_phrase.setdefault(f"[{text}]" if " / " in text else text, []).append(level)
        if by_phrase:
            phrases.append(" / ".join(f"{_listed(levels, names)}: {text}" for text, levels in by_phrase.items()))
    return min(phrases, key=len)


def _box(cells: list[dict], every: list[dict], names: dict[str, str]) -> str | None:
    """The levels that `cells` share and no other of `every` cell has: `ER, ACE on MNIST`; None if there are none."""
    shared = {factor: _levels(cells, factor) for factor in dict.fromkeys(key for each in cells for key in each)}

    def apart(factors: list[str]) -> bool:
        return not any(f not in cells and all(f.get(each) in shared[each] for each in factors) for f in every)

    telling = sorted(shared, key=lambda factor: (factor != "learner", factor != "dataset"))
    if not apart(telling):
        return None
    for factor in sorted(shared, key=lambda factor: -len(shared[factor])):
        fewer = [each for each in telling if each != factor]
        telling = fewer if apart(fewer) else telling
    if any(None in shared[factor] for factor in telling):  # to have no such option has no name
        return None
    parts = [_listed(shared[factor], names) for factor in telling]
    if len(telling) == 1:
        others = [level for level in _levels(every, telling[0]) if level not in shared[telling[0]]]
        parts = [min(parts[0], f"all but {_listed(others, names)}", key=len)]
    words = ["on" if factor == "dataset" else "with" for factor in telling[1:]]
    return " ".join([parts[0], *(f"{word} {part}" for word, part in zip(words, parts[1:]))])


def _levels(cells: list[dict], factor: str) -> list:
    """The levels of a factor, each once, None for cells without it; a level may be a mapping, which has no hash."""
    levels: list = []
    for factors in cells:
        if factors.get(factor) not in levels:
            levels.append(factors.get(factor))
    return levels


def _listed(levels: list, names: dict[str, str]) -> str:
    keys = [level["name"] if isinstance(level, dict) else level for level in levels]
    return ", ".join(names.get(key, str(key)) for key in keys)
