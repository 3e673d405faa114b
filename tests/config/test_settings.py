"""The settings of config.yaml and of the command line."""

from pathlib import Path

import pytest
from tiny_paper import settings

from clpapers.config.refusals import ConfigError

pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.parametrize(("text", "hours"), [("1e-3", 0.001), ("8", 8), (".5", 0.5), ("2.", 2), ("1E2", 100)])
def test_hours_that_yaml_leaves_a_text_are_a_number(text, hours):
    """As `clpapers next --hours` takes them."""
    assert settings(hours=text)["hours"] == hours


def test_a_paper_alone_is_a_list_of_one():
    assert settings(papers="tiny")["papers"] == ["tiny"]


def test_false_is_read_as_yaml_has_it_where_snakemake_leaves_a_text():
    assert settings(published="false")["published"] is False
    assert settings(published="true")["published"] is True


@pytest.mark.parametrize("place", ["my data", "./-x", "~/données", "a-b"])
def test_any_other_folder_that_is_there_is_taken(place):
    with pytest.raises(ConfigError, match=f"config.yaml or --config: data_folder: '{place}': no such folder; make or "):
        settings(data_folder=place)
    Path(place).mkdir(parents=True)
    assert settings(data_folder=place)["data_folder"] == place


def test_the_usual_folder_need_not_be_there():
    assert not Path("data").exists()
    assert settings()["data_folder"] == "data"
