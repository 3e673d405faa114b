"""Which of Farquhar and Gal's five desiderata an experiment meets, derived from its cells (`desiderata`, section 3).

They "ought either to be respected or to be explicitly mentioned as absent": the line that this module makes stands
under every table and figure of runs. Imports nothing heavy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from clpapers import catalogue, catalogue_metrics
from clpapers.streams.chunks import CLASS_CHUNKS

DESIDERATA = {
    "A": "cross-task resemblances",
    "B": "shared output head",
    "C": "no test-time assumed task labels",
    "D": "no unconstrained retraining on old tasks",
    "E": "more than two tasks",
}
YES, HEADS, KNOWN = "yes", "no (a head a task)", "no (task known at test)"


def line(target, datasets: dict) -> str:
    """`Desiderata (Farquhar & Gal): A yes; …; E yes (17 tasks).`, from what `declare` says; empty where that is."""
    phrases = "; ".join(f"{letter}\u00a0{phrase}" for letter, phrase in declare(target, datasets).items())
    return f"Desiderata (Farquhar & Gal): {phrases}." if phrases else ""


def declare(target, datasets: dict) -> dict[str, str]:
    """What a target's runs meet: by letter of `DESIDERATA` a phrase, which says for which of its cells.

    target: a `config.Target` (not imported, for all renderings depend on this module and some on no other that imports
        it). What its spec has under `desiderata`, by data set and letter, replaces what is derived.
    datasets: what config/datasets.yaml says, by name.

    Returns no letter for a target that is made of no runs.
    """
    cells, metrics = target.cells, catalogue_metrics.metrics_of(target.spec)
    if target.selections:  # points of a grid differ in hyper-parameters only
        cells = [(factors, search.points[0][1]) for factors, search in target.selections]
        metrics = [search.metric for _, search in target.selections]
    found: dict[str, list[tuple[dict, str]]] = {letter: [] for letter in DESIDERATA if cells}
    for factors, cell in cells:
        dataset = cell.spec["dataset"]
        derived = verdicts(cell.spec, cell.view, metrics, datasets[dataset])
        declared = target.spec.get("desiderata", {}).get(dataset, {})
        for letter, verdict in derived.items():
            if letter in declared:
                verdict = f"{YES if declared[letter]['met'] else 'no'} ({declared[letter]['because']})"
            found[letter].append((factors, verdict))
    return {letter: phrase(_telling(those), target.spec.get("names", {})) for letter, those in found.items()}


# --- one cell --------------------------------------------------------------------------------------------------


def verdicts(cell: dict, view: str, metrics: Iterable[str], facts: dict) -> dict[str, str]:
    """Of each letter `yes`, `no` or `n/a`, with what there is to say of it in brackets.

    cell, view: a cell's description, and the restriction that its results are read under (`config.Cell`).
    metrics: what is measured. facts: `classes` and `train` of the data set, from config/datasets.yaml.
    """
    tasks = number_of_tasks(cell["order"], facts)
    return {
        "A": _resemblance(cell["order"], tasks),
        "B": _shared_head(cell),
        "C": _no_labels_at_test(cell, view, metrics),
        "D": _no_retraining(cell, facts),
        "E": "n/a (no tasks)" if tasks is None else "no (one task)" if tasks == 1 else _more_than_two(tasks),
    }


def number_of_tasks(order: dict, facts: dict) -> int | None:
    """How many tasks there are in a stream: parts each drawn from one distribution, as section 2 defines them.

    A stationary stream is one. None where the distribution drifts (`stf`) or follows a recording (`instances`), so that
    there is none.
    """
    if order["name"] in ("stf", "instances"):
        return None
    if order["name"] in ("random", "offline"):
        return 1
    return len(facts["classes"]) if order["name"] == "dominant" else order["tasks"]


def _more_than_two(tasks: int) -> str:
    return f"{YES if tasks > 2 else 'no'} ({tasks} tasks)"


def _resemblance(order: dict, tasks: int | None) -> str:
    if tasks == 1:
        return "n/a (one task)"
    return "no (pixels permuted)" if order["name"] == "permuted_pixels" else YES


def _shared_head(cell: dict) -> str:
    method, oracle, order = catalogue.of(cell["learner"]), cell["oracle"], cell["order"]
    if method.guesses:
        return "n/a (nothing is trained)"
    separate = order["name"] == "split_overlapping"  # a class has an output in each of its tasks
    separate |= method.answers_by_task and _names_tasks(oracle, order)
    return HEADS if separate or _trains_by_task(cell) else YES


def _trains_by_task(cell: dict) -> bool:
    """Whether classes of different tasks do not compete in training."""
    rule, order = cell["restriction"]["train"], cell["order"]
    if rule == "present":
        return order["name"] in CLASS_CHUNKS
    return rule == "oracle" and _groups_classes(cell["oracle"], order)


def _no_labels_at_test(cell: dict, view: str, metrics: Iterable[str]) -> str:
    oracle, order = cell["oracle"], cell["order"]
    competing = {catalogue_metrics.metrics()[metric].competing for metric in metrics} - {"none"}
    if not competing:
        return "n/a (nothing is tested)"
    restricting = {
        "task": order["name"] in CLASS_CHUNKS,
        "test": _restricts(view, cell),
        "training": _trains_by_task(cell),
        "all": False,
    }
    routed = catalogue.of(cell["learner"]).answers_by_task and _names_tasks(oracle, order)
    return KNOWN if routed or any(restricting[which] for which in competing) else YES


def _no_retraining(cell: dict, facts: dict) -> str:
    order, keeps = cell["order"], catalogue.of(cell["learner"]).keeps
    if keeps:
        return f"no ({keeps})"
    if order["name"] == "offline" and order["items"] > (order["length"] or facts["train"]):
        return "no (several epochs over all data)"
    cycles = 2 if order["name"] == "split_two" else order.get("cycles", 1)
    return YES if cycles == 1 else f"no (tasks come {'twice' if cycles == 2 else f'{cycles} times'})"


def _groups_classes(oracle: dict, order: dict) -> bool:
    """Whether an oracle's tasks are groups of the classes, so that they can restrict which compete."""
    if oracle["name"] == "split":
        return oracle["tasks"] > 1
    return oracle["name"] == "dominant_tasks" or (oracle["name"] == "chunks" and order["name"] in CLASS_CHUNKS)


def _names_tasks(oracle: dict, order: dict) -> bool:
    """Whether an oracle tells an item's task; a random identifier tells nothing of it."""
    return _groups_classes(oracle, order) or oracle["name"] == "chunks"


def _restricts(view: str, cell: dict) -> bool:
    """Whether a view (`runs.scenario.restrictions_at_test`) lets some classes compete only."""
    named, _, partition = view.rpartition("/")
    if partition == "data":
        return cell["order"]["name"] in CLASS_CHUNKS
    oracle = cell["evaluation"]["oracles"][named] if named else cell["oracle"]
    return partition != "none" and _groups_classes(oracle, cell["order"])


# --- all cells in one phrase -------------------------------------------------------------------------------------


def _telling(pairs: list[tuple[dict, str]]) -> list[tuple[dict, str]]:
    """Without the guesses, beside which something is trained: they say nothing of the experiment's head."""
    return [each for each in pairs if each[1] != "n/a (nothing is trained)"] or pairs


def phrase(pairs: list[tuple[dict, str]], names: dict[str, str]) -> str:
    """The verdicts on a grid's cells, each with the cell's factors, in one phrase: `yes, but no (why) for SINGLE`.

    Or level by level of a factor, `MNIST: yes / CIFAR: no, but yes for SINGLE`, where that is shorter or exceptions are
    no product of levels. `names`: how levels are called.
    """
    every, count = [factors for factors, _ in pairs], Counter(verdict for _, verdict in pairs)
    usual, *others = sorted(count, key=lambda verdict: (-count[verdict], not verdict.startswith(YES)))
    boxes = {other: _box([factors for factors, verdict in pairs if verdict == other], every, names) for other in others}
    if not others:
        return usual
    found = []
    if all(boxes.values()):
        found.append(usual + "".join(f", but {other} for {where}" for other, where in boxes.items()))
    for factor in every[0]:
        by_phrase: dict[str, list] = {}
        levels = _levels(every, factor)
        for level in levels if len(levels) > 1 else []:
            text = phrase([each for each in pairs if each[0][factor] == level], names)
            by_phrase.setdefault(f"[{text}]" if " / " in text else text, []).append(level)
        if by_phrase:
            found.append(" / ".join(f"{_called(those, names)}: {text}" for text, those in by_phrase.items()))
    return min(found, key=len)


def _box(cells: list[dict], every: list[dict], names: dict[str, str]) -> str | None:
    """What some of all `every` cells have in common and the others have not: `ER, ACE on MNIST`; None if nothing."""
    shared = {factor: _levels(cells, factor) for factor in cells[0]}

    def apart(factors: list[str]) -> bool:
        return not any(f not in cells and all(f[each] in shared[each] for each in factors) for f in every)

    telling = sorted(shared, key=lambda factor: (factor != "learner", factor != "dataset"))
    if not apart(telling):
        return None
    for factor in sorted(shared, key=lambda factor: -len(shared[factor])):
        fewer = [each for each in telling if each != factor]
        telling = fewer if apart(fewer) else telling
    parts = [_called(shared[factor], names) for factor in telling]
    if len(telling) == 1:
        others = [level for level in _levels(every, telling[0]) if level not in shared[telling[0]]]
        parts = [min(parts[0], f"all but {_called(others, names)}", key=len)]
    words = ["on" if factor == "dataset" else "with" for factor in telling[1:]]
    return " ".join([parts[0], *(f"{word} {part}" for word, part in zip(words, parts[1:]))])


def _levels(cells: list[dict], factor: str) -> list:
    """The levels of a factor, each once; levels may be blocks, which have no hash."""
    found: list = []
    for factors in cells:
        if factors[factor] not in found:
            found.append(factors[factor])
    return found


def _called(levels: list, names: dict[str, str]) -> str:
    keys = [level["name"] if isinstance(level, dict) else level for level in levels]
    return ", ".join(names.get(key, str(key)) for key in keys)
