"""What the scripts beside this file share: a small project to tamper with, and an eye on what attackers' code would do.

Each script takes a seed and a number of tries, prints what it tried and found, and exits 1 where anything got through.
None is a test that pytest collects: `python tests/hostile/tamper.py --tries 1000 --seed 0`.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), *(str(TESTS / part) for part in ("workflow", "report", "datasets"))]

import official_formats as forms  # noqa: E402, F401 (for the other scripts)

MEMORY = 1 << 33  # bytes that a script may take
SECONDS = 60  # that one try may take
CODE = ("os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen", "socket.connect")


@contextlib.contextmanager
def built() -> Iterator[Path]:
    """The folder of a small project, built, which is the working folder inside."""
    from report.conftest import project_in

    before = Path.cwd()
    with tempfile.TemporaryDirectory() as place:
        try:
            sys.argv[1:] = ["train"]  # as records tell it
            folder = project_in(Path(place))
            os.chdir(folder)
            yield folder
        finally:
            os.chdir(before)


class Tally:
    """Counts what became of each try; any error that no reader should let through is printed and fails the script."""

    def __init__(self):
        self.counts: Counter[str] = Counter()
        self.wrong = 0
        self.watching = False
        self.seen: list[str] = []
        sys.addaudithook(self._note)

    def _note(self, event: str, arguments: tuple) -> None:
        if self.watching and event in CODE and arguments[:1] != ("git",):  # whom the audit asks for a commit
            self.seen.append(f"{event} {arguments!r}"[:200])

    def attempt(self, what: str, read: Callable[[], str]) -> None:
        """One try: `read` gives what became of it. That it ran code, hung or broke in its own way is wrong."""
        self.seen.clear()
        signal.alarm(SECONDS)
        self.watching = True
        try:
            outcome = read()
        except BaseException:
            outcome = "WRONG: a traceback\n" + traceback.format_exc()
        finally:
            self.watching = False
            signal.alarm(0)
        if self.seen:
            outcome = f"WRONG: code was run: {self.seen}"
        self.counts[outcome.partition("\n")[0]] += 1
        if outcome.startswith("WRONG"):
            self.wrong += 1
            print(f"{what}: {outcome}", flush=True)

    def end(self) -> int:
        """Print the counts; 1 where anything was wrong."""
        for outcome, count in self.counts.most_common():
            print(f"{count:6} {outcome}")
        return int(self.wrong > 0)


def run(script: Callable[[int, int, Tally], None], tries: int) -> None:
    """Run a script with the seed and the number of tries that the command line asks for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tries", type=int, default=tries)
    parser.add_argument("--seed", type=int, default=0)
    options, tally = parser.parse_args(), Tally()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(TimeoutError("it hangs")))
    script(options.seed, options.tries, tally)
    sys.exit(tally.end())
