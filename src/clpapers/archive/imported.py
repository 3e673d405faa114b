"""Imported runs: find them and the crates they came from, and import a crate.

Their paths are results/<scale>/imported/<dataset>/<order>/<run>/<block>.json. Each has its record and the bytes that
were published; no rule makes them. The folder's `records` holds the records of their inputs, each named by its SHA-256.
`crates.json` holds each crate's name and day of import; `crates/<SHA-256>.txt` is its manifest, which its name proves.
So is the list of runs that a crate takes out: they are deleted here, and no other crate brings them again.
"""

import contextlib
import datetime
import functools
import hashlib
import json
import re
from collections.abc import Collection, Iterator
from pathlib import Path

from clpapers.config.facts import Facts
from clpapers.config.files import CONFIG
from clpapers.config.model import SELECTED, digest
from clpapers.config.paths import RESULTS, block_seeds
from clpapers.config.refusals import ConfigError
from clpapers.provenance import (
    MANIFEST,
    ProvenanceError,
    as_published,
    escaped,
    files_of,
    is_imported,
    record_apart,
    record_by_digest,
    record_path,
    records_behind,
    sha256,
    write_bytes,
    write_text,
)
from clpapers.runs.result_schema import UNFIT, results

FOLDER = "imported"
TAKEN_OUT = "taken-out-sha256.txt"  # in a crate: the records of earlier published runs that it takes out
RUN = re.compile(
    r"results/(?P<scale>[a-z0-9_]+)/(?:runs|imported)/"
    r"(?P<place>[\w-]+/[\w.-]+/[a-z0-9_]+-(?P<hash>[0-9a-f]{10}))/(?P<block>seeds?\d+(?:-\d+)?)\.json"
)


def block_of(record: Path | str) -> Path:
    """The result file of a run's record."""
    return Path(record).with_name(Path(record).name.replace(".record.json", ".json"))


def folder_of(scale: str) -> Path:
    """The folder of the runs that were imported."""
    return RESULTS / scale / FOLDER


PUBLISHED = RESULTS / "published"  # results that come with the project


def published_folder(scale: str) -> Path:
    """The folder of the project's own crates: beside all results for the paper scale, among a scale's for others."""
    return PUBLISHED if scale == "paper" else RESULTS / scale / PUBLISHED.name


def published(scale: str, paper: str = "*") -> list[Path]:
    """The project's own crates, of a paper or of all: a publication each, the first ones without a digest in the name.

    Their order decides nothing, unless two publications hold a run of the same name: then the first one counts.
    """
    folder = published_folder(scale)
    files = {*folder.glob(f"{paper}.zip"), *folder.glob(f"{paper}-{'[0-9a-f]' * 10}.zip")}
    return sorted(files, key=lambda path: path.stem)


def imported(scale: str, *, published: bool = True) -> dict[str, dict[Path, range]]:
    """The imported results of a scale: a cell's hash → a file → its seeds.

    published: whether also those that crates of the project alone have brought; otherwise only the user's own imports.
    """
    results: dict[str, dict[Path, range]] = {}
    others = None if published else _in_crates_of_others(scale)
    for folder in sorted(folder_of(scale).glob("*/*/*-*")):
        for path, seeds in files_in(folder).items():
            if others is None or (as_published(path), sha256(path)) in others:
                results.setdefault(folder.name[-10:], {})[path] = seeds
    return results


def _in_crates_of_others(scale: str) -> set[tuple[str, str]]:
    """The files of imported crates that are not the project's, by name and SHA-256."""
    from clpapers.archive.check import CrateError, fingerprint

    here = set()
    for path in published(scale):
        with contextlib.suppress(CrateError):
            here.add(fingerprint(path))
    others = [key for key, facts in crates(scale).items() if not (facts.get("published") or key in here)]
    return {(as_published(name), digest) for key in others for name, digest in manifest(scale, key).items()}


def files_in(folder: Path) -> dict[Path, range]:
    """The result files in the folder of a cell, each with its seeds."""
    files = (path for path in sorted(folder.glob("seed*.json")) if not path.name.endswith(".record.json"))
    return {path: block_seeds(path.stem) for path in files}


def crates(scale: str) -> dict[str, dict]:
    """The crates of a scale's imported runs: the manifest's SHA-256 → `name`, and `imported`, the day."""
    file = folder_of(scale) / "crates.json"
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ProvenanceError(
            f"{file}: not readable ({error}); delete {file.parent} and import its crates anew"
        ) from None


def manifest(scale: str, fingerprint: str) -> dict[str, str]:
    """The files that the manifest of an imported crate lists, or its list of runs; none where that changed since."""
    file = folder_of(scale) / "crates" / f"{fingerprint}.txt"
    return files_of(file.read_bytes()) if file.is_file() and sha256(file) == fingerprint else {}


def taken_out(scale: str) -> set[tuple[str, str]]:
    """The records of the runs that imported crates take out: path and SHA-256."""
    lists = (manifest(scale, fingerprint).get(TAKEN_OUT, "") for fingerprint in crates(scale))
    return {record for each in lists for record in manifest(scale, each).items()}


@functools.lru_cache(maxsize=1)
def _sources(scale: str, _: float) -> dict[tuple[str, str], dict]:
    return {
        (as_published(name), digest): facts | {"manifest": fingerprint}
        for fingerprint, facts in crates(scale).items()
        for name, digest in manifest(scale, fingerprint).items()
        if RUN.fullmatch(name.replace(".record.json", ".json"))
    }


def source_of(path: Path, digest: str) -> dict | None:
    """The crate that brought a run's file or record of this SHA-256: `name`, `imported`, `manifest`; or None."""
    scale = Path(path).parts[1]
    with contextlib.suppress(OSError):
        changed = (folder_of(scale) / "crates.json").stat().st_mtime_ns
        return _sources(scale, changed).get((as_published(path), digest))
    return None


def records_apart(scale: str, record: dict) -> list[Path]:
    """The files of the available records of all that an imported run descends from."""
    behind = records_behind(record, functools.partial(record_apart, scale))
    return [record_by_digest(scale, digest) for digest in behind]


# --- the results of a seed -----------------------------------------------------------------------------------


def hash_of(spec: dict) -> str:
    """The hash of a cell by its description in a result, which has the selected values filled in."""
    search = spec.get("selection")
    for key in search["grid"] if isinstance(search, dict) else ():
        part, option = key.split(".")
        if option in spec.get(part, {}):
            spec = spec | {part: spec[part] | {option: SELECTED}}
    return digest(spec)[:10]


def accuracies(entry: dict) -> dict[str, float]:
    """A seed's accuracy at the end by restriction at test; empty if it did not finish."""
    return {
        view: sum(counts["correct"]) / max(sum(counts["total"]), 1)
        for view, counts in (entry.get("test") or {}).items()
    }


def accuracy_gap(one: dict, other: dict) -> float:
    """The largest difference in accuracy at the end between two results of a seed; infinite if either has none."""
    first, second = accuracies(one), accuracies(other)
    if first.keys() != second.keys() or not first:
        return float("inf")
    return max(abs(first[view] - second[view]) for view in first)


# --- import --------------------------------------------------------------------------------------------------


def import_published(scale: str) -> list[str]:
    """Import the crates that come with the project and are not imported yet; returns notes to print."""
    return [note for path in published(scale) for note in import_crate(path, published=True)]


def import_crate(path: Path, *, published: bool = False) -> list[str]:
    """Import all runs of a crate, made by `clpapers publish` or `clpapers export`, beside the present runs.

    Nothing is overwritten: a present run stays, and a note reports different results. Imported runs that the
    crate takes out are deleted. For a crate that was imported before, only its manifest is read. Returns notes to
    print, none where there is nothing new.

    published: whether it is noted as one that came with the project (`imported`).

    Raises `CrateError`, before anything is written, for a crate that does not match its manifest and records, for runs
    under another cell's hash, and for runs on other data than config/ has.
    """
    from clpapers.archive.check import CrateError, fingerprint, sound

    known = fingerprint(path)
    if any(known in crates(file.parts[1]) for file in RESULTS.glob(f"*/{FOLDER}/crates.json")):
        return []
    remedy = "nothing is imported, fetch or make it anew"
    crate = sound(path, remedy, lambda name: name == TAKEN_OUT or RUN.fullmatch(name))
    runs = {name: match for name in crate.texts if (match := RUN.fullmatch(name))}
    removed = files_of(crate.texts.get(TAKEN_OUT, b""))
    out = {name: RUN.fullmatch(str(block_of(name))) for name in removed}
    of_record = {name for name, match in out.items() if match and is_imported(name) and str(block_of(name)) != name}
    if wrong := [name for name in out if name not in of_record]:
        raise CrateError(f"{path}: {TAKEN_OUT}: {escaped(wrong[0])} is no imported run's record; nothing is imported")
    scales = {match["scale"] for match in (*runs.values(), *out.values()) if match}
    if len(scales) != 1:
        raise CrateError(f"{path}: has runs of {len(scales)} scales; give a crate with runs of one")
    (scale,) = scales
    if not (CONFIG / "scales" / f"{scale}.yaml").is_file():
        raise CrateError(f"{path}: runs of scale {scale!r}, which config/scales/ does not have")
    no_more = taken_out(scale) | removed.items()
    deleted = {Path(name) for name, digest in no_more if Path(name).is_file() and sha256(name) == digest}
    files: dict[Path, bytes] = {}
    notes: list[str] = []
    imported_runs, facts, there = 0, Facts(scale), crate.records
    for name, match in runs.items():
        recorded = crate.texts[str(record_path(name))]
        record = json.loads(recorded)
        out_file = folder_of(scale) / match["place"] / f"{match['block']}.json"
        stays_out = (str(record_path(out_file)), hashlib.sha256(recorded).hexdigest()) in no_more
        try:
            spec, seeds = results(crate.texts[name])
            if hash_of(spec) != match["hash"]:
                raise ValueError(f"is of cell {hash_of(spec)}, not of the cell in its name")
            if not sorted(seeds) == record.get("seeds") == list(block_seeds(match["block"])):
                raise ValueError(f"holds seeds {sorted(seeds)}, not the ones in its name")
            _fit(record["data"], facts)
            notes += () if stays_out else _differences(path, out_file, seeds, deleted)
        except (*UNFIT, ConfigError) as error:
            reason = error if isinstance(error, ValueError | ConfigError) else f"is no result of runs ({error!r})"
            raise CrateError(f"{path}: {name}: {reason}; nothing is imported") from None
        if stays_out or out_file in files or (out_file.exists() and record_path(out_file) not in deleted):
            continue
        imported_runs += len(seeds)
        behind = records_behind(record, lambda item: there.get(str(item.get("record"))))
        files |= {record_path(out_file): recorded, out_file: crate.texts[name]}
        files |= {record_by_digest(scale, digest): text for digest, text in behind.items()}
    for file in deleted:
        block_of(file).unlink(missing_ok=True)
        file.unlink(missing_ok=True)
    for file, text in files.items():
        write_bytes(file, text)
    for text in (crate.texts[name] for name in (TAKEN_OUT, MANIFEST) if name in crate.texts):
        write_bytes(folder_of(scale) / "crates" / f"{hashlib.sha256(text).hexdigest()}.txt", text)
    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    about = {"name": path.name, **({"published": True} if published else {}), "imported": day}
    all_crates = crates(scale) | {crate.fingerprint: about}
    write_text(folder_of(scale) / "crates.json", json.dumps(all_crates, indent=1) + "\n")
    counts = f"{imported_runs} runs imported" + (f", {len(deleted)} files of runs taken out" if deleted else "")
    return [f"{path}: {counts}, manifest SHA-256 {crate.fingerprint}", *notes]


def _fit(data: dict, facts: Facts) -> None:
    """Refuse, by `ValueError`, a run on other data than the scale allows and config/datasets.yaml has."""
    for name, recorded in data.items():
        if recorded["standin"] and facts.settings["sources"] == "real":
            raise ValueError(f"was trained on a stand-in of {name}")
        if recorded["partial"] and not facts.settings.get("partial_data", False):
            raise ValueError(f"was trained on a part of {name}")
        if recorded["standin"] or recorded["partial"]:
            continue
        pinned = facts.datasets.get(name, {}).get("sha256") or {}
        if any(pinned.get(part) not in (None, digest) for part, digest in recorded["sha256"].items()):
            raise ValueError(f"was trained on another {name} than config/datasets.yaml has")


def _differences(crate: Path, out: Path, seeds: dict[int, dict], deleted: Collection[Path]) -> Iterator[str]:
    """A note for each file, trained here or imported before, that has other results for seeds of a run.

    deleted: records of files that will not stay.
    """
    trained = RESULTS / out.parts[1] / "runs" / Path(*out.parts[3:-1])
    for folder in (trained, out.parent):
        for path in sorted(folder.glob("seed*.json")):
            if record_path(path) in (path, *deleted) or not set(block_seeds(path.stem)) & set(seeds):
                continue
            try:
                _, present = results(path.read_bytes())
            except ValueError as error:
                yield f"{path}: {error}; delete it and train it anew, or import its crate"
                continue
            unlike = [seed for seed in sorted(seeds.keys() & present.keys()) if present[seed] != seeds[seed]]
            if unlike:
                gap = max(accuracy_gap(present[seed], seeds[seed]) for seed in unlike)
                numbers = ", ".join(map(str, unlike))
                yield f"{path}: seed {numbers} differs from {crate.name}'s, by {gap:.4f} in accuracy; this one is kept"
