"""`clpapers new` writes files that pass as they are, describes images that are there, and overwrites nothing."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from clpapers import cli
from clpapers.config.files import read_yaml
from clpapers.config.plan import Plan
from clpapers.config.settings import check_settings
from clpapers.datasets.build import build

ROOT = Path(__file__).parents[2]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The configuration in a folder of its own, and a folder elsewhere."""
    monkeypatch.chdir(tmp_path)
    for part in ("config", "workflow"):
        shutil.copytree(ROOT / part, part, ignore=shutil.ignore_patterns("outside"))
    return tmp_path / "elsewhere"


def new(*arguments):
    return cli.main(["new", *map(str, arguments)])


def test_both_pass_as_they_are_at_each_scale(here, capsys):
    assert new("paper", "my_paper", "--folder", here) == 0
    assert new("dataset", "pets", "--folder", here) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].endswith(f"--config 'papers=[{here}/my_paper.yaml]'")
    assert said[1].endswith(f"--config 'datasets=[{here}/pets.yaml]'")
    for scale in ("smoke", "paper"):
        check_settings({"scale": scale, "papers": [f"{here}/my_paper.yaml"], "datasets": [f"{here}/pets.yaml"]})
        plan = Plan(scale, ["my_paper"])
        learners = [factors["learner"] for factors, _ in plan.targets["my_paper/table1"].cells]
        assert learners == ["single", "er"]
    for word in ("NAME", "PATH", "FOLDER", "TRAIN", "TEST", "SHAPE", "CLASSES"):
        assert not any(word in (here / name).read_text() for name in ("my_paper.yaml", "pets.yaml"))


def test_the_sample_of_a_data_set_is_what_its_file_says(here, tmp_path):
    new("dataset", "pets", "--folder", here)
    spec = read_yaml(here / "pets.yaml")["pets"]
    places = {"data_folder": here, "downloads": tmp_path / "downloads", "out": tmp_path / "pets.npz"}
    facts = build("pets", spec, standin=None, allow_partial=False, **places)
    assert (facts["train"], facts["test"], spec["classes"]) == (40, 10, ["left", "right"])


@pytest.mark.parametrize("name", ["yes", "no", "on", "off", "null", "true", "y", "e1"])
def test_a_name_that_yaml_would_read_as_something_else_is_quoted(here, name):
    for kind in ("dataset", "paper"):
        assert new(kind, name, "--folder", here / kind) == 0
    check_settings({"papers": [f"{here}/paper/{name}.yaml"], "datasets": [f"{here}/dataset/{name}.yaml"]})
    (described,) = read_yaml(here / f"dataset/{name}.yaml").items()
    assert (described[0], described[1]["title"], described[1]["folder"]) == (name, name, name)
    assert Plan("paper", [name]).titles == {name: name}


def images(here, names, shape=(4, 4), counts=(1, 1), **more):
    """Put images of classes into a data set's folder, so many of each to train on and to test on."""
    for split, count in zip(("train", "test"), counts):
        for name in names:
            (here / "pets" / split / name).mkdir(parents=True)
            for i in range(count):
                Image.fromarray(np.zeros(shape, np.uint8)).save(here / "pets" / split / name / f"{i}.png", **more)


def described(here):
    assert new("dataset", "pets", "--folder", here) == 0
    return read_yaml(here / "pets.yaml")["pets"]


def test_images_that_are_there_are_described(here):
    images(here, ["no", "a dog"], (5, 7, 3), (3, 2))
    spec = described(here)
    assert (spec["shape"], spec["classes"], spec["train"], spec["test"]) == ([5, 7, 3], ["a dog", "no"], 6, 4)


def test_the_channels_are_those_that_all_images_need(here):
    """A set whose first image is grey has three; sides are as an image is turned upright."""
    exif = Image.Exif()
    exif[0x0112] = 6
    images(here, ["cat"], (5, 7), exif=exif)
    images(here, ["dog"], (7, 5, 3))
    assert described(here)["shape"] == [7, 5, 3]


def test_an_empty_class_and_hidden_folders(here, capsys):
    images(here, ["cat", "dog", "dog/.ipynb_checkpoints"])
    (here / "pets/train/cow").mkdir()
    assert new("dataset", "pets", "--folder", here) == 2
    assert "train/cow/ is all that train/cow has, and no image" in capsys.readouterr().err
    (here / "pets/train/cow").rmdir()
    spec = described(here)
    assert (spec["classes"], spec["train"], spec["test"]) == (["cat", "dog"], 2, 2)


def test_a_folder_that_is_none_of_images_is_left_as_it_is(here, capsys):
    (here / "pets/train/cat").mkdir(parents=True)
    (here / "pets/train/cat/1.png").write_bytes(b"no image")
    assert new("dataset", "pets", "--folder", here) == 2
    assert "train/ has images of cat, test/ of none; give both the same folders" in capsys.readouterr().err
    shutil.copytree(here / "pets/train", here / "pets/test")
    assert new("dataset", "pets", "--folder", here) == 2
    assert "1.png: no image that can be read" in capsys.readouterr().err
    assert not (here / "pets.yaml").exists()


def test_folders_of_either_unicode_form_are_described_by_one_name(here):
    images(here, ["cafe\u0301", "tea"], counts=(1,))
    for name in ("caf\xe9", "tea"):
        shutil.copytree(here / "pets/train/tea", here / "pets/test" / name)
    assert described(here)["classes"] == ["caf\xe9", "tea"]


@pytest.mark.parametrize(
    "names",
    [["1", "2", "3", "10", "11"], ["n9", "n10", "n100"], ["a", "b", "b2", "b10"], ["05", "5", "50"], ["²", "³"]],
)
def test_numbered_classes_stand_in_the_order_of_their_numbers(here, names):
    images(here, names)
    assert described(here)["classes"] == names
