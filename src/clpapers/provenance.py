"""Records: the JSON beside every output that says how it was made; atomic writes and digests of code."""

import ast
import contextlib
import datetime
import functools
import hashlib
import importlib.metadata
import json
import os
import platform
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath

from clpapers import machine
from clpapers.cache import Cache
from clpapers.home import PACKAGE, project_path

CODE_FOLDERS = "src", "config", "rules", "workflow"  # a file that git does not follow counts as code
UNCOUNTED = (Path(__file__), PACKAGE / "home.py", PACKAGE / "cli" / "job_context.py")  # excluded from code digests
MANIFEST = "manifest-sha256.txt"  # of a crate or a site: a line a file, as sha256sum has it
RANDOM = "????????"  # mkstemp's part of a name, as a pattern: `.table1.…` must not match `.table1.reported.…`
LARGEST_RECORD = 1 << 26  # bytes
RECORDED_PACKAGES = (
    "numpy",
    "scipy",
    "pandas",
    "torch",
    "torchvision",
    "matplotlib",
    "seaborn",
    "PIL",
    "snakemake",
)


def escaped(text: object) -> str:
    """A text as one printable line: other characters, such as terminal control, become Python escapes."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(text))


class Refusal(Exception):
    """A fault of the call, the configuration or the data, for a person, with the remedy; a command ends with it."""


class ProvenanceError(Refusal):
    """A record is missing or unreadable; the text is one line that names the file and the remedy."""

    def __init__(self, text: str):
        super().__init__(escaped(text))


# --- files ---------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def write_atomically(path: Path | str) -> Iterator[Path]:
    """A temporary path in the same folder, renamed over `path` on success and removed on failure.

    The temporary name keeps the suffix, since writers such as `np.savez` look at it, and starts with a dot, so
    that a file left by SIGKILL is never mistaken for a result.
    """
    path = project_path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.stem}.", suffix=path.suffix, dir=path.parent)
    except OSError as error:
        error.filename = str(path)  # names the result, not the temporary file
        raise
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        umask = os.umask(0)
        os.umask(umask)
        with contextlib.suppress(PermissionError):  # a mount that sets modes itself, as of CIFS
            temporary.chmod(0o666 & ~umask)  # mkstemp makes files private
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def sweep(path: Path | str) -> None:
    """Remove the temporary files that a killed job left of `path`."""
    path = project_path(path)
    for remains in path.parent.glob(f".{path.stem}.{RANDOM}{path.suffix}"):
        remains.unlink()


def files_of(listing: bytes) -> dict[str, str]:
    """The SHA-256 of each file in a manifest, which is as `sha256sum` writes it."""
    lines = (line.partition("  ") for line in listing.decode(errors="replace").splitlines())
    return {name: digest for digest, _, name in lines}


def write_text(path: Path | str, text: str) -> None:
    """Write `text` (UTF-8) to `path` atomically."""
    write_bytes(path, text.encode())


def write_bytes(path: Path | str, content: bytes) -> None:
    """Write `content` to `path` atomically."""
    with write_atomically(path) as temporary:
        temporary.write_bytes(content)


def sha256(path: Path | str) -> str:
    """SHA-256 of a file's bytes, as hexadecimal digits."""
    with project_path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# --- code ----------------------------------------------------------------------------------------------------


_PARSED = Cache("code")


@functools.cache
def _parsed(path: Path, function: str) -> tuple[str, frozenset[str]]:
    """A module's digest (without docstrings and comments), and the names of this package that it imports.

    function: only this function and the definitions that it uses count; empty for the whole module.
    """
    text = path.read_text(encoding="utf-8-sig")
    question = json.dumps([_own_digest(), function, text])
    digest, names = _PARSED.get(question, lambda: _parse(text, function))
    return digest, frozenset(names)


@functools.cache
def _own_digest() -> str:
    return sha256(__file__)


def _parse(text: str, function: str) -> list:
    """As `_parsed`, of a module's text, and as JSON has it."""
    tree = ast.parse(text)
    tree.body = [each for each in tree.body if not _for_annotations(each)]
    if function:
        tree.body = _dependencies(tree.body, function)
    names = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    digest = hashlib.sha256(_dumped(without_docstrings(tree)).encode()).hexdigest()
    return [digest, sorted(name for name in names if name.split(".")[0] == PACKAGE.name)]


def _dumped(node: object) -> str:
    """The text that `ast.dump` of Python 3.11 gives. Later Pythons add fields and leave out empty ones."""
    if isinstance(node, list):
        return f"[{', '.join(map(_dumped, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = {name: getattr(node, name) for name in node._fields if hasattr(node, name)}
    if not fields.get("type_params"):
        fields.pop("type_params", None)
    fields = {name: value for name, value in fields.items() if (value, getattr(type(node), name, ...)) != (None, None)}
    return f"{type(node).__name__}({', '.join(f'{k}={_dumped(v)}' for k, v in fields.items())})"


def without_docstrings(tree: ast.Module) -> ast.Module:
    """The same module, changed in place, without its docstrings and the sentences of its annotations."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            node.body = node.body[ast.get_docstring(node, clean=False) is not None :]
        elif isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Annotated":
            kind, *notes = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            told = [note for note in notes if not (isinstance(note, ast.Constant) and isinstance(note.value, str))]
            node.slice = ast.Tuple([kind, *told], ast.Load())
    return tree


def _for_annotations(statement: ast.stmt) -> bool:
    """Whether a statement imports names for annotations alone, and so never runs."""
    return isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING"


def _dependencies(body: list[ast.stmt], function: str) -> list[ast.stmt]:
    """The statements of a module that `function` depends on: its own, and the definitions of the names that it uses.

    A statement that defines nothing, such as `if`, always counts.
    """
    defined = {each: _defined(each) for each in body}
    if not any(function in names for names in defined.values()):
        raise LookupError(f"no function {function}")
    counted, names = {each for each in body if not defined[each]}, {function}
    while more := {each for each in body if each not in counted and defined[each] & names}:
        counted |= more
        names |= {node.id for each in more for node in ast.walk(each) if isinstance(node, ast.Name)}
    return [each for each in body if each in counted]


def _defined(statement: ast.stmt) -> set[str]:
    """The names that a statement of a module defines."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name.split(".")[0] for alias in statement.names}
    targets = [statement.target] if isinstance(statement, ast.AnnAssign) else getattr(statement, "targets", [])
    return {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}


@functools.cache
def module_file(name: str) -> Path | None:
    """The file of a module of this package, or of a method from outside, which is named by its path; or None."""
    if name.endswith(".py"):
        return Path(name)
    base = PACKAGE.parent.joinpath(*name.split("."))
    return next((p for p in (base.with_suffix(".py"), base / "__init__.py") if p.is_file()), None)


@functools.cache
def code_digest(*modules: str) -> str:
    """Digest (16 hexadecimal digits) of the named modules and of all modules of this package that they import.

    It is the same on every Python.

    `module:function` names a function with the definitions that it uses of its module, without the functions beside it;
    a path that ends in `.py` names the file of a method from outside.
    Snakemake does not see an edit inside an imported package, so each rule carries this digest among its params.
    Comments and docstrings do not count, so that explaining the code never retrains anything. Nor do `UNCOUNTED`
    modules and their imports: finding, writing and recording files decides nothing of their content.
    """
    parts = ((path, function, _parsed(path, function)[0]) for path, function in imported(*modules))
    lines = sorted(f"{_in_package(path)} {function} {digest}" for path, function, digest in parts)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def _in_package(path: Path) -> Path:
    """A file as code digests name it: independent of the folder that the package is installed in."""
    return path.relative_to(PACKAGE) if path.is_relative_to(PACKAGE) else path


def imported(*modules: str) -> set[tuple[Path, str]]:
    """The files that `code_digest` covers: the named modules and all modules of this package that they import.

    Each comes with the function of it that counts, empty where the whole module counts.
    """
    queue, seen = list(modules), set[tuple[Path, str]]()
    while queue:
        module, _, function = queue.pop().partition(":")
        path = module_file(module)
        if path is not None and (path, function) not in seen and path not in UNCOUNTED:
            seen.add((path, function))
            queue.extend(_parsed(path, function)[1])
    return seen


def git_state() -> dict:
    """`{"commit": …, "dirty": …}` of the working tree; nulls where git knows no commit (`why_no_commit`)."""
    if why_no_commit():
        return {"commit": None, "dirty": None}
    status = _git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!results")  # published ones are no code
    added = _git("status", "--porcelain", "--untracked-files=normal", "--", *CODE_FOLDERS)
    commit = _git("rev-parse", "HEAD")
    return {
        "commit": None if commit.returncode else commit.stdout.strip(),
        "dirty": None if status.returncode or added.returncode else bool((status.stdout + added.stdout).strip()),
    }


def why_no_commit() -> str:
    """Why git knows no commit of the project, in git's own words where it refuses; empty where it knows one.

    Its answer counts where its top folder is the project's, or has the project's Snakefile. A project that was unpacked
    inside another repository is no part of that repository.
    """
    top = _git("rev-parse", "--show-toplevel")
    if top.returncode:
        said = top.stderr.strip().partition("\n")[0].removeprefix("fatal: ")
        return "not under git" if "not a git repository" in said else f"git refuses: {escaped(said)}"
    folder = Path(top.stdout.strip())
    if folder.resolve() == project_path().resolve() or not _git("ls-files", "--error-unmatch", "Snakefile").returncode:
        return ""
    return f"not under git: the repository around it, {folder}, does not have it"


def _git(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run git and return its answer; a failure with the reason where it cannot run."""
    command, environment = ["git", *arguments], os.environ | {"LC_ALL": "C"}
    try:
        return subprocess.run(command, cwd=project_path(), capture_output=True, text=True, timeout=30, env=environment)
    except FileNotFoundError:
        return subprocess.CompletedProcess(arguments, 127, "", "it is not installed")
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError) as error:
        return subprocess.CompletedProcess(arguments, 126, "", str(error).partition("\n")[0])


# --- records -------------------------------------------------------------------------------------------------


def record_path(output: Path | str) -> Path:
    """The path of the record of `output`.

    Files that differ in the last suffix share one, and a figure's caption and its note (`.unrun`) have the figure's.
    """
    output = project_path(output)
    name = output.stem.removesuffix(".record").removesuffix(".caption").removesuffix(".unrun")
    return output.with_name(f"{name}.record.json")


def is_imported(path: Path | str) -> bool:
    """Whether `clpapers import` brought a file."""
    return len(parts := Path(path).parts) > 3 and (parts[0], parts[2]) == ("results", "imported")


def as_published(path: Path | str) -> str:
    """The path under which a file's own record lists it; an imported file's is the path where it was made."""
    parts = Path(path).parts
    return str(Path(*parts[:2], "runs", *parts[3:])) if is_imported(path) else str(path)


def record_by_digest(scale: str, digest: str) -> Path:
    """The path of the record with SHA-256 `digest`, of a file that was not imported along with its runs."""
    return project_path("results", scale, "imported", "records", f"{digest}.json")


def read_record(output: Path | str) -> dict:
    """Read the record of `output` and check its form; raises `ProvenanceError` where it is missing or malformed."""
    return parse_record(record_path(output), output)


def ancestry(*paths: Path) -> dict[Path, dict]:
    """The readable records that files descend from, their own included: record path → record."""
    records: dict[Path, dict] = {}
    queue = list(paths)
    while queue:
        file = queue.pop()
        path = record_path(file)
        with contextlib.suppress(ProvenanceError):
            if path not in records:
                records[path] = read_record(file)
                queue += [project_path(item["path"]) for item in records[path]["inputs"]]
    return records


def records_behind(record: dict, find: Callable[[dict], bytes | None]) -> dict[str, bytes]:
    """The records that a job descends from, each once: their SHA-256 and text.

    find: returns the text of an input's record, from the input's facts in a record; None where it is missing.
    """
    found: dict[str, bytes] = {}
    queue = [record]
    while queue:
        for item in queue.pop()["inputs"]:
            text = find(item)
            digest = hashlib.sha256(text or b"").hexdigest()
            if text is not None and digest not in found:
                found[digest] = text
                queue.append(json.loads(text))
    return found


def record_apart(scale: str, item: dict) -> bytes | None:
    """The text of an input's record that came along with an imported run, as its SHA-256 proves; None without."""
    file = record_by_digest(scale, str(item.get("record")))
    text = file.read_bytes() if file.is_file() else b""
    return text if hashlib.sha256(text).hexdigest() == item.get("record") else None


def record_of_input(scale: str, item: dict) -> bytes | None:
    """The text of an input's record: the one that came along with an imported run, or the one beside the input."""
    beside = record_path(item["path"])
    return record_apart(scale, item) or (beside.read_bytes() if beside.is_file() else None)


def parse_record(path: Path, output: Path | str) -> dict:
    """Read a record of `output`, as `read_record` does, from the file at `path`."""
    try:
        if not path.is_file() and (path.exists() or path.is_symlink()):
            raise ValueError("no plain file")
        if path.stat().st_size > LARGEST_RECORD:
            raise ValueError(f"over {LARGEST_RECORD} bytes")
        record = json.loads(path.read_text(encoding="utf-8"))
        if damage := damage_of(record):
            raise ValueError(damage)
    except FileNotFoundError:
        raise ProvenanceError(f"{output}: no record {path.name} beside it; delete it and build it anew") from None
    except (OSError, RecursionError, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise ProvenanceError(f"{path}: not a record ({said[:200]}); delete it and rebuild") from None
    return record


def damage_of(record: object) -> str:
    """How a record departs from the form that `recording` writes; empty where it does not. Its seal proves the rest."""
    if not isinstance(record, dict):
        return "JSON, but no object"
    for key, kind in FORM.items():
        if key not in record:
            return f"it lacks {key!r}"
        if not isinstance(record[key], kind) or (kind is list and not all(map(_is_file, record[key]))):
            return f"{key!r} is not as it should be"
    return ""


def is_path(text: object) -> bool:
    """Whether a text is a path that a record may hold: inside the project, normalised, printable."""
    if not isinstance(text, str) or not text.isprintable() or len(encoded := text.encode()) > 4000:
        return False
    within = not text.startswith(("/", "../")) and text not in ("", ".", "..") and "/../" not in text
    return within and str(PurePosixPath(text)) == text and all(len(part) <= 255 for part in encoded.split(b"/"))


def _is_file(item: object) -> bool:
    return isinstance(item, dict) and is_path(item.get("path")) and isinstance(item.get("sha256"), str)


FORM = {  # of a record: its keys, each with the type of its value
    **dict.fromkeys(("stage", "command", "code", "started"), str),
    **dict.fromkeys(("git", "data", "hardware"), dict),
    **dict.fromkeys(("wall_seconds", "cpu_seconds", "peak_memory_bytes"), int | float),
    **dict.fromkeys(("inputs", "outputs"), list),
}


def seal(record: dict) -> str:
    """SHA-256 of a record's content without its `seal`: whoever edits a record must forge the seal too."""
    content = {key: value for key, value in record.items() if key != "seal"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _facts(paths: Iterable[Path | str]) -> list[dict]:
    return [{"path": str(p), "sha256": sha256(p), "bytes": project_path(p).stat().st_size} for p in paths]


def _chained(paths: Iterable[Path | str]) -> list[dict]:
    """The facts of inputs, each with the SHA-256 of its record, unless the input has none or is a record itself."""
    beside = [record_path(path) for path in paths]
    return [
        fact | ({"record": sha256(record)} if record.is_file() and str(record) != fact["path"] else {})
        for fact, record in zip(_facts(paths), beside)
    ]


def _date(inputs: Iterable[Path | str]) -> None:
    """Set the times of inputs that lie in the future, since the clock was set back, to now.

    Snakemake would discard outputs that are older than their inputs, whatever they cost.
    """
    now = time.time()
    for path in inputs:
        if os.stat(path).st_mtime > now:
            with contextlib.suppress(OSError):  # another user's file; Snakemake will report it
                os.utime(path)


AS_RECORDED, NOT_AS_RECORDED, UNSEALED = "as recorded", "NOT AS RECORDED", "seal is not of its content"
CHANGED, REMADE = "CHANGED since it was read", "made anew since it was read"
MISSING, NO_RECORD = "MISSING", "no record"
BY_CHECKSUM = "by checksum"  # an input of an imported run, where it was trained
EDITED = {  # how a file was edited
    NOT_AS_RECORDED: "not the bytes that its record holds",
    UNSEALED: "its seal is not the digest of its content",
}


class Files:
    """The one comparison of files with their records. Each file is read once.

    unreadable: why a file cannot be read.
    """

    def __init__(self) -> None:
        self.digests: dict[str, str] = {}
        self.records: dict[Path, dict | None] = {}
        self.unreadable: dict[str, str] = {}

    def digest(self, path: Path | str) -> str:
        """The SHA-256 of a file; empty where there is no plain file, or none that can be read."""
        if str(path) not in self.digests:
            self.digests[str(path)] = ""
            try:
                if project_path(path).is_file():
                    self.digests[str(path)] = sha256(path)
            except OSError as error:
                self.unreadable[str(path)] = error.strerror or str(error)
        return self.digests[str(path)]

    def record(self, path: Path | str) -> dict | None:
        """The record of a file; None without a readable one."""
        own_path = record_path(path)
        if own_path not in self.records:
            self.records[own_path] = None
            with contextlib.suppress(ProvenanceError):
                self.records[own_path] = read_record(path)
        return self.records[own_path]

    def came_along(self, item: dict) -> bool:
        """Whether an absent input's record came along with an imported run."""
        scale = Path(item["path"]).parts[1:2]
        return bool(scale) and record_apart(scale[0], item) is not None

    def state(self, path: Path | str, record: dict | None = None) -> str:
        """How a file stands to its record, by default the one beside it, and a record to its seal."""
        if not self.digest(path):
            return MISSING
        if (record := record or self.record(path)) is None:
            return NO_RECORD
        if str(path) == str(record_path(path)):
            return AS_RECORDED if record.get("seal") == seal(record) else UNSEALED
        recorded = {item["path"]: item["sha256"] for item in record["outputs"]}
        return AS_RECORDED if recorded.get(as_published(path)) == self.digest(path) else NOT_AS_RECORDED

    def sound(self, path: Path | str) -> bool:
        """Whether a file is as its record holds, or is one of the configuration, which has none."""
        return Path(path).parts[0] == "config" or self.state(path) == AS_RECORDED

    def state_since(self, item: dict) -> str:
        """How an input stands to the facts that its reader's record has of it."""
        path, own_path = item["path"], record_path(item["path"])
        if not (digest := self.digest(path)):
            return BY_CHECKSUM if self.came_along(item) else MISSING
        if digest != item["sha256"]:
            return CHANGED
        without = Path(path).parts[0] == "config" or str(own_path) == path  # these are read without a record
        return AS_RECORDED if without or item.get("record") == self.digest(own_path) else REMADE


def verified_record(entry: dict) -> dict:
    """The record of the input with these facts; `ProvenanceError` unless file and record are as they were written."""
    files, path = Files(), entry["path"]
    files.digests[path] = entry["sha256"]
    record = files.records[record_path(path)] = read_record(path)
    for each in (str(record_path(path)), path):
        if fault := EDITED.get(files.state(each)):
            remedy = "damaged or edited since; delete it and give the same command again"
            raise ProvenanceError(f"{each}: {fault}: {remedy}")
    return record


def hardware() -> dict:
    """The machine that this process runs on."""
    return {
        "machine": platform.machine(),
        "processor": machine.processor(),
        "cores": os.cpu_count(),
        "system": platform.platform(),
    }


def device_of(hardware: dict) -> str:
    """The device that trained a run, by the `hardware` of its record: the GPU or the processor."""
    device = hardware.get("device", "cpu")
    return hardware.get("processor") or "CPU" if device == "cpu" else device


def spent(since: float, earlier: dict) -> dict:
    """Time and memory that this process took since `since` (`time.monotonic`), plus the ones of `earlier` processes.

    Returns `wall_seconds`, `cpu_seconds` and `peak_memory_bytes`. earlier: an earlier return value, or `{}`.
    """
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "wall_seconds": round(earlier.get("wall_seconds", 0) + time.monotonic() - since, 3),
        "cpu_seconds": round(earlier.get("cpu_seconds", 0) + usage.ru_utime + usage.ru_stime, 3),
        "peak_memory_bytes": max(earlier.get("peak_memory_bytes", 0), machine.peak_memory()),
    }


def _packages() -> dict[str, str | None]:
    """The versions of the packages that records name; null for one that is not installed."""
    versions: dict[str, str | None] = {}
    for name in RECORDED_PACKAGES:
        try:
            versions[name] = importlib.metadata.version("pillow" if name == "PIL" else name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    return versions


@contextlib.contextmanager
def recording(
    stage: str, outputs: Iterable[Path], inputs: Iterable[Path], code: str, **facts: object
) -> Iterator[dict]:
    """Run a stage and write its record last: the record's presence says that all outputs are complete.

    The yielded dictionary takes further facts while the stage runs. The fact `earlier`, which earlier processes `spent`
    on the same outputs, is added to the time and memory of this process. `data` names the data sets that an output
    descends from and says whether they are real. It is inherited from the inputs' records, so no stand-in is lost.
    A record names its inputs' records by SHA-256 and ends with its own `seal`.

    Raises `ProvenanceError`, before anything is touched, for an input without a record or changed since it was
    recorded, unless it is part of the configuration.

    Parameters
    ----------
    stage: name of the stage (`datasets`, `streams`, …).
    outputs, inputs: files written and read. All outputs share one record (`record_path`).
    code: the `code_digest` of the code that ran.
    facts: anything else the record must hold, JSON-serialisable (cell, seeds, target, …).
    """
    outputs, inputs, packages = list(outputs), list(inputs), _packages()
    read, data = _chained(inputs), dict[str, dict]()
    _date(inputs)
    for item in read:
        if Path(item["path"]).parts[0] != "config":  # written by people: descends from no data
            data |= verified_record(item).get("data", {})
    record = record_path(outputs[0])
    record.unlink(missing_ok=True)
    for path in (*outputs, record):
        sweep(path)
    entry: dict = {
        "stage": stage,
        "command": shlex.join(["clpapers", *sys.argv[1:]]),
        "code": code,
        "git": git_state(),
        **facts,
        "data": data,
        "inputs": read,
    }
    started, clock = datetime.datetime.now(datetime.UTC), time.monotonic()
    yield entry
    entry |= {
        "outputs": _facts(outputs),
        "python": platform.python_version(),
        "packages": packages,
        "hardware": hardware() | entry.pop("hardware", {}),
        "started": started.isoformat(timespec="seconds"),
        **spent(clock, entry.pop("earlier", {})),
    }
    entry = json.loads(json.dumps(entry))  # as it will be read: JSON makes keys text
    write_text(record, json.dumps(entry | {"seal": seal(entry)}, indent=1) + "\n")
