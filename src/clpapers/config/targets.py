"""Read a paper's file, lay the scale's part over it, and resolve its targets."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from clpapers.catalogue import metrics as catalogue
from clpapers.catalogue.names import OUTSIDE_SIGN
from clpapers.config import checks, user_files
from clpapers.config.facts import Facts
from clpapers.config.files import CONFIG, all_scales, read_yaml
from clpapers.config.grid import Grid
from clpapers.config.layers import merge
from clpapers.config.model import Selection, Target
from clpapers.config.paths import seeds_of
from clpapers.config.refusals import ConfigError, dotted, names, one_of, short_repr
from clpapers.config.reported import check_names, read_csv
from clpapers.config.schemas import schema, validate


@dataclasses.dataclass
class Paper:
    """A paper at a scale.

    about: its `authors`, `year`, `link` and `conclusions`, as far as its file names them, and whether it is
        `from_outside`.
    nets, outputs: by data set, or `<data set>-<learner>`, its net and that net's number of outputs.
    """

    grid: Grid
    title: str
    about: dict
    targets: list[Target]
    nets: dict[str, dict]
    outputs: dict[str, int]


def paper_file(paper: str) -> Path:
    """The file of a paper, of the project's own or from outside."""
    return user_files.files("papers").get(paper, CONFIG / "papers" / f"{paper}.yaml")


def read_paper(facts: Facts, paper: str) -> Paper:
    """Read one paper at a scale; raises `ConfigError` for a fault in its file, its transcription or the scale's.

    The scale's part stands in the scale's file or, of a paper that this does not know, in the paper's own.
    """
    file = paper_file(paper)
    written = read_yaml(file)
    validate(written, schema("paper"), file)
    scales, learners = written.pop("scales", {}), written.get("learners", {})
    for label, options in learners.items():
        if options.get("method", "").endswith(".py"):  # a method of the paper's own, beside its file
            learners[label] = options | {"method": f"{paper}.{options['method'].removesuffix('.py')}"}
    for scale in scales:
        one_of(f"{file}: scales", scale, all_scales())
    overlay, laid, of_scale = facts.settings.get("papers", {}).get(paper), facts.file, ("papers", paper)
    if overlay is None:
        overlay, laid, of_scale = scales.get(facts.scale, {}), file, ("scales", facts.scale)
    validate(overlay, schema("paper"), laid, of_scale)
    for source, key, part in ((file, "paper", written), (laid, dotted((*of_scale, "paper")), overlay)):
        if part.get("paper", paper) != paper:
            raise ConfigError(f"{source}: {key}: {short_repr(part['paper'])} is not the file's name, {paper}")
    for key in ("datasets", "learners", "targets"):
        for name in overlay.get(key, {}):
            one_of(f"{laid}: {dotted((*of_scale, key))}", name, written.get(key, {}))
    for name in written.get("datasets", {}):
        one_of(f"{file}: datasets", name, facts.datasets)
    for source, path, part in ((file, (), written), (laid, of_scale, overlay)):
        blocks = {path: part} | {(*path, "datasets", name): block for name, block in part.get("datasets", {}).items()}
        for place, block in blocks.items():
            for label, options in block.get("learners", {}).items():
                checks.learner(source, (*place, "learners", label), facts, label, options, written.get("learners", {}))
    printed = _printed(paper, written)
    try:
        return _resolved(Grid(facts, paper, file, _with_own(facts, file, merge(written, overlay))), printed)
    except ConfigError as error:
        try:
            _resolved(Grid(facts, paper, file, written), printed)
        except ConfigError:
            raise error from None
        mistake = str(error).removeprefix(f"{file}: ")  # the scale's, as the file is right without its part
        raise ConfigError(f"{laid}: {dotted(of_scale)}: {mistake}") from None


def _with_own(facts: Facts, file: Path, content: dict) -> dict:
    """A paper's content with methods from outside among its learners, and their grids among those it selects from.

    Refuses labels that the paper gives a meaning.
    """
    for label in facts.user_methods:
        naming = [name for name, spec in content.get("targets", {}).items() if label in spec.get("names", {})]
        if naming or label in content.get("learners", {}):
            where = f"targets.{naming[0]}.names" if naming else "learners"
            raise ConfigError(f"methods: {file} has the name '{label}' in {where}; rename the method's file")
    learners = {
        label: {option: rules["default"] for option, rules in method.options.items()} | content.get("own", {})
        for label, method in facts.user_methods.items()
    }
    content = content | {"learners": content.get("learners", {}) | learners} if learners else content
    grids = {label: method.grid for label, method in facts.user_methods.items() if method.grid}
    search = content.get("selection", {})
    return content | ({"selection": search | {"grid": search.get("grid", {}) | grids}} if search and grids else {})


def _methods_to_show(facts: Facts, spec: dict) -> list[str]:
    """The methods from outside that a target is to show: all, if it is the paper's own and compares learners.

    A table of selections shows the methods that have a grid to select from.
    """
    if len(spec.get("grid", {}).get("learner", ())) < 2 or spec.get("extra"):
        return []
    measure = catalogue.measures().get(spec.get("measure", ""))
    return [label for label, method in facts.user_methods.items() if method.grid or not (measure and measure.searches)]


def _fitted(grid: Grid, label: str, fits: set[str]) -> dict:
    """A target's entry of a method from outside: its file, and by reason the cells that it does not fit.

    fits: the data sets on which it fits some cell. The entry names a cell on another data set by the data set alone.
    """
    reasons: dict[str, list[dict]] = {}
    for factors, why in grid.misfits[label]:
        telling = [key for key in factors if key != "learner"] if factors["dataset"] in fits else ["dataset"]
        described = {key: factors[key] for key in telling}
        if described not in reasons.setdefault(why, []):
            reasons[why].append(described)
    return {"file": grid.facts.user_methods[label].file, "misfits": reasons}


class _Printed(NamedTuple):
    """A paper's transcription: its file, its lines by place, and the paper's targets as written."""

    file: Path
    lines: dict[str, dict[str, str]]
    targets: Mapping[str, dict]

    def file_of(self, spec: dict) -> Path | None:
        """The file, if it has lines of a target; refuses lines that name nothing in it. spec: as at a scale."""
        lines = {place: line for place, line in self.lines.items() if line["target"] == spec["name"]}
        if not lines:
            return None
        written = self.targets[spec["name"]].get("grid", {})
        levels = {key: [*written.get(key, []), *spec["grid"][key]] for key in spec.get("grid", {})}
        check_names(self.file, lines, spec, levels)
        return self.file


def _printed(paper: str, written: dict) -> _Printed:
    """The transcription of a paper's numbers; refuses lines of another paper, or of a target that it lacks."""
    file, targets = (
        user_files.files("reported").get(paper, CONFIG / "reported" / f"{paper}.csv"),
        written.get("targets", {}),
    )
    lines = read_csv(file) if file.is_file() else {}
    for place, line in lines.items():
        for key, allowed in (("paper", [paper]), ("target", targets)):
            if line[key] not in allowed:
                close = names(allowed, line[key])
                raise ConfigError(f"{file}: {place}.{key}: {short_repr(line[key])} is not one of {close}")
    return _Printed(file, lines, targets)


def _resolved(grid: Grid, printed: _Printed) -> Paper:
    about = {key: grid.content[key] for key in ("authors", "year", "link", "conclusions") if key in grid.content}
    if grid.paper in user_files.files("papers"):
        about["from_outside"] = True
    paper = Paper(grid, grid.content.get("title", grid.paper), about, [], {}, {})
    for dataset in grid.content.get("datasets", {}):
        paper.nets[dataset] = grid.net(f"{grid.file}: datasets.{dataset}", dataset)
        paper.outputs[dataset] = grid.outputs(dataset)
    for name, spec in grid.content.get("targets", {}).items():
        paper.targets.append(_target(grid, paper, spec | {"name": name}, printed))
    return paper


def _target(grid: Grid, paper: Paper, spec: dict, printed: _Printed) -> Target:
    """Resolve a target of the paper, and add its nets to the paper's."""
    content, where = grid.content, f"{grid.file}: targets.{spec['name']}"
    own, of_paper = _methods_to_show(grid.facts, spec), spec
    if own:
        learners = [*spec["grid"]["learner"], *own]
        shown_as = {label: f"{label} {OUTSIDE_SIGN}" for label in own}
        spec = spec | {"names": spec.get("names", {}) | shown_as, "grid": spec["grid"] | {"learner": learners}}
    checks.target(where, spec, content.get("datasets", {}))
    seeds = spec.get("seeds", content.get("seeds", grid.facts.settings["seeds"]))
    seeds = seeds_of(seeds, f"{where}.seeds" if "seeds" in spec else f"{grid.file}: seeds")
    cells = tuple(grid.cells(where, spec))
    selections: tuple[tuple[dict, Selection], ...] = ()
    measure, renderer = catalogue.measures()[spec["measure"]], catalogue.renderers()[spec["render"]]
    if own:
        fit = {label: {each["dataset"] for each, _ in cells if each["learner"] == label} for label in own}
        spec = spec | {"own": {label: _fitted(grid, label, fit[label]) for label in own}}
        learners = [label for label in spec["grid"]["learner"] if fit.get(label, True)]
        spec = spec | {"grid": spec["grid"] | {"learner": learners}}
    if measure.searches:
        selections = tuple((factors, grid.selection(factors["dataset"], factors["learner"])) for factors, _ in cells)
        cells = ()
    metrics = [name for name in catalogue.metrics_of(spec) if name in catalogue.metrics()]
    for factors, cell in cells:
        checks.measured(where, measure, cell.spec, paper.nets[cell.spec["dataset"]])
        defined = [name for name in metrics if factors["learner"] not in spec.get("undefined", {}).get(name, ())]
        checks.defined(where, defined, cell.spec, grid.facts.classes(cell.spec["dataset"]))
    shown_streams = spec.get("streams", [])
    streams = tuple(grid.stream(f"{where}.streams[{i}]", stream) for i, stream in enumerate(shown_streams))
    with_oracles = [
        stream | {"oracle": grid.oracle(f"{where}.streams[{i}]", stream["oracle"], stream["dataset"])}
        for i, stream in enumerate(shown_streams)
        if "oracle" in stream
    ]
    nets = {name: grid.net(f"{where}.nets[{i}]", name) for i, name in enumerate(spec.get("nets", []))}
    for i, (name, net) in enumerate(nets.items()):
        paper.nets[name], paper.outputs[name] = net, grid.outputs(name.partition("-")[0])
        if renderer.head not in (None, net.get("head")):
            raise ConfigError(
                f"{where}.nets[{i}]: {name!r} has no head {renderer.head}; write <data set>-<learner> for a learner "
                "whose net has one"
            )
    spec = spec | ({"streams": with_oracles} if with_oracles else {})
    parts = cells, streams, tuple(nets.values()), selections
    return Target(grid.facts.scale, grid.paper, spec["name"], spec, seeds, *parts, printed.file_of(of_paper))
