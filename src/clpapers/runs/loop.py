"""The one loop: every gradient learner of every paper goes through `train`."""

from __future__ import annotations

import base64
import dataclasses
import math
import sys
from collections.abc import Sequence

import numpy as np
import torch
from tqdm import tqdm

from clpapers.randomness import generator
from clpapers.runs import learners, nets
from clpapers.runs.images import Images
from clpapers.runs.nets.stacked import Stack, stack

EVALUATION_BATCH = 500
ONLINE_BLOCK = 100  # steps


@dataclasses.dataclass
class Data:
    """A data set: uint8 images [N, H, W, C] and int64 labels [N] of both splits, and the number of classes."""

    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray
    classes: int


def train(cell: dict, data: Data, streams: dict[int, np.ndarray], device: torch.device) -> list[dict]:
    """Train one cell on the streams of some seeds; one result a seed, ready for JSON.

    Parameters
    ----------
    cell: the complete description of what is run (config/papers, resolved).
    data: the data set.
    streams: seed → int64 [n], the order in which its training items come; all of one length.
    device: where to train. On a GPU all seeds form one stack. On a CPU only nets that gain from it do.

    Returns
    -------
    For each seed a dictionary with
    `steps`; `test`: correct and total per class after the last step, in evaluation mode;
    `probes`: positions in the stream of the items whose retention is followed, the times (items seen) of evaluation,
    and for each time the packed bits, in base64, of whether the probes seen so far are classified correctly;
    `online`: for each step the number of stream items classified correctly before they are learnt, and their mean
    loss (null for a learner that never looks at the stream batch); `memory`: items, bytes, items per class.
    """
    _prepare(device, cell["precision"])
    seeds = list(streams)
    together = learners.find(cell["learner"]["name"]).stackable and (
        device.type == "cuda" or cell["net"]["name"] == "mlp"
    )
    groups = [seeds] if together else [[seed] for seed in seeds]
    return [result for group in groups for result in _train_stack(cell, data, streams, group, device)]


def _prepare(device: torch.device, precision: str) -> None:
    """One CPU thread a process (there are as many jobs as cores), and results that are the same every time."""
    torch.set_num_threads(1)
    if device.type == "cuda":
        torch.use_deterministic_algorithms(True)
        torch.backends.cudnn.benchmark = False
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"


def _train_stack(
    cell: dict, data: Data, streams: dict[int, np.ndarray], seeds: Sequence[int], device: torch.device
) -> list[dict]:
    dtype = torch.float64 if cell["precision"] == "float64" else torch.float32
    images = Images(data.train_x, cell["scaling"], device, dtype)
    items = torch.from_numpy(np.stack([streams[seed] for seed in seeds])).to(device)
    labels = torch.from_numpy(data.train_y).to(device)[items]

    def build(init_seeds: Sequence[int]) -> Stack:
        return stack(lambda: nets.build(cell["net"], images.shape, data.classes), init_seeds).to(device, dtype)

    net = build([int(generator(seed, "init").integers(2**63)) for seed in seeds]).train()
    setting = learners.Setting(net, images, items, labels, data.classes, seeds, cell["budget"], build)
    learner = learners.create(cell["learner"], setting)

    n, batch = items.shape[1], cell["budget"]["batch"]
    steps = math.ceil(n / batch)
    probes = Probes(cell["evaluation"], n, batch, seeds)
    online = Online(labels, batch)
    title = f"{cell['dataset']} {cell['learner']['name']} seeds {seeds[0]}-{seeds[-1]}"
    for t in tqdm(range(steps), desc=title, unit="step", mininterval=2, file=sys.stderr):
        now = slice(t * batch, (t + 1) * batch)
        if learner.looks:
            online.take(*learner.observe(t, images(items[:, now]), labels[:, now]))
        else:
            learner.observe(t, None, None)
        if t in probes.steps:
            model = learner.model()
            probes.take(t, model, images, items, labels)

    chosen = test_items(len(data.test_y), cell["evaluation"]["test"])
    test_images = Images(data.test_x[chosen], cell["scaling"], device, dtype)
    truth = data.test_y[chosen]
    every = torch.arange(len(truth), device=device).expand(len(seeds), -1)
    right = classified(model, test_images, every, torch.from_numpy(truth).to(device).expand(len(seeds), -1))
    memory = learner.memory
    return [
        {
            "seed": seed,
            "steps": steps,
            "test": {
                "correct": np.bincount(truth[right[s]], minlength=data.classes).tolist(),
                "total": np.bincount(truth, minlength=data.classes).tolist(),
            },
            "probes": probes.result(s),
            "online": online.result(s) if learner.looks else {"batch": batch, "correct": None, "loss": None},
            "memory": {
                "items": int(memory.counts[s, -1]),
                "bytes": int(memory.counts[s, -1]) * memory.bytes_an_item,
                "per_class": memory.per_class(s, data.classes),
            },
        }
        for s, seed in enumerate(seeds)
    ]


class Online:
    """What the nets said of each stream batch before they learnt it.

    A step only notes it; the notes are worked through a block of steps at a time.
    """

    def __init__(self, labels: torch.Tensor, batch: int):
        self.labels, self.batch = labels, batch
        self.notes: list[tuple[torch.Tensor, torch.Tensor]] = []  # loss [S] and logits [S, B, K] a step
        self.losses: list[torch.Tensor] = []  # a block each: [S, steps]
        self.predicted: list[torch.Tensor] = []  # a block each: classes [S, items]

    def take(self, loss: torch.Tensor, logits: torch.Tensor) -> None:
        """Note a step."""
        self.notes.append((loss.detach(), logits.detach()))
        if len(self.notes) == ONLINE_BLOCK:
            self.reduce()

    def reduce(self) -> None:
        """Work the notes through."""
        if self.notes:
            losses, logits = zip(*self.notes)
            self.losses.append(torch.stack(losses, dim=1))
            self.predicted.append(torch.cat(logits, dim=1).argmax(dim=2))
            self.notes.clear()

    def result(self, s: int) -> dict:
        """Items right and mean loss of each step, of the stack's seed number s."""
        self.reduce()
        right = torch.cat([block[s] for block in self.predicted]) == self.labels[s]
        return {
            "batch": self.batch,
            "correct": np.add.reduceat(right.cpu().numpy(), np.arange(0, len(right), self.batch), dtype=int).tolist(),
            "loss": [_number(value) for value in torch.cat([block[s] for block in self.losses]).tolist()],
        }


@torch.no_grad()
def classified(net: Stack, images: Images, items: torch.Tensor, labels: torch.Tensor) -> np.ndarray:
    """Whether each net, in evaluation mode, classifies its items rightly: indices and labels [S, N] → bool [S, N]."""
    net.eval()
    right = [
        net(images(chunk)).argmax(dim=2) == y
        for chunk, y in zip(items.split(EVALUATION_BATCH, dim=1), labels.split(EVALUATION_BATCH, dim=1))
    ]
    net.train()
    return torch.cat(right, dim=1).cpu().numpy()


def test_items(count: int, wanted: int | None) -> np.ndarray:
    """The test items to evaluate on, ascending: all, or one uniform subset that is the same for every run."""
    if wanted is None or wanted >= count:
        return np.arange(count)
    return np.sort(generator(0, "test subset").permutation(count)[:wanted])


class Probes:
    """The stream items whose retention is followed, a uniform sample a seed, and what became of them.

    At each of `points` equally spaced moments the probes seen so far are classified; their share that is right
    estimates the information retention (Cai et al. 2021), accuracy over all of the stream's past.
    """

    def __init__(self, evaluation: dict, n: int, batch: int, seeds: Sequence[int]):
        steps = math.ceil(n / batch)
        ends = np.ceil(np.arange(1, evaluation["points"] + 1) * steps / evaluation["points"]).astype(int)
        self.steps = {int(end) - 1: min(int(end) * batch, n) for end in ends}  # step → items seen after it
        count = min(evaluation["probes"] or n, n)
        self.positions = np.stack([np.sort(generator(s, "probes").permutation(n)[:count]) for s in seeds])
        self.times: list[int] = []
        self.right: list[np.ndarray] = []  # a moment each: bool [S, most probes seen by any seed]

    def take(self, t: int, net: Stack, images: Images, items: torch.Tensor, labels: torch.Tensor) -> None:
        """Classify the probes seen up to step t."""
        time = self.steps[t]
        most = int((self.positions < time).sum(axis=1).max())
        at = torch.from_numpy(self.positions[:, :most]).to(items.device)
        self.times.append(time)
        self.right.append(classified(net, images, items.gather(1, at), labels.gather(1, at)))

    def result(self, s: int) -> dict:
        """Positions, times and packed bits of the stack's seed number s."""
        packed = []
        for time, right in zip(self.times, self.right):
            seen = right[s, : int((self.positions[s] < time).sum())]
            packed.append(base64.b64encode(np.packbits(seen).tobytes()).decode())
        return {"position": self.positions[s].tolist(), "time": self.times, "correct": packed}


def _number(value: float) -> float | None:
    """Six significant digits; None for what JSON has no number for."""
    return float(f"{value:.6g}") if math.isfinite(value) else None
