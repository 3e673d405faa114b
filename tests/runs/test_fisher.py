"""The Fisher estimate: by hand, and against one backward pass for each item and class."""

import pytest
import torch
import torch.nn.functional as F
from tiny import CNN, EMBEDDING, LINEAR, MLP, RESNET

from clpapers.runs import nets
from clpapers.runs.fisher import squared_gradients, squared_mean_gradient
from clpapers.runs.nets.stacked import stack

SHAPE = (1, 8, 8)
MASK = torch.tensor([[False, True, False, True], [True, False, True, True], [True, True, False, False]])


def squares(net, x, allowed, how="likeliest", chances=None):
    """The mean over the items of an ordinary net's squared gradients of log p(ŷ), in evaluation mode.

    ŷ is the `likeliest` class, that in whose share the item's `chance` falls, or `every` class, weighted by its share.
    Or the square of the `mean` over the items.
    """
    parameters, training = list(net.parameters()), net.training
    net.eval()
    total = [torch.zeros_like(p) for p in parameters]
    for i, item in enumerate(x):
        log_p = F.log_softmax(net(item[None])[0, allowed], dim=0)
        p = log_p.detach().exp()
        y = int((p.cumsum(dim=0) <= chances[i]).sum()) if how == "chance" else int(p.argmax())
        chosen = enumerate(p.tolist()) if how == "every" else [(y, 1)]
        for c, weight in chosen:
            for sum_, g in zip(total, torch.autograd.grad(log_p[c], parameters, retain_graph=True)):
                sum_ += weight * (g if how == "mean" else g**2) / len(x)
    net.train(training)
    return [sum_**2 for sum_ in total] if how == "mean" else total


def test_by_hand():
    """Items x = 0 and 1 at w = (log 3/2, 0), b = (log 2, 0) have p(ŷ) = 2/3 and 3/4: (1 - p)² is 1/9 and 1/16.

    So F_w = (0 + 1/16)/2 and F_b = (1/9 + 1/16)/2. The mean of the gradients 0 and 1/4 of w_0 is 1/8, that of 1/3 and
    1/4 of b_0 is 7/24.
    """
    net = stack(lambda: nets.build(LINEAR, (1, 1, 1), 2), [0]).double()
    weight, bias = net.parameters()
    with torch.no_grad():
        weight.copy_(torch.tensor([[1.5], [1]]).log())
        bias.copy_(torch.tensor([2, 1]).log())
    x = torch.tensor([0.0, 1]).double().view(1, 2, 1, 1, 1)
    for estimate, w, b in ((squared_gradients, 1 / 32, 25 / 288), (squared_mean_gradient, 1 / 64, 49 / 576)):
        of_weight, of_bias = estimate(net, x)
        torch.testing.assert_close(of_weight.flatten(), torch.tensor([w, w]).double())
        torch.testing.assert_close(of_bias.flatten(), torch.tensor([b, b]).double())


@pytest.mark.parametrize("how", ["likeliest", "chance", "every", "mean"])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("seeds", "count"), [([4], 1), ([4, 5, 6], 5)], ids=["one", "three"])
@pytest.mark.parametrize("net", [MLP, CNN, RESNET, EMBEDDING], ids=["mlp", "cnn", "resnet", "embedding"])
def test_it_is_that_of_single_items(net, seeds, count, masked, how):
    """Nets whose running statistics have moved, and stay; each seed has images and a mask of its own."""
    rng = torch.Generator().manual_seed(1)
    tables = [torch.rand(4, 6, generator=rng) for _ in seeds]

    def build(table):
        return nets.build(net, SHAPE, 4, attributes=table).double()

    stacked = stack(build, seeds, tables).double().train()
    x, warm = (torch.rand((len(seeds), n, *SHAPE), generator=rng, dtype=torch.float64) for n in (count, 6))
    chances = torch.rand(len(seeds), count, generator=rng, dtype=torch.float64)
    chances[0, 0] = 0  # never a class that does not compete
    stacked(warm)
    before = [value.clone() for value in stacked.state_dict().values()]
    mask = MASK[: len(seeds)] if masked else None
    options = {"chance": {"uniform": chances}, "every": {"every": True}}.get(how, {})
    estimate = (squared_mean_gradient if how == "mean" else squared_gradients)(stacked, x, mask, **options)
    assert stacked.training
    assert all(torch.equal(*pair) for pair in zip(before, stacked.state_dict().values()))
    for s, seed in enumerate(seeds):
        torch.manual_seed(seed)
        plain = build(tables[s]).train()
        plain(warm[s])
        allowed = MASK[s].nonzero()[:, 0].tolist() if masked else [0, 1, 2, 3]
        expected = squares(plain, x[s], allowed, how, chances[s])
        for parameter, mine, other in zip(stacked.parameters(), estimate, expected, strict=True):
            assert mine.shape == parameter.shape
            torch.testing.assert_close(mine.view(len(seeds), *other.shape)[s], other, rtol=1e-8, atol=1e-14)
