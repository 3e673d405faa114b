"""EWC, SI, MAS and RWALK: importances by hand; all training against plain loops."""

import pytest
import torch
from test_fisher import squares
from tiny import CHUNKS, CNN, MLP, RANDOM, Way, assert_same_net, cross_entropy, images, made, split, stream, two_tasks
from torch import nn

from clpapers.randomness import generator
from clpapers.runs.importance import EPSILON, min_max
from clpapers.runs.nets.stacked import stack

RUNNING = {"interval": 3, "decay": 0.9}
EWC = {"name": "ewc", "strength": 5.0, "gamma": 0.0, "fisher": RUNNING, "normalise": True, "half": False}
EWC_OF_RULES = EWC | {"strength": 40.0, "gamma": 0.5, "fisher": "last_batch", "normalise": False, "half": True}
PI = {"name": "si", "strength": 0.1, "damping": 1e-3, "gradient": "task", "clip": True}
MAS = {"name": "mas", "strength": 2.0, "per": "batch", "reset": True}
MAS_PUBLISHED = MAS | {"per": "item", "reset": False}
RWALK = {"name": "rwalk", "strength": 1.0, "damping": 1e-3, "interval": 3, "decay": 0.9, "published": False}
ALL = {
    "ewc": EWC,
    "pi": PI,
    "mas": MAS,
    "rwalk": RWALK,
    "mas-published": MAS_PUBLISHED,
    "rwalk-published": RWALK | {"published": True},
    "ewc-of-rules": EWC_OF_RULES,
    "ewc-of-the-mean": EWC_OF_RULES | {"fisher": "last_batch_mean"},
    "ewc-of-samples": EWC_OF_RULES | {"fisher": {"samples": 9}, "gamma": 1},
    "ewc-separate": EWC_OF_RULES | {"fisher": {"samples": 99, "labels": "every"}, "centres": "separate"},
    "si-of-rules": PI | {"strength": 5.0, "damping": 0.1, "gradient": "whole", "clip": False},
}

# --- by hand: logistic regression on two pixels --------------------------------------------------------------
#
# Two weights w and logits (w·x, 0). Item A is (1, 0) of class 0, item B is (1/5, 2/5) of class 1. Where w·x = 0 both
# classes have p = 1/2, so that the cross-entropy's gradient of w is g_A = -x/2 = (-1/2, 0), g_B = x/2 = (1/10, 1/5).

A, B = 0, 1


def by_hand(learner, indices, boundaries, centres, steps, **budget):
    """Each step begins at given weights and ends where it is expected, if told; `centres` are the weights at a change.

    Returns the learner.
    """
    data = images(classes=2, items=1, shape=(1, 2, 1), test_items=1)
    data.train_x[:] = torch.tensor([[255, 0], [51, 102]]).view(2, 1, 2, 1).numpy()
    spec = two_tasks(learner, MLP, oracle=CHUNKS, order=RANDOM, **{"batch": 1, "learning_rate": 0.5} | budget)

    def net():
        linear = nn.Linear(2, 1, bias=False)
        nn.init.zeros_(linear.weight)
        return nn.Sequential(nn.Flatten(), linear, nn.ConstantPad1d((0, 1), 0))

    way = Way(spec, data, [stream(indices, 0, boundaries)], build=lambda seeds: stack(net, seeds).double())
    for t, (start, *end) in enumerate(steps):
        if way.changes[t]:
            place(way, *centres.pop(0))
            way.learner.task_change(t)
        place(way, *start)
        way.learner.observe(t, *way.batch(t))
        if end:
            near(way.learner.parameters, *end[0])
    return way.learner


def place(way, *w):
    with torch.no_grad():
        way.learner.parameters[0].copy_(torch.tensor([w], dtype=torch.float64))


def near(tensors, *expected):
    torch.testing.assert_close(tensors[0].detach().flatten(), torch.tensor(expected, dtype=torch.float64))


NAN, NOWHERE = float("nan"), (0, 0)


def test_running_ewc_by_hand():
    """g_A² = (1/4, 0), g_B² = (1/100, 1/25); F is updated before steps 1, 3 and 5, K = 2 and α = 3/4.

    F = 3/4·(g_A²)/2 = (3/32, 0), then 1/4·F + 3/4·(g_B² + g_A²)/2 = (3/128 + 3/8·26/100, 3/8·1/25). Away from θ* = 0
    by d the penalty has the gradient 2λF·d, 2λ = 1/4. With γ = 0 the next change keeps no old F: it is 1/4·F + 3/32 by
    step 4 alone, as step 3's square was cleared.
    """
    learner = EWC | {"strength": 1 / 8, "fisher": {"interval": 2, "decay": 3 / 4}, "normalise": False}
    f, g = 3 / 128 + 3 / 8 * 26 / 100, 3 / 200
    steps = [
        *4 * [(NOWHERE,)],
        ((0, 3), (1 / 4, 3 - 1 / 2 * 1 / 4 * g * 3)),
        ((2, -1), (2 - 1 / 2 * (1 / 10 + 1 / 4 * f * 2), -1 - 1 / 2 * (1 / 5 - 1 / 4 * g))),  # B has w·x = 0 here too
        ((2, -1), (2 - 1 / 2 * (1 / 10 + 1 / 4 * (f / 4 + 3 / 32) * 2), -1 - 1 / 2 * (1 / 5 - 1 / 4 * g / 4))),
    ]
    by_hand(learner, [A, B, A, A, A, B, B], [4, 6], [NOWHERE, NOWHERE], steps)


@pytest.mark.parametrize("clip", [True, False])
@pytest.mark.parametrize("gradient", ["task", "whole"])
def test_pi_by_hand(gradient, clip):
    """A moves w by (1/4, 0), ω = (1/8, 0); B by -(1/20, 1/10), ω = (13/100, 1/50). From θ̃ = 0 to (1/4, -1/2) it is
    (1/16, 1/4) squared: with ξ = 1/16, Ω = (1.04, 0.064).

    Then B at w = 0 has the penalty's gradient 2Ω·(-1/4, 1/2) = (-0.52, 0.064), the whole one is (-0.42, 0.264), the
    step (0.21, -0.132). Against g_B the first weight's ω is -0.021 and is clipped; the second's is 0.0264.
    """
    learner = PI | {"strength": 1.0, "damping": 1 / 16, "gradient": gradient, "clip": clip}
    path = (-0.021, 0.0264) if gradient == "task" else (0.42**2 / 2, 0.264**2 / 2)
    first = 0.0 if clip and gradient == "task" else path[0] / (0.04**2 + 1 / 16)
    omega = 1.04 + first, 0.064 + path[1] / (0.368**2 + 1 / 16)
    end = -1 / 2 * (-1 / 2 + 2 * omega[0] * -0.21), 1 - 1 / 2 * 2 * omega[1] * (1 + 0.132)
    steps = [(NOWHERE, (1 / 4, 0)), (NOWHERE, (-1 / 20, -1 / 10)), (NOWHERE, (0.21, -0.132)), ((0, 1), end)]
    by_hand(learner, [A, B, B, A], [2, 3], [(1 / 4, -1 / 2), (0.21, -0.132)], steps)


@pytest.mark.parametrize("reset", [True, False])
@pytest.mark.parametrize("per", ["batch", "item"])
def test_mas_by_hand(per, reset):
    """∂(w·x)²/∂w = 2(w·x)x is (2, 0) for A and -(0.24, 0.48) for B at w = (1, -2): together (1.76, -0.48).

    The first task is {A, B} and {A}, three items; the second is B alone.
    """
    first = (1.76 if per == "batch" else 2.24) / 3 + 2 / 3, 0.48 / 3
    second = 0.24 + (not reset) * first[0], 0.48 + (not reset) * first[1]
    steps = [
        *2 * [(NOWHERE,)],
        (NOWHERE, (-1 / 2 * (1 / 10 - 2 * first[0]), -1 / 2 * (1 / 5 + 4 * first[1]))),
        (NOWHERE, (-1 / 2 * (-1 / 2 - 2 * second[0]), -1 / 2 * 4 * second[1])),
    ]
    learner = MAS | {"strength": 1.0, "per": per, "reset": reset}
    by_hand(learner, [A, B, A, B, A], [3, 4], 2 * [(1, -2)], steps, batch=2)


@pytest.mark.parametrize("published", [False, True])
def test_rwalk_by_hand(published):
    """K = 2, α = 1/2, ξ = 1/16, updates before steps 1, 3 and 5; ω and g² as for PI and EWC.

    Before step 1: ω = (1/8, 0), F = 0, so S = (2, 0), and F = (1/4, 0)/4 = (1/16, 0). Before step 3: ω = (0.13, 0.02),
    θ - θ' = (1, -1/2), so that S gains 0.13/(1/16 + 1/16) and 0.02/(1/16), and F = F/2 + (2·g_A² + g_B²)/4.
    Published, the first denominator is 1/32 + 1/16, and only the squares g_A² + g_B² since step 1 count.
    The second task begins at θ* = (1, 0); from w = 0 A's g_A and the penalty's 2λ·(1 + 1)·(-1) = -1/2 move w by
    (1/2, 0), which is (1/4, 0) along the former.
    """
    options = {"strength": 1 / 8, "damping": 1 / 16, "interval": 2, "decay": 1 / 2, "published": published}
    steps = [*3 * [(NOWHERE,)], ((1, -1 / 2),), (NOWHERE, (1 / 2, 0)), ((1 / 2, 0),), (NOWHERE,)]
    learner = by_hand(RWALK | options, [A, B, A, B, A, A, A], [4, 6], [(1, 0), (1 / 2, 0)], steps)
    score = 2 + 0.13 / (3 / 32 if published else 1 / 8), 0.32
    fisher = 1 / 32 + (0.26 if published else 0.51) / 4
    gain = 1 / 4 / ((1 / 2 if published else 1) * fisher / 4 + 1 / 16)
    mean = (score[0] + gain) / 2, 0.32 / 2
    near(learner.score, *(mean if published else (score[0] + mean[0], 0.32 + mean[1])))


@pytest.mark.parametrize(
    ("importance", "seeds", "expected"),
    [
        # seed 0 holds 1, 3 and 5, seed 1 equal numbers, seed 2 something that is none
        (
            ([[1.0, 3.0], [7.0, 7.0], [1.0, NAN]], [[[5.0]], [[7.0]], [[2.0]]]),
            3,
            ([0, 0.5, 0, 0, NAN, NAN], [1, 0, NAN]),
        ),
        (([1.0, 3.0], [[5.0]]), 1, ([0, 0.5], [1])),  # no seed axis
    ],
)
def test_each_seed_is_scaled_over_all_its_parameters(importance, seeds, expected):
    found = min_max([torch.tensor(each) for each in importance], seeds)
    assert [each.flatten().tolist() for each in found] == [pytest.approx(each, nan_ok=True) for each in expected]


# --- against plain loops -------------------------------------------------------------------------------------


def scaled(values):
    low, high = min(v.min() for v in values), max(v.max() for v in values)
    return [(v - low) / (high - low + EPSILON) for v in values]


class Plain:
    """One seed's plain loop, the penalty in the loss; a subclass says what is important."""

    def __init__(self, way, s, options):
        self.way, self.s, self.net = way, s, way.ordinary(s=s)
        self.parameters, self.begun = list(self.net.parameters()), 0
        self.__dict__ |= options
        self.start()

    def zeros(self):
        return [torch.zeros_like(p) for p in self.parameters]

    def here(self):
        return [p.detach().clone() for p in self.parameters]

    def pull(self, importance, centre):
        return sum((i * (p - c) ** 2).sum() for i, p, c in zip(importance, self.parameters, centre))

    def penalty(self):
        return self.pull(self.importance, self.centre) if self.begun else 0

    def walk(self):
        optimizer = self.way.optimizer(self.net)
        for t in range(len(self.way.changes)):
            x, y = (part[self.s] for part in self.way.batch(t))
            if self.way.changes[t]:
                self.importance, self.centre = self.change(t), self.here()
                self.begun = t
            self.before_step(t - self.begun)
            loss = cross_entropy(self.net(x), y, self.way.mask(t, self.s))
            gradient, before = torch.autograd.grad(loss, self.parameters, retain_graph=True), self.here()
            loss = loss + self.strength * self.penalty()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if getattr(self, "gradient", "task") == "whole":
                gradient = [p.grad for p in self.parameters]
            self.after_step(gradient, [b - a for a, b in zip(before, self.here())])
        return self.net

    def start(self): ...

    def before_step(self, i): ...

    def after_step(self, gradient, step): ...


class PlainFisher(Plain):
    """EWC whose F is estimated at a change: on the last batch, or on different items of the task, drawn at random."""

    def start(self):
        self.total, self.rng = self.zeros(), generator(self.way.setting.seeds[self.s], "fisher")

    def estimate(self, t):
        allowed, setting = self.way.mask(t - 1, self.s), self.way.setting
        if isinstance(self.fisher, str):
            x = self.way.batch(t - 1)[0][self.s]
            return squares(self.net, x, allowed, "mean" if "mean" in self.fisher else "likeliest")
        shown = setting.items[self.s, setting.step(self.begun).start : setting.step(t).start].unique().numpy()
        drawn = self.rng.choice(shown, min(self.fisher["samples"], len(shown)), replace=False)
        x, chances = setting.images(torch.from_numpy(drawn)), self.rng.random(len(drawn))
        return squares(self.net, x, allowed, self.fisher.get("labels", "chance"), chances)

    def change(self, t):
        self.total = [self.gamma * f + n for f, n in zip(self.total, self.estimate(t))]
        return [f / 2 for f in self.total]


class PlainSeparate(PlainFisher):
    """A penalty for each task that is over; γ does not count."""

    def change(self, t):
        self.kept = [*getattr(self, "kept", []), ([f / 2 for f in self.estimate(t)], self.here())]

    def penalty(self):
        return sum(self.pull(*each) for each in getattr(self, "kept", []))


class PlainEWC(Plain):
    def start(self):
        self.running, self.squares = self.zeros(), []
        self.interval, self.decay = self.fisher["interval"], self.fisher["decay"]

    def before_step(self, i):
        if i % self.interval == self.interval - 1:
            sums = [sum(s) for s in zip(*self.squares)] if self.squares else self.zeros()
            self.running = [(1 - self.decay) * f + self.decay * s / self.interval for f, s in zip(self.running, sums)]
            self.squares = []

    def after_step(self, gradient, step):
        self.squares.append([g**2 for g in gradient])

    def change(self, t):
        self.squares = []
        return scaled(self.running)


class PlainPI(Plain):
    def start(self):
        self.path, self.omega, self.anchor = self.zeros(), self.zeros(), self.here()

    def after_step(self, gradient, step):
        self.path = [w - g * d for w, g, d in zip(self.path, gradient, step)]

    def change(self, t):
        for i, (w, here, anchor) in enumerate(zip(self.path, self.here(), self.anchor)):
            gained = w / (self.damping + (here - anchor) ** 2)
            self.omega[i] = self.omega[i] + (torch.relu(gained) if self.clip else gained)
        self.path, self.anchor = self.zeros(), self.here()
        return self.omega


class PlainMAS(Plain):
    def start(self):
        self.omega = self.zeros()

    def change(self, t):
        new, items = self.zeros(), 0
        self.net.eval()
        for k in range(self.begun, t):
            x = self.way.batch(k)[0][self.s]
            items += len(x)
            for part in x.split(1 if self.per == "item" else len(x)):
                loss = (self.net(part)[:, self.way.mask(k, self.s)] ** 2).sum()
                new = [n + g.abs() for n, g in zip(new, torch.autograd.grad(loss, self.parameters))]
        self.net.train()
        old = self.zeros() if self.reset else self.omega
        self.omega = [o + n / items for o, n in zip(old, new)]
        return self.omega


class PlainRWalk(Plain):
    def start(self):
        self.path, self.gain, self.score, self.running, self.sum = (self.zeros() for _ in range(5))
        self.anchor, self.task = self.here(), 0

    def before_step(self, i):
        if i % self.interval == self.interval - 1:
            for j, here in enumerate(self.here()):
                length = self.running[j] * (here - self.anchor[j]) ** 2 * (0.5 if self.published else 1)
                self.gain[j] = self.gain[j] + torch.relu(self.path[j] / (self.damping + length))
                self.running[j] = (1 - self.decay) * self.running[j] + self.decay / self.interval * self.sum[j]
            self.path, self.anchor = self.zeros(), self.here()
            self.sum = self.zeros() if self.published else self.sum

    def after_step(self, gradient, step):
        self.path = [w - g * d for w, g, d in zip(self.path, gradient, step)]
        self.sum = [s + g**2 for s, g in zip(self.sum, gradient)]

    def change(self, t):
        gain = [2 * g for g in self.gain] if self.task == 0 else self.gain
        mean = [(s + g) / 2 for s, g in zip(self.score, gain)]
        self.score = mean if self.published else [s + m for s, m in zip(self.score, mean)]
        self.task, self.gain, self.path, self.sum = self.task + 1, self.zeros(), self.zeros(), self.zeros()
        self.anchor = self.here()
        return [f + s for f, s in zip(scaled(self.running), scaled(self.score))]


PLAIN = {"ewc": PlainEWC, "si": PlainPI, "mas": PlainMAS, "rwalk": PlainRWalk, "ewc-separate": PlainSeparate}
PLAIN |= dict.fromkeys(["ewc-of-rules", "ewc-of-the-mean", "ewc-of-samples"], PlainFisher)
ADAM = {"optimizer": "adam", "learning_rate": 0.01}


def along(learner, net=MLP, train="none", **budget):
    """A way of about 6 + 6 + 6 steps through three tasks of two classes, each item twice."""
    order = {"name": "split", "tasks": 3, "length": None, "epochs": 2}
    spec = two_tasks(learner, net, oracle=split(3), order=order, train=train, **budget)
    data = images(classes=6, items=7)
    return Way(spec, data, [made(spec, data, seed) for seed in (0, 1)])


@pytest.mark.parametrize(
    ("net", "train", "budget"),
    [(MLP, "none", {}), (CNN, "oracle", {}), (MLP, "oracle", ADAM)],
    ids=["mlp", "cnn-masked", "mlp-adam-masked"],
)
@pytest.mark.parametrize("name", ALL)
def test_training_equals_the_plain_loop(name, net, budget, train):
    """And the penalty matters here."""
    learner = ALL[name]
    way = along(learner, net, train, **budget)
    assert way.changes.sum() == 2
    trained, untouched = way.walk(), along({"name": "single"}, net, train, **budget).walk()
    # SI divides by the square of how far a weight moved: it raises rounding errors, which differ between processors.
    close = {"rtol": 1e-5, "atol": 1e-6} if learner["name"] == "si" else {"rtol": 1e-7, "atol": 1e-9}
    for s in range(2):
        kind = PLAIN.get(name, PLAIN[learner["name"]])
        plain = kind(way, s, {k: v for k, v in learner.items() if k != "name"})
        assert_same_net(trained.net, plain.walk(), s, **close)
    assert max((a - b).abs().max() for a, b in zip(trained.parameters, untouched.parameters)) > 1e-4
