"""CN-DPM against a plain loop over experts and items; what an expert is; how experts come to be."""

import math

import pytest
import torch
import torch.nn.functional as F
from tiny import OPTIONS, Way, cell

from clpapers.randomness import generator
from clpapers.runs.learners.cn_dpm import mixture, responsibilities
from clpapers.runs.nets.cn_dpm_expert import Expert, widths

SIZES = {"latent": 3, "vae": (4, 2), "classifier": (3, 1)}
NETS = ("vae", "classifier")


def on_its_way(data, streams, **options):
    spec = cell("cn_dpm", OPTIONS["cn_dpm"] | options, "mlp", batch=5) | {"scaling": "unit"}
    return Way(spec, data, [streams[0]])


class Plain:
    """Experts as ordinary modules, each item's joints one by one; noise is drawn in the learner's order."""

    def __init__(self, way):
        self.way, self.options = way, way.spec["learner"]
        self.rng = self.source("expert noise")
        self.experts, self.optimizers = [self.expert(0)], []
        self.counts, self.held = [], []

    def source(self, purpose):
        return torch.Generator().manual_seed(self.way.setting.init(purpose)[0])

    def expert(self, k):
        torch.manual_seed(self.way.setting.init(f"expert {k}")[0])
        vae, classifier = ((self.options[f"{net}_width"], self.options[f"{net}_extension"]) for net in NETS)
        shape = self.way.setting.images.shape
        return Expert(k, shape, 4, latent=self.options["latent"], vae=vae, classifier=classifier).double()

    def noise(self, rng, *items):
        sizes = *items, self.options["samples"], self.options["latent"]
        return torch.randn(sizes, generator=rng, dtype=torch.float64)

    def asked(self, x, noise):
        """The bound of log p(x) and log p(y|x) by each expert."""
        answers, before = [], (None, None)
        for k, expert in enumerate(self.experts):
            elbo, log_p, features = expert(x, noise, before)
            answers.append((elbo, log_p))
            before = features if k else before
        return answers

    def said(self, x, noise):
        """Σ prior_k · p_k(x) · p_k(y|x) in proportion, image by image; all alike before there are experts."""
        answers, found = self.asked(x, noise), []
        for i in range(len(x)):
            joints = [
                count * (answers[k + 1][0][i] - answers[1][0][i]).exp() * answers[k + 1][1][i].exp()
                for k, count in enumerate(self.counts)
            ]
            found.append(sum(joints) / sum(joints).sum() if joints else torch.full((4,), 1 / 4, dtype=torch.float64))
        return torch.stack(found).detach()

    def step(self, t):
        x, y = (part[0] for part in self.way.batch(t))
        noise = self.noise(self.rng, len(x))
        said, answers, shares = (
            self.said(x, noise),
            self.asked(x, noise),
            torch.zeros(len(x), len(self.counts)).double(),
        )
        for i, label in enumerate(y.tolist()):
            joints = []
            for (elbo, log_p), log_count in zip(answers, [self.options["log_alpha"], *map(math.log, self.counts)]):
                chilled = log_p[i].exp() ** (1 / self.options["chill"])
                joints.append((log_count + elbo[i] + (chilled[label] / chilled.sum()).log()).item())
            if joints[0] == max(joints):
                self.held.append(self.way.setting.step(t).start + i)
            else:
                shares[i] = torch.tensor(joints[1:]).double().softmax(dim=0)
        for k, optimizer in enumerate(self.optimizers):
            self.counts[k] += float(shares[:, k].sum())
            elbo, log_p = answers[k + 1]
            if shares[:, k].any():
                self.descend(optimizer, k + 1, -(shares[:, k] * (elbo + log_p[range(len(y)), y])).sum())
        if len(self.held) >= self.options["stm"]:
            self.sleep()
        return said

    def descend(self, optimizer, k, loss):
        """With its gradient clipped."""
        parameters = list(self.experts[k].parameters())
        gradient = torch.autograd.grad(loss, parameters, allow_unused=True)
        for p, g in zip(parameters, gradient):
            p.grad = None if g is None else g.clamp(-self.options["clip"], self.options["clip"])
        optimizer.step()

    def sleep(self):
        k, o = len(self.experts), self.options
        items = self.way.setting.items[0, self.held]
        x, y = self.way.setting.images(items[None])[0], self.way.setting.labels[0, self.held]
        self.experts.append(self.expert(k))
        expert, rng = self.experts[k], generator(0, f"sleep {k}")
        groups = [{"params": list(getattr(expert, net).parameters()), "lr": o[f"{net}_learning_rate"]} for net in NETS]
        optimizer = torch.optim.Adam(groups)
        for net in NETS:
            for rows in torch.from_numpy(rng.integers(len(x), size=(o[f"sleep_{net}_steps"], o["sleep_batch"]))):
                noise = self.noise(self.rng, len(rows)) if net == "vae" else None
                before = None
                for earlier in self.experts[1:k]:
                    before = getattr(earlier, net).climb(x[rows], before)[1]
                if net == "vae":
                    loss = -expert.vae.elbo(x[rows], noise, before)[0].mean()
                else:
                    loss = F.nll_loss(expert.classifier(x[rows], before)[0], y[rows])
                squares = sum(p.square().sum() for p in getattr(expert, net).parameters())
                self.descend(optimizer, k, loss + o["weight_decay"] * squares)
        for group in optimizer.param_groups:
            group["lr"] *= o["decay"]
        self.optimizers.append(optimizer)
        self.counts.append(len(self.held))
        self.held = []


@pytest.mark.parametrize(
    ("log_alpha", "grown"),
    [
        (1e9, [[0, 0], [15, 1], [30, 2], [45, 3]]),  # all is novel: 12 items are reached with every third batch
        (8.0, [[0, 0], [15, 1], [40, 2]]),
    ],
)
def test_training_and_answers_are_the_plain_loops(log_alpha, grown, data, streams):
    """What is said of a batch before it is learnt, when experts are born and of how many items, what is held."""
    way = on_its_way(data, streams, log_alpha=log_alpha)
    plain = Plain(way)
    for t in range(len(way.changes)):
        expected = plain.step(t)
        loss, logits = way.step()
        assert not logits.requires_grad
        torch.testing.assert_close(logits[0].softmax(dim=1), expected)
        assert loss.item() == pytest.approx(F.nll_loss(expected.log(), way.batch(t)[1][0]).item())
        held = way.setting.labels[0, plain.held].bincount(minlength=4).tolist()
        assert way.learner.memory_use(0) == {"items": sum(held), "bytes": sum(held) * 8 * 8 * 3, "per_class": held}
    report = way.learner.report(0)
    assert report["experts"] == grown
    assert report["counts"] == pytest.approx(plain.counts)
    assert sum(report["counts"]) + sum(held) == pytest.approx(53)  # every item once
    assert report["parameters"] == sum(p.numel() for expert in plain.experts[1:] for p in expert.parameters())
    for ours, theirs in zip(way.learner.experts, plain.experts, strict=True):
        torch.testing.assert_close(ours.state_dict(), theirs.state_dict(), rtol=1e-6, atol=1e-8)
    x = way.setting.images(torch.arange(0, 120, 9)[None])
    with way.learner.evaluation():
        scores = way.learner.scores(x, None)[0]
        torch.testing.assert_close(way.learner.scores(x[:, 7:9], None)[0], scores[7:9])  # alone as among others
    expected = plain.said(x[0], plain.noise(plain.source("evaluation noise")))
    torch.testing.assert_close(scores.softmax(dim=1), expected)


def test_responsibilities_by_hand():
    """Joints 8 : 1 : 3, 1 : 3 : 1 and 1 : 1 : 0 with expert 0 in front."""
    joints = torch.tensor([[8.0, 1, 3], [1, 3, 1], [1, 2, 0]]).log() - 1000
    novel, shares = responsibilities(joints)
    assert novel.tolist() == [True, False, False]
    torch.testing.assert_close(shares, torch.tensor([[0, 0], [0.75, 0.25], [1, 0]]), atol=1e-4, rtol=0)


def test_mixture_by_hand():
    """Priors 3/4 and 1/4, p(x|k) in the ratio 1 : 6, so that p(k|x) is 1/3 and 2/3."""
    elbos = torch.tensor([[1.0, 6.0]], dtype=torch.float64).log() - 3000
    log_ps = torch.tensor([[[0.9, 0.1], [0.3, 0.7]]], dtype=torch.float64).log()
    said = mixture(torch.tensor([30.0, 10.0], dtype=torch.float64).log(), elbos, log_ps)
    torch.testing.assert_close(said.exp(), torch.tensor([[0.9 / 3 + 0.6 / 3, 0.1 / 3 + 1.4 / 3]], dtype=torch.float64))


def test_elbo_by_hand():
    """A decoder that says 1/2 everywhere: unit-variance Gaussian density, less the KL divergence of the latent."""
    vae = Expert(1, (1, 4, 4), 2, **SIZES).vae.double()
    for p in vae.parameters():
        p.data.zero_()
    vae.mean.bias.data[:] = torch.tensor([1.0, 0, -2])
    vae.log_variance.bias.data[:] = torch.tensor([0.0, math.log(4), 0])
    x = torch.stack([torch.full((1, 4, 4), 0.5), torch.ones(1, 4, 4)]).double()
    elbo, _ = vae.elbo(x, torch.randn(5, 3).double())
    kl = 0.5 * (1 + 4) + 0.5 * (4 - 1 - math.log(4))
    density = -8 * math.log(2 * math.pi)
    torch.testing.assert_close(elbo, torch.tensor([density - kl, density - 16 * 0.25 / 2 - kl]).double())


@pytest.mark.parametrize("shape", [(3, 8, 8), (1, 28, 28), (3, 32, 32)])
def test_an_expert_listens_to_its_predecessors_and_does_not_change_them(shape):
    """Of any image; number 2 is handed the features of number 1, number 3 those of both. Decoders are alike."""
    experts = [Expert(k, shape, 5, **SIZES) for k in (1, 2, 3)]
    x, noise, before = torch.rand(2, *shape), torch.randn(2, 4, 3), (None, None)
    for channels, expert in zip([(4, 3), (6, 4), (8, 5)], experts):
        handed = before
        elbo, log_p, before = expert(x, noise, before)
        torch.testing.assert_close(log_p.exp().sum(dim=1), torch.ones(2))
        assert [f.shape[1] // channels[0] for f in before[0]] == [1, 2, 4]
        assert [f.shape[1] // channels[1] for f in before[1]] == [1, 1, 2, 4, 8]
    assert len({sum(p.numel() for p in expert.vae.decoder.parameters()) for expert in experts}) == 1
    (elbo.sum() + log_p[:, 0].sum()).backward()
    assert all(p.grad is None for expert in experts[:2] for p in expert.parameters())
    assert all(p.grad is not None for p in experts[2].parameters())
    others = [[level + 1 for level in net] for net in handed]
    assert all((mine != theirs).any() for mine, theirs in zip((elbo, log_p), experts[2](x, noise, others)))


def test_sizes_of_the_paper():
    """CIFAR-100 settings: expert 1, and what expert 4 adds, by the widths of the authors' configuration."""
    assert [widths(k, 32, 4) for k in range(5)] == [(32, 0), (32, 0), (4, 32), (4, 36), (4, 40)]
    experts = [Expert(k, (3, 32, 32), 100, latent=64, vae=(32, 4), classifier=(20, 4)) for k in (1, 4)]
    maps = [[m.out_channels for m in e.classifier.modules() if isinstance(m, torch.nn.Conv2d)] for e in experts]
    assert maps[0] == [20, 20, 20, 40, 40, 40, 80, 80, 80, 160, 160, 160]
    assert maps[1] == [4, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32]
    assert [e.classifier.head.in_features for e in experts] == [160, 8 * 32]
    assert [e.vae.mean.in_features for e in experts] == [128, 4 * 44]
