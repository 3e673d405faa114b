"""Checks the settings: config/config.yaml and what the command line lays over it."""

from __future__ import annotations

from clpapers.config.files import CONFIG, read_yaml
from clpapers.config.refusals import one_of
from clpapers.config.schemas import schema, validate


def all_papers() -> list[str]:
    """The papers that have a file."""
    return sorted(path.stem for path in (CONFIG / "papers").glob("*.yaml"))


def check_settings(settings: dict) -> dict:
    """Validate what Snakemake read from config/config.yaml and the command line; returns it."""
    file = f"{CONFIG}/config.yaml or --config"
    read_yaml(CONFIG / "config.yaml")  # for what Snakemake's reader lets pass, such as a key given twice
    validate(settings, schema("config"), file)
    scales = sorted(path.stem for path in (CONFIG / "scales").glob("*.yaml"))
    one_of(f"{file}: scale", settings["scale"], scales)
    for paper in settings["papers"]:
        one_of(f"{file}: papers", paper, all_papers())
    return settings
