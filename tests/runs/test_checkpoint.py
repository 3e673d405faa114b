"""A training that is interrupted and resumed comes to the same bits; a checkpoint that is not its own is refused."""

import collections
import dataclasses
import errno
import functools
import hashlib
import io
import json
import os
import pickle
import random
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny import CHUNKS, CPU, DOMAINS, NETS, OPTIONS, SPLIT, VARIANTS, cell, scenarios

from clpapers import provenance
from clpapers.runs import checkpoint, learners, loop
from clpapers.runs.checkpoint import Checkpoint
from clpapers.runs.clock import Clock
from clpapers.runs.images import Images
from clpapers.runs.learners.icarl import ICaRL
from clpapers.runs.learners.single import Single
from clpapers.runs.losses import cross_entropy
from clpapers.runs.optimizers import Adam
from clpapers.runs.process import Apart
from clpapers.runs.resumable import share_done
from clpapers.streams import orders

IDENTITY = {"code": "c0de", "cell": {"learner": "er"}, "seeds": [0]}
RESULT = Path("runs/seed0.json")
FILE = Path("runs/.seed0.checkpoint")
SHOTS = {"shots": 1, "every": 30}
# Two are not asked before they have seen anything, one not before its first exemplars; the other makes few experts.
TESTS = {"nn1": {"every": 30}, "bartmap": {"every": 30}, "icarl": {"every": 70}}
FEWER = {"cn_dpm": {"stm": 40}}


class Killed(BaseException):
    """The end of a training that is not over."""


class Interrupted(Checkpoint):
    """Saves after each step, and ends the training as often as it is told to, just after a saving."""

    def __init__(self, after, **given):
        super().__init__(RESULT, given.get("identity", IDENTITY), interval=0)
        self.after = after

    def save(self, seeds, step, *state, steps):
        super().save(seeds, step, *state, steps=steps)
        assert FILE.is_file()
        if self.after(seeds, step):
            raise Killed


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A working folder of its own, in which saving may take all of the time."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(checkpoint, "SHARE", 1)


def chunks(data):
    """Two seeds' streams of two chunks of two classes, 60 items each."""
    return {seed: orders.make(SPLIT, data.train_y, seed) for seed in range(2)}


@pytest.fixture(scope="module")
def chunked(data):
    return chunks(data)


@pytest.fixture(scope="module")
def alone(chunked):
    """The first one's stream."""
    return {0: chunked[0]}


@pytest.fixture(scope="module")
def domains(data):
    """Two seeds' streams of three pixel permutations."""
    return {seed: orders.make(DOMAINS, data.train_y, seed, 192) for seed in range(2)}


def spec_of(learner, options, net="mlp", *, order=SPLIT, batch=24, **given):
    spec = cell(learner, options | FEWER.get(learner, {}), net, order=order, oracle=CHUNKS, batch=batch, **given)
    spec["evaluation"] |= TESTS.get(learner, SHOTS)
    return spec


def train(spec, data, streams, kept=None):
    """The results as JSON, of one stack where the learner allows it."""
    kept = Checkpoint() if kept is None else kept
    if learners.find(spec["learner"]["name"]).stackable:
        return json.dumps(loop._train_stack(spec, data, scenarios(spec, data, streams), CPU, kept))
    return json.dumps(loop.train(spec, data, streams, CPU, None, kept))


def assert_resumes(spec, data, streams):
    """A training that ends after each step, and starts again, says what an undisturbed one does."""
    undisturbed, ends = train(spec, data, streams), 0
    while True:
        torch.rand(1)  # whatever the state of the global generators is
        kept = Interrupted(lambda seeds, step: True)
        assert len(kept.resumed) + bool(kept.waiting) == ends
        try:
            assert train(spec, data, streams, kept) == undisturbed
        except Killed:
            ends += 1
        else:
            break
    groups = 1 if learners.find(spec["learner"]["name"]).stackable else len(streams)
    assert ends == groups * (json.loads(undisturbed)[0]["steps"] - 1) > 0
    steps = [each["step"] for each in kept.resumed]
    assert steps == [*range(1, ends // groups + 1)] * groups


def interrupted(spec, data, streams, seed=0, step=3):
    """Leave a checkpoint before a step of a seed."""
    with pytest.raises(Killed):
        loop.train(spec, data, streams, CPU, {}, Interrupted(lambda seeds, t: seeds[0] == seed and t == step))


# --- to the same bits ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seeds", [1, 2])
@pytest.mark.parametrize(("learner", "options"), VARIANTS)
def test_interrupted_after_each_step_task_changes_among_them(learner, options, seeds, data, chunked):
    assert_resumes(spec_of(learner, options), data, {seed: chunked[seed] for seed in range(seeds)})


@pytest.mark.parametrize(("learner", "options"), VARIANTS)
def test_killed_half_way_every_learner_goes_on_in_another_process(learner, options, data, chunked):
    """One that has seen nothing of the training before."""
    spec = spec_of(learner, options)
    half = 1 if spec["budget"]["batch"] == "task" else 3
    with Apart(lambda: train(spec, data, chunked, Checkpoint(RESULT, IDENTITY))) as other:
        undisturbed = train(spec, data, chunked)
        with pytest.raises(Killed):
            train(spec, data, chunked, Interrupted(lambda seeds, step: step == half))
        other.begin()
        assert other.result() == undisturbed


@pytest.mark.parametrize("seeds", [1, 2])
@pytest.mark.parametrize("net", [*NETS, "dropout"])
def test_whatever_the_net(net, seeds, data, chunked):
    known = np.random.default_rng(0).random((4, 5), np.float32)
    spec = spec_of("si", OPTIONS["si"], "exstream" if net == "dropout" else net, optimizer="adam", batch=30)
    spec["precision"] = "float32"
    if net == "dropout":
        spec["net"] = spec["net"] | {"dropout": 0.5}
    assert_resumes(spec, loop.dataclasses.replace(data, attributes=known), {s: chunked[s] for s in range(seeds)})


@pytest.mark.parametrize("learner", ["er", "vgr"])
def test_through_pixel_permutations(learner, data, domains):
    gan = {"name": "gan_mlp", "latent": 3, "width": 2, "epochs": 1, "batch": 8, "learning_rate": 1e-3}
    options = OPTIONS[learner] | ({"gan": gan} if learner == "vgr" else {})
    assert_resumes(spec_of(learner, options, order=DOMAINS, batch=60), data, domains)


def test_seeds_that_are_through_are_not_trained_again(data, chunked, monkeypatch):
    spec, observe, told = spec_of("icarl", OPTIONS["icarl"]), ICaRL.observe, []
    taken = {}
    undisturbed = json.dumps(loop.train(spec, data, chunked, CPU, taken))
    interrupted(spec, data, chunked, seed=1, step=2)

    def noted(self, t, x, y):
        told.append((self.setting.seeds[0], t))
        return observe(self, t, x, y)

    monkeypatch.setattr(ICaRL, "observe", noted)
    seconds, kept = {}, Checkpoint(RESULT, IDENTITY)
    assert json.dumps(loop.train(spec, data, chunked, CPU, seconds, kept)) == undisturbed
    assert told == [(1, t) for t in range(2, 6)]
    assert kept.resumed == [{"seeds": [1], "step": 2}]
    assert seconds.keys() == taken.keys() == {"training_seconds", "testing_seconds"}
    for key in taken:
        assert seconds[key].keys() == taken[key].keys() == {0, 1}
        assert min(seconds[key].values()) > 0


def test_a_stack_that_did_not_fit_is_not_tried_again(data, chunked, monkeypatch):
    observe, stacks = Single.observe, []

    def fails(self, t, x, y):
        stacks.append(len(self.setting.seeds))
        if t == 2 and len(self.setting.seeds) > 1:
            raise MemoryError
        return observe(self, t, x, y)

    monkeypatch.setattr(Single, "observe", fails)
    spec = spec_of("single", {})
    undisturbed = json.dumps(loop.train(spec, data, chunked, CPU))
    interrupted(spec, data, chunked, seed=1, step=4)
    stacks.clear()
    assert json.dumps(loop.train(spec, data, chunked, CPU, None, Checkpoint(RESULT, IDENTITY))) == undisturbed
    assert stacks == [1, 1]


def test_a_stack_that_is_resumed_may_still_not_fit(data, chunked, monkeypatch):
    spec, observe = spec_of("single", {}), Single.observe
    alone = [loop.train(spec, data, {seed: chunked[seed]}, CPU)[0] for seed in chunked]
    interrupted(spec, data, chunked, step=1)

    def fails(self, t, x, y):
        if t == 2 and len(self.setting.seeds) > 1:
            raise torch.OutOfMemoryError
        return observe(self, t, x, y)

    monkeypatch.setattr(Single, "observe", fails)
    assert loop.train(spec, data, chunked, CPU, None, Checkpoint(RESULT, IDENTITY)) == alone


# --- what is kept --------------------------------------------------------------------------------------------


def through(thing, **fixed):
    """What becomes of a thing that is saved and resumed."""
    fixed = checkpoint.constants(**fixed)
    Checkpoint(RESULT, IDENTITY).save([0], 1, thing, fixed, steps=2)
    return Checkpoint(RESULT, IDENTITY).resume([0], fixed)


def test_what_is_one_object_stays_one():
    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    optimizer = Adam(net.parameters(), 0.1)
    net(torch.ones(4, 3)).square().sum().backward()
    view = net[0].weight.detach()[1:]
    (again, stepped, seen), before = through((net, optimizer, view)), [p.grad.clone() for p in net.parameters()]
    assert all(mine is its for mine, its in zip(again.parameters(), stepped.parameters, strict=True))
    assert all(torch.equal(p.grad, grad) for p, grad in zip(again.parameters(), before, strict=True))
    for each in (optimizer, stepped):
        each.step()
    assert torch.equal(seen, view)
    assert all(torch.equal(*pair) for pair in zip(again.state_dict().values(), net.state_dict().values(), strict=True))


def test_memory_that_tensors_share_stays_shared():
    whole = torch.arange(6.0)
    kept = {
        "whole": whole,
        "part": whole[2:4],
        "turned": torch.ones(2, 3).T,
        "frozen": torch.nn.Parameter(whole, False),
    }
    again = through(kept)
    again["whole"][2] = 7
    assert again["part"].tolist() == [7, 3]
    assert again["frozen"].tolist() == again["whole"].tolist()
    assert not again["frozen"].requires_grad
    assert again["turned"].stride() == (1, 3)


def test_gradients_and_what_else_hangs_on_a_tensor_stay():
    weight = torch.ones(2, requires_grad=True)
    (weight * 3).sum().backward()
    weight.name_of_mine = "w"
    again = through([weight])[0]
    assert (again.grad.tolist(), again.name_of_mine, again.requires_grad) == ([3, 3], "w", True)


def test_generators_go_on_and_stay_one():
    sources = [np.random.default_rng(3), np.random.RandomState(3), torch.Generator().manual_seed(3), random.Random(3)]
    draws = [
        lambda rng: rng.random(),
        lambda rng: rng.rand(),
        lambda rng: torch.rand(1, generator=rng).item(),
        lambda rng: rng.random(),
    ]
    for source, draw in zip(sources, draws):
        draw(source)
        one, other = through([source, source])
        assert one is other
        assert draw(one) == draw(source)


def test_plain_objects_are_as_they_were():
    table = np.arange(12).reshape(3, 4)
    kept = {
        "numbers": [table, table[:, ::2].T, np.float64(0.1), np.dtype("int64"), {1, 2}, slice(1, 3), None, 1j, b"x"],
        "dictionaries": [collections.OrderedDict(a=1), collections.defaultdict(dict, b={}), collections.Counter("aab")],
        "queues": [collections.deque([1, 2], maxlen=2), range(3), frozenset({1})],
        "torch": [torch.tensor([True]), torch.Size([2]), CPU, torch.float32, torch.empty(0), torch.tensor(3)],
        "functions": [torch.nn.functional.relu, cross_entropy, functools.partial(cross_entropy)],
    }
    assert str(through(kept)) == str(kept)


OPTIMIZERS = {
    "momentum": lambda given: torch.optim.SGD(given, lr=0.1, momentum=0.9),
    "adamw": lambda given: torch.optim.AdamW(given, lr=0.1),
    "lbfgs": lambda given: torch.optim.LBFGS(given, lr=0.1, max_iter=3),
}
SCHEDULES = {
    "cosine": lambda of: torch.optim.lr_scheduler.CosineAnnealingLR(of, T_max=9),
    "one cycle": lambda of: torch.optim.lr_scheduler.OneCycleLR(of, 0.3, total_steps=9, cycle_momentum=False),
    "after a warm-up": lambda of: torch.optim.lr_scheduler.SequentialLR(
        of,
        [torch.optim.lr_scheduler.LinearLR(of, total_iters=2), torch.optim.lr_scheduler.ExponentialLR(of, 0.9)],
        milestones=[2],
    ),
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_optimisers_and_schedules_of_pytorch_go_on_with_their_net(optimizer, schedule):
    torch.manual_seed(0)
    x, y = torch.rand(5, 3), torch.rand(5, 1)
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    steps = OPTIMIZERS[optimizer](net.parameters())
    state = net, steps, SCHEDULES[schedule](steps)

    def step(net, optimizer, schedule):
        def closure():
            optimizer.zero_grad()
            loss = (net(x) - y).square().mean()
            loss.backward()
            return loss

        optimizer.step(closure)
        schedule.step()
        return [p.tolist() for p in net.parameters()]

    step(*state)
    resumed = through(state)
    for _ in range(4):
        assert step(*resumed) == step(*state)


def test_constants_are_not_kept_and_a_part_of_one_is_a_part_of_it():
    images = Images(np.zeros((1000, 8, 8, 1), np.uint8), "unit", CPU, torch.float32)
    one, other, some = through([images, images.unpermuted(), images.pixels[3:5]], images=images)
    assert one is images
    assert other.pixels is images.pixels
    images.pixels[3] = 1
    assert some[0].max() == 1
    assert FILE.stat().st_size < 5000


@dataclasses.dataclass
class Held:
    """An object with attributes of any kind."""

    rule: object = None
    others: list = dataclasses.field(default_factory=list)

    def rate(self):
        return self.others


@pytest.fixture
def of_runs(monkeypatch):
    """`Held` among the classes of our runs."""
    monkeypatch.setattr(Held, "__module__", "clpapers.runs.learners")
    monkeypatch.setattr(learners, "Held", Held, raising=False)


def test_a_method_of_an_object_stays_its_own(of_runs):
    held = Held()
    held.rule = held.rate
    again = through(held)
    again.others = [3]
    assert again.rule() == [3]


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (lambda held: setattr(held, "rule", lambda t: 1.0), "self.rule is a lambda"),
        (lambda held: held.others.append({"a": (x for x in ())}), "self.others[0]['a'] is a builtins.generator"),
        (lambda held: held.others.append(held) or setattr(held, "rule", os.mkdir), "self.rule is a function"),
        (lambda held: held.others.append(torch.eye(2).to_sparse()), "self.others[0] is a torch.Tensor"),
        (lambda held: held.others.append(Path()), f"self.others[0] is a {type(Path()).__module__}"),
    ],
)
def test_a_part_that_cannot_be_kept_is_named(change, path, of_runs):
    held = Held()
    assert checkpoint.unkept(held, {}) == ""
    change(held)
    told = checkpoint.unkept(held, {})
    assert told.startswith(path)
    assert told.isprintable()


def test_a_clock_goes_on_where_it_stopped(monkeypatch):
    now = iter([0.0, 3.0, 10.0, 100.0, 104.0])
    monkeypatch.setattr(time, "perf_counter", lambda: next(now))
    watch = Clock(CPU)
    with watch.stopped():
        saved = pickle.dumps(watch)
    again = pickle.loads(saved)
    with again.stopped():
        assert again.seconds == 3 + 4
        monkeypatch.undo()


def test_what_the_parts_took_is_summed_up(data, chunked):
    spec = spec_of("single", {})
    interrupted(spec, data, {0: chunked[0]}, step=1)
    one = Checkpoint(RESULT, IDENTITY).earlier
    interrupted(spec, data, {0: chunked[0]}, step=4)
    two = Checkpoint(RESULT, IDENTITY).earlier
    assert one.keys() == two.keys() == {"wall_seconds", "cpu_seconds", "peak_memory_bytes"}
    assert two["cpu_seconds"] >= 2 * one["cpu_seconds"] > 0  # of this one process, counted once more
    assert two["wall_seconds"] > one["wall_seconds"] > 0
    with provenance.recording("runs", [RESULT], [], "c0de") as record:
        provenance.write_text(RESULT, "{}")
        record["earlier"] = {"wall_seconds": 1000, "cpu_seconds": 1e6, "peak_memory_bytes": 10**15}
    record = provenance.read_record(RESULT)
    assert 1000 <= record["wall_seconds"] < 1e6 < record["cpu_seconds"] < 2e6
    assert record["peak_memory_bytes"] == 10**15
    assert "earlier" not in record


# --- when ----------------------------------------------------------------------------------------------------


def test_saved_at_most_every_interval_and_rarely_where_saving_takes_long(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(checkpoint, "SHARE", 20)
    monkeypatch.setattr(checkpoint, "_write", lambda file, *what: now.__setitem__(0, now[0] + took))
    kept = Checkpoint(RESULT, IDENTITY, 300)

    def due_after():
        began = now[0]
        while not kept.is_due():
            now[0] += 10
        return now[0] - began

    assert due_after() == 300
    took = 1
    kept.save([0], 1, None, {}, steps=2)
    assert due_after() == 300
    took = 60
    kept.save([0], 1, None, {}, steps=2)
    assert due_after() == 19 * 60


def test_without_a_file_nothing_is_ever_due(data, chunked):
    assert not Checkpoint(interval=-1).is_due()
    train(spec_of("single", {}), data, chunked)
    assert list(Path().iterdir()) == []


def test_nothing_is_saved_after_the_last_step(data, chunked):
    """What follows is the result, and then the file goes."""
    steps = []
    kept = Interrupted(lambda seeds, step: steps.append(step))
    train(spec_of("single", {}), data, chunked, kept)
    assert steps == [1, 2, 3, 4, 5]
    kept.remove()
    assert list(Path("runs").iterdir()) == []


def test_what_a_kill_leaves_of_a_saving_is_swept_and_a_checkpoint_is_not(data, chunked):
    interrupted(spec_of("single", {}), data, chunked)
    left = FILE.with_name("..seed0.abcd1234.checkpoint")
    left.write_bytes(b"half")
    with provenance.recording("runs", [RESULT], [], "c0de"):
        assert FILE.is_file()
        Checkpoint(RESULT, IDENTITY)
        assert FILE.is_file()
        assert not left.exists()
        provenance.write_text(RESULT, "{}")


# --- what is refused -----------------------------------------------------------------------------------------


def plant(state):
    """Put another pickle into the checkpoint, with the digest that belongs to it."""
    told = FILE.read_bytes().partition(b"\n")[0] + b"\n" + pickle.dumps(state)
    FILE.write_bytes(told + hashlib.sha256(told).digest())


def tampered():
    content = bytearray(FILE.read_bytes())
    content[len(content) // 2] ^= 1
    FILE.write_bytes(content)


def truncated():
    os.truncate(FILE, FILE.stat().st_size // 2)


def emptied():
    os.truncate(FILE, 0)


@pytest.mark.parametrize("damage", [tampered, truncated, emptied])
def test_a_damaged_one_is_refused_and_training_starts_over(damage, data, chunked, capsys):
    spec = spec_of("er", OPTIONS["er"])
    undisturbed = train(spec, data, chunked)
    interrupted(spec, data, chunked)
    damage()
    capsys.readouterr()
    kept = Checkpoint(RESULT, IDENTITY)
    assert capsys.readouterr().err == f"{FILE}: not resumed, it is damaged; training starts over\n"
    assert not FILE.exists()
    assert train(spec, data, chunked, kept) == undisturbed
    assert (kept.resumed, kept.earlier) == ([], {})


@pytest.mark.parametrize("key", IDENTITY)
def test_that_of_another_run_is_refused(key, data, chunked, capsys):
    spec = spec_of("er", OPTIONS["er"])
    interrupted(spec, data, chunked)
    capsys.readouterr()
    kept = Checkpoint(RESULT, IDENTITY | {key: "another"})
    assert capsys.readouterr().err == f"{FILE}: not resumed, it is of another {key}; training starts over\n"
    assert not FILE.exists()
    assert train(spec, data, chunked, kept) == train(spec, data, chunked)
    assert kept.resumed == []


class Asks:
    """Calls something when it is unpickled."""

    def __init__(self, called, *arguments):
        self.called = called, arguments

    def __reduce__(self):
        return self.called


@pytest.mark.parametrize(
    ("called", "arguments"),
    [
        (os.mkdir, ["planted"]),
        (getattr, [Path, "mkdir"]),
        (provenance.write_text, [RESULT, "planted"]),
    ],
)
def test_one_that_asks_for_other_code_is_refused_before_it_runs(called, arguments, data, alone, capsys):
    spec = spec_of("er", OPTIONS["er"])
    undisturbed = train(spec, data, alone)
    interrupted(spec, data, alone)
    plant([Asks(called, *arguments)])
    kept = Checkpoint(RESULT, IDENTITY)
    capsys.readouterr()
    assert train(spec, data, alone, kept) == undisturbed
    said = [line for line in capsys.readouterr().err.splitlines() if "not resumed" in line]
    assert len(said) == 1
    assert str(FILE) in said[0]
    assert called.__name__ in said[0]
    assert kept.resumed == []
    assert list(Path().iterdir()) == [Path("runs")]
    assert list(Path("runs").iterdir()) == []


# --- what cannot be written ----------------------------------------------------------------------------------


def test_a_full_disk_costs_the_checkpoint_and_not_the_run(data, chunked, monkeypatch, capsys):
    spec = spec_of("er", OPTIONS["er"])
    undisturbed = train(spec, data, chunked)
    interrupted(spec, data, chunked, step=2)
    before, opened = FILE.read_bytes(), Path.open

    class Full(io.BytesIO):
        """A disk that has room for some bytes, but not for all."""

        def write(self, what):
            if self.tell() > 2000:
                raise OSError(errno.ENOSPC, "No space left on device")
            return super().write(what)

    monkeypatch.setattr(Path, "open", lambda path, mode="r": Full() if mode == "wb" else opened(path, mode))
    capsys.readouterr()
    assert train(spec, data, chunked, Checkpoint(RESULT, IDENTITY, 0)) == undisturbed
    said = [line for line in capsys.readouterr().err.splitlines() if "not written" in line]
    assert said == [f"{FILE}: not written, training goes on: [Errno 28] No space left on device"]
    assert FILE.read_bytes() == before
    assert list(Path("runs").iterdir()) == [FILE]


def test_nor_does_what_cannot_be_saved_and_it_is_said_once(data, chunked, monkeypatch, capsys):
    spec = spec_of("single", {})
    undisturbed = train(spec, data, chunked)
    monkeypatch.setattr(Single, "task_change", lambda self, t: setattr(self, "rule", lambda: t))
    assert train(spec, data, chunked, Checkpoint(RESULT, IDENTITY, 0)) == undisturbed
    said = capsys.readouterr().err
    assert said.count("not written, training goes on") == 1
    assert "self.rule is a lambda" in said


def test_how_far_a_training_is_can_be_read_from_its_checkpoint():
    """The second of two groups of two seeds, three of its four steps taken: 7 of 8. Nothing for other code."""
    identity = IDENTITY | {"code": "one", "seeds": [0, 1, 2, 3], "processor": provenance.hardware()["processor"]}
    saved = Checkpoint(RESULT, identity)
    saved.finished[0, 1] = []
    saved.save([2, 3], 3, None, {}, steps=4)
    assert share_done(RESULT, "one") == 7 / 8
    assert share_done(RESULT, "other") == 0
    assert share_done(RESULT.with_name("seed9.json"), "one") == 0
    FILE.write_bytes(b"damaged")
    assert share_done(RESULT, "one") == 0
