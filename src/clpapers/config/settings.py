"""Check the settings: config/config.yaml and the command line's, laid over it."""

from __future__ import annotations

from clpapers.config.files import CONFIG, read_yaml
from clpapers.config.refusals import one_of
from clpapers.config.schemas import schema, validate


def all_papers() -> list[str]:
    """The papers that have a file."""
    return sorted(path.stem for path in (CONFIG / "papers").glob("*.yaml"))


def check_settings(settings: dict) -> dict:
    """Lay `settings`, from the command line, over config/config.yaml and validate the result; returns it.

    Snakemake does not read the file itself, since its reader would run Python in it (`__use_yte__`).
    """
    file = f"{CONFIG}/config.yaml or --config"
    settings = read_yaml(CONFIG / "config.yaml") | settings
    if isinstance(settings.get("papers"), str):  # `--config papers=stf`
        settings = settings | {"papers": [settings["papers"]]}
    validate(settings, schema("config"), file)
    scales = sorted(path.stem for path in (CONFIG / "scales").glob("*.yaml"))
    one_of(f"{file}: scale", settings["scale"], scales)
    for paper in settings["papers"]:
        one_of(f"{file}: papers", paper, all_papers())
    return settings
