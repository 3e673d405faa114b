"""The probes of a stream's past."""

import base64

import numpy as np
import pytest
from tiny import CPU, cell

from clpapers.metrics.accuracy import information_retention, unpack
from clpapers.runs import loop

CONSTANT = """
    def scores(self, x, tasks):
        return torch.zeros(*x.shape[:2], 4).index_fill_(2, torch.tensor([2]), {value})
"""


@pytest.fixture
def probed(data, streams, written):
    """The results of a learner that always answers class 2."""

    def of(value="1.0", **options):
        spec = cell("single", {}, "mlp") | {"learner": written(CONSTANT.format(value=value))}
        spec["evaluation"] |= options
        return loop.train(spec, data, streams, CPU)

    return of


def test_probes_report_what_the_net_says(data, streams, probed):
    for result in probed(points=2, probes=None):
        probes = result["probes"]
        assert probes["position"] == list(range(53))
        assert probes["time"] == [30, 53]  # after 6 of the 11 steps, and all
        for time, packed in zip(probes["time"], probes["correct"], strict=True):
            bits = np.unpackbits(np.frombuffer(base64.b64decode(packed), np.uint8), count=time)
            assert bits.tolist() == (data.train_y[streams[result["seed"]].indices[:time]] == 2).tolist()


def test_probes_that_were_seen_and_have_no_answer_are_counted(probed):
    """After 30 items 30 of all 53, at the end 53, and the 24 items of the final test."""
    assert [result["unanswered"]["tests"] for result in probed("math.inf", points=2, probes=None)] == [30 + 53 + 24] * 3


def test_a_test_before_any_probe_was_seen_has_no_answers(probed):
    for result in probed(points=11, probes=1):
        probes = result["probes"]
        position, time = probes["position"], probes["time"]
        seen = [each > position[0] for each in time]
        assert not seen[0]
        assert [len(base64.b64decode(each)) for each in probes["correct"]] == seen
        retained = information_retention(unpack(probes["correct"], position, time), position, time)
        assert np.isfinite(retained).tolist() == seen
