"""A training that is interrupted and resumed comes to the same bits; a checkpoint that is not its own is refused."""

import collections
import errno
import hashlib
import importlib
import io
import json
import os
import pickle
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny import CHUNKS, CPU, DOMAINS, NETS, OPTIONS, SPLIT, VARIANTS, cell, scenarios

from clpapers import provenance
from clpapers.runs import checkpoint, learners, loop
from clpapers.runs.checkpoint import Checkpoint, CheckpointError
from clpapers.runs.clock import Clock
from clpapers.runs.images import Images
from clpapers.runs.learners.icarl import ICaRL
from clpapers.runs.learners.single import Single
from clpapers.runs.optimizers import Adam
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

    def save(self, seeds, step, *state):
        super().save(seeds, step, *state)
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


def test_an_error_within_a_step_loses_no_more_than_that_step(data, chunked, monkeypatch):
    spec, observe, told = spec_of("single", {}), Single.observe, []

    def fails(self, t, x, y):
        told.append(t)
        if t == 3 and told.count(3) == 1:
            raise Killed
        return observe(self, t, x, y)

    undisturbed = train(spec, data, chunked)
    monkeypatch.setattr(Single, "observe", fails)
    with pytest.raises(Killed):
        train(spec, data, chunked, Checkpoint(RESULT, IDENTITY, 0))
    assert train(spec, data, chunked, Checkpoint(RESULT, IDENTITY, 0)) == undisturbed
    assert told == [0, 1, 2, 3, 3, 4, 5]


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
    Checkpoint(RESULT, IDENTITY).save([0], 1, thing, fixed)
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


def test_what_learners_hold_is_admitted():
    rng, source = np.random.default_rng(3), torch.Generator().manual_seed(3)
    rng.random(5), torch.rand(5, generator=source)
    table = np.arange(12).reshape(3, 4)
    kept = {
        "numbers": [table, table[:, ::2].T, np.float64(0.1), np.dtype("int64"), {1, 2}, slice(1, 3), None],
        "dictionaries": [collections.OrderedDict(a=1), collections.defaultdict(dict, b={})],
        "tensors": [torch.ones(2, 3).T, torch.tensor([True]), torch.Size([2]), CPU, torch.float32],
        "chance": [rng, source, rng],
    }
    again = through(kept)
    assert str(again["numbers"]) == str(kept["numbers"])
    assert again["dictionaries"] == kept["dictionaries"]
    assert again["tensors"][0].stride() == (1, 3)
    assert again["tensors"][2:] == kept["tensors"][2:]
    first, second, third = again["chance"]
    assert first is third
    assert first.random() == rng.random()
    assert torch.equal(torch.rand(3, generator=second), torch.rand(3, generator=source))


def test_images_are_not_kept():
    images = Images(np.zeros((1000, 8, 8, 1), np.uint8), "unit", CPU, torch.float32)
    one, other = through([images, images.unpermuted()], images=images)
    assert one is images
    assert other.pixels is images.pixels
    assert FILE.stat().st_size < 5000


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
    kept.save([0], 1, None, {})
    assert due_after() == 300
    took = 60
    kept.save([0], 1, None, {})
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


def plant(state, *, written=None):
    """Put another state into the checkpoint, or other bytes for one, with the digest that belongs to it."""
    told = FILE.read_bytes().partition(b"\n")[0] + b"\n" + (json.dumps(state).encode() if written is None else written)
    FILE.write_bytes(told + hashlib.sha256(told).digest())


def planted(*nodes, sizes=()):
    """A state whose root is the first of these nodes."""
    return {"root": [0], "nodes": list(nodes), "sizes": list(sizes)}


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


def forge(change):
    """Change a checkpoint's header and state, and give it the digest that belongs to it."""
    header, line, memory = FILE.read_bytes()[:-32].split(b"\n", 2)
    told, state = json.loads(header), json.loads(line)
    change(told, state)
    content = b"\n".join((json.dumps(told).encode(), json.dumps(state).encode(), memory))
    FILE.write_bytes(content + hashlib.sha256(content).digest())


def of(state, name):
    """The attributes of the first object of a class."""
    return next(node[2] for node in state["nodes"] if node[0] == "object" and node[1].endswith(f".{name}"))


def tensor(state, **parts):
    """Change parts of the first weight."""
    names = ("block", "device", "dtype", "offset", "shape", "strides", "parameter", "requires_grad", "gradient")
    node = next(node for node in state["nodes"] if node[0] == "tensor" and node[7])
    for name, value in parts.items():
        node[1 + names.index(name)] = value


MISFITS = {
    "header's step": (lambda told, state: told.update(step=2), "state.step is 3, not 2"),
    "step": (lambda told, state: of(state, "Run").update(step=4), "state.step is 4, not 3"),
    "both steps": (lambda told, state: (told.update(step=99), of(state, "Run").update(step=99)), "step 99 of 6"),
    "a step below zero": (lambda told, state: (told.update(step=-1), of(state, "Run").update(step=-1)), "step -1 of 6"),
    "shape": (lambda told, state: tensor(state, shape=[1, 192], gradient=None), "not torch.float64 ["),
    "dtype": (lambda told, state: tensor(state, dtype="torch.float32", gradient=None), "is torch.float32 ["),
    "frozen": (lambda told, state: tensor(state, requires_grad=False), "is frozen"),
    "no parameter": (lambda told, state: tensor(state, parameter=False), "is of type Tensor, not Parameter"),
    "strides": (lambda told, state: tensor(state, strides=[0, 0], gradient=None), "share their memory"),
    "device": (lambda told, state: tensor(state, device="meta"), ""),
    "no key": (lambda told, state: of(state, "Memory").pop("plans"), "lacks plans"),
    "hidden": (lambda told, state: of(state, "ER").update(policy="all"), "hides policy of its class"),
    "option": (lambda told, state: of(state, "ER").update(learning_rate=9.0), "learning_rate is 9.0, not 0.1"),
    "counter": (lambda told, state: of(state, "Memory").update(steps="3"), "steps is of type str, not int"),
    "findings": (lambda told, state: of(state, "Run").update(taken=of(state, "Online")["notes"]), "taken is of type"),
    "root": (lambda told, state: state.update(root=None), "state is of type NoneType, not Run"),
}


@pytest.mark.parametrize("kind", MISFITS)
def test_one_that_does_not_fit_the_run_ends_the_process(kind, data, alone):
    change, said = MISFITS[kind]
    spec = spec_of("er", OPTIONS["er"])
    interrupted(spec, data, alone)
    forge(change)
    with pytest.raises(CheckpointError) as refusal:
        loop.train(spec, data, alone, CPU, None, Checkpoint(RESULT, IDENTITY))
    told = str(refusal.value)
    assert told.startswith(f"{FILE}: not resumed, ")
    assert said in told
    assert told.endswith("; it is removed, give the same command again to start over")
    assert not FILE.exists()


def test_findings_of_other_tests_than_were_due_are_refused(data, alone):
    spec = spec_of("er", OPTIONS["er"])
    interrupted(spec, data, alone, step=5)

    def fewer(told, state):
        taken = state["nodes"][of(state, "Run")["taken"][0]][1:]
        next(held for _, (each,) in taken if (held := state["nodes"][each][1])).pop()

    forge(fewer)
    with pytest.raises(CheckpointError, match=r"its findings of \w+ are not of"):
        loop.train(spec, data, alone, CPU, None, Checkpoint(RESULT, IDENTITY))


def test_what_fails_later_is_one_line_and_stays(data, alone, monkeypatch):
    """As where values are none that training comes to, or a GPU fails."""
    spec, observe = spec_of("er", OPTIONS["er"]), learners.find("er").observe
    interrupted(spec, data, alone)

    def fails(self, t, x, y):
        if t == 4:
            raise RuntimeError("CUDA error\nand more")
        return observe(self, t, x, y)

    monkeypatch.setattr(learners.find("er"), "observe", fails)
    with pytest.raises(CheckpointError) as failure:
        loop.train(spec, data, alone, CPU, None, Checkpoint(RESULT, IDENTITY))
    assert str(failure.value) == (
        f"{FILE}: resumed, and then failed (CUDA error); give the same command again, and where that fails too, "
        f"delete {FILE}"
    )
    assert FILE.exists()
    FILE.unlink()
    with pytest.raises(RuntimeError, match="CUDA error"):  # nothing else is to blame
        loop.train(spec, data, alone, CPU, None, Checkpoint(RESULT, IDENTITY))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("step", 1e400),
        ("step", "x"),
        ("seeds", 3),
        ("seconds", {}),
        ("seconds", {"training_seconds": {"0": -1}, "testing_seconds": {}}),
        ("seconds", {"training_seconds": {"0": float("nan")}, "testing_seconds": {}}),
        ("seconds", {"training_seconds": {"0": "1"}, "testing_seconds": {}}),
        ("spent", {}),
        ("spent", {"wall_seconds": 1e400, "cpu_seconds": 0, "peak_memory_bytes": 0}),
        ("resumed", [{"seeds": [0]}]),
        ("finished", [[[[]], []]]),
    ],
)
def test_numbers_of_a_header_that_can_be_none_are_damage(key, value, data, chunked, capsys):
    interrupted(spec_of("single", {}), data, chunked)
    forge(lambda told, state: told.update({key: value}))
    capsys.readouterr()
    kept = Checkpoint(RESULT, IDENTITY)
    assert capsys.readouterr().err == f"{FILE}: not resumed, it is damaged; training starts over\n"
    assert (kept.finished, kept.waiting, kept.earlier) == ({}, None, {})


@pytest.mark.parametrize("found", [[], {}, [3], [{}], [{"seed": 1, "out_of_memory": True}], [{"seed": 0}]])
def test_results_that_are_none_are_refused(found, data, chunked):
    spec = spec_of("icarl", OPTIONS["icarl"])
    interrupted(spec, data, chunked, seed=1)
    forge(lambda told, state: told.update(finished=[[[0], found]]))
    with pytest.raises(CheckpointError, match=r"it has no results of seeds \[0\]"):
        loop.train(spec, data, chunked, CPU, None, Checkpoint(RESULT, IDENTITY))
    assert not FILE.exists()


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


@pytest.mark.parametrize(
    "header", [b"[" * 100_000, b"[]", b"{}", b"1", b'{"identity": 3}', b'{"identity": {}}', b"\xff", b"", b"9" * 5000]
)
def test_one_whose_header_is_none_is_refused(header, capsys):
    FILE.parent.mkdir()
    told = header + b"\n"
    FILE.write_bytes(told + hashlib.sha256(told).digest())
    kept = Checkpoint(RESULT, IDENTITY)
    assert capsys.readouterr().err == f"{FILE}: not resumed, it is damaged; training starts over\n"
    assert (kept.finished, kept.waiting, FILE.exists()) == ({}, None, False)


def refused(asked):
    """Have the planted checkpoint resumed: it is removed, and ends the process with one line."""
    with pytest.raises(CheckpointError) as refusal:
        Checkpoint(RESULT, IDENTITY).resume([0], {"images": 1})
    told, _, remedy = str(refusal.value).partition("; ")
    assert (remedy, str(refusal.value).isprintable()) == (
        "it is removed, give the same command again to start over",
        True,
    )
    assert told.startswith(f"{FILE}: not resumed, ")
    assert asked in told
    assert not FILE.exists()


@pytest.fixture
def some():
    """Any checkpoint."""
    Checkpoint(RESULT, IDENTITY).save([0], 1, [torch.ones(2), np.ones(3)], {})


@pytest.mark.parametrize(
    "name",
    [
        "os.system",
        "builtins.eval",
        "builtins.type",
        "builtins.object",
        "subprocess.Popen",
        "torch.load",
        "torch.fx.graph_module.GraphModule",
        "torch.jit._script.RecursiveScriptModule",
        "torch.nn.modules.module.register_module_forward_hook",
        "torch.nn.modules.module.OrderedDict",
        "clpapers.provenance.write_text",
        "clpapers.runs.learners.find",  # a function of ours
        "clpapers.runs.learner.Replay.place",
        "clpapers.runs.loop.sys",
        "clpapers.runs.loop.tqdm",
        "clpapers.runs.checkpoint.Path",
        "clpapers.runs.scenario.ScenarioError",  # no learner holds an error
    ],
)
@pytest.mark.parametrize("kind", ["object", "tuple of ours"])
def test_one_that_asks_for_other_code_ends_the_process(kind, name, some):
    plant(planted([kind, name, {} if kind == "object" else []]))
    refused(f"it asks for {name}")


@pytest.mark.parametrize(
    ("state", "asked"),
    [
        (planted(["constant", "setting"]), "it asks for setting, which is no constant"),
        (planted(["__reduce__", "os.system", ["true"]]), "it asks for __reduce__"),
        (planted(["defaultdict", "eval"]), "'eval'"),
        (planted(["dtype", "torch.load"]), "'torch.load'"),
        (planted(["array", "|O", [1], "C", False, 0], sizes=[8]), "it asks for an array of objects"),
        (planted(["array", "<f8", [2], "C", False, 0], sizes=[8]), "cannot reshape array of size 1 into shape (2,)"),
        (planted(["array", "<f8", [1], "C", False, 0], sizes=[10**15]), "its memory is not of the size that it says"),
        (planted(["array", "<f8", [1], "C", False, 0], sizes=[-1]), "its memory is not of the size that it says"),
        (
            planted(["tensor", 0, "cpu", "torch.float32", 0, [2**40], [1], False, False, None], sizes=[8]),
            "it asks for a tensor beyond its memory",
        ),
        (planted(["list", [[1]]]), "list index out of range"),
        (planted(["list", [{"a": 1}]]), "it holds JSON that stands for nothing"),
        (planted(["tuple", [[0]]]), "recursion depth exceeded"),
        (planted(["object", "torch.optim.adam.Adam", {"step": [1]}], ["dict"]), "'defaults'"),
        (planted(["object", "\x1b[2Jls", {}]), "it asks for \\x1b[2Jls"),
        ({"root": [0]}, "'nodes'"),
        ([], "list indices must be integers or slices, not str"),
    ],
)
def test_one_that_no_training_of_ours_wrote_ends_the_process(state, asked, some):
    plant(state)
    FILE.write_bytes((told := FILE.read_bytes()[:-32] + b"\n12345678") + hashlib.sha256(told).digest())
    torch.optim.Adam([torch.zeros(1)])  # whose first one wraps the class's step
    step = torch.optim.Adam.step
    refused(asked)
    assert torch.optim.Adam.step is step


class Foreign:
    """Makes a folder when it is unpickled."""

    def __reduce__(self):
        return os.mkdir, ("planted",)


def test_a_pickle_is_not_even_opened(some):
    plant(None, written=pickle.dumps([Foreign()]))
    refused("")
    assert not Path("planted").exists()


def test_what_starts_after_a_refusal_comes_to_the_same_bits(data, chunked):
    spec = spec_of("er", OPTIONS["er"])
    undisturbed = train(spec, data, chunked)
    interrupted(spec, data, chunked)
    plant(planted(["object", "os.system", {}]))
    with pytest.raises(CheckpointError):
        train(spec, data, chunked, Checkpoint(RESULT, IDENTITY))
    kept = Checkpoint(RESULT, IDENTITY)
    assert train(spec, data, chunked, kept) == undisturbed
    assert kept.resumed == []


def test_learners_of_others_are_kept_as_ours_are(tmp_path, monkeypatch):
    (tmp_path / "elsewhere.py").write_text(
        "from clpapers.runs.learners.single import Single\nclass Held: ...\nclass Mine(Single): ...\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    elsewhere = importlib.import_module("elsewhere")
    checkpoint._classes.cache_clear()
    mine = elsewhere.Mine.__new__(elsewhere.Mine)
    mine.held = elsewhere.Held()
    again = through(mine)
    assert (type(again), type(again.held)) == (elsewhere.Mine, elsewhere.Held)


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
    assert said == [f"{FILE}: not written, training goes on: [Errno 28] No space left on device"] * 3
    assert FILE.read_bytes() == before
    assert list(Path("runs").iterdir()) == [FILE]


def test_nor_does_what_cannot_be_saved(data, chunked, monkeypatch, capsys):
    spec = spec_of("single", {})
    undisturbed = train(spec, data, chunked)
    monkeypatch.setattr(Single, "task_change", lambda self, t: setattr(self, "rule", lambda: t))
    assert train(spec, data, chunked, Checkpoint(RESULT, IDENTITY, 0)) == undisturbed
    assert capsys.readouterr().err.count("not written, training goes on") == 2  # after steps 3 and 4
