"""CUB-200-2011 and Animals with Attributes 2: their layouts, splits and class attributes, from archives made here."""

import math

import numpy as np
import official_formats as made
import pytest
from official_formats import held
from PIL import Image

from clpapers.datasets import arrays
from clpapers.datasets.build import DatasetError
from clpapers.datasets.formats import awa2, cub200

BIRDS = ["Black_footed_Albatross", "Groove_billed_Ani", "Bobolink"]
BEASTS = ["antelope", "grizzly+bear", "bat"]
CUB = made.entry((6, 5, 3), BIRDS, 9, 6, [{"kind": "folder", "formats": ["cub200"]}, {"kind": "standin"}], attributes=4)
AWA = made.entry((6, 5, 3), BEASTS, 21, 3, [{"kind": "folder", "formats": ["awa2"]}, {"kind": "standin"}], attributes=4)
TABLE = np.array([[0.0, 25.5, 60, 3], [100, 0, 0, 7], [1, 2, 3, 4]])


def photograph(rng, label, **options):
    """A JPEG of some size, plain of colour: any scaling leaves its colour, which tells its class."""
    height, width = rng.integers(3, 20, 2)
    shade = np.array([40 * label, 200 - 40 * label, rng.integers(256)], np.uint8)
    return made.image(np.broadcast_to(shade, (height, width, 3)), "JPEG", quality=95, **options)


def listed(words):
    return "".join(f"{number} {word}\n" for number, word in enumerate(words, 1)).encode()


def text(table):
    return "\n".join(" ".join(map(str, row)) for row in table).encode()


def cub_files(train=3, test=2):
    """The official layout, with `train` and `test` images a class; which are which alternates."""
    rng, root = np.random.default_rng(0), "CUB_200_2011"
    names, labels, flags, content = [], [], [], {}
    for label, bird in enumerate(BIRDS):
        for k in range(train + test):
            names.append(f"{label + 1:03d}.{bird}/{bird}_{k:04d}_7.jpg")
            labels.append(label + 1)
            flags.append(int(k % 2 == 0 if k < 2 * min(train, test) else train > test))
            content[f"{root}/images/{names[-1]}"] = photograph(rng, label)
    lists = {"images": names, "image_class_labels": labels, "train_test_split": flags}
    lists["classes"] = [f"{label:03d}.{bird}" for label, bird in enumerate(BIRDS, 1)]
    content |= {f"{root}/{name}.txt": listed(words) for name, words in lists.items()}
    content[f"{root}/attributes/class_attribute_labels_continuous.txt"] = text(TABLE)
    return content | {f"{root}/README": b"birds", "attributes.txt": b"1 has_bill_shape::curved\n"}


def awa_files(each=10):
    """The official layout; each photograph is grey, of a shade that tells its place among its class's names."""
    root, content = "Animals_with_Attributes2", {}
    for beast in BEASTS:
        for k in range(each):
            shade = np.full((9, 7), 8 * k, np.uint8)
            content[f"{root}/JPEGImages/{beast}/{beast}_{10001 + k}.jpg"] = made.image(shade, "JPEG", quality=95)
    content[f"{root}/classes.txt"] = "".join(f"{n:6d}\t{beast}\n" for n, beast in enumerate(BEASTS, 1)).encode()
    content[f"{root}/predicate-matrix-continuous.txt"] = text(TABLE)
    return content | {f"{root}/predicate-matrix-binary.txt": text(TABLE > 5), f"{root}/licenses/antelope.txt": b"CC"}


CASES = {"cub200": (cub200, CUB, cub_files), "awa2": (awa2, AWA, awa_files)}


def read(case, content):
    format, spec, _ = CASES[case]
    return format.decode(held(content), spec), format.attributes(held(content), spec)


def test_cub_keeps_the_official_split_and_labels():
    content = cub_files()
    decoded = cub200.decode(held(content), CUB)
    for split, each in (("train", 3), ("test", 2)):
        x, y, *_ = decoded[split]
        assert x.shape == (3 * each, 6, 5, 3)
        assert x.dtype == np.uint8
        assert (np.bincount(y) == each).all()
        np.testing.assert_allclose(x[..., 0].mean((1, 2)), 40 * y, atol=4)  # each image has its class's red
    changed = content["CUB_200_2011/train_test_split.txt"].replace(b"1 1\n2 0\n", b"1 0\n2 1\n")
    other = cub200.decode(held({**content, "CUB_200_2011/train_test_split.txt": changed}), CUB)
    assert (other["train"].x[0] == decoded["test"].x[0]).all()
    assert (other["test"].x[0] == decoded["train"].x[0]).all()


def test_awa_is_split_by_name_as_the_authors_did():
    decoded = awa2.decode(held(awa_files()), AWA)
    for split, places in (("train", range(7)), ("test", (9,))):  # of ten, 7 + 2 + 1
        x, y, *_ = decoded[split]
        assert y.tolist() == [label for label in range(3) for _ in places]
        np.testing.assert_allclose(x.mean((1, 2, 3)), [8 * place for _ in range(3) for place in places], atol=1)


@pytest.mark.parametrize(
    ("images", "train", "test"), [(720, 503, 109), (549, 384, 82), (1420, 993, 214), (100, 70, 15)]
)
def test_awa_split_sizes_are_those_of_the_authors_lists(images, train, test):
    picture = made.image(np.zeros((3, 3), np.uint8), "JPEG")
    content = {**awa_files(0), **{f"JPEGImages/bat/bat_{10001 + k}.jpg": picture for k in range(images)}}
    decoded = awa2.decode(held(content), AWA | {"train": images, "test": images})
    assert [len(split.y) for split in decoded.values()] == [train, test]


def test_images_are_scaled_bilinearly_whatever_their_aspect():
    wide = np.random.default_rng(0).integers(0, 256, (7, 31, 3), dtype=np.uint8)
    name = "CUB_200_2011/images/001.Black_footed_Albatross/Black_footed_Albatross_0000_7.jpg"
    decoded = cub200.decode(held({**cub_files(), name: made.image(wide, "JPEG")}), CUB)
    (through, _), _ = made.jpeg_splits({"a": (wide[None], None), "b": (wide[None], None)}).values()
    np.testing.assert_array_equal(decoded["train"].x[0], Image.fromarray(through[0]).resize((5, 6), Image.BILINEAR))


@pytest.mark.parametrize("case", CASES)
def test_attributes_follow_the_classes_and_have_length_1(case):
    format, spec, make = CASES[case]
    table = format.attributes(held(make()), spec)
    assert table.dtype == np.float32
    np.testing.assert_allclose(table, [row / math.hypot(*row) for row in TABLE], rtol=1e-6)


def test_a_missing_cell_stays_minus_one():
    spoilt = TABLE.copy()
    spoilt[0, :2] = -1
    content = {**awa_files(), "Animals_with_Attributes2/predicate-matrix-continuous.txt": text(spoilt)}
    row = awa2.attributes(held(content), AWA)[0]
    np.testing.assert_allclose(row, spoilt[0] / np.sqrt(1 + 1 + 3600 + 9), rtol=1e-6)


@pytest.mark.parametrize("case", CASES)
def test_built_from_an_archive_as_downloaded_and_held_to_all_checksums_that_are_known(case, build, tmp_path):
    format, spec, make = CASES[case]
    made.write_tar(tmp_path / "data" / case / "images.tgz", make())
    info = build(spec, case)
    assert (info["source"], info["proof"]) == ("folder", "counts only")
    assert (info["train"], info["test"]) == (spec["train"], spec["test"])
    decoded = format.decode(held(make()), spec)
    for split in ("train", "test"):
        expected, stored = arrays.canonical(decoded[split]), arrays.load(tmp_path / f"out/{case}.npz", split)
        np.testing.assert_array_equal(stored.x, expected.x)
        np.testing.assert_array_equal(stored.y, expected.y)
    table = arrays.attributes(tmp_path / f"out/{case}.npz")
    np.testing.assert_array_equal(table, format.attributes(held(make()), spec))
    found = info["sha256"]
    assert set(found) == {"train", "test", "attributes"}
    assert found["attributes"] == arrays.table_checksum(table)
    for known, proof in ((found, "content checksum"), ({**found, "attributes": None}, "counts only")):
        assert build(spec | {"sha256": known}, case)["proof"] == proof
    with pytest.raises(DatasetError, match="attributes has content checksum"):
        build(spec | {"sha256": {**found, "attributes": "0" * 64}}, case)


@pytest.mark.parametrize(("case", "lacks"), [("cub200", "images/, images.txt"), ("awa2", "JPEGImages/")])
def test_a_folder_without_images_is_passed_over_with_all_it_lacks_in_one_line(case, lacks, build, tmp_path):
    _, spec, make = CASES[case]
    kept = {name.rsplit("/", 1)[-1]: data for name, data in make().items() if not name.endswith(".jpg")}
    kept.pop("images.txt", None)
    made.write_folder(tmp_path / "data" / case, kept)
    info = build(spec, case, standin={"train_per_class": 2, "test_per_class": 1})
    assert info["tried"] == [f"folder: {tmp_path / 'data' / case}: lacks {lacks}"]
    with pytest.raises(DatasetError, match=f"lacks {lacks}"):
        build(spec, case)


def test_what_lies_beside_the_images_is_no_class():
    other = {"__MACOSX/JPEGImages/antelope/._antelope_10001.jpg": b"", "JPEGImages/antelope/thumbs.jpg": b""}
    awa2.decode(held({**awa_files(), **other}), AWA)  # neither is one of the data set's


def test_stand_in_attributes_go_into_the_record(build, tmp_path):
    info = build(AWA, "awa2", standin={"train_per_class": 4, "test_per_class": 2})
    table = arrays.attributes(tmp_path / "out/awa2.npz")
    assert (info["standin"], info["train"], info["test"], table.shape) == (True, 12, 6, (3, 4))
    assert info["sha256"]["attributes"] == arrays.table_checksum(table)
