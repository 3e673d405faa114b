"""Every option takes what its declaration allows; all else is refused by its name."""

import copy
from collections.abc import Mapping

import pytest

from clpapers.config import checks, parts, schemas
from clpapers.config.refusals import ConfigError
from clpapers.streams.orders import Stf

STRUCTS = [
    (part, name, struct)
    for part, named in parts.PARTS.items()
    for name, struct in (named.items() if isinstance(named, Mapping) else [(None, named)])
]
OPTIONS = [(part, name, struct, option) for part, name, struct in STRUCTS for option in struct.fields()]


def values(rules):
    """Values that a JSON Schema of an option allows, at its bounds, and values that it does not."""
    kinds = [rules["type"]] if isinstance(rules["type"], str) else rules["type"]
    good, bad = [None] * ("null" in kinds), [None] * ("null" not in kinds) + [{"x": 1}, "1e-3", [[]]]
    if "enum" in rules:
        return [*rules["enum"]], [*bad, "", 1]
    if "boolean" in kinds:
        return [True, False], [*bad, 0, 1, "true"]
    if "integer" in kinds:
        least = rules["minimum"]
        good, bad = [*good, least, least + 1, 10**6], [*bad, least - 1, least + 0.5, float(least + 1), True]
    if "number" in kinds:
        low = rules.get("exclusiveMinimum", rules.get("minimum"))
        high = rules.get("exclusiveMaximum", rules.get("maximum", 1e9))
        good, bad = [*good, (low + high) / 2], [*bad, low - 1e-9, True]
        (bad if "exclusiveMinimum" in rules else good).append(low)
        (good if "maximum" in rules else bad if "exclusiveMaximum" in rules else good).append(high)
    if "pattern" in rules:
        good, bad = [*good, "task"], [*bad, "tasks", "task\n"]
    if "array" in kinds:
        inner = values(rules["items"]) if rules["items"] != {"type": "string"} else (["x"], [1])
        good, bad = [[each] for each in inner[0]], [*bad, inner[0][0], *([each] for each in inner[1])]
        (bad if "minItems" in rules else good).append([])
    if "object" in kinds:
        good = [{key: values(each)[0][0] for key, each in rules["properties"].items()}]
        bad = [*bad, {}, good[0] | {"x": 1}]
    return good, bad


def complete(name, struct):
    """A complete part with the first allowed value of each option that must be given."""
    rules = struct.rules()
    return ({"name": name} if name else {}) | {key: values(rules["properties"][key])[0][0] for key in rules["required"]}


@pytest.mark.parametrize(("part", "name", "struct", "option"), OPTIONS)
def test_an_option_takes_the_values_within_its_bounds_and_no_others(part, name, struct, option):
    whole, (good, bad) = complete(name, struct), values(struct.rules()["properties"][option])
    for value in good:
        checks.complete("here", part, whole | {option: value})
    for value in bad:
        with pytest.raises(ConfigError, match=rf"^here: {part}.{option}\b"):
            checks.complete("here", part, whole | {option: value})
    if option in struct.defaults():
        checks.complete("here", part, whole)
    else:
        with pytest.raises(ConfigError, match=f"^here: {part}: '{option}' is missing"):
            checks.complete("here", part, {key: value for key, value in whole.items() if key != option})


@pytest.mark.parametrize(("part", "name", "struct"), STRUCTS)
def test_a_part_takes_no_option_of_another_and_says_which_it_takes(part, name, struct):
    own, taken = set(struct.fields()), ", ".join(sorted(struct.fields()))
    for other in {option for each, _, _, option in OPTIONS if each == part} - own | {"lenght"}:
        with pytest.raises(ConfigError, match=f"^here: {part}: unknown key '{other}'; allowed: {taken}$"):
            checks.complete("here", part, complete(name, struct) | {other: 1})
    for wrong in (None, 5, "x", [1]):
        with pytest.raises(ConfigError, match=f"^here: {part}: .* is not of type object"):
            checks.complete("here", part, wrong)


@pytest.mark.parametrize("part", [part for part, named in parts.PARTS.items() if isinstance(named, Mapping)])
def test_a_name_that_no_part_has_is_refused(part):
    for name in (None, "x", 3, ["stf"], {}):
        with pytest.raises(ConfigError, match=rf"^here: {part}\.name: "):
            checks.complete("here", part, {"name": name})


def test_rules_are_what_annotations_say():
    """A name's own options, those of all its kind, and which may be left out."""
    properties = copy.deepcopy(Stf.rules()["properties"])
    told = {name: rules.pop("description") for name, rules in properties.items()}
    assert told["mu_sigma"] == "how long a class lasts"
    assert properties == {
        "length": {"type": ["integer", "null"], "minimum": 1},
        "mu_sigma": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.5},
        "mu_sigma_factor": {"type": "number", "exclusiveMinimum": 0},
    }
    assert parts.Budget.rules()["required"] == ["optimizer", "learning_rate", "batch", "replay_batch"]


def test_a_piece_of_a_part_has_the_options_of_all_its_names():
    assert parts.piece("net")["properties"].keys() == {"name"}.union(*(each.fields() for each in parts.NETS.values()))
    assert parts.takes("net", "cnn").keys() == {"width"}
    assert parts.takes("net", ["cnn"]) is parts.takes("budget", "cnn") is None


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


@pytest.mark.parametrize("name", [path.name.split(".")[0] for path in schemas.SCHEMAS.glob("*.yaml")])
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
