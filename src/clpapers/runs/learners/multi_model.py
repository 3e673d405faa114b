"""Separate small models, one for each task."""

import contextlib
from collections.abc import Iterator

import torch

from clpapers.runs.learner import Learner, Observed, Setting
from clpapers.runs.losses import cross_entropy, masked
from clpapers.runs.nets.stacked import Stack
from clpapers.runs.optimizers import SGD

DECLARATION = {
    "options": {
        "widths": {
            "type": "object",
            "propertyNames": {"pattern": "^[1-9][0-9]*$"},
            "additionalProperties": {"type": "integer", "minimum": 1},
            "examples": [{"1": 8, "2": 4}],
        }
    },
    "uses": ["tasks", "competing"],
    "by_tasks": ["widths"],
    "answers_by_task": True,
    "stackable": False,  # each seed sends another number of items to each model
    "own_nets": True,
}


class MultiModel(Learner):
    """MM (`rules`, rule 3): a model for each task, together about as large as the single net; no sharing.

    Each item trains its task's model and is answered by it; each model has an optimiser, which steps on batches with
    its items. With the oracle `entropy` there are no tasks: in training and at test each item goes to the model with
    the lowest entropy of its prediction.

    Parameters
    ----------
    widths: number of models → width of each model's layers, `{"5": 90}`; otherwise models are the cell's net.
    """

    def __init__(self, setting: Setting, *, widths: dict[str, int]):
        super().__init__(setting)
        self.by_entropy = setting.oracle["name"] == "entropy"
        count = setting.oracle["tasks"] if self.by_entropy else setting.task_count
        spec = narrowed(setting.spec, widths[str(count)])
        self.models = [setting.net("init" if m == 0 else f"init {m}", net=spec) for m in range(count)]
        self.optimizers = [self.optimize(list(model.parameters())) for model in self.models]

    def observe(self, t: int, x: torch.Tensor, y: torch.Tensor) -> Observed:
        logits, losses = x.new_zeros(1, x.shape[1], self.classes), x.new_zeros(1)
        mask = self.mask(t)
        for model, optimizer, items in self.routed(x, self.setting.tasks[:, self.setting.step(t)]):
            own = model(x[:, items])
            loss = cross_entropy(masked(own, mask), y[:, items])
            optimizer.descend(loss)
            logits[:, items] = own.detach()
            losses += loss.detach() * len(items) / x.shape[1]
        return Observed(losses, logits)

    def routed(self, x: torch.Tensor, tasks: torch.Tensor) -> Iterator[tuple[Stack, SGD, torch.Tensor]]:
        """The models for items of x [1, B, …], with their optimisers and their items' positions."""
        chosen = self.least_entropy(x) if self.by_entropy else tasks[0]
        for m in chosen.unique().tolist():
            yield self.models[m], self.optimizers[m], (chosen == m).nonzero()[:, 0]

    @torch.no_grad()
    def least_entropy(self, x: torch.Tensor) -> torch.Tensor:
        """The number of the model with the lowest entropy of its prediction, for each item [B]."""
        entropies = []
        for model in self.models:
            training = model.training
            log_p = model.eval()(x).log_softmax(dim=2)
            entropies.append(-(log_p.exp() * log_p).sum(dim=2)[0])
            model.train(training)
        return torch.stack(entropies).argmin(dim=0)

    @contextlib.contextmanager
    def evaluation(self) -> Iterator[None]:
        for model in self.models:
            model.eval()
        yield
        for model in self.models:
            model.train()

    def scores(self, x: torch.Tensor, tasks: torch.Tensor) -> torch.Tensor:
        logits = x.new_zeros(1, x.shape[1], self.classes)
        for model, _, items in self.routed(x, tasks):
            logits[:, items] = model(x[:, items])
        return logits

    def needed_to_answer(self) -> object:
        return self.models

    def report(self, s: int) -> dict:
        return {"models": len(self.models), "parameters": sum(p.numel() for m in self.models for p in m.parameters())}


def narrowed(spec: dict, width: int) -> dict:
    """A net's description with another width of all its layers."""
    if "hidden" in spec:
        return spec | {"hidden": [width] * len(spec["hidden"])}
    return spec | {"width": width}
