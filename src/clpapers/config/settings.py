"""Checks the settings: config/config.yaml and what the command line lays over it."""

from __future__ import annotations

from clpapers.config.files import CONFIG, read_yaml
from clpapers.config.refusals import one_of
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
    for key in ("papers", "methods"):
        if isinstance(settings.get(key), str):  # `--config papers=stf`
            settings = settings | {key: [settings[key]]}
    validate(settings, schema("config"), file)
    scales = sorted(path.stem for path in (CONFIG / "scales").glob("*.yaml"))
    one_of(f"{file}: scale", settings["scale"], scales)
    for paper in settings["papers"]:
        one_of(f"{file}: papers", paper, all_papers())
    return settings
