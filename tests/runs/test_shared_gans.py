"""GANs that runs share: the same bits as a run's own, also after a stop."""

import time

import numpy as np
import pytest
import torch
from tiny import CPU, GAN, MLP, VGR, Kept, Killed, Way, images, split, two_tasks

from clpapers.runs import shared_gans
from clpapers.runs.checkpoint import Checkpoint
from clpapers.runs.gans import GANs
from clpapers.runs.images import Images
from clpapers.streams import orders

DATA = images(classes=6, items=20)  # 4×4 images, of one colour
SPLIT = {"name": "split", "tasks": 3, "length": None}
CYCLES = SPLIT | {"cycles": 2}
DOMAINS = {"name": "permuted_pixels", "tasks": 3, "length": 60}


def course(order, seeds=(0,), options=GAN):
    spec = two_tasks(VGR | {"gan": options}, MLP, oracle=split(3), order=order, optimizer="adam", batch="task")
    return spec, {seed: orders.make(order, DATA.train_y, seed, 16) for seed in seeds}


def made(order, seed=0, last=True, options=GAN, checkpoint=None):
    spec, streams = course(order, (seed,), options)
    wanted = {key: spec[key] for key in ("order", "scaling", "precision")} | {"gan": options}
    data = (DATA.train_x, DATA.train_y, DATA.classes)
    return shared_gans.train(wanted, last, data, streams[seed], CPU, checkpoint)


def same(arrays, others):
    return arrays.keys() == others.keys() and all(np.array_equal(arrays[name], others[name]) for name in arrays)


def walked(order, seeds=(0,), given=None, options=GAN):
    """VGR along a stream; and what it observed."""
    spec, streams = course(order, seeds, options)
    way = Way(spec, DATA, list(streams.values()), gans=given)
    return way.learner, [way.step() for _ in way.changes]


def files(order, tmp_path, seeds, **given):
    for seed in seeds:
        shared_gans.save(made(order, seed, **given)[0], tmp_path / f"seed{seed}.npz")
    return {seed: shared_gans.load(tmp_path / f"seed{seed}.npz") for seed in seeds}


@pytest.mark.parametrize("order", [SPLIT, CYCLES, DOMAINS], ids=["split", "cycles", "domains"])
@pytest.mark.parametrize("last", [True, False], ids=["last", "not the last"])
def test_a_run_is_the_same_with_gans_of_its_own(order, last, tmp_path):
    """Bit for bit, losses, logits and posterior."""
    options = GAN | {"epochs": 1 if last else 3}
    own, said = walked(order, options=options)
    other, heard = walked(order, given=files(order, tmp_path, (0,), last=last, options=options), options=options)
    pairs = [*zip(said, heard, strict=True), (own.posterior.now, other.posterior.now)]
    assert all(torch.equal(*each) for ours, theirs in pairs for each in zip(ours, theirs))


def test_seeds_of_a_stack_have_each_their_own(tmp_path):
    given = files(SPLIT, tmp_path, (0, 1))
    together = walked(SPLIT, (0, 1), given)[0]
    for s, seed in enumerate((0, 1)):
        alone = walked(SPLIT, (seed,), given)[0]
        for ours, theirs in zip(together.tasks, alone.tasks):
            drawn = ours.gans.draw(3, "a test")[2 * s : 2 * s + 2]
            torch.testing.assert_close(drawn, theirs.gans.draw(3, "a test"))


def test_of_the_last_task_none_are_trained_unless_asked_for():
    every, few = made(SPLIT)[0], made(SPLIT, last=False)[0]
    assert [name for name in every if name.endswith("classes")] == ["0/classes", "1/classes", "2/classes"]
    assert same(few, {name: array for name, array in every.items() if not name.startswith("2/")})
    assert made(DOMAINS)[0].keys() == made(DOMAINS, last=False)[0].keys()


@pytest.mark.parametrize("name", ["gan_mlp", "gan_conv", "dcgan"])
@pytest.mark.parametrize("members", [1, 3])
def test_what_was_kept_is_restored(name, members):
    options = GAN | {"name": name, "width": 2}
    real = Images(DATA.train_x, "unit", CPU, torch.float32)
    gans, others = (GANs(options, real, [(0, str(c)) for c in range(members)]) for _ in range(2))
    gans.train([torch.arange(20) + 20 * c for c in range(members)], 3)
    state = gans.state()
    assert all(len(array) == members for array in state.values())
    others.restore([state])
    assert torch.equal(gans.draw(4, "a test"), others.draw(4, "a test"))


def test_equal_gans_make_equal_bytes(tmp_path):
    for name in ("one", "two"):
        shared_gans.save(made(SPLIT)[0], tmp_path / f"{name}.npz")
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()


def test_killed_they_go_on_to_the_same_bits(tmp_path):
    """After the first of three tasks was saved."""
    with pytest.raises(Killed):
        made(SPLIT, checkpoint=Kept(tmp_path / "seed0.npz", 1))
    after = Checkpoint(tmp_path / "seed0.npz", {})
    arrays, _ = made(SPLIT, checkpoint=after)
    assert after.resumed == [{"seeds": [0], "step": 1}]
    begun = time.perf_counter()
    whole, seconds = made(SPLIT)
    assert seconds > 0.6 * (time.perf_counter() - begun)  # those of all tasks
    assert same(arrays, whole)
