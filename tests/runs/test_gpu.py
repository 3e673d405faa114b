"""On a GPU, where there is one: every learner trains as on the CPU, and to the same bits again."""

import numpy as np
import pytest
import torch
from tiny import CPU, OF_ONE_NET, VARIANTS, cell, told

from clpapers.runs import loop

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no GPU")
# These draw weights or images on the device, whose generator is another than the CPU's.
DRAWN_THERE = {"vcl", "vcl_coreset", "vgr", "gr", "cn_dpm", "random", "random_multi_model"}


@pytest.fixture
def settings():
    """What a run sets for the whole process, undone afterwards."""
    before = torch.are_deterministic_algorithms_enabled()
    yield
    torch.use_deterministic_algorithms(before)


@pytest.mark.usefixtures("settings")
@pytest.mark.parametrize(
    ("learner", "options", "net"),
    [(*given, net) for given in VARIANTS for net in ("mlp", "cnn") if net == "mlp" or given[0] not in OF_ONE_NET],
)
def test_a_learner_trains_as_on_the_cpu(learner, options, net, data, streams):
    spec = cell(learner, options, net, oracle=told(learner))
    there = loop.train(spec, data, streams, torch.device("cuda"))
    assert there == loop.train(spec, data, streams, torch.device("cuda"))
    here = loop.train(spec, data, streams, CPU)
    for one, other in zip(here, there):
        assert one.keys() == other.keys()
        assert (one["seed"], one["steps"], one["memory"]) == (other["seed"], other["steps"], other["memory"])
        if learner not in DRAWN_THERE:
            assert one["test"] == other["test"]
            assert one["online"]["correct"] == other["online"]["correct"]
            if one["online"]["loss"] is not None:
                np.testing.assert_allclose(one["online"]["loss"], other["online"]["loss"], rtol=1e-5)
