"""VCL, its coresets and its gradients against plain loops over ordinary distributions, one seed at a time."""

import copy
import math

import numpy as np
import pytest
import torch
from plain_loop import PlainPosterior, descend
from tiny import CHUNKS, Way, cross_entropy, images, split, stream, two_tasks
from torch.distributions import Categorical, Normal

from clpapers.randomness import generator
from clpapers.runs.variational import entropy, mutual_information
from clpapers.streams import orders

NET = {"name": "mlp", "hidden": [6, 5], "init": "truncated_normal"}
DATA = images(classes=6, items=14)
THREE = {"name": "split", "tasks": 3, "length": None}
DOMAINS = {"name": "permuted_pixels", "tasks": 3, "length": 30}
FIT = {"epochs": 3, "batch": "full", "initial_variance": 1e-3, "samples": 4, "prediction_samples": 30}
VCL = {"name": "vcl", **FIT, "prior_weight": 1}
SELECTED = {"coreset": 5, "coreset_epochs": 2, "selection": "k_center", "prior": "previous"}
CORESET = VCL | SELECTED | {"name": "vcl_coreset"}


def way(learner=VCL, train="none", seeds=(0, 1), order=THREE, streams=None, gradients=None, oracle=CHUNKS):
    budget = {"batch": "task", "optimizer": "adam", "learning_rate": 0.02, "memory": 15}
    spec = two_tasks(learner, NET, oracle=oracle, order=order, train=train, **budget)
    spec["evaluation"] |= {"gradients": gradients} if gradients else {}
    return Way(spec, DATA, streams or [orders.make(order, DATA.train_y, seed, 16) for seed in seeds])


class Plain(PlainPosterior):
    """One seed's VCL: torch's normals, samples in a loop."""

    def fit(self, x, y, allowed, chance, epochs, prior=None):
        noise, items = chance
        trained = [self.mean, self.log_variance] if prior else [self.mean]
        for p in trained:
            p.requires_grad_()
        optimizer = torch.optim.Adam(trained, lr=0.02)
        for batches in self.epochs(len(x), self.options["batch"], items, epochs):
            for now in batches:
                rows = self.drawn(self.options["samples"], noise) if prior else [self.mean]
                loss = sum(cross_entropy(self.logits(row, x[now]), y[now], allowed) for row in rows) / len(rows)
                if prior:
                    loss = loss + self.options["prior_weight"] * self.kl(prior, allowed) / len(x)
                descend(optimizer, loss)
        for p in trained:
            p.requires_grad_(False)

    def walk(self, coresets=()):
        """All tasks, without the items of their coresets, whose places are given by task; notes what is said before."""
        self.said, begun = [], set()
        for t in range(self.way.t):
            x, y = (part[self.s] for part in self.way.batch(t))
            allowed, chance = self.way.mask(t, self.s), (self.noise, self.items)
            self.said.append(self.logits(self.mean, x))
            if t == 0:
                self.fit(x, y, allowed, chance, self.options["epochs"])
            rest = [i for i in range(len(x)) if i not in (coresets[t] if coresets else ())]
            prior = self.standard
            if t and self.options.get("prior") != "standard":  # the posterior, but for heads that never competed
                old, new = self.used(begun), Normal(self.mean.clone(), (self.log_variance / 2).exp())
                prior = Normal(new.loc.where(old, 0), new.scale.where(old, 1))
            begun |= set(allowed)
            if t and "task_variance" in self.options:
                self.log_variance[self.used(allowed)] = math.log(self.options["task_variance"])
            self.fit(x[rest], y[rest], allowed, chance, self.options["epochs"], prior)
        return self

    def nets(self):
        """Those that answer after the last step."""
        return self.drawn(self.options["prediction_samples"], self.source(f"predictions {len(self.said)}"))


def drawn_answers(way, x, tasks):
    """What a test hears of images, and how uncertain the answers are."""
    way.learner.prepare()
    with way.learner.evaluation(), torch.no_grad():
        return way.learner.scores(x, tasks), way.learner.uncertainty(x)


def places(way, s):
    """Where the coreset of each task lies among its items."""
    return [
        [way.setting.items[s, way.setting.step(t)].tolist().index(i) for i in kept[s].tolist()]
        for t, kept in getattr(way.learner, "items", {}).items()
    ]


# --- training and answers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("train", "until"), [("none", 3), ("oracle", 3), ("oracle", 2)])
@pytest.mark.parametrize(
    "learner",
    [
        VCL,
        VCL | {"batch": 10},
        VCL | {"prior_weight": 100},
        VCL | {"name": "vcl_narrowed", "task_variance": 1e-4},
        CORESET,
        CORESET | {"prior": "standard"},
        CORESET | {"batch": 6},
    ],
    ids=["vcl", "batches", "prior weight", "narrowed", "coreset", "coreset only", "coreset, batches"],
)
def test_training_and_answers_are_the_plain_loops(learner, train, until):
    """The posterior; what is said of a task before it is learnt; probabilities, head by head where training is masked.

    A copy of the posterior that has learnt the coresets answers, or each head's copy, which has learnt its own; the
    posterior itself where there is none yet. A test says the same again, and leaves no trace on what is learnt.
    """
    ours = way(learner, train)
    x = ours.setting.images(torch.arange(0, 84, 4).expand(2, -1))
    tasks = ours.setting.task_classes.long().argmax(dim=1)[:, torch.from_numpy(DATA.train_y[::4])]
    said = []
    for _ in range(until):
        (heard, _), (again, _) = (drawn_answers(ours, x, tasks) for _ in range(2))
        assert torch.equal(heard, again)
        said.append(ours.step())
    heard, uncertainty = drawn_answers(ours, x, tasks)
    q = ours.learner.posterior
    for s in range(2):
        kept = places(ours, s)
        plain = Plain(ours, s).walk(kept)
        for mine, theirs in ((q.mean, plain.mean), (q.log_variance, plain.log_variance)):
            torch.testing.assert_close(mine[s].detach(), theirs, rtol=1e-6, atol=1e-9)
        for t, (step, expected) in enumerate(zip(said, plain.said)):
            torch.testing.assert_close(step.logits[s], expected)
            torch.testing.assert_close(step.loss[s], cross_entropy(expected, ours.batch(t)[1][s], ours.mask(t, s)))
        coresets = [tuple(part[s][mine] for part in ours.batch(t)) for t, mine in enumerate(kept)]
        if coresets and train == "none":
            coresets = [tuple(torch.cat(part) for part in zip(*coresets))]
        answering = [copy.deepcopy(plain) for _ in coresets or [plain]]
        for t, (items, labels) in enumerate(coresets):
            prior = plain.standard if learner["prior"] == "standard" else plain.normal()
            chance = plain.chance(f"coreset after {until}")
            answering[t].fit(items, labels, ours.mask(t, s), chance, learner["coreset_epochs"], prior)
        heads = ours.setting.task_classes[s] if train == "oracle" else [torch.ones(6, dtype=torch.bool)]
        for i, task in enumerate(tasks[s].tolist()):
            own = [*answering, plain][task] if len(answering) > 1 else answering[0]
            logits = torch.stack([own.logits(row, x[s, [i]])[0] for row in own.nets()])
            for head in heads:
                expected = logits[:, head].softmax(dim=1).mean(dim=0)
                torch.testing.assert_close(heard[s, i, head], expected, rtol=1e-5, atol=1e-9)
        own = answering[0] if train == "none" else plain
        _, expected = own.answers(own.nets(), x[s])
        torch.testing.assert_close(uncertainty[s], expected, rtol=1e-5, atol=1e-9)


def test_information_and_entropy_by_hand():
    """Two nets of two classes: certain of different answers, certain of the same, undecided both."""
    p = torch.tensor([[[1.0, 0], [0, 1], [0.5, 0.5]], [[0, 1], [0, 1], [0.5, 0.5]]], dtype=torch.float64)
    log2 = math.log(2)
    expected = torch.tensor([[log2, 0, 0]], dtype=torch.float64)
    torch.testing.assert_close(mutual_information(p[None]), expected)
    torch.testing.assert_close(entropy(p[0]), torch.tensor([0, 0, log2], dtype=torch.float64))


# --- coresets ------------------------------------------------------------------------------------------------


def farthest(x, count, start):
    """The greedy k-center: each next item is the farthest from all before."""
    chosen = [start]
    while len(chosen) < count:
        nearest = [min(np.linalg.norm(each - x[c]) for c in chosen) for each in x]
        chosen.append(int(np.argmax(nearest)))
    return chosen


@pytest.mark.parametrize("selection", ["k_center", "random"])
def test_a_coreset_is_drawn_or_is_the_brute_force_greedy_from_a_drawn_start(selection):
    """On the pixels. A memory holds 5 items of 16 bytes a task."""
    ours = way(CORESET | {"selection": selection})
    for t in range(4):
        for s in range(2):
            kept = places(ours, s)
            labels = [int(ours.batch(u)[1][s, i]) for u, mine in enumerate(kept) for i in mine]
            counts = [labels.count(c) for c in range(6)]
            assert ours.learner.memory_use(s) == {"items": 5 * t, "bytes": 16 * 5 * t, "per_class": counts}
            for u, mine in enumerate(kept):
                rng, pixels = generator(s, f"coreset {u}"), ours.batch(u)[0][s].flatten(1).numpy()
                random = selection == "random"
                drawn = rng.choice(28, 5, replace=False).tolist() if random else farthest(pixels, 5, rng.integers(28))
                assert mine == drawn
        if t < 3:
            ours.step()


def test_a_task_that_comes_again_brings_no_other_coreset():
    """Two tasks, in turn, twice, the second time shuffled: what was kept is kept, and stays out of training."""
    rng, first, second = np.random.default_rng(0), np.arange(28), np.arange(28, 56)
    indices = np.concatenate([first, second, rng.permutation(first), rng.permutation(second)])
    ours = way(CORESET | {"coreset": 7}, streams=[stream(indices, 0, [28, 56, 84])])
    ours.walk()
    kept = {t: set(items[0].tolist()) for t, items in ours.learner.items.items()}
    assert kept.keys() == {0, 1}
    again = [[i for i, item in enumerate(indices[28 * t : 28 * t + 28]) if item in kept[t % 2]] for t in range(4)]
    plain = Plain(ours, 0).walk(again)
    torch.testing.assert_close(ours.learner.posterior.mean[0].detach(), plain.mean)
    assert ours.learner.memory_use(0)["items"] == 14


SHORT = [stream([0, 1, 2, 14, 15, 16, 17], 0, [3])]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"order": THREE | {"epochs": 2}}, r"order\.epochs: VCL learns a task in one step"),
        ({"learner": CORESET | {"coreset": 6}}, r"budget\.memory: 15 does not hold coresets of 3 times 6 items"),
        ({"learner": CORESET, "streams": SHORT}, r"learner\.coreset: 5 leaves none of the 3 items of task 1 to learn"),
        ({"learner": CORESET, "train": "oracle", "oracle": split(2, aligned=False)}, "needs the stream's tasks"),
        ({"gradients": {"batches": 4, "size": 8, "repetitions": 3}}, "4 batches of 8 are not two or more of a task"),
    ],
)
def test_it_is_refused(given, sentence):
    with pytest.raises(ValueError, match=sentence):
        way(**given).walk()


# --- early gradients -----------------------------------------------------------------------------------------

EARLY = {"batches": 4, "size": 3, "repetitions": 3}


def once(plain, x, y, noise, n):
    """As Plain.fit, batch by batch: both terms' mean absolute gradients of the last means, and the entropy."""
    plain = copy.deepcopy(plain)
    prior, found, everything = Normal(plain.mean.clone(), (plain.log_variance / 2).exp()), [], list(range(6))
    trained = [p.requires_grad_() for p in (plain.mean, plain.log_variance)]
    optimizer = torch.optim.Adam(trained, lr=0.02)
    for i in range(4):
        now = slice(3 * i, 3 * i + 3)
        likelihood = sum(cross_entropy(plain.logits(row, x[now]), y[now], everything) for row in plain.drawn(4, noise))
        terms = likelihood / 4, plain.kl(prior, everything) / n
        gradients = [torch.autograd.grad(term, trained) for term in terms]
        found.append([mean[~plain.used([])].abs().mean().item() for mean, _ in gradients])
        for p, *parts in zip(trained, *gradients):
            p.grad = sum(parts)
        optimizer.step()
        if i == 0:
            p, _ = plain.answers(plain.drawn(30, noise), x[3:])
            entropy = Categorical(p.mean(dim=0)).entropy().mean().item()
    return found, entropy


@pytest.mark.parametrize("order", [THREE, DOMAINS], ids=["split", "permuted"])
def test_early_gradients_are_the_plain_loop(order):
    """And leave no trace on what is learnt."""
    ours = way(order=order, gradients=EARLY)
    ours.walk(until=1)
    plain = [Plain(ours, s).walk() for s in range(2)]
    x, y = ours.batch(1)
    n = x.shape[1]
    ours.step()
    for s in range(2):
        after = Plain(ours, s).walk()
        torch.testing.assert_close(ours.learner.posterior.mean[s].detach(), after.mean, rtol=1e-6, atol=1e-9)
        report = ours.learner.report(s)["gradients"]
        rng = generator(s, "gradients items")
        noise = torch.Generator().manual_seed(ours.setting.init("gradients weights")[s])
        for r in range(3):
            chosen = rng.choice(n, 12, replace=False)
            shown = x[s, chosen].flatten(1)
            if order is DOMAINS:
                shown = shown[:, rng.permutation(16)]
            found, entropy = once(plain[s], shown, y[s, chosen], noise, n)
            likelihood, prior = zip(*found)
            np.testing.assert_allclose(report["likelihood"][r], likelihood, rtol=2e-5)
            np.testing.assert_allclose(report["prior"][r], prior, rtol=2e-5)
            np.testing.assert_allclose(report["entropy"][r], entropy, rtol=2e-5)
            assert report["prior"][r][0] == 0  # where it begins the posterior is the prior
            assert min(report["prior"][r][1:]) > 0
