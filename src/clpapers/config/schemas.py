"""The JSON Schemas of the files in config/, and the refusal of a violation."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from clpapers.cache import Cache
from clpapers.catalogue import metrics as catalogue
from clpapers.config import parts
from clpapers.config.refusals import ConfigError, dotted, names, short_repr
from clpapers.home import project_path
from clpapers.provenance import sha256

if TYPE_CHECKING:
    from jsonschema import ValidationError
    from jsonschema.protocols import Validator

SCHEMAS = project_path("workflow/schemas")


@functools.cache
def schema(name: str) -> dict:
    """The JSON Schema of one kind of config file; a paper's includes the parts of cells and all that is declared."""
    rules = yaml.load((SCHEMAS / f"{name}.schema.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader)
    if name == "paper":
        rules["$defs"] |= parts.definitions()
        rules["$defs"]["dataset"]["properties"] |= rules["$defs"]["cell"]["properties"]
        catalogue.complete(rules)
    return rules


@functools.cache
def _checker() -> Callable[[dict], Validator]:
    """The checker of content. It takes 10.0 for no integer, since it fails as a count."""
    import jsonschema  # a fifth of a second, for which content that passed before need not wait

    def matches(_: object, pattern: str, text: object, __: object) -> Iterator[ValidationError]:
        # `$` is the end of the text as in JSON Schema; Python's also matches before a last line break.
        if isinstance(text, str) and not re.search(pattern.replace("$", r"\Z"), text):
            yield jsonschema.ValidationError(f"{text!r} does not match {pattern!r}")

    usual = jsonschema.Draft202012Validator
    integers = usual.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    )
    return jsonschema.validators.extend(usual, {"pattern": matches}, type_checker=integers)


def _violation(value: object, rules: dict) -> ValidationError | None:
    """The most telling violation of a schema."""
    from jsonschema.exceptions import best_match

    return best_match(_checker()(rules).iter_errors(value))


def _complaint(error: ValidationError, path: tuple = ()) -> str:
    """One line for one schema violation: key, value, the allowed values. path: of the content in its file."""
    place, value, rule = dotted((*path, *error.absolute_path)), error.instance, error.validator
    text, expected = short_repr(value), error.validator_value
    if rule == "additionalProperties":
        allowed = sorted(error.schema.get("properties", {}))
        unknown = sorted(set(value) - set(allowed))[0]
        return f"{place}: unknown key '{unknown}'; allowed: {names(allowed, unknown)}"
    if rule == "enum":
        return f"{place}: {text} is not one of {names(expected, value)}"
    if rule == "required":
        missing = [name for name in expected if name not in value]
        return f"{place}: '{missing[0]}' is missing"
    if rule == "type":
        kinds = " or ".join(expected) if isinstance(expected, list) else expected
        hint = "; YAML reads 1e-3 as text, write 1.0e-3" if re.fullmatch(r"[-+]?[\d.]+[eE][-+]?\d+", str(value)) else ""
        if re.fullmatch(r"[-+]?\d+,\d+", str(value)):
            hint = f"; write a decimal point: {str(value).replace(',', '.')}"
        return f"{place}: {text} is not of type {kinds}{hint}"
    if rule == "uniqueItems":
        return f"{place}: {text} holds an entry twice"
    if rule == "not":
        return f"{place}: {text} is {expected['description']}"
    if rule == "pattern" and re.fullmatch(r"\^\w+\$", expected):  # a word beside numbers
        return f"{place}: {text} must be {error.schema.get('description', f'a number, or {expected[1:-1]}')}"
    bounds = {
        "const": "must be",
        "minimum": "must be at least",
        "exclusiveMinimum": "must be greater than",
        "maximum": "must be at most",
        "exclusiveMaximum": "must be less than",
        "pattern": "must have the form",
        "minItems": "needs at least this many entries:",
        "maxItems": "takes at most this many entries:",
        "minLength": "needs at least this many characters:",
        "minProperties": "needs at least this many keys:",
    }
    if rule == "pattern":
        expected = error.schema.get("form", expected)  # in words, where the schema has it
    return f"{place}: {text} {bounds[rule]} {expected}" if rule in bounds else f"{place}: {error.message}"


def validate(content: object, rules: dict, file: str | Path, path: tuple = (), *, name: str | None = None) -> None:
    """Raise `ConfigError` for the most telling violation of the schema `rules` in `content`, found in `file`.

    path: of the content in the file. name: of rules that never change. Content that passed them once is not checked
    again, by this process or by later ones in the project. Grids repeat the same pieces, and jobs begin with the same
    files.
    """
    text = repr(content)  # which tells 1 from 1.0 and from True
    seen = None if name is None else (name, text)
    if seen in _SEEN:
        return

    def check() -> bool:
        error = _violation(content, rules)
        if error is not None:
            raise ConfigError(f"{file}: {_complaint(error, path)}")
        return True

    _PASSED.get(f"{_digest(name, rules)} {text}", check)
    if seen:
        _SEEN.add(seen)


def violations(value: object, rules: dict) -> list[str]:
    """The most telling violation of a schema by a single value, as a text that names no place; or none."""
    error = _violation(value, rules)
    return [] if error is None else [_complaint(error).removeprefix("(top): ")]


_PASSED = Cache("passed")
_SEEN: set[tuple[str, str]] = set()
_DIGESTS: dict[str, str] = {}  # of rules that have a name


def _digest(name: str | None, rules: dict) -> str:
    """The digest of rules, of the validator's version and of this file, which gives a pattern its meaning."""
    if name not in _DIGESTS:
        checked_by = f"{importlib.metadata.version('jsonschema')} {sha256(__file__)}"
        digest = hashlib.sha256(f"{checked_by} {rules!r}".encode()).hexdigest()
        if name is None:
            return digest
        _DIGESTS[name] = digest
    return _DIGESTS[name]
