"""The ResNet upside down, alone and in a stack."""

import pytest
import torch
from torch import nn

from clpapers.runs import nets
from clpapers.runs.nets.stacked import stack


def decoder(image, width=2, latent=6):
    classes = image[0] * image[1] * image[2]
    return nets.build({"name": "resnet_decoder", "width": width, "image": image}, (latent, 1, 1), classes)


@pytest.mark.parametrize("image", [[3, 32, 32], [1, 28, 28], [3, 8, 8], [2, 7, 12]])
def test_makes_images(image):
    assert decoder(image)(torch.randn(5, 6, 1, 1)).shape == (5, *image)


def test_maps_are_as_large_as_those_of_the_resnet():
    """Side and number of channels of each stage, against those of the encoder it mirrors."""
    image, width = (3, 28, 28), 4
    sides = {}
    for name, net, x in (
        ("up", decoder(list(image), width), torch.randn(2, 6, 1, 1)),
        ("down", nets.build({"name": "resnet18_reduced", "width": width, "head": "linear"}, image, 6), None),
    ):
        sizes = sides[name] = {}
        for i in (1, 2, 3, 4):
            block = net.get_submodule(f"stage{i}.{0 if name == 'up' else 1}")
            block.register_forward_hook(lambda m, _, y, i=i, sizes=sizes: sizes.update({i: tuple(y.shape[1:])}))
        net(torch.randn(2, *image) if x is None else x)
    assert sides["up"] == sides["down"] == {1: (4, 28, 28), 2: (8, 14, 14), 3: (16, 7, 7), 4: (32, 4, 4)}


@pytest.mark.parametrize("seeds", [[3, 1, 4], [3]])
def test_stack_equals_single_nets(seeds):
    image, z = (3, 8, 6), torch.randn(len(seeds), 7, 6, 1, 1, dtype=torch.float64)
    together = stack(lambda: decoder(list(image)), seeds).double()
    said = together(z).view(len(seeds), 7, *image)
    for s, seed in enumerate(seeds):
        torch.manual_seed(seed)
        torch.testing.assert_close(said[s], decoder(list(image)).double()(z[s]))


def test_reaches_an_image_that_its_mirror_image_is_not():
    """The latent decides each place of the image: nothing pools it away."""
    torch.manual_seed(0)
    net, z = decoder([1, 8, 8], width=4), torch.zeros(4, 6, 1, 1)
    z[:2, 0], z[2:, 0] = 1, -1
    corner = torch.zeros(4, 1, 8, 8)
    corner[:2, :, :3, :3], corner[2:, :, 5:, 5:] = 1, 1
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(150):
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(net(z), corner)
        loss.backward()
        optimizer.step()
    assert ((net(z) > 0) == corner.bool()).all()
