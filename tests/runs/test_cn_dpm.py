"""CN-DPM: who answers for an item, how experts come to be, and what they say together."""

import math

import pytest
import tiny
import torch
import torch.nn.functional as F

from clpapers.runs.learners.cn_dpm import CNDPM, mixture, responsibilities
from clpapers.runs.nets.cn_dpm_expert import Expert, widths

SIZES = {"latent": 3, "vae": (4, 2), "classifier": (3, 1)}
OPTIONS = tiny.OPTIONS["cn_dpm"]
ALL_NOVEL, NONE_NOVEL = 1e9, -1e9  # values of log_alpha


@pytest.fixture
def learn(data, streams):
    """Makes a learner, and lets it learn some steps of a seed's stream."""

    def learner(seed=0, steps=None, batch=5, **options):
        spec = tiny.cell("cn_dpm", OPTIONS, "mlp", batch=batch) | {"scaling": "unit"}
        setting = tiny.setting(spec, data, {seed: streams[seed]})
        made = CNDPM(setting, **OPTIONS | options)
        for t in range(len(setting.ends) if steps is None else steps):
            step(made, t)
        return made

    return learner


def step(learner, t):
    now = learner.setting.step(t)
    return learner.observe(t, learner.setting.images(learner.setting.items[:, now]), learner.setting.labels[:, now])


def state(module):
    return [p.detach().clone() for p in module.parameters()]


def same(before, module):
    return all(torch.equal(b, p) for b, p in zip(before, module.parameters(), strict=True))


def test_responsibilities_by_hand():
    """Joints 8 : 1 : 3, 1 : 3 : 1 and 1 : 1 : 0 with expert 0 in front."""
    joints = torch.tensor([[8.0, 1, 3], [1, 3, 1], [1, 2, 0]]).log() - 1000
    novel, shares = responsibilities(joints)
    assert novel.tolist() == [True, False, False]
    torch.testing.assert_close(shares, torch.tensor([[0, 0], [0.75, 0.25], [1, 0]]), atol=1e-4, rtol=0)


def test_without_experts_all_is_novel():
    novel, shares = responsibilities(torch.tensor([[-3.0], [2.0]]))
    assert novel.tolist() == [True, True]
    assert shares.shape == (2, 0)


def test_mixture_by_hand():
    """Priors 3/4 and 1/4, p(x|k) in the ratio 1 : 6, so that p(k|x) is 1/3 and 2/3."""
    elbos = torch.tensor([[1.0, 6.0]], dtype=torch.float64).log() - 3000
    log_ps = torch.tensor([[[0.9, 0.1], [0.3, 0.7]]], dtype=torch.float64).log()
    said = mixture(torch.tensor([30.0, 10.0], dtype=torch.float64).log(), elbos, log_ps)
    torch.testing.assert_close(said.exp(), torch.tensor([[0.9 / 3 + 0.6 / 3, 0.1 / 3 + 1.4 / 3]], dtype=torch.float64))


def test_prediction_is_the_papers(learn):
    """argmax and differences of logsumexp_k [log prior_k + ELBO_k + log p_k(y|x)], expert by expert."""
    learner = learn(log_alpha=ALL_NOVEL, steps=8)
    assert len(learner.experts) == 3
    x = learner.setting.images(torch.arange(0, 120, 9)[None])
    elbos, log_ps = learner.assess(x[0], learner.evaluation_noise)
    prior = learner.counts / learner.counts.sum()
    joint = sum(prior[k - 1] * (elbos[k] - elbos[1]).exp()[:, None] * log_ps[k].exp() for k in (1, 2))
    scores = learner.scores(x, torch.zeros(1, x.shape[1]))
    torch.testing.assert_close(scores[0].softmax(dim=1), joint / joint.sum(dim=1, keepdim=True))


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


def test_assignment_by_hand(learn):
    """Counts 30 and 10; a temperature of 1/2 squares p(y|x) and normalises."""
    learner = learn(steps=0, log_alpha=math.log(2), chill=0.5)
    learner.counts = torch.tensor([30.0, 10.0])
    p = torch.tensor([[0.5, 0.5], [0.9, 0.1], [0.25, 0.75]])  # of one item, by experts 0, 1 and 2
    elbos = [torch.tensor([v]).log() for v in (1.0, 1.0, 6.0)]
    log_ps = [row[None].log() for row in p]
    novel, shares = learner.assign(elbos, log_ps, torch.tensor([1]))
    joints = torch.tensor([30 * 0.01 / 0.82, 60 * 0.9])
    assert not novel.item()
    torch.testing.assert_close(shares[0], joints / joints.sum())
    novel, _ = learn(steps=0, log_alpha=math.log(200), chill=0.5).assign(elbos[:1], log_ps[:1], torch.tensor([1]))
    assert novel.item()


@pytest.mark.parametrize("shape", [(3, 8, 8), (1, 28, 28), (3, 32, 32)])
def test_experts_of_any_image(shape):
    """Number 2 is handed the features of number 1, number 3 those of both; decoders are alike."""
    x, noise, before = torch.rand(2, *shape), torch.randn(2, 4, 3), (None, None)
    decoders = set()
    for k in (1, 2, 3):
        expert = Expert(k, shape, 5, **SIZES)
        elbo, log_p, before = expert(x, noise, before)
        assert elbo.shape == (2,)
        torch.testing.assert_close(log_p.exp().sum(dim=1), torch.ones(2))
        channels = [4, 6, 8][k - 1], [3, 4, 5][k - 1]
        assert [f.shape[1] // channels[0] for f in before[0]] == [1, 2, 4]
        assert [f.shape[1] // channels[1] for f in before[1]] == [1, 1, 2, 4, 8]
        assert log_p.std() > 0
        decoders.add(sum(p.numel() for p in expert.vae.decoder.parameters()))
    assert len(decoders) == 1


def test_sizes_of_the_paper():
    """CIFAR-100 settings: expert 1, and what expert 4 adds, by the widths of the authors' configuration."""
    assert [widths(k, 32, 4) for k in range(5)] == [(32, 0), (32, 0), (4, 32), (4, 36), (4, 40)]
    experts = [Expert(k, (3, 32, 32), 100, latent=64, vae=(32, 4), classifier=(20, 4)) for k in (1, 4)]
    maps = [[m.out_channels for m in e.classifier.modules() if isinstance(m, torch.nn.Conv2d)] for e in experts]
    assert maps[0] == [20, 20, 20, 40, 40, 40, 80, 80, 80, 160, 160, 160]
    assert maps[1] == [4, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32]
    assert [e.classifier.head.in_features for e in experts] == [160, 8 * 32]
    assert [e.vae.mean.in_features for e in experts] == [128, 4 * 44]


def test_no_gradient_into_predecessors():
    experts = [Expert(k, (3, 8, 8), 4, **SIZES) for k in (1, 2, 3)]
    x, noise, before = torch.rand(2, 3, 8, 8), torch.randn(2, 4, 3), (None, None)
    for expert in experts:
        elbo, log_p, before = expert(x, noise, before)
    (elbo.sum() + log_p[:, 0].sum()).backward()
    assert all(p.grad is None for expert in experts[:2] for p in expert.parameters())
    assert all(p.grad is not None for p in experts[2].parameters())
    changed = [f.clone() for f in before[0]]
    with torch.no_grad():
        for p in experts[0].parameters():
            p.add_(0.1)
        handed = [experts[0].vae.climb(x, None)[1]]
        handed.append(experts[1].vae.climb(x, handed[0])[1])
    assert not torch.equal(experts[2].vae.climb(x, handed[1])[1][2], changed[2])  # but they are listened to


def test_an_expert_is_born_when_the_memory_is_full(learn):
    """12 novel items at 5 a step: after steps 3, 6 and 9, with 15 items each."""
    learner = learn(log_alpha=ALL_NOVEL, steps=2)
    assert (len(learner.experts), len(learner.stm)) == (1, 10)
    step(learner, 2)
    assert (len(learner.experts), len(learner.stm)) == (2, 0)
    for t in range(3, 11):
        step(learner, t)
    report = learner.report(0)
    assert report["experts"] == [[0, 0], [15, 1], [30, 2], [45, 3]]
    assert report["counts"] == [15, 15, 15]
    assert report["parameters"] == sum(p.numel() for e in learner.experts[1:] for p in e.parameters())
    memory = learner.memory_use(0)
    assert memory["items"] == sum(memory["per_class"]) == 53 - 45
    assert memory["bytes"] == 8 * 8 * 8 * 3
    assert memory["per_class"] == torch.bincount(learner.setting.labels[0, 45:], minlength=4).tolist()


def test_a_new_expert_knows_what_it_slept_on(learn):
    """Enough sleep: its bound of the density rises far above that of the untrained expert, and it knows the labels."""
    learner = learn(log_alpha=ALL_NOVEL, steps=3, sleep_vae_steps=150, sleep_classifier_steps=60)
    x, y = learner.setting.images(learner.setting.items[:, :15]), learner.setting.labels[0, :15]
    elbos, log_ps = learner.assess(x[0], learner.evaluation_noise)
    assert elbos[1].mean() > elbos[0].mean() + 1
    assert F.nll_loss(log_ps[1], y) < 0.5 * math.log(4)
    assert [group["lr"] for group in learner.optimizers[1].param_groups] == pytest.approx([6e-4, 2e-3])


def test_counts_are_sums_of_shares(learn, monkeypatch):
    """As seen by whoever hands the shares out, plus the items that each expert was born from."""
    given = []
    learner = learn(log_alpha=ALL_NOVEL, steps=6)
    born = learner.counts.clone()
    learner.log_alpha = NONE_NOVEL
    assign = learner.assign

    def noted(*arguments):
        novel, shares = assign(*arguments)
        given.append(shares)
        return novel, shares

    monkeypatch.setattr(learner, "assign", noted)
    for t in range(6, 11):
        step(learner, t)
    torch.testing.assert_close(learner.counts, born + torch.cat(given).sum(dim=0))
    assert learner.counts.sum().item() == pytest.approx(53)  # every item once


def test_only_experts_with_a_share_learn(learn):
    learner = learn(log_alpha=ALL_NOVEL, steps=6)
    before = [state(expert) for expert in learner.experts]
    x = learner.setting.images(learner.setting.items[:, 30:35])
    elbos, _ = learner.assess(x[0], learner.noise(learner.rng, 5))
    shares = torch.zeros(5, 2, dtype=torch.float64)
    shares[3, 1] = 1
    learner.learn(shares, elbos[1:])
    assert same(before[0], learner.experts[0])
    assert same(before[1], learner.experts[1])
    assert not same(before[2], learner.experts[2])
    assert learner.counts.tolist() == [15, 16]


def test_expert_0_is_never_trained(learn):
    learner = learn(steps=0)
    before = state(learner.experts[0])
    learner.log_alpha = ALL_NOVEL
    for t in range(4):
        step(learner, t)
    learner.log_alpha = NONE_NOVEL
    trained = state(learner.experts[1])
    for t in range(4, 11):
        step(learner, t)
    assert same(before, learner.experts[0])
    assert not same(trained, learner.experts[1])
    assert not any(p.requires_grad for p in learner.experts[0].parameters())


def test_says_what_it_thinks_before_it_learns(learn):
    learner = learn(log_alpha=ALL_NOVEL, steps=0)
    loss, logits = step(learner, 0)
    assert loss.item() == pytest.approx(math.log(4))  # nobody to ask: uniform
    assert logits.shape == (1, 5, 4)
    for t in (1, 2):
        step(learner, t)
    before = learner.scores(learner.setting.images(learner.setting.items[:, 15:20]), None)
    learner.rng.manual_seed(0)
    noise = learner.noise(learner.rng, 5)
    elbos, log_ps = learner.assess(learner.setting.images(learner.setting.items[:, 15:20])[0], noise)
    learner.rng.manual_seed(0)
    loss, logits = step(learner, 3)
    torch.testing.assert_close(logits, learner.predict(elbos, log_ps))
    torch.testing.assert_close(loss, F.cross_entropy(logits[0], learner.setting.labels[0, 15:20])[None])
    torch.testing.assert_close(logits, before)  # one expert: no draw of the latent matters
    assert not logits.requires_grad


def test_an_answer_depends_on_its_image_alone(learn):
    learner = learn(log_alpha=ALL_NOVEL, steps=6)
    x = learner.setting.images(torch.arange(20)[None])
    together, again = learner.scores(x, None), learner.scores(x, None)
    assert torch.equal(together, again)
    torch.testing.assert_close(learner.scores(x[:, 7:9], None), together[:, 7:9])
