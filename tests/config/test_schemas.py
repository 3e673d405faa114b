"""Content that passed does not stand for what differs from it in a type alone, or for other rules."""

from pathlib import Path

import pytest

from clpapers.config import schemas
from clpapers.config.refusals import ConfigError

ROOT = Path(__file__).parents[2]
RULES = {"type": "object", "properties": {"batch": {"type": "integer"}}}


@pytest.mark.parametrize("value", [1.0, True, "1", "all"])
def test_a_value_of_another_type_does_not_pass_for_one_that_passed_or_passed_other_rules(value):
    schemas.validate({"batch": 1}, RULES, "a file", name="a test")
    schemas.validate({"batch": value}, {"type": "object"}, "a file", name="other rules of a test")
    for _ in range(2):
        with pytest.raises(ConfigError, match=r"a file: batch: .* is not of type integer"):
            schemas.validate({"batch": value}, RULES, "a file", name="a test")


def patterns(rules):
    """All patterns of a schema, keys that name patterns included."""
    if isinstance(rules, dict):
        found = [rules["pattern"]] if isinstance(rules.get("pattern"), str) else []
        return [*found, *rules.get("patternProperties", {}), *(p for each in rules.values() for p in patterns(each))]
    return [p for each in rules for p in patterns(each)] if isinstance(rules, list) else []


@pytest.mark.parametrize("name", [path.name.split(".")[0] for path in (ROOT / "workflow/schemas").glob("*.yaml")])
def test_every_pattern_of_a_schema_is_of_the_whole_text(name):
    """Those that only rule out how a text begins have no end."""
    for pattern in patterns(schemas.schema(name)):
        assert pattern.startswith("^")
        assert pattern.count("$") == pattern.endswith("$") or pattern == "^(?!toy-)"


@pytest.mark.parametrize(
    ("pattern", "text"),
    [("^[a-z]+$", "abc"), ("^all$", "all"), (r"^\{.*\}$", "{}"), ("^([0-9]+)?$", ""), ("^(cut)?$", "cut")],
)
def test_a_text_with_one_more_line_break_is_of_no_pattern(pattern, text):
    rules = {"pattern": pattern, "propertyNames": {"pattern": pattern}}
    for content in (str, lambda text: {text: 1}):
        schemas.validate(content(text), rules, "a file")
        with pytest.raises(ConfigError, match=r"^a file: "):
            schemas.validate(content(f"{text}\n"), rules, "a file")
