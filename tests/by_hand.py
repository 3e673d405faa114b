"""Numbers as cases: `by_hand.yaml` of a room says, for each of its test files, what calls give.

    test_lifelong:
      average accuracy is that of the tasks so far:
        lifelong.average_accuracies(A): [0.9, (0.6 + 0.8) / 2, (0.7 + 0.4 + 1.0) / 3]

A call is Python in the names of its test file, and so is each text of what it gives; a number may be off by its
rounding. `let` gives names to what the calls of a sentence share.
"""

from numbers import Number
from pathlib import Path

import numpy as np
import pytest
import yaml


def worked(value, names):
    """A value of the file, with each text in it worked out."""
    if isinstance(value, list):
        return [worked(each, names) for each in value]
    return eval(value, names) if isinstance(value, str) else value


def same(found, expected):
    if isinstance(expected, list | tuple):
        found = list(found)
        return len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(same(found[key], expected[key]) for key in expected)
    if isinstance(expected, Number) and not isinstance(expected, bool):
        return np.ndim(found) == 0 and found == pytest.approx(expected, nan_ok=True)
    return found == expected


def tests(names, *fixtures):
    """A test for each sentence of a file, whose `globals()` are `names`."""
    file = Path(names["__file__"])
    sentences = yaml.safe_load(file.with_name("by_hand.yaml").read_text(encoding="utf-8"))[file.stem]

    @pytest.mark.parametrize("calls", sentences.values(), ids=sentences)
    def test_by_hand(calls, request):
        scope = names | {name: request.getfixturevalue(name) for name in fixtures}
        for name, made in calls.get("let", {}).items():
            scope[name] = worked(made, scope)
        for call, expected in calls.items():
            if call != "let":
                found = eval(call, scope)
                assert same(found, worked(expected, scope)), f"{call} is {found}"

    return test_by_hand
