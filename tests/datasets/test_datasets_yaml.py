"""config/datasets.yaml against its schema, the formats there are, and what is known of each set."""

import copy
from pathlib import Path

import yaml

from clpapers.config.schemas import validate
from clpapers.datasets.sources import FETCH, FORMATS

ROOT = Path(__file__).parents[2]
CATALOGUE = yaml.safe_load((ROOT / "config/datasets.yaml").read_text(encoding="utf-8"))
FETCHED = {name: spec for name, spec in CATALOGUE.items() if "sources" in spec}
SCHEMA = yaml.safe_load((ROOT / "workflow/schemas/datasets.schema.yaml").read_text(encoding="utf-8"))


def check(content):
    validate(content, SCHEMA, "config/datasets.yaml")


def test_the_catalogue_is_valid_and_complete():
    check(CATALOGUE)
    sizes = {name: (len(spec["classes"]), spec["train"], spec["test"]) for name, spec in FETCHED.items()}
    assert sizes == {
        "mnist": (10, 60_000, 10_000),
        "fashion_mnist": (10, 60_000, 10_000),
        "emnist": (47, 112_800, 18_800),
        "cifar10": (10, 50_000, 10_000),
        "cifar100": (100, 50_000, 10_000),
        "tiny_imagenet": (200, 100_000, 10_000),
        "cub200": (200, 5_994, 5_794),
        "awa2": (50, 26_102, 5_600),
        "icubworld": (10, 6_002, 2_001),
        "icubworld_demonstrator": (10, 6_002, 2_001),
    }
    known = {name: spec["attributes"] for name, spec in FETCHED.items() if "attributes" in spec}
    assert known == {"cub200": 312, "awa2": 85}


def test_every_set_has_a_folder_first_an_official_source_and_a_stand_in_last_and_proven_mirrors():
    for name, spec in FETCHED.items():
        first, official, *mirrors, last = [source["kind"] for source in spec["sources"]]
        assert (first, last) == ("folder", "standin")
        assert official in ("torchvision", "archive")
        assert not mirrors or None not in spec["sha256"].values()
        assert ("attributes" in spec["sha256"]) == ("attributes" in spec)
        # Streams over a set whose class sizes are known name its checksum; EMNIST's only archive has an MD5.
        assert "class_sizes" not in spec or spec["sha256"]["train"] or (name, mirrors) == ("emnist", [])
    known = {name for name, spec in FETCHED.items() if "class_sizes" in spec}
    assert known == {"mnist", "fashion_mnist", "emnist", "cifar10", "cifar100", "tiny_imagenet"}


def test_cifar100_has_twenty_superclasses_of_five_classes():
    categories = CATALOGUE["cifar100_resnet50"]["categories"]
    assert [len(members) for members in categories.values()] == [5] * 20
    assert sorted(name for names in categories.values() for name in names) == sorted(CATALOGUE["cifar100"]["classes"])


def test_schema_and_code_know_the_same_kinds_and_formats():
    assert set(SCHEMA["$defs"]["source"]["properties"]["kind"]["enum"]) == {*FETCH, "standin"}
    assert set(SCHEMA["$defs"]["format"]["enum"]) == set(FORMATS)


def change(name, *path, value):
    content = copy.deepcopy(CATALOGUE)
    place = content[name]
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return content
