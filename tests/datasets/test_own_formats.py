"""The layouts for own data, image_folders and npz: what they hold comes out; what is wrong is refused in one line."""

import io
import zipfile

import numpy as np
import official_formats as made
import pytest
from PIL import Image

from clpapers.datasets import arrays, files
from clpapers.datasets.build import DatasetError, build
from clpapers.datasets.files import SourceError
from clpapers.datasets.formats import image_folders, npz

GREY = made.entry((2, 3, 1), ("cat", "dog"), 4, 2, [{"kind": "folder", "formats": ["image_folders", "npz"]}])
COLOUR = GREY | {"shape": [2, 3, 3]}
OWN = {"declared": "config/outside/datasets/pets.yaml"}
RNG = np.random.default_rng(0)
PIXELS = {split: RNG.integers(0, 256, (n, 2, 3, 3), dtype=np.uint8) for split, n in (("train", 4), ("test", 2))}
LABELS = {"train": np.array([0, 1, 0, 1]), "test": np.array([1, 0])}


def folders(grey=False, suffixes=("png",) * 4):
    content = {".DS_Store": b"", "train/notes.txt": b"x"}
    for split, pixels in PIXELS.items():
        for i, (x, y, suffix) in enumerate(zip(pixels, LABELS[split], suffixes)):
            shown = Image.fromarray(x[..., 0] if grey else x)
            file = io.BytesIO()
            shown.save(file, "PNG")
            content[f"pets/{split}/{GREY['classes'][y]}/{'deep/' * (i % 2)}{i}.{suffix}"] = file.getvalue()
    return content


def packed(**changed):
    known = {f"{split}_x": x for split, x in PIXELS.items()} | {f"{split}_y": y for split, y in LABELS.items()}
    file = io.BytesIO()
    np.savez(file, **{key: value for key, value in (known | changed).items() if value is not None})
    return {"pets.npz": file.getvalue()}


def held(content):
    return files.Files("here", content, bytes, "mend it")


def same(found, expected):
    assert arrays.checksum(arrays.canonical(found)) == arrays.checksum(arrays.canonical(expected))


def test_images_in_folders_come_out_as_they_are():
    found = image_folders.decode(held(folders(suffixes=("png", "PNG", "png", "Png"))), COLOUR)
    for split, x in PIXELS.items():
        same(found[split], arrays.Split(x, LABELS[split]))


def test_grey_ones_have_one_channel_and_colours_become_grey():
    found = image_folders.decode(held(folders(grey=True)), GREY)
    same(found["train"], arrays.Split(PIXELS["train"][..., :1], LABELS["train"]))
    found = image_folders.decode(held(folders()), GREY)
    weights = np.array([0.299, 0.587, 0.114])
    expected = arrays.canonical(arrays.Split((PIXELS["test"] @ weights).round()[..., None], LABELS["test"]))
    np.testing.assert_allclose(arrays.canonical(found["test"]).x, expected.x, atol=1)


def test_images_of_another_size_are_scaled():
    found = image_folders.decode(held(folders()), COLOUR | {"shape": [4, 6, 3]})
    assert found["train"].x.shape == (4, 4, 6, 3)


@pytest.mark.parametrize(
    ("content", "spec", "fault"),
    [
        ({"train/cat/1.png": b"", "train/fox/1.png": b""}, GREY, "train has the folder 'fox', which is none of"),
        ({"train/cat/1.png": b"", "train/dog/1.png": b""}, GREY, "test has no image of cat"),
        ({"train/cat/1.png": b"", "test/cat/1.png": b""}, GREY, "train has no image of dog"),
        (folders() | {"train/cat/9.png": b"GIF89a"}, GREY, "has 5 train images, over 4"),
        (dict.fromkeys(folders(), b"no"), GREY, "is no whole PNG image"),
    ],
)
def test_folders_that_are_wrong_are_refused(content, spec, fault):
    with pytest.raises(SourceError, match=fault) as refusal:
        image_folders.decode(held(content), spec)
    assert str(refusal.value).startswith("here: ")
    assert str(refusal.value).endswith("; mend it")


@pytest.mark.parametrize("labels", [np.uint8, np.int64, ">i4"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_come_out_as_they_are(labels, order):
    x = np.asarray(PIXELS["train"], order=order)
    found = npz.decode(held(packed(train_x=x, train_y=LABELS["train"].astype(labels))), COLOUR)
    for split, pixels in PIXELS.items():
        same(found[split], arrays.Split(pixels, LABELS[split]))


def test_arrays_of_one_channel_need_no_axis_for_it():
    grey = {f"{split}_x": x[..., 0] for split, x in PIXELS.items()}
    same(npz.decode(held(packed(**grey)), GREY)["test"], arrays.Split(PIXELS["test"][..., :1], LABELS["test"]))


def test_what_the_pipeline_writes_can_be_read(tmp_path):
    splits = {split: arrays.canonical(arrays.Split(x, LABELS[split])) for split, x in PIXELS.items()}
    arrays.save(tmp_path / "a.npz", splits, GREY["classes"])
    for split, found in npz.decode(files.folder(tmp_path), COLOUR).items():
        same(found, splits[split])


class Planted:
    def __reduce__(self):
        return print, ("planted",)


def huge():
    """An array that claims to be of 4 EB."""
    file, header = io.BytesIO(), io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": (1 << 62, 2, 3, 3)})
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("train_x.npy", header.getvalue())
    return {"pets.npz": file.getvalue()}


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (packed(train_y=np.array([Planted()] * 4, dtype=object)), r"train_y is object \[4\], not whole numbers \[4\]"),
        (packed(train_y=np.zeros(4)), r"train_y is float64 \[4\], not whole numbers"),
        (packed(train_x=PIXELS["train"] / 255), r"train_x is float64 \[4, 2, 3, 3\], not uint8 \[4, 2, 3, 3\]"),
        (packed(test_x=PIXELS["train"]), r"test_x is uint8 \[4, 2, 3, 3\], not uint8 \[2, 2, 3, 3\]"),
        (packed(test_x=None), "has no array test_x, only"),
        (huge(), r"train_x is uint8 \[4611686018427387904, 2, 3, 3\], not"),
        ({"pets.npz": b"no zip"}, "pets.npz is damaged or cut short"),
        (packed() | {"more.npz": b""}, "has more.npz and pets.npz, not one .npz"),
    ],
)
def test_arrays_that_are_wrong_are_refused_and_nothing_is_unpickled(content, fault, capsys):
    with pytest.raises(SourceError, match=fault) as refusal:
        npz.decode(held(content), COLOUR)
    assert str(refusal.value).endswith("; mend it")
    assert capsys.readouterr().out == ""


def built(tmp_path, spec):
    places = {"data_folder": tmp_path, "downloads": tmp_path / "downloads", "out": tmp_path / "set.npz"}
    return build("pets", spec | OWN, standin=None, allow_partial=False, **places)


def test_a_data_set_from_outside_is_built_from_its_folder(tmp_path):
    for path, content in folders().items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(content)
    facts = built(tmp_path, COLOUR)
    assert (facts["source"], facts["standin"], facts["proof"], facts["train"]) == ("folder", False, "counts only", 4)
    with pytest.raises(DatasetError, match=r"has 4 \+ 2 images, not 4 \+ 3 images; mend it, or correct what the"):
        built(tmp_path, COLOUR | {"test": 3})
    with pytest.raises(DatasetError, match=r"train has content checksum .*; mend it, or correct what the") as refusal:
        built(tmp_path, COLOUR | {"sha256": {"train": "0" * 64, "test": None}})
    assert "away" not in str(refusal.value)


def test_where_to_put_what_is_not_there(tmp_path):
    with pytest.raises(DatasetError, match=r"put it into .*/pets/, laid out as image_folders or npz\. Tried:"):
        built(tmp_path, COLOUR)
