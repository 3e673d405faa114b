"""The identity of a run, which is hashed: a cell's description without the parts that its learner ignores."""

from collections.abc import Callable
from typing import NamedTuple

from clpapers.catalogue.methods import Method
from clpapers.config.refusals import ConfigError
from clpapers.streams.restrictions import RESTRICTIONS

# Orders in which a batch holds items of (nearly) every class.
MIXING = ("random", "offline", "dominant", "dominant_ordered")
# If two tasks are equally likely, two batches so large in a row lack the same one with probability 2^-63. A smaller
# batch, such as the last of a chunk, differs from the mixed one before it, whatever it holds.
MIXED = 32
UNAWARE = "only some classes compete, which learner {} does not look at"  # of a method from outside, no cell


class CanonicalRun(NamedTuple):
    """A cell as its learner sees it: its description, its results' restriction at test, and why it differs.

    why: a part of the description that differs from the files → the reason.
    """

    spec: dict
    test_restriction: str
    why: dict[str, str]


def always_changing(spec: dict, oracle: dict, *, even: bool) -> bool:
    """Whether the task changes with every batch of a cell, so that learners which see changes alone see one oracle.

    It does where the order mixes the classes, where tasks are drawn at random, and where each chunk of classes is cut
    into several tasks.

    even: whether the data set is known to have as many items of each class.
    """
    order = spec["order"]
    if order["name"] in MIXING:
        return oracle["name"] != "chunks"
    batch = spec["budget"]["batch"]
    if batch == "task" or batch < MIXED:  # how many items a chunk has, its stream tells
        return False
    if oracle["name"] == "split" and oracle.get("aligned", True) and order["name"] in ("split", "split_two"):
        return even and oracle["tasks"] > order["tasks"] and oracle["tasks"] % order["tasks"] == 0
    return oracle["name"] == "random_tasks"


def canonical_run(
    where: str, method: Method, spec: dict, oracle: dict, resolve: Callable[..., dict], *, even: bool
) -> CanonicalRun:
    """A cell's complete description `spec`, without the parts that its learner ignores.

    The restriction at test only decides how a run is read, so it is kept beside the description. A learner that ignores
    the oracle makes the same run under every oracle; the run is evaluated under all of `evaluation.oracles`.

    method: with the learner's options. oracle: the cell's, complete. resolve: `(name, aligned)` → a complete oracle of
    the paper. even: as of `always_changing`.
    """
    learner, restriction, uses = spec["learner"], RESTRICTIONS[spec["restriction"]["name"]], method.uses
    one_task = oracle["name"] == "none" or oracle.get("tasks") == 1
    rule = spec["restriction"].get("train", "tasks")  # `present` and `seen` classes are known without an oracle
    train, test_restriction, evaluated = restriction.train, restriction.test, {}
    why = {"restriction": f"of restriction {spec['restriction']['name']}; its part for the test decides no run"}
    if one_task or "competing" not in uses or (oracle["name"] == "random_tasks" and rule == "tasks"):
        train = "none"
        cause = f"{method.name} looks at no competing classes" if "competing" not in uses else "no task restricts"
        why["restriction"] = f"all classes compete: {cause}"
    elif train == "oracle" and rule != "tasks":
        train = rule
    effective = oracle
    if train != "oracle" and "tasks" not in uses:
        if one_task or "changes" not in uses:
            effective, why["oracle"] = (
                {"name": "none"},
                "one task" if one_task else f"{method.name} does not look at it",
            )
            if method.without_changes:
                learner, why["learner"] = {"name": method.without_changes}, f"{method.name} while no task changes"
        elif always_changing(spec, oracle, even=even):
            effective, why["oracle"] = {"name": "mixed"}, "the task changes with every batch"
            if method.always_changing:
                learner, effective = {"name": method.always_changing}, {"name": "none"}
                why["learner"] = f"{method.name} where the task changes with every batch"
    if effective != oracle or oracle["name"] == "none":
        for name in spec["evaluation"].get("oracles", []):
            for suffix, aligned in (("", True), ("-unaligned", False)):
                found = resolve(name, aligned)
                if aligned or "aligned" in found:
                    evaluated[name + suffix] = found
        if test_restriction != "none":
            named = next((name for name, found in evaluated.items() if found == oracle), None)
            if named is None and method.file:
                unseen = f"the oracle {oracle['name']} restricts the test, and learner {method.name} does not see it"
                raise ConfigError(f"{where}: {unseen if 'competing' in uses else UNAWARE.format(method.name)}")
            if named is None:
                remedy = "; give it a name under oracles, and list that" if isinstance(spec["oracle"], dict) else ""
                missing = f"{spec['oracle']!r} is missing, which restricts the test{remedy}"
                raise ConfigError(f"{where}: evaluation.oracles: {missing}")
            test_restriction = f"{named}/{test_restriction}"
    changed = {"learner": learner, "oracle": effective, "restriction": {"train": train}}
    return CanonicalRun(
        spec | changed | {"evaluation": spec["evaluation"] | {"oracles": evaluated}}, test_restriction, why
    )
