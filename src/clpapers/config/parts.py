"""The parts of a cell and their options. An order's options are declared beside the streams that it makes."""

from collections.abc import Mapping
from typing import Annotated, Literal

from clpapers.catalogue.options import Count, Positive, Share, Struct, bounds
from clpapers.streams.orders import ORDERS
from clpapers.streams.restrictions import RESTRICTIONS


class UnnamedTasks(Struct):
    """An oracle without options."""


class NamedTasks(Struct):
    """An oracle that names a number of tasks."""

    tasks: Annotated[Count, "how many it names"]


class DominantTasks(Struct):
    """An oracle whose tasks have unequal shares of the classes."""

    shares: Annotated[
        list[Annotated[float, bounds(exclusiveMinimum=0, maximum=1)]], bounds(minItems=1), "of the classes in each task"
    ]


ORACLES: dict[str, type[Struct]] = {
    "none": UnnamedTasks,
    "split": NamedTasks,
    "dominant_tasks": DominantTasks,
    "random_tasks": NamedTasks,
    "chunks": UnnamedTasks,
    "entropy": NamedTasks,
}


class Restriction(Struct):
    """A restriction as a cell's description writes it."""

    name: Annotated[
        str,
        bounds(enum=(*RESTRICTIONS,)),
        "whose tasks restrict the classes that compete: nobody; in training the tasks of the oracle, those of the data "
        "(e) or its own (t), and at test the same (s), all classes (a), those of the data (es) or others (ed)",
    ]
    train: Annotated[
        Literal["tasks", "present", "seen", "none"],
        "what competes in training, where the restriction has a part for it: the classes of the tasks in a batch; "
        "those of the batch; those of all batches so far; or all",
    ] = "tasks"


Width = Annotated[Count, "maps of the first layer"]
Hidden = Annotated[list[Count], bounds(minItems=1), "widths of the hidden layers"]
Head = Literal["linear", "cosine", "joint_embedding"]
Init = Annotated[
    Literal["fan_out", "pytorch", "truncated_normal", "uniform_gamma", "uniform_side", "uniform_side_zero", "xavier"]
    | None,
    "how layers begin; or as PyTorch has it",
]
Epsilon = Annotated[Positive | None, "of batch norm; or PyTorch's"]


class Mlp(Struct):
    """The options of net `mlp`."""

    hidden: Hidden
    copies: Annotated[Count, "how often each pixel enters"] = 1
    init: Init = None


class Cnn(Struct):
    """The options of net `cnn`."""

    width: Width


class ReducedResnet(Struct):
    """The options of net `resnet18_reduced`."""

    width: Width
    head: Head
    init: Init = None
    epsilon: Epsilon = None


class Resnet(ReducedResnet):
    """The options of net `resnet18`."""

    pool: Annotated[bool, "whether maximum pooling follows the first convolution"]
    weights: Annotated[Literal["none", "imagenet"], "what it starts from, of config/weights.yaml"]
    shortcut_norm: Annotated[bool, "whether batch norm follows the convolutions of shortcuts"] = True


class ExstreamMlp(Struct):
    """The options of net `exstream_mlp`."""

    hidden: Hidden
    batch_norm: bool
    dropout: Annotated[float, bounds(minimum=0, exclusiveMaximum=1), "the share of units that is left out"]


NETS: dict[str, type[Struct]] = {
    "mlp": Mlp,
    "cnn": Cnn,
    "resnet18_reduced": ReducedResnet,
    "resnet18": Resnet,
    "exstream_mlp": ExstreamMlp,
}


class Budget(Struct):
    """The means of training."""

    optimizer: Literal["sgd", "adam"]
    learning_rate: Positive
    momentum: Annotated[Share | None, "of sgd; or it has none"] = None
    clip: Annotated[Positive | None, "the largest value of a gradient's element, of sgd; or there is none"] = None
    batch: Annotated[
        Count | Annotated[str, bounds(pattern="^task$")],
        "items a step, or `task`, all of a task in one step (of an epoch, where a task has several)",
    ]
    replay_batch: Annotated[Count, "replayed items a step"]
    memory: Annotated[Count | None, "items; or `memory_per_class` tells"] = None
    memory_per_class: Annotated[Count | None, "items for each class of each task, instead of `memory`"] = None


class Gradients(Struct):
    """Measurements of the gradients of a posterior's loss."""

    batches: Annotated[int, bounds(minimum=2)]
    size: Count
    repetitions: Count


class Evaluation(Struct):
    """The tests, and their times."""

    points: Annotated[Count, "how often along the stream probes are tested, the end included"]
    probes: Annotated[Count | None, "items of the stream that are tested again; null: all"]
    test: Annotated[Count | None, "items of the test split that are tested; null: all"]
    shots: Annotated[
        Annotated[int, bounds(minimum=0)] | None,
        "every task is tested after each task, and each before so many of its first steps and its next one; 0 will do "
        "for accuracies after tasks",
    ] = None
    every: Annotated[Count | None, "stream items from one testing event to the next; or there are none"] = None
    batch: Annotated[Count | None, "test items a batch shares its restriction with; or as in training"] = None
    oracles: Annotated[
        list[str] | None,
        bounds(uniqueItems=True),
        "the paper's oracles whose restrictions a run that looks at none is evaluated under",
    ] = None
    # what only learners measure that declare it
    gradients: Annotated[
        Gradients | None,
        "batches of the second task, items of each and how often: the gradients of the terms of a posterior's loss",
    ] = None
    trace: Annotated[Count | None, "items of a task whose mutual information is noted before each epoch"] = None


class SingleValues(Struct):
    """The values of a cell that stand alone."""

    scaling: Annotated[
        Literal["symmetric", "unit", "centred", "standardised", "imagenet", "none"],
        "of pixels: to [-1, 1], to [0, 1], less the mean image, less mean and by deviation of channels, as ImageNet "
        "weights want",
    ]
    precision: Literal["float32", "tf32", "float64"]


# By part: its options or, of parts that have a name, the options by name.
PARTS: dict[str, type[Struct] | Mapping[str, type[Struct]]] = {
    "order": ORDERS,
    "oracle": ORACLES,
    "restriction": Restriction,
    "net": NETS,
    "budget": Budget,
    "evaluation": Evaluation,
}


# The JSON Schema of a cell's values beside data set and learner.
CELL = {
    "type": "object",
    "additionalProperties": False,
    "properties": {part: {"type": "object"} for part in PARTS} | {"oracle": {}} | SingleValues.rules()["properties"],
}


def takes(part: str, name: object) -> Mapping[str, object] | None:
    """The options that a part of this name takes; None for one that has no names, and for a name that it lacks."""
    named = PARTS.get(part)
    return named[name].fields() if isinstance(named, Mapping) and isinstance(name, str) and name in named else None


def piece(part: str) -> dict:
    """The JSON Schema of a piece of a part, whichever its name: no option is needed."""
    named, properties = PARTS[part], dict[str, dict]()
    if isinstance(named, Mapping):
        properties["name"] = {"enum": list(named)}
    for each in named.values() if isinstance(named, Mapping) else [named]:
        properties |= each.rules()["properties"]
    return {"type": "object", "additionalProperties": False, "properties": properties}


def definitions() -> dict[str, dict]:
    """The definitions of a cell and its parts in the schema of a paper's file."""
    by_part = {part: {"$ref": f"#/$defs/{part}"} for part in PARTS} | {"oracle": {"$ref": "#/$defs/oracle_or_name"}}
    return {part: piece(part) for part in PARTS} | {"cell": CELL | {"properties": CELL["properties"] | by_part}}
