"""Checks the settings: config/config.yaml and what the command line lays over it."""

from __future__ import annotations

from clpapers.config.files import CONFIG, read_yaml
from clpapers.config.refusals import ConfigError, one_of
from clpapers.config.schemas import schema, validate


def all_papers() -> list[str]:
    """The papers that have a file."""
    return sorted(path.stem for path in (CONFIG / "papers").glob("*.yaml"))


def check_settings(settings: dict) -> dict:
    """Lay `settings`, of the command line, over config/config.yaml and validate both; returns them.

    Snakemake does not read the file: its reader runs Python that stands there (`__use_yte__`).
    """
    file = f"{CONFIG}/config.yaml or --config"
    settings = read_yaml(CONFIG / "config.yaml") | settings
    if isinstance(settings.get("papers"), str):  # `--config papers=stf`
        settings = settings | {"papers": [settings["papers"]]}
    validate(settings, schema("config"), file)
    if settings.get("hours") != settings.get("hours"):  # NaN, which no schema can refuse
        raise ConfigError(f"{file}: hours: nan is no number of core-hours; give one from 0 up, or all")
    scales = sorted(path.stem for path in (CONFIG / "scales").glob("*.yaml"))
    one_of(f"{file}: scale", settings["scale"], scales)
    for paper in settings["papers"]:
        one_of(f"{file}: papers", paper, all_papers())
    return settings
