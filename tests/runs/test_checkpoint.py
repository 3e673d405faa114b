"""A training that is interrupted and resumed comes to the same bits; a checkpoint that is not its own is refused."""

import collections
import functools
import hashlib
import json
import os
import pickle
import random
import resource
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny import CHUNKS, CPU, DOMAINS, NETS, OPTIONS, SPLIT, VARIANTS, Killed, cell, stacked

from clpapers import provenance
from clpapers.runs import checkpoint, learners, loop
from clpapers.runs.checkpoint import Checkpoint
from clpapers.runs.images import Images
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


class Always(Checkpoint):
    """Saves after each step, and ends the training just after a saving before some step of a seed."""

    def __init__(self, *ends):
        super().__init__(RESULT, IDENTITY)
        self.ends = ends

    def is_due(self):
        return True

    def save(self, seeds, step, *state, steps):
        super().save(seeds, step, *state, steps=steps)
        if "any" in self.ends or (seeds[0], step) in self.ends:
            raise Killed


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def pair(chunked):
    return {seed: chunked[seed] for seed in range(2)}


def spec_of(learner, options=None, net="mlp", *, order=SPLIT, batch=24, **given):
    options = (OPTIONS[learner] if options is None else options) | FEWER.get(learner, {})
    spec = cell(learner, options, net, order=order, oracle=CHUNKS, batch=batch, **given)
    spec["evaluation"] |= TESTS.get(learner, SHOTS)
    return spec


def train(spec, data, streams, kept=None):
    """The results as JSON, of one stack where the learner allows it."""
    return json.dumps(stacked(spec, data, streams, kept))


def assert_resumes(spec, data, streams):
    """A training that ends after each step, and starts again, says what an undisturbed one does."""
    undisturbed, ends = train(spec, data, streams), 0
    while True:
        torch.rand(1)  # whatever the state of the global generators is
        kept = Always("any")
        assert len(kept.resumed) + bool(kept.waiting) == ends
        try:
            assert train(spec, data, streams, kept) == undisturbed
        except Killed:
            ends += 1
        else:
            break
    groups = 1 if learners.find(spec["learner"]["name"]).stackable else len(streams)
    assert ends == groups * (json.loads(undisturbed)[0]["steps"] - 1) > 0
    assert [each["step"] for each in kept.resumed] == [*range(1, ends // groups + 1)] * groups


def interrupted(spec, data, streams, seed=0, step=3):
    """Leave a checkpoint before a step of a seed."""
    with pytest.raises(Killed):
        loop.train(spec, data, streams, CPU, {}, Always((seed, step)))


@pytest.mark.parametrize(("learner", "options"), VARIANTS)
def test_interrupted_after_each_step_task_changes_among_them(learner, options, data, pair):
    assert_resumes(spec_of(learner, options), data, pair)


@pytest.mark.parametrize(("learner", "options"), VARIANTS)
def test_killed_half_way_every_learner_goes_on_in_another_process(learner, options, data, chunked):
    """One that has seen nothing of the training before; here a seed goes alone."""
    spec, one = spec_of(learner, options), {0: chunked[0]}
    half = 1 if spec["budget"]["batch"] == "task" else 3
    with Apart(lambda: train(spec, data, one, Checkpoint(RESULT, IDENTITY))) as other:
        undisturbed = train(spec, data, one)
        interrupted(spec, data, one, step=half)
        other.begin()
        assert other.result() == undisturbed


@pytest.mark.parametrize("seeds", [1, 2])
@pytest.mark.parametrize("net", [*NETS, "dropout"])
def test_whatever_the_net(net, seeds, data, chunked):
    spec = spec_of("si", net="exstream" if net == "dropout" else net, optimizer="adam", batch=40)
    spec["precision"] = "float32"
    if net == "dropout":
        spec["net"] = spec["net"] | {"dropout": 0.5}
    assert_resumes(spec, data, {s: chunked[s] for s in range(seeds)})


def test_through_pixel_permutations(data):
    domains = {seed: orders.make(DOMAINS, data.train_y, seed, 192) for seed in range(2)}
    assert_resumes(spec_of("er", order=DOMAINS, batch=100), data, domains)


def test_seeds_that_are_through_are_not_trained_again(data, pair, capsys):
    spec, taken, seconds = spec_of("icarl"), {}, {}
    undisturbed = loop.train(spec, data, pair, CPU, taken)
    interrupted(spec, data, pair, seed=1, step=2)
    capsys.readouterr()
    kept = Checkpoint(RESULT, IDENTITY)
    assert loop.train(spec, data, pair, CPU, seconds, kept) == undisturbed
    assert "seeds 0-0" not in capsys.readouterr().err
    assert kept.resumed == [{"seeds": [1], "step": 2}]
    assert seconds.keys() == taken.keys() == {"training_seconds", "testing_seconds"}
    assert all(seconds[key].keys() == {0, 1} and min(seconds[key].values()) > 0 for key in taken)


NO_ROOM = """
    def observe(self, t, x, y):
        if t == 2 and len(self.setting.seeds) > 1:
            raise MemoryError
        return super().observe(t, x, y)
"""


@pytest.mark.parametrize(("seed", "step", "again"), [(0, 1, 1), (1, 4, 0)])
def test_a_stack_may_not_fit_when_it_is_resumed_and_one_that_did_not_is_not_tried_again(
    seed, step, again, data, pair, written, capsys
):
    spec = spec_of("single") | {"learner": written(NO_ROOM)}
    alone = [loop.train(spec, data, {seed: pair[seed]}, CPU)[0] for seed in pair]
    interrupted(spec, data, pair, seed=seed, step=step)
    capsys.readouterr()
    assert loop.train(spec, data, pair, CPU, None, Checkpoint(RESULT, IDENTITY)) == alone
    assert capsys.readouterr().err.count("out of memory: seeds [0, 1]") == again


# --- what is kept --------------------------------------------------------------------------------------------


def through(thing, **fixed):
    """A thing once it was saved and resumed."""
    fixed = checkpoint.constants(**fixed)
    Checkpoint(RESULT, IDENTITY).save([0], 1, thing, fixed, steps=2)
    return Checkpoint(RESULT, IDENTITY).resume([0], fixed)


def test_memory_that_tensors_share_stays_shared_and_all_that_hangs_on_them_stays():
    whole, weight = torch.arange(6.0), torch.ones(2, requires_grad=True)
    (weight * 3).sum().backward()
    weight.name_of_mine = "w"
    frozen = torch.nn.Parameter(whole, False)
    kept = {"whole": whole, "part": whole[2:4], "turned": torch.ones(2, 3).T, "frozen": frozen, "weight": weight}
    again = through(kept)
    again["whole"][2] = 7
    assert again["part"].tolist() == [7, 3]
    assert again["frozen"].tolist() == again["whole"].tolist()
    assert not again["frozen"].requires_grad
    assert again["turned"].stride() == (1, 3)
    weight = again["weight"]
    assert (weight.grad.tolist(), weight.name_of_mine, weight.requires_grad) == ([3, 3], "w", True)


@pytest.mark.parametrize(
    "source",
    [np.random.default_rng(3), np.random.RandomState(3), torch.Generator().manual_seed(3), random.Random(3)],
    ids=lambda source: type(source).__name__,
)
def test_generators_go_on_and_stay_one(source):
    def draw(rng):
        return torch.rand(1, generator=rng).item() if isinstance(rng, torch.Generator) else rng.random()

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


schedules = torch.optim.lr_scheduler


@pytest.mark.parametrize(
    "optimizer",
    [
        lambda given: Adam(given, 0.1),
        lambda given: torch.optim.SGD(given, lr=0.1, momentum=0.9),
        lambda given: torch.optim.AdamW(given, lr=0.1),
        lambda given: torch.optim.LBFGS(given, lr=0.1, max_iter=3),
    ],
)
@pytest.mark.parametrize(
    "schedule",
    [
        lambda of: schedules.CosineAnnealingLR(of, T_max=9),
        lambda of: schedules.OneCycleLR(of, 0.3, total_steps=9, cycle_momentum=False),
        lambda of: schedules.SequentialLR(
            of, [schedules.LinearLR(of, total_iters=2), schedules.ExponentialLR(of, 0.9)], milestones=[2]
        ),
    ],
)
def test_optimisers_and_schedules_of_pytorch_and_ours_go_on_with_their_net(optimizer, schedule):
    """Net and optimiser hold the same parameters as before."""
    torch.manual_seed(0)
    x, y = torch.rand(5, 3), torch.rand(5, 1)
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    steps = optimizer(net.parameters())
    state = net, steps, schedule(steps) if isinstance(steps, torch.optim.Optimizer) else None

    def step(net, optimizer, schedule):
        def closure():
            net.zero_grad()
            loss = (net(x) - y).square().mean()
            loss.backward()
            return loss

        if schedule is None:
            closure()
            optimizer.step()
        else:
            optimizer.step(closure)
            schedule.step()
        return [each.tolist() for each in net.state_dict().values()]

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


HELD = """
    pause = 0.0

    def rate(self):
        return self.others

    def __getstate__(self):
        import time

        time.sleep(self.pause)
        return vars(self)
"""


@pytest.fixture
def held(written):
    """An object of a method from outside, with attributes of any kind."""
    kind = learners.written(**written(HELD))
    made = kind.__new__(kind)
    made.rule, made.others = None, []
    return made


def test_a_method_of_an_object_stays_its_own(held):
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
def test_a_part_that_cannot_be_kept_is_named(change, path, held):
    assert checkpoint.unkept(held, {}) == ""
    change(held)
    told = checkpoint.unkept(held, {})
    assert told.startswith(path)
    assert told.isprintable()


def test_what_the_parts_took_is_summed_up(data, chunked):
    spec, one = spec_of("single"), {0: chunked[0]}
    parts = []
    for step in (1, 4):
        interrupted(spec, data, one, step=step)
        parts.append(Checkpoint(RESULT, IDENTITY).earlier)
    assert parts[0].keys() == parts[1].keys() == {"wall_seconds", "cpu_seconds", "peak_memory_bytes"}
    assert parts[1]["cpu_seconds"] >= 2 * parts[0]["cpu_seconds"] > 0  # of this one process, counted once more
    assert parts[1]["wall_seconds"] > parts[0]["wall_seconds"] > 0
    with provenance.recording("runs", [RESULT], [], "c0de") as record:
        provenance.write_text(RESULT, "{}")
        record["earlier"] = {"wall_seconds": 1000, "cpu_seconds": 1e6, "peak_memory_bytes": 10**15}
    record = provenance.read_record(RESULT)
    assert 1000 <= record["wall_seconds"] < 1e6 < record["cpu_seconds"] < 2e6
    assert record["peak_memory_bytes"] == 10**15
    assert "earlier" not in record


@pytest.mark.parametrize(("interval", "pause"), [(0.3, 0), (0, 0.02)])
def test_saved_at_most_every_interval_and_rarely_where_saving_takes_long(interval, pause, held):
    """One that takes 20 ms leaves the training 19 times as much."""
    held.pause = pause
    assert not Checkpoint(RESULT, IDENTITY, 300).is_due()
    kept, began = Checkpoint(RESULT, IDENTITY, interval), time.monotonic()
    kept.save([0], 1, held, {}, steps=2)
    assert FILE.is_file()
    while not kept.is_due():
        time.sleep(0.002)
    assert time.monotonic() - began >= max(interval, 20 * pause)


def test_nothing_is_saved_after_the_last_step_or_without_a_file(data, pair):
    assert not Checkpoint(interval=-1).is_due()
    kept = Always()
    loop.train(spec_of("single"), data, pair, CPU, None, kept)
    assert Checkpoint(RESULT, IDENTITY).waiting[1] == 5  # of six
    kept.remove()
    assert list(Path("runs").iterdir()) == []


def test_what_a_kill_leaves_of_a_saving_is_swept_and_a_checkpoint_is_not(data, pair):
    interrupted(spec_of("single"), data, pair)
    left = FILE.with_name("..seed0.abcd1234.checkpoint")
    left.write_bytes(b"half")
    with provenance.recording("runs", [RESULT], [], "c0de"):
        assert FILE.is_file()
        Checkpoint(RESULT, IDENTITY)
        assert FILE.is_file()
        assert not left.exists()
        provenance.write_text(RESULT, "{}")


class Asks:
    """Calls something when it is unpickled."""

    def __init__(self, called, *arguments):
        self.called = called, arguments

    def __reduce__(self):
        return self.called


def planted(called, *arguments):
    """A checkpoint that asks for a call, with the digest that belongs to it."""

    def plant(content):
        told = content.partition(b"\n")[0] + b"\n" + pickle.dumps([Asks(called, *arguments)])
        return told + hashlib.sha256(told).digest()

    return plant


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda content: content[:99] + bytes([content[99] ^ 1]) + content[100:], "it is damaged"),
        (lambda content: content[: len(content) // 2], "it is damaged"),
        (lambda content: b"", "it is damaged"),
        *((key, f"it is of another {key}") for key in IDENTITY),
        (planted(os.mkdir, "planted"), "it asks for posix.mkdir"),
        (planted(getattr, Path, "mkdir"), "it asks for builtins.getattr"),
        (planted(provenance.write_text, RESULT, "planted"), "it asks for clpapers.provenance.write_text"),
    ],
)
def test_one_that_is_damaged_of_another_run_or_asks_for_other_code_is_removed_and_training_starts_over(
    spoil, reason, data, chunked, capsys
):
    spec, one = spec_of("er"), {0: chunked[0]}
    undisturbed = train(spec, data, one)
    interrupted(spec, data, one)
    if callable(spoil):
        FILE.write_bytes(spoil(FILE.read_bytes()))
    capsys.readouterr()
    kept = Checkpoint(RESULT, IDENTITY | ({} if callable(spoil) else {spoil: "another"}))
    assert train(spec, data, one, kept) == undisturbed
    said = [line for line in capsys.readouterr().err.splitlines() if "not resumed" in line]
    assert said == [f"{FILE}: not resumed, {reason}; training starts over"]
    assert kept.resumed == []
    assert list(Path().rglob("*")) == [Path("runs")]


def test_a_full_disk_costs_the_checkpoint_and_not_the_run(data, pair, capsys):
    """Here no file may be longer than 2000 bytes."""
    spec = spec_of("er")
    undisturbed = train(spec, data, pair)
    interrupted(spec, data, pair, step=2)
    before, limits = FILE.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    capsys.readouterr()
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, limits[1]))
    try:
        assert train(spec, data, pair, Always()) == undisturbed
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    said = [line for line in capsys.readouterr().err.splitlines() if "not written" in line]
    assert said == [f"{FILE}: not written, training goes on: [Errno 27] File too large"]
    assert FILE.read_bytes() == before
    assert list(Path("runs").iterdir()) == [FILE]


def test_nor_does_what_cannot_be_saved_and_it_is_said_once(data, pair, written, capsys):
    spec = spec_of("single")
    undisturbed = train(spec, data, pair)
    spec["learner"] = written("    def task_change(self, t):\n        self.rule = lambda: t\n")
    found = json.loads(train(spec, data, pair, Always()))
    assert [each["test"] for each in found] == [each["test"] for each in json.loads(undisturbed)]
    said = capsys.readouterr().err
    assert said.count("not written, training goes on") == 1
    assert "self.rule is a lambda" in said


def test_how_far_a_training_is_can_be_read_from_its_checkpoint():
    """The second of two groups of two seeds, three of its four steps taken: 7 of 8. Nothing for other code."""
    identity = IDENTITY | {"code": "one", "seeds": [0, 1, 2, 3], "processor": provenance.hardware()["processor"]}
    saved = Checkpoint(RESULT, identity)
    saved.finished[0, 1] = []
    saved.save([2, 3], 3, None, {}, steps=4)
    assert [share_done(RESULT, code) for code in ("one", "other")] == [7 / 8, 0]
    assert share_done(RESULT.with_name("seed9.json"), "one") == 0
    FILE.write_bytes(b"damaged")
    assert share_done(RESULT, "one") == 0
