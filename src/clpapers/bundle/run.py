"""Train the runs of a bundle that `clpapers pack` wrote: python run.py --minutes 9 --out OUT.

It needs Python 3.11, PyTorch 2.8, NumPy, pandas, SciPy and PyYAML, and Pillow where the bundle has colour images. Parts
may arrive while it works. OUT gets crates of at most 15 MB for `clpapers import`. The same command continues an
unfinished training.
"""

import argparse
import hashlib
import importlib.util
import json
import os
import sys
import time
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
NEEDED = ("torch", "numpy", "pandas", "scipy", "yaml")


class Parts:
    """Unpacks the parts beside this file into a folder, each once and only as it was packed."""

    def __init__(self, work: Path):
        self.work = work
        self.listed = json.loads((HERE / "parts.json").read_text())
        self.unpacked: set[str] = set()

    def unpack(self) -> bool:
        """Unpack the parts that have arrived since; whether there are any."""
        new = False
        for part in self.listed:
            file = HERE / part["name"]
            if part["name"] in self.unpacked or not file.is_file() or file.stat().st_size != part["bytes"]:
                continue
            if hashlib.sha256(file.read_bytes()).hexdigest() != part["sha256"]:
                continue  # still arriving
            with zipfile.ZipFile(file) as archive:
                for name in archive.namelist():
                    path = self.work / name
                    if not path.resolve().is_relative_to(self.work.resolve()):
                        raise SystemExit(f"{file}: {name} leads out of the folder; pack the bundle anew")
                    path.parent.mkdir(parents=True, exist_ok=True)
                    unfinished = path.with_name(f".{path.name}.part")
                    unfinished.write_bytes(archive.read(name))
                    unfinished.replace(path)
            self.unpacked.add(part["name"])
            new = True
        return new

    @property
    def complete(self) -> bool:
        """Whether all parts have arrived."""
        return len(self.unpacked) == len(self.listed)


def main() -> None:
    """Check the packages, wait for the first part, and train."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, required=True, help="from now until all is written")
    parser.add_argument("--out", type=Path, required=True, help="folder for crates, a log and times")
    parser.add_argument("--work", type=Path, help="folder for unpacked files and unfinished runs; OUT-work by default")
    parser.add_argument("--abreast", type=int, help="jobs at a time; as many as the cores and the card's memory hold")
    parser.add_argument("--without", nargs="+", default=[], metavar="WORD", help="leave out jobs with it in their path")
    options = parser.parse_args()
    began = time.monotonic()
    if sys.version_info < (3, 11):  # noqa: UP036 — this file runs where no installer has looked
        raise SystemExit("run.py: needs Python 3.11 or newer")
    if missing := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        raise SystemExit(f"run.py: needs {', '.join(missing)}, which this Python does not have; install it")
    work = (options.work or options.out.with_name(f"{options.out.name}-work")).absolute()
    options.out.mkdir(parents=True, exist_ok=True)
    work.mkdir(parents=True, exist_ok=True)
    parts = Parts(work)
    parts.unpack()
    while parts.listed[0]["name"] not in parts.unpacked:
        if time.monotonic() - began > 60 * options.minutes:
            raise SystemExit(f"run.py: {parts.listed[0]['name']} has not arrived beside it, or not whole")
        time.sleep(1)
        parts.unpack()
    sys.path[:0] = [str(work / "src")]
    sys.path.append(str(work / "site"))
    out = options.out.absolute()
    os.chdir(work)
    from clpapers.bundle import scheduler

    scheduler.train(parts, out, began + 60 * options.minutes, options.abreast, options.without)


if __name__ == "__main__":
    main()
