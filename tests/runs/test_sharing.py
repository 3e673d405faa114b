"""Cells share runs: some oracles make no difference, and restrictions only read a run."""

import numpy as np
import pytest
import torch
from tiny import CPU, MLP, Way, images, made, split, two_tasks

from clpapers.runs import loop
from clpapers.streams import restrictions
from clpapers.streams.chunks import chunks_of_classes

DATA = images(classes=10, items=16)
METHODS = {
    "ewc": {"strength": 50.0, "gamma": 1.0, "fisher": "last_batch", "normalise": False, "half": True},
    "si": {"strength": 1.0, "damping": 0.1, "gradient": "whole", "clip": False},
    "icarl": {"loss": {"name": "binary", "temperature": 2.0}, "space": "features", "exemplars": "batch"},
    "gr": {"latent": 3, "reconstruction": "bce", "generator_learning_rate": 0.01, "new_share": "half"},
}


def result(method, oracle):
    spec = two_tasks(
        {"name": method, **METHODS[method]}, MLP, oracle=oracle, order={"name": "random", "length": None}, batch=32
    )
    streams = {seed: made(spec, DATA, seed) for seed in (0, 1)}
    return loop.train(spec, DATA, streams, CPU)


@pytest.mark.parametrize("method", METHODS)
def test_on_a_stream_that_mixes_all_tasks_in_every_batch_oracles_do_not_differ(method):
    """Bit for bit: the test unrestricted, the probes, each step's loss, the memory. So config lets them share a run."""
    first, *others = (result(method, oracle) for oracle in (split(2), split(5), {"name": "mixed"}))
    for other in others:
        for mine, theirs in zip(first, other, strict=True):
            assert mine["oracle"]["changes"] == theirs["oracle"]["changes"] == mine["steps"] - 1
            assert mine["test"]["none"] == theirs["test"]["none"]
            for part in ("probes", "online", "memory"):
                assert mine[part] == theirs[part]


def served_alone(way, view):
    """Correct items of each class under one restriction, batch by batch and item by item, as `rules` has it."""
    order, k, seed, labels = way.spec["order"], DATA.classes, way.scenarios[0].seed, DATA.test_y
    of_class = restrictions.evaluation_partition(view, way.spec["oracle"], order, k, seed)
    served, ends = restrictions.test_batches(
        labels, chunks_of_classes(order, k, seed), way.spec["evaluation"]["batch"], seed
    )
    pictures = loop.Images(DATA.test_x, way.spec["scaling"], CPU, way.setting.images.dtype)
    correct = [0] * k
    with way.learner.evaluation(), torch.no_grad():
        for batch in np.split(served, ends[:-1]):
            tasks = None if of_class is None else {of_class[c] for c in labels[batch]}
            for item in batch:
                image = pictures(torch.tensor([[item]]))
                scores = way.learner.scores(image, torch.tensor([[way.scenarios[0].tasks.test[item]]]))[0, 0]
                compete = [c for c in range(k) if tasks is None or of_class[c] in tasks]
                correct[labels[item]] += max(compete, key=lambda c: scores[c]) == labels[item]
    return correct


@pytest.mark.parametrize("learner", [{"name": "single"}, {"name": "multi_model", "widths": {"5": 4}}])
def test_es_es_ed_and_ea_read_one_run(learner):
    """One run says under each of its restrictions what three evaluations say, one restriction each."""
    order = {"name": "split", "tasks": 5, "length": None}
    spec = two_tasks(learner, MLP, oracle=split(5), order=order, train="oracle")
    (run,) = loop.train(spec, DATA, {2: made(spec, DATA, 2)}, CPU)
    assert set(run["test"]) == {"none", "oracle", "data", "independent"}
    accuracies = set()
    for view, found in run["test"].items():
        way = Way(spec, DATA, [made(spec, DATA, 2)])
        way.walk()
        assert found["correct"] == served_alone(way, view)
        assert found["total"] == [4] * 10
        accuracies.add(sum(found["correct"]))
    assert run["test"]["oracle"] == run["test"]["data"]  # the oracle is aligned here
    assert run["test"]["oracle"]["chance"] == pytest.approx(1 / 2)
    assert len(accuracies) > 1
