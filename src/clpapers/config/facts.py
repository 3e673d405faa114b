"""What a scale has to work with: its settings, and what is known of data sets, pre-trained weights and methods."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection
from pathlib import Path

from clpapers import catalogue
from clpapers.config.files import CONFIG, read_yaml
from clpapers.config.paths import seed_range
from clpapers.config.refusals import ConfigError, one_of
from clpapers.config.schemas import schema, validate

TOY = re.compile(r"toy(-[1-9]\d{0,5})+$", re.ASCII)  # `toy-13-17-10`: no images, just so many items of each class
FEATURES = 2048  # numbers that a ResNet-50 makes of an image


class Facts:
    """`settings`, `datasets`, `weights` and `methods` at a scale, by their names in the files that say so.

    own: of the methods those from outside, by label, from copies of their files (`own.take`).
    measured: of each measurement that only some methods know how to take, one that does.

    Raises `ConfigError` for anything wrong in these files.
    """

    def __init__(self, scale: str, own: Collection[str] = ()):
        self.scale, self.file = scale, CONFIG / "scales" / f"{scale}.yaml"
        self.settings = read_yaml(self.file)
        validate(self.settings, schema("scale"), self.file)
        seed_range(self.settings["seeds"], f"{self.file}: seeds")
        for paper in self.settings.get("papers", {}):
            if not (CONFIG / "papers" / f"{paper}.yaml").is_file():
                raise ConfigError(f"{self.file}: papers: '{paper}' has no file in {CONFIG}/papers/")
        self.datasets, self.weights = self._read("datasets"), self._read("weights")
        try:
            self.own = {each.name: each for each in (catalogue.copied(Path(file)) for file in own)}
            self.methods = catalogue.methods() | self.own
        except catalogue.DeclarationError as error:
            raise ConfigError(str(error)) from None
        self.measured = {key: name for name, method in self.methods.items() for key in method.measures}
        fetched = {name: facts for name, facts in self.datasets.items() if "features" not in facts}
        for dataset in self.settings.get("stand_ins", {}):
            one_of(f"{self.file}: stand_ins", dataset, fetched)
        for name, facts in self.datasets.items():
            if name not in fetched:
                self.datasets[name] = self._derived(f"{CONFIG}/datasets.yaml: {name}", facts, fetched)

    @staticmethod
    def _read(name: str) -> dict:
        content = read_yaml(CONFIG / f"{name}.yaml")
        validate(content, schema(name), CONFIG / f"{name}.yaml")
        return content

    def _derived(self, at: str, facts: dict, fetched: dict[str, dict]) -> dict:
        """The entry of a data set of features, at the scale's size, with what the entries of others say too."""
        features = facts["features"] | self.settings.get("features", {})
        one_of(f"{at}.features.of", features["of"], fetched)
        one_of(f"{at}.features.weights", features["weights"], self.weights)
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

    def classes(self, dataset: str) -> int:
        """How many classes a data set has, or a toy."""
        return dataset.count("-") if TOY.match(dataset) else len(self.datasets[dataset]["classes"])

    def most_items(self, dataset: str) -> int:
        """The size of the training split, of the real data or of a stand-in, which may be larger."""
        if TOY.match(dataset):
            return sum(map(int, dataset.split("-")[1:]))
        stand_in = self.settings.get("stand_ins", {}).get(dataset, {}).get("train_per_class", 0)
        return max(self.datasets[dataset]["train"], stand_in * self.classes(dataset))
