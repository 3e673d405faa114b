"""The grammar: YAML files in, validated; cells, runs and targets with their paths out. Imports nothing heavy."""

from __future__ import annotations

import csv
import dataclasses
import difflib
import functools
import hashlib
import itertools
import json
import math
import re
import reprlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import jsonschema
import yaml

from clpapers.streams.chunks import CLASS_CHUNKS, chunks_of_classes, classes_of, overlapping_classes
from clpapers.streams.oracles import shared_out
from clpapers.streams.orders import canonical, slug
from clpapers.streams.restrictions import RESTRICTIONS

CONFIG = Path("config")
SCHEMAS = Path("workflow/schemas")
RESULTS = Path("results")
TOY = re.compile(r"toy(-[1-9]\d{0,5})+$", re.ASCII)  # `toy-13-17-10`: no images, just so many items of each class
# Keys of a target that only a rendering looks at.
RENDERED = ("title", "caption", "section", "names", "render", "calibrated", "ratios", "desiderata", "spread")
SELECTED = "selected"  # stands in a cell's description for a value that is read from a selection's file
# Of orders and nets: without them the hashes of other cells stay as they were.
OPTIONAL = ("epochs", "cycles", "unpermuted_first", "init", "epsilon")
FEATURES = 2048  # numbers that a ResNet-50 makes of an image
LONGEST = 400  # characters of a refusal
DEEPEST, LARGEST = 30, 50_000  # levels of a YAML file; its values, an alias counted as all that it stands for
MOST = 1000  # seeds
HIGHEST = 1e30  # of numbers in YAML files
MIXING = ("random", "offline", "dominant")  # orders in which a batch holds items of (nearly) every class


class ConfigError(Exception):
    """Bad configuration; the text is one line: file, key, value, remedy.

    One line of printable characters, not longer than `LONGEST`, whatever stands in the files it speaks of.
    """

    def __init__(self, text: str):
        line = "".join(c if c.isprintable() else " " for c in text)
        super().__init__(line if len(line) <= LONGEST else f"{line[: LONGEST - 103]} … {line[-100:]}")


# --- reading and validating ----------------------------------------------------------------------------------


class _Loader(yaml.CSafeLoader):
    """YAML of what JSON has: mappings by text, lists, text, numbers, true, false and null.

    Refuses what the plain loader takes: a key given twice, of which it would silently drop the first, a key that is no
    text or not printable, ±∞, NaN and whole numbers that no count can be. A date is text.
    """

    def construct_object(self, node: yaml.Node, deep: bool = False) -> object:
        try:
            return super().construct_object(node, deep)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):  # such as `!!int x`
            kind = node.tag.rpartition(":")[2]
            problem = f"{_shown(node.value)} is not of type {kind}"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from None


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict:
    seen = set()
    for key, _ in node.value:
        problem = None
        if key.tag not in ("tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"):
            problem = f"key {_shown(key.value)} is not text; write it in quotes"
        elif not key.value.isprintable():
            problem = f"key {_shown(key.value)} is not a line of text"
        elif key.value in seen:
            problem = f"key '{key.value}' stands twice"
        if problem:
            raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
        seen.add(key.value)
    loader.flatten_mapping(node)
    return loader.construct_mapping(node, deep=True)


def _plain(node: yaml.ScalarNode, form: str) -> None:
    """Refuse a number that YAML 1.1 reads otherwise than people do: 017 as 15, 1:30 as 90, 0x1F, 1_000."""
    if not re.fullmatch(form, node.value):
        problem = f"{_shown(node.value)} is no plain decimal number; write it as one, or in quotes if it is text"
        raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


def _number(loader: _Loader, node: yaml.ScalarNode) -> float:
    if not node.value.lstrip("+-").lower().startswith((".inf", ".nan")):
        _plain(node, r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
    value = loader.construct_yaml_float(node)
    if math.isfinite(value) and abs(value) > HIGHEST:
        problem = f"{_shown(node.value)} is beyond ±{HIGHEST:g}, more than single precision can work with"
        raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
    if not math.isfinite(value):
        raise yaml.constructor.ConstructorError(None, None, f"{node.value} is not a finite number", node.start_mark)
    return value


def _whole(loader: _Loader, node: yaml.ScalarNode) -> int:
    _plain(node, r"[-+]?(0|[1-9]\d*)")
    value = loader.construct_yaml_int(node)
    if abs(value) >= 2**31:
        problem = f"{_shown(node.value)} is beyond ±2147483647"
        raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
    return value


_Loader.yaml_constructors = {
    f"tag:yaml.org,2002:{kind}": constructor
    for kind, constructor in {
        "null": yaml.CSafeLoader.construct_yaml_null,
        "bool": yaml.CSafeLoader.construct_yaml_bool,
        "int": _whole,
        "float": _number,
        "str": yaml.CSafeLoader.construct_yaml_str,
        "timestamp": yaml.CSafeLoader.construct_yaml_str,
        "seq": yaml.CSafeLoader.construct_yaml_seq,
        "map": _mapping,
    }.items()
} | {None: yaml.CSafeLoader.construct_undefined}


def _check_size(text: str) -> None:
    """Refuse YAML that nests too deep or whose aliases stand for too much; read event by event, nothing is built."""
    inside, sizes, anchored = [], [0], {}
    for event in yaml.parse(text, _Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            inside.append(event.anchor)
            sizes.append(1)
        elif isinstance(event, yaml.CollectionEndEvent):
            anchored[inside.pop()] = size = sizes.pop()
            sizes[-1] += size
        elif isinstance(event, yaml.NodeEvent):
            sizes[-1] += anchored.get(event.anchor, 1) if isinstance(event, yaml.AliasEvent) else 1
        if len(inside) > DEEPEST:
            raise yaml.composer.ComposerError(None, None, f"nests deeper than {DEEPEST} levels", event.start_mark)
        if sizes[-1] > LARGEST:
            problem = f"holds more than {LARGEST} values, aliases counted as what they stand for"
            raise yaml.composer.ComposerError(None, None, problem, event.start_mark)


def read_yaml(path: Path) -> dict:
    """A YAML file as a dictionary; raises `ConfigError` naming file and line."""
    try:
        text = path.read_text(encoding="utf-8")
        _check_size(text)
        content = yaml.load(text, _Loader)
    except FileNotFoundError:
        there = ", ".join(sorted(p.stem for p in path.parent.glob("*.yaml"))) or "none"
        raise ConfigError(f"{path}: no such file; there are: {there}") from None
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        problem = getattr(error, "problem", None) or str(error)
        line = f" line {error.problem_mark.line + 1}" if getattr(error, "problem_mark", None) else ""
        raise ConfigError(f"{path}:{line} {problem}") from None
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: holds no keys; expected a mapping")
    return content


def read_csv(path: Path) -> dict[str, dict[str, str]]:
    """The lines of a transcription config/reported/*.csv by their place, such as `line 2`; checked.

    Raises `ConfigError` naming file, line and column.
    """
    lines: dict[str, dict[str, str]] = {}
    columns, seen = schema("reported")["additionalProperties"]["required"], {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            if reader.fieldnames != columns:
                raise ConfigError(f"{path}: line 1 is not {','.join(columns)}")
            for line in reader:
                where = f"line {reader.line_num}"
                if None in line or None in line.values():
                    raise ConfigError(f"{path}: {where} does not have {len(columns)} columns; quote what holds a comma")
                first = seen.setdefault(tuple(line[key] for key in ("target", "row", "column", "metric")), where)
                if first != where:
                    raise ConfigError(f"{path}: {where} is of the same target, row, column and metric as {first}")
                lines[where] = line
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except csv.Error as error:
        raise ConfigError(f"{path}: line {reader.reader.line_num}: {error}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: {error}") from None
    validate(lines, schema("reported"), path)
    return lines


@functools.cache
def schema(name: str) -> dict:
    """The JSON Schema of one kind of config file."""
    return yaml.load((SCHEMAS / f"{name}.schema.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader)


def _key(path) -> str:
    return "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in path).lstrip(".") or "(top)"


_SHOW = reprlib.Repr()
_SHOW.maxstring = _SHOW.maxother = 60


def _shown(value: object) -> str:
    """A value as Python writes it, cut where it is long."""
    return _SHOW.repr(value)


def _names(known: Iterable, wanted: object) -> str:
    """What is allowed: all of it, or of a long list what is most like what was `wanted`."""
    known = [str(name) for name in known]
    if len(", ".join(known)) <= 240:
        return ", ".join(known)
    close = difflib.get_close_matches(str(wanted)[:60], known, n=6, cutoff=0)
    return f"{', '.join(close)}, … ({len(known)} in all)"


# To which 10.0 is no integer: as a count it would not do.
_Validator = jsonschema.validators.extend(
    jsonschema.Draft202012Validator,
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    ),
)


def _complaint(error: jsonschema.ValidationError) -> str:
    """One line for one schema violation: key, value, what is allowed."""
    key, value, rule = _key(error.absolute_path), error.instance, error.validator
    shown, asked = _shown(value), error.validator_value
    if rule == "additionalProperties":
        known = sorted(error.schema.get("properties", {}))
        unknown = sorted(set(value) - set(known))[0]
        return f"{key}: unknown key '{unknown}'; allowed: {_names(known, unknown)}"
    if rule == "enum":
        return f"{key}: {shown} is not one of {_names(asked, value)}"
    if rule == "required":
        missing = [name for name in asked if name not in value]
        return f"{key}: '{missing[0]}' is missing"
    if rule == "type":
        kinds = " or ".join(asked) if isinstance(asked, list) else asked
        hint = "; YAML reads 1e-3 as text, write 1.0e-3" if re.fullmatch(r"[-+]?[\d.]+[eE][-+]?\d+", str(value)) else ""
        return f"{key}: {shown} is not of type {kinds}{hint}"
    if rule == "uniqueItems":
        return f"{key}: {shown} holds an entry twice"
    if rule == "not":
        return f"{key}: {shown} is {asked['description']}"
    bounds = {
        "const": "must be",
        "minimum": "must be at least",
        "exclusiveMinimum": "must be greater than",
        "maximum": "must be at most",
        "exclusiveMaximum": "must be less than",
        "pattern": "must have the form",
        "minItems": "needs at least this many entries:",
        "maxItems": "takes at most this many entries:",
        "minLength": "needs at least this many characters:",
        "minProperties": "needs at least this many keys:",
    }
    return f"{key}: {shown} {bounds[rule]} {asked}" if rule in bounds else f"{key}: {error.message}"


def validate(content: object, rules: dict, file: str | Path, at: tuple = ()) -> None:
    """Raise `ConfigError` for the most telling violation of the schema `rules` in `content`, found in `file`."""
    error = jsonschema.exceptions.best_match(_Validator(rules).iter_errors(content))
    if error is not None:
        error.path.extendleft(reversed(at))
        raise ConfigError(f"{file}: {_complaint(error)}")


def merge(base: dict, over: dict) -> dict:
    """`over` laid over `base`, mapping by mapping; lists and scalars are replaced. Neither argument changes.

    A block that changes its `name` keeps of the base only what the new name takes too: `{name: split, tasks: 5}`
    over an `stf` order keeps the length and drops μ_σ.
    """
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        if isinstance(below, dict) and isinstance(value, dict):
            options = schema("paper")["$defs"].get(f"{key}_options", {}).get("const", {})
            if value.get("name", below.get("name")) != below.get("name") and value["name"] in options:
                below = {k: v for k, v in below.items() if k in options[value["name"]]}
            merged[key] = merge(below, value)
        else:
            merged[key] = value
    return merged


def seed_range(text: str) -> range:
    """`"0-19"` → range(0, 20)."""
    first, last = map(int, text.split("-"))
    return range(first, last + 1)


def all_papers() -> list[str]:
    """The papers that have a file."""
    return sorted(path.stem for path in (CONFIG / "papers").glob("*.yaml"))


def check_settings(settings: dict) -> dict:
    """Lay `settings`, of the command line, over config/config.yaml and validate both; returns them.

    It is not Snakemake that reads the file: its reader runs Python that stands there (`__use_yte__`).
    """
    file = f"{CONFIG}/config.yaml or --config"
    settings = read_yaml(CONFIG / "config.yaml") | settings
    validate(settings, schema("config"), file)
    for key, folder, values in (
        ("scale", "scales", [settings["scale"]]),
        ("papers", "papers", settings["papers"]),
    ):
        there = sorted(p.stem for p in (CONFIG / folder).glob("*.yaml"))
        for value in values:
            if value not in there:
                raise ConfigError(f"{file}: {key}: {value!r} is not one of {', '.join(there)}")
    return settings


# --- cells, runs, targets ------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Cell:
    """Everything that decides a result except the seed; and under which restriction a target looks at the result.

    view: one of the restrictions that the run is evaluated under (`runs.course.views`). No part of the hash: targets
    that differ in it alone share their runs.
    """

    scale: str
    spec: dict = dataclasses.field(hash=False)
    hash: str
    view: str = "none"

    @classmethod
    def of(cls, scale: str, spec: dict, view: str = "none") -> Cell:
        """A cell from its complete description; its hash is that of its JSON form with sorted keys."""
        return cls(scale, spec, _digest(spec)[:10], view)

    @property
    def dataset(self) -> Path:
        return dataset_path(self.scale, self.spec["dataset"])

    @property
    def weights(self) -> Path | None:
        """The file of the weights that its net starts from; None where there are none."""
        name = pretrained(self.spec["net"])
        return RESULTS / self.scale / "weights" / f"{name}.npz" if name else None

    @functools.cached_property  # a job asks for it, and there may be very many
    def slug(self) -> str:
        """Its order's part of a path."""
        return slug(self.spec["order"])

    @functools.cached_property
    def folder(self) -> Path:
        place = RESULTS / self.scale / "runs" / self.spec["dataset"] / self.slug
        return place / f"{self.spec['learner']['name']}-{self.hash}"

    def stream(self, seed: int) -> Path:
        return _stream_file(self.scale, self.spec["dataset"], self.slug, seed)


def pretrained(net: dict) -> str | None:
    """Which weights of config/weights.yaml a net starts from; None where it starts from none."""
    return None if net.get("weights", "none") == "none" else f"{net['name']}_{net['weights']}"


def dataset_path(scale: str, dataset: str) -> Path:
    """Where a data set stands."""
    return RESULTS / scale / "datasets" / f"{dataset}.npz"


def stream_path(scale: str, dataset: str, order: dict, seed: int) -> Path:
    """Where the permutation-index file of one stream stands."""
    return _stream_file(scale, dataset, slug(order), seed)


def _stream_file(scale: str, dataset: str, slug: str, seed: int) -> Path:
    return RESULTS / scale / "streams" / dataset / slug / f"seed{seed}.npz"


def block_name(seeds: range) -> str:
    """`seed3` for one seed, `seeds0-19` for a block."""
    return f"seed{seeds[0]}" if len(seeds) == 1 else f"seeds{seeds[0]}-{seeds[-1]}"


def block_seeds(name: str) -> range:
    """The inverse of `block_name`; raises `ConfigError` for what is no such name."""
    match = re.fullmatch(r"seeds?(\d{1,9})(?:-(\d{1,9}))?", name, re.ASCII)
    if not match:
        raise ConfigError(f"{name}: not the seeds of a file; a file is named like seed3 or seeds0-19")
    first, last = int(match[1]), int(match[2] or match[1])
    if not first <= last < first + MOST or block_name(range(first, last + 1)) != name:
        raise ConfigError(f"{name}: not the seeds of a file: the first is the lower, of at most {MOST}, like seeds0-19")
    return range(first, last + 1)


@dataclasses.dataclass(frozen=True)
class Selection:
    """The choice of a learner's hyper-parameters, on tasks and seeds that nothing else is reported of.

    learner: the label that the paper's file gives it.
    points: of the whole grid, its values by dotted key and the cell that is trained with them.
    published: by dotted key, the values that the paper's file has.
    per_class: whether a task's accuracy is the mean over its classes.
    """

    scale: str
    paper: str
    dataset: str
    learner: str
    metric: str
    seeds: range
    per_class: bool
    points: tuple[tuple[dict, Cell], ...] = dataclasses.field(hash=False)
    published: dict = dataclasses.field(hash=False)

    @property
    def name(self) -> str:
        return f"{self.paper}/{self.dataset}-{self.learner}"

    @property
    def file(self) -> Path:
        return RESULTS / self.scale / "selection" / f"{self.name}.json"

    @property
    def spec(self) -> dict:
        """Everything that decides the choice."""
        return {
            "name": self.name,
            "metric": self.metric,
            "seeds": f"{self.seeds[0]}-{self.seeds[-1]}",
            "per_class": self.per_class,
            "grid": {key: list(dict.fromkeys(values[key] for values, _ in self.points)) for key in self.published},
            "points": [cell.hash for _, cell in self.points],
        }

    def to_fill(self, cell: Cell) -> Cell:
        """A cell whose values on the grid are those that the file will hold."""
        spec = cell.spec
        for key in self.published:
            part, option = key.split(".")
            if option in spec[part]:
                spec = spec | {part: spec[part] | {option: SELECTED}}
        return Cell.of(self.scale, spec | {"selection": self.spec}, cell.view)


def fill(spec: dict, chosen: dict) -> dict:
    """A cell's description with the `chosen` values, by dotted key, where it says that they are selected."""
    for key, value in chosen.items():
        part, option = key.split(".")
        if spec[part].get(option) == SELECTED:
            spec = spec | {part: spec[part] | {option: value}}
    return spec


@dataclasses.dataclass(frozen=True)
class Target:
    """One table or figure of one paper at one scale, resolved."""

    scale: str
    paper: str
    name: str
    spec: dict = dataclasses.field(hash=False)
    seeds: range
    cells: tuple[tuple[dict, Cell], ...] = dataclasses.field(hash=False, default=())  # (factors, cell)
    streams: tuple[tuple[str, dict, int], ...] = dataclasses.field(hash=False, default=())  # (dataset, order, seed)
    nets: tuple[dict, ...] = dataclasses.field(hash=False, default=())
    selections: tuple[tuple[dict, Selection], ...] = dataclasses.field(hash=False, default=())  # (factors, selection)
    reported: Path | None = None  # the file of printed numbers, where the paper prints any for this target

    @property
    def metrics(self) -> Path:
        return RESULTS / self.scale / "metrics" / self.paper / f"{self.name}.csv"

    @property
    def stem(self) -> Path:
        """The rendered files' path without its suffix."""
        return RESULTS / self.scale / "targets" / self.paper / self.name

    @property
    def outputs(self) -> list[Path]:
        """The rendered files."""
        endings = ["csv", "md", "tex", "html"] if self.spec["kind"] == "table" else ["pdf", "svg", "png"]
        endings += ["reported.csv"] if self.reported else []
        endings += ["paired.csv"] if self.spec.get("paired") else []
        return [self.stem.with_name(f"{self.name}.{ending}") for ending in endings]

    @property
    def digest(self) -> str:
        """Of all that the config says of the target; a rule's param, so that an edit there rebuilds it."""
        return _digest([self.spec, self._made_of])

    @property
    def measured_digest(self) -> str:
        """The same, leaving out what only the rendering looks at: a caption's edit measures nothing anew."""
        spec = {k: v for k, v in self.spec.items() if k not in RENDERED}
        return _digest([spec, self._made_of])

    @property
    def _made_of(self) -> list:
        cells = [(factors, cell.hash, cell.view) for factors, cell in self.cells]
        chosen = [(factors, selection.spec, selection.published) for factors, selection in self.selections]
        return [list(self.seeds), cells, self.streams, self.nets, chosen]


class Plan:
    """All targets of the given papers at one scale, the cells they need and the runs that serve them.

    Parameters
    ----------
    scale: a file in config/scales/.
    papers: files in config/papers/.
    cuda: whether runs go to a GPU, which decides how many seeds a job trains where the scale says `auto`.

    Raises `ConfigError` for anything wrong in any of the files, before any work starts.
    """

    def __init__(self, scale: str, papers: list[str], *, cuda: bool = False):
        self.scale, self.cuda = scale, cuda
        self.scale_file = CONFIG / "scales" / f"{scale}.yaml"
        self.settings = read_yaml(self.scale_file)
        validate(self.settings, schema("scale"), self.scale_file)
        self._seeds(self.settings["seeds"], self.scale_file, "seeds")
        for paper in self.settings.get("papers", {}):
            if not (CONFIG / "papers" / f"{paper}.yaml").is_file():
                raise ConfigError(f"{self.scale_file}: papers: '{paper}' has no file in {CONFIG}/papers/")
        self.datasets = read_yaml(CONFIG / "datasets.yaml")
        validate(self.datasets, schema("datasets"), CONFIG / "datasets.yaml")
        self.weights = read_yaml(CONFIG / "weights.yaml")
        validate(self.weights, schema("weights"), CONFIG / "weights.yaml")
        fetched = {name: facts for name, facts in self.datasets.items() if "features" not in facts}
        for dataset in self.settings.get("stand_ins", {}):
            if dataset not in fetched:
                known = ", ".join(fetched)
                raise ConfigError(f"{self.scale_file}: stand_ins: '{dataset}' is not one of {known}")
        for name, facts in self.datasets.items():
            if name not in fetched:
                self.datasets[name] = self._derived(name, facts, fetched)
        self.titles: dict[str, str] = {}
        # `<paper>/<dataset>` or `<paper>/<dataset>-<learner>` → the net it is learnt with, and its outputs
        self.nets: dict[str, dict] = {}
        self.outputs: dict[str, int] = {}
        self.selections: dict[str, Selection] = {}  # by name
        self.targets: dict[str, Target] = {}
        for paper in papers:
            for target in self._paper(paper):
                self.targets[f"{paper}/{target.name}"] = target
        self.cells: dict[str, Cell] = {}
        self.orders: dict[tuple[str, str], dict] = {}  # (dataset, slug) → order
        self._wanted: dict[str, set[int]] = {}
        for target in self.targets.values():
            for dataset, order, _ in target.streams:
                self.orders[dataset, slug(order)] = order
        self._keep_apart()
        for user in (*self.targets.values(), *self.selections.values()):
            for _, cell in user.cells if isinstance(user, Target) else user.points:
                self.cells[cell.hash] = cell
                self.orders[cell.spec["dataset"], cell.slug] = cell.spec["order"]
                self._wanted.setdefault(cell.hash, set()).update(user.seeds)

    def _derived(self, name: str, facts: dict, fetched: dict[str, dict]) -> dict:
        """The entry of a data set of features, at the scale's size, with what the entries of others say too."""
        at = f"{CONFIG}/datasets.yaml: {name}"
        features = facts["features"] | self.settings.get("features", {})
        for key, known in (("of", fetched), ("weights", self.weights)):
            if features[key] not in known:
                raise ConfigError(f"{at}.features.{key}: '{features[key]}' is not one of {', '.join(known)}")
        of, wanted = fetched[features["of"]], self.weights[features["weights"]]["channels"]
        if of["shape"][2] != wanted:
            raise ConfigError(f"{at}.features.of: {features['of']} has {of['shape'][2]} channels; take one of {wanted}")
        carried = {key: of[key] for key in ("classes", "instances", "train", "test") if key in of}
        if "categories" in facts:
            carried["classes"] = list(facts["categories"])
            carried["instances"] = max(map(len, facts["categories"].values()))
            members = list(itertools.chain.from_iterable(facts["categories"].values()))
            for each in (*of["classes"], *members):
                if (each in of["classes"], members.count(each)) != (True, 1):
                    raise ConfigError(
                        f"{at}.categories: '{each}' must be a class of {features['of']} that stands in one category"
                    )
        if "train_per_instance" in features:
            if "instances" not in carried:
                raise ConfigError(f"{at}.features.train_per_instance: {features['of']} has no instances; leave it out")
            kept = features["train_per_instance"] * carried["instances"] * len(carried["classes"])
            carried["train"] = min(carried["train"], kept)
        if "test_per_class" in features:
            carried["test"] = min(carried["test"], features["test_per_class"] * len(carried["classes"]))
        return facts | carried | {"features": features, "shape": [1, 1, FEATURES]}

    def _keep_apart(self) -> None:
        """Refuse to select on seeds that are reported."""
        for selection, target in itertools.product(self.selections.values(), self.targets.values()):
            if selection.paper == target.paper and target.cells and set(selection.seeds) & set(target.seeds):
                raise ConfigError(
                    f"{CONFIG}/papers/{target.paper}.yaml: selection.seeds: {selection.spec['seeds']} shares seeds "
                    f"with targets.{target.name}, {target.seeds[0]}-{target.seeds[-1]}; select on others"
                )

    # reading a paper

    def _paper(self, paper: str) -> list[Target]:
        file = CONFIG / "papers" / f"{paper}.yaml"
        written, overlay = read_yaml(file), self.settings.get("papers", {}).get(paper, {})
        validate(written, schema("paper"), file)
        validate(overlay, schema("paper"), self.scale_file, ("papers", paper))
        for source, at, part in ((file, "paper", written), (self.scale_file, f"papers.{paper}.paper", overlay)):
            if part.get("paper", paper) != paper:
                raise ConfigError(f"{source}: {at}: {_shown(part['paper'])} is not the file's name, {paper}")
        for key in ("datasets", "learners", "targets"):
            for name in overlay.get(key, {}):
                if name not in written.get(key, {}):
                    known = ", ".join(written.get(key, {}))
                    raise ConfigError(f"{self.scale_file}: papers.{paper}.{key}: '{name}' is not one of {known}")
        for name in written.get("datasets", {}):
            if name not in self.datasets:
                raise ConfigError(f"{file}: datasets: '{name}' is not one of {', '.join(self.datasets)}")
        for source, at, part in ((file, (), written), (self.scale_file, ("papers", paper), overlay)):
            for label, options in part.get("learners", {}).items():
                self._learner_options(source, (*at, "learners", label), label, options, written)
            for name, block in part.get("datasets", {}).items():
                for label, options in block.get("learners", {}).items():
                    place = (*at, "datasets", name, "learners", label)
                    self._learner_options(source, place, label, options, written)
        transcription = CONFIG / "reported" / f"{paper}.csv"
        printed = read_csv(transcription) if transcription.is_file() else {}
        for place, line in printed.items():
            for key, known in (("paper", [paper]), ("target", written.get("targets", {}))):
                if line[key] not in known:
                    names = _names(known, line[key])
                    raise ConfigError(f"{transcription}: {place}.{key}: {_shown(line[key])} is not one of {names}")
        numbered = {line["target"]: transcription for line in printed.values()}
        try:
            return self._targets(paper, file, merge(written, overlay), numbered)
        except ConfigError as error:
            try:
                self._targets(paper, file, written, numbered)
            except ConfigError:
                raise error from None
            fault = str(error).removeprefix(f"{file}: ")  # what is right without the scale's part is the scale's fault
            raise ConfigError(f"{self.scale_file}: papers.{paper}: {fault}") from None

    def _targets(self, paper: str, file: Path, content: dict, numbered: dict[str, Path]) -> list[Target]:
        """The targets of a paper's complete `content`; `numbered` has the file of printed numbers of those with any."""
        self.titles[paper] = content.get("title", paper)
        search = content.get("selection", {})
        for key, known in (("datasets", "datasets"), ("per_class", "datasets"), ("grid", "learners")):
            for name in search.get(key, []):
                if name not in content.get(known, {}):
                    there = ", ".join(content.get(known, {}))
                    raise ConfigError(f"{file}: selection.{key}: '{name}' is not one of {there}")
        for dataset in content.get("datasets", {}):
            net = self._base(content, dataset).get("net", {})
            self._net(file, f"datasets.{dataset}", net, dataset)
            self.nets[f"{paper}/{dataset}"] = net
            self.outputs[f"{paper}/{dataset}"] = self._outputs(content, dataset)
        return [
            dataclasses.replace(self._target(paper, file, content, name, spec), reported=numbered.get(name))
            for name, spec in content.get("targets", {}).items()
        ]

    def _learner_options(self, file: Path, at: tuple, label: str, options: dict, written: dict) -> None:
        """Refuse options that the method does not take, at the place `at` in `file`."""
        learners, there = schema("paper")["$defs"]["learner_options"]["const"], written.get("learners", {})
        if label not in there:
            raise ConfigError(f"{file}: {_key(at)}: '{label}' is not one of {', '.join(there)}")
        method = options.get("method", there[label].get("method", label))
        if method not in learners:
            raise ConfigError(f"{file}: {_key(at)}.method: '{method}' is not one of {', '.join(learners)}")
        rules = {
            "type": "object",
            "additionalProperties": False,
            "properties": learners[method] | {"method": {}, "cell": {}},
        }
        validate(options, rules, file, at)

    @staticmethod
    def _seeds(text: str, file: Path, key: str) -> range:
        seeds = seed_range(text)
        if not len(seeds):
            raise ConfigError(f"{file}: {key}: '{text}' holds no seed; write first-last, first not above last")
        if len(seeds) > MOST:
            raise ConfigError(f"{file}: {key}: '{text}' holds {len(seeds)} seeds; take at most {MOST}")
        return seeds

    def _target(self, paper: str, file: Path, content: dict, name: str, spec: dict) -> Target:
        at = f"targets.{name}"
        for key in ("title", "caption", "section", "kind", "measure", "render"):
            if key not in spec:
                raise ConfigError(f"{file}: {at}: '{key}' is missing")
        for key, stage in (("measure", "metrics"), ("render", "targets")):
            there = _defining(key, stage)
            if spec[key] not in there:
                raise ConfigError(f"{file}: {at}.{key}: '{spec[key]}' is not one of {', '.join(there)}")
        if not _draws(spec["render"], spec["kind"]):
            raise ConfigError(f"{file}: {at}.kind: render {spec['render']} draws no {spec['kind']}")
        seeds = spec.get("seeds", content.get("seeds", self.settings["seeds"]))
        seeds = self._seeds(seeds, file, f"{at}.seeds" if "seeds" in spec else "seeds")
        cells, selections = tuple(self._grid(paper, file, at, content, spec)), ()
        if spec["measure"] == "selection":
            chosen = [(factors, self._selection(paper, file, content, **factors)) for factors, _ in cells]
            cells, selections = (), tuple(chosen)
        for i, pair in enumerate(spec.get("ratios", [])):
            for learner in pair:
                if learner not in spec.get("grid", {}).get("learner", []):
                    raise ConfigError(f"{file}: {at}.ratios[{i}]: {learner!r} is not in the grid")
        grid = spec.get("grid", {})
        for key in ("rows", "columns"):
            if spec.get(key, "dataset") not in ("row", "dataset", *grid):
                there = ", ".join(grid) or "none"
                raise ConfigError(f"{file}: {at}.{key}: {spec[key]!r} is not a factor of the grid: {there}")
        for dataset in spec.get("per_class", []):
            if dataset not in content.get("datasets", {}):
                there = ", ".join(content.get("datasets", {}))
                raise ConfigError(f"{file}: {at}.per_class: {dataset!r} is not one of {there}")
        if spec.get("ideal") not in (None, *spec.get("grid", {}).get("learner", [])):
            raise ConfigError(f"{file}: {at}.ideal: {spec['ideal']!r} is not in the grid")
        for _, cell in cells:
            if spec["measure"] == "streaming" and "every" not in cell.spec["evaluation"]:
                raise ConfigError(f"{file}: {at}: measure streaming needs a number for evaluation.every")
            if spec["measure"] in ("cost", "trade_offs"):
                self._check_costs(file, at, spec["measure"], paper, cell)
        streams = tuple(
            (s["dataset"], self._stream_order(file, f"{at}.streams[{i}]", content, s), s["seed"])
            for i, s in enumerate(spec.get("streams", []))
        )
        told = [
            stream | {"oracle": self._oracle(file, f"{at}.streams[{i}]", content, stream["oracle"], stream["dataset"])}
            for i, stream in enumerate(spec.get("streams", []))
            if "oracle" in stream
        ]
        if told:
            spec = spec | {"streams": told}
        nets = tuple(self._described(file, f"{at}.nets[{i}]", content, n) for i, n in enumerate(spec.get("nets", [])))
        for net_name, net in zip(spec.get("nets", []), nets):
            self.nets[f"{paper}/{net_name}"] = net
            self.outputs[f"{paper}/{net_name}"] = self._outputs(content, net_name.partition("-")[0])
        if spec["render"] == "diagram":
            for i, net in enumerate(nets):
                if net.get("head") != "joint_embedding":
                    raise ConfigError(
                        f"{file}: {at}.nets[{i}]: {spec['nets'][i]!r} has no head joint_embedding; write "
                        "<data set>-<learner> for a learner whose net has one"
                    )
        declared = {
            dataset: merge(content["datasets"][dataset].get("desiderata", {}), spec.get("desiderata", {}))
            for dataset in spec.get("grid", {}).get("dataset", [])
        }
        if "desiderata" in spec and not declared:
            raise ConfigError(f"{file}: {at}.desiderata: it has no runs to declare them of; leave it out")
        if any(declared.values()):
            spec = spec | {"desiderata": declared}
        return Target(self.scale, paper, name, spec | {"name": name}, seeds, cells, streams, nets, selections)

    def _outputs(self, content: dict, dataset: str) -> int:
        """How many outputs a data set's nets have."""
        order = self._base(content, dataset).get("order", {})
        if order.keys() >= {"tasks", "per_task"}:  # split_overlapping, unless it is refused where a cell is made of it
            return order["tasks"] * order["per_task"]
        return len(self.datasets[dataset]["classes"])

    def _check_costs(self, file: Path, at: str, measure: str, paper: str, cell: Cell) -> None:
        """Refuse a cell whose costs the description of its data set's net would not explain."""
        if "tasks" not in cell.spec["order"]:
            raise ConfigError(
                f"{file}: {at}: measure {measure} needs orders of tasks, not {cell.spec['order']['name']}"
            )
        if measure == "cost" and cell.spec["budget"]["batch"] == "task":
            raise ConfigError(f"{file}: {at}: measure cost needs a number for budget.batch, not task")
        usual, net = self.nets[f"{paper}/{cell.spec['dataset']}"], cell.spec["net"]
        for key in ("name", "width", "hidden"):
            if net.get(key) != usual.get(key):
                raise ConfigError(
                    f"{file}: {at}: costs are explained by the net of {cell.spec['dataset']}; a learner with "
                    f"net.{key} {net[key]} has another"
                )

    def _described(self, file: Path, at: str, content: dict, name: str) -> dict:
        """The net that a data set is learnt with, or, as `<data set>-<learner>`, that learner there."""
        dataset, dash, learner = name.partition("-")
        learners = [(learner, content.get("learners", {}))] if dash else []
        for each, known in ((dataset, content.get("datasets", {})), *learners):
            if each not in known:
                raise ConfigError(f"{file}: {at}: {each!r} is not one of {', '.join(known)}")
        base = self._base(content, dataset)
        options = self._options(content, dataset, learner) if learner else {}
        net = merge(base, options.get("cell", {})).get("net", {})
        self._net(file, at, net, dataset)
        return net

    def _grid(self, paper: str, file: Path, at: str, content: dict, spec: dict) -> Iterator[tuple[dict, Cell]]:
        grid = spec.get("grid", {})
        if not grid:
            return
        for required in ("dataset", "learner"):
            if required not in grid:
                raise ConfigError(f"{file}: {at}.grid: '{required}' is missing; a cell needs a dataset and a learner")
        for key, known in (
            ("dataset", content.get("datasets", {})),
            ("learner", content.get("learners", {})),
        ):
            for i, value in enumerate(grid[key]):
                if not isinstance(value, str) or value not in known:
                    names = ", ".join(known)
                    raise ConfigError(f"{file}: {at}.grid.{key}[{i}]: {value!r} is not one of {names}")
        varied = [key for key in grid if key.startswith("learner.")]
        for key in varied:
            if not any(self._takes(content, learner, key) for learner in grid["learner"]):
                raise ConfigError(f"{file}: {at}.grid.{key}: none of {', '.join(grid['learner'])} takes it")
        for key, values in grid.items():
            if key in ("dataset", "learner", *varied):
                continue
            for i, value in enumerate(values):
                validate(
                    _nested(key, value),
                    {"$defs": schema("paper")["$defs"], "$ref": "#/$defs/cell"},
                    f"{file}: {at}.grid.{key}[{i}]",
                )
        for i, left_out in enumerate(spec.get("without", [])):
            for key, values in left_out.items():
                for value in values:
                    if value not in grid.get(key, []):
                        raise ConfigError(f"{file}: {at}.without[{i}].{key}: {value!r} is not in the grid")
        for metric, learners in spec.get("undefined", {}).items():
            if metric not in spec.get("metrics", []):
                there = ", ".join(spec.get("metrics", []))
                raise ConfigError(f"{file}: {at}.undefined: '{metric}' is not one of {there}")
            for learner in learners:
                if learner not in grid["learner"]:
                    there = ", ".join(grid["learner"])
                    raise ConfigError(f"{file}: {at}.undefined.{metric}: '{learner}' is not one of {there}")
        made = set()
        for values in itertools.product(*grid.values()):
            factors = dict(zip(grid, values))
            dataset, learner = factors["dataset"], factors["learner"]
            factors = {k: v for k, v in factors.items() if k not in varied or self._takes(content, learner, k)}
            if any(all(factors.get(k) in v for k, v in left_out.items()) for left_out in spec.get("without", [])):
                continue
            if repr(factors) in made:  # a learner that takes fewer options than another of the grid
                continue
            made.add(repr(factors))
            patch, over = spec.get("cell", {}), {}
            for key, value in factors.items():
                if key in varied:
                    over = merge(over, _nested(key.removeprefix("learner."), value))
                elif key not in ("dataset", "learner"):
                    patch = merge(patch, _nested(key, value))
            if over:
                usual = self._options(content, dataset, learner)
                over = merge({option: usual[option] for option in over if option in usual}, over)
                self._learner_options(file, (*at.split("."), "grid", "learner"), learner, over, content)
            where = f"{at}, cell {' '.join(f'{k}={v}' for k, v in factors.items())}"
            cell = self._cell(file, where, content, dataset, learner, patch, over)
            search = content.get("selection", {})
            if search.get("use") == "cross_validated" and learner in search.get("grid", {}):
                for key in search["grid"][learner]:
                    part, option = key.split(".")
                    if key in factors or option in spec.get("cell", {}).get(part, {}):
                        raise ConfigError(
                            f"{file}: {where}: {key} is selected; leave it out here or out of selection.grid"
                        )
                cell = self._selection(paper, file, content, dataset, learner).to_fill(cell)
            yield factors, cell

    @staticmethod
    def _takes(content: dict, learner: str, key: str) -> bool:
        """Whether a learner's method has the option that a grid's `key` names, such as `learner.epochs`."""
        method = content["learners"][learner].get("method", learner)
        options = schema("paper")["$defs"]["learner_options"]["const"][method]
        for part in key.split(".")[1:]:
            if part not in options:
                return False
            options = options[part].get("properties", {})
        return True

    def _selection(self, paper: str, file: Path, content: dict, dataset: str, learner: str) -> Selection:
        """The selection of a learner on a data set: a cell for each point of its grid."""
        search, at = content.get("selection", {}), "selection"
        for key in ("metric", "seeds", "datasets", "grid"):
            if key not in search:
                raise ConfigError(f"{file}: {at}: '{key}' is missing")
        for key, wanted in (("datasets", dataset), ("grid", learner)):
            if wanted not in search[key]:
                raise ConfigError(f"{file}: {at}.{key}: '{wanted}' is missing, which a target asks for")
        grid, points, published = search["grid"][learner], [], {}
        at = f"{at}.grid.{learner}"
        usual = self._cell(file, at, content, dataset, learner, {}).spec
        for key in grid:
            part, _, option = key.partition(".")
            if option not in usual.get(part, {}) or option == "name":
                raise ConfigError(f"{file}: {at}: '{key}' is no value of the learner's cell, such as budget.memory")
            published[key] = usual[part][option]
        for values in itertools.product(*grid.values()):
            values = dict(zip(grid, values))
            patch, options = search["datasets"][dataset], {}
            for key, value in values.items():
                part, option = key.split(".")
                if part == "learner":
                    options[option] = value
                else:
                    patch = merge(patch, _nested(key, value))
            self._learner_options(file, ("selection", "grid", learner), learner, options, content)
            validate(patch, {"$defs": schema("paper")["$defs"], "$ref": "#/$defs/cell"}, f"{file}: {at}")
            points.append((values, self._cell(file, at, content, dataset, learner, patch, options)))
        seeds, per_class = self._seeds(search["seeds"], file, "selection.seeds"), dataset in search.get("per_class", [])
        made = Selection(
            self.scale, paper, dataset, learner, search["metric"], seeds, per_class, tuple(points), published
        )
        return self.selections.setdefault(made.name, made)

    def _base(self, content: dict, dataset: str) -> dict:
        block = {k: v for k, v in content["datasets"][dataset].items() if k not in ("learners", "desiderata")}
        return merge(content.get("defaults", {}), block)

    @staticmethod
    def _options(content: dict, dataset: str, learner: str) -> dict:
        return merge(content["learners"][learner], content["datasets"][dataset].get("learners", {}).get(learner, {}))

    def _cell(
        self, file: Path, where: str, content: dict, dataset: str, learner: str, patch: dict, over: dict | None = None
    ) -> Cell:
        """One complete cell: defaults, then the data set's block, then the target's, then the grid's factors.

        `over` is laid over the learner's options.
        """
        options = self._options(content, dataset, learner)
        spec = merge(merge(self._base(content, dataset), options.pop("cell", {})), patch)
        method = options.pop("method", learner)
        options |= over or {}
        needed = schema("paper")["$defs"]["learner_options"]["const"][method]
        for option in needed:
            if option not in options:
                raise ConfigError(f"{file}: {where}: learner {method} needs a value for '{option}'")
        spec |= {"dataset": dataset, "learner": {"name": method, **options}}
        for part, options in schema("paper")["$defs"]["cell"]["properties"].items():
            if part not in spec:
                raise ConfigError(f"{file}: {where}: '{part}' is missing")
            if options.get("$ref") in ("#/$defs/budget", "#/$defs/evaluation"):
                for option in schema("paper")["$defs"][part]["properties"]:
                    optional = part == "evaluation" and option in ("batch", "every", "oracles", "shots")
                    if option not in spec[part] and not optional:
                        raise ConfigError(f"{file}: {where}: {part} needs a value for '{option}'")
        spec["order"] = self._order(file, where, spec["order"], spec["dataset"])
        self._net(file, where, spec["net"], dataset)
        self._scaling(file, where, spec)
        if "features" in self.datasets[dataset]:
            spec["features"] = self.datasets[dataset]["features"]
        for key, value in schema("paper")["$defs"]["learner_needs"]["const"].get(method, {}).items():
            found = functools.reduce(lambda block, part: block[part], key.split("."), spec)
            allowed = value if isinstance(value, list) else [value]
            if found not in allowed:
                raise ConfigError(f"{file}: {where}: learner {method} needs {key} {' or '.join(allowed)}, not {found}")
        self._fits(f"{file}: {where}", spec)
        if "cycles" in spec["order"] and method in schema("paper")["$defs"]["learner_of_tasks_that_come_once"]["const"]:
            raise ConfigError(
                f"{file}: {where}: order.cycles: learner {method} needs tasks that come once; leave it out"
            )
        return Cell.of(self.scale, *self._looked_at(file, where, content, spec))

    def _looked_at(self, file: Path, where: str, content: dict, spec: dict) -> tuple[dict, str]:
        """A cell's description without what its learner does not look at, and the view that its results are for.

        The restriction at test decides only how a run is read, so that it becomes the view. A learner that looks at no
        oracle is the same run under every oracle, and is evaluated under those of `evaluation.oracles`.
        """
        learner, order, called = spec["learner"], spec["order"], spec["oracle"]
        restriction = RESTRICTIONS[spec["restriction"]["name"]]
        oracle = self._oracle(file, where, content, called, spec["dataset"], aligned=restriction.aligned)
        definitions = schema("paper")["$defs"]
        table, special = (
            definitions["learner_looks_at"]["const"],
            [f"{learner['name']} {k} {v}" for k, v in learner.items()],
        )
        looks_at = next(filter(None, map(table.get, [*special, learner["name"]])), [])
        if restriction.test == "data" and order["name"] not in CLASS_CHUNKS:
            named = spec["restriction"]["name"]
            raise ConfigError(f"{file}: {where}: restriction {named} needs an order of {' or '.join(CLASS_CHUNKS)}")
        if oracle["name"] == "entropy" and "changes" in looks_at:
            raise ConfigError(
                f"{file}: {where}: learner {learner['name']} needs an oracle that names tasks, not entropy"
            )

        if "widths" in learner:
            tasks = order.get("tasks", 1) if oracle["name"] == "chunks" else oracle.get("tasks", 1)
            models = str(len(oracle["shares"]) if "shares" in oracle else tasks)
            if models not in learner["widths"]:
                there = ", ".join(learner["widths"])
                raise ConfigError(f"{file}: {where}: learner.widths: {models} models are not among {there}")
        one_task = oracle["name"] == "none" or oracle.get("tasks") == 1
        present = spec["restriction"].get("train") == "present"  # which are known without an oracle
        train, view, evaluated = restriction.train, restriction.test, {}
        if one_task or "competing" not in looks_at or (oracle["name"] == "random_tasks" and not present):
            train = "none"  # all classes compete
        elif train == "oracle" and present:
            train = "present"
        seen = oracle  # what the learner sees of it
        if train != "oracle" and "tasks" not in looks_at:
            if one_task or "changes" not in looks_at:
                seen = {"name": "none"}
                learner = learner_without_changes(learner)
            elif order["name"] in MIXING and oracle["name"] != "chunks":
                seen = {"name": "mixed"}
        if seen != oracle or oracle["name"] == "none":
            for name in spec["evaluation"].get("oracles", []):
                for suffix, aligned in (("", True), ("-unaligned", False)):
                    told = self._oracle(file, where, content, name, spec["dataset"], aligned=aligned)
                    if aligned or "aligned" in told:
                        evaluated[name + suffix] = told
            if view != "none":
                named = next((name for name, told in evaluated.items() if told == oracle), None)
                if named is None:
                    raise ConfigError(
                        f"{file}: {where}: evaluation.oracles: {called!r} is missing, which restricts the test"
                    )
                view = f"{named}/{view}"
        return spec | {
            "learner": learner,
            "oracle": seen,
            "restriction": {"train": train},
            "evaluation": spec["evaluation"] | {"oracles": evaluated},
        }, view

    def _oracle(
        self, file: Path, where: str, content: dict, oracle: str | dict, dataset: str, *, aligned: bool = True
    ) -> dict:
        """A complete oracle, from the name that the paper's file gives it or from its description."""
        if isinstance(oracle, str):
            there = content.get("oracles", {})
            if oracle not in there:
                raise ConfigError(f"{file}: {where}: oracle: {oracle!r} is not one of {', '.join(there) or 'none'}")
            oracle = there[oracle]
        self._complete(file, where, "oracle", oracle)
        classes = self._classes(dataset)
        if oracle["name"] == "split" and oracle["tasks"] > classes:
            raise ConfigError(f"{file}: {where}: oracle.tasks: {oracle['tasks']} is more than the {classes} classes")
        if oracle["name"] == "dominant_tasks":
            try:
                shared_out(oracle["shares"], classes)
            except ValueError as error:
                raise ConfigError(f"{file}: {where}: oracle: {error}") from None
        return oracle | ({"aligned": aligned} if oracle["name"] == "split" else {})

    def _net(self, file: Path, where: str, net: dict, dataset: str) -> None:
        """Refuse a net that is incomplete, or that wants of a data set or of its weights what these do not have."""
        self._complete(file, where, "net", net)
        facts, weights = self.datasets[dataset], pretrained(net)
        if "features" in facts and net["name"] not in ("mlp", "exstream_mlp"):
            raise ConfigError(
                f"{file}: {where}: net.name {net['name']}: {dataset} has features; take mlp or exstream_mlp"
            )
        if net.get("head") == "joint_embedding" and "attributes" not in facts:
            there = " or ".join(name for name, each in self.datasets.items() if "attributes" in each)
            raise ConfigError(f"{file}: {where}: net.head joint_embedding: it needs attributes, which only {there} has")
        if weights is None:
            return
        if "init" in net:
            raise ConfigError(f"{file}: {where}: net.init: {net['init']!r} does not go with weights {net['weights']}")
        if weights not in self.weights:
            raise ConfigError(f"{file}: {where}: net.weights: {weights!r} is not one of {', '.join(self.weights)}")
        for key, found in (("width", net["width"]), ("channels", facts["shape"][2])):
            if found != self.weights[weights][key]:
                wanted = f"{key} {self.weights[weights][key]}, not {found}"
                raise ConfigError(
                    f"{file}: {where}: net.weights {net['weights']} needs {wanted}; or write weights: none"
                )

    def _fits(self, at: str, spec: dict) -> None:
        """Refuse what a learner asks of its images or of its memory and they do not give."""
        learner, order, classes = spec["learner"], spec["order"], self._classes(spec["dataset"])
        height, width, _ = self.datasets[spec["dataset"]]["shape"]
        halved = learner["name"] == "cn_dpm" or learner.get("gan", {}).get("name") in ("gan_conv", "dcgan")
        if halved and (height % 4 or width % 4):
            raise ConfigError(
                f"{at}: learner {learner['name']} needs sides that are multiples of 4 pixels, not {height}×{width}"
            )
        if "write" in learner:  # an episodic memory: items of each class of each task
            slots = len(classes_of(order, classes))
            if order["name"] in ("split_overlapping", "permuted_pixels"):
                slots = order["tasks"] * order.get("per_task", classes)
            if spec["budget"]["memory"] < slots:
                raise ConfigError(
                    f"{at}: budget.memory: {spec['budget']['memory']} is fewer than one item for each class of each "
                    f"task; take {slots} or more"
                )

    def _scaling(self, file: Path, where: str, spec: dict) -> None:
        """Refuse a scaling that the images or their order do not allow."""
        scaling, channels = spec["scaling"], self.datasets[spec["dataset"]]["shape"][2]
        if "features" in self.datasets[spec["dataset"]] and scaling != "none":
            raise ConfigError(f"{file}: {where}: scaling {scaling}: {spec['dataset']} has features; take none")
        if scaling == "imagenet" and channels != 3:
            raise ConfigError(
                f"{file}: {where}: scaling imagenet: it needs 3 channels, {spec['dataset']} has {channels}"
            )
        if scaling in ("centred", "imagenet") and spec["order"]["name"] == "permuted_pixels":
            raise ConfigError(f"{file}: {where}: scaling {scaling}: not with permuted_pixels; take unit or symmetric")

    @staticmethod
    def _complete(file: Path, where: str, part: str, block: dict) -> None:
        options = schema("paper")["$defs"][f"{part}_options"]["const"]
        name = block.get("name")
        if name not in options:
            raise ConfigError(f"{file}: {where}: {part}.name: {name!r} is not one of {', '.join(options)}")
        for option in options[name]:
            if option not in block and option not in OPTIONAL:
                raise ConfigError(f"{file}: {where}: {part} {name} needs a value for '{option}'")
        for option in block:
            if option not in options[name] and option != "name":
                raise ConfigError(
                    f"{file}: {where}: {part} {name} takes no '{option}'; it takes {', '.join(options[name])}"
                )

    def _order(self, file: Path, where: str, order: dict, dataset: str) -> dict:
        order = dict(order)
        factor = order.pop("mu_sigma_factor", None)
        if factor is not None and "mu_sigma" in order:
            order["mu_sigma"] *= factor
            if order["mu_sigma"] >= 0.5:
                raise ConfigError(
                    f"{file}: {where}: order.mu_sigma_factor {factor} gives mu_sigma {order['mu_sigma']:.4g}; "
                    "it must be less than 0.5"
                )
        self._complete(file, where, "order", order)
        if order["name"] == "instances" and "instances" not in self.datasets.get(dataset, {}):
            there = " or ".join(name for name, each in self.datasets.items() if "instances" in each)
            raise ConfigError(f"{file}: {where}: order instances: {dataset} has none recorded, as {there} has")
        try:
            order = canonical(order)
            classes = self._classes(dataset)
            chunks_of_classes(order, classes, seed=0)
            if order["name"] == "split_overlapping":
                overlapping_classes(order, classes, seed=0)
        except ValueError as error:
            raise ConfigError(f"{file}: {where}: {error}") from None
        items = self._most_items(dataset)
        if order["length"] is not None and order["length"] > items:
            raise ConfigError(f"{file}: {where}: order.length: {order['length']} is more than the {items} items")
        return order

    def _classes(self, dataset: str) -> int:
        return dataset.count("-") if TOY.match(dataset) else len(self.datasets[dataset]["classes"])

    def _most_items(self, dataset: str) -> int:
        """The size of the training split, of the real data or of a stand-in, which may be larger."""
        if TOY.match(dataset):
            return sum(map(int, dataset.split("-")[1:]))
        stand_in = self.settings.get("stand_ins", {}).get(dataset, {}).get("train_per_class", 0)
        return max(self.datasets[dataset]["train"], stand_in * self._classes(dataset))

    def _stream_order(self, file: Path, at: str, content: dict, stream: dict) -> dict:
        if TOY.match(stream["dataset"]):
            return self._order(file, at, {"length": None} | stream.get("order", {}), stream["dataset"])
        if stream["dataset"] not in content.get("datasets", {}):
            known = ", ".join(content.get("datasets", {}))
            raise ConfigError(f"{file}: {at}.dataset: {stream['dataset']!r} is not one of {known}")
        base = {"order": self._base(content, stream["dataset"]).get("order", {})}
        return self._order(file, at, merge(base, {"order": stream.get("order", {})})["order"], stream["dataset"])

    @property
    def digest(self) -> str:
        """Of the cells, their seeds and the targets they serve."""
        used = {name: sorted(c.hash for _, c in target.cells) for name, target in self.targets.items()}
        return _digest([{key: sorted(seeds) for key, seeds in self._wanted.items()}, used])

    def net_file(self, paper: str, dataset: str) -> Path:
        """Where the description of the net that `paper` learns `dataset` with stands."""
        return RESULTS / self.scale / "runs" / "nets" / paper / f"{dataset}.json"

    # runs

    def blocks(self, cell: Cell) -> list[range]:
        """The seeds of a cell, all targets taken together, in the fixed blocks that jobs train."""
        seeds = sorted(self._wanted[cell.hash])
        size = self.settings["seeds_per_job"]
        if size == "auto":
            size = 20 if self.cuda else 5 if cell.spec["net"]["name"] == "mlp" else 1
        starts = sorted({seed // size * size for seed in seeds})
        return [range(max(s, seeds[0]), min(s + size, seeds[-1] + 1)) for s in starts]

    def results(self, cell: Cell, seeds: range | None = None) -> list[Path]:
        """The result files that hold the given seeds of a cell (all wanted seeds if None)."""
        blocks = [b for b in self.blocks(cell) if seeds is None or (b[0] <= seeds[-1] and seeds[0] <= b[-1])]
        return [cell.folder / f"{block_name(block)}.json" for block in blocks]


def learner_without_changes(learner: dict) -> dict:
    """What a learner is as long as the task never changes: EWC and SI are the single net."""
    table = schema("paper")["$defs"]["learner_without_changes"]["const"]
    return {"name": table[learner["name"]]} if learner["name"] in table else learner


def reductions(target: Target, paper_scale: Target) -> list[str]:
    """How a target departs from the same target at the paper's scale: one line a difference, none where none.

    The number of seeds is none of them: it stands beside every interval, and intervals account for it.
    """
    lines: dict[str, None] = {}

    def differ(at: str, mine: object, theirs: object, told: Iterable[str] = ()) -> None:
        if at in told:
            return
        if isinstance(mine, dict) and isinstance(theirs, dict):
            for key in {**theirs, **mine}:
                differ(f"{at}.{key}".lstrip("."), mine.get(key, "unset"), theirs.get(key, "unset"), told)
        elif mine != theirs and at != "selection.points":  # hashes of what differs otherwise too
            shown = ["all" if value is None else str(value) for value in (mine, theirs)]
            lines.setdefault(f"{at} {shown[0]} (paper: {shown[1]})")

    originals = {repr(factors): cell for factors, cell in paper_scale.cells}
    if len(target.cells) < len(originals):
        lines[f"{len(target.cells)} cells (paper: {len(originals)})"] = None
    levels = paper_scale.spec.get("grid", {})
    for factors, cell in target.cells:
        # Levels that the paper's grid lacks are told; the rest is compared with any cell that shares the others.
        new = [key for key, value in factors.items() if value not in levels.get(key, [])]
        for key in new:
            lines[f"{key} {factors[key]} (paper: {', '.join(map(str, levels.get(key, ['unset'])))})"] = None
        shared = {key: value for key, value in factors.items() if key not in new}
        alike = (each for given, each in paper_scale.cells if new and shared == {key: given.get(key) for key in shared})
        original = originals.get(repr(factors)) or next(alike, None)
        if original:
            differ("", cell.spec, original.spec, new)
    searched = {repr(factors): selection for factors, selection in paper_scale.selections}
    if len(target.selections) < len(searched):
        lines[f"{len(target.selections)} selections (paper: {len(searched)})"] = None
    for factors, selection in target.selections:
        if repr(factors) in searched:
            each = [one.to_fill(one.points[0][1]).spec for one in (selection, searched[repr(factors)])]
            differ("", *each)
    for (_, order, _), (_, original, _) in zip(target.streams, paper_scale.streams):
        differ("order", order, original)
    for mine, theirs in zip(target.nets, paper_scale.nets):
        differ("net", mine, theirs)
    for key in ("simulations", "chunks", "points"):
        differ(key, target.spec.get(key), paper_scale.spec.get(key))
    return list(lines)


@functools.cache
def _defining(function: str, package: str) -> list[str]:
    """The modules of one of our packages that define `function`; read, not imported, for they may be heavy."""
    files = (Path(__file__).parent / package).glob("[a-z]*.py")
    return sorted(file.stem for file in files if f"\ndef {function}(" in file.read_text(encoding="utf-8"))


@functools.cache
def _draws(render: str, kind: str) -> bool:
    """Whether a renderer makes a `kind`, `table` or `figure`, as its signature says."""
    text = (Path(__file__).parent / "targets" / f"{render}.py").read_text(encoding="utf-8")
    return re.search(rf"^def render\([^)]*\) -> {kind.title()}:$", text, re.MULTILINE) is not None


def _digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def _nested(key: str, value: object) -> dict:
    for part in reversed(key.split(".")):
        value = {part: value}
    return value
