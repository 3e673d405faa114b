"""The gradients of a posterior's last layer early in a task (`desiderata`, B.1)."""

import numpy as np
import torch

from clpapers.randomness import generator
from clpapers.runs.evaluation.answers import number
from clpapers.runs.scenario import ScenarioError
from clpapers.runs.variational import Gaussian, Noise, Posterior, Variational, entropy, kl, likelihood_loss


def early_gradients(
    learner: Variational,
    prior: Gaussian,
    prior_weight: float,
    x: torch.Tensor,
    y: torch.Tensor,
    mask: torch.Tensor | None,
    *,
    batches: int,
    size: int,
    repetitions: int,
) -> list[dict]:
    """Learn the beginning of a task on copies of the posterior, repeatedly (`desiderata`, B.1.3).

    A copy of the learner's posterior, with a fresh state of the optimiser, learns `batches` of `size` items as the
    learner would, with prior_weight · KL(q‖prior)/N. N counts the whole task: images x [S, N, …] with labels y [S, N].
    Each of the `repetitions` draws new items, and new permutations where the stream permutes images.

    Returns for each seed:

    - `likelihood` and `prior` [repetitions][batches]: the mean absolute gradient of either term of the loss with
      respect to the last layer's means, of weights and biases, before each batch (Figures 11 and 12);
    - `entropy` [repetitions]: the prediction's entropy in nats after the first batch, averaged over the items of the
      later ones (Figure 10).

    Numbers have six significant digits, and are null unless finite. Raises ScenarioError for more items than the task
    has, and for fewer than two batches.
    """
    setting, n = learner.setting, x.shape[1]
    if batches < 2 or batches * size > n:
        raise ScenarioError(
            f"evaluation.gradients: {batches} batches of {size} are not two or more of a task of {n} items"
        )
    noise, rngs = Noise(setting, "gradients weights"), [generator(seed, "gradients items") for seed in setting.seeds]
    last = sum(learner.posterior.sizes[-2:])  # parameters of the last layer, which come last
    found: dict[str, list] = {"likelihood": [], "prior": [], "entropy": []}
    for _ in range(repetitions):
        x_all, y_all = _draw_items(x, y, batches * size, rngs, permuted=setting.images.transforms is not None)
        q = learner.posterior.copy()
        parameters = [q.mean, q.log_variance]
        optimizer, counted = learner.optimize(parameters), None if mask is None else q.parameters_of(mask)
        for i, (x_, y_) in enumerate(zip(x_all.split(size, dim=1), y_all.split(size, dim=1))):
            weights = q.draw(noise(q.mean, learner.samples))
            losses = {
                "likelihood": likelihood_loss(q.logits(weights, x_), y_, mask),
                "prior": prior_weight / n * kl(q, prior, counted),
            }
            gradients = {name: torch.autograd.grad(loss.sum(), parameters) for name, loss in losses.items()}
            for name, (gradient, _) in gradients.items():
                found[name].append(gradient[:, -last:].abs().mean(dim=1))
            for parameter, *parts in zip(parameters, *gradients.values()):
                parameter.grad = sum(parts)
            optimizer.step()
            if i == 0:
                found["entropy"].append(_entropy(learner, q, noise, x_all[:, size:], mask))
    taken = {name: torch.stack(parts, dim=1).tolist() for name, parts in found.items()}
    return [
        {
            "likelihood": _rows(taken["likelihood"][s], batches),
            "prior": _rows(taken["prior"][s], batches),
            "entropy": [number(value) for value in taken["entropy"][s]],
        }
        for s in range(len(x))
    ]


def _draw_items(
    x: torch.Tensor, y: torch.Tensor, count: int, rngs: list[np.random.Generator], *, permuted: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """`count` random items of each seed, flattened: images [S, count, pixels] and labels [S, count]."""
    drawn = np.stack([rng.choice(x.shape[1], count, replace=False) for rng in rngs])
    chosen = torch.from_numpy(drawn).to(x.device)
    images = x[torch.arange(len(x), device=x.device)[:, None], chosen].flatten(2)
    if permuted:
        order = torch.from_numpy(np.stack([rng.permutation(images.shape[2]) for rng in rngs])).to(x.device)
        images = images.gather(2, order[:, None].expand(images.shape))
    return images, y.gather(1, chosen)


@torch.no_grad()
def _entropy(
    learner: Variational, q: Posterior, noise: Noise, x: torch.Tensor, mask: torch.Tensor | None
) -> torch.Tensor:
    """The entropy of the predictions, averaged over the items: [S]."""
    logits = q.logits(q.draw(noise(q.mean, learner.prediction_samples)), x)
    if mask is not None:
        logits = logits.masked_fill(~mask[:, None, None], -torch.inf)
    return entropy(logits.softmax(dim=3).mean(dim=1)).mean(dim=1)


def _rows(values: list[float], width: int) -> list[list[float | None]]:
    return [[number(value) for value in values[i : i + width]] for i in range(0, len(values), width)]
