"""Nets: one architecture a file, each with `build(shape, classes, **options)`.

Files for GANs (`runs/gans.py`) have `generator` and `discriminator` instead.

Every net takes an initialisation (`init`, one of `inits`) and an ε of batch norm (`epsilon`). A module's `ASKS` lists
the arguments of its `build` that are no options of a cell.
"""

import functools
import importlib

import torch
from torch import nn

from clpapers.runs.nets.heads import JointEmbedding
from clpapers.runs.nets.inits import INITS


def build(spec: dict, shape: tuple[int, int, int], classes: int, **given: object) -> nn.Module:
    """The module that a cell's `net` names, for images of `shape` (C, H, W) and `classes` outputs.

    given: the arguments in `ASKS`: `attributes`, float32 [classes, A], of each output's class; `pretrained`, initial
    weights by name.
    """
    options = {key: value for key, value in spec.items() if key not in ("name", "init", "epsilon")}
    module = importlib.import_module(f"{__name__}.{spec['name']}")
    net = module.build(shape, classes, **options, **{key: given.get(key) for key in getattr(module, "ASKS", ())})
    if "init" in spec:
        net.apply(INITS[spec["init"]])
    for layer in net.modules():
        if isinstance(layer, nn.BatchNorm2d) and "epsilon" in spec:
            layer.eps = spec["epsilon"]
    return net


def describe(spec: dict, shape: tuple[int, int, int], classes: int, attributes: int | None = None) -> dict:
    """The layers of a net, with output shapes and parameter counts (stf, Table 2; agem, Figure 9).

    attributes: the number of attributes of each class; None where there are none.

    Returns
    -------
    `{"net", "options", "input": [C, H, W], "classes", "layers": [{"block", "layer", "output": […], "parameters"}],
    "parameters"}`; a layer's `output` leaves out the batch axis.
    """
    table = None if attributes is None else torch.zeros(classes, attributes)
    started = {"weights": "none"} if "weights" in spec else {}  # initial weights do not matter here
    net = build(spec | started, shape, classes, attributes=table).eval()
    layers: list[dict] = []

    def note(name: str, module: nn.Module, inputs: tuple, output: torch.Tensor) -> None:
        parameters = sum(p.numel() for p in module.parameters())
        layers.append(
            {"block": name, "layer": _title(module), "output": list(output.shape[1:]), "parameters": parameters}
        )

    for name, module in net.named_modules():
        if not list(module.children()) and not isinstance(module, nn.Sequential):  # an empty Sequential is an identity
            module.register_forward_hook(functools.partial(note, name))
    with torch.no_grad():
        net(torch.zeros(1, *shape))
    total = sum(p.numel() for p in net.parameters())
    return {
        "net": spec["name"],
        "options": {key: value for key, value in spec.items() if key != "name"},
        "input": list(shape),
        "classes": classes,
        "layers": layers,
        "parameters": total,
    }


def _title(module: nn.Module) -> str:
    if isinstance(module, nn.Conv2d):
        size = f"{module.kernel_size[0]}×{module.kernel_size[1]}"
        return f"Conv2D({module.in_channels}, {module.out_channels}), {size}, stride {module.stride[0]}"
    if isinstance(module, nn.BatchNorm2d):
        return f"BatchNorm2D({module.num_features})"
    if isinstance(module, nn.MaxPool2d):
        return f"MaxPooling2D({module.kernel_size}, {module.stride})"
    if isinstance(module, nn.AdaptiveAvgPool2d):
        return "AveragePooling"
    if isinstance(module, JointEmbedding):
        return f"JointEmbedding({module.in_features}, {module.attributes.shape[1]})"
    if isinstance(module, nn.Linear):
        return f"Linear({module.in_features}, {module.out_features})"
    return type(module).__name__
