"""Biased ARTMAP."""

import torch

from clpapers.runs.learner import Learner, Observed, Setting
from clpapers.runs.nearest import best_of_classes
from clpapers.runs.scenario import ScenarioError

DECLARATION = {
    "options": {
        "bias": {"type": "number", "minimum": 0, "examples": [10]},
        "alpha": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1, "examples": [1e-08]},
        "gamma": {"type": "number", "exclusiveMinimum": 0, "examples": [1e-07]},
        "epsilon": {"type": "number", "examples": [-1e-05]},
        "vigilance": {"type": "number", "minimum": 0, "maximum": 1, "examples": [0]},
        "calibration": {"type": "integer", "minimum": 0, "examples": [0]},
    },
    "stackable": False,  # each seed makes its own number of nodes
    "own_nets": True,
    "answers_first": False,
    "where": {"calibration": {0: {"needs": {"scaling": ["unit", "none"]}}}},  # inputs are in [0, 1] as they come
    "grows": True,
}

NODES_AT_ONCE = 64  # nodes whose matches are computed together
UNCOMMITTED = 3.5  # the search covers nodes with T above this multiple of αM, an uncommitted node's: authors' code


class BARTMAP(Learner):
    """Biased ARTMAP. Carpenter & Gaddam 2010, with fast learning (β = 1), as in its authors' code.

    An input a in [0, 1]^M is complement coded, A = (a, 1 - a), |·| being the sum of elements. Node j has a class and a
    weight w_j, initially the input that made it. Nodes are searched by descending T_j = |A∧w_j| + (1-α)(M - |w_j|),
    the earlier of equals first. A node is attended if its match, biased by e, reaches the vigilance ρ:

        (|[w_j - λe]₊ ∧ [A - λe]₊| + γ) / (|[A - λe]₊| + γ) ≥ ρ.

    If it has the right class, it learns, without bias: w_j ← A∧w_j. If not, match tracking raises ρ to its match + ε,
    and attention shifts from matched features: with x = A∧w_j, e_i ← (x_i - |x|/2M) / (1+λ) wherever
    [x_i - λe_i]₊ - |x|/2M > e_i. If no node is left, a new one gets w = A and the class. Each input starts with e = 0
    and ρ = ρ̄, and is seen once. The class with the largest T is the answer.

    It needs no net, and does not predict stream items. T - M is computed from |[w_j - A]₊|, so that α counts in single
    precision.

    Parameters
    ----------
    bias: λ, the strength of the attentional bias. 0 is fuzzy ARTMAP.
    alpha: α, the preference for smaller nodes among those that contain the input.
    gamma: γ, which keeps the match of an input without attended features finite.
    epsilon: ε of match tracking.
    vigilance: the baseline ρ̄.
    calibration: the number of first stream items whose least and greatest value of each element map to 0 and 1; values
        beyond are clamped. 0 leaves inputs unchanged.
    """

    def __init__(
        self,
        setting: Setting,
        *,
        bias: float,
        alpha: float,
        gamma: float,
        epsilon: float,
        vigilance: float,
        calibration: int,
    ):
        super().__init__(setting)
        self.bias, self.alpha, self.gamma, self.epsilon, self.vigilance = bias, alpha, gamma, epsilon, vigilance
        self.device = setting.items.device
        self.M = setting.images.pixels[0].numel()
        self.w = torch.zeros(0, 2 * self.M, device=self.device, dtype=setting.images.dtype)  # [C, 2M]
        self.sizes = torch.zeros(0, device=self.device, dtype=torch.float64)  # [C], M - |w_j|
        self.labels = torch.zeros(0, device=self.device, dtype=torch.int64)  # [C]
        self.edges = None  # least and greatest values, [M] each
        if calibration:
            first = setting.images(setting.items[:, :calibration])[0].flatten(1)
            self.edges = first.amin(dim=0), first.amax(dim=0)

    def observe(self, t: int, x: torch.Tensor, y: torch.Tensor) -> Observed:
        for A, label in zip(self.complement_coded(x), y[0]):
            self.learn(A, label)
        return Observed()

    def complement_coded(self, x: torch.Tensor) -> torch.Tensor:
        """Inputs [1, B, …] → [B, 2M]. ScenarioError where they are not in [0, 1]."""
        a = x[0].flatten(1)
        if self.edges:
            least, greatest = self.edges
            a = ((a - least) / (greatest - least).clamp(min=torch.finfo(a.dtype).tiny)).clamp(0, 1)
        low, high = (float(edge) for edge in a.aminmax())
        if not 0 <= low <= high <= 1:
            raise ScenarioError(
                f"learner bartmap: inputs from {low:.3g} to {high:.3g}, but it needs them in [0, 1]; take scaling unit "
                "for images, non-negative features of length 1 otherwise"
            )
        return torch.cat([a, 1 - a], dim=1)

    def choice(self, A: torch.Tensor) -> torch.Tensor:
        """T [C] of an input [2M], in double precision."""
        outside = (self.w - A).clamp_min_(0).sum(dim=1)  # |w_j| - |A∧w_j|
        return self.M - outside.double() - self.alpha * self.sizes

    def learn(self, A: torch.Tensor, label: torch.Tensor) -> None:
        """Search a node for an input [2M], and let it learn."""
        T = self.choice(A)
        order = T.argsort(descending=True, stable=True)
        order = order[T[order] > UNCOMMITTED * self.alpha * self.M]
        e = torch.zeros_like(A)
        rho: float | torch.Tensor = self.vigilance
        while len(order):
            nodes = order[:NODES_AT_ONCE]
            x = torch.minimum(A, self.w[nodes])
            match = self.match(x, A, e)
            attended = (match >= rho).nonzero()[:, 0]
            if not len(attended):
                order = order[NODES_AT_ONCE:]
                continue
            first = attended[0]
            if self.labels[nodes[first]] == label:
                self.w[nodes[first]] = x[first]
                self.sizes[nodes[first]] = self.size(x[first])
                return
            rho = match[first] + self.epsilon
            e = self.raised(e, x[first])
            order = order[first + 1 :]
        self.w = torch.cat([self.w, A[None]])
        self.sizes = torch.cat([self.sizes, self.size(A)[None]])
        self.labels = torch.cat([self.labels, label[None]])

    def match(self, x: torch.Tensor, A: torch.Tensor, e: torch.Tensor) -> torch.Tensor:
        """The biased match [n] of an input's overlaps x = A∧w [n, 2M] with nodes."""
        kept = ((each - self.bias * e).clamp_min_(0).sum(dim=-1) + self.gamma for each in (x, A))
        return torch.div(*kept)

    def raised(self, e: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """The bias e [2M] after a wrong prediction by an attended node whose overlap with the input is x [2M]."""
        mean = x.mean()
        attended = (x - self.bias * e).clamp_min_(0) - mean > e
        return torch.where(attended, (x - mean) / (1 + self.bias), e)

    def size(self, w: torch.Tensor) -> torch.Tensor:
        """M - |w|, the edges of the box of inputs that a node [2M] contains, summed up."""
        return self.M - w.sum(dtype=torch.float64)

    @torch.no_grad()
    def scores(self, x: torch.Tensor, tasks: torch.Tensor) -> torch.Tensor:
        """The largest T of each class's nodes; -∞ for classes without any."""
        T = torch.stack([self.choice(A) for A in self.complement_coded(x)])
        return best_of_classes(T, self.labels, self.classes)[None]

    def confidence(self, scores: torch.Tensor) -> torch.Tensor:
        """The largest T as a share of its maximum M, reached by the input that made a node."""
        return scores.amax(dim=2) / self.M

    def needed_to_answer(self) -> object:
        return self.w, self.sizes

    def report(self, s: int) -> dict:
        """`nodes`: their number for each class."""
        return {"nodes": torch.bincount(self.labels, minlength=self.classes).tolist()}
