"""Variational continual learning."""

from typing import Any

import torch

from clpapers.runs.early_gradients import early_gradients
from clpapers.runs.learner import Observed, Setting
from clpapers.runs.scenario import ScenarioError
from clpapers.runs.variational import Gaussian, Variational, standard

DECLARATION = {
    "options": {
        "epochs": {"type": "integer", "minimum": 1, "examples": [2]},
        "batch": {"oneOf": [{"const": "full"}, {"type": "integer", "minimum": 1}], "examples": [8, "full"]},
        "initial_variance": {"type": "number", "exclusiveMinimum": 0, "examples": [1e-06]},
        "samples": {"type": "integer", "minimum": 1, "examples": [3]},
        "prediction_samples": {"type": "integer", "minimum": 1, "examples": [5]},
        "prior_weight": {"type": "number", "minimum": 0, "examples": [1]},
    },
    "uses": ["competing"],
    "needs": {"net.name": ["mlp"], "budget.batch": ["task"]},
    "own_nets": True,
    "measures": ["gradients"],
    "repeats": ["epochs"],
}


class VCL(Variational):
    """VCL. Nguyen et al. 2018, eq. 4, in their code: cross-entropy + KL(q‖previous q)/N, from the previous q on.

    The first task starts from its maximum-likelihood solution, with the prior N(0, 1). Where training is masked, the
    head of each new task has that prior too, and starts from the net's initial weights with the initial variance. The
    heads of other tasks do not change.

    Parameters
    ----------
    epochs, batch, initial_variance, samples, prediction_samples: as of `Variational`; epochs and batch also hold for
        the maximum-likelihood solution.
    prior_weight: the factor of KL (`desiderata`, B.1.4).

    Measures `gradients`, {batches, size, repetitions}: `early_gradients`, just before the second task is learnt.
    """

    def __init__(self, setting: Setting, *, prior_weight: float, **options: Any):
        super().__init__(setting, **options)
        first, second = (setting.items[0, setting.step(t)].unique() for t in (0, min(1, len(setting.ends) - 1)))
        if len(setting.ends) > 1 and torch.equal(first, second):
            raise ScenarioError("order.epochs: VCL learns a task in one step, in epochs of its own; leave them out")
        self.prior_weight, self.gradients = prior_weight, setting.evaluation.get("gradients")
        self.prior = standard(self.posterior)
        self.measured: list[dict] = []  # one for each seed

    def observe(self, t: int, x: torch.Tensor, y: torch.Tensor) -> Observed:
        logits, mask = self.posterior.mean_logits(x), self.mask(t)
        loss = self.loss(t, logits, y)
        if t == 0:
            self.fit_mean(x, y, mask, self.batch)
        if t == 1 and self.gradients:
            self.measured = early_gradients(self, self.prior, self.prior_weight, x, y, mask, **self.gradients)
        x, y = self.learnt_of(t, x, y)
        self.fit(self.posterior, self.prior, x, y, mask, self.randomness, self.epochs, self.prior_weight)
        self.prior = self.next_prior(mask)
        self.steps = t + 1
        return Observed(loss, logits)

    def learnt_of(self, t: int, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The items of task t that are learnt after the maximum-likelihood solution."""
        return x, y

    def next_prior(self, mask: torch.Tensor | None) -> Gaussian:
        """The posterior, with N(0, 1) for the heads of tasks to come."""
        q = self.posterior.now
        if mask is None:
            return q
        learnt = self.posterior.parameters_of(mask)
        return Gaussian(*(torch.where(learnt, new, old) for new, old in zip(q, self.prior)))

    def report(self, s: int) -> dict:
        """`gradients`, where they are measured: the result of `early_gradients`."""
        return {"gradients": self.measured[s]} if self.measured else {}
