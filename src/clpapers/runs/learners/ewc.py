"""Elastic weight consolidation, online or with a penalty for each task."""

import numpy as np
import torch

from clpapers.randomness import generator
from clpapers.runs.fisher import squared_gradients, squared_mean_gradient
from clpapers.runs.importance import RunningFisher, Tensors, min_max, pull, values, zeros
from clpapers.runs.learner import Learner, Observed, Setting
from clpapers.runs.optimizers import gradients

DECLARATION = {
    "options": {
        "strength": {"type": "number", "minimum": 0, "examples": [10.0, 1.0, 5.0]},
        "gamma": {"type": "number", "minimum": 0, "maximum": 1, "examples": [0.9, 0, 1]},
        "fisher": {
            "oneOf": [
                {"enum": ["last_batch", "last_batch_mean"]},
                {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["samples"],
                    "properties": {
                        "samples": {"type": "integer", "minimum": 1},
                        "labels": {"enum": ["sampled", "every"]},
                    },
                },
                {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["interval", "decay"],
                    "properties": {
                        "interval": {"type": "integer", "minimum": 1},
                        "decay": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
                    },
                },
            ],
            "examples": [
                "last_batch",
                {"interval": 2, "decay": 0.9},
                {"samples": 7},
                "last_batch_mean",
                {"samples": 7, "labels": "every"},
            ],
        },
        "normalise": {"type": "boolean", "examples": [False, True, False]},
        "half": {"type": "boolean", "examples": [True, False, True]},
        "centres": {"enum": ["running", "separate"], "default": "running", "examples": ["running", "separate"]},
    },
    "uses": ["changes", "competing"],
    "without_changes": "single",
    "always_changing": "single",
    "static": True,
}


class EWC(Learner):
    """EWC. Kirkpatrick et al. 2017, eq. 3, with one running centre (Schwarz et al. 2018): L + (λ/2)·Σ F·(θ - θ*)².

    At a task change F ← γ·F + F_new and θ* ← θ. `rules` estimates F_new on the last batch of the ended segment. The
    code of Chaudhry et al. 2019 (`agem`) accumulates squared gradients during the steps. `desiderata`, where a task's
    data remain until it ends, takes some of its items (with γ = 1 and ½ this is Huszár's EWC, 2018).

    Parameters
    ----------
    strength: λ.
    gamma: γ, the factor of the old F; 0 in `agem`.
    fisher: F_new. `last_batch`: the squared gradient of log p(ŷ|x), ŷ being the predicted class, averaged over the
        items of the ended segment's last batch. `last_batch_mean`: the square of these gradients' mean. {samples}: as
        `last_batch`, over so many items of the ended segment, with ŷ sampled from p (`desiderata`). {interval, decay}:
        the options of a `RunningFisher`.
        With `labels: every` the mean over all ŷ, weighted by p (van de Ven et al. 2022).
    normalise: whether the penalty uses each seed's F scaled to [0, 1], as in `agem`.
    half: whether the penalty is λ/2 times the sum, as printed, or λ times, as in `agem`.
    centres: one `running` centre, as above; or `separate` ones, a penalty for each ended segment, as in Kirkpatrick et
        al. 2017 and in van de Ven et al. 2022 (γ does not count).
    """

    def __init__(
        self,
        setting: Setting,
        *,
        strength: float,
        gamma: float,
        fisher: str | dict,
        normalise: bool,
        half: bool,
        centres: str = "running",
    ):
        super().__init__(setting)
        self.strength, self.gamma, self.normalise = strength if half else 2 * strength, gamma, normalise
        self.separate = centres == "separate"
        self.samples: int | None = None
        self.running: RunningFisher | None = None
        self.of_mean = fisher == "last_batch_mean"
        if isinstance(fisher, dict) and "samples" in fisher:
            self.samples, self.every = fisher["samples"], fisher.get("labels") == "every"
            self.rngs = [generator(seed, "fisher") for seed in setting.seeds]
        elif isinstance(fisher, dict):
            self.running = RunningFisher(self.parameters, **fisher)
        self.fisher: Tensors | None = None  # F
        self.pulls: list[tuple[Tensors, Tensors]] = []  # the importances and the centre of each penalty
        self.last: torch.Tensor | None = None
        self.begun = 0  # the task's first step

    def task_change(self, t: int) -> None:
        if self.samples:
            new = self.sampled(range(self.begun, t))
        elif self.running:
            new = self.running.value
            self.running.clear()
        else:
            estimate = squared_mean_gradient if self.of_mean else squared_gradients
            assert self.last is not None  # a batch comes before a task change
            new = estimate(self.net, self.last, self.mask(t - 1))
        self.fisher = torch._foreach_add(
            new, self.fisher or zeros(self.parameters), alpha=0 if self.separate else self.gamma
        )
        importance = min_max(self.fisher, len(self.setting.seeds)) if self.normalise else self.fisher
        self.pulls = [*(self.pulls if self.separate else ()), (importance, values(self.parameters))]
        self.begun = t

    def sampled(self, steps: range) -> list[torch.Tensor]:
        """F_new from `samples` distinct items of some steps; from all where there are fewer."""
        seen = slice(self.setting.step(steps[0]).start, self.setting.step(steps[-1]).stop)
        assert self.samples is not None
        drawn, numbers = [], []
        for own, rng in zip(self.setting.items[:, seen].cpu().numpy(), self.rngs):
            each = np.unique(own)
            drawn.append(rng.choice(each, min(self.samples, len(each)), replace=False))
            numbers.append(rng.random(len(drawn[-1])))
        items, uniform = (torch.from_numpy(np.stack(part)).to(self.setting.items.device) for part in (drawn, numbers))
        x, mask = self.setting.images(items), self.mask(steps[-1])
        return squared_gradients(self.net, x, mask, None if self.every else uniform, every=self.every)

    def graph_key(self, t: int) -> bool:
        return self.running is not None and self.running.updates_before(t - self.begun)

    def observe(self, t: int, x: torch.Tensor, y: torch.Tensor) -> Observed:
        if self.running and self.running.updates_before(t - self.begun):
            self.running.update()
            self.running.clear()
        logits = self.net(x)
        loss = self.loss(t, logits, y)
        self.optimizer.gradient(loss)
        if self.running:
            self.running.add(gradients(self.parameters))
        for importance, centre in self.pulls:
            pull(self.parameters, importance, centre, self.strength)
        self.optimizer.step()
        if not self.running and not self.samples:
            self.last = x
        return Observed(loss, logits)
