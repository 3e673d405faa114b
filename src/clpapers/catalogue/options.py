"""Options of the parts of a cell: each is one field of a struct, with its type, bounds, default and a sentence."""

import functools
import inspect
import types
import typing
from typing import Annotated, Any, ClassVar, Literal, Union

TYPES: dict[type, str] = {  # of JSON Schema, by Python's
    **{bool: "boolean", int: "integer", float: "number", str: "string", types.NoneType: "null"},
    **{list: "array", dict: "object"},
}


def bounds(**keywords: object) -> tuple:
    """Keywords of JSON Schema, for an annotation."""
    return tuple(keywords.items())


Count = Annotated[int, bounds(minimum=1)]
Positive = Annotated[float, bounds(exclusiveMinimum=0)]
Share = Annotated[float, bounds(exclusiveMinimum=0, exclusiveMaximum=1)]


@typing.dataclass_transform(kw_only_default=True)
class Struct:
    """Options by name. A field's annotation has its type, its bounds and its meaning.

    `tasks: Annotated[int, bounds(minimum=1), "how many"]` must be given, an option with a default may be left out. If
    the default is None, no value stands for leaving it out. Values are checked by `rules`, not as they are given.
    It is no dataclass, since each would take half a millisecond of every start.
    """

    def __init__(self, **given: object):
        if unknown := [key for key in given if key not in self.fields()]:
            raise TypeError(f"{type(self).__name__} takes no {unknown[0]}")
        values = self.defaults() | given
        vars(self).update({key: values[key] for key in self.fields()})

    def replace(self, **changed: object) -> typing.Self:
        """The same with some options changed."""
        return type(self)(**{key: getattr(self, key) for key in self.fields()} | changed)

    @classmethod
    @functools.cache
    def fields(cls) -> dict[str, Any]:
        """The annotation of each option, a base's first; one that is annotated again comes last."""
        found: dict[str, Any] = {}
        for key, kind in (item for each in reversed(cls.__mro__) for item in inspect.get_annotations(each).items()):
            if typing.get_origin(kind) is not ClassVar:
                found.pop(key, None)
                found[key] = kind
        return found

    @classmethod
    @functools.cache
    def defaults(cls) -> dict[str, object]:
        """The options that may be left out, with their values then."""
        return {key: getattr(cls, key) for key in cls.fields() if hasattr(cls, key)}

    @classmethod
    @functools.cache
    def rules(cls) -> dict:
        """The JSON Schema of the options together."""
        properties, left_out = {key: _rules(kind) for key, kind in cls.fields().items()}, cls.defaults()
        for key in (key for key in left_out if left_out[key] is None):
            kinds = [kind for kind in properties[key]["type"] if kind != "null"]
            properties[key]["type"] = kinds if kinds[1:] else kinds[0]
        required = [key for key in properties if key not in left_out]
        return {"type": "object", "additionalProperties": False, "required": required, "properties": properties}


def _rules(kind: Any) -> dict:
    """The JSON Schema of an annotation."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        notes = ({"description": note} if isinstance(note, str) else dict(note) for note in inner[1:])
        return functools.reduce(lambda found, note: found | note, notes, _rules(inner[0]))
    if origin is Literal:
        return {"type": "string", "enum": list(inner)}
    if origin in (Union, types.UnionType):
        each = [_rules(one) for one in inner]
        return functools.reduce(lambda found, one: found | one, each) | {"type": [one["type"] for one in each]}
    if origin is list:
        return {"type": "array", "items": _rules(inner[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": _rules(inner[1])}
    return kind.rules() if issubclass(kind, Struct) else {"type": TYPES[kind]}
