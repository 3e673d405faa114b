"""Hold one build's results against another's: `same_results.py ONE OTHER [--part]`, two folders of the project.

The same files, byte for byte. Left out are records, logs, benchmarks, reports and what was measured of a machine, which
tell of the making itself, and files made of measured seconds, which no two builds share. A cell whose settings changed
has another hash: it is paired with the cell of the same data set, order and learner whose settings are closest, and its
results are compared without the settings. With `--part` the other build may have more, and may have scored more papers.
"""

import json
import re
import sys
from pathlib import Path

from clpapers.provenance import ProvenanceError, read_record

ABOUT_THE_MAKING = {"logs", "benchmarks", "report", "machine.json"}
TIMED = {"cost", "trade_offs"}  # measures, modules of clpapers.metrics
RUN = re.compile(r"(results/\w+/runs/[\w-]+/[\w.-]+/\w+)-([0-9a-f]{10})/(seeds?[\d-]+)\.json")
INDEX = re.compile(r"results/\w+/runs/index\.csv")


def results(folder: Path) -> dict[str, Path]:
    """The results of a build, by path within its folder."""
    found = {str(path.relative_to(folder)): path for path in (folder / "results").rglob("[!.]*") if path.is_file()}
    return {
        name: path
        for name, path in found.items()
        if not name.endswith(".record.json") and not ABOUT_THE_MAKING & set(Path(name).parts)
    }


def of_seconds(name: str, folder: Path) -> bool:
    """Whether a result, or anything that it is made of, holds measured seconds."""
    try:
        record = read_record(folder / name)
    except ProvenanceError:
        return False
    if record.get("target", {}).get("measure") in TIMED:
        return True
    return any(of_seconds(each["path"], folder) for each in record["inputs"] if "/runs/" not in each["path"])


def settings(path: Path) -> dict[str, str]:
    """The settings of the cell that a run's result is of, each by its dotted key."""

    def flat(at: str, value: object):
        if isinstance(value, dict):
            for key, inner in value.items():
                yield from flat(f"{at}.{key}".lstrip("."), inner)
        else:
            yield at, json.dumps(value)

    return dict(flat("", json.loads(path.read_text(encoding="utf-8"))["cell"]))


def moved(ours: dict[str, Path], theirs: dict[str, Path]) -> dict[str, str]:
    """The cells whose hash changed: old hash → new hash; prints what changed in their settings."""

    def cells(found: dict[str, Path], others: dict[str, Path]) -> dict[tuple[str, str], tuple[str, str]]:
        matches = [(RUN.fullmatch(name), name) for name in sorted(found.keys() - others.keys())]
        return {match[2]: (match[1], name) for match, name in matches if match}

    free, pairs = cells(theirs, ours), {}
    for old, (place, name) in cells(ours, theirs).items():
        mine = set(settings(ours[name]).items())
        candidates = {
            new: mine ^ set(settings(theirs[n]).items()) for new, (where, n) in free.items() if where == place
        }
        if candidates:
            pairs[old] = min(candidates, key=lambda new: (len(candidates[new]), new))
            changed = sorted({key for key, _ in candidates[pairs[old]]})
            print(f"{place}: {old} is now {pairs[old]}; settings that changed: {', '.join(changed)}")
            del free[pairs[old]]
    return pairs


def content(name: str, path: Path, renamed: dict[str, str]) -> bytes:
    """A file's bytes with new hashes in place of old ones; of a run of a renamed cell, all but its settings."""
    data = path.read_bytes()
    for old, new in renamed.items():
        data = data.replace(old.encode(), new.encode())
    match = RUN.fullmatch(name)
    if match and match[2] in {*renamed, *renamed.values()}:
        return json.dumps({key: value for key, value in json.loads(data).items() if key != "cell"}).encode()
    return data


def main(one: Path, other: Path, *, part: bool) -> int:
    """Print what differs, or how many results do not; 1 if any differs."""
    ours, theirs = results(one), results(other)
    if part:  # a scorecard counts the claims of all papers of its build
        ours = {name: path for name, path in ours.items() if not path.name.startswith("scorecard.")}
    timed = {name for name in ours if of_seconds(name, one)}
    renamed = moved(ours, theirs)
    if renamed:  # the index lists settings
        ours, theirs = ({n: p for n, p in found.items() if not INDEX.fullmatch(n)} for found in (ours, theirs))

    def new_name(name: str) -> str:
        match = RUN.fullmatch(name)
        return name.replace(match[2], renamed[match[2]]) if match and match[2] in renamed else name

    names = {name: new_name(name) for name in ours}
    faults = [f"{name}: only in {one}" for name, new in sorted(names.items()) if new not in theirs]
    faults += [f"{name}: only in {other}" for name in sorted(theirs.keys() - names.values()) if not part]
    for name, new in sorted(names.items()):
        compared = new in theirs and name not in timed
        if compared and content(name, ours[name], renamed) != content(new, theirs[new], renamed):
            faults.append(f"{name}: other bytes")
    for fault in faults:
        print(fault)
    if not faults:
        print(f"{len(ours) - len(timed)} results are the same byte for byte; {len(timed)} hold measured seconds")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), part="--part" in sys.argv))
