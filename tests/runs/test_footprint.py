"""What learners hold, in bytes, counted by hand on an MLP in float64."""

import pytest
import torch
from tiny import CHUNKS, CPU, OPTIONS, SPLIT, VARIANTS, Way, cell

from clpapers.runs import loop
from clpapers.runs.footprint import learner_bytes
from clpapers.streams import orders

P = 192 * 16 + 16 + 16 * 4 + 4  # 8×8 colour images, 16 units, 4 classes
PIXELS = 192
NUMBER = 8
MAP = 25 * PIXELS + 4 * 25 + 1  # w, V, κ
MEMORY = 20  # items: 5 of each class, 10 of each of the two tasks
RUNNING = {"strength": 1.0, "gamma": 0, "fisher": {"interval": 2, "decay": 0.9}, "normalise": True, "half": False}
SAMPLED = {"strength": 1.0, "gamma": 1, "fisher": {"samples": 7}, "normalise": False, "half": True}


def held(learner, data, options=None, seeds=(0, 1, 2), net="mlp", **budget):
    spec = cell(learner, options or OPTIONS[learner], net, order=SPLIT, oracle=CHUNKS, train="oracle", **budget)
    streams = {seed: orders.make(SPLIT, data.train_y, seed) for seed in seeds}
    return [result["learner_bytes"] for result in loop.train(spec, data, streams, CPU)]


def column(earlier):
    """Numbers of a column after so many others: its own, laterals from pixels summed up in them, and other laterals."""
    return P + earlier * (16 * 4 + 4)


@pytest.mark.parametrize(
    ("learner", "options", "training", "testing"),
    [
        ("single", None, 2 * P * NUMBER, P),  # parameters and gradients
        ("ewc", RUNNING, 7 * P * NUMBER, P),  # F, its sum, what became of F at the change, that scaled, θ*
        ("ewc", None, 4 * P * NUMBER + 5 * PIXELS * NUMBER, P),  # F, θ*, the last batch
        ("ewc", SAMPLED, 4 * P * NUMBER, P),  # F, θ*
        ("vcl", None, 4 * P * NUMBER, 2 * P),  # means and log-variances of posterior and prior
        ("vcl_coreset", None, 4 * P * NUMBER + 2 * 4 * PIXELS, 2 * P),
        ("si", None, 5 * P * NUMBER, P),  # ω, Ω, θ̃
        ("mas", None, 4 * P * NUMBER, P),  # Ω, θ*
        ("gem", None, 3 * P * NUMBER + MEMORY * PIXELS, P),  # one completed task: a row of G
        ("s_gem", None, 2 * P * NUMBER + MEMORY * PIXELS, P),
        ("a_gem", None, 2 * P * NUMBER + MEMORY * PIXELS, P),
        ("prog_nn", None, (column(0) + 2 * column(1)) * NUMBER, column(0) + column(1)),  # the first one is frozen
        ("er", None, 2 * P * NUMBER + MEMORY * PIXELS, P),
        ("gmed", None, 2 * P * NUMBER + (MEMORY * PIXELS + MEMORY + 1) * NUMBER, P),  # edited images, their ages
        ("multi_task", None, 2 * P * NUMBER, P),
        ("nn1", None, 120 * PIXELS * NUMBER, 120 * PIXELS),  # all items
        ("geppnet", None, MAP * NUMBER + 120 * PIXELS, MAP),  # its numbers, and items to replay
    ],
)
def test_by_hand(learner, options, training, testing, data):
    for found in held(learner, data, options):
        assert found == {"training": training, "testing": testing * NUMBER}


def test_two_views_of_one_storage_count_once(data):
    """Six numbers of which two are named again, and two numbers apart."""
    spec = cell("single", {}, "mlp", order=SPLIT)
    learner = Way(spec, data, [orders.make(SPLIT, data.train_y, 0)]).learner
    before = learner_bytes(learner, 0)["training"]
    learner.table = torch.zeros(6, dtype=torch.float64)
    learner.first, learner.apart = learner.table[:2], torch.zeros(2, dtype=torch.float64)
    assert learner_bytes(learner, 0)["training"] - before == (6 + 2) * NUMBER


def test_adam_holds_two_moments_and_batch_norm_its_statistics(data):
    """Of every seed as of one alone, whose layers also count their batches."""
    assert held("single", data, optimizer="adam")[0]["training"] == 4 * P * NUMBER
    together = held("single", data, net="resnet", batch=15)
    assert together[0] == held("single", data, seeds=[0], net="resnet", batch=15)[0]
    build = loop.nets.build(cell("single", {})["net"], (3, 8, 8), 4)
    numbers = sum(p.numel() for p in build.parameters())
    numbers += sum(b.numel() for b in build.buffers() if b.is_floating_point())
    assert together[0]["testing"] == numbers * NUMBER


@pytest.mark.parametrize(("learner", "options"), VARIANTS)
def test_every_learner_says_what_it_holds(learner, options, data):
    for found in held(learner, data, options, seeds=[0]):
        assert 0 <= found["testing"] <= found["training"]
