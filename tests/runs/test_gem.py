"""GEM, S-GEM and A-GEM: what memories hold, projections by hand and by another solver, whole runs step by step."""

import numpy as np
import pytest
import torch
from scipy.optimize import lsq_linear
from tiny import (
    CHUNKS,
    CNN,
    DOMAINS,
    MLP,
    NONE,
    RANDOM,
    Way,
    assert_same_net,
    cross_entropy,
    images,
    made,
    split,
    stream,
    two_tasks,
)

from clpapers.runs.constrained import closest, project
from clpapers.runs.learners.gem import multipliers
from clpapers.streams import orders

RIDGE = 1e-3
A_GEM = {"name": "a_gem", "write": "uniform"}
ALL_CLASSES = A_GEM | {"name": "a_gem_all_classes"}
S_GEM = {"name": "s_gem", "write": "uniform"}
GEM = {"name": "gem", "margin": 0.5, "ridge": RIDGE, "write": "ring"}
REFERENCE = 7  # items of a replay batch
ALL = pytest.mark.parametrize("learner", [A_GEM, ALL_CLASSES, S_GEM, GEM], ids=lambda learner: learner["name"])
CLASSES = {"name": "split", "tasks": 3, "length": None}


def way(learner, net=MLP, order=CLASSES, seeds=(0, 1), train="oracle"):
    """Three tasks: of two classes each; of all six classes through other pixels; of ten items of any class."""
    data = images(classes=6, items=7)
    memory = 2 * (6 if order["name"] == "split" else 18)  # two items of each class of each task
    spec = two_tasks(learner, net, oracle=CHUNKS, order=order, train=train, memory=memory, replay_batch=REFERENCE)
    pixels = int(np.prod(data.train_x.shape[1:]))
    streams = [orders.make(order, data.train_y, seed, pixels=pixels) for seed in seeds]
    if order is RANDOM:
        streams = [stream(each.indices[:30], each.seed, [10, 20]) for each in streams]
    return Way(spec, data, streams)


def rows(*values):
    return torch.tensor(np.array(values), dtype=torch.float64)


def held(here, s, task):
    """The slots of a task's memory, without repetitions, the items in them and their labels."""
    memory = here.learner.memory
    slots = memory.valid[s, task].nonzero()[:, 0]
    return task * memory.size + slots, memory.items[s, task, slots].tolist(), memory.labels[s, task, slots].tolist()


# --- what is kept ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("write", ["uniform", "ring"])
@pytest.mark.parametrize("order", [CLASSES, DOMAINS, CLASSES | {"epochs": 3}], ids=["classes", "domains", "epochs"])
def test_a_memory_holds_what_its_budget_says_after_every_task(order, write):
    """Of each class of each task two items, all different, that the stream showed in that task."""
    here = way(GEM | {"write": write}, order=order)
    setting, times = here.setting, 3 if order is DOMAINS else 1
    for s in range(2):
        for task in range(3):
            shown = setting.tasks[s] == task
            of_item = dict(zip(setting.items[s, shown].tolist(), setting.labels[s, shown].tolist()))
            _, items, labels = held(here, s, task)
            assert [of_item[item] for item in items] == labels
            assert len(set(items)) == len(items) == here.learner.report(s)["memory"][task]
            assert sorted(labels) == sorted(2 * list(set(of_item.values())))
        kept = here.learner.memory_use(s)
        assert kept == {"items": 12 * times, "bytes": 12 * times * 16, "per_class": [2 * times] * 6}


@pytest.mark.parametrize(
    ("indices", "boundary", "expected"),
    [
        ([0, 20, 1, 2, 21, 22, 3, 40, 60, 41, 61, 42], 7, [[2, 3, 21, 22], [41, 42, 60, 61]]),
        ([0, 1, 2, 2, 0, 1, 40], 6, [[0, 1], [40]]),  # an item of two epochs counts where it comes last
    ],
)
def test_a_ring_keeps_the_last_items_of_a_class(indices, boundary, expected):
    spec = two_tasks(GEM, MLP, oracle=CHUNKS, order=RANDOM, memory=2 * 2 * 4)
    here = Way(spec, images(), [stream(indices, boundaries=[boundary])])
    assert [held(here, 0, task)[1] for task in (0, 1)] == expected


def test_uniform_keeps_every_item_of_a_class_alike():
    here = way(A_GEM, seeds=range(200))
    items = np.array([item for s in range(200) for k in range(3) for item in held(here, s, k)[1]])
    kept = np.bincount(items[items // 7 == 3] - 21)
    assert kept.sum() == 400
    assert np.abs(kept / 200 - 2 / 7).max() < 0.1  # three standard deviations


def test_where_a_class_is_scarce_its_items_are_all_held():
    """Task 0 shows three items of class 0 and one of class 1; task 1 five of class 2."""
    spec = two_tasks(S_GEM, MLP, oracle=CHUNKS, order=RANDOM, memory=3 * 2 * 4)
    here = Way(spec, images(), [stream([0, 20, 1, 2, 40, 41, 42, 43, 44], boundaries=[4])])
    assert sorted(held(here, 0, 0)[1]) == [0, 1, 2, 20]
    assert set(held(here, 0, 1)[1]) <= set(range(40, 45))
    assert here.learner.report(0)["memory"] == [4, 3]


@pytest.mark.parametrize("oracle", [split(3), {"name": "random_tasks", "tasks": 2}], ids=lambda oracle: oracle["name"])
def test_tasks_that_do_not_follow_one_another_are_refused(oracle):
    spec, data = two_tasks(A_GEM, MLP, oracle=oracle, order=RANDOM), images(classes=6, items=7)
    with pytest.raises(ValueError, match="tasks that follow one another"):
        Way(spec, data, [made(spec, data)])


# --- the projections ---------------------------------------------------------------------------------------


def test_a_gem_by_hand():
    """g = (1, -2), g_ref = (0, 2): g·g_ref = -4 and g_ref² = 4, so what is left of g is (1, 0).

    The second seed does not violate its constraint; the reference of the third is zero.
    """
    gradient, reference = rows([1, -2], [1, 2], [1, 2]), rows([0, 2], [0, 2], [0, 0])
    new, violated = project([gradient], [reference[:, None]], closest)
    torch.testing.assert_close(new[0], rows([1, 0], [1, 2], [1, 2]))
    assert violated.tolist() == [True, False, False]


@pytest.mark.parametrize("margin", [0.0, 0.5])
def test_the_multipliers_are_those_of_another_solver(margin):
    rng = np.random.default_rng(1)
    for _ in range(20):
        G = rng.normal(size=(5, 9))
        along, gram = G @ (rng.normal(size=9) - G[0]), G @ G.T
        # ½vᵀHv + gᵀv is ½‖Rv + R⁻ᵀg‖² but for a constant, H = RᵀR
        root = np.linalg.cholesky(gram + 1e-3 * np.eye(5)).T
        other = lsq_linear(root, -np.linalg.solve(root.T, along), bounds=(margin, np.inf), method="bvls", tol=1e-14)
        np.testing.assert_allclose(multipliers(along, gram, margin, RIDGE), other.x, rtol=1e-6, atol=1e-8)


def test_where_there_is_no_solution_the_gradient_stays():
    """Infinite, not a number, or indefinite: neither a crash, nor a step that is no projection; mates are projected."""

    def dual(along, gram):
        return rows(*(multipliers(*each, 0.5, RIDGE) for each in zip(along.numpy(), gram.numpy())))

    rng = np.random.default_rng(0)
    gradient, references = rows(*rng.normal(size=(4, 3))), rows(*rng.normal(size=(4, 2, 3)))
    references[:, 0] = -gradient
    references[0, 1], references[1, 1], references[2] = torch.nan, torch.inf, references[2] * 1e200
    (new,), violated = project([gradient], [references], dual)
    assert violated.all()
    assert torch.equal(new[:3], gradient[:3])
    assert torch.equal(new[3:], project([gradient[3:]], [references[3:]], dual)[0][0])
    assert not torch.equal(new[3], gradient[3])
    indefinite = np.array([[1.0, 2.0], [2.0, 1.0]])
    assert np.isnan(multipliers(np.array([-1.0, 1.0]), indefinite, 0.0, RIDGE)).all()


# --- whole runs --------------------------------------------------------------------------------------------


def flat(loss, net):
    return torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(net.parameters()))])


def references(here, net, s, t, task):
    """The gradients that constrain an ordinary net's step in a task after the first.

    GEM: on the whole memory of each task that is over. S-GEM: of one of them. A-GEM: on distinct items of them all.
    An item competes with the classes of its task, or with those of all tasks that are over.
    """
    learner, setting = here.learner, here.setting
    whole, name = [held(here, s, k)[0] for k in range(task)], here.spec["learner"]["name"]
    if name == "gem":
        drawn = whole
    elif name == "s_gem":
        drawn = [whole[int(learner.chosen[t, s])]]
    else:
        slots, everything = learner.filled[s, learner.draws[t - learner.start, s]], torch.cat(whole)
        drawn = [slots[: len(everything)]]  # then they repeat
        assert len(drawn[0]) == min(REFERENCE, len(everything)) == len(drawn[0].unique())
        assert torch.isin(drawn[0], everything).all()
    found = []
    for slots in drawn:
        logits = net(setting.images(learner.memory.items.flatten(1))[s, slots])
        losses = []
        for said, label, slot in zip(logits, learner.memory.labels[s].flatten()[slots], slots.tolist()):
            allowed = torch.ones(6, dtype=torch.bool)
            if setting.masks is not None:
                over = slice(0, task) if name == "a_gem_all_classes" else [slot // learner.memory.size]
                allowed = setting.task_classes[s, over].any(dim=0)
            losses.append(cross_entropy(said[None], label[None], allowed.nonzero()[:, 0].tolist()))
        found.append(flat(sum(losses) / len(losses), net))
    return found


def project_plainly(g, references, learner):
    """Eq. 11; or eq. 8, solved by trying all sets of constraints that may be slack (there are at most two)."""
    if learner["name"] != "gem":
        (ref,) = references
        return g - (g @ ref) / (ref @ ref) * ref
    rows_, margin = torch.stack(references), learner["margin"]
    hessian, linear = rows_ @ rows_.T + 1e-3 * torch.eye(len(rows_), dtype=g.dtype), rows_ @ g
    best = None
    for free in range(2 ** len(rows_)):
        loose = [k for k in range(len(rows_)) if free >> k & 1]
        v = torch.full_like(linear, margin)
        if loose:
            v[loose] = 0
            v[loose] = torch.linalg.solve(hessian[loose][:, loose], -(linear + hessian @ v)[loose])
        value = v @ hessian @ v / 2 + linear @ v
        if (v >= margin).all() and (best is None or value < best[0]):
            best = value, v
    return g + best[1] @ rows_


@ALL
@pytest.mark.parametrize(
    ("net", "order", "train"),
    [
        (MLP, DOMAINS, "none"),
        (MLP, RANDOM, "none"),
        (MLP, CLASSES, "oracle"),
        (MLP, CLASSES, "none"),
        (CNN, CLASSES, "oracle"),
    ],
    ids=["mlp-domains", "mlp-scarce", "mlp-classes-masked", "mlp-classes", "cnn-classes-masked"],
)
def test_a_run_equals_a_plain_module_s(net, order, train, learner):
    """Step by step against an ordinary net, each seed by itself."""
    here = way(learner, net, order, train=train)
    ordinary = [here.ordinary(s=s) for s in range(2)]
    optimizers = [here.optimizer(each) for each in ordinary]
    violations = np.zeros((2, 3), dtype=int)
    for t in range(len(here.changes)):
        here.step()
        task = int(here.setting.tasks[0, here.setting.step(t)][0])
        for s, (plain, optimizer) in enumerate(zip(ordinary, optimizers)):
            x, y = (part[s] for part in here.batch(t))
            refs = references(here, plain, s, t, task) if task else []
            g = flat(cross_entropy(plain(x), y, here.mask(t, s)), plain)
            if any(g @ ref < 0 for ref in refs):
                violations[s, task] += 1
                g = project_plainly(g, refs, learner)
            for p, part in zip(plain.parameters(), g.split([p.numel() for p in plain.parameters()])):
                p.grad = part.view_as(p)
            optimizer.step()
    for s, plain in enumerate(ordinary):
        assert_same_net(here.learner.net, plain, s)
        assert here.learner.report(s)["violations"] == violations[s].tolist()
    assert violations.sum() > 0


@ALL
def test_without_a_second_task_it_is_plain_descent(learner):
    spec, data = two_tasks(learner, MLP, oracle=NONE, order=RANDOM), images()
    held = Way(spec, data, [made(spec, data)]).walk()
    single = Way(spec | {"learner": {"name": "single"}}, data, [made(spec, data)]).walk()
    assert all(torch.equal(a, b) for a, b in zip(held.parameters, single.parameters))
    assert held.report(0) == {"violations": [0], "memory": [12]}
