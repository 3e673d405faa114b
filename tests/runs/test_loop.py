"""The loop: seeds do not depend on their stack mates, runs repeat exactly, results mean what their docstring says."""

import base64
import json

import numpy as np
import pytest
import torch
from tiny import VARIANTS, cell

from clpapers.runs import loop

CPU = torch.device("cpu")


@pytest.mark.parametrize(("learner", "options"), VARIANTS)
@pytest.mark.parametrize("net", ["mlp", "cnn"])
def test_a_seed_does_not_depend_on_its_stack_mates(learner, options, net, data, streams):
    """In float64 a seed's result is the same alone, in a stack of three, and in another order."""
    spec = cell(learner, options, net)
    if loop.learners.find(learner).stackable:
        together = loop._train_stack(spec, data, streams, [0, 1, 2], CPU)
        shuffled = loop._train_stack(spec, data, streams, [2, 1], CPU)
    else:
        together = loop.train(spec, data, streams, CPU)
        shuffled = loop.train(spec, data, {s: streams[s] for s in (2, 1)}, CPU)
    for seed in range(3):
        alone = loop._train_stack(spec, data, streams, [seed], CPU)
        others = [together[seed], *([shuffled[2 - seed]] if seed else [])]
        for other in others:
            assert alone[0]["probes"] == other["probes"]
            assert alone[0]["test"] == other["test"]
            assert alone[0]["memory"] == other["memory"]
            if alone[0]["online"]["loss"] is not None:
                np.testing.assert_allclose(alone[0]["online"]["loss"], other["online"]["loss"], rtol=1e-5)
                assert alone[0]["online"]["correct"] == other["online"]["correct"]


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_twice_the_same_bytes(precision, data, streams):
    spec = cell("gmed", {"alpha": 0.5, "beta": 0.1, "decay": 0.0, "sign": "paper"}, "mlp") | {"precision": precision}
    first, second = (json.dumps(loop.train(spec, data, streams, CPU)) for _ in range(2))
    assert first == second


def test_learning_happens(data, streams):
    """On an easy problem replay ends far above chance."""
    full = {0: np.random.default_rng(0).permutation(120)}
    result = loop.train(cell("er", {"forward": "separate"}, "mlp"), data, full, CPU)[0]
    assert sum(result["test"]["correct"]) / sum(result["test"]["total"]) > 0.8


def test_result_format(data, streams):
    spec = cell("er", {"forward": "separate"}, "mlp")
    result = loop.train(spec, data, streams, CPU)[1]
    json.dumps(result, allow_nan=False)
    assert result["seed"] == 1
    assert result["steps"] == 11
    assert len(result["online"]["correct"]) == len(result["online"]["loss"]) == 11
    assert max(result["online"]["correct"]) <= 5
    assert result["test"]["total"] == [6, 6, 6, 6]
    probes = result["probes"]
    assert probes["time"] == [20, 40, 53]
    assert probes["position"] == sorted(set(probes["position"]))
    assert len(probes["position"]) == 17
    for time, packed in zip(probes["time"], probes["correct"], strict=True):
        seen = sum(p < time for p in probes["position"])
        assert len(base64.b64decode(packed)) == -(-seen // 8)
    assert result["memory"]["items"] == sum(result["memory"]["per_class"]) == 20
    assert result["memory"]["bytes"] == 20 * 8 * 8 * 3


def test_probes_report_what_the_net_says(data, streams):
    """The last bits are the final net's answers on the probes, by a net that always answers class 2."""

    class Constant(torch.nn.Module):
        def forward(self, x):
            return torch.zeros(*x.shape[:2], 4).index_fill_(2, torch.tensor([2]), 1.0)

    images = loop.Images(data.train_x, "symmetric", CPU, torch.float32)
    items = torch.from_numpy(np.stack([streams[0], streams[1]]))
    labels = torch.from_numpy(data.train_y)[items]
    probes = loop.Probes({"points": 2, "probes": None}, 53, 5, [0, 1])
    assert probes.steps == {5: 30, 10: 53}
    for t in probes.steps:
        probes.take(t, Constant(), images, items, labels)
    for s in range(2):
        result = probes.result(s)
        assert result["position"] == list(range(53))
        for time, packed in zip(result["time"], result["correct"], strict=True):
            bits = np.unpackbits(np.frombuffer(base64.b64decode(packed), np.uint8), count=time)
            assert (bits == (labels[s, :time].numpy() == 2)).all()


def test_diverged_losses_become_null(data, streams):
    result = loop.train(cell("er", {"forward": "separate"}, "mlp", learning_rate=1e30), data, streams, CPU)[0]
    assert None in result["online"]["loss"]
    json.dumps(result, allow_nan=False)


def test_test_subset_is_shared():
    assert loop.test_items(10, None).tolist() == list(range(10))
    chosen = loop.test_items(1000, 50)
    assert len(set(chosen)) == 50
    assert (np.diff(chosen) > 0).all()
    assert (chosen == loop.test_items(1000, 50)).all()
