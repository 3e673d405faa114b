"""The settings of config.yaml and of the command line."""

from pathlib import Path

import pytest
from tiny_paper import SETTINGS, edit, settings

from clpapers.config.refusals import ConfigError

pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"scale": "tyni"}, "scale: 'tyni' is not one of real, tiny"),
        ({"scale": 3}, "scale: 3 is not of type string"),
        ({"papers": ["tyni"]}, "papers: 'tyni' is not one of tiny"),
        ({"papers": 3}, "papers: 3 is not of type array"),
        ({"hours": float("nan")}, "hours: nan is no number of core-hours; give one from 0 up, or all"),
        ({"hours": float("inf")}, "hours: inf must be at most 1000000.0"),
        ({"hours": "eight"}, "hours: 'eight' must be a number of core-hours, or all"),
        ({"hours": True}, "hours: True is not of type number or string or null"),
        ({"published": "no"}, "published: 'no' is not of type boolean"),
        ({"fetch": ["../x"]}, "fetch[0]: '../x' must have the form ^[a-z0-9_]+$"),
        ({"papers": []}, "papers: [] needs at least this many entries: 1"),
        ({"device": "tpu"}, "device: 'tpu' is not one of auto, cpu, cuda"),
        (
            {"sclae": "tiny"},
            "(top): unknown key 'sclae'; allowed: data_folder, datasets, device, downloads, "
            "fetch, hours, methods, papers, published, scale",
        ),
    ],
)
def test_wrong_settings_are_refused_in_one_line(given, line):
    with pytest.raises(ConfigError) as refusal:
        settings(**given)
    assert str(refusal.value) == f"config/config.yaml or --config: {line}"


@pytest.mark.parametrize(("text", "hours"), [("1e-3", 0.001), ("8", 8), (".5", 0.5), ("2.", 2), ("1E2", 100)])
def test_hours_that_yaml_leaves_a_text_are_a_number(text, hours):
    """As `clpapers next --hours` takes them."""
    assert settings(hours=text)["hours"] == hours


def test_a_paper_alone_is_a_list_of_one():
    assert settings(papers="tiny")["papers"] == ["tiny"]


def test_false_is_read_as_yaml_has_it_where_snakemake_leaves_a_text():
    assert settings(published="false")["published"] is False
    assert settings(published="true")["published"] is True


def test_a_setting_given_twice_is_refused_which_snakemake_would_let_pass():
    assert settings()["scale"] == "tiny"
    edit(SETTINGS, "scale: tiny\n", "scale: tiny\nscale: real\n")
    with pytest.raises(ConfigError, match=r"^config/config\.yaml: line 2 key 'scale' stands twice$"):
        settings()


@pytest.mark.parametrize("key", ["data_folder", "downloads"])
@pytest.mark.parametrize("place", ["-x", "--help", "a\0b", "\0", "a\nb", "\x7f", "", "x" * 1001])
def test_folders_that_no_command_could_be_given_are_refused(key, place):
    with pytest.raises(ConfigError, match=f"config.yaml or --config: {key}: "):
        settings(**{key: place})


@pytest.mark.parametrize("place", ["my data", "./-x", "~/données", "a-b"])
def test_any_other_folder_that_is_there_is_taken(place):
    with pytest.raises(ConfigError, match=f"config.yaml or --config: data_folder: '{place}': no such folder; make or "):
        settings(data_folder=place)
    Path(place).mkdir(parents=True)
    assert settings(data_folder=place)["data_folder"] == place


def test_the_usual_folder_need_not_be_there():
    assert not Path("data").exists()
    assert settings()["data_folder"] == "data"
