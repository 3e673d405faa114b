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
    for name, spec in FETCHED.items():
        assert ("attributes" in spec["sha256"]) == (name in known)


def test_where_class_sizes_are_known_the_content_is_proven():
    """By a checksum, which streams over the set name, or by the MD5 of the only archive that there is."""
    known = {name for name, spec in FETCHED.items() if "class_sizes" in spec}
    assert known == {"mnist", "fashion_mnist", "emnist", "cifar10", "cifar100", "tiny_imagenet"}
    assert {name for name in known if not FETCHED[name]["sha256"]["train"]} == {"emnist"}
    assert {source["kind"] for source in FETCHED["emnist"]["sources"]} == {"folder", "torchvision", "standin"}


def test_every_set_has_a_folder_first_an_official_source_and_a_stand_in_last():
    for spec in FETCHED.values():
        kinds = [source["kind"] for source in spec["sources"]]
        assert kinds[0] == "folder"
        assert kinds[1] in ("torchvision", "archive")
        assert kinds[-1] == "standin"


def test_cifar100_has_twenty_superclasses_of_five_classes():
    categories = CATALOGUE["cifar100_resnet50"]["categories"]
    assert {len(members) for members in categories.values()} == {5}
    assert len(categories) == 20
    assert sorted(name for members in categories.values() for name in members) == sorted(
        CATALOGUE["cifar100"]["classes"]
    )


def test_a_mirror_always_has_a_checksum_to_meet():
    for spec in FETCHED.values():
        if {"npm", "apt"} & {source["kind"] for source in spec["sources"]}:
            assert None not in spec["sha256"].values()


def test_schema_and_code_know_the_same_kinds_and_formats():
    assert set(SCHEMA["$defs"]["source"]["properties"]["kind"]["enum"]) == {*FETCH, "standin"}
    assert set(SCHEMA["$defs"]["format"]["enum"]) == set(FORMATS)


def test_the_schema_is_closed_throughout():
    def walk(node, at):
        if isinstance(node, dict):
            if "properties" in node and not at.endswith(("/if", "/source")):  # a source's kind closes it
                assert node.get("additionalProperties") is False, at
            for key, value in node.items():
                walk(value, f"{at}/{key}")
        elif isinstance(node, list):
            for index, value in enumerate(node):
                walk(value, f"{at}/{index}")

    walk(SCHEMA, "")


def change(name, *path, value):
    content = copy.deepcopy(CATALOGUE)
    place = content[name]
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return content
