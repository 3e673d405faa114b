"""Random guesses: uniform over what is left to choose from, and nothing else."""

import numpy as np
import pytest
import torch
from tiny import MLP, Way, images, made, split, two_tasks

DATA = images(classes=6, items=7)
RANDOM, RANDMM = {"name": "random"}, {"name": "random_multi_model"}


def guesser(learner, oracle=None, seeds=(0,)):
    spec = two_tasks(learner, MLP, oracle=oracle or split(3), order={"name": "split", "tasks": 3, "length": None})
    return Way(spec, DATA, [made(spec, DATA, seed) for seed in seeds])


def guesses(way, tasks, allowed=None):
    """The class that each of the items with these tasks [S, N] gets."""
    x = torch.zeros(*tasks.shape, 1, 4, 4, dtype=torch.float64)
    with way.learner.evaluation():
        scores = way.learner.scores(x, tasks)
    if allowed is not None:
        scores[..., [c for c in range(6) if c not in allowed]] = -torch.inf
    return scores.argmax(dim=2)


def assert_uniform(drawn, classes):
    """Each of the classes about equally often, and no other: within five standard deviations."""
    counts = np.bincount(drawn, minlength=6)
    p = 1 / len(classes)
    expected = [len(drawn) * p if c in classes else 0 for c in range(6)]
    assert np.abs(counts - expected).max() <= 5 * np.sqrt(len(drawn) * p * (1 - p))
    assert {c for c in range(6) if counts[c]} == set(classes)


@pytest.mark.parametrize("allowed", [None, [0, 2, 5], [1, 3], [4]])
def test_random_is_uniform_over_the_classes_that_compete(allowed):
    drawn = guesses(guesser(RANDOM), torch.zeros(1, 6000, dtype=torch.long), allowed)
    assert_uniform(drawn[0].numpy(), allowed or range(6))


@pytest.mark.parametrize("task", [0, 1, 2])
def test_random_multi_model_is_uniform_over_the_classes_of_the_task(task):
    """The tasks are the seed's own; under a restriction a guess is one of the classes that are left."""
    way = guesser(RANDMM, seeds=(0, 1, 2))
    drawn = guesses(way, torch.full((3, 6000), task))
    held = [np.flatnonzero(c.tasks.task_classes[task]).tolist() for c in way.scenarios]
    assert len({tuple(each) for each in held}) > 1
    for s in range(3):
        assert len(held[s]) == 2
        assert_uniform(drawn[s].numpy(), held[s])
    assert (guesses(way, torch.full((3, 50), task), allowed=[held[0][0]])[0] == held[0][0]).all()


@pytest.mark.parametrize("oracle", [{"name": "random_tasks", "tasks": 4}, {"name": "entropy", "tasks": 4}, split(1)])
def test_where_the_task_says_nothing_of_the_class_all_compete(oracle):
    way = guesser(RANDMM, oracle)
    tasks = torch.arange(6000)[None] % way.scenarios[0].tasks.tasks
    assert_uniform(guesses(way, tasks)[0].numpy(), range(6))
