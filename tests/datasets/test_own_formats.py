"""The layouts for own data, image_folders and npz: what they hold comes out; what is wrong is refused in one line."""

import io
import tarfile
from itertools import product

import numpy as np
import official_formats as made
import pytest
from official_formats import held
from PIL import Image

from clpapers.datasets import arrays, files
from clpapers.datasets.build import DatasetError
from clpapers.datasets.files import SourceError
from clpapers.datasets.formats import image_folders, npz

GREY = made.entry((2, 3, 1), ("cat", "dog"), 4, 2, [{"kind": "folder", "formats": ["image_folders", "npz"]}])
COLOUR = GREY | {"shape": [2, 3, 3]}
OWN = {"declared": "config/outside/datasets/pets.yaml"}
RNG = np.random.default_rng(0)
PIXELS = {split: RNG.integers(0, 256, (n, 2, 3, 3), dtype=np.uint8) for split, n in (("train", 4), ("test", 2))}
LABELS = {"train": np.array([0, 1, 0, 1]), "test": np.array([1, 0])}
RAMP = np.arange(64, dtype=np.uint8).reshape(8, 8) * 4
COLOURS = np.stack([RAMP, RAMP.T, 255 - RAMP], axis=2)
DEEP = RAMP.astype(np.uint16) * 257  # 16 bits


def stored(image, format="PNG", **options):
    """An image's file; of an array, or of one of Pillow's."""
    file, image = io.BytesIO(), Image.fromarray(image) if isinstance(image, np.ndarray) else image
    image.save(file, format, **options)
    return file.getvalue()


PNG = stored(RAMP)


def folders(grey=False, suffixes=("png",) * 4):
    content = {".DS_Store": b"", "train/notes.txt": b"x"}
    for split, pixels in PIXELS.items():
        for i, (x, y, suffix) in enumerate(zip(pixels, LABELS[split], suffixes)):
            path = f"pets/{split}/{GREY['classes'][y]}/{'deep/' * (i % 2)}{i}.{suffix}"
            content[path] = stored(x[..., 0] if grey else x)
    return content


def packed(**changed):
    known = {f"{split}_x": x for split, x in PIXELS.items()} | {f"{split}_y": y for split, y in LABELS.items()}
    file = io.BytesIO()
    np.savez(file, **{key: value for key, value in (known | changed).items() if value is not None})
    return {"pets.npz": file.getvalue()}


def tree(*images, name="0.png"):
    """A tree whose classes have one image each, of these bytes."""
    there = dict(zip(("cat", "dog"), images * 2))
    return {f"{split}/{label}/{name}": content for split in ("train", "test") for label, content in there.items()}


def entry(channels=3, side=8, **more):
    return GREY | {"shape": [side, side, channels], "train": 2, "test": 2} | more


def read(content, spec=None):
    return image_folders.decode(held(content, "mend it"), spec or entry())


def same(found, channels=slice(None)):
    for split, x in PIXELS.items():
        expected = arrays.canonical(arrays.Split(x[..., channels], LABELS[split]))
        assert arrays.checksum(arrays.canonical(found[split])) == arrays.checksum(expected)


# --- images in folders -------------------------------------------------------------------------------------------


def test_images_in_folders_come_out_as_they_are():
    same(read(folders(suffixes=("png", "PNG", "png", "Png")), COLOUR))
    same(read(folders(grey=True), GREY), [0])
    assert read(folders(), COLOUR | {"shape": [4, 6, 3]})["train"].x.shape == (4, 4, 6, 3)  # scaled


def test_colours_become_grey():
    grey = (PIXELS["test"] @ np.array([0.299, 0.587, 0.114])).round()[..., None]
    expected = arrays.canonical(arrays.Split(grey, LABELS["test"]))
    np.testing.assert_allclose(arrays.canonical(read(folders(), GREY)["test"]).x, expected.x, atol=1)


def opaque(pixels):
    image = Image.fromarray(pixels)
    image.putalpha(255)
    return image


MODES = [
    *((stored(x), RAMP) for x in (RAMP, DEEP, RAMP.astype(np.uint16) << 8, opaque(RAMP))),
    *((stored(DEEP, form), RAMP) for form in ("TIFF", "JPEG2000", "PPM")),
    (stored(RAMP, "GIF"), RAMP),
    (stored(RAMP > 100), np.where(RAMP > 100, 255, 0)),
    *((stored(x), COLOURS) for x in (COLOURS, opaque(COLOURS))),
    *((stored(COLOURS, form), COLOURS) for form in ("BMP", "PPM", "TIFF", "TGA", "PCX", "SGI")),
    (stored(COLOURS, "WEBP", lossless=True), COLOURS),
    (stored(Image.fromarray(COLOURS).quantize(256)), None),
    *((stored(Image.fromarray(COLOURS).convert(mode), "TIFF"), None) for mode in ("CMYK", "YCbCr")),
]


@pytest.mark.parametrize(("content", "expected"), MODES)
def test_every_mode_comes_out_as_its_pixels(content, expected):
    """Of what Pillow has in other colours, as it converts them."""
    if expected is None:
        expected = np.asarray(Image.open(io.BytesIO(content)).convert("RGB"))
    expected = np.broadcast_to(expected[..., None] if expected.ndim == 2 else expected, (8, 8, 3))
    assert all((x == expected).all() for split in read(tree(content)).values() for x in split.x)


def clear(mode, alpha=0):
    image = Image.fromarray(COLOURS).convert(mode)
    image.putpixel((3, 3), (*image.getpixel((3, 3))[:-1], alpha))
    return image


@pytest.mark.parametrize("orientation", range(1, 9))
def test_an_image_is_turned_upright_as_it_says(orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    upright = {1: COLOURS, 2: COLOURS[:, ::-1], 3: COLOURS[::-1, ::-1], 4: COLOURS[::-1]}
    turned = COLOURS.swapaxes(0, 1)
    upright |= {5: turned, 6: turned[:, ::-1], 7: turned[::-1, ::-1], 8: turned[::-1]}
    assert (read(tree(stored(COLOURS, exif=exif)))["train"].x == upright[orientation]).all()


HIDDEN = [
    "train/cat/.ipynb_checkpoints/0-checkpoint.png",
    "train/cat/.thumbnails/a/0.png",
    "train/cat/@eaDir/0.png",
    ".cache/train/cat/0.png",
    "__MACOSX/train/cat/._0.png",
    "train/cat/._0.png",
    "train/.trash/0.png",
]


@pytest.mark.parametrize("path", HIDDEN)
def test_what_is_hidden_anywhere_counts_nowhere(path):
    found = read(tree(PNG) | {path: PNG})
    assert len(found["train"].y) == len(found["test"].y) == 2


@pytest.mark.parametrize("suffix", ["webp", "bmp", "tif", "tiff", "gif", "jpe", "jfif", "pgm", "jp2", "TIFF"])
def test_every_suffix_of_an_image_is_read(suffix):
    found = read(tree(PNG, name=f"0.{suffix}"), entry(1))  # whatever it really is
    assert (found["train"].x[..., 0] == RAMP).all()


@pytest.mark.parametrize(("declared", "trained", "tested"), [*product(["caf\xe9", "cafe\u0301"], repeat=3)])
def test_a_class_is_the_folder_of_its_name_in_whatever_unicode_form(declared, trained, tested):
    content = {
        f"train/{trained}/0.png": PNG,
        f"test/{tested}/0.png": PNG,
        "train/tea/0.png": PNG,
        "test/tea/0.png": PNG,
    }
    found = read(content, entry(1, classes=[declared, "tea"]))
    assert [split.y.tolist() for split in found.values()] == [[0, 1], [0, 1]]


def test_what_stands_beside_is_told_of_and_text_is_not(capsys):
    read(tree(PNG) | {"val/cat/0.png": PNG, "train/cat/notes.txt": b"x", "readme.md": b""})
    said = capsys.readouterr().err
    assert said == "clpapers: here: 1 images outside of train/ and test/ are not read, such as val/cat/0.png\n"


def test_links_are_followed_and_a_circle_is_refused(tmp_path):
    elsewhere, pets = made.write_folder(tmp_path / "elsewhere", tree(PNG)), tmp_path / "pets"
    pets.mkdir()
    for split in ("train", "test"):
        (pets / split).symlink_to(elsewhere / split)
    assert len(image_folders.decode(files.folder(pets), entry())["train"].y) == 2
    (elsewhere / "train/cat/1.png").symlink_to("nowhere.png")
    with pytest.raises(SourceError, match=r"train/cat/1\.png is a link to nowhere"):
        image_folders.decode(files.folder(pets), entry())
    (elsewhere / "train/cat/up").symlink_to(elsewhere / "train")
    with pytest.raises(SourceError, match="links to a folder that it stands in; take it away"):
        files.folder(pets)


@pytest.mark.parametrize(("kind", "target"), [(tarfile.LNKTYPE, "pool/0.png"), (tarfile.SYMTYPE, "../../pool/0.png")])
def test_links_of_a_tar_are_followed(tmp_path, kind, target):
    content = {path: data for path, data in tree(PNG).items() if path != "train/dog/0.png"}
    path = made.write_tar(tmp_path / "pets.tar", {"pool/0.png": PNG, **content}, "w")
    with tarfile.open(path, "a") as archive:
        link = tarfile.TarInfo("train/dog/0.png")
        link.type, link.linkname = kind, target
        archive.addfile(link)
    assert image_folders.decode(files.archive(path), entry())["train"].y.tolist() == [0, 1]


# --- arrays ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [np.uint8, np.int64, ">i4"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_come_out_as_they_are(labels, order):
    x = np.asarray(PIXELS["train"], order=order)
    same(npz.decode(held(packed(train_x=x, train_y=LABELS["train"].astype(labels))), COLOUR))


def test_arrays_of_one_channel_need_no_axis_for_it_and_what_the_pipeline_writes_can_be_read(tmp_path):
    same(npz.decode(held(packed(**{f"{split}_x": x[..., 0] for split, x in PIXELS.items()})), GREY), [0])
    splits = {split: arrays.canonical(arrays.Split(x, LABELS[split])) for split, x in PIXELS.items()}
    arrays.save(tmp_path / "a.npz", splits, GREY["classes"])
    same(npz.decode(files.folder(tmp_path), COLOUR))


class Planted:
    def __reduce__(self):
        return print, ("planted",)


# --- built from a folder -----------------------------------------------------------------------------------------


@pytest.fixture
def built(build, tmp_path):
    """Builds a data set from outside, of what the folder `data` holds."""

    def built(spec, content=None, **more):
        made.write_folder(tmp_path / "data", content or {})
        return build(spec | OWN, "pets", **more)

    return built


def test_a_data_set_from_outside_is_built_from_its_folder_or_told_where_to_be_put(built):
    with pytest.raises(DatasetError, match=r"put it into .*/pets/, laid out as image_folders or npz\. Tried:"):
        built(COLOUR)
    facts = built(COLOUR, folders())
    assert (facts["source"], facts["standin"], facts["proof"], facts["train"]) == ("folder", False, "counts only", 4)


@pytest.mark.parametrize(
    ("tested", "shared"),
    [
        (PIXELS["train"][[0, 3]], 2),
        (PIXELS["train"][[1, 1]], 2),  # whatever their class
        (np.stack([PIXELS["test"][0], PIXELS["train"][2]]), 1),
        (PIXELS["train"][[0, 3]] ^ 1, 0),
    ],
)
def test_test_images_that_are_training_images_are_counted(built, build, tmp_path, capsys, tested, shared):
    content = {f"pets/{name}": data for name, data in packed(test_x=tested).items()}
    assert built(COLOUR, content)["test_in_train"] == shared
    said = f"clpapers: pets: {shared} of 2 test images are training images too, to the pixel\n"
    assert capsys.readouterr().err == (said if shared else "")
    assert "test_in_train" not in build(COLOUR, "pets")  # a published set is as it is


def test_copies_of_an_image_in_two_formats_are_one_by_their_pixels(built):
    content = folders()
    copied = Image.open(io.BytesIO(content["pets/train/cat/0.png"]))
    assert built(COLOUR, content | {"pets/test/dog/0.png": stored(copied, "BMP")})["test_in_train"] == 1
