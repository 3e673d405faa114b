"""The facts at a scale: its settings, and the known data sets, pre-trained weights and methods."""

import itertools
import re
import unicodedata
from collections.abc import Collection
from pathlib import Path

from clpapers.catalogue import methods
from clpapers.config import user_files
from clpapers.config.files import CONFIG, read_yaml
from clpapers.config.paths import seeds_of
from clpapers.config.refusals import ConfigError, one_of
from clpapers.config.schemas import schema, validate
from clpapers.home import project_path

TOY = re.compile(r"toy(-[1-9]\d{0,5})+", re.ASCII)  # `toy-13-17-10`: no images, but 13, 17 and 10 items of classes
FEATURES = 2048  # the features of an image by a ResNet-50


class Facts:
    """`settings`, `datasets`, `weights` and `methods` at a scale, by their names in their files.

    user_methods: the methods from outside, by label, from `method_files`, copies of their files (`take_in`).
    measured: a measurement that only some methods take → one of them. A data set from outside has under `declared`
    the copy of the file that declares it.

    Raises `ConfigError` for any fault in these files.
    """

    def __init__(self, scale: str, method_files: Collection[str] = ()):
        self.scale, self.file = scale, CONFIG / "scales" / f"{scale}.yaml"
        self.settings = read_yaml(self.file)
        validate(self.settings, schema("scale"), self.file)
        seeds_of(self.settings["seeds"], f"{self.file}: seeds")
        for paper in self.settings.get("papers", {}):
            if not (CONFIG / "papers" / f"{paper}.yaml").is_file():
                raise ConfigError(f"{self.file}: papers: '{paper}' has no file in {CONFIG}/papers/")
        self.datasets, self.weights = self._read(CONFIG / "datasets.yaml"), self._read(CONFIG / "weights.yaml")
        for name, file in user_files.files("datasets").items():
            self._add(file, user_files.copy_of("datasets", name))
        try:
            copies = [methods.copied(project_path(file)) for file in method_files]
            self.user_methods = {method.name: method for method in copies}
            self.methods = methods.methods() | self.user_methods
            for name, file in user_files.files("methods").items():  # of papers from outside: `mine.lwf-0123456789`
                of_paper, copy = name.rpartition("-")[0], user_files.copy_of("methods", name)
                read = methods.read(file).replace(name=of_paper.rpartition(".")[2], file=str(copy))
                self.methods[of_paper] = read
        except methods.DeclarationError as error:
            raise ConfigError(str(error)) from None
        self.measured = {key: name for name, method in self.methods.items() for key in method.measures}
        fetched = {name: facts for name, facts in self.datasets.items() if "features" not in facts}
        for dataset in self.settings.get("stand_ins", {}):
            one_of(f"{self.file}: stand_ins", dataset, fetched)
        for name, facts in self.datasets.items():
            if name not in fetched:
                where = f"{facts.get('declared', CONFIG / 'datasets.yaml')}: {name}"
                self.datasets[name] = self._derived(where, facts, fetched)
            elif "class_sizes" in facts:
                _check_sizes(f"{facts.get('declared', CONFIG / 'datasets.yaml')}: {name}", facts)

    @staticmethod
    def _read(file: Path, rules: str = "") -> dict:
        content = read_yaml(file)
        validate(content, schema(rules or file.stem), file)
        return content

    def _add(self, file: Path, copy: Path) -> None:
        """Add the data sets that a file from outside declares; refuse names that there are."""
        for name, facts in self._read(file, "datasets").items():
            if name in self.datasets or TOY.fullmatch(name):
                other = self.datasets.get(name, {}).get("declared", CONFIG / "datasets.yaml")
                raise ConfigError(f"{file}: {name}: {other} has a data set of this name; take another")
            forms: dict[str, str] = {}  # of the classes' names, as folders' names are compared with them
            for each in facts.get("classes", ()):
                if (first := forms.setdefault(unicodedata.normalize("NFC", each), each)) != each:
                    both = f"{first!a} and {each!a}"
                    raise ConfigError(f"{file}: {name}.classes: {both} are one name in two Unicode forms; rename one")
            self.datasets[name] = facts | {"declared": str(copy)}

    def _derived(self, where: str, facts: dict, fetched: dict[str, dict]) -> dict:
        """The complete entry of a data set of features at a scale, from its own entry and the images'."""
        features = facts["features"] | self.settings.get("features", {})
        one_of(f"{where}.features.of", features["of"], fetched)
        one_of(f"{where}.features.weights", features["weights"], self.weights)
        of, wanted = fetched[features["of"]], self.weights[features["weights"]]["channels"]
        if of["shape"][2] != wanted:
            raise ConfigError(
                f"{where}.features.of: {features['of']} has {of['shape'][2]} channels; take one of {wanted}"
            )
        carried = {key: of[key] for key in ("classes", "instances", "train", "test") if key in of}
        if "categories" in facts:
            carried["classes"] = list(facts["categories"])
            carried["instances"] = max(map(len, facts["categories"].values()))
            members = list(itertools.chain.from_iterable(facts["categories"].values()))
            for each in (*of["classes"], *members):
                if (each in of["classes"], members.count(each)) != (True, 1):
                    raise ConfigError(
                        f"{where}.categories: '{each}' must be a class of {features['of']} that stands in one category"
                    )
        if "train_per_instance" in features:
            if "instances" not in carried:
                raise ConfigError(
                    f"{where}.features.train_per_instance: {features['of']} has no instances; leave it out"
                )
            kept = features["train_per_instance"] * carried["instances"] * len(carried["classes"])
            carried["train"] = min(carried["train"], kept)
        if "test_per_class" in features:
            carried["test"] = min(carried["test"], features["test_per_class"] * len(carried["classes"]))
        return facts | carried | {"features": features, "shape": [1, 1, FEATURES]}

    def classes(self, dataset: str) -> int:
        """How many classes a data set, or a toy, has."""
        return dataset.count("-") if TOY.fullmatch(dataset) else len(self.datasets[dataset]["classes"])

    def most_items(self, dataset: str) -> int:
        """The size of the training split, of the real data or of a stand-in, which may be larger."""
        if TOY.fullmatch(dataset):
            return sum(map(int, dataset.split("-")[1:]))
        stand_in = self.settings.get("stand_ins", {}).get(dataset, {}).get("train_per_class", 0)
        return max(self.datasets[dataset]["train"], stand_in * self.classes(dataset))

    def class_sizes(self, dataset: str) -> dict[str, list[int]] | None:
        """Items of each class by split, where no images are needed to know the labels: of a toy, and of a data set that
        declares them, which its build holds it to. None where files tell: of a stand-in or of a part.
        """
        if TOY.fullmatch(dataset):
            return {"train": [int(size) for size in dataset.split("-")[1:]]}
        facts = self.datasets[dataset]
        if "class_sizes" not in facts or self.settings["sources"] != "real" or self.settings.get("partial_data"):
            return None
        return sizes_of(facts)


def sizes_of(facts: dict) -> dict[str, list[int]]:
    """The declared items of each class of a data set, by split."""
    of = facts["class_sizes"].items()
    return {split: sizes if isinstance(sizes, list) else [sizes] * len(facts["classes"]) for split, sizes in of}


def _check_sizes(where: str, facts: dict) -> None:
    """Refuse sizes of classes that do not make the splits."""
    for split, sizes in sizes_of(facts).items():
        if (len(sizes), sum(sizes)) != (len(facts["classes"]), facts[split]):
            raise ConfigError(
                f"{where}.class_sizes.{split}: {len(sizes)} classes of {sum(sizes)} items; give sizes of "
                f"{len(facts['classes'])} classes, {facts[split]} together"
            )
