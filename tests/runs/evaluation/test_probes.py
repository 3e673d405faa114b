"""The probes of a stream's past."""

import base64

import numpy as np
import torch
from tiny import cell, setting

from clpapers.runs.evaluation.probes import Probes


def test_probes_report_what_the_net_says(data, streams):
    """The last bits are the final net's answers on the probes, by a learner that always answers class 2."""

    class Constant:
        def scores(self, x, tasks):
            return torch.zeros(*x.shape[:2], 4).index_fill_(2, torch.tensor([2]), 1.0)

    told = setting(cell("single", {}, "mlp"), data, {seed: streams[seed] for seed in (0, 1)})
    probes = Probes({"points": 2, "probes": None}, told)
    assert probes.steps == {5: 30, 10: 53}
    for t in probes.steps:
        probes.take(t, Constant())
    for s in range(2):
        result = probes.result(s)["probes"]
        assert result["position"] == list(range(53))
        for time, packed in zip(result["time"], result["correct"], strict=True):
            bits = np.unpackbits(np.frombuffer(base64.b64decode(packed), np.uint8), count=time)
            assert (bits == (told.labels[s, :time].numpy() == 2)).all()
