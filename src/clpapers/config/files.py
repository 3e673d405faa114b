"""Read the YAML files of config/: JSON's types alone, no key twice, nothing too deep or too large."""

import copy
import math
import re
from pathlib import Path

import yaml

from clpapers.cache import Cache
from clpapers.config.refusals import ConfigError, short_repr
from clpapers.home import project_path

CONFIG = project_path("config")
DEEPEST, MOST_VALUES = 30, 50_000  # levels of a YAML file; its values, each alias counted with its content
HIGHEST = 1e30  # of numbers in YAML files


class _Loader(yaml.CSafeLoader):
    """YAML with the types of JSON: mappings by text, lists, text, numbers, true, false and null. A date is text.

    Unlike the plain loader, it refuses a key given twice; the plain loader drops the first. It also refuses a key that
    is not printable text, ±∞, NaN, and whole numbers too large for any count.
    """

    def construct_object(self, node: yaml.Node, deep: bool = False) -> object:
        try:
            return super().construct_object(node, deep)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):  # such as `!!int x`
            kind = node.tag.rpartition(":")[2]
            problem = f"{short_repr(node.value)} is not of type {kind}"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from None


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict:
    seen, last = set(), None  # the whole number that stands before a key
    for key, other in node.value:
        problem = None
        if last is not None and re.fullmatch(r"\d+", key.value) and other.value == "":
            problem = f"{last.value},{key.value} is a number and a key; write a decimal point: {last.value}.{key.value}"
        elif key.tag not in ("tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"):
            problem = f"key {short_repr(key.value)} is not text; write it in quotes"
        elif not key.value.isprintable():
            problem = f"key {short_repr(key.value)} is not a line of text"
        elif key.value in seen:
            problem = f"key '{key.value}' stands twice"
        if problem:
            raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
        seen.add(key.value)
        whole = isinstance(other, yaml.ScalarNode) and re.fullmatch(r"[-+]?\d+", other.value)
        last = other if whole else None
    loader.flatten_mapping(node)
    return loader.construct_mapping(node, deep=True)


def _plain(node: yaml.ScalarNode, form: str) -> None:
    """Refuse a number that YAML 1.1 reads otherwise than people do: 017 as 15, 1:30 as 90, 0x1F, 1_000."""
    if not re.fullmatch(form, node.value):
        problem = f"{short_repr(node.value)} is no plain decimal number; write it as one, or in quotes if it is text"
        raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


def _number(loader: _Loader, node: yaml.ScalarNode) -> float:
    if not node.value.lstrip("+-").lower().startswith((".inf", ".nan")):
        _plain(node, r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
    value = loader.construct_yaml_float(node)
    if math.isfinite(value) and abs(value) > HIGHEST:
        problem = f"{short_repr(node.value)} is beyond ±{HIGHEST:g}, more than single precision can work with"
        raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
    if not math.isfinite(value):
        raise yaml.constructor.ConstructorError(None, None, f"{node.value} is not a finite number", node.start_mark)
    return value


def _whole_number(loader: _Loader, node: yaml.ScalarNode) -> int:
    _plain(node, r"[-+]?(0|[1-9]\d*)")
    value = loader.construct_yaml_int(node)
    if abs(value) >= 2**31:
        problem = f"{short_repr(node.value)} is beyond ±2147483647"
        raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
    return value


_Loader.yaml_constructors = {
    f"tag:yaml.org,2002:{kind}": constructor
    for kind, constructor in {
        "null": yaml.CSafeLoader.construct_yaml_null,
        "bool": yaml.CSafeLoader.construct_yaml_bool,
        "int": _whole_number,
        "float": _number,
        "str": yaml.CSafeLoader.construct_yaml_str,
        "timestamp": yaml.CSafeLoader.construct_yaml_str,
        "seq": yaml.CSafeLoader.construct_yaml_seq,
        "map": _mapping,
    }.items()
} | {None: yaml.CSafeLoader.construct_undefined}


def _check_size(text: str) -> None:
    """Refuse YAML that nests too deep or holds too much behind aliases, event by event, before anything is built."""
    inside, sizes, anchored = [], [0], {}
    for event in yaml.parse(text, _Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            inside.append(event.anchor)
            sizes.append(1)
        elif isinstance(event, yaml.CollectionEndEvent):
            anchored[inside.pop()] = size = sizes.pop()
            sizes[-1] += size
        elif isinstance(event, yaml.NodeEvent):
            sizes[-1] += anchored.get(event.anchor, 1) if isinstance(event, yaml.AliasEvent) else 1
        if len(inside) > DEEPEST:
            raise yaml.composer.ComposerError(None, None, f"nests deeper than {DEEPEST} levels", event.start_mark)
        if sizes[-1] > MOST_VALUES:
            problem = f"holds more than {MOST_VALUES} values, each alias counted with its content"
            raise yaml.composer.ComposerError(None, None, problem, event.start_mark)


def text_of(path: Path) -> str:
    """A file's text, in UTF-8; raises `ConfigError` where it cannot be read, FileNotFoundError where it is missing."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: {error}; save it as UTF-8") from None


def read_yaml(path: Path) -> dict:
    """Read a YAML file as a dictionary; raises `ConfigError` that names file and line."""
    try:
        return read_text(text_of(path), path)
    except FileNotFoundError:
        names = ", ".join(sorted(p.stem for p in path.parent.glob("*.yaml"))) or "none"
        raise ConfigError(f"{path}: no such file; there are: {names}") from None


def read_text(text: str, where: Path | str) -> dict:
    """Read YAML as a dictionary; raises `ConfigError` that names the source, `where`, and the line."""

    def load() -> object:
        _check_size(text)
        return yaml.load(text, _Loader)

    try:
        content = copy.deepcopy(_LOADED.get(text, load))  # which the caller may change
    except yaml.YAMLError as error:
        problem = getattr(error, "problem", None) or str(error)
        line = f" line {error.problem_mark.line + 1}" if getattr(error, "problem_mark", None) else ""
        raise ConfigError(f"{where}:{line} {problem}") from None
    if not isinstance(content, dict):
        raise ConfigError(f"{where}: holds no keys; expected a mapping")
    return content


_LOADED = Cache("yaml")


def all_scales() -> list[str]:
    """The scales that have a file."""
    return sorted(path.stem for path in (CONFIG / "scales").glob("*.yaml"))


def line_numbers(path: Path) -> dict[tuple[str | int, ...], int]:
    """The line of every key and of every entry of a list in a YAML file that `read_yaml` takes, by its path."""
    loader, found = _Loader(path.read_text(encoding="utf-8-sig")), {}

    def walk(node: yaml.Node, path: tuple) -> None:
        if isinstance(node, yaml.MappingNode):
            loader.flatten_mapping(node)
        inside = node.value if isinstance(node, yaml.MappingNode) else enumerate(node.value)
        for key, value in inside if isinstance(node, yaml.CollectionNode) else ():
            inner = (*path, key if isinstance(key, int) else key.value)
            found[inner] = (value if isinstance(key, int) else key).start_mark.line + 1
            walk(value, inner)

    walk(loader.get_single_node(), ())
    return found
