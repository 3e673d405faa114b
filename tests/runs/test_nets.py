"""Parts of nets by hand."""

import torch

from clpapers.runs.nets import cnn, heads, resnet18_reduced


def test_a_cosine_head_is_ten_cosines_whatever_the_lengths():
    """(3, 4) is 0.6 along the first axis and 0.8 along the second; weights of length 5 and 2."""
    head = heads.CosineLinear(2, 2)
    with torch.no_grad():
        head.weight.copy_(torch.tensor([[5.0, 0.0], [0.0, 2.0]]))
        torch.testing.assert_close(head(torch.tensor([[3.0, 4.0], [30.0, 40.0]])), torch.tensor([[6.0, 8.0]] * 2))


def test_all_stages_but_the_first_halve_the_maps_and_double_their_number():
    x, shapes = torch.zeros(1, 3, 16, 16), []
    for stage in resnet18_reduced.stages(3).values():
        x = stage.eval()(x)
        shapes.append(tuple(x.shape[1:]))
    assert shapes == [(3, 16, 16), (6, 8, 8), (12, 4, 4), (24, 2, 2)]


def test_a_block_ends_with_the_largest_of_each_two_by_two():
    torch.manual_seed(0)
    block, x = cnn.conv_block(2, 3).eval(), torch.rand(1, 2, 4, 4)
    before = block[:-1](x)
    expected = [[before[0, :, i : i + 2, j : j + 2].amax(dim=(1, 2)) for j in (0, 2)] for i in (0, 2)]
    torch.testing.assert_close(block(x)[0], torch.stack([torch.stack(row, dim=1) for row in expected], dim=1))
