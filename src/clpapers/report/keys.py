"""The page with every key, option and metric, each with an example.

All is read from the schemas, from the declarations of parts, methods, measures and metrics, and from papers' files.
"""

import ast
import functools
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from clpapers.catalogue import methods
from clpapers.catalogue import metrics as catalogue
from clpapers.config import parts
from clpapers.config.files import CONFIG, read_yaml
from clpapers.config.schemas import schema
from clpapers.targets.markdown import markdown_table

HEAD = """\
# Keys, options and metrics

This page has every key of a paper's file, every option of a method, every metric, and the columns of reported numbers.
An example is a value of one of the papers' files, where one has it. [config/README.md](../config/README.md) explains
what belongs together; [own_paper.md](own_paper.md) leads through a paper of one's own.
"""
EXAMPLE = Path("examples/three_types/three_types.yaml")


def papers() -> list[Path]:
    """The papers' files, which the examples are of."""
    return [*sorted((CONFIG / "papers").glob("*.yaml")), *([EXAMPLE] if EXAMPLE.is_file() else [])]


@functools.cache
def contents() -> list[tuple[tuple, object]]:
    """Every value of the papers' files with its path."""
    return [each for file in papers() for each in walked(read_yaml(file))]


def values(rules: Any) -> str:
    """The values that a JSON Schema allows, in a few words."""
    if not isinstance(rules, dict):
        return "any"
    definitions: dict = schema("config")["$defs"] | schema("paper")["$defs"]
    rules = definitions.get(rules.get("$ref", "").removeprefix("#/$defs/"), rules)
    if "enum" in rules:
        return ", ".join(f"`{written(each)}`" for each in rules["enum"])
    for key in ("anyOf", "oneOf"):
        if key in rules:
            return " or ".join(dict.fromkeys(values(each) for each in rules[key]))
    kinds = rules.get("type", "object" if "properties" in rules else "any")
    names = {
        "integer": "whole number",
        "boolean": "`true`, `false`",
        "string": "text",
        "array": "list",
        "null": "`null`",
    }
    texts = [names.get(kind, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds)]
    signs = {"minimum": "from", "exclusiveMinimum": "above", "maximum": "up to", "exclusiveMaximum": "below"}
    bounds = [f"{word} {rules[sign]}" for sign, word in signs.items() if sign in rules]
    text = " or ".join([" ".join([texts[0], *bounds]), *texts[1:]])
    of = rules.get("items", {})
    if kinds == "array" and isinstance(of, dict) and (of.get("type") or of.get("enum")):
        text += f" of: {values(of)}"
    keys = [key for key in rules.get("properties", {}) if kinds == "object"]
    return text + (f" of {', '.join(f'`{key}`' for key in keys)}" if 0 < len(keys) < 7 else "")


def written(value: object) -> str:
    """A value as YAML has it in a line."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) < 60 else f"{text[:57]}…"


def walked(content: object, path: tuple = ()) -> Iterator[tuple[tuple, object]]:
    """Every value of a paper's content with its path."""
    if isinstance(content, dict):
        for key, value in content.items():
            yield (*path, str(key)), value
            yield from walked(value, (*path, str(key)))


def example(*ends: str, within: str = "") -> str:
    """The first value at a path that ends so, below the key `within`, in a code span; a dash where no paper has one.

    An oracle may stand under a name, and a value of a grid under its dotted key.
    """
    for path, value in contents():
        named = path[-3:-2] == ("oracles",) and ends == ("oracle", path[-1])
        there = path[-len(ends) :] == ends and (not within or within in path[: -len(ends)])
        if path[-1] == ".".join(ends) and path[-2:-1] == ("grid",) and isinstance(value, list):
            return f"`{written(value[0])}`"
        if (there or named) and value is not None:
            return f"`{written(value)}`"
    return "–"


def table(heading: list[str], rows: list[list[str]]) -> str:
    """A table of the page."""
    return "\n".join(markdown_table(heading, rows))


def keys_of(properties: dict, place: tuple[str, ...], within: str = "") -> str:
    """The table of some keys of the schema."""
    rows = []
    for key, rules in properties.items():
        rules = rules if isinstance(rules, dict) else {}
        own = [f"`{written(each)}`" for each in rules.get("examples", ())]
        shown = own[0] if own else example(*place, key, within=within)
        rows.append([f"`{'.'.join([*place, key])}`", values(rules), shown, rules.get("description", "")])
    return table(["key", "values", "example", "meaning"], rows)


def of_parts() -> Iterator[str]:
    """The sections on the parts of a cell."""
    for part, named in parts.PARTS.items():
        yield f"### {part}\n"
        kept: dict = {}
        for struct in named.values() if isinstance(named, Mapping) else [named]:
            kept |= struct.defaults()
        if isinstance(named, Mapping):
            takes = {name: ", ".join(f"`{key}`" for key in sorted(each.fields())) for name, each in named.items()}
            yield (
                table([f"`{part}.name`", "takes"], [[f"`{name}`", each or "–"] for name, each in takes.items()]) + "\n"
            )
        rows = []
        for key, rules in parts.piece(part)["properties"].items():
            left_out = f"`{written(kept[key])}`" if kept.get(key) is not None else ""
            shown = [f"`{part}.{key}`", values(rules), example(part, key), left_out]
            rows.append([*shown, rules.get("description", "")])
        yield table(["key", "values", "example", "if left out", "meaning"], rows) + "\n"


def _learns(node: ast.ClassDef) -> bool:
    """Whether a class is a learner: it has a base, and this is no `Protocol` or `NamedTuple`."""
    return bool({ast.unparse(base) for base in node.bases} - {"Protocol", "NamedTuple"})


def of_methods() -> Iterator[str]:
    """A section for each method."""
    for name, method in methods.methods().items():
        tree = ast.parse((methods.LEARNERS / f"{name}.py").read_text(encoding="utf-8"))
        (first, *_) = [node for node in tree.body if isinstance(node, ast.ClassDef) and _learns(node)]
        docstring = ast.get_docstring(first) or ""
        lines, told = docstring.partition("\n\n")[0].split("\n"), explained(docstring, list(method.options))
        looks = ", ".join(method.uses) or "neither tasks nor classes that compete"
        yield f"### {name}\n\n{' '.join(lines)} It looks at: {looks}.\n"
        rows = []
        for option, rules in method.options.items():
            found, kept = example(name, option), f"`{written(rules['default'])}`" if "default" in rules else ""
            shown = f"`{written(rules['examples'][0])}`" if found == "–" else found
            rows.append([f"`{option}`", values(rules), shown, kept, told.get(option, "")])
        if rows:
            yield table(["option", "values", "example", "if left out", "meaning"], rows) + "\n"


def explained(text: str, options: list[str]) -> dict[str, str]:
    """By option, what the docstring of a method says of it below `Parameters`."""
    text = " ".join(text.partition("Parameters\n----------")[2].split())
    if not options:
        return {}
    named = "|".join(options)
    found = re.split(rf"(?:^|(?<= ))((?:{named})(?:, (?:{named}))*): ", text)[1:]
    return {key: about.strip() for keys, about in zip(found[::2], found[1::2]) for key in keys.split(", ")}


def of_metrics() -> str:
    """The table of metrics."""
    users: dict[str, str] = {}
    for file in papers():
        for name, target in read_yaml(file).get("targets", {}).items():
            for metric in catalogue.metrics_of(target):
                users.setdefault(metric, f"`{file.stem}/{name}`")
    rows = []
    for name, facts in catalogue.metrics().items():
        needs = f"`evaluation.shots`{', two tasks' if facts.tasks > 1 else ''}" if facts.tasks else ""
        rows.append(
            [
                f"`{name}`",
                f"`{facts.measure}`",
                facts.unit or "–",
                facts.better or "–",
                f"over {facts.over}" if facts.over else "number",
                facts.competing,
                needs,
                users.get(name, "–"),
            ]
        )
    return table(["metric", "measure", "unit", "better", "is a", "classes that compete", "needs", "example"], rows)


def page() -> str:
    """The whole page."""
    rules, definitions = schema("paper"), schema("paper")["$defs"]
    shown = rules["properties"] | {"defaults": {"type": "object", "description": "the values that all cells share"}}
    cell = {key: value for key, value in definitions["cell"]["properties"].items() if key not in parts.PARTS}
    reported = schema("reported")["additionalProperties"]["properties"]
    columns = [[f"`{key}`", of.get("description", "") if isinstance(of, dict) else ""] for key, of in reported.items()]
    kinds = [[f"`{name}`", "" if of.draws is None else of.draws] for name, of in catalogue.renderers().items()]
    measures = [
        [f"`{name}`", ", ".join(f"`{key}`" for key in of.cells) or "–"] for name, of in catalogue.measures().items()
    ]
    sections = [
        HEAD,
        "## A paper's file\n",
        keys_of(shown, ()) + "\n",
        "## A cell\n",
        "Its parts stand under `defaults`, in a data set's block, under `cell` of a learner or target and, with a dot, "
        "in a grid.\n",
        keys_of(cell, ()) + "\n",
        *of_parts(),
        "## A target\n",
        keys_of(definitions["target"]["properties"], (), within="targets") + "\n",
        table(["`render`", "draws"], kinds) + "\n",
        table(["`measure`", "needs numbers for"], measures) + "\n",
        "## Metrics\n",
        of_metrics() + "\n",
        "## Methods\n",
        "A learner of a paper has its options, `method`, if its label is another, and `cell`. A method of the paper's "
        "own is a file beside the paper's, such as `method: mine.py` ([own_method.md](own_method.md)).\n",
        *of_methods(),
        "## Reported numbers\n",
        table(["column", "meaning"], columns) + "\n",
        "## Settings of a build\n",
        keys_of(schema("config")["properties"], ()),
    ]
    return "\n".join(sections) + "\n"
