"""GeppNet, a re-implementation."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
import torch.nn.functional as F

from clpapers.randomness import generator
from clpapers.runs.learner import Learner, Observed, Setting
from clpapers.runs.nearest import squared_distances

DECLARATION = {
    "options": {
        "side": {"type": "integer", "minimum": 1, "examples": [5]},
        "start": {"type": "integer", "minimum": 1, "examples": [3]},
        "noise": {"type": "number", "exclusiveMinimum": 0, "examples": [0.1]},
        "rates": {
            "type": "array",
            "minItems": 2,
            "maxItems": 2,
            "items": {"type": "number", "exclusiveMinimum": 0},
            "examples": [[0.2, 0.01]],
        },
        "radii": {
            "type": "array",
            "minItems": 2,
            "maxItems": 2,
            "items": {"type": "number", "exclusiveMinimum": 0},
            "examples": [[2, 0.5]],
        },
        "settling": {"type": "number", "exclusiveMinimum": 0, "maximum": 1, "examples": [0.3]},
        "sharpness": {"type": "number", "minimum": 1, "examples": [4]},
        "margin": {"type": "number", "minimum": 0, "examples": [0.3]},
        "readout_rate": {"type": "number", "exclusiveMinimum": 0, "examples": [0.05]},
        "replay": {"type": "integer", "minimum": 0, "examples": [2, 0]},
    },
    "keeps": "all items so far",
    "where": {"replay": {0: {"keeps": ""}}},
    "own_nets": True,
    "answers_first": False,
}


class GeppNet(Learner):
    """GeppNet. Gepperth & Karaoguz 2016: a self-organising map whose activity a linear readout classifies.

    A re-implementation from descriptions, since no public code is known (docs/decisions/streaming.md). For each item x
    of the stream, and then for some that it has stored, with a unit's prototype w_j, d_j = ‖x - w_j‖ and b the
    best-matching unit:

        κ ← mean of d_b over all items learnt so far;  z_j = exp(-d_j² / 2κ²);  z_j ← z_b (z_j / z_b)^p
        o = V z;  V ← V + ε_P (t - o) zᵀ
        if o's arg-max is wrong, or its two largest are less than θ apart:  w_j ← w_j + ε exp(-g_j² / 2σ²) (x - w_j)

    t being one at the item's class and g_j the distance on the grid from the best-matching unit. It needs no net, and
    does not predict stream items.

    Parameters
    ----------
    side: units along a side of the square grid.
    start: the number of first items. Each, plus noise, initialises the prototypes of an equal, random share of the
        units, which take part from that item on.
    noise: standard deviation of that noise, in units of the item's root mean square.
    rates, radii: ε and σ, in units of the grid, at the first item and from the end of settling on.
    settling: share of the stream during which they decay exponentially.
    sharpness: p, which keeps the best-matching unit's activity and weakens the others'.
    margin: θ.
    readout_rate: ε_P.
    replay: stored items that are learnt after each item of the stream, drawn uniformly from all before it, with
        repetitions. Rates and radii decay with the stream's items alone.
    """

    def __init__(
        self,
        setting: Setting,
        *,
        side: int,
        start: int,
        noise: float,
        rates: Sequence[float],
        radii: Sequence[float],
        settling: float,
        sharpness: float,
        margin: float,
        readout_rate: float,
        replay: int,
    ):
        super().__init__(setting)
        self.rates, self.radii = rates, radii
        self.sharpness, self.margin, self.readout_rate = sharpness, margin, readout_rate
        self.settling = settling * int(setting.ends[-1])  # items
        device, dtype = setting.items.device, setting.images.dtype
        seeds, units, features = len(setting.seeds), side**2, setting.images.pixels[0].numel()
        drawn = [generator(seed, "prototypes") for seed in setting.seeds]
        born = np.stack([rng.permutation(units) * start // units for rng in drawn])
        first = np.stack([noise * rng.standard_normal((units, features), np.float32) for rng in drawn])
        self.born = torch.from_numpy(born).to(device)  # [S, N], each unit's first item
        self.w = torch.from_numpy(first).to(device, dtype)  # [S, N, D]; noise before a unit's first item
        self.grid = torch.cartesian_prod(*2 * [torch.arange(side, device=device)])  # [N, 2]
        self.V = torch.zeros(seeds, self.classes, units, device=device, dtype=dtype)
        self.kappa = torch.zeros(seeds, device=device, dtype=dtype)
        self.replay, self.rngs = replay, [generator(seed, "replay") for seed in setting.seeds]
        self.items = 0  # of the stream, seen
        self.learnt = 0  # replayed ones too

    def observe(self, t: int, x: torch.Tensor, y: torch.Tensor) -> Observed:
        for item, label in zip(x.flatten(2).unbind(1), y.unbind(1)):
            self.give_birth(item)
            self.learn(item, label)
            for stored, stored_label in self.replayed():
                self.learn(stored, stored_label)
            self.items += 1
        return Observed()

    def replayed(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Stored items, [S, D], and their classes [S]."""
        if not (self.replay and self.items):
            return
        positions = np.stack([rng.integers(self.items, size=self.replay) for rng in self.rngs])
        drawn = torch.from_numpy(positions).to(self.setting.items.device)
        x, y = (of_stream.gather(1, drawn) for of_stream in (self.setting.items, self.setting.labels))
        yield from zip(self.setting.images(x).flatten(2).unbind(1), y.unbind(1))

    @torch.no_grad()
    def give_birth(self, x: torch.Tensor) -> None:
        """Place the units that take part from this item on, [S, D]."""
        newborn = (self.born == self.items)[..., None]
        if newborn.any():
            scale = x.square().mean(dim=1).sqrt()[:, None, None]
            self.w = torch.where(newborn, x[:, None] + scale * self.w, self.w)

    @torch.no_grad()
    def learn(self, x: torch.Tensor, y: torch.Tensor) -> None:
        """Learn one item of each seed, [S, D], of class [S]."""
        squares = (self.w - x[:, None]).square_().sum(dim=2).masked_fill_(self.born > self.items, torch.inf)
        nearest, unit = squares.min(dim=1)
        self.learnt += 1
        self.kappa += (nearest.sqrt() - self.kappa) / self.learnt
        z = self.activity(squares)
        o = (self.V * z[:, None]).sum(dim=2)
        self.V += self.readout_rate * (F.one_hot(y, self.classes) - o)[..., None] * z[:, None]
        (top, second), answer = o.topk(2).values.unbind(1), o.argmax(dim=1)
        moves = (answer != y) | (top - second < self.margin)
        if moves.any():
            apart = (self.grid - self.grid[unit][:, None]).square().sum(dim=2).to(x.dtype)  # [S, N]
            near = torch.exp(apart / (-2 * self.now(self.radii) ** 2)).masked_fill_(self.born > self.items, 0)
            self.w.lerp_(x[:, None], (self.now(self.rates) * near * moves[:, None])[..., None])

    def now(self, ends: Sequence[float]) -> float:
        """The value at the present item of a quantity that decays from the first to the second of `ends`."""
        first, last = ends
        return first * (last / first) ** min(self.items / self.settling, 1)

    def activity(self, squares: torch.Tensor) -> torch.Tensor:
        """z of squared distances to the prototypes [S, …, N]."""
        best = squares.amin(dim=-1, keepdim=True)
        kappa = self.kappa.view(-1, *[1] * (squares.dim() - 1))
        return torch.exp((best + self.sharpness * (squares - best)) / (-2 * kappa.square()))

    @torch.no_grad()
    def scores(self, x: torch.Tensor, tasks: torch.Tensor) -> torch.Tensor:
        """The readout o."""
        squares = torch.stack([squared_distances(*each) for each in zip(x.flatten(2), self.w)])
        z = self.activity(squares.masked_fill_((self.born >= self.items)[:, None], torch.inf))
        return torch.stack([z @ V.T for z, V in zip(z, self.V)])

    def confidence(self, scores: torch.Tensor) -> torch.Tensor:
        """The margin between the two largest outputs, which decides whether the map learns."""
        top, second = scores.topk(2, dim=2).values.unbind(2)
        return top - second

    def memory_use(self, s: int) -> dict:
        return self.stored(self.setting.labels[s, : self.items if self.replay else 0])

    def needed_to_answer(self) -> object:
        return self.w, self.V, self.kappa
