"""The probes of a stream's past."""

import base64

import numpy as np
import torch
from tiny import cell, setting

from clpapers.metrics.accuracy import information_retention, unpack
from clpapers.runs.evaluation.probes import Probes


class Constant:
    """Answers class 2, whatever it is asked."""

    outside = False

    def scores(self, x, tasks):
        return torch.zeros(*x.shape[:2], 4).index_fill_(2, torch.tensor([2]), 1.0)


def test_probes_report_what_the_net_says(data, streams):
    """The last bits are the final net's answers on the probes, by a learner that always answers class 2."""
    told = setting(cell("single", {}, "mlp"), data, {seed: streams[seed] for seed in (0, 1)})
    probes = Probes({"points": 2, "probes": None}, told)
    probes.unanswered = np.zeros(len(told.seeds), dtype=int)
    assert probes.steps == {5: 30, 10: 53}
    for t in probes.steps:
        probes.take(t, Constant())
    for s in range(2):
        result = probes.result(s)["probes"]
        assert result["position"] == list(range(53))
        for time, packed in zip(result["time"], result["correct"], strict=True):
            bits = np.unpackbits(np.frombuffer(base64.b64decode(packed), np.uint8), count=time)
            assert (bits == (told.labels[s, :time].numpy() == 2)).all()


def test_probes_that_were_seen_and_have_no_answer_are_counted(data, streams):
    """After 30 items 30 of all 53, at the end 53; the learner answers nothing."""
    told = setting(cell("single", {}, "mlp"), data, {seed: streams[seed] for seed in (0, 1)})
    probes, silent = Probes({"points": 2, "probes": None}, told), Constant()
    silent.scores = lambda x, tasks: torch.full((*x.shape[:2], 4), torch.nan)
    probes.unanswered = np.zeros(2, dtype=int)
    for t in probes.steps:
        probes.take(t, silent)
    assert probes.unanswered.tolist() == [30 + 53] * 2


def test_a_test_before_any_probe_was_seen_has_no_answers(data, streams):
    told = setting(cell("single", {}, "mlp"), data, {0: streams[0]})
    probes = Probes({"points": 11, "probes": 1}, told)
    probes.unanswered = np.zeros(1, dtype=int)
    probes.positions[:] = int(told.ends[-1]) - 1  # the last item
    for t in probes.steps:
        probes.take(t, Constant())
    result = probes.result(0)["probes"]
    assert [len(base64.b64decode(each)) for each in result["correct"]] == [0] * 10 + [1]
    position, time = result["position"], result["time"]
    retained = information_retention(unpack(result["correct"], position, time), position, time)
    assert np.isnan(retained).tolist() == [True] * 10 + [False]
