"""The settings of config.yaml and of the command line."""

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
        ({"papers": "tyni"}, "papers: 'tyni' is not one of tiny"),
        ({"papers": 3}, "papers: 3 is not of type array"),
        ({"papers": []}, "papers: [] needs at least this many entries: 1"),
        ({"device": "tpu"}, "device: 'tpu' is not one of auto, cpu, cuda"),
        (
            {"sclae": "tiny"},
            "(top): unknown key 'sclae'; allowed: data_folder, device, downloads, "
            "fetch, hours, methods, papers, published, scale",
        ),
    ],
)
def test_wrong_settings_are_refused_in_one_line(given, line):
    with pytest.raises(ConfigError) as refusal:
        settings(**given)
    assert str(refusal.value) == f"config/config.yaml or --config: {line}"


def test_a_paper_alone_is_a_list_of_one():
    assert settings(papers="tiny")["papers"] == ["tiny"]


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


@pytest.mark.parametrize("place", ["data", "/mnt/my data", "./-x", "~/données", "a-b"])
def test_any_other_folder_is_taken(place):
    assert settings(data_folder=place)["data_folder"] == place
