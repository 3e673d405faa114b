"""VCL, its coresets and its gradients against plain loops over ordinary distributions, one seed at a time."""

import copy
import json
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tiny import Way, images, stream, two_tasks
from torch.distributions import Normal, kl_divergence

from clpapers.randomness import generator
from clpapers.runs.learners.vcl_coreset import k_center
from clpapers.streams import orders

NET = {"name": "mlp", "hidden": [6, 5], "init": "truncated_normal"}
DATA = images(classes=6, items=14)
THREE = {"name": "split", "tasks": 3, "length": None}
DOMAINS = {"name": "permuted_pixels", "tasks": 3, "length": 30}
FIT = {"epochs": 3, "batch": "full", "initial_variance": 1e-3, "samples": 4, "prediction_samples": 30}
VCL = {"name": "vcl", **FIT, "prior_weight": 1}
CORESET = {
    "name": "vcl_coreset",
    **FIT,
    "prior_weight": 1,
    "coreset": 5,
    "coreset_epochs": 2,
    "selection": "k_center",
    "prior": "previous",
}
STANDARD = CORESET | {"prior": "standard"}


def spec_of(learner, train="none", order=THREE, net=NET, memory=15):
    budget = {"batch": "task", "optimizer": "adam", "learning_rate": 0.02, "memory": memory}
    return two_tasks(learner, net, oracle={"name": "chunks"}, order=order, train=train, **budget)


def way(learner=VCL, train="none", seeds=(0,), order=THREE, streams=None, gradients=None):
    spec = spec_of(learner, train, order)
    spec["evaluation"] |= {"gradients": gradients} if gradients else {}
    return Way(spec, DATA, streams or [orders.make(order, DATA.train_y, seed, 16) for seed in seeds])


class Plain:
    """One seed's VCL: lists of weights and biases, torch's normals, samples in a loop."""

    def __init__(self, way, s):
        self.way, self.s, self.seed = way, s, way.setting.seeds[s]
        self.options = way.spec["learner"]
        self.mean = [p.detach().clone() for p in way.ordinary(s=s).parameters()]
        self.log_variance = [torch.full_like(p, self.options["initial_variance"]).log() for p in self.mean]
        self.prior = self.standard()
        self.begun = set()

    def standard(self):
        return [Normal(torch.zeros_like(p), 1.0) for p in self.mean]

    def posterior(self):
        return [Normal(m.detach().clone(), (v.detach() / 2).exp()) for m, v in zip(self.mean, self.log_variance)]

    def chance(self, purpose):
        noise = torch.Generator().manual_seed(self.way.setting.init(f"{purpose} weights")[self.s])
        return noise, generator(self.seed, f"{purpose} items")

    def drawn(self, noise, samples):
        """So many nets, from one row of noise each, as flat as a net's numbers are."""
        sizes = [p.numel() for p in self.mean]
        rows = torch.empty(samples, sum(sizes), dtype=torch.float64).normal_(generator=noise)
        for row in rows:
            parts = [e.view_as(p) for e, p in zip(row.split(sizes), self.mean)]
            yield [m + (v / 2).exp() * e for m, v, e in zip(self.mean, self.log_variance, parts)]

    @staticmethod
    def says(net, x):
        hidden = x.flatten(1)
        for i in range(0, len(net), 2):
            hidden = F.linear(hidden.relu() if i else hidden, net[i], net[i + 1])
        return hidden

    def batches(self, x, y, rng, epochs):
        for _ in range(epochs):
            size = self.options["batch"]
            order = range(len(x)) if size == "full" else rng.permutation(len(x)).tolist()
            size = len(x) if size == "full" else size
            for start in range(0, len(x), size):
                chosen = list(order[start : start + size])
                yield x[chosen], y[chosen]

    def cross_entropy(self, net, x, y, allowed):
        return F.cross_entropy(self.says(net, x)[:, allowed], torch.tensor([allowed.index(c) for c in y.tolist()]))

    def fit(self, x, y, allowed, chance, epochs, prior=None):
        noise, rng = chance
        trained = self.mean + (self.log_variance if prior else [])
        for p in trained:
            p.requires_grad_()
        optimizer = torch.optim.Adam(trained, lr=0.02)
        for x_, y_ in self.batches(x, y, rng, epochs):
            optimizer.zero_grad()
            if prior:
                loss = self.options["prior_weight"] * self.kl(prior, allowed) / len(x)
                for net in self.drawn(noise, self.options["samples"]):
                    loss = loss + self.cross_entropy(net, x_, y_, allowed) / self.options["samples"]
            else:
                loss = self.cross_entropy(self.mean, x_, y_, allowed)
            loss.backward()
            optimizer.step()
        for p in trained:
            p.requires_grad_(False)

    def kl(self, prior, allowed):
        q = [Normal(m, (v / 2).exp()) for m, v in zip(self.mean, self.log_variance)]
        each = [kl_divergence(*pair) for pair in zip(q, prior)]
        return sum(part.sum() for part in each[:-2]) + sum(part[allowed].sum() for part in each[-2:])

    def walk(self, coresets=None):
        """All tasks, with or without withheld items: places of each task's, by task."""
        chance = self.chance("variational")
        for t in range(len(self.way.changes)):
            x, y = (part[self.s] for part in self.way.batch(t))
            allowed = self.way.mask(t, self.s)
            if t == 0:
                self.fit(x, y, allowed, chance, self.options["epochs"])
            rest = [i for i in range(len(x)) if i not in (coresets[t] if coresets else ())]
            standard = self.options.get("prior") == "standard"
            prior = self.standard() if standard or t == 0 else self.before(allowed)
            self.begun |= set(allowed)
            if t and "task_variance" in self.options:
                self.narrow(math.log(self.options["task_variance"]), allowed)
            self.fit(x[rest], y[rest], allowed, chance, self.options["epochs"], prior)
        return self

    def narrow(self, log_variance, allowed):
        for part in self.log_variance[:-2]:
            part.fill_(log_variance)
        for part in self.log_variance[-2:]:
            part[allowed] = log_variance

    def before(self, allowed):
        """The posterior; N(0, 1) for heads that never competed."""
        new = [c for c in allowed if c not in self.begun]
        prior = self.posterior()
        for part in prior[-2:]:
            part.loc[new], part.scale[new] = 0, 1
        return prior

    def assert_same(self, q, s):
        for mine, theirs in ((q.mean, self.mean), (q.log_variance, self.log_variance)):
            flat = torch.cat([p.flatten() for p in theirs])
            torch.testing.assert_close(mine[s].detach(), flat, rtol=1e-6, atol=1e-9)


def places(way, s):
    """Where the coreset of each task lies among its items."""
    return [
        [way.setting.items[s, way.setting.step(t)].tolist().index(i) for i in kept[s].tolist()]
        for t, kept in way.learner.items.items()
    ]


def one_of_each(way):
    """An image of each class, [1, 6, C, H, W]."""
    return way.setting.images(torch.arange(0, 84, 14)[None])


# --- VCL -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seeds", [(0,), (0, 1)], ids=len)
@pytest.mark.parametrize("train", ["none", "oracle"])
@pytest.mark.parametrize("options", [{}, {"batch": 10}, {"prior_weight": 100}], ids=str)
def test_vcl_is_the_plain_loop(options, train, seeds):
    ours = way(VCL | options, train, seeds)
    assert len(ours.changes) == 3
    ours.walk()
    for s in range(len(seeds)):
        Plain(ours, s).walk().assert_same(ours.learner.posterior, s)


@pytest.mark.parametrize("train", ["none", "oracle"])
def test_narrowed_vcl_is_the_plain_loop_whose_variances_begin_anew(train):
    """The prior of a task stays the whole posterior of the one before."""
    ours = way(VCL | {"name": "vcl_narrowed", "task_variance": 1e-4}, train, (0, 1))
    ours.walk()
    for s in range(2):
        Plain(ours, s).walk().assert_same(ours.learner.posterior, s)


def test_what_is_said_before_learning():
    """Of the first task by the net as it begins; of the second by the means after the first."""
    ours = way(train="oracle")
    for t in range(2):
        x, y = ours.batch(t)
        expected = ours.learner.posterior.mean_logits(x)
        loss, logits = ours.step()
        assert torch.equal(logits, expected)
        allowed = ours.mask(t)
        local = torch.tensor([allowed.index(c) for c in y[0].tolist()])
        torch.testing.assert_close(loss[0], F.cross_entropy(expected[0][:, allowed], local))


def test_it_refuses_epochs_of_the_stream():
    with pytest.raises(ValueError, match=r"order\.epochs: VCL learns a task in one step"):
        way(order=THREE | {"epochs": 2})


def test_answers_are_means_of_probabilities_head_by_head():
    learner = way(train="oracle").walk()
    x = learner.setting.images(torch.arange(0, 84, 4)[None])
    tasks = learner.setting.task_classes.long().argmax(dim=1)[:, torch.from_numpy(DATA.train_y[::4])]
    with learner.evaluation(), torch.no_grad():
        assert learner.drawn.shape == (1, 30, learner.posterior.mean.shape[1])
        logits = learner.posterior.logits(learner.drawn, x)[0]
        said = learner.scores(x, tasks)[0]
        information = learner.uncertainty(x)[0]
    for head in learner.setting.task_classes[0]:
        expected = torch.stack([F.softmax(each[:, head], dim=1) for each in logits]).mean(dim=0)
        torch.testing.assert_close(said[:, head], expected)
    torch.testing.assert_close(said.sum(dim=1), torch.full((21,), 3.0, dtype=torch.float64))
    p = torch.stack([F.softmax(each, dim=1) for each in logits])
    mean = p.mean(dim=0)
    expected = (p * p.log()).sum(dim=2).mean(dim=0) - (mean * mean.log()).sum(dim=1)
    torch.testing.assert_close(information, expected, rtol=1e-6, atol=1e-12)


def test_a_test_is_the_same_whenever_it_is_taken():
    """And leaves no trace on what is learnt later."""
    tested, untested = way(CORESET), way(CORESET)
    x, tasks = one_of_each(tested), torch.zeros(1, 6, dtype=torch.int64)
    for _ in range(3):
        said = []
        for _ in range(2):
            before = tested.learner.posterior.now
            tested.learner.prepare()
            with tested.learner.evaluation(), torch.no_grad():
                said.append(tested.learner.scores(x, tasks))
            assert all(torch.equal(a, b) for a, b in zip(before, tested.learner.posterior.now))
        assert torch.equal(*said)
        tested.step()
        untested.step()
    assert all(torch.equal(a, b) for a, b in zip(tested.learner.posterior.now, untested.learner.posterior.now))


def test_after_a_further_step_other_nets_answer():
    """Other draws of the posterior's noise, not only another posterior; and the same ones for every test of a step."""

    def noise(learner):
        q = learner.posterior
        with learner.evaluation(), torch.no_grad():
            return (learner.drawn - q.mean[:, None]) / (q.log_variance / 2).exp()[:, None]

    here = way()
    here.step()
    first, again = noise(here.learner), noise(here.learner)
    here.step()
    assert torch.equal(first, again)
    assert (noise(here.learner) - first).abs().median() > 0.1


# --- coresets ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [0, 7])
def test_k_center_is_the_brute_force_greedy(start):
    rng = np.random.default_rng(start)
    x = rng.random((40, 5))
    chosen = [start]
    while len(chosen) < 12:
        nearest = [min(np.linalg.norm(each - x[c]) for c in chosen) for each in x]
        chosen.append(int(np.argmax(nearest)))
    assert k_center(torch.from_numpy(x), 12, start).tolist() == chosen
    assert k_center(torch.from_numpy(x), 1, start).tolist() == [start]


def test_a_coreset_starts_anywhere_and_is_chosen_on_the_pixels():
    ours = way(CORESET, seeds=(0, 1))
    ours.walk()
    for s, seed in enumerate((0, 1)):
        for t, mine in enumerate(places(ours, s)):
            pixels = ours.batch(t)[0][s].flatten(1)
            start = int(generator(seed, f"coreset {t}").integers(len(pixels)))
            assert mine[0] == start
            assert mine == k_center(pixels, 5, start).tolist()
    assert len({places(ours, s)[t][0] for s in range(2) for t in range(3)}) > 2


def test_a_random_coreset_is_any_of_a_tasks_items_with_equal_chance():
    """Of 28 items 5 are drawn, none twice: each by 5/28 of 700 learners, 125 times."""
    ours, counts = way(CORESET | {"selection": "random"}, seeds=(0,)), torch.zeros(28)
    x = ours.batch(0)[0]
    for t in range(700):
        (chosen,) = ours.learner.choose(t, x)
        assert len(chosen.unique()) == 5
        counts[chosen] += 1
    assert counts.min() > 85
    assert counts.max() < 165


@pytest.mark.parametrize("seeds", [(0,), (0, 1)], ids=len)
@pytest.mark.parametrize("train", ["none", "oracle"])
@pytest.mark.parametrize(
    "learner", [CORESET, STANDARD, CORESET | {"batch": 6}], ids=["previous", "standard", "batches"]
)
def test_coresets_are_the_plain_loop(learner, train, seeds):
    """The posterior without them; and the copy that answers, or the copy of each head, which has learnt them."""
    ours = way(learner, train, seeds)
    ours.walk()
    for s in range(len(seeds)):
        kept = places(ours, s)
        plain = Plain(ours, s).walk(kept)
        plain.assert_same(ours.learner.posterior, s)
        coresets = [tuple(part[s][mine] for part in ours.batch(t)) for t, mine in enumerate(kept)]
        if train == "none":
            coresets = [tuple(torch.cat(part) for part in zip(*coresets))]
        for t, (x, y) in enumerate(coresets):
            answering = copy.deepcopy(plain)
            prior = plain.standard() if learner is STANDARD else plain.posterior()
            chance = answering.chance("coreset after 3")
            answering.fit(x, y, ours.mask(t, s), chance, learner["coreset_epochs"], prior)
            ours.learner.prepare()
            refreshed = ours.learner.copies[t] if train == "oracle" else ours.learner.answering()
            answering.assert_same(refreshed, s)


def test_each_head_answers_after_its_own_coreset():
    """Items of all tasks in one batch, as in the last test; a task yet to come is answered by the posterior."""
    ours = way(CORESET, "oracle")
    learner = ours.walk(until=2)
    x, classes = one_of_each(ours), torch.arange(6)
    tasks = learner.setting.task_classes.long().argmax(dim=1)[:, classes]
    learner.prepare()
    with learner.evaluation(), torch.no_grad():
        said = learner.scores(x, tasks)
    for i in range(6):
        task = int(tasks[0, i])
        q = learner.posterior if task == 2 else learner.trained_on([task])
        expected = learner.probabilities(learner.nets_of(q), x[:, i : i + 1]).mean(dim=1)
        torch.testing.assert_close(said[:, i : i + 1], expected.detach())


def test_memory():
    """5 items of 16 bytes a task; never more than the budget, which is refused otherwise."""
    ours = way(CORESET, seeds=(0, 1))
    for t in range(4):
        for s in range(2):
            use = ours.learner.memory_use(s)
            assert use["items"] == 5 * t <= ours.spec["budget"]["memory"]
            assert use["bytes"] == 16 * 5 * t
            kept = [label for u in range(t) for label in ours.learner.labels[u][s].tolist()]
            assert use["per_class"] == [kept.count(c) for c in range(6)]
        if t < 3:
            ours.step()
    with pytest.raises(ValueError, match=r"budget\.memory: 15 does not hold coresets of 3 times 6 items"):
        way(CORESET | {"coreset": 6})
    short = [stream([0, 1, 2, 14, 15, 16, 17], 0, [3])]
    with pytest.raises(ValueError, match=r"learner\.coreset: 5 leaves none of the 3 items of task 1 to learn"):
        way(CORESET, streams=short).step()
    oracle = {"name": "split", "tasks": 2, "aligned": False}
    spec = ours.spec | {"oracle": oracle, "restriction": {"train": "oracle"}}
    with pytest.raises(ValueError, match="oracle: a head's own coreset needs the stream's tasks"):
        Way(spec, DATA, [ours.scenarios[0].stream])


def test_a_task_that_comes_again_brings_no_other_coreset():
    """Two tasks, in turn, twice, the second time shuffled: what was kept is kept, and stays out of training."""
    rng, first, second = np.random.default_rng(0), np.arange(28), np.arange(28, 56)
    indices = np.concatenate([first, second, rng.permutation(first), rng.permutation(second)])
    ours = way(CORESET | {"coreset": 7}, streams=[stream(indices, 0, [28, 56, 84])])
    ours.walk(until=2)
    kept = {t: items.clone() for t, items in ours.learner.items.items()}
    assert kept.keys() == {0, 1}
    for t in (2, 3):
        x, y = ours.batch(t)
        rest, labels = ours.learner.learnt_of(t, x, y)
        assert rest.shape[1] == labels.shape[1] == 21
        mine = kept[t - 2][0].tolist()
        others = [i for i, item in enumerate(ours.setting.items[0, ours.setting.step(t)].tolist()) if item not in mine]
        assert torch.equal(rest[0], x[0, others])
        assert torch.equal(labels[0], y[0, others])
    ours.walk()
    assert ours.learner.items.keys() == kept.keys()
    assert ours.learner.memory_use(0)["items"] == 14


# --- early gradients -----------------------------------------------------------------------------------------

EARLY = {"batches": 4, "size": 3, "repetitions": 3}


def once(plain, x, y, noise, n):
    """Plain.fit, batch by batch: both terms' mean absolute gradients of the last means, and the entropy."""
    plain = copy.deepcopy(plain)
    prior, found = plain.posterior(), []
    trained = plain.mean + plain.log_variance
    for p in trained:
        p.requires_grad_()
    optimizer = torch.optim.Adam(trained, lr=0.02)
    for i in range(4):
        now = slice(3 * i, 3 * i + 3)
        nets = plain.drawn(noise, 4)
        terms = [
            sum(plain.cross_entropy(net, x[now], y[now], list(range(6))) for net in nets) / 4,
            plain.kl(prior, list(range(6))) / n,
        ]
        gradients = [torch.autograd.grad(term, trained, allow_unused=True) for term in terms]
        found.append([torch.cat([g.flatten() for g in each[4:6]]).abs().mean().item() for each in gradients])
        for p, *parts in zip(trained, *gradients):
            p.grad = sum(parts)
        optimizer.step()
        if i == 0:
            with torch.no_grad():
                p = torch.stack([plain.says(net, x[3:]).softmax(dim=1) for net in plain.drawn(noise, 30)]).mean(dim=0)
                entropy = -(p * p.log()).sum(dim=1).mean().item()
    return found, entropy


@pytest.mark.parametrize("order", [THREE, DOMAINS], ids=["split", "permuted"])
def test_early_gradients_are_the_plain_loop(order):
    ours = way(VCL, seeds=(0, 1), order=order, gradients=EARLY)
    ours.walk(until=1)
    plain = [Plain(ours, s) for s in range(2)]
    after_one = ours.learner.posterior.now
    for s, each in enumerate(plain):
        sizes = [p.numel() for p in each.mean]
        for name, flat in zip(("mean", "log_variance"), after_one):
            setattr(each, name, [part.reshape(p.shape).clone() for part, p in zip(flat[s].split(sizes), each.mean)])
    x, y = ours.batch(1)
    n = x.shape[1]
    ours.step()
    for s in range(2):
        report = ours.learner.report(s)["gradients"]
        json.dumps(report, allow_nan=False)
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


def test_early_gradients_leave_no_trace():
    with_, without = way(VCL, gradients=EARLY), way(VCL)
    assert all(torch.equal(a, b) for a, b in zip(with_.walk().posterior.now, without.walk().posterior.now, strict=True))
    assert without.learner.report(0) == {}


def test_early_gradients_refuse_more_than_a_task():
    ours = way(VCL, gradients=EARLY | {"size": 8})
    ours.step()
    with pytest.raises(
        ValueError, match=r"evaluation\.gradients: 4 batches of 8 are not two or more of a task of 28 items"
    ):
        ours.step()
