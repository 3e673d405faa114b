"""Check the settings: config/config.yaml and the command line's, laid over it; take in the files that they name."""

import os
import re
from collections.abc import Iterable
from pathlib import Path

from clpapers.catalogue.methods import code_digest
from clpapers.config import user_files
from clpapers.config.facts import Facts
from clpapers.config.files import CONFIG, all_scales, read_yaml, text_of
from clpapers.config.refusals import ConfigError, one_of, short_repr
from clpapers.config.schemas import schema, validate
from clpapers.config.targets import read_paper

NAME = re.compile(r"[a-z][a-z0-9_]{0,59}", re.ASCII)  # of a file from outside: it becomes part of paths
NUMBER = r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?"


def project_papers() -> list[str]:
    """The papers that the project itself has a file of."""
    return sorted(path.stem for path in (CONFIG / "papers").glob("*.yaml"))


def all_papers() -> list[str]:
    """The papers that have a file, those from outside last."""
    return list(dict.fromkeys([*project_papers(), *user_files.files("papers")]))


def check_settings(settings: dict, *, take: bool = True, keep: bool = True, where: str = "") -> dict:
    """Lay `settings`, from the command line, over config/config.yaml and validate the result; returns it.

    Files of papers and of data sets that they name are taken in (`config.user_files`), unless `take` is false, as in
    jobs, which work with the files that their build has taken in. Where they are not to `keep`, as in a dry run, this
    process reads the originals, and none is copied. The papers that are returned are names. A refusal of a value in
    `settings` begins with `where`, if it is given.

    Snakemake does not read the file itself, since its reader would run Python in it (`__use_yte__`).
    """
    file, rules = f"{CONFIG}/config.yaml" if where else f"{CONFIG}/config.yaml or --config", schema("config")
    blamed = dict.fromkeys(settings, where or file)
    settings = read_yaml(CONFIG / "config.yaml") | settings
    if settings.get("published") in ("true", "false"):  # `--config published=false`; Snakemake knows only False
        settings = settings | {"published": settings["published"] == "true"}
    if re.fullmatch(NUMBER, str(settings.get("hours"))) and isinstance(settings["hours"], str):
        settings = settings | {"hours": float(settings["hours"])}  # `--config hours=1e-3`, a text to YAML
    for key in ("papers", "datasets", "methods"):
        if isinstance(settings.get(key), str):  # `--config papers=stf`
            settings = settings | {key: [settings[key]]}
    validate({key: settings[key] for key in blamed}, rules | {"required": []}, where or file)
    validate(settings, rules, file)
    if settings.get("hours") != settings.get("hours"):  # NaN, which no schema can refuse
        hours = f"{blamed.get('hours', file)}: hours"
        raise ConfigError(f"{hours}: nan is no number of core-hours; give one from 0 up, or all")
    one_of(f"{blamed.get('scale', file)}: scale", settings["scale"], all_scales())
    if take and settings["data_folder"] != "data" and not os.path.isdir(settings["data_folder"]):
        raise ConfigError(
            f"{file}: data_folder: {short_repr(settings['data_folder'])}: no such folder; make or mount it"
        )
    named = {paper: Path(paper).stem for paper in settings["papers"] if paper.endswith(".yaml")}
    if take and (named or settings.get("datasets")):
        whose = f"{blamed.get('papers', file)}: "
        take_in(whose, named, settings.get("datasets", ()), settings["scale"], keep=keep)
    settings = settings | {"papers": list(dict.fromkeys(named.get(paper, paper) for paper in settings["papers"]))}
    for paper in settings["papers"]:
        one_of(f"{blamed.get('papers', file)}: papers", paper, all_papers())
    return settings


def take_in(where: str, papers: Iterable[str], datasets: Iterable[str], scale: str, *, keep: bool = True) -> None:
    """Copy files from outside below config/outside/, once all papers from outside pass with them at the scale.

    With a paper come its printed numbers and the files of its own methods, named by the digest of their code.

    where: the beginning of refusals. keep: whether to copy; if not, this process reads the originals.

    Raises `ConfigError`, which names the file, and takes in none where one is wrong.
    """
    user_files.lay({})
    originals: dict[Path, Path] = {}
    for kind, paths in (("datasets", datasets), ("papers", papers)):
        for given in paths:
            path, copy = Path(given).expanduser().absolute(), user_files.copy_of(kind, Path(given).stem)
            if not given.endswith(".yaml") or not NAME.fullmatch(path.stem):
                raise ConfigError(
                    f"{where}{kind}: {short_repr(given)}: name it like my_{kind[:-1]}.yaml, in small letters"
                )
            if kind == "papers" and path.stem in project_papers():
                raise ConfigError(
                    f"{where}{kind}: {given}: {path.stem} is a paper of the project; give it another name"
                )
            if originals.setdefault(copy, path) != path:
                raise ConfigError(f"{where}{kind}: {given}: {originals[copy]} has this name too; give it another")
            if kind == "papers" and (printed := path.with_suffix(".csv")).is_file():
                originals[user_files.copy_of("reported", path.stem)] = printed
            if kind == "papers":
                originals |= _methods_of(path)
    texts: dict[Path, str | None] = {copy: _text(path) for copy, path in originals.items()}
    for paper in [copy.stem for copy in texts if copy.parent.name == "papers"]:
        if (left := user_files.copy_of("reported", paper)) not in texts and left.is_file():
            texts[left] = None
        for name in user_files.files("methods"):
            if name.partition(".")[0] == paper and (left := user_files.copy_of("methods", name)) not in texts:
                texts[left] = None
    kept = all(text is not None and _text(copy, required=False) == text for copy, text in texts.items())
    if kept and all(user_files.original(copy) == path for copy, path in originals.items()):
        return
    with user_files.trying({copy: originals.get(copy) for copy in texts}):
        for each in {scale, "paper"} & set(all_scales()):
            facts = Facts(each)
            _folders_there(facts, {str(copy): path for copy, path in originals.items()})
            for paper in user_files.files("papers"):
                read_paper(facts, paper)
    methods = [copy for copy in texts if copy.suffix == ".py"]  # which jobs name by their file, and nobody else reads
    if not keep:
        user_files.lay({copy: originals.get(copy) for copy in texts if copy not in methods})
    user_files.keep(originals, texts if keep else {copy: texts[copy] for copy in methods})


def _methods_of(paper: Path) -> dict[Path, Path]:
    """The files of a paper's own methods, beside its YAML, by their copies: a learner's `method` ends in `.py`."""
    found = {}
    content = read_yaml(paper) if _text(paper, required=False) else {}
    learners = content.get("learners") if isinstance(content, dict) else None
    for label, options in learners.items() if isinstance(learners, dict) else ():
        name = options.get("method") if isinstance(options, dict) else None
        if isinstance(name, str) and name.endswith(".py"):
            file, where = paper.parent / name, f"{paper}: learners.{label}.method"
            if not file.is_file() or not NAME.fullmatch(file.stem):
                raise ConfigError(f"{where}: {short_repr(name)}: no file there named in small letters, such as mine.py")
            try:
                copy = user_files.copy_of("methods", f"{paper.stem}.{file.stem}-{code_digest(file)}")
            except (SyntaxError, ValueError) as error:
                raise ConfigError(f"{where}: {file}: not Python: {error}; mend it") from None
            found[copy] = file.absolute()
    return found


def _text(path: Path, *, required: bool = True) -> str | None:
    """A file's content, or None where it is missing and not `required`; `ConfigError` where it cannot be read."""
    try:
        return text_of(path)
    except FileNotFoundError:
        if not required:
            return None
        raise ConfigError(f"{path}: no such file; `clpapers new` writes one to start from") from None


def _folders_there(facts: Facts, originals: dict[str, Path]) -> None:
    """Refuse data sets from outside whose own folder is not where their file says."""
    for name, spec in facts.datasets.items():
        file = originals.get(spec.get("declared", ""))
        kinds = [source["kind"] for source in spec.get("sources", ())]
        if file and kinds == ["folder"] and not (folder := file.parent / spec.get("folder", name)).is_dir():
            raise ConfigError(f"{file}: {name}: no folder {folder}; put its images there, or name another by 'folder'")
