"""The layouts for own data, image_folders and npz: what they hold comes out; what is wrong is refused in one line."""

import io
import tarfile
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
        (folders() | {"pets/train/cat/9.png": b"GIF89a"}, GREY, "has 5 train images, over 4"),
        (dict.fromkeys(folders(), b"no"), GREY, "pets/train/cat/0.png is no whole image"),
    ],
)
def test_folders_that_are_wrong_are_refused(content, spec, fault):
    with pytest.raises(SourceError, match=fault) as refusal:
        image_folders.decode(held(content), spec)
    assert str(refusal.value).startswith("here: ")
    assert str(refusal.value).endswith("; mend it")


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


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (stored(clear("RGBA")), r"has pixels that can be seen through \(mode RGBA\)"),
        (stored(clear("LA", 254)), r"has pixels that can be seen through \(mode LA\)"),
        (stored(Image.fromarray(COLOURS).quantize(4), transparency=2),
         r"has pixels that can be seen through \(mode P\)"),
        (stored(Image.fromarray(COLOURS), transparency=(0, 0, 255)),
         r"has pixels that can be seen through \(mode RGB\)"),
        (stored(Image.fromarray(RAMP / 255), "TIFF"), "has pixels of mode F, which do not say what is white"),
        (stored(Image.fromarray(RAMP.astype(np.int32)), "TIFF"), "has pixels of mode I, which do not say"),
        (stored(Image.fromarray(RAMP.astype(np.uint16)), "TIFF", tiffinfo={262: 0}), "has pixels of mode I;16, "),
        (stored(Image.fromarray(RAMP), "GIF", save_all=True, append_images=[Image.fromarray(RAMP.T)]), "has 2 frames"),
        (stored(Image.fromarray(RAMP), "TIFF", save_all=True, append_images=[Image.fromarray(RAMP.T)]), "has 2 frames"),
        (stored(Image.fromarray(COLOURS))[:-30], "is no whole image that can be read"),
    ],
)  # fmt: skip
def test_what_bytes_would_lose_is_refused_by_file_and_mode(content, fault):
    with pytest.raises(SourceError, match=f"here: train/cat/0.png {fault}") as refusal:
        image_folders.decode(held(tree(content)), entry())
    assert "\n" not in str(refusal.value)


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


@pytest.mark.parametrize(
    ("more", "bare", "fault"),
    [
        ({"train/cat/1.heic": b""}, (), "train/cat/1.heic looks like an image and is not read"),
        ({"train/cat/1.svg": b""}, (), "train/cat/1.svg looks like an image"),
        ({"train/cat/1": PNG}, (), "train/cat/1 looks like an image"),
        ({"train/cat/1.png~": PNG}, (), "train/cat/1.png~ looks like an image"),
        ({"train/1.png": PNG}, (), "train/1.png is in no folder of a class"),
        ({"backup/train/cat/0.png": PNG}, (), "has images in two places, such as .*0.png and .*0.png; move one away"),
        ({}, ("train/cow/",), "train/cow/ is all that train/cow has, and no image"),
        ({"test/cow/notes.txt": b"x"}, (), "test/cow/notes.txt is all that test/cow has"),
        ({}, ("train/cat/1.png",), "train/cat/1.png is a link to nowhere"),
    ],
)
def test_what_would_be_lost_or_counted_twice_is_refused_by_its_name(more, bare, fault):
    content = files.Files("here", tree(PNG) | more, bytes, "mend it", bare)
    with pytest.raises(SourceError, match=f"here: {fault}"):
        image_folders.decode(content, entry())


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


@pytest.mark.parametrize(
    ("one", "other", "split", "fault"),
    [
        (COMPOSED, DECOMPOSED, "train", r"train has the folders 'cafe\\u0301' and 'caf\\xe9', one name in two"),
        ("\u1e69", "s\u0307\u0323", "test", r"test has the folders 's\\u0307\\u0323' and '\\u1e69', one name in two"),
        (LATIN, "tea", "train", r"train has the folder caf\\udce9, a name that is no UTF-8"),
        ("tea", b"\xa0\xe6".decode(errors="surrogateescape"), "test", r"test has the folder \\udca0\\udce6, a name"),
    ],
)
def test_folders_of_one_name_and_names_that_are_no_text_are_refused(one, other, split, fault, tmp_path):
    for name in (one, other):
        place = tmp_path / split / name
        place.mkdir(parents=True)
        (place / "0.png").write_bytes(PNG)
    with pytest.raises(SourceError, match=f"^{tmp_path}: {fault}"):
        image_folders.images(files.folder(tmp_path))


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


def test_a_folder_and_an_archive_of_it_are_not_both_read(tmp_path):
    made.write_folder(tmp_path / "pets", tree(PNG))
    made.write_zip(tmp_path / "pets/pets.zip", tree(PNG))
    with pytest.raises(DatasetError, match=r"images are in .*pets\.zip and .*pets; move one away"):
        built(tmp_path, entry())


def test_two_files_of_one_name_in_a_zip_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("train/cat/0.png", PNG)
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("train/cat/0.png", b"other")
    with pytest.raises(SourceError, match=r"it has two files train/cat/0\.png; pack it again"):
        files.archive(tmp_path / "a.zip")


def test_a_class_without_training_images_is_refused(tmp_path):
    """Whatever the format: its number decides which classes make a task."""
    made.write_folder(tmp_path / "pets", packed())
    with pytest.raises(DatasetError, match=r"train has no image of cow; mend it, or correct what the"):
        built(tmp_path, COLOUR | {"classes": ["cat", "dog", "cow"]})


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


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (packed(train_y=np.array([Planted()] * 4, dtype=object)), "pets.npz .*Object arrays"),
        (packed(train_y=np.zeros(4)), r"train_y is float64 \[4\], not whole numbers"),
        (packed(train_x=PIXELS["train"] / 255), r"train_x is float64 \[4, 2, 3, 3\], not uint8 \[4, 2, 3, 3\]"),
        (packed(test_x=PIXELS["train"]), r"test_x is uint8 \[4, 2, 3, 3\], not uint8 \[2, 2, 3, 3\]"),
        (packed(test_x=None), "has no array test_x, only"),
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


def test_declared_sizes_of_classes_are_held_to(tmp_path):
    """Streams are drawn by them, without the images."""
    made.write_folder(tmp_path / "pets", packed())
    built(tmp_path, COLOUR | {"class_sizes": {"train": 2, "test": [1, 1]}})
    with pytest.raises(
        DatasetError, match=r"train has other numbers of images of the classes than its class_sizes: 2 of"
    ):
        built(tmp_path, COLOUR | {"class_sizes": {"train": [1, 3], "test": 1}})


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
