"""Content that passed is not looked at again; what differs from it in a type alone is."""

import jsonschema
import pytest

from clpapers.config import schemas
from clpapers.config.refusals import ConfigError

RULES = {"type": "object", "properties": {"batch": {"type": "integer"}}}


def test_what_passed_once_passes_without_a_look(monkeypatch):
    schemas.validate({"batch": 1}, RULES, "a file", name="a test")
    monkeypatch.setattr(jsonschema.exceptions, "best_match", lambda errors: pytest.fail("looked at again"))
    schemas.validate({"batch": 1}, RULES, "a file", name="a test")


@pytest.mark.parametrize("value", [1.0, True, "1"])
def test_a_value_of_another_type_does_not_pass_for_it(value):
    schemas.validate({"batch": 1}, RULES, "a file", name="a test")
    for _ in range(2):
        with pytest.raises(ConfigError, match=r"a file: batch: .* is not of type integer"):
            schemas.validate({"batch": value}, RULES, "a file", name="a test")


def test_what_passed_other_rules_is_looked_at():
    schemas.validate({"batch": "all"}, {"type": "object"}, "a file", name="other rules of a test")
    with pytest.raises(ConfigError, match="not of type integer"):
        schemas.validate({"batch": "all"}, RULES, "a file", name="a test")
