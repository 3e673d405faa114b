"""Variational generative replay."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from clpapers.randomness import generator
from clpapers.runs.evaluation.answers import number
from clpapers.runs.gans import GANs, of_task
from clpapers.runs.learner import Observed, Setting
from clpapers.runs.scenario import ScenarioError
from clpapers.runs.variational import Noise, Variational, kl, likelihood_loss, mutual_information, standard

DECLARATION = {
    "options": {
        "epochs": {"type": "integer", "minimum": 1, "examples": [2]},
        "batch": {"type": "integer", "minimum": 1, "examples": [16]},
        "batch_per_task": {"type": "boolean", "examples": [False]},
        "initial_variance": {"type": "number", "exclusiveMinimum": 0, "examples": [0.01]},
        "samples": {"type": "integer", "minimum": 1, "examples": [2]},
        "prediction_samples": {"type": "integer", "minimum": 2, "examples": [4]},
        "generated": {"type": "integer", "minimum": 1, "examples": [6]},
        "fit_mean": {"enum": ["every_task", "first_task"], "examples": ["every_task", "first_task"]},
        "gan": {
            "type": "object",
            "additionalProperties": False,
            "required": ["name", "latent", "width", "epochs", "batch", "learning_rate"],
            "properties": {
                "name": {"enum": ["gan_mlp", "gan_conv", "dcgan"]},
                "latent": {"type": "integer", "minimum": 1},
                "width": {"type": "integer", "minimum": 1},
                "epochs": {"type": "integer", "minimum": 1},
                "batch": {"type": "integer", "minimum": 2},
                "learning_rate": {"type": "number", "exclusiveMinimum": 0},
            },
            "examples": [
                {"name": "gan_conv", "latent": 3, "width": 2, "epochs": 2, "batch": 8, "learning_rate": 0.001}
            ],
        },
    },
    "uses": ["competing"],
    "needs": {"scaling": ["unit"], "budget.batch": ["task"], "net.name": ["mlp"]},
    "own_nets": True,
    "measures": ["trace"],
    "where": {"gan.name": {"gan_conv": {"image_sides": 4}, "dcgan": {"image_sides": 4}}},
    "repeats": ["epochs", "gan.epochs"],
    "counts_items": ["generated"],
}


class Task(NamedTuple):
    """The record of a task: its classes, int64 [S, c], pixel permutation and GANs.

    domain: int64 [S], the permutation's number; None where there is none. gans: of all classes, seed by seed.
    """

    classes: torch.Tensor
    domain: torch.Tensor | None
    gans: GANs | None


class VGR(Variational):
    """VGR. Farquhar & Gal 2018b, as in `desiderata` (sections 5 and A.4, B.2 to B.4).

    The prior is always N(0, 1): earlier tasks are replayed as generated images, from one GAN a class, trained after its
    task. A task is learnt from the last posterior on N items, its own and the images generated for all other tasks.
    First the means are fitted by maximum likelihood, then all by cross-entropy + KL(q‖N(0, 1))/N. For each item the
    classes of its own task compete. A recurring task needs no new GANs, and its own images are not generated.

    Tasks that differ in pixel permutations alone share their GANs: these learn unpermuted images, and generated images
    get each task's permutation. For `gan_mlp`, which ignores the places of pixels, this is equivalent.

    Parameters
    ----------
    epochs, batch, initial_variance, samples, prediction_samples: as of `Variational`.
    batch_per_task: whether the batch is multiplied by the number of tasks.
    generated: images of each class of each other task, drawn again whenever a task is learnt.
    fit_mean: whether the means are fitted by maximum likelihood before `every_task`, as each is a first task with prior
        N(0, 1), or before the `first_task` only, as in VCL.
    gan: as of `GANs`, and `epochs`: an epoch has as many batches as the mean class of the task fills.

    Measures `trace`: before each epoch, the mutual information of this many items of the task (Figure 8).
    """

    def __init__(
        self, setting: Setting, *, batch_per_task: bool, generated: int, fit_mean: str, gan: dict, **options: Any
    ):
        super().__init__(setting, **options)
        if setting.images.transforms is not None and gan["name"] != "gan_mlp":
            raise ScenarioError(
                f"learner.gan.name: {gan['name']} cannot learn permuted pixels from unpermuted ones; take gan_mlp"
            )
        self.batch_per_task, self.generated, self.gan = batch_per_task, generated, gan
        self.always = fit_mean == "every_task"
        self.trace = setting.evaluation.get("trace", 0)
        self.tasks: list[Task] = []
        self.rows = torch.arange(len(setting.seeds), device=setting.items.device)[:, None]
        # The classes that compete for an item of each class, bool [S, C, C].
        square = (len(setting.seeds), self.classes, self.classes)
        self.heads = None if setting.masks is None else setting.masks.new_zeros(square)
        self.noise = Noise(setting, "trace")
        self.notes: list[torch.Tensor] = []  # one for each epoch, [S]
        self.begun: list[int] = []  # first epoch of each task

    def observe(self, t: int, x: torch.Tensor, y: torch.Tensor) -> Observed:
        logits = self.posterior.mean_logits(x)
        loss = self.loss(t, logits, y)
        task = self.begin(t, y)
        others = [other for other in self.tasks if not self.same(other, task)]
        mask = self.mask(t)
        if self.heads is not None and mask is not None:
            self.heads[self.rows, task.classes] = mask[:, None]
        drawn = [self.replay(t, number, other) for number, other in enumerate(others)]
        all_x, all_y = (torch.cat(parts, dim=1) for parts in zip((x, y), *drawn))
        batch = self.batch * (len(others) + 1) if self.batch_per_task else self.batch
        if t == 0 or self.always:
            self.fit_mean(all_x, all_y, self.heads, batch)
        self.learn(all_x, all_y, batch, self.traced(t, x))
        if len(others) == len(self.tasks):
            self.tasks.append(task._replace(gans=self.gans_of(t, task, y)))
        self.steps = t + 1
        return Observed(loss, logits)

    def begin(self, t: int, y: torch.Tensor) -> Task:
        """The task of step t, with labels y [S, n]."""
        own = [labels.unique() for labels in y]
        if len({len(classes) for classes in own}) > 1:
            raise ScenarioError(f"learner vgr: seeds differ in how many classes task {t + 1} has; raise order.length")
        images, first = self.setting.images, self.setting.step(t).start
        domain = None if images.transforms is None else self.setting.items[:, first] // len(images.pixels)
        return Task(torch.stack(own), domain, None)

    def same(self, one: Task, other: Task) -> bool:
        """Whether two tasks have the same classes, seen through the same permutations."""
        if not torch.equal(one.classes, other.classes):
            return False
        transforms = self.setting.images.transforms
        if transforms is None:
            return True
        permutations = (transforms[self.rows[:, 0], task.domain] for task in (one, other))
        return torch.equal(*permutations)

    def replay(self, t: int, number: int, task: Task) -> tuple[torch.Tensor, torch.Tensor]:
        """Images [S, c · generated, C, H, W] of a task, drawn for step t, and their classes."""
        assert task.gans is not None  # a learnt task has them
        x = task.gans.draw(self.generated, f"step {t} task {number}")
        x, y = x.view(len(task.classes), -1, *x.shape[2:]), task.classes.repeat_interleave(self.generated, dim=1)
        return x if task.domain is None else self.setting.images.seen(x, task.domain[:, None].expand_as(y)), y

    def learn(self, x: torch.Tensor, y: torch.Tensor, batch: int | str, traced: torch.Tensor) -> None:
        """Train the posterior on images x [S, N, …] from a fresh state of the optimiser."""
        q, prior = self.posterior, standard(self.posterior)
        optimizer, counted = self.optimize([q.mean, q.log_variance]), None
        if self.heads is not None:
            counted = q.parameters_of(self.heads.any(dim=1))
        self.begun.append(len(self.notes))
        for _ in range(self.epochs):
            self.note(traced)
            for x_, y_ in self.randomness.batches(x, y, batch, epochs=1):
                logits = q.logits(q.draw(self.randomness.noise(q.mean, self.samples)), x_)
                loss = likelihood_loss(logits, y_, self.heads)
                optimizer.descend(loss + kl(q, prior, counted) / x.shape[1])
        optimizer.zero_grad()

    def gans_of(self, t: int, task: Task, y: torch.Tensor) -> GANs:
        """GANs of a task's classes: an earlier task's of the same classes, GANs that runs share, or new ones.

        Runs share none for a last task where nothing draws from them; these stay untrained.
        """
        for other in self.tasks:
            if other.gans is not None and torch.equal(other.classes, task.classes):
                return other.gans
        setting, images = self.setting, self.setting.images.unpermuted()
        items = setting.items[:, setting.step(t)] % len(images.pixels)
        gans, own, batches = of_task(self.gan, images, setting.seeds, items, y, task.classes)
        if setting.gans is None:
            gans.train(own, self.gan["epochs"] * batches)
            return gans
        shared = [setting.gans[seed] for seed in setting.seeds]
        keys = [tuple(mine) for mine in task.classes.tolist()]
        if t + 1 < len(setting.ends) or all(key in each for key, each in zip(keys, shared)):
            gans.restore([each[key] for key, each in zip(keys, shared)])
        return gans

    def traced(self, t: int, x: torch.Tensor) -> torch.Tensor:
        """The images of a task, among x [S, n, …], whose mutual information is measured."""
        count = min(self.trace, x.shape[1])
        rngs = (generator(seed, f"traced items {t}") for seed in self.setting.seeds)
        chosen = [torch.from_numpy(rng.choice(x.shape[1], count, replace=False)) for rng in rngs]
        return x[self.rows, torch.stack(chosen).to(x.device)]

    @torch.no_grad()
    def note(self, x: torch.Tensor) -> None:
        """Note the mean mutual information of images [S, n, …], all outputs competing."""
        if self.trace:
            nets = self.posterior.draw(self.noise(self.posterior.mean, self.prediction_samples))
            probabilities = self.posterior.logits(nets, x).softmax(dim=3)
            self.notes.append(mutual_information(probabilities).mean(dim=1))

    def uncounted(self) -> Sequence[object]:
        return [*super().uncounted(), self.notes]

    def report(self, s: int) -> dict:
        """`trace`: the `mutual_information` before each epoch, in nats, and the first epochs of `tasks`."""
        if not self.trace:
            return {}
        values = [number(value) for value in torch.stack(self.notes)[:, s].tolist()]
        return {"trace": {"mutual_information": values, "tasks": self.begun}}
