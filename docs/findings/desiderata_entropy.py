"""Figure 10 of `desiderata` for a plain net: how sure it is of Task B after one batch, by how long it learnt Task A.

In the project's folder: python docs/findings/desiderata_entropy.py results/paper/datasets/mnist.npz
"""

import copy
import sys

import numpy as np
import torch
from torch.nn.functional import cross_entropy

TIMES = (1, 5, 20, 50, 100)  # epochs
REPETITIONS = 20


def entropy(net: torch.nn.Module, x: torch.Tensor) -> float:
    """The predictions' entropy, nats, a mean over images."""
    with torch.no_grad():
        return torch.distributions.Categorical(logits=net(x)).entropy().mean().item()


def learn(net: torch.nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor) -> None:
    """One step."""
    optimizer.zero_grad()
    cross_entropy(net(x), y).backward()
    optimizer.step()


torch.manual_seed(0)
torch.set_num_threads(1)
with np.load(sys.argv[1], allow_pickle=False) as data:
    x, y = torch.from_numpy(data["train_x"]).flatten(1) / 255, torch.from_numpy(data["train_y"]).long()
first = y < 5
tasks = {
    "split": ((x[first], y[first]), (x[~first], y[~first])),
    "permuted": ((x, y), (x[:, torch.randperm(x.shape[1])], y)),
}
for setting, (a, b) in tasks.items():
    net = torch.nn.Sequential(
        torch.nn.Linear(784, 100), torch.nn.ReLU(), torch.nn.Linear(100, 100), torch.nn.ReLU(), torch.nn.Linear(100, 10)
    )
    optimizer = torch.optim.Adam(net.parameters(), 1e-3)
    for epoch in range(1, max(TIMES) + 1):
        for batch in torch.randperm(len(a[0])).split(256):
            learn(net, optimizer, a[0][batch], a[1][batch])
        if epoch not in TIMES:
            continue
        found = []
        for _ in range(REPETITIONS):
            copied, batch = copy.deepcopy(net), torch.randperm(len(b[0]))[:16]
            learn(copied, torch.optim.Adam(copied.parameters(), 1e-3), b[0][batch], b[1][batch])
            found.append(entropy(copied, b[0][:5000]))
        print(
            f"{setting}, {epoch} epochs: {entropy(net, b[0][:5000]):.3f} before, {np.mean(found):.3f} after one batch"
        )
