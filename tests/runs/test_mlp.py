"""The multi-layer perceptron: inputs that enter several times."""

import torch

from clpapers.runs import nets
from clpapers.runs.learners.gr import mirrored
from clpapers.runs.nets.stacked import stack

MLP = {"name": "mlp", "hidden": [5, 4]}


def test_a_copied_pixel_counts_by_the_sum_of_its_weights():
    """By hand: pixels 1 and 2 three times each, weights 1 to 6: 1·(1 + 2 + 3) + 2·(4 + 5 + 6) = 36."""
    net = nets.build({"name": "mlp", "hidden": [], "copies": 3}, (1, 1, 2), 1)
    with torch.no_grad():
        net[-1].weight[:] = torch.arange(1.0, 7.0)
        net[-1].bias.zero_()
        assert net(torch.tensor([[[[1.0, 2.0]]]])).item() == 36


def test_the_first_layer_is_that_of_an_image_with_as_many_channels():
    net = nets.build(MLP | {"copies": 3}, (1, 28, 28), 10)
    grey, coloured = (nets.build(MLP, shape, 10) for shape in ((1, 28, 28), (3, 28, 28)))
    sizes = [[tuple(p.shape) for p in each.parameters()] for each in (net, grey, coloured)]
    assert sizes[0] == sizes[2] != sizes[1]


def test_seeds_in_a_stack_keep_their_own_pixels():
    built = stack(lambda: nets.build(MLP | {"copies": 3}, (1, 2, 2), 3), [0, 1, 2]).eval()
    x = torch.randn(3, 4, 1, 2, 2)
    found = built(x)
    for seed in range(3):
        torch.manual_seed(seed)
        torch.testing.assert_close(found[seed], nets.build(MLP | {"copies": 3}, (1, 2, 2), 3)(x[seed]))


def test_a_decoder_does_not_copy_its_latent():
    assert mirrored(MLP | {"copies": 3}, (1, 28, 28)) == {"name": "mlp", "hidden": [4, 5]}


def test_of_all_input_sizes_only_those_about_three_channels_make_the_printed_widths():
    """As above, of nets of n inputs: (n + 1)·w + (w + 1)·w + (w + 1)·10 parameters. 3 × 28 × 28 = 2352."""

    def size(inputs, width, models=1):
        return models * ((inputs + 1) * width + (width + 1) * width + (width + 1) * 10)

    net = nets.build({"name": "mlp", "hidden": [30, 30]}, (1, 28, 28), 10)
    assert size(784, 30) == sum(p.numel() for p in net.parameters())
    printed = {2: 214, 3: 146, 5: 90, 15: 30}
    found = [
        n
        for n in range(100, 5000)
        if all(size(n, w, m) <= size(n, 400) < size(n, w + 1, m) for m, w in printed.items())
    ]
    assert found == list(range(2309, 2378))
