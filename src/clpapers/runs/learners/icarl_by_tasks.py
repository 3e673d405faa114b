"""iCaRL that keeps exemplars of each class of each task apart."""

import dataclasses

import torch

from clpapers.runs.learner import Setting
from clpapers.runs.learners.icarl import Binary, ICaRL
from clpapers.runs.nearest import best_of_classes

DECLARATION = {
    "options": {
        "loss": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": {"enum": ["binary", "cross_entropy"]}},
            "allOf": [
                {
                    "if": {"properties": {"name": {"const": "binary"}}},
                    "then": {
                        "required": ["temperature"],
                        "additionalProperties": False,
                        "properties": {"name": {}, "temperature": {"type": "number", "exclusiveMinimum": 0}},
                    },
                },
                {
                    "if": {"properties": {"name": {"const": "cross_entropy"}}},
                    "then": {
                        "required": ["exemplars"],
                        "additionalProperties": False,
                        "properties": {"name": {}, "exemplars": {"type": "integer", "minimum": 1}},
                    },
                },
            ],
            "examples": [{"name": "binary", "temperature": 2.0}, {"name": "cross_entropy", "exemplars": 3}],
        },
    },
    "uses": ["changes", "tasks", "competing"],
    "stackable": False,  # as iCaRL
}


class ICaRLByTasks(ICaRL):
    """iCaRL of `rules` with exemplars and a mean for each class of each task; a reading of its list of methods.

    "Stores examples for each task and uses them to classify new data". It is iCaRL where no class is of two tasks. The
    budget is divided among all classes of all tasks seen; the nearest mean of any task predicts its class. So a domain
    that is over keeps its exemplars, where iCaRL herds a class again from each batch.

    exemplars: the kind of an item, task · K + class → item indices, best first.

    Parameters
    ----------
    loss: as of iCaRL, `{name: binary, temperature}` or `{name: cross_entropy, exemplars}`.
    """

    def __init__(self, setting: Setting, *, loss: dict):
        super().__init__(setting, loss=loss, space="features", exemplars="batch")
        if loss["name"] == "binary":
            self.objective = BinaryOfKinds(self, temperature=loss["temperature"])
        self.kinds = setting.tasks * setting.classes + setting.labels  # [1, n]

    def choose(self, t: int, *, herded: bool = True) -> None:
        """Herd each kind, where iCaRL herds each class."""
        setting = self.setting
        self.setting = dataclasses.replace(setting, labels=self.kinds)
        super().choose(t, herded=herded)
        self.setting = setting

    def labels_of_exemplars(self) -> torch.Tensor:
        return super().labels_of_exemplars() % self.classes

    def scores(self, x: torch.Tensor, tasks: torch.Tensor) -> torch.Tensor:
        """Minus the squared distance to each class's nearest mean; the least number for a class without exemplars."""
        least = torch.finfo(x.dtype).min
        if not self.exemplars:
            return x.new_full((1, x.shape[1], self.classes), least)
        values = -torch.cdist(self.embed(x)[0], self.means).square()
        classes = torch.tensor(list(self.exemplars), device=x.device) % self.classes
        return best_of_classes(values, classes, self.classes).clamp_min(least)[None]

    def memory_use(self, s: int) -> dict:
        return self.stored(self.labels_of_exemplars())


class BinaryOfKinds(Binary):
    """iCaRL's loss, which knows the classes whose exemplars there are of any task."""

    def task_change(self, t: int) -> None:
        kinds = self.learner.exemplars
        self.learner.exemplars = {kind % self.learner.classes: items for kind, items in kinds.items()}
        super().task_change(t)
        self.learner.exemplars = kinds
