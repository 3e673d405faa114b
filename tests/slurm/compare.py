"""Hold one build's results against another's: `compare.py ONE OTHER [--part]`, two folders of the project.

The same files, byte for byte; but for records, logs, benchmarks and reports, which tell of the making itself, and for
what is made of measured seconds, which no two builds share. With `--part` the other may have more.
"""

import sys
from pathlib import Path

from clpapers.provenance import ProvenanceError, read_record

ABOUT_THE_MAKING = {"logs", "benchmarks", "report"}
TIMED = {"cost", "trade_offs"}  # measures, modules of clpapers.metrics


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


def main(one: Path, other: Path, *, part: bool) -> int:
    """Say what differs, and how many results do not; 1 if any differs."""
    ours, theirs = results(one), results(other)
    faults = [f"{name}: only in {one}" for name in sorted(ours.keys() - theirs.keys())]
    faults += [f"{name}: only in {other}" for name in sorted(theirs.keys() - ours.keys()) if not part]
    timed = {name for name in ours if of_seconds(name, one)}
    for name in sorted(ours.keys() & theirs.keys() - timed):
        if ours[name].read_bytes() != theirs[name].read_bytes():
            faults.append(f"{name}: other bytes")
    for fault in faults:
        print(fault)
    if not faults:
        print(f"{len(ours) - len(timed)} results are the same byte for byte; {len(timed)} hold measured seconds")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), part="--part" in sys.argv))
