"""What decides a run, and so is hashed: a cell's description without what its learner does not look at."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from clpapers.config.refusals import ConfigError
from clpapers.config.schemas import schema
from clpapers.streams.restrictions import RESTRICTIONS

MIXING = ("random", "offline", "dominant")  # orders in which a batch holds items of (nearly) every class


class Seen(NamedTuple):
    """A cell as its learner sees it: its description, the view that its results are for, and why it is not as written.

    why: by part of the description one reason.
    """

    spec: dict
    view: str
    why: dict[str, str]


def looks_at(learner: dict) -> list[str]:
    """Which of `changes` (of the task), `tasks` and classes `competing` in training a learner looks at."""
    table = schema("paper")["$defs"]["learner_looks_at"]["const"]
    special = [f"{learner['name']} {key} {value}" for key, value in learner.items()]
    return next(filter(None, map(table.get, [*special, learner["name"]])), [])


def learner_without_changes(learner: dict) -> dict:
    """What a learner is as long as the task never changes: EWC and SI are the single net."""
    table = schema("paper")["$defs"]["learner_without_changes"]["const"]
    return {"name": table[learner["name"]]} if learner["name"] in table else learner


def seen(at: str, spec: dict, called: object, oracle: dict, resolve: Callable[..., dict]) -> Seen:
    """A cell's complete description `spec`, without what its learner does not look at.

    The restriction at test decides only how a run is read, so that it becomes the view. A learner that looks at no
    oracle is the same run under every oracle, and is evaluated under those of `evaluation.oracles`.

    called: the cell's oracle as it is written; `oracle`: in full. resolve: `(name, aligned)` → one of the paper's
    oracles in full.
    """
    learner, restriction, looks = spec["learner"], RESTRICTIONS[spec["restriction"]["name"]], looks_at(spec["learner"])
    one_task = oracle["name"] == "none" or oracle.get("tasks") == 1
    present = spec["restriction"].get("train") == "present"  # which are known without an oracle
    train, view, evaluated = restriction.train, restriction.test, {}
    why = {"restriction": f"of restriction {spec['restriction']['name']}; what it says of the test decides no run"}
    if one_task or "competing" not in looks or (oracle["name"] == "random_tasks" and not present):
        train = "none"
        cause = f"{learner['name']} looks at no competing classes" if "competing" not in looks else "no task restricts"
        why["restriction"] = f"all classes compete: {cause}"
    elif train == "oracle" and present:
        train = "present"
    told = oracle
    if train != "oracle" and "tasks" not in looks:
        if one_task or "changes" not in looks:
            told, learner = {"name": "none"}, learner_without_changes(learner)
            why["oracle"] = "one task" if one_task else f"{learner['name']} does not look at it"
            why["learner"] = "what it is while the task never changes"
        elif spec["order"]["name"] in MIXING and oracle["name"] != "chunks":
            told, why["oracle"] = {"name": "mixed"}, "every batch mixes the tasks of any oracle"
    if told != oracle or oracle["name"] == "none":
        for name in spec["evaluation"].get("oracles", []):
            for suffix, aligned in (("", True), ("-unaligned", False)):
                found = resolve(name, aligned)
                if aligned or "aligned" in found:
                    evaluated[name + suffix] = found
        if view != "none":
            named = next((name for name, found in evaluated.items() if found == oracle), None)
            if named is None:
                raise ConfigError(f"{at}: evaluation.oracles: {called!r} is missing, which restricts the test")
            view = f"{named}/{view}"
    changed = {"learner": learner, "oracle": told, "restriction": {"train": train}}
    return Seen(spec | changed | {"evaluation": spec["evaluation"] | {"oracles": evaluated}}, view, why)
