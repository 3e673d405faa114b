"""The layouts for own data, image_folders and npz: what they hold comes out; what is wrong is refused in one line."""

import io
import tarfile

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


RAMP = np.arange(64, dtype=np.uint8).reshape(8, 8) * 4
COLOURS = np.stack([RAMP, RAMP.T, 255 - RAMP], axis=2)


def stored(image, format="PNG", **options):
    file = io.BytesIO()
    image.save(file, format, **options)
    return file.getvalue()


def tree(*images, name="0.png"):
    """A tree whose classes have one image each, of these bytes."""
    there = dict(zip(("cat", "dog"), images * 2))
    return {f"{split}/{label}/{name}": content for split in ("train", "test") for label, content in there.items()}


def entry(channels=3, side=8, **more):
    return GREY | {"shape": [side, side, channels], "train": 2, "test": 2} | more


def opaque(image):
    image.putalpha(255)
    return image


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (stored(Image.fromarray(RAMP)), RAMP),
        (stored(Image.fromarray(RAMP.astype(np.uint16) * 257)), RAMP),
        (stored(Image.fromarray(RAMP.astype(np.uint16) << 8)), RAMP),
        (stored(Image.fromarray(RAMP.astype(np.uint16) * 257), "TIFF"), RAMP),
        (stored(Image.fromarray(RAMP.astype(np.uint16) * 257), "JPEG2000"), RAMP),
        (stored(Image.fromarray(RAMP.astype(np.uint16) * 257), "PPM"), RAMP),
        (stored(Image.fromarray(RAMP > 100)), np.where(RAMP > 100, 255, 0)),
        (stored(Image.fromarray(COLOURS)), COLOURS),
        (stored(opaque(Image.fromarray(COLOURS))), COLOURS),
        (stored(opaque(Image.fromarray(RAMP))), RAMP),
        (stored(Image.fromarray(COLOURS).quantize(256)), None),
        (stored(Image.fromarray(COLOURS).convert("CMYK"), "TIFF"), None),
        (stored(Image.fromarray(COLOURS).convert("YCbCr"), "TIFF"), None),
        *((stored(Image.fromarray(COLOURS), form), COLOURS) for form in ("BMP", "PPM", "TIFF", "TGA", "PCX", "SGI")),
        (stored(Image.fromarray(COLOURS), "WEBP", lossless=True), COLOURS),
        (stored(Image.fromarray(RAMP), "GIF"), RAMP),
    ],
)
def test_every_mode_comes_out_as_its_pixels(content, expected):
    """Of what Pillow has in other colours, as it converts them."""
    if expected is None:
        expected = np.asarray(Image.open(io.BytesIO(content)).convert("RGB"))
    expected = np.broadcast_to(expected[..., None] if expected.ndim == 2 else expected, (8, 8, 3))
    found = image_folders.decode(held(tree(content)), entry())
    assert all((x == expected).all() for split in found.values() for x in split.x)


def clear(mode, alpha=0):
    image = Image.fromarray(COLOURS).convert(mode)
    image.putpixel((3, 3), (*image.getpixel((3, 3))[:-1], alpha))
    return image


@pytest.mark.parametrize("orientation", range(1, 9))
def test_an_image_is_turned_upright_as_it_says(orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    content = stored(Image.fromarray(COLOURS), exif=exif)
    upright = {1: COLOURS, 2: COLOURS[:, ::-1], 3: COLOURS[::-1, ::-1], 4: COLOURS[::-1]}
    turned = COLOURS.swapaxes(0, 1)
    upright |= {5: turned, 6: turned[:, ::-1], 7: turned[::-1, ::-1], 8: turned[::-1]}
    found = image_folders.decode(held(tree(content)), entry())
    assert (found["train"].x == upright[orientation]).all()


PNG = stored(Image.fromarray(RAMP))
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
    found = image_folders.decode(held(tree(PNG) | {path: PNG}), entry())
    assert len(found["train"].y) == len(found["test"].y) == 2


@pytest.mark.parametrize("suffix", ["webp", "bmp", "tif", "tiff", "gif", "jpe", "jfif", "pgm", "jp2", "TIFF"])
def test_every_suffix_of_an_image_is_read(suffix):
    found = image_folders.decode(held(tree(PNG, name=f"0.{suffix}")), entry(1))  # whatever it really is
    assert (found["train"].x[..., 0] == RAMP).all()


COMPOSED, DECOMPOSED, LATIN = "caf\xe9", "cafe\u0301", b"caf\xe9".decode(errors="surrogateescape")


@pytest.mark.parametrize("declared", [COMPOSED, DECOMPOSED])
@pytest.mark.parametrize("trained", [COMPOSED, DECOMPOSED])
@pytest.mark.parametrize("tested", [COMPOSED, DECOMPOSED])
def test_a_class_is_the_folder_of_its_name_in_whatever_unicode_form(declared, trained, tested):
    content = {f"{split}/{name}/0.png": PNG for split, name in (("train", trained), ("test", tested))}
    content |= {f"{split}/tea/0.png": PNG for split in ("train", "test")}
    spec = made.entry((2, 3, 1), (declared, "tea"), 2, 2, []) | {"shape": entry()["shape"]}
    found = image_folders.decode(held(content), spec)
    assert {split: arrays.y.tolist() for split, arrays in found.items()} == {"train": [0, 1], "test": [0, 1]}


def test_what_stands_beside_is_told_of_and_text_is_not(capsys):
    image_folders.decode(
        held(tree(PNG) | {"val/cat/0.png": PNG, "train/cat/notes.txt": b"x", "readme.md": b""}), entry()
    )
    said = capsys.readouterr().err
    assert said == "clpapers: here: 1 images outside of train/ and test/ are not read, such as val/cat/0.png\n"


def test_links_are_followed_and_a_circle_is_refused(tmp_path):
    for path, content in tree(PNG).items():
        (tmp_path / "elsewhere" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "elsewhere" / path).write_bytes(content)
    (tmp_path / "pets").mkdir()
    (tmp_path / "pets/train").symlink_to(tmp_path / "elsewhere/train")
    (tmp_path / "pets/test").symlink_to(tmp_path / "elsewhere/test")
    assert len(image_folders.decode(files.folder(tmp_path / "pets"), entry())["train"].y) == 2
    (tmp_path / "elsewhere/train/cat/1.png").symlink_to("nowhere.png")
    with pytest.raises(SourceError, match=r"train/cat/1\.png is a link to nowhere"):
        image_folders.decode(files.folder(tmp_path / "pets"), entry())
    (tmp_path / "elsewhere/train/cat/1.png").unlink()
    (tmp_path / "elsewhere/train/cat/up").symlink_to(tmp_path / "elsewhere/train")
    with pytest.raises(SourceError, match="links to a folder that it stands in; take it away"):
        files.folder(tmp_path / "pets")


@pytest.mark.parametrize("kind", [tarfile.LNKTYPE, tarfile.SYMTYPE])
def test_links_of_a_tar_are_followed(tmp_path, kind):
    with tarfile.open(tmp_path / "pets.tar", "w") as archive:
        for path, content in {"pool/0.png": PNG, **tree(PNG)}.items():
            if path == "train/dog/0.png":
                continue
            info = tarfile.TarInfo(path)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        link = tarfile.TarInfo("train/dog/0.png")
        link.type, link.linkname = kind, "pool/0.png" if kind == tarfile.LNKTYPE else "../../pool/0.png"
        archive.addfile(link)
    found = image_folders.decode(files.archive(tmp_path / "pets.tar"), entry())
    assert found["train"].y.tolist() == [0, 1]


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


def built(tmp_path, spec):
    places = {"data_folder": tmp_path, "downloads": tmp_path / "downloads", "out": tmp_path / "set.npz"}
    return build("pets", spec | OWN, standin=None, allow_partial=False, **places)


def test_a_data_set_from_outside_is_built_from_its_folder(tmp_path):
    for path, content in folders().items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(content)
    facts = built(tmp_path, COLOUR)
    assert (facts["source"], facts["standin"], facts["proof"], facts["train"]) == ("folder", False, "counts only", 4)


def test_where_to_put_what_is_not_there(tmp_path):
    with pytest.raises(DatasetError, match=r"put it into .*/pets/, laid out as image_folders or npz\. Tried:"):
        built(tmp_path, COLOUR)


@pytest.mark.parametrize(
    ("tested", "shared", "said"),
    [
        (PIXELS["train"][[0, 3]], 2, "clpapers: pets: 2 of 2 test images are training images too, to the pixel\n"),
        (PIXELS["train"][[1, 1]], 2, "clpapers: pets: 2 of 2 test images are training images too, to the pixel\n"),
        (np.stack([PIXELS["test"][0], PIXELS["train"][2]]), 1, "clpapers: pets: 1 of 2 test images are training"),
        (PIXELS["train"][[0, 3]] ^ 1, 0, ""),
    ],
)
def test_test_images_that_are_training_images_are_counted_whatever_their_class(tmp_path, capsys, tested, shared, said):
    made.write_folder(tmp_path / "pets", packed(test_x=tested))
    assert built(tmp_path, COLOUR)["test_in_train"] == shared
    heard = capsys.readouterr().err
    assert heard.startswith(said)
    assert heard.count("\n") == (shared > 0)


def test_copies_of_an_image_in_two_formats_are_one_by_their_pixels(tmp_path):
    content = folders()
    copy = io.BytesIO()
    Image.open(io.BytesIO(content["pets/train/cat/0.png"])).save(copy, "BMP")
    content["pets/test/dog/0.png"] = copy.getvalue()
    made.write_folder(tmp_path, content)
    assert built(tmp_path, COLOUR)["test_in_train"] == 1


def test_a_published_set_is_as_it_is(tmp_path):
    made.write_folder(tmp_path / "pets", packed(test_x=PIXELS["train"][:2]))
    places = {"data_folder": tmp_path, "downloads": tmp_path / "downloads", "out": tmp_path / "set.npz"}
    assert "test_in_train" not in build("pets", COLOUR, standin=None, allow_partial=False, **places)
