"""VGR's quick configuration of `desiderata` with perfect GANs: they draw real images of their class, at random.

The GANs do not cause the gap to the paper's accuracy that remains with them. Each step draws one sample of the
posterior instead of ten, and no table reports the seed. In the project's folder, after
results/paper/datasets/mnist.npz is built:
python docs/findings/desiderata_replay.py
"""

import copy

import torch

from clpapers.config.plan import Plan
from clpapers.datasets import arrays
from clpapers.metrics.learning import SCALARS
from clpapers.runs import loop
from clpapers.runs.gans import GANs
from clpapers.streams import orders

SEED = 10
SETTINGS = ((20, 30000), (120, 30000), (20, 256))  # epochs, batch; the first is the quick configuration's


def remember(self, items, iterations):
    """In place of training: the items [n] of each member."""
    self.own = items


def draw(self, count, purpose):
    """In place of generated images [G, count, C, H, W], as many of those remembered."""
    rngs = self._rngs(f"generated {purpose}")
    drawn = [own[torch.randint(len(own), (count,), generator=rng)] for own, rng in zip(self.own, rngs)]
    return self.images(torch.stack(drawn))


GANs.train, GANs.draw = remember, draw
torch.set_num_threads(1)
cells = Plan("paper", ["desiderata"]).targets["desiderata/b7_1"].cells
cell = next(cell for factors, cell in cells if factors["learner"] == "vgr_quick")
train, test = (arrays.load(cell.dataset, split) for split in ("train", "test"))
data = loop.Data(train.x, train.y, test.x, test.y, 10)
stream = orders.make(cell.spec["order"], train.y, SEED)
for epochs, batch in SETTINGS:
    spec = copy.deepcopy(cell.spec)
    spec["learner"] |= {"epochs": epochs, "batch": batch, "samples": 1, "prediction_samples": 20}
    (run,) = loop.train(spec, data, {SEED: stream}, torch.device("cpu"))
    for metric in ("single_head_accuracy", "average_accuracy", "seen_unseen_auc"):
        value = SCALARS[metric](run | {"per_class": False})
        print(f"{epochs} epochs, batches of {batch}: {metric} {value:.2f}", flush=True)
