"""The tiny problem of this stage's tests: options, nets, cells, streams and what learners are given."""

import numpy as np
import torch

from clpapers.runs import loop
from clpapers.runs.course import Course, course
from clpapers.streams.orders import NO_TRANSFORMS
from clpapers.streams.stream import Stream

CPU = torch.device("cpu")
OPTIONS = {
    "er": {"forward": "separate"},
    "mir": {"candidates": 12},
    "cbrs": {"forward": "separate", "replay": "uniform"},
    "gdumb": {"memory_batch": 8},
    "gdumb_retrained": {"memory_batch": 5, "epochs": 1},
    "gmed": {"alpha": 0.5, "beta": 0.1, "decay": 0.1, "sign": "paper"},
    "ace": {"mask": "present"},
    "single": {},
    "multi_task": {},
    "offline": {"epochs": 3, "batch": 7},
    "ewc": {"strength": 10.0, "gamma": 0.9, "fisher": "last_batch", "normalise": False, "half": True},
    "si": {"strength": 0.5, "damping": 0.1, "gradient": "whole", "clip": False},
    "mas": {"strength": 0.5, "per": "batch", "reset": True},
    "rwalk": {"strength": 0.5, "damping": 1e-3, "interval": 2, "decay": 0.9, "published": False},
    "prog_nn": {},
    "gem": {"margin": 0.5, "ridge": 1e-3, "write": "ring"},
    "s_gem": {"write": "uniform"},
    "a_gem": {"write": "uniform"},
    "icarl": {"loss": {"name": "binary", "temperature": 2.0}, "space": "features", "exemplars": "batch"},
    "gr": {"latent": 3, "reconstruction": "bce", "generator_learning_rate": 1e-3, "new_share": "half"},
    "vgr": {
        "epochs": 2,
        "batch": 16,
        "batch_per_task": False,
        "initial_variance": 1e-2,
        "samples": 2,
        "prediction_samples": 4,
        "generated": 6,
        "gan": {"name": "gan_conv", "latent": 3, "width": 2, "epochs": 2, "batch": 8, "learning_rate": 1e-3},
        "trace": 5,
    },
    "multi_model": {"widths": {"1": 8, "2": 4}},
    "random": {},
    "random_multi_model": {},
    "vcl": {
        "epochs": 2,
        "batch": 8,
        "initial_variance": 1e-6,
        "samples": 3,
        "prediction_samples": 5,
        "prior_weight": 1,
        "gradients": None,
    },
    "vcl_coreset": {
        "epochs": 2,
        "batch": 8,
        "initial_variance": 1e-6,
        "samples": 3,
        "prediction_samples": 5,
        "prior_weight": 1,
        "coreset": 4,
        "coreset_epochs": 2,
        "prior": "previous",
    },
    "cn_dpm": {
        "log_alpha": -20,
        "latent": 3,
        "samples": 4,
        "vae_width": 4,
        "vae_extension": 2,
        "classifier_width": 3,
        "classifier_extension": 1,
        "stm": 12,
        "sleep_batch": 6,
        "sleep_vae_steps": 6,
        "sleep_classifier_steps": 4,
        "vae_learning_rate": 3e-3,
        "classifier_learning_rate": 1e-2,
        "decay": 0.2,
        "weight_decay": 1e-5,
        "clip": 0.5,
        "chill": 0.1,
    },
    "nn1": {},
    "bartmap": {"bias": 10, "alpha": 1e-8, "gamma": 1e-7, "epsilon": -1e-5, "vigilance": 0, "calibration": 0},
    "geppnet": {
        "side": 5,
        "start": 3,
        "noise": 0.1,
        "rates": [0.2, 0.01],
        "radii": [2, 0.5],
        "settling": 0.3,
        "sharpness": 4,
        "margin": 0.3,
        "readout_rate": 0.05,
    },
}
VARIANTS = [
    *OPTIONS.items(),
    (
        "ewc",
        {"strength": 1.0, "gamma": 0, "fisher": {"interval": 2, "decay": 0.9}, "normalise": True, "half": False},
    ),
    ("ewc", {"strength": 5.0, "gamma": 1, "fisher": {"samples": 7}, "normalise": False, "half": True}),
    ("vcl", OPTIONS["vcl"] | {"batch": "full", "gradients": {"batches": 3, "size": 4, "repetitions": 2}}),
    ("vcl_coreset", OPTIONS["vcl_coreset"] | {"prior": "standard"}),
    ("si", {"strength": 0.1, "damping": 1e-3, "gradient": "task", "clip": True}),
    ("er", {"forward": "concatenated"}),
    ("icarl", {"loss": {"name": "softmax", "strength": 1.0}, "space": "logits", "exemplars": "task"}),
    ("cbrs", {"forward": "concatenated", "replay": "weighted"}),
    ("gmed", {"alpha": 0.5, "beta": 0.1, "decay": 0.0, "sign": "code"}),
    ("gr", {"latent": 3, "reconstruction": "mse", "generator_learning_rate": 1e-3, "new_share": "by_tasks"}),
]
# Learning is compared on the MLP and the CNN: a ResNet on 8×8 images ends in 1×1 maps, where batch norm over a handful
# of numbers multiplies rounding errors by ten or more a step.
NETS = {
    "mlp": {"name": "mlp", "hidden": [16]},
    "exstream": {"name": "exstream_mlp", "hidden": [16, 12], "batch_norm": True, "dropout": 0.0},
    "cnn": {"name": "cnn", "width": 3},
    "resnet": {"name": "resnet18_reduced", "width": 2, "head": "linear"},
    "cosine": {"name": "resnet18_reduced", "width": 2, "head": "cosine"},
    "resnet18": {"name": "resnet18", "width": 2, "pool": True, "head": "linear", "weights": "none"},
    "embedding": {"name": "resnet18_reduced", "width": 2, "head": "joint_embedding"},
}
BY_TASK = {"batch": "task", "optimizer": "adam", "learning_rate": 0.01}  # budget of learners of whole tasks
NONE, MIXED, CHUNKS = {"name": "none"}, {"name": "mixed"}, {"name": "chunks"}
RANDOM = {"name": "random", "length": None}
SPLIT = {"name": "split", "tasks": 2, "length": None}
DOMAINS = {"name": "permuted_pixels", "tasks": 3, "length": None}


def split(tasks: int, *, aligned: bool = True) -> dict:
    """The oracle that splits the classes into tasks."""
    return {"name": "split", "tasks": tasks, "aligned": aligned}


def cell(learner, options, net="resnet", *, oracle=NONE, train="none", order=RANDOM, oracles=None, **budget):
    """A complete cell on the tiny problem, in float64."""
    return {
        "dataset": "tiny",
        "order": order,
        "oracle": oracle,
        "restriction": {"train": train},
        "learner": {"name": learner, **options},
        "net": NETS[net],
        "budget": {"optimizer": "sgd", "learning_rate": 0.1, "batch": 5, "replay_batch": 4, "memory": 20}
        | budget
        | (BY_TASK if learner in ("vcl", "vcl_coreset", "vgr") else {}),
        "scaling": "unit" if learner in ("gr", "cn_dpm", "vgr", "bartmap") else "symmetric",
        "evaluation": {"points": 3, "probes": 17, "test": None, "oracles": oracles or {}},
        "precision": "float64",
    }


def stream(indices, seed=0, boundaries=(), transforms=NO_TRANSFORMS) -> Stream:
    """The stream of these training items, in this order."""
    n = len(indices)
    edges = np.array(boundaries, dtype=np.int64)
    return Stream(np.asarray(indices), np.arange(n) / n, np.full((4, 4), np.nan), edges, np.asarray(transforms), seed)


def courses(spec, data, streams) -> list[Course]:
    """The courses of a cell along some streams, seed → stream."""
    return [course(spec, s, data.train_y, data.test_y, data.classes) for s in streams.values()]


def images(spec, data, transforms=()) -> loop.Images:
    """The training images as a cell's learner sees them."""
    return loop.Images(data.train_x, spec["scaling"], CPU, torch.float64, transforms)


def setting(spec, data, streams) -> loop.learners.Setting:
    """What a cell's learner is given for some streams, stacked."""
    gone_through = courses(spec, data, streams)
    return loop._setting(spec, data, gone_through, images(spec, data, [c.transforms for c in gone_through]))
