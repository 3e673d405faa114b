"""VGR: a plain implementation of one seed, whose trace of mutual information is the same; what is kept."""

import itertools

import pytest
import torch
from plain_loop import PlainPosterior, descend
from tiny import CHUNKS, GAN, MLP, VGR, Way, images, split, stream, two_tasks

from clpapers.randomness import generator
from clpapers.runs.footprint import learner_bytes
from clpapers.runs.gans import GANs
from clpapers.runs.images import Images
from clpapers.runs.scenario import ScenarioError
from clpapers.streams import orders

DATA = images(classes=6, items=20)  # 4×4 images, of one colour
ORDER = {"name": "split", "tasks": 3, "length": None}
ITEMS = torch.arange(120).split(40)  # of classes 0 and 1, 2 and 3, 4 and 5
DOMAINS = {"name": "permuted_pixels", "tasks": 3, "length": 60}


def way(options=(), streams=(0,), trace=0, **changed):
    """Along three tasks of two classes; `streams` are seeds, or streams themselves."""
    given = {"oracle": split(3), "order": ORDER, "optimizer": "adam", "learning_rate": 0.02, "batch": "task"} | changed
    spec = two_tasks(VGR | dict(options), MLP, **given)
    spec["evaluation"] |= {"trace": trace} if trace else {}
    pixels = 16 if given["order"] is DOMAINS else None
    made_ = [s if not isinstance(s, int) else orders.make(given["order"], DATA.train_y, s, pixels) for s in streams]
    return Way(spec, DATA, made_)


def again(seed):
    """Tasks 1, 2, 1, 3, 2: each task's items, whatever the seed."""
    return stream(torch.cat([ITEMS[i] for i in (0, 1, 0, 2, 1)]).tolist(), boundaries=[40, 80, 120, 160], seed=seed)


class Plain(PlainPosterior):
    """One seed: layer by layer, sample by sample, item by item."""

    def __init__(self, way, s):
        super().__init__(way, s)
        self.seed = way.setting.seeds[s]
        self.gans, self.tasks = {}, []  # class → its GAN; of each task its classes, its permutation, those that compete
        self.traced, self.begun, self.tracing = [], [], self.source("trace")

    def walk(self):
        for t in range(len(self.way.changes)):
            x, y = (part[self.s] for part in self.way.batch(t))
            task, own = (sorted(set(y.tolist())), self.permutation(t), self.way.mask(t, self.s)), x
            others = [other for other in self.tasks if other != task]
            x, y, allowed = list(x), y.tolist(), [task[2]] * len(y)
            for number, (classes, permutation, competing) in enumerate(others):
                for c in classes:
                    drawn = self.gans[c].draw(self.options["generated"], f"step {t} task {number}")[0]
                    x += list(drawn.flatten(1)[:, permutation].view(drawn.shape))
                    y += [c] * len(drawn)
                    allowed += [competing] * len(drawn)
            x, seen = torch.stack(x), sorted({c for _, _, competing in [*others, task] for c in competing})
            if t == 0 or self.options["fit_mean"] == "every_task":
                self.learn(x, y, allowed, len(others) + 1, [self.mean])
            chosen = generator(self.seed, f"traced items {t}").choice(len(own), 5, replace=False)
            self.begun.append(len(self.traced))
            self.learn(x, y, allowed, len(others) + 1, [self.mean, self.log_variance], seen, own[chosen])
            if task not in self.tasks:
                self.tasks.append(task)
                self.train_gans(t, task[0])

    def permutation(self, t):
        stream = self.way.scenarios[self.s].stream
        if not len(stream.transforms):
            return list(range(16))
        return stream.transforms[stream.chunk[self.way.setting.step(t).start]].tolist()

    def train_gans(self, t, classes):
        now = self.way.setting.step(t)
        items, y = self.way.scenarios[self.s].stream.indices[now], self.way.setting.labels[self.s, now].tolist()
        real = Images(DATA.train_x, "unit", torch.device("cpu"), torch.float64)
        for c in classes:
            if c not in self.gans:
                own = torch.tensor([item for item, label in zip(items.tolist(), y) if label == c])
                batches = len(items) // (len(classes) * GAN["batch"])
                self.gans[c] = GANs(self.options["gan"], real, [(self.seed, str(c))])
                self.gans[c].train([own], GAN["epochs"] * batches)

    def learn(self, x, y, allowed, count, trained, seen=(), traced=None):
        """The means alone by maximum likelihood: no noise, no KL; or all, with a note before each epoch."""
        optimizer = torch.optim.Adam([p.requires_grad_() for p in trained], lr=0.02)
        size = self.options["batch"] * (count if self.options["batch_per_task"] else 1)
        for batches in self.epochs(len(x), size, self.items, self.options["epochs"]):
            if seen:  # the mutual information of the answers and the nets that give them
                self.traced.append(self.answers(self.drawn(7, self.tracing), traced)[1].mean().item())
            for chosen in batches:
                losses = []
                for row in self.drawn(3, self.noise) if seen else [self.mean]:
                    said = zip(self.logits(row, x[chosen]), chosen)
                    losses += [each[allowed[i]].logsumexp(0) - each[y[i]] for each, i in said]
                loss = sum(losses) / len(losses)
                descend(optimizer, loss + self.kl(self.standard, seen) / len(x) if seen else loss)


@pytest.mark.parametrize(
    ("options", "changed"),
    [
        ({}, {}),
        ({}, {"train": "oracle"}),
        ({"fit_mean": "first_task"}, {"train": "oracle"}),
        ({"batch_per_task": True}, {"order": DOMAINS, "oracle": CHUNKS}),
        ({"gan": GAN | {"name": "gan_conv"}, "batch": 500}, {"streams": [again(0), again(1)]}),
        ({}, {"streams": [again(0), again(1)], "train": "oracle"}),
    ],
    ids=["single_head", "multi_head", "first task", "permuted", "again", "again, multi_head"],
)
def test_training_equals_the_plain_implementation(options, changed):
    run = way(options, trace=5, **{"streams": (0, 1)} | changed)
    learner = run.walk()
    for s in range(2):
        plain = Plain(run, s)
        plain.walk()
        trace = learner.report(s)["trace"]
        assert trace["tasks"] == plain.begun
        assert trace["mutual_information"] == pytest.approx(plain.traced, rel=1e-5)
        torch.testing.assert_close(learner.posterior.mean[s], plain.mean, rtol=1e-6, atol=1e-8)
        torch.testing.assert_close(learner.posterior.log_variance[s], plain.log_variance, rtol=1e-6, atol=1e-8)
        kept = {id(task.gans) for task in learner.tasks}
        assert len(kept) == (1 if run.spec["order"] is DOMAINS else 3)
        assert len(learner.tasks) == 3


def test_no_images_are_kept_but_generators():
    run = way(streams=(0, 1))
    learner = run.walk()
    assert learner.memory_use(0) == {"items": 0, "bytes": 0, "per_class": [0] * 6}
    posterior = 2 * (16 * 6 + 6 + 6 * 5 + 5 + 5 * 6 + 6)
    widths = [3, 4, 8, 16, 16]
    generator_ = sum(n_in * n_out + n_out for n_in, n_out in itertools.pairwise(widths))
    held = learner_bytes(learner, 1)
    assert held == {"training": 8 * (posterior + 6 * generator_), "testing": 8 * posterior}


THREE, TWO = stream([0, 1, 20, 21, 40, 41], boundaries=[4]), stream([0, 1, 2, 3, 40, 41], boundaries=[4], seed=1)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {"options": {"gan": GAN | {"name": "gan_conv"}}, "order": DOMAINS, "oracle": CHUNKS},
            "gan_conv cannot learn permuted pixels from unpermuted ones; take gan_mlp",
        ),
        ({"streams": (THREE, TWO)}, r"seeds differ in how many classes task 1 has; raise order\.length"),
    ],
)
def test_it_is_refused(given, sentence):
    with pytest.raises(ScenarioError, match=sentence):
        way(**given).walk()
