"""Paths below results/, and the seeds that a file's name or a setting gives."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from clpapers.config.refusals import ConfigError
from clpapers.home import project_path
from clpapers.streams.orders import slug

RESULTS = project_path("results")
MOST = 1000  # seeds


def dataset_path(scale: str, dataset: str) -> Path:
    """The path of a data set."""
    return RESULTS / scale / "datasets" / f"{dataset}.npz"


def weights_path(scale: str, weights: str) -> Path:
    """The path of pre-trained weights."""
    return RESULTS / scale / "weights" / f"{weights}.npz"


def method_path(scale: str, label: str, digest: str) -> Path:
    """The path of the copy of a method's file from outside, by the digest of its meaning (`user_methods.check`)."""
    return RESULTS / scale / "methods" / f"{label}-{digest}.py"


def stream_path(scale: str, dataset: str, order: dict | str, seed: int) -> Path:
    """The path of one stream's file; `order` may also be its part of the path."""
    folder = order if isinstance(order, str) else slug(order)
    return RESULTS / scale / "streams" / dataset / folder / f"seed{seed}.npz"


def seeds_of(written: object, where: str) -> Sequence[int]:
    """Seeds as a person gives them `where`, ascending: a number, a range such as `0-19`, or several in a list or text.

    Neighbours alone are a `range`. Raises `ConfigError` for anything else, no seed or too many.
    """
    parts = written if isinstance(written, list) else [written]
    found: set[int] = set()
    for text in (text.strip() for part in parts for text in str(part).split(",")):
        if not re.fullmatch(r"[0-9]{1,9}(-[0-9]{1,9})?", text, re.ASCII):
            raise ConfigError(f"{where}: '{text}': write a seed, a range or a list, such as 3, 0-19 or 0,2,5")
        first, last = int(text.partition("-")[0]), int(text.rpartition("-")[2])
        if first > last:
            raise ConfigError(f"{where}: '{text}' holds no seed; write first-last, first not above last")
        count = last + 1 - first
        if twice := [seed for seed in found if first <= seed <= last]:
            raise ConfigError(f"{where}: '{text}': seed {min(twice)} stands there twice; write each once")
        found |= {*range(first, last + 1)} if count <= MOST else set()
        if (count := max(count, len(found))) > MOST:
            raise ConfigError(f"{where}: '{text}' holds {count} seeds; take at most {MOST}")
    seeds = tuple(sorted(found))
    if not seeds:
        raise ConfigError(f"{where}: no seed; write one, a range or a list, such as 3, 0-19 or 0,2,5")
    return runs[0] if len(runs := neighbours(seeds)) == 1 else seeds


def neighbours(seeds: Iterable[int]) -> list[range]:
    """Ascending seeds as ranges without a gap."""
    found: list[range] = []
    for seed in seeds:
        if found and seed == found[-1].stop:
            found[-1] = range(found[-1].start, seed + 1)
        else:
            found.append(range(seed, seed + 1))
    return found


def seeds_text(seeds: Iterable[int]) -> str:
    """The text of ascending seeds: `0-19`, or `0-4,7-7`."""
    return ",".join(f"{each[0]}-{each[-1]}" for each in neighbours(seeds))


def block_name(seeds: range) -> str:
    """`seed3` for one seed, `seeds0-19` for a block."""
    return f"seed{seeds[0]}" if len(seeds) == 1 else f"seeds{seeds[0]}-{seeds[-1]}"


def block_seeds(name: str) -> range:
    """The inverse of `block_name`; raises `ConfigError` for any other text."""
    match = re.fullmatch(r"seeds?(\d{1,9})(?:-(\d{1,9}))?", name, re.ASCII)
    if not match:
        raise ConfigError(f"{name}: not the seeds of a file; a file is named like seed3 or seeds0-19")
    first, last = int(match[1]), int(match[2] or match[1])
    if not first <= last < first + MOST or block_name(range(first, last + 1)) != name:
        raise ConfigError(f"{name}: not the seeds of a file: the first is the lower, of at most {MOST}, like seeds0-19")
    return range(first, last + 1)
