"""Tries the tests: changes the meaning of the source, one place at a time, and sees whether a test notices.

`mutants.yaml` lists the changes by room. Each is made in a copy of the project, and the tests that should notice run
there. A change that cannot be made any more, or whose tests do not run, is an error and no pass.
"""

import argparse
import ast
import dataclasses
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
SOURCE = Path("src/clpapers")
LEFT_OUT = shutil.ignore_patterns(
    "__pycache__", ".[!g]*", ".git", ".github", "results", "downloads", "data", "site", "*.egg-info"
)
LONGEST = 300  # seconds of the tests of one change; a change that makes them take longer is noticed
STATES = NOTICED, SURVIVED, EQUIVALENT, ERROR = "noticed", "survived", "equivalent", "ERROR"
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+?(?:\[.*?\])?)(?: - .*)?$", re.M)  # the name of a test, its case included


class Unfit(Exception):
    """A change that cannot be made, or whose tests do not run."""


@dataclasses.dataclass(frozen=True)
class Mutant:
    """A change of one function, or of a value of a module: the text `before` becomes `after`.

    breaks: the property that then fails, in words. tests: paths. equivalent: why no test can notice it, if none can.
    """

    room: str
    file: str
    function: str
    before: str
    after: str
    breaks: str
    tests: tuple[str, ...]
    equivalent: str = ""

    @property
    def name(self) -> str:
        return f"{self.file}: {self.function}: {self.before.strip().splitlines()[0]}"

    def changed(self, text: str) -> str:
        """The file's text with the change. Raises `Unfit` unless the function has the text exactly once."""
        lines = text.splitlines(keepends=True)
        first, last = place_of(ast.parse(text).body, self.function.split("."), self.name)
        part = "".join(lines[first - 1 : last])
        if (count := part.count(self.before)) != 1:
            raise Unfit(f"{self.name}: stands {count} times there, not once")
        new = "".join([*lines[: first - 1], part.replace(self.before, self.after), *lines[last:]])
        try:
            same = ast.dump(ast.parse(new)) == ast.dump(ast.parse(text))
        except SyntaxError as error:
            raise Unfit(f"{self.name}: is no Python after the change ({error})") from None
        if same:
            raise Unfit(f"{self.name}: changes nothing")
        return new


def place_of(body: Sequence[ast.stmt], names: Sequence[str], told: str) -> tuple[int, int]:
    """The first and the last line of a function, class or value, by its names from the outside in."""
    found = [each for each in body if names[0] in _defined(each)]
    if len(found) != 1:
        raise Unfit(f"{told}: {names[0]} is defined {len(found)} times, not once")
    if len(names) > 1:
        return place_of(getattr(found[0], "body", []), names[1:], told)
    return found[0].lineno, found[0].end_lineno or found[0].lineno


def _defined(statement: ast.stmt) -> set[str]:
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return {statement.name}
    targets = [getattr(statement, "target", None), *getattr(statement, "targets", [])]
    return {target.id for target in targets if isinstance(target, ast.Name)}


def read() -> list[Mutant]:
    """The listed changes. Their tests stand by names, whose paths the list's head gives."""
    listed = yaml.safe_load(Path(__file__).with_name("mutants.yaml").read_text(encoding="utf-8"))
    mutants, paths = [], listed.pop("tests")
    for room, changes in listed.items():
        for each in changes:
            tests = tuple(paths[name] for name in each.pop("tests").split())
            file, function = each.pop("at").split(" ")
            mutants.append(Mutant(room, file, function, tests=tests, **each))
    return mutants


class Copy:
    """A copy of the project in a folder, in which a change is tried; its source comes before the installed one."""

    def __init__(self, root: Path, folder: Path):
        self.folder = folder
        shutil.copytree(root, folder, ignore=LEFT_OUT, symlinks=True)
        (folder / "results").mkdir()
        (folder / "results/published").symlink_to(root / "results/published")
        self.environment = os.environ | {"PYTHONPATH": str(folder / "src"), "OMP_NUM_THREADS": "1"}
        found = self.python("-c", f"import {SOURCE.name}; print({SOURCE.name}.__file__)").stdout.strip()
        if not Path(found).is_relative_to(folder):
            raise RuntimeError(f"{found} is imported, not the copy in {folder}")

    def python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command, place, env = [sys.executable, *arguments], self.folder, self.environment
        return subprocess.run(command, cwd=place, env=env, capture_output=True, text=True, timeout=LONGEST)

    def tested(self, *tests: str) -> tuple[int, str]:
        """Pytest's exit code for some tests, and the first that failed."""
        options = ["-x", "-q", "-p", "no:cacheprovider", "--tb=no", "-rfE", "--hypothesis-seed=0"]
        try:
            done = self.python("-m", "pytest", *options, *tests)
        except subprocess.TimeoutExpired:
            return 1, ""
        if done.returncode not in (0, 1):
            raise Unfit(f"pytest {' '.join(tests)}: exit code {done.returncode}: {done.stdout[-500:]}{done.stderr}")
        found = FAILED.search(done.stdout)
        return done.returncode, found[1] if found else ""

    def tried(self, mutant: Mutant, mark: int) -> tuple[str, str]:
        """Whether the change's tests notice it, and the first that does. mark: a whole number of the change's own."""
        path = self.folder / SOURCE / mutant.file
        changed = mutant.changed(path.read_text(encoding="utf-8"))
        original = path.rename(path.with_suffix(".original"))
        path.write_text(changed, encoding="utf-8")
        os.utime(path, (mark, mark))  # or Python may take the compiled code of an earlier change of the same length
        try:
            failed, test = self.tested(*mutant.tests)
        finally:
            original.replace(path)
        return NOTICED if failed else EQUIVALENT if mutant.equivalent else SURVIVED, test


def run(root: Path, mutants: Sequence[Mutant], jobs: int = 1) -> Iterator[tuple[Mutant, str, str]]:
    """Try the changes; yields each with what became of it and the seconds, the test that noticed or the fault.

    The tests that noticed run once more without a change: one that fails there too has noticed nothing.
    """
    with tempfile.TemporaryDirectory(prefix="mutants-") as place:
        copies = [Copy(root, Path(place).resolve() / str(i)) for i in range(jobs)]

        def tried(number: int, mutant: Mutant) -> tuple[Mutant, str, str]:
            copy, began = copies.pop(), time.monotonic()
            try:
                state, test = copy.tried(mutant, number + 1)
            except (Unfit, OSError) as fault:
                return mutant, ERROR, str(fault)
            finally:
                copies.append(copy)
            noticing.update({test: mutant} if test else {})
            return mutant, state, f"{time.monotonic() - began:.1f} s {test or mutant.equivalent or mutant.breaks}"

        noticing: dict[str, Mutant] = {}
        with ThreadPoolExecutor(jobs) as pool:
            yield from pool.map(tried, range(len(mutants)), mutants)
        if noticing:
            failed, test = copies[0].tested(*noticing)
            if failed:
                yield noticing[test], ERROR, f"{test} fails without the change too"


def main(arguments: Sequence[str] | None = None, root: Path = ROOT, listed: Sequence[Mutant] = ()) -> int:
    parser, whole = argparse.ArgumentParser(description=__doc__), listed or read()
    parser.add_argument("--only", choices=list(dict.fromkeys(each.room for each in whole)), metavar="ROOM")
    parser.add_argument("--sample", type=int, metavar="N", help="so many, drawn at random by --seed")
    parser.add_argument("--seed", metavar="COMMIT", help="by default the present commit")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N")
    parser.add_argument("--list", action="store_true")
    given = parser.parse_args(arguments)
    mutants = [each for each in whole if given.only in (None, each.room)]
    if given.sample is not None:
        seed = given.seed or subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=root, text=True).strip()
        mutants = random.Random(seed).sample(mutants, min(given.sample, len(mutants)))
    if given.list:
        print(*(f"{each.room}: {each.name}\n    {each.breaks}; {' '.join(each.tests)}" for each in mutants), sep="\n")
        return 0
    counts: dict[str, Counter[str]] = {each.room: Counter() for each in mutants}
    for mutant, state, told in run(root, mutants, max(given.jobs or 1, 1)):
        print(f"{state}: {mutant.room}: {mutant.name}: {told}", flush=True)
        counts[mutant.room][state] += 1
    found = sum(counts.values(), Counter())
    for room, count in (*counts.items(), ("all", found)):
        print(f"{room}: {', '.join(f'{count[state]} {state}' for state in STATES)}")
    return int(bool(found[SURVIVED] or found[ERROR]))


if __name__ == "__main__":
    sys.exit(main())
