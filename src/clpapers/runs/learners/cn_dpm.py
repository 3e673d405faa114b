"""Continual neural Dirichlet process mixture."""

from typing import Any

import torch
import torch.nn.functional as F

from clpapers.randomness import generator
from clpapers.runs.learner import Learner, Observed, Setting
from clpapers.runs.losses import cross_entropy
from clpapers.runs.nets.cn_dpm_expert import Expert, Features

DECLARATION = {
    "options": {
        "log_alpha": {"type": "number", "examples": [-20]},
        "latent": {"type": "integer", "minimum": 1, "examples": [3]},
        "samples": {"type": "integer", "minimum": 1, "examples": [4]},
        "vae_width": {"type": "integer", "minimum": 1, "examples": [4]},
        "vae_extension": {"type": "integer", "minimum": 1, "examples": [2]},
        "classifier_width": {"type": "integer", "minimum": 1, "examples": [3]},
        "classifier_extension": {"type": "integer", "minimum": 1, "examples": [1]},
        "stm": {"type": "integer", "minimum": 1, "examples": [12]},
        "sleep_batch": {"type": "integer", "minimum": 1, "examples": [6]},
        "sleep_vae_steps": {"type": "integer", "minimum": 0, "examples": [6]},
        "sleep_classifier_steps": {"type": "integer", "minimum": 0, "examples": [4]},
        "vae_learning_rate": {"type": "number", "exclusiveMinimum": 0, "examples": [0.003]},
        "classifier_learning_rate": {"type": "number", "exclusiveMinimum": 0, "examples": [0.01]},
        "decay": {"type": "number", "exclusiveMinimum": 0, "maximum": 1, "examples": [0.2]},
        "weight_decay": {"type": "number", "minimum": 0, "examples": [1e-05]},
        "clip": {"type": "number", "exclusiveMinimum": 0, "examples": [0.5]},
        "chill": {"type": "number", "exclusiveMinimum": 0, "maximum": 1, "examples": [0.1]},
    },
    "needs": {"scaling": ["unit"]},
    "image_sides": 4,
    "stackable": False,  # each seed grows its own number of experts
    "own_nets": True,
    "repeats": ["sleep_vae_steps", "sleep_classifier_steps"],
    "counts_items": ["stm"],
}


class CNDPM(Learner):
    """CN-DPM. Lee et al. 2020, algorithm 1, as in its authors' code: a mixture of experts that grows with the stream.

    Expert k has a density p(x), a classifier p(y|x) and a count of its items. An item is novel, and goes to a
    short-term memory, if the joint count_k · p_k(x) · p_k(y|x) is largest for expert 0, which is never trained.
    Otherwise it trains the experts, each by its share in the sum of joints. When the memory is full, a new expert
    learns from it, on top of its predecessors' features, and the memory is emptied ("sleep"). Items left at the end
    are never learnt.
    Needs no tasks, and no net of the cell. Images are scaled to [0, 1] (`unit`).

    Unlike in the code, an item either counts for the experts or is novel, never both. All experts are compared under
    the same draws of the latent, which all images share at evaluation, so that answers are independent.

    Parameters
    ----------
    log_alpha: log-count of expert 0; a lower one makes fewer items novel.
    latent, samples: dimensions of the auto-encoders' latents, and draws of a latent for an ELBO.
    vae_width, classifier_width: widths of the first expert's nets (nets/cn_dpm_expert.py).
    vae_extension, classifier_extension: widths that each later expert adds.
    stm: capacity of the short-term memory, in items.
    sleep_batch: items a step, drawn with replacement, while a new expert learns.
    sleep_vae_steps, sleep_classifier_steps: steps of each of its nets.
    vae_learning_rate, classifier_learning_rate: of each expert's Adam.
    decay: factor of its learning rates after sleep.
    weight_decay: weight, in sleep, of the sum of a net's squared parameters.
    clip: the largest magnitude of an element of a gradient.
    chill: the temperature of p(y|x) in the joint that assigns items.
    """

    def __init__(
        self,
        setting: Setting,
        *,
        log_alpha: float,
        latent: int,
        samples: int,
        vae_width: int,
        vae_extension: int,
        classifier_width: int,
        classifier_extension: int,
        stm: int,
        sleep_batch: int,
        sleep_vae_steps: int,
        sleep_classifier_steps: int,
        vae_learning_rate: float,
        classifier_learning_rate: float,
        decay: float,
        weight_decay: float,
        clip: float,
        chill: float,
    ):
        super().__init__(setting)
        self.log_alpha, self.chill, self.capacity = log_alpha, chill, stm
        self.sleep_batch = sleep_batch
        self.sleep_steps = {"vae": sleep_vae_steps, "classifier": sleep_classifier_steps}
        self.rates = {"vae": vae_learning_rate, "classifier": classifier_learning_rate}
        self.decay, self.weight_decay, self.clip = decay, weight_decay, clip
        self.widths: dict[str, Any] = {  # arguments of `Expert`
            "latent": latent,
            "vae": (vae_width, vae_extension),
            "classifier": (classifier_width, classifier_extension),
        }
        self.device, self.dtype = setting.items.device, setting.images.dtype
        self.draws = (samples, latent)
        self.rng = self.source("expert noise")
        self.evaluation_noise = self.noise(self.source("evaluation noise"))
        self.experts = [self.expert(0).requires_grad_(False)]
        self.optimizers: list[torch.optim.Adam | None] = [None]
        self.counts = torch.zeros(0, device=self.device, dtype=self.dtype)  # [K], of experts 1 … K
        self.stm = torch.zeros(0, device=self.device, dtype=torch.int64)  # stream positions
        self.grown = [[0, 0]]  # items seen, number of experts

    def expert(self, k: int) -> Expert:
        """Expert number k, untrained."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.setting.init(f"expert {k}")[0])
            expert = Expert(k, self.setting.images.shape, self.classes, **self.widths)
        return expert.to(self.device, self.dtype)

    def source(self, purpose: str) -> torch.Generator:
        """A generator for a purpose, on the training device."""
        return torch.Generator(self.device).manual_seed(self.setting.init(purpose)[0])

    def noise(self, source: torch.Generator, *items: int) -> torch.Tensor:
        """Standard normal draws of the latent, [*items, samples, latent]."""
        return torch.randn(*items, *self.draws, generator=source, device=self.device, dtype=self.dtype)

    def observe(self, t: int, x: torch.Tensor, y: torch.Tensor) -> Observed:
        elbos, log_ps = self.assess(x[0], self.noise(self.rng, x.shape[1]))
        logits = self.predict(elbos, log_ps)
        novel, shares = self.assign(elbos, log_ps, y[0])
        likelihoods = [elbo - F.nll_loss(log_p, y[0], reduction="none") for elbo, log_p in zip(elbos, log_ps)]
        self.learn(shares, likelihoods[1:])
        now = self.setting.step(t)
        self.stm = torch.cat([self.stm, torch.arange(now.start, now.stop, device=self.device)[novel]])
        if len(self.stm) >= self.capacity:
            self.sleep()
            self.grown.append([now.stop, len(self.counts)])
        return Observed(cross_entropy(logits, y), logits)

    def assess(self, x: torch.Tensor, noise: torch.Tensor) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """Experts 0 … K on x [B, C, H, W]: an ELBO [B] and log p(y|x) [B, classes] each."""
        elbos, log_ps, before = [], [], (None, None)
        for k, expert in enumerate(self.experts):
            elbo, log_p, features = expert(x, noise, before)
            elbos.append(elbo)
            log_ps.append(log_p)
            if k > 0:
                before = features
        return elbos, log_ps

    @torch.no_grad()
    def predict(self, elbos: list[torch.Tensor], log_ps: list[torch.Tensor]) -> torch.Tensor:
        """log p(y|x) of the mixture of experts 1 … K, [1, B, classes]; uniform before there are any."""
        if len(self.counts) == 0:
            return torch.zeros_like(log_ps[0])[None]
        return mixture(self.counts.log(), torch.stack(elbos[1:], dim=1), torch.stack(log_ps[1:], dim=1))[None]

    @torch.no_grad()
    def assign(
        self, elbos: list[torch.Tensor], log_ps: list[torch.Tensor], y: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Whether items are novel, bool [B], and the experts' shares of the others, [B, K]."""
        chilled = [-F.cross_entropy(log_p / self.chill, y, reduction="none") for log_p in log_ps]
        log_counts = F.pad(self.counts.log(), (1, 0), value=self.log_alpha)
        return responsibilities(log_counts + torch.stack(elbos, dim=1) + torch.stack(chilled, dim=1))

    def learn(self, shares: torch.Tensor, likelihoods: list[torch.Tensor]) -> None:
        """Train every expert with a share on the items' log-likelihoods [B], weighted by its shares [B, K]."""
        used = shares.any(dim=0).nonzero()[:, 0].tolist()
        self.counts += shares.sum(dim=0)
        for k in used:  # no expert's likelihood reaches another's parameters
            optimizer = self.optimizers[k + 1]
            assert optimizer is not None  # as every expert but number 0 has one
            self.descend(optimizer, -(shares[:, k] * likelihoods[k]).sum())

    def descend(self, optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> None:
        """One step of an expert, its gradient clipped."""
        optimizer.zero_grad()
        loss.backward()
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        torch.nn.utils.clip_grad_value_(parameters, self.clip)
        optimizer.step()

    def sleep(self) -> None:
        """Train a new expert on the short-term memory, and empty it."""
        k, x = len(self.experts), self.setting.images(self.setting.items[:, self.stm])[0]
        y = self.setting.labels[0, self.stm]
        expert, rng = self.expert(k), generator(self.setting.seeds[0], f"sleep {k}")
        losses = {
            "vae": lambda rows, before: -expert.vae.elbo(x[rows], self.noise(self.rng, len(rows)), before)[0].mean(),
            "classifier": lambda rows, before: F.nll_loss(expert.classifier(x[rows], before)[0], y[rows]),
        }
        groups = [{"params": list(getattr(expert, name).parameters()), "lr": self.rates[name]} for name in losses]
        optimizer = torch.optim.Adam(groups, fused=True)
        for name, loss in losses.items():  # one net after the other; a net without gradient does not move
            net, before = getattr(expert, name), self.inherited(name, x)
            draws = rng.integers(len(x), size=(self.sleep_steps[name], self.sleep_batch))
            for rows in torch.from_numpy(draws).to(self.device):
                inherited = before and [level[rows] for level in before]
                squares = sum(p.square().sum() for p in net.parameters())
                self.descend(optimizer, loss(rows, inherited) + self.weight_decay * squares)
        for group in optimizer.param_groups:
            group["lr"] *= self.decay
        self.experts.append(expert)
        self.optimizers.append(optimizer)
        self.counts = F.pad(self.counts, (0, 1), value=len(x))
        self.stm = self.stm[:0]

    @torch.no_grad()
    def inherited(self, net: str, x: torch.Tensor) -> Features | None:
        """The predecessors' features of x [N, …] for a new expert's net, constant during sleep."""
        before = None
        for expert in self.experts[1:]:
            before = getattr(expert, net).climb(x, before)[1]
        return before

    @torch.no_grad()
    def scores(self, x: torch.Tensor, tasks: torch.Tensor) -> torch.Tensor:
        return self.predict(*self.assess(x[0], self.evaluation_noise))

    def needed_to_answer(self) -> object:
        return self.experts, self.counts, self.evaluation_noise

    def memory_use(self, s: int) -> dict:
        return self.stored(self.setting.labels[0, self.stm])

    def report(self, s: int) -> dict:
        """`experts`: pairs of items seen and number of experts from then on; `counts`: items of each expert."""
        parameters = sum(p.numel() for expert in self.experts[1:] for p in expert.parameters())
        return {"experts": self.grown, "counts": self.counts.tolist(), "parameters": parameters}


def responsibilities(joints: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Whether items are novel, bool [B], and shares [B, K], from the log joints of experts 0 … K, [B, 1+K].

    An item is novel where expert 0's joint is the largest; its shares are zero. The others' shares sum to one.
    """
    novel = joints.argmax(dim=1) == 0
    return novel, joints[:, 1:].softmax(dim=1).masked_fill(novel[:, None], 0)


def mixture(log_counts: torch.Tensor, elbos: torch.Tensor, log_ps: torch.Tensor) -> torch.Tensor:
    """log Σ_k p(k|x) p(y|x,k): log-counts [K], ELBOs [B, K] and log p(y|x,k) [B, K, classes] → [B, classes].

    The posterior p(k|x) is taken first: beside an ELBO of thousands, a float32 would lose the classes' differences.
    """
    return ((log_counts + elbos).log_softmax(dim=1)[..., None] + log_ps).logsumexp(dim=1)
