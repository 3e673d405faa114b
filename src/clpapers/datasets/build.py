"""Build one data set: take it from the first source that serves it, prove it, write it in canonical order."""

import errno
import hashlib
import sys
from pathlib import Path

import numpy as np

from clpapers.datasets import standin as synthetic
from clpapers.datasets.arrays import Splits, canonical, checksum, save, table_checksum
from clpapers.datasets.files import Absent, SourceError, guarded
from clpapers.datasets.sources import FETCH, Served, official_files
from clpapers.provenance import Refusal


class DatasetError(Refusal):
    """A data set cannot be built; the text names the file, the fault and the remedy."""


def build(
    name: str,
    spec: dict,
    *,
    data_folder: Path,
    downloads: Path,
    standin: dict | None,
    allow_partial: bool,
    out: Path,
) -> dict:
    """Write data set `name` to the .npz `out` (layout: `arrays.save`) and return where it came from.

    The sources are tried in the order `spec` gives; since each must prove to hold the same bytes, the order
    decides only the cost. A source that does not serve is reported on stderr and the next one tried; a
    download that turns out wrong is deleted. Wrong bytes in the user's own folder, however, are an error.

    Parameters
    ----------
    spec: the entry of config/datasets.yaml.
    data_folder: holds the user's own files in `data_folder/name/`, or in the folder that `spec` names.
    downloads: keeps fetched files in `downloads/name/`, for other scales.
    standin: `{"train_per_class": int, "test_per_class": int}` where a stand-in is allowed, else None.
    allow_partial: whether the known part of a set (`spec["partial"]`) may serve for the whole.

    Returns
    -------
    A dictionary for the record:

    - `dataset`, `source` (kind), `owner`, `licence`;
    - `standin`, `partial` (bool);
    - `sha256`, by split, and of the attributes where there are any;
    - `proof`: "content checksum", "archive MD5", "counts only" or "none (stand-in)";
    - `train` and `test`, numbers of images;
    - `test_in_train`, of a user's own set: how many test images are training images too, to the pixel;
    - `tried`, a line for each source passed over.

    Raises
    ------
    DatasetError where no source serves, the user's folder holds wrong bytes or the disk is full. `out` is
    then as it was before, and nothing half-written is left.
    """
    user_folder, downloads, out = Path(data_folder) / spec.get("folder", name), Path(downloads), Path(out)
    tried: list[str] = []
    try:
        for source in spec["sources"]:
            kind = source["kind"]
            try:
                if kind == "standin":
                    splits, attributes, facts = _stand_in(name, spec, standin)
                else:
                    served = FETCH[kind](source, spec, user_folder, downloads / name)
                    splits, attributes, facts = _proven(served, spec, allow_partial)
            except SourceError as error:
                if kind == "folder" and not isinstance(error, Absent):
                    elsewhere = "" if "declared" in spec else f", or move {user_folder} away"
                    raise DatasetError(f"{error}{elsewhere}") from error
                tried.append(f"{kind}: {error}")
                print(f"clpapers: {name}: {tried[-1]}", file=sys.stderr)
                continue
            save(out, splits, spec["classes"], attributes)
            counts = {split: len(arrays.y) for split, arrays in splits.items()}
            if "declared" in spec:  # the published sets are as they are
                counts["test_in_train"] = _shared(splits)
                if counts["test_in_train"]:
                    shared = f"{counts['test_in_train']:,} of {counts['test']:,} test images are training images too"
                    print(f"clpapers: {name}: {shared}, to the pixel", file=sys.stderr)
            origin = {"source": kind, "owner": source["owner"], "licence": source["licence"]}
            return {"dataset": name, **origin, **facts, **counts, "tried": tried}
    except OSError as error:
        path = error.filename or out
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            problem = "the disk is full; free some space"
        else:
            problem = f"{error.strerror or error}; mend that"
        raise DatasetError(f"{path}: {problem} and run the same command again") from error
    raise DatasetError(_no_source(name, spec, user_folder, tried))


def _proven(served: Served, spec: dict, allow_partial: bool) -> tuple[Splits, np.ndarray | None, dict]:
    """Decode and prove the files: splits in canonical order, class attributes if there are any, and `build`'s facts.

    Deletes a download that turns out wrong.
    """
    try:
        with guarded(lambda problem: served.files.wrong(f"its content {problem}")):
            decoded = served.format.decode(served.files, spec)
            attributes = served.format.attributes(served.files, spec) if "attributes" in spec else None
            return _check(decoded, attributes, served, spec, allow_partial)
    except Absent:
        raise
    except SourceError:
        if not served.proven:
            for path in served.downloads:
                path.unlink(missing_ok=True)
        raise


def _check(
    decoded: Splits, attributes: np.ndarray | None, served: Served, spec: dict, allow_partial: bool
) -> tuple[Splits, np.ndarray | None, dict]:
    wrong, classes = served.files.wrong, len(spec["classes"])
    counts = {split: len(arrays.x) for split, arrays in decoded.items()}
    expected = spec
    if counts != _counts(spec):
        expected = spec.get("partial", {})
        if not expected or counts != _counts(expected):
            raise wrong(f"has {_count_text(counts)}, not {_count_text(_counts(spec))}")
        if not allow_partial:
            part = f"{_count_text(counts)} of {_count_text(_counts(spec))}"
            raise Absent(f"{served.files.where}: has only a part, {part}, and this scale wants the whole")
    for split, (x, y, *_) in decoded.items():
        if list(x.shape[1:]) != spec["shape"] or y.shape != x.shape[:1]:
            raise wrong(f"{split} has images {x.shape} and labels {y.shape}")
        if y.min() < 0 or y.max() >= classes:
            raise wrong(f"{split} has labels outside 0…{classes - 1}")
        if split == "train" and (missing := sorted({*range(classes)} - {*np.unique(y).tolist()})):
            which = ", ".join(spec["classes"][label] for label in missing[:3])
            raise wrong(f"train has no image of {which}{' and others' if len(missing) > 3 else ''}")
        declared = spec.get("class_sizes", {}).get(split) if expected is spec else None
        if declared is not None and (sizes := np.bincount(y, minlength=classes).tolist()) != (
            declared if isinstance(declared, list) else [declared] * classes
        ):
            least = spec["classes"][int(np.argmin(sizes))]
            raise wrong(
                f"{split} has other numbers of images of the classes than its class_sizes: {min(sizes)} of {least}"
            )
    splits = {split: canonical(arrays) for split, arrays in decoded.items()}
    checksums, sha256 = _checksums(splits, attributes), expected["sha256"]
    official = {part: sha256.get(part) for part in checksums}
    for part, digest in checksums.items():
        if official[part] not in (None, digest):
            raise wrong(f"{part} has content checksum {digest[:12]}…, not {official[part][:12]}…")
    if None not in official.values():
        proof = "content checksum"
    elif served.proven:
        proof = "archive MD5"
    elif served.downloads:
        raise wrong("no checksum is known to prove it")
    else:
        proof = "counts only"  # unpacked files of the user's, or an archive whose MD5 nobody publishes
    facts = {"standin": False, "partial": expected is not spec, "sha256": checksums, "proof": proof}
    return splits, attributes, facts


def _shared(splits: Splits) -> int:
    """How many test images have the pixels of some training image, of whatever class."""
    train, test = (
        [hashlib.sha256(np.ascontiguousarray(each).data).digest() for each in splits[split].x]
        for split in ("train", "test")
    )
    learnt = frozenset(train)
    return sum(each in learnt for each in test)


def _stand_in(name: str, spec: dict, sizes: dict | None) -> tuple[Splits, np.ndarray | None, dict]:
    if sizes is None:
        raise Absent("this scale asks for real data")
    splits = {split: canonical(arrays) for split, arrays in synthetic.make(name, spec, **sizes).items()}
    attributes = synthetic.attributes(name, spec)
    sha256 = _checksums(splits, attributes)
    return splits, attributes, {"standin": True, "partial": False, "sha256": sha256, "proof": "none (stand-in)"}


def _checksums(splits: Splits, attributes: np.ndarray | None) -> dict[str, str]:
    """The content checksum of each part: of the splits by name, and of the attributes if there are any."""
    found = {split: checksum(arrays) for split, arrays in splits.items()}
    return found if attributes is None else {**found, "attributes": table_checksum(attributes)}


def _counts(sizes: dict) -> dict[str, int]:
    return {split: sizes[split] for split in ("train", "test")}


def _count_text(counts: dict[str, int]) -> str:
    return f"{counts['train']:,} + {counts['test']:,} images"


def _no_source(name: str, spec: dict, user_folder: Path, tried: list[str]) -> str:
    """The error where no source serves: the official files to fetch, where to put them, and why each source failed."""
    if "declared" in spec:
        formats = " or ".join(dict.fromkeys(form for source in spec["sources"] for form in source.get("formats", ())))
        remedy = f"put it into {user_folder}/, laid out as {formats}"
    else:
        try:
            official = [(file, f"MD5 {file.md5 or 'unknown'}") for file in official_files(spec)]
            named = ", ".join(f"{file.filename} ({file.urls[0]}, {md5})" for file, md5 in official)
        except SourceError as error:
            named = f"the official files ({error})"
        remedy = f"put {named} into {user_folder}/"
    return "\n  ".join([f"{name}: no source serves it; {remedy}. Tried:", *tried])
