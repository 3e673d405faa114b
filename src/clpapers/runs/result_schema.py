"""Whether a file of results can be one that training wrote (`clpapers.runs.loop`), however it came here.

Sections that metrics count or average are held against each other: lengths, bounds, the same classes. A learner's
report of itself (`learner`) is free, and metrics refuse it where they cannot read it.
"""

import base64
import itertools
import json
import math
from collections.abc import Callable, Collection, Iterable
from typing import Any

import numpy as np

# Errors that a forged result may raise.
UNFIT = (ArithmeticError, ValueError, LookupError, TypeError, AttributeError, RecursionError)
LARGEST = 2**53  # of whole numbers: up to there a float holds each


def results(content: bytes) -> tuple[dict, dict[int, dict]]:
    """A result file's cell, and its entry for each seed. Raises `ValueError`, a line, for any other file's content."""
    try:
        whole = json.loads(content, parse_constant=_no_number, parse_float=_float)
        cell, seeds = dict(whole["cell"]), {entry["seed"]: entry for entry in whole["seeds"]}
        if len(seeds) < len(whole["seeds"]) or any(type(seed) is not int for seed in seeds):
            raise ValueError("its seeds are no different whole numbers")
        if not isinstance(options := cell.get("evaluation"), dict):
            raise ValueError("its cell tells of no evaluation")
    except UNFIT as error:
        raise ValueError(f"is no result of runs ({_reason(error)})") from None
    for seed, entry in seeds.items():
        if entry.get("out_of_memory") is True:
            continue
        sections = [*ALWAYS, *(section for section, option in ASKED.items() if options.get(option) is not None)]
        for section in dict.fromkeys([*sections, *(section for section in SECTIONS if section in entry)]):
            try:
                SECTIONS[section](entry[section], entry)
            except UNFIT as error:
                raise ValueError(f"is no result of runs (seed {seed}: {section}: {_reason(error)})") from None
    return cell, seeds


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, ValueError) else repr(error)


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def _float(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise ValueError(f"{text[:20]} is too large a number")
    return value


def _counts(value: Any, *shape: int | None, most: float | np.ndarray = LARGEST) -> np.ndarray:
    """An array of whole numbers from 0 to `most`; None stands for any length."""
    return _array(value, "iu", shape, most)


def _array(value: Any, kinds: str, shape: Collection[int | None], most: float | np.ndarray) -> np.ndarray:
    found = np.array(value)
    if found.ndim != len(shape) or any(want not in (None, size) for want, size in zip(shape, found.shape)):
        raise ValueError(f"shape {list(found.shape)}, not {['any' if n is None else n for n in shape]}")
    if found.size and found.dtype.kind not in kinds:
        raise ValueError("holds other things than numbers of its kind")
    if not ((found >= 0) & (found <= most)).all():
        raise ValueError("numbers below 0, or above what they can be")
    return found


def _ascending(value: Any) -> np.ndarray:
    found = _counts(value, None)
    if (np.diff(found.astype(float)) <= 0).any():
        raise ValueError("not ascending")
    return found


def _finite(values: Iterable[Any]) -> None:
    """Refuse all but a list of finite numbers, with null for others."""
    numbers = [value for value in values if value is not None]
    if not all(type(value) in (int, float) and np.isfinite(value) for value in numbers):
        raise ValueError("holds other things than finite numbers and null")


def _steps(value: Any, entry: dict) -> None:
    _counts(value)


def _test(views: dict, entry: dict) -> None:
    if not views:
        raise ValueError("no restriction at test")
    for counts in views.values():
        total = _counts(counts["total"], None)
        _counts(counts["correct"], len(total), most=total)
        if not total.sum() > 0 or not 0 < counts["chance"] <= 1:
            raise ValueError("no item, or a chance level that is none")


def _probes(probes: dict, entry: dict) -> None:
    position, time = _ascending(probes["position"]), _ascending(probes["time"])
    sizes = [len(base64.b64decode(text, validate=True)) for text in probes["correct"]]
    if sizes != (-(-np.searchsorted(position, time) // 8)).tolist() or not sizes:
        raise ValueError("answers to another number of probes than were seen")


def _online(online: dict, entry: dict) -> None:
    if online["correct"] is not None:
        right = _counts(online["correct"], None)
        if not 0 < len(right) <= entry["steps"] or right.sum() > entry["probes"]["time"][-1]:
            raise ValueError("of more steps or items than the run had, or of none")
    if online["loss"] is not None:
        _finite(online["loss"])


def _learner(report: Any, entry: dict) -> None:
    if not isinstance(report, dict):
        raise ValueError("no mapping")


def _bytes(sizes: dict, entry: dict) -> None:
    _counts([sizes["training"], sizes["testing"]], 2)


def _diverged(step: Any, entry: dict) -> None:
    if step is not None:
        _counts(step)


def _unanswered(counts: dict, entry: dict) -> None:
    _counts([counts["online"], counts["tests"]], 2)


def _events(events: dict, entry: dict) -> None:
    time, total = _ascending(events["time"]), _counts(events["total"], None)
    if not len(time) or not total.sum() > 0:
        raise ValueError("no testing event, or no item")
    _counts(events["correct"], len(time), len(total), most=total)
    _array(events["seen"], "b", (len(time), len(total)), 1)
    if not len(events["unknown_auroc"]) == len(events["learner_bytes"]) == len(time):
        raise ValueError("lists of unequal lengths")
    _array([area for area in events["unknown_auroc"] if area is not None], "iuf", (None,), 1)
    for sizes in events["learner_bytes"]:
        _bytes(sizes, entry)


def _tasks(tasks: dict, entry: dict) -> None:
    total = [_counts(each, None) for each in tasks["total"]]
    if not total or not all(each.sum() > 0 for each in total):
        raise ValueError("no task, or one without an item")
    for classes, of in zip(tasks["classes"], total, strict=True):
        _counts(classes, len(of))
    visits = len(tasks["correct"])
    if not visits or visits % len(total) or len(tasks["open"]) != visits:
        raise ValueError("not tested after each task")
    for row in (*tasks["correct"], *tasks["open"]):
        for right, of in zip(row, total, strict=True):
            _counts(right, len(of), most=of)
    if "shots" in tasks:
        if len(tasks["shots"]) != visits:
            raise ValueError("learning curves of other tasks")
        for curve, of in zip(tasks["shots"], itertools.cycle(total)):
            _counts(curve, None, len(of), most=of)
    if "mutual_information" in tasks:
        for row in tasks["mutual_information"]:
            _finite(row)
            if len(row) != len(total):
                raise ValueError("mutual information on other tasks")
        if len(tasks["mutual_information"]) != visits:
            raise ValueError("mutual information after other tasks")
    if "memory" in tasks:
        kept = _counts(tasks["memory"]["total"], len(total))
        for k, right in enumerate(tasks["memory"]["correct"]):
            _counts(right, k + 1, most=kept[: k + 1])


SECTIONS: dict[str, Callable[[Any, dict], None]] = {
    "steps": _steps,
    "test": _test,
    "probes": _probes,
    "online": _online,
    "learner": _learner,
    "learner_bytes": _bytes,
    "diverged": _diverged,
    "events": _events,
    "tasks": _tasks,
    "unanswered": _unanswered,
}
ASKED = {"events": "every", "tasks": "shots"}  # section → the option of `evaluation` that asks for it
ALWAYS = [section for section in SECTIONS if section not in {*ASKED, "unanswered"}]
