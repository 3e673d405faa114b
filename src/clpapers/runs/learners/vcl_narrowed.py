"""VCL whose posterior is narrow again as each task begins."""

import math
from typing import Any

import torch

from clpapers.runs.learner import Observed, Setting
from clpapers.runs.learners.vcl import VCL

DECLARATION = {
    "like": "vcl",
    "options": {
        "initial_variance": {"type": "number", "exclusiveMinimum": 0, "examples": [1e-03]},
        "task_variance": {"type": "number", "exclusiveMinimum": 0, "examples": [1e-06]},
    },
}


class VCLNarrowed(VCL):
    """VCL that begins each task but the first with small variances: a reading of `desiderata`, B.2.

    "The parameters are initialized with the mean of a pre-trained maximum likelihood model and a small initial
    variance". Means go on from the last task, whose posterior, variances and all, is the prior. Where training is
    masked, other tasks' heads stay as they are.

    Parameters
    ----------
    epochs, batch, initial_variance, samples, prediction_samples, prior_weight: as of VCL.
    task_variance: of every parameter as a task begins.

    Measures `gradients` as VCL does, from the small variances on.
    """

    def __init__(self, setting: Setting, *, task_variance: float, **options: Any):
        super().__init__(setting, **options)
        self.log_variance = math.log(task_variance)

    def observe(self, t: int, x: torch.Tensor, y: torch.Tensor) -> Observed:
        if t:
            self.narrow(self.mask(t))
        return super().observe(t, x, y)

    @torch.no_grad()
    def narrow(self, mask: torch.Tensor | None) -> None:
        """Give the parameters behind the classes `mask` [S, C], all where it is None, the variance of a beginning."""
        here = self.posterior.log_variance
        counted = torch.ones_like(here, dtype=torch.bool) if mask is None else self.posterior.parameters_of(mask)
        here.masked_fill_(counted, self.log_variance)
