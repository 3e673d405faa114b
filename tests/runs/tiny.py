"""The tiny problem of this stage's tests: options, nets and cells."""

OPTIONS = {
    "er": {"forward": "separate"},
    "mir": {"candidates": 12},
    "cbrs": {"forward": "separate", "replay": "uniform"},
    "gdumb": {"memory_batch": 8},
    "gdumb_retrained": {"memory_batch": 5, "epochs": 1},
    "gmed": {"alpha": 0.5, "beta": 0.1, "decay": 0.1, "sign": "paper"},
    "ace": {"mask": "present"},
}
VARIANTS = [
    *OPTIONS.items(),
    ("er", {"forward": "concatenated"}),
    ("cbrs", {"forward": "concatenated", "replay": "weighted"}),
    ("gmed", {"alpha": 0.5, "beta": 0.1, "decay": 0.0, "sign": "code"}),
]
# Learning is compared on the MLP and the CNN: a ResNet on 8×8 images ends in 1×1 maps, where batch norm over a handful
# of numbers multiplies rounding errors by ten or more a step.
NETS = {
    "mlp": {"name": "mlp", "hidden": [16]},
    "cnn": {"name": "cnn", "width": 3},
    "resnet": {"name": "resnet18_reduced", "width": 2, "head": "linear"},
    "cosine": {"name": "resnet18_reduced", "width": 2, "head": "cosine"},
}


def cell(learner, options, net="resnet", **budget):
    """A complete cell on the tiny problem, in float64."""
    return {
        "dataset": "tiny",
        "learner": {"name": learner, **options},
        "net": NETS[net],
        "budget": {"learning_rate": 0.1, "batch": 5, "replay_batch": 4, "memory": 20} | budget,
        "scaling": "symmetric",
        "evaluation": {"points": 3, "probes": 17, "test": None},
        "precision": "float64",
    }
