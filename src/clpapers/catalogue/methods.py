"""The catalogue of methods: the declarations of the learners' files, read without importing them or torch.

This project's learners are in runs/learners/. A learner from outside (`own`) is in results/<scale>/methods/, under the
name that its cells give.
"""

import ast
import functools
import hashlib
import importlib.metadata
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, Self

from clpapers.cache import Cache
from clpapers.catalogue.options import Count, Struct, bounds
from clpapers.home import project_path
from clpapers.provenance import without_docstrings

LEARNERS = Path(__file__).parents[1] / "runs" / "learners"
NAME = "DECLARATION"
TYPES = {"bool": "boolean", "int": "integer", "float": "number", "str": "string"}  # of JSON Schema, by Python's


class DeclarationError(Exception):
    """A learner's file or its declaration is malformed; one line: file, line, key, value, remedy."""


_NO_TEXTS: list = []
_NOTHING: dict = {}
_OPTION = {
    "type": "object",
    "properties": {"examples": {"type": "array", "minItems": 1, "description": "write a list of values"}},
    "description": 'write such as {"type": "number", "default": 1.0}',
}


class Method(Struct):
    """A method's declaration, which its learner's file gives as the literal `DECLARATION`: each field is a key of it.

    In a file of this project the key `like` names another method. This one then has that one's keys and options. Its
    own stand beside them or replace them. A complete cell gives every option, or leaves out one of this project's
    methods that has its default. `name` is the file's. `file` is the copy of a method from outside
    (`config.paths.method_path`), and empty for one of this project.
    """

    name: str
    file: str = ""
    options: Annotated[
        dict[str, dict],
        bounds(additionalProperties=_OPTION),
        'each option\'s JSON Schema, with "examples" for the tests, or with a "default" alone',
    ]
    uses: Annotated[
        list[Literal["changes", "tasks", "competing"]],
        "the parts of oracle and restriction that it uses: when the task changes, the tasks of items, the classes "
        "competing in training; other parts are left out of its cells",
    ] = _NO_TEXTS
    needs: Annotated[
        dict[str, Annotated[list, bounds(minItems=1), "write a list of values that will do"]],
        'requirements on a cell, such as {"budget.optimizer": ["sgd"]}',
    ] = _NOTHING
    image_sides: Annotated[Count, "images' heights and widths must be multiples of so many pixels"] = 1
    memory_of_classes: Annotated[bool, "whether its memory needs room for an item of each class of each task"] = False
    by_tasks: Annotated[list[str], "its options that are mappings by the number of tasks"] = _NO_TEXTS
    tasks_once: Annotated[bool, "whether tasks must come once, since it keeps something of each"] = False
    without_changes: Annotated[
        str | None, "the method without options that it equals as long as the task never changes"
    ] = None
    always_changing: Annotated[
        str | None, "the method without options that it equals where the task changes with every batch"
    ] = None
    measures: Annotated[list[str], "optional keys of a cell's evaluation that it can measure"] = _NO_TEXTS
    answers_by_task: Annotated[bool, "whether it answers an item with parts that belong to the item's task alone"] = (
        False
    )
    past_tasks_frozen: Annotated[
        bool, "whether its answers to a task's items stay the same once the task has been learnt"
    ] = False
    keeps: Annotated[str | None, "the old data that it keeps learning from, in a few words"] = None
    guesses: Annotated[bool, "whether it trains nothing"] = False
    repeats: Annotated[
        list[str], "dotted options to which the time of a step, or of preparing a test, is proportional"
    ] = _NO_TEXTS
    counts_items: Annotated[
        list[str], "dotted options that count items of the stream; a rehearsal shrinks them with it"
    ] = _NO_TEXTS
    grows: Annotated[bool, "whether its steps or answers take longer, the more items it has learnt"] = False
    stackable: Annotated[bool, "whether a job's seeds train as one tensor program; or they follow one another"] = True
    uses_batch: Annotated[bool, "whether a step uses the stream batch itself; or the batch is not gathered"] = True
    answers_first: Annotated[bool, "whether such a step predicts the batch's classes before learning it"] = True
    own_nets: Annotated[bool, "whether it makes its nets itself, instead of one net of the cell's kind"] = False
    static: Annotated[
        bool,
        "whether between task changes its steps are of few kinds, each the same operations on tensors at the same "
        "places, without a look at their values (`runs.cuda_graphs`); a GPU then replays a step as one",
    ] = False
    where: Annotated[
        dict[str, dict], "what replaces these for some value of an option: dotted option, value, declaration"
    ] = _NOTHING
    grid: Annotated[
        dict[str, Annotated[list, bounds(minItems=1, uniqueItems=True), "write a list of values to try, each once"]],
        bounds(propertyNames={"pattern": r"^(budget|learner)\.\w+$", "description": "write such as learner.strength"}),
        "of a method from outside, the values to try where a paper selects hyper-parameters, such as "
        '{"budget.learning_rate": [0.1, 0.03]}',
    ] = _NOTHING

    @functools.cached_property
    def option_rules(self) -> dict:
        """The JSON Schema of its options together; those without a default must be given."""
        needed = [option for option, rules in self.options.items() if "default" not in rules]
        return {"type": "object", "additionalProperties": False, "required": needed, "properties": self.options}

    def with_options(self, options: Mapping) -> Self:
        """The method with these options, `where` applied."""
        changed: dict = {}
        for key, cases in self.where.items():
            value: object = options
            for part in key.split("."):
                value = value.get(part) if isinstance(value, Mapping) else None
            changed |= next((declared for case, declared in cases.items() if case == value), {})
        return self.replace(**changed)

    def examples(self) -> list[dict]:
        """Complete options for the tests: the n-th has each option's n-th example, or its first where it has fewer."""
        examples = {option: schema["examples"] for option, schema in self.options.items()}
        count = max(map(len, examples.values()), default=1)
        return [{option: (each[n:] or each)[0] for option, each in examples.items()} for n in range(count)]


@functools.cache
def methods() -> dict[str, Method]:
    """Every method of this project by name. Raises `DeclarationError` for the first malformed declaration."""
    return {file.stem: read(file) for file in sorted(LEARNERS.glob("[a-z]*.py"))}


def method_of(learner: Mapping) -> Method:
    """The method of a cell's `learner`, with the options there."""
    method = copied(project_path(learner["file"])) if "file" in learner else methods()[learner["name"]]
    return method.with_options(learner)


@functools.cache
def copied(file: Path) -> Method:
    """The method whose file was copied to `methods/<name>-<digest>.py`, of a paper's own with the paper before a dot.

    Raises `DeclarationError` as `read`.
    """
    return read(file).replace(name=file.stem.partition("-")[0].rpartition(".")[2], file=str(file))


def code_digest(file: Path) -> str:
    """The digest of a method's code, ten hexadecimal digits; comments and docstrings do not count."""
    tree = without_docstrings(ast.parse(file.read_text(encoding="utf-8-sig")))
    return hashlib.sha256(ast.unparse(tree).encode()).hexdigest()[:10]


def read(file: Path) -> Method:
    """The method that a file declares. Raises `DeclarationError` with file, line, key, value and remedy in one line."""
    tree, literals = _literals(file)
    options = literals.get("options")
    for schema in options.values() if isinstance(options, dict) else ():
        if isinstance(schema, dict) and "default" in schema:
            schema.setdefault("examples", [schema["default"]])
    _PASSED.get(f"{_checked_by()} {literals!r}", lambda: _checked(file, tree, literals))
    return Method(name=file.stem, **literals)


_PASSED = Cache("declarations")


@functools.cache
def _checked_by() -> str:
    return f"{importlib.metadata.version('jsonschema')} {_FORM}"


def _checked(file: Path, tree: ast.Module, literals: dict) -> bool:
    """Refuse a declaration with a wrong key or value."""
    import jsonschema  # a fifth of a second, which most commands need not wait for

    # Draft 7 has the keywords of later drafts, and takes a third of their time.
    form = jsonschema.Draft202012Validator(_FORM)
    options = {"properties": {"options": {"additionalProperties": jsonschema.Draft7Validator.META_SCHEMA}}}
    for rules in (form, jsonschema.Draft7Validator(options)):
        mistake = jsonschema.exceptions.best_match(rules.iter_errors(literals))
        if mistake is not None:
            path = "".join(f"[{part!r}]" for part in mistake.absolute_path)
            takes = ", ".join(mistake.schema.get("properties", {}))
            remedy = mistake.schema.get("description") or (f"it takes {takes}" if takes else "mend it")
            line = line_of(tree, list(mistake.absolute_path))
            raise DeclarationError(f"{file}:{line}: {NAME}{path}: {mistake.message}; {remedy}")
    return True


def _literals(file: Path) -> tuple[ast.Module, dict]:
    """A file's module down to its declaration, and this with the keys and options of the method that it is `like`."""
    try:
        text = file.read_text(encoding="utf-8-sig")
        ends = file.parent == LEARNERS and re.search(rf"^{NAME} = .*?^\}}$", text, re.DOTALL | re.MULTILINE)
        tree = ast.parse(text[: ends.end()] if ends else text)  # the rest need not be parsed
    except OSError as error:
        raise DeclarationError(f"{file}: {error.strerror}") from None
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise DeclarationError(f"{file}:{getattr(error, 'lineno', None) or 1}: not Python: {error}; mend it") from None
    declared, class_ = declarations(tree), None if file.parent == LEARNERS else _class(tree)
    if len(declared) != 1 and (declared or class_ is None):
        raise DeclarationError(
            f'{file}:1: it has not one {NAME}; write {NAME} = {{"options": {{…}}}} after its imports'
        )
    node, literals = (declared or [ast.Dict([], [])])[0], {}
    entries = zip(node.keys, node.values) if isinstance(node, ast.Dict) else [(node, node)]
    for key, value in entries:
        try:
            if key is None:
                raise ValueError("`**value` has no key")
            literals[ast.literal_eval(key)] = ast.literal_eval(value)
        except (TypeError, ValueError, RecursionError):
            where = f"{file}:{(key or value).lineno}: {NAME}[{ast.unparse(key or value)}]"
            raise DeclarationError(f"{where}: no literal; write a text, number, list or mapping, not code") from None
    for mapping in (each for each in ast.walk(node) if isinstance(each, ast.Dict)):
        keys = [key for key in mapping.keys if isinstance(key, ast.Constant)]
        for i, constant in enumerate(keys):
            if constant.value in [key.value for key in keys[:i]]:
                raise DeclarationError(
                    f"{file}:{constant.lineno}: {NAME}: {constant.value!r} stands twice; leave one out"
                )
    if class_ is not None:
        literals = _of_class(file, class_) | literals
    if file.parent == LEARNERS and "like" in literals:
        _, model = _literals(LEARNERS / f"{literals.pop('like')}.py")
        literals = model | literals | {"options": model["options"] | literals.get("options", {})}
    return tree, literals


def _class(tree: ast.Module) -> ast.ClassDef | None:
    """The class of a file with one seed and plain tensors, `clpapers.Method`, if it has one."""
    classes = (each for each in tree.body if isinstance(each, ast.ClassDef))
    return next((each for each in classes if {"Method", "clpapers.Method"} & {*map(ast.unparse, each.bases)}), None)


def _of_class(file: Path, node: ast.ClassDef) -> dict:
    """The part of a declaration that a class tells: its options, and the facts that it uses.

    Options are the keywords with a default; an annotation or the default tells the type. It uses task `changes` where
    it has `begin_task` or `end_task`, and the classes `competing` where it calls `loss` or `masked` as inherited.
    """
    functions = {each.name: each.args for each in node.body if isinstance(each, ast.FunctionDef)}
    keywords: list[tuple[ast.arg, ast.expr | None]] = []
    if given := functions.get("__init__"):
        named = given.args[1:]
        keywords += zip(named, [*[None] * (len(named) - len(given.defaults)), *given.defaults])
        keywords += zip(given.kwonlyargs, given.kw_defaults)
    options: dict[str, dict] = {}
    for keyword, default in keywords:
        try:
            value = None if default is None else ast.literal_eval(default)
        except (TypeError, ValueError, RecursionError):
            where = f"{file}:{keyword.lineno}: {node.name}: {keyword.arg}"
            raise DeclarationError(f"{where}: its default is no literal; write a text, number or list") from None
        kind = TYPES.get(ast.unparse(keyword.annotation) if keyword.annotation else type(value).__name__)
        options[keyword.arg] = ({"type": kind} if kind else {}) | ({} if default is None else {"default": value})
    attributes = [each for each in ast.walk(node) if isinstance(each, ast.Attribute)]
    losses = [each for each in attributes if ast.unparse(each) in ("self.loss", "self.masked")]
    own = functions.keys() | {each.attr for each in losses if isinstance(each.ctx, ast.Store)}
    competing = {each.attr for each in losses} - own
    uses = {"changes": functions.keys() & {"begin_task", "end_task"}, "competing": competing}
    return {"options": options, "uses": [fact for fact, used in uses.items() if used]}


def declarations(tree: ast.Module) -> list[ast.expr]:
    """The values that a module assigns to `DECLARATION`."""
    assigned = (node for node in tree.body if isinstance(node, ast.Assign))
    return [node.value for node in assigned if ast.unparse(node.targets[0]) == NAME]


def line_of(tree: ast.Module, path: Sequence) -> int:
    """The line of the value at a path of keys and indices in a module's declaration, or of the keyword that is it."""
    class_, node = _class(tree), next(iter(declarations(tree)), None)
    line = (node or class_ or tree.body[0]).lineno
    if class_ is not None and (node is None or f"'{path[0]}'" not in map(ast.unparse, getattr(node, "keys", ()))):
        keywords = {each.arg: each.lineno for each in ast.walk(class_) if isinstance(each, ast.arg)}
        return keywords.get(path[1], class_.lineno) if len(path) > 1 else class_.lineno
    for part in path:
        if isinstance(node, ast.Dict):
            pairs = ((key, value) for key, value in zip(node.keys, node.values) if key is not None)
            key, node = next((key, value) for key, value in pairs if ast.literal_eval(key) == part)
            line = key.lineno
        elif isinstance(node, ast.List | ast.Tuple):
            node = node.elts[part]
            line = node.lineno
    return line


_KEYS = {key: rules for key, rules in Method.rules()["properties"].items() if key not in ("name", "file")}
_PLAIN = {key: rules for key, rules in _KEYS.items() if key not in ("options", "where")}  # `where` may replace these
_OF_VALUE = {"type": "object", "additionalProperties": False, "properties": _PLAIN}
_WHERE = {"type": "object", "additionalProperties": {"type": "object", "additionalProperties": _OF_VALUE}}
_FORM = {
    "type": "object",
    "additionalProperties": False,
    "required": ["options"],
    "properties": _KEYS | {"where": _WHERE},
}
