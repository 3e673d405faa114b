"""On a GPU, where there is one: every learner trains as on the CPU, and to the same bits again, by graphs or not."""

import json

import numpy as np
import pytest
import torch
from tiny import CPU, OF_ONE_NET, STATIC, VARIANTS, Kept, Killed, cell, course, told

from clpapers.runs import cuda_graphs, learners, loop
from clpapers.runs.checkpoint import Checkpoint

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no GPU")
# These draw weights or images on the device, whose generator is another than the CPU's.
DRAWN_THERE = {"vcl", "vcl_coreset", "vgr", "gr", "cn_dpm", "random", "random_multi_model"}


@pytest.fixture
def settings():
    """Settings of the whole process as they were, once a run has changed them."""
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
        tied = options.get("exemplars") == "batch_alone"  # rounding decides which of two items is herded first
        if learner not in DRAWN_THERE and not tied:
            assert one["test"] == other["test"]
            assert one["online"]["correct"] == other["online"]["correct"]
            if one["online"]["loss"] is not None:
                np.testing.assert_allclose(one["online"]["loss"], other["online"]["loss"], rtol=1e-5)


@pytest.mark.usefixtures("settings")
@pytest.mark.parametrize("seeds", [1, 2])
@pytest.mark.parametrize("net", ["mlp", "resnet"])
@pytest.mark.parametrize(("learner", "options"), STATIC)
def test_graphs_end_in_the_bits_of_steps_without(learner, options, net, seeds, data, tmp_path, monkeypatch, capfd):
    """A change of task, tests on the way, batches of another size; killed amid replays, and gone on with."""
    spec, streams = course(learner, options, net, data, seeds)
    spec["precision"] = "float32"
    made, replays, create, replay = [], [], learners.create, cuda_graphs.Captured.replay
    monkeypatch.setattr(learners, "create", lambda *given: made.append(create(*given)) or made[-1])
    monkeypatch.setattr(cuda_graphs.Captured, "replay", lambda self, t: replays.append(t) or replay(self, t))

    def trained(checkpoint=None):
        found = json.dumps(loop.train(spec, data, streams, torch.device("cuda"), checkpoint=checkpoint))
        return found, [value.cpu() for value in made[-1].net.state_dict().values()]

    there, values = trained()
    assert len(replays) > cuda_graphs.WARM
    with pytest.raises(Killed):
        trained(Kept(tmp_path / "run.json", 11))
    again, _ = trained(Checkpoint(tmp_path / "run.json", {}))  # whose learner is a restored one
    assert "not captured" not in capfd.readouterr().err
    replays.clear()
    monkeypatch.setenv(cuda_graphs.SWITCH, "0")
    here, expected = trained()
    assert not replays
    assert there == here == again
    assert all(one.equal(other) for one, other in zip(values, expected, strict=True))
