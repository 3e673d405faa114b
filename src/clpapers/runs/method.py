"""Methods of one seed and plain tensors: the class that an author extends, and how the loop takes it for a learner.

Images are x [B, C, H, W], labels y [B], scores [B, K].
"""

from __future__ import annotations

import contextlib
import copy
import random
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from clpapers.randomness import generator
from clpapers.runs.contracts import Broken, checked_scores, described, location
from clpapers.runs.learner import Learner, Observed, Setting


class Net(nn.Module):
    """A net of the paper's, a module of PyTorch's: any layers, then a head. `self.net(x)` gives logits [B, K].

    Copy it with `copy.deepcopy(self.net)`. To grow it, replace a part or add one, such as
    `self.net.head = torch.nn.Linear(self.net.head.in_features, more)`. Then give the new parameters to the optimiser:
    `self.optimizer.add_param_group({"params": self.net.head.parameters()})`, or begin with a fresh one by `optimize`.

    body: all layers but the last.
    head: the last layer, from features [B, D] to logits [B, K]; D is `head.in_features`.
    """

    def __init__(self, layers: nn.Module):
        super().__init__()
        assert isinstance(layers, nn.Sequential)  # as all nets are that a cell can name
        self.body, self.head = layers[:-1], layers[-1]

    def features(self, x: torch.Tensor) -> torch.Tensor:
        """Images [B, C, H, W] → features [B, D], the input of the head."""
        return self.body(x)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Images [B, C, H, W] → logits [B, K]."""
        return self.head(self.features(x))


class Reservoir:
    """A replay memory that holds a uniform sample of all items that were added (Vitter 1985).

    `len(self.memory)` is the number of items that it holds.

    capacity: the most items, the budget's `memory`.
    size: the items of a draw, the budget's `replay_batch`.
    """

    def __init__(self, capacity: int, size: int):
        self.capacity, self.size, self.seen = capacity, size, 0
        self.kept: list[torch.Tensor] = []

    def __len__(self) -> int:
        return min(self.seen, self.capacity)

    def add(self, x: torch.Tensor, y: torch.Tensor, *more: torch.Tensor) -> None:
        """Offer the items of a batch: images, labels and more, such as logits, each with the item as first axis."""
        items = [each.detach() for each in (x, y, *more)]
        if not self.kept:
            self.kept = [each.new_zeros((self.capacity, *each.shape[1:])) for each in items]
        chosen: dict[int, int] = {}  # slot → item; of two items for a slot the later stays
        for i in range(len(x)):
            slot = self.seen if self.seen < self.capacity else int(torch.randint(self.seen + 1, (), device="cpu"))
            self.seen += 1
            if slot < self.capacity:
                chosen[slot] = i
        for kept, each in zip(self.kept, items, strict=True):
            kept[list(chosen)] = each[list(chosen.values())]

    def draw(self, size: int | None = None) -> tuple[torch.Tensor, ...]:
        """Distinct items, uniformly, as they were added: images, labels and more. All while there are fewer."""
        drawn = torch.randperm(len(self), device="cpu")[: size or self.size]
        return tuple(kept[drawn.to(kept.device)] for kept in self.kept)


class Method:
    """A continual-learning method: one net that learns a stream, batch by batch. A file holds one subclass.

    Its options are the keywords of its `__init__`, each with a default. The attributes below are there before
    `__init__`. The random numbers of torch, NumPy and Python come from the run's seed. Tensors and layers that the
    method makes lie on the run's device, with its precision.

    net: the paper's net.
    optimizer: the budget's, over the net's parameters: a `torch.optim.SGD` or `torch.optim.Adam`. Take another of
        PyTorch's as you like; `torch.optim.lr_scheduler` schedules it, and `torch.nn.utils.clip_grad_norm_` clips.
    memory: an empty replay memory of the budget's size.
    classes: the number of classes, K.
    budget: a dictionary, the terms on which the paper compares its methods.

    The budget has these keys:

    optimizer: `sgd` or `adam`.
    learning_rate: of the optimiser.
    momentum: of `sgd`; not there without one.
    clip: the largest value of a gradient's element; not there where none is clipped. `self.optimizer` clips already.
    batch: items of a step; or `task`, where a step is a whole task.
    memory: items of a replay memory.
    replay_batch: items of a draw from it.
    steps: batches of the whole stream, such as for `CosineAnnealingLR`.
    """

    net: Net
    optimizer: torch.optim.Optimizer
    memory: Reservoir
    classes: int
    budget: dict
    _competing: torch.Tensor | None

    def begin_task(self) -> None:
        """Prepare for a task. It is called before the first batch, and before a batch with which the task changes.

        A paper may announce no tasks; then all batches are one.
        """

    def observe(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor | None:
        """Learn a batch of the stream: images x [B, C, H, W], labels y [B].

        Returns the logits [B, K] of x from before the step, which count as the answers to x; or nothing, and then
        `predict` is asked before each step.
        """
        raise NotImplementedError

    def end_task(self) -> None:
        """Finish a task. It is called after the task's last batch, before any test."""

    def predict(self, x: torch.Tensor) -> torch.Tensor:
        """Scores [B, K] of images x [B, C, H, W]; the largest is the answer, and -inf no answer.

        It is called without gradients, with all modules of the method in evaluation mode.
        """
        return self.net(x)

    def loss(
        self,
        logits: torch.Tensor,
        y: torch.Tensor,
        *,
        weight: torch.Tensor | None = None,
        label_smoothing: float = 0.0,
        reduction: str = "mean",
    ) -> torch.Tensor:
        """The cross-entropy of logits [B, K] with labels y [B], over the classes that the paper lets compete.

        It is `F.cross_entropy` over these classes, with its keywords: the weight of each class [K], the share that
        label smoothing spreads over them, and the reduction, `mean`, `sum` or `none`. Where all classes compete, it is
        `F.cross_entropy(logits, y)`. A paper may let only the classes of a task compete.
        """
        if self._competing is None or not label_smoothing:
            given = {"weight": weight, "label_smoothing": label_smoothing, "reduction": reduction}
            return F.cross_entropy(self.masked(logits, y), y, **given)  # type: ignore[arg-type]
        beside = self._competing[y]
        weights = torch.ones_like(logits[0]) if weight is None else weight
        logs = (weights * self.masked(logits, y).log_softmax(dim=1)).masked_fill(~beside, 0.0)  # not 0 · -inf
        smooth = logs.sum(dim=1) / beside.sum(dim=1)
        each = -torch.lerp(logs.gather(1, y[:, None])[:, 0], smooth, label_smoothing)
        if reduction == "mean":
            return each.sum() / weights[y].sum()
        return each.sum() if reduction == "sum" else each

    def masked(self, logits: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """The logits [B, K] with -inf at classes that the paper does not let compete with labels y [B].

        They are for a loss of your own. An item of a memory has the classes that competed when its class last came.
        Where all classes compete, the logits are returned as they are.
        """
        return logits if self._competing is None else logits.masked_fill(~self._competing[y], -torch.inf)

    def optimize(self, parameters: Iterable[torch.Tensor]) -> torch.optim.Optimizer:
        """The budget's optimiser over other parameters, for example of a net that has grown."""
        rate, momentum, clip = (self.budget.get(key, 0.0) for key in ("learning_rate", "momentum", "clip"))
        if self.budget["optimizer"] == "adam":
            return torch.optim.Adam(parameters, rate)
        return _Clipped(parameters, rate, momentum, clip) if clip else torch.optim.SGD(parameters, rate, momentum)


class _Clipped(torch.optim.SGD):
    """SGD that clips each element of a gradient."""

    def __init__(self, parameters: Iterable[torch.Tensor], learning_rate: float, momentum: float, clip: float):
        super().__init__(parameters, learning_rate, momentum)
        self.clip = clip

    def step(self, closure: object = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            nn.utils.clip_grad_value_(group["params"], self.clip)
        super().step()


class OneSeed(Learner):
    """A learner of one seed that is an author's `Method`.

    random: the states of the generators that the method draws from without naming one.
    predicts: whether its answers to a batch are asked for before the batch is learnt, as `observe` returns none.
    """

    stackable = False

    def __init__(self, setting: Setting, author: type[Method], options: dict):
        self.setting, self.classes = setting, setting.classes
        (seed,) = setting.seeds
        states = generator(seed, "method").integers(2**32, size=3)
        torch.manual_seed(int(states[0]))
        np.random.seed(int(states[1]))
        random.seed(int(states[2]))
        self.random = self._states()
        self.predicts = True
        self.method = method = author.__new__(author)
        method.net, method.classes = Net(setting.net().net), self.classes
        method.budget = copy.deepcopy(setting.budget) | {"steps": len(setting.ends)}
        method.optimizer = method.optimize(method.net.parameters())
        method.memory = Reservoir(setting.budget["memory"], setting.budget["replay_batch"])
        method._competing = None
        with self._inside():
            author.__init__(method, **options)
            method.begin_task()

    def task_change(self, t: int) -> None:
        with self._inside():
            self.method.begin_task()

    def observe(self, t: int, x: torch.Tensor, y: torch.Tensor) -> Observed:
        method, changes = self.method, self.setting.changes
        x, truth, labels = x[0], y[0], y[0].clone()
        mask = self._restrict(t)
        logits = None
        if self.predicts:
            with self.evaluation(), torch.no_grad():
                logits = self.predicted(x.clone())
        with self._inside():
            returned = method.observe(x, labels)
            if t + 1 == len(changes) or changes[t + 1]:
                method.end_task()
        if returned is not None or not self.predicts:
            self.predicts, shape = False, (len(truth), self.classes)
            if not isinstance(returned, torch.Tensor) or returned.shape != shape or not returned.is_floating_point():
                raise Broken(
                    f"{location(type(method).observe)}: observe returns {described(returned)}; return at every step "
                    f"the logits {list(shape)} of x from before it, or never anything"
                )
            logits = returned.detach().clone()
        assert logits is not None
        whole = not self.predicts or type(method).predict is Method.predict  # other scores are no logits
        loss = F.cross_entropy(logits if mask is None else logits.masked_fill(~mask[0], -torch.inf), truth)
        return Observed(loss[None] if whole else None, logits[None])

    def _restrict(self, t: int) -> torch.Tensor | None:
        """The mask of step t, [1, K]; the method knows it from now on, bool [K, K], by class those beside it."""
        mask, method = self.mask(t), self.method
        if mask is not None:
            if method._competing is None:  # a class that has not come yet has all classes beside it
                method._competing = torch.ones(self.classes, self.classes, dtype=torch.bool, device=mask.device)
            method._competing[mask[0]] = mask[0]
        return mask

    def predicted(self, x: torch.Tensor) -> torch.Tensor:
        """The method's scores [B, K] of images x [B, C, H, W]; its draws for them are drawn again for others."""
        states = self.random
        with self._inside():
            found = self.method.predict(x)
        self.random = states
        return checked_scores(found, (len(x), self.classes), type(self.method).predict)

    def scores(self, x: torch.Tensor, tasks: torch.Tensor) -> torch.Tensor:
        return self.predicted(x[0])[None]

    @property
    def scores_alike(self) -> bool:
        return True

    @contextlib.contextmanager
    def evaluation(self) -> Iterator[None]:
        """Inside, all modules of the method are in evaluation mode."""
        modes = {module: module.training for module in _modules(vars(self.method))}
        for module in modes:
            module.training = False
        try:
            yield
        finally:
            for module, mode in modes.items():
                module.training = mode

    @contextlib.contextmanager
    def _inside(self) -> Iterator[None]:
        """Inside, draws are the method's own, and new tensors and layers are as the run's."""
        device, dtype = self.setting.images.pixels.device, torch.get_default_dtype()
        torch.set_rng_state(self.random["torch"])
        np.random.set_state(self.random["numpy"])
        random.setstate(self.random["python"])
        if device.type == "cuda":
            torch.cuda.set_rng_state(self.random["cuda"], device)
        torch.set_default_dtype(self.setting.images.dtype)
        try:
            with torch.device(device) if device.type != "cpu" else contextlib.nullcontext():
                yield
        finally:
            torch.set_default_dtype(dtype)
        self.random = self._states()

    def _states(self) -> dict:
        device = self.setting.images.pixels.device
        states = {"torch": torch.get_rng_state(), "numpy": np.random.get_state(), "python": random.getstate()}
        return states | ({"cuda": torch.cuda.get_rng_state(device)} if device.type == "cuda" else {})

    def needed_to_answer(self) -> object:
        """The net; with a `predict` of its own all that the method holds, but for memory, optimiser and `loss`."""
        if type(self.method).predict is Method.predict:
            return self.method.net
        return {
            key: value for key, value in vars(self.method).items() if key not in ("memory", "optimizer", "_competing")
        }

    def uncounted(self) -> Sequence[object]:
        """The images of the memory, which `memory_use` counts as the data set has them."""
        return self.method.memory.kept[:1] if isinstance(self.method.memory, Reservoir) else ()

    def memory_use(self, s: int) -> dict:
        memory = self.method.memory
        none = self.setting.labels[s, :0]
        return self.stored(memory.kept[1][: len(memory)] if isinstance(memory, Reservoir) and memory.kept else none)


def _modules(attribute: object) -> Iterator[nn.Module]:
    """All modules in attributes, lists and mappings."""
    if isinstance(attribute, nn.Module):
        yield from attribute.modules()
    elif isinstance(attribute, dict):
        yield from (module for each in attribute.values() for module in _modules(each))
    elif isinstance(attribute, list | tuple):
        yield from (module for each in attribute for module in _modules(each))
