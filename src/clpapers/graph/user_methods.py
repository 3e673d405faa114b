"""Methods from outside: a file is checked without being run, tried on a small problem, and copied for its runs.

A copy is results/<scale>/methods/<label>-<digest>.py, named by the digest of its code. The cells of its runs name it: a
cell determines its method, and an edit of the code makes another cell. No torch is imported.
"""

import ast
import functools
import importlib.util
import itertools
import re
import shlex
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from clpapers.cache import Cache
from clpapers.catalogue import methods
from clpapers.catalogue.methods import DeclarationError, Method
from clpapers.config import identity, parts, user_files
from clpapers.config.paths import method_path
from clpapers.config.plan import Plan
from clpapers.config.refusals import ConfigError, names
from clpapers.config.schemas import violations
from clpapers.config.settings import all_papers
from clpapers.graph import jobs, pages
from clpapers.machine import end_with_parent
from clpapers.provenance import ProvenanceError, module_file, read_record

LABEL = re.compile(r"[a-z][a-z0-9_]{0,59}")
ONE_SEED = "clpapers.runs.method.Method"
BASES = (ONE_SEED, "clpapers.runs.learner.Learner")
PUBLIC = {f"clpapers.{name}": f"clpapers.runs.learner.{name}" for name in ("Learner", "Replay")}
PUBLIC["clpapers.Method"] = ONE_SEED
FOR_AUTHORS = ("options", "needs", "grid", "image_sides", "memory_of_classes", "keeps", "grows", "repeats")
TAKEN = ("absent", "chance", "row")  # names that tables use
_TRIED = Cache("tried")
RESERVED = ("name", "file", "method", "cell", "gan")  # no options: these keys of a cell's learner mean something else


def take_in(scale: str, files: Iterable[str]) -> tuple[str, ...]:
    """Check files of methods, try new ones, and copy them; returns the copies, in the order of the files.

    A file may be such a copy itself.

    Raises `ConfigError`, with file and line, for the first file that is no method.
    """
    copies: dict[str, Path] = {}
    for file in (Path(each).expanduser() for each in files):
        if file.parent == method_path(scale, "", "").parent and _complete(file):
            copies[file.stem] = file
            continue
        label, digest = file.stem, check(file)
        if label in copies:
            raise ConfigError(f"{file}: methods: '{label}' is given twice; rename one of the files")
        copies[label] = method_path(scale, label, digest)
        if not _complete(copies[label]):
            _run("try", "--contracts", str(file))
            _run("method", "--out", str(copies[label]), "--file", str(file))
    return tuple(map(str, copies.values()))


def try_of_papers(papers: Collection[str]) -> None:
    """Try the methods that papers from outside bring along, each once; `ConfigError` for the first that fails."""
    for name, copy in user_files.files("methods").items():
        file = user_files.original(copy)
        if name.partition(".")[0] in papers and file and file.is_file():
            _TRIED.get(name, functools.partial(_run, "try", "--contracts", str(file)))


def paper_of(file: Path) -> str | None:
    """The paper from outside whose own method a file is, if it is one's."""
    of = (name for name, copy in user_files.files("methods").items() if user_files.original(copy) == file.absolute())
    return next((name.partition(".")[0] for name in of), None)


def _complete(copy: Path) -> bool:
    """Whether a copy exists with its record."""
    try:
        return copy.is_file() and bool(read_record(copy))
    except ProvenanceError:
        return False


def _run(*arguments: str) -> None:
    """Run a command in another process, as it may import torch; `ConfigError`, its last line, if it fails."""
    command = [sys.executable, "-m", "clpapers.cli", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=end_with_parent)
    if done.returncode:
        raise ConfigError((done.stderr.splitlines() or ["it ended without a word"])[-1].removeprefix("clpapers: "))


def placement(plan: Plan, label: str) -> list[str]:
    """The tables and figures that a plan's method gets a row in, and by reason those that it does not, a line each.

    All papers are planned with it, job by job, as a build plans them; nothing is made.
    """
    rows, without = dict.fromkeys(all_papers(), 0), dict[str, dict[str, bool]]()
    compared = [target for target in plan.targets.values() if label in target.spec.get("own", {})]
    for target in compared:
        cells = [cell for factors, cell in target.cells if factors["learner"] == label]
        searches = [search for factors, search in target.selections if factors["learner"] == label]
        points = [cell for search in searches for _, cell in search.points]
        runs = (next(iter(plan.results(cell))) for cell in (*cells, *points))
        for path in (*runs, target.metrics, *target.outputs, *(search.file for search in searches)):
            job = jobs.job_of(plan, path)
            assert all((job.inputs, job.code, job.settings))
        rows[target.paper] += bool(cells or searches)
        for reason in [*target.spec["own"][label]["misfits"]][:1]:
            without.setdefault(reason, {})[f"{target.paper}/{target.name}"] = bool(cells or searches)
    count, some = sum(rows.values()), ", ".join(paper for paper in rows if rows[paper])
    lines = [f"a row in {count} of the {len(compared)} tables and figures that compare methods{some and f': {some}'}"]
    for reason, partly in without.items():
        unaware = reason == identity.UNAWARE.format(label)
        for part, told in ((False, "no row in"), (True, "a part of its row in")):
            if named := [name for name, each in partly.items() if each is part]:
                why = f"they restrict the classes that compete; {_remedy(plan, label)}" if unaware else reason
                lines.append(f"{told} {len(named)}, {', '.join(named)}: {why}")
    return lines


def ending(
    plan: Plan, papers: Collection[str], made: Mapping[str, Mapping[Path, Collection[int]]], requested: Collection[str]
) -> list[str]:
    """The lines that end a build: each method from outside, the runs that it trained, those there are, and its page.

    papers: of the build, where it builds no files by name. made: by cell, the result files of this build with their
    seeds. requested: its targets, as Snakemake has them.
    """
    lines, of_files = [], [Path(each).parts[3] for each in requested if len(Path(each).parts) > 4]
    papers = [paper for paper in plan.titles if paper in (of_files or papers)]
    for copy in plan.methods:
        label = Path(copy).stem.partition("-")[0]
        compared = [target for target in plan.targets.values() if label in target.spec.get("own", {})]
        shown = [target for target in compared if target.paper in papers]
        cells = {cell.hash: cell for target in shown for factors, cell in target.cells if factors["learner"] == label}
        wanted, there = (
            sum(map(len, each))
            for each in (
                [plan.seeds_of(cell) for cell in cells.values()],
                [seeds for cell in cells.values() for seeds in plan.results(cell).values()],
            )
        )
        trained = sum(len(seeds) for key in cells for seeds in made.get(key, {}).values())
        told = f"{label}: this build trained {trained:,} of its runs; {there:,} of {wanted:,} are there"
        page = pages.method_page(plan, label)
        if "report" in requested and page.is_file():
            lines.append(f"{told}; its page: {page}")
            continue
        chosen = [f"methods=[{', '.join(plan.methods)}]", f"papers=[{', '.join(papers)}]"]
        chosen += [f"scale={plan.scale}"] * (plan.scale != "paper")
        command = shlex.join(["snakemake", "report", "--cores", "--config", *chosen, "hours=0"])
        lines.append(f"{told}; to build its page: {command}")
    return lines


def _remedy(plan: Plan, label: str) -> str:
    """How a plan's method learns which classes compete, in words of its author's class."""
    file = next(Path(each) for each in plan.methods if Path(each).stem.partition("-")[0] == label)
    tree = ast.parse(file.read_text(encoding="utf-8-sig"))
    if any(_base(node, tree) == ONE_SEED for node in tree.body if isinstance(node, ast.ClassDef)):
        return "only `self.loss` and `self.masked` know them"
    return 'declare that it "uses" "competing", and train by `self.loss`'


# --- the check of a file -------------------------------------------------------------------------------------


def check(file: Path) -> str:
    """The digest of a method's file, ten hexadecimal digits; comments and docstrings do not count.

    Raises `ConfigError` in one line, with file and line, for a file that cannot be a method. It is unreadable or
    no Python, has not one subclass of `clpapers.Method` or `Learner`, declares malformed values, or has a label in use.
    """
    label_of(file)
    try:
        text = file.read_text(encoding="utf-8-sig")
        tree = ast.parse(text)
    except OSError as error:
        raise ConfigError(f"{file}: methods: {error.strerror}; give the path of a method's file") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{file}:1: not UTF-8; save it so") from None
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None) or 1
        raise ConfigError(f"{file}:{line}: not Python: {getattr(error, 'msg', error)}; mend it") from None
    for line, fault in _faults_of_imports(tree):
        raise ConfigError(f"{file}:{line}: {fault}")
    found = {node: base for node in tree.body if isinstance(node, ast.ClassDef) and (base := _base(node, tree))}
    if len(found) != 1:
        line = list(found)[1].lineno if found else 1
        names_of = ", ".join(each.name for each in found) or "none"
        raise ConfigError(f"{file}:{line}: it must have one subclass of clpapers.Method or Learner; it has {names_of}")
    try:
        method = methods.read(file)
    except DeclarationError as error:
        raise ConfigError(str(error)) from None
    faults = _faults_of_declaration(method)
    if ONE_SEED in found.values():
        faults = itertools.chain(_faults_of_one_seed(tree), faults)
    for path, fault in faults:
        raise ConfigError(f"{file}:{methods.line_of(tree, path)}: {methods.NAME}{_keys(path)}: {fault}")
    return methods.code_digest(file)


def label_of(file: Path) -> str:
    """The label of a method, its file's stem; `ConfigError` for a malformed one or one in use."""
    if file.suffix != ".py" or not LABEL.fullmatch(file.stem):
        raise ConfigError(f"{file}: methods: name it like my_method.py: a letter, then a-z, 0-9 and _, is its label")
    if file.stem in methods.methods() or file.stem in TAKEN:
        raise ConfigError(f"{file}: methods: '{file.stem}' is a name of this project's own; rename the file")
    return file.stem


def _keys(path: Iterable) -> str:
    return "".join(f"[{part!r}]" for part in path)


def _faults_of_declaration(method: Method) -> Iterator[tuple[list, str]]:
    """Faults by the rules for methods from outside alone: the place in the declaration, and the fault."""
    for option, rules in method.options.items():
        path = ["options", option]
        if option in RESERVED:
            yield path, f"an option of this name means something else; other than {', '.join(RESERVED)}"
        if "default" not in rules:
            yield path, 'without a "default"; give the value that its runs take'
        else:
            yield from (([*path, "default"], fault) for fault in violations(rules["default"], rules))
    cell_rules: dict[str, dict] = dict(parts.SingleValues.rules()["properties"])
    for part in ("order", "oracle", "net", "budget", "evaluation"):
        cell_rules |= {f"{part}.{option}": rules for option, rules in parts.piece(part)["properties"].items()}
    for key in method.needs:
        if key not in cell_rules:
            yield ["needs", key], f"no value of a cell; there are {names(cell_rules, key)}"
    for key, values in method.grid.items():
        part, option = key.split(".")
        value_rules = method.options.get(option) if part == "learner" else cell_rules.get(key)
        if value_rules is None:
            yield ["grid", key], f"no {'option of it' if part == 'learner' else 'value of a budget'}"
        else:
            for i, value in enumerate(values):
                yield from ((["grid", key, i], fault) for fault in violations(value, value_rules))
    for i, option in enumerate(method.by_tasks):
        if option not in method.options:
            yield ["by_tasks", i], f"{option!r} is no option of it"
    for key in ("without_changes", "always_changing"):
        if (equal := getattr(method, key)) and methods.methods().get(equal, method).options:
            yield [key], "name a method of this project without options, such as single"


def _faults_of_one_seed(tree: ast.Module) -> Iterator[tuple[list, str]]:
    """Keys of a declaration that a class of one seed and plain tensors has no use for."""
    for node in methods.declarations(tree):
        for key in (ast.literal_eval(each) for each in (node.keys if isinstance(node, ast.Dict) else ()) if each):
            if key not in FOR_AUTHORS:
                remedy = "leave it out, as the class tells it, or extend clpapers.Learner"
                yield [key], f"a file with a clpapers.Method has {', '.join(FOR_AUTHORS)}; {remedy}"


def _faults_of_imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Imports of a module that cannot be resolved, by line; nothing is imported."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.level:
            yield (
                node.lineno,
                "it is copied without its neighbours; import installed packages, or put all into one file",
            )
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        modules += [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level else []
        for name in modules:
            ours = name.partition(".")[0] == "clpapers"
            if (module_file(name) if ours else importlib.util.find_spec(name.partition(".")[0])) is None:
                yield node.lineno, f"no module {name} here; install it, or import another"


def _base(node: ast.ClassDef, tree: ast.Module, module: str = "") -> str:
    """The one of `BASES` that a class of a module descends from, by the source of this and of our modules; or empty."""
    bound = {each.name: f"{module}.{each.name}" for each in tree.body if isinstance(each, ast.ClassDef)}
    for each in tree.body:
        if isinstance(each, ast.ImportFrom) and each.module and not each.level:
            bound |= {alias.asname or alias.name: f"{each.module}.{alias.name}" for alias in each.names}
        elif isinstance(each, ast.Import):
            bound |= {alias.asname: alias.name for alias in each.names if alias.asname}
    for base in map(ast.unparse, node.bases):
        first, dot, rest = base.partition(".")
        name = bound.get(first, first) + dot + rest
        name = PUBLIC.get(name, name)
        above = (_base(*found) for found in _class(name, tree, module) if found[0] is not node)
        if found := name if name in BASES else next(filter(None, above), ""):
            return found
    return ""


def _class(name: str, tree: ast.Module, module: str) -> Iterator[tuple[ast.ClassDef, ast.Module, str]]:
    """The class of a dotted name in this module or in another of this package, if there is one."""
    home, _, class_name = name.rpartition(".")
    if home != module:
        file = module_file(home) if home.partition(".")[0] == "clpapers" else None
        tree = ast.parse(file.read_text(encoding="utf-8-sig")) if file else ast.Module([], [])
    yield from ((each, tree, home) for each in tree.body if isinstance(each, ast.ClassDef) and each.name == class_name)
