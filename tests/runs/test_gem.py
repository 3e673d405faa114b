"""GEM, S-GEM and A-GEM: what memories hold, projections by hand and by another solver, whole runs step by step."""

import numpy as np
import pytest
import torch
from scipy.optimize import lsq_linear
from tiny import CNN, LR, MLP, Way, assert_same_net, cross_entropy, images, made, split, stream, two_tasks

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
WRITES = pytest.mark.parametrize("write", ["uniform", "ring"])
DOMAINS = {"name": "permuted_pixels", "tasks": 3, "length": None}
CLASSES = {"name": "split", "tasks": 3, "length": None}
RANDOM = {"name": "random", "length": None}  # its tasks are what is between the boundaries of a stream
CHUNKS = {"name": "chunks"}


def way(learner, net=MLP, order=CLASSES, seeds=(0, 1), train="oracle", items=7):
    """Three tasks: of two classes each; of all six classes through other pixels; of ten items of any class."""
    data = images(classes=6, items=items)
    memory = 2 * (6 if order is CLASSES else 18)  # two items of each class of each task
    spec = two_tasks(learner, net, oracle=CHUNKS, order=order, train=train, memory=memory, replay_batch=REFERENCE)
    pixels = int(np.prod(data.train_x.shape[1:]))
    streams = [orders.make(order, data.train_y, seed, pixels=pixels) for seed in seeds]
    if order is RANDOM:
        streams = [stream(each.indices[:30], each.seed, [10, 20]) for each in streams]
    return Way(spec, data, streams)


def rows(*values):
    return torch.tensor(np.array(values), dtype=torch.float64)


# --- what is kept ------------------------------------------------------------------------------------------


@WRITES
@ALL
@pytest.mark.parametrize("order", [CLASSES, DOMAINS], ids=lambda order: order["name"])
def test_a_memory_holds_what_its_budget_says_after_every_task(order, learner, write):
    """Of each class of each task two items, all different, that the stream showed in that task."""
    here = way(learner | {"write": write}, order=order)
    memory, setting = here.learner.memory, here.setting
    for s in range(2):
        for task in range(3):
            shown = setting.tasks[s] == task
            items, labels = (each[s, task, memory.valid[s, task]].tolist() for each in (memory.items, memory.labels))
            of_item = dict(zip(setting.items[s, shown].tolist(), setting.labels[s, shown].tolist()))
            assert [of_item[item] for item in items] == labels
            assert len(set(items)) == len(items) == memory.counts[s, task]
            assert sorted(labels) == sorted(2 * list(set(of_item.values())))
        kept = here.learner.memory_use(s)
        times = 1 if order is CLASSES else 3
        assert kept == {"items": 12 * times, "bytes": 12 * times * 16, "per_class": [2 * times] * 6}
        assert here.learner.report(s)["memory"] == memory.counts[s].tolist()


@WRITES
def test_an_item_that_comes_in_several_epochs_is_kept_once(write):
    memory = way(GEM | {"write": write}, order=CLASSES | {"epochs": 3}).learner.memory
    for s in range(2):
        for task in range(3):
            items = memory.items[s, task, memory.valid[s, task]].tolist()
            assert len(set(items)) == len(items) == 2 * 6


def test_a_ring_keeps_the_last_items_of_a_class():
    spec = two_tasks(GEM, MLP, oracle=CHUNKS, order=RANDOM, memory=2 * 2 * 4)
    here = Way(spec, images(), [stream([0, 20, 1, 2, 21, 22, 3, 40, 60, 41, 61, 42], boundaries=[7])])
    memory = here.learner.memory
    assert [memory.items[0, k, memory.valid[0, k]].tolist() for k in (0, 1)] == [[2, 3, 21, 22], [41, 42, 60, 61]]


def test_a_ring_counts_an_item_of_several_epochs_where_it_comes_last():
    """Items 0 1 2, then 2 0 1: the last two that came are 0 and 1."""
    spec = two_tasks(GEM, MLP, oracle=CHUNKS, order=RANDOM, memory=2 * 2 * 4)
    memory = Way(spec, images(), [stream([0, 1, 2, 2, 0, 1, 40], boundaries=[6])]).learner.memory
    assert memory.items[0, 0, memory.valid[0, 0]].tolist() == [0, 1]


def test_uniform_keeps_every_item_of_a_class_alike():
    memory = way(A_GEM, seeds=range(200)).learner.memory
    kept = torch.bincount(memory.items[memory.labels == 3] - 21, minlength=7)
    assert kept.sum() == 400
    assert (kept / 200 - 2 / 7).abs().max() < 0.1  # three standard deviations


def test_where_a_class_is_scarce_its_items_are_all_held_and_the_rest_repeats():
    """Task 0 shows three items of class 0 and one of class 1; task 1 five of class 2."""
    spec = two_tasks(S_GEM, MLP, oracle=CHUNKS, order=RANDOM, memory=3 * 2 * 4)
    here = Way(spec, images(), [stream([0, 20, 1, 2, 40, 41, 42, 43, 44], boundaries=[4])])
    memory = here.learner.memory
    assert memory.counts.tolist() == [[4, 3]]
    assert memory.valid[0].sum(dim=1).tolist() == [4, 3]
    assert sorted(memory.items[0, 0, :4].tolist()) == [0, 1, 2, 20]
    assert set(memory.items[0, 1].tolist()) == set(memory.items[0, 1, :3].tolist()) <= set(range(40, 45))
    _, weight = memory.of_task(torch.tensor([1]))
    torch.testing.assert_close(weight, rows([1 / 3] * 3 + [0] * (memory.size - 3)))


@pytest.mark.parametrize("oracle", [split(3), {"name": "random_tasks", "tasks": 2}], ids=lambda oracle: oracle["name"])
def test_tasks_that_do_not_follow_one_another_are_refused(oracle):
    spec = two_tasks(A_GEM, MLP, oracle=oracle, order=RANDOM)
    data = images(classes=6, items=7)
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


def dual(margin, ridge=RIDGE):
    """GEM's, of every seed."""
    return lambda along, gram: rows(*(multipliers(*each, margin, ridge) for each in zip(along.numpy(), gram.numpy())))


def some(constraints, seeds=20, parameters=(3, 6), seed=0):
    """Gradients and references of two parameters, drawn at random."""
    rng = torch.Generator().manual_seed(seed)
    gradient = [torch.randn(seeds, p, generator=rng, dtype=torch.float64) for p in parameters]
    references = [torch.randn(seeds, constraints, p, generator=rng, dtype=torch.float64) for p in parameters]
    return gradient, references


def test_a_gem_is_the_closed_form_and_gem_with_one_constraint_and_no_margin():
    gradient, references = some(1)
    g, ref = torch.cat(gradient, dim=1), torch.cat(references, dim=2)[:, 0]
    inner = (g * ref).sum(dim=1, keepdim=True)
    closed = g - (inner < 0) * inner / (ref * ref).sum(dim=1, keepdim=True) * ref
    a_gem, violated = project(gradient, references, closest)
    torch.testing.assert_close(torch.cat(a_gem, dim=1), closed)
    assert torch.equal(violated, inner[:, 0] < 0)
    assert 0 < violated.sum() < len(violated)
    for ridge, tolerance in [(0, 1e-12), (RIDGE, 1e-2)]:
        gem, also = project(gradient, references, dual(0.0, ridge))
        torch.testing.assert_close(torch.cat(gem, dim=1), closed, rtol=0, atol=tolerance)
        assert torch.equal(also, violated)
    exact, _ = project(gradient, references, dual(0.0))
    assert not torch.allclose(torch.cat(exact, dim=1), closed, rtol=0, atol=1e-8)  # the regulariser is there


@pytest.mark.parametrize("margin", [0.0, 0.5])
def test_the_multipliers_are_those_of_another_solver(margin):
    gradient, references = some(5, seed=1)
    whole = torch.cat(references, dim=2)
    along = (whole @ torch.cat(gradient, dim=1)[..., None]).squeeze(2).numpy()
    gram = (whole @ whole.mT).numpy()
    for gg, h in zip(along, gram):
        hessian = h + 1e-3 * np.eye(5)
        # ½vᵀHv + gᵀv is ½‖Rv + R⁻ᵀg‖² but for a constant, H = RᵀR
        root = np.linalg.cholesky(hessian).T
        other = lsq_linear(root, -np.linalg.solve(root.T, gg), bounds=(margin, np.inf), method="bvls", tol=1e-14)
        np.testing.assert_allclose(multipliers(gg, h, margin, RIDGE), other.x, rtol=1e-6, atol=1e-8)


def test_where_there_is_no_solution_the_gradient_stays():
    """Infinite, not a number, or indefinite: neither a crash, nor a step that is no projection; mates are projected."""
    gradient, references = some(2, seeds=4, parameters=(3,))
    references[0][:, 0] = -gradient[0]
    alone, _ = project([g[3:] for g in gradient], [r[3:] for r in references], dual(0.5))
    references[0][0, 1], references[0][1, 1], references[0][2] = torch.nan, torch.inf, references[0][2] * 1e200
    new, violated = project(gradient, references, dual(0.5))
    assert violated.all()
    assert torch.equal(new[0][:3], gradient[0][:3])
    assert torch.equal(new[0][3:], alone[0])
    indefinite = np.array([[1.0, 2.0], [2.0, 1.0]])
    assert np.isnan(multipliers(np.array([-1.0, 1.0]), indefinite, 0.0, RIDGE)).all()


# --- whole runs --------------------------------------------------------------------------------------------


def on_memory(here, net, s, slots, together=0):
    """An ordinary net's gradient of the mean loss on some slots of one memory, each with the classes of its task.

    Or with those of the first tasks, if some compete together.
    """
    memory, setting = here.learner.memory, here.setting
    y = memory.labels[s].flatten()[slots]
    logits = net(setting.images(memory.items.flatten(1))[s, slots])
    everything = list(range(logits.shape[1]))
    masked = setting.masks is not None
    of_task = setting.task_classes[s]
    sets = [of_task[:together].any(dim=0) if together else of_task[slot // memory.size] for slot in slots.tolist()]
    allowed = [each.nonzero()[:, 0].tolist() for each in sets]
    losses = [
        cross_entropy(logits[i : i + 1], y[i : i + 1], allowed[i] if masked else everything) for i in range(len(y))
    ]
    return flat(sum(losses) / len(losses), net)


def flat(loss, net):
    return torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(net.parameters()))])


def of_task(here, s, task):
    """The slots of a task's memory, without repetitions."""
    return task * here.learner.memory.size + torch.arange(here.learner.memory.counts[s, task])


def a_gem_references(here, net, s, t, task):
    """One: of distinct items of completed tasks."""
    learner = here.learner
    drawn = learner.filled[s, learner.draws[t - learner.start, s]]
    held = learner.memory.counts[s, :task].sum()
    assert len(drawn) >= min(REFERENCE, held)
    drawn = drawn[:held]  # then they repeat
    assert len(drawn.unique()) == len(drawn)
    assert (drawn // learner.memory.size < task).all()
    assert learner.memory.valid[s].flatten()[drawn].all()
    return [on_memory(here, net, s, drawn, together=task if here.spec["learner"]["name"] == "a_gem_all_classes" else 0)]


def s_gem_references(here, net, s, t, task):
    """One: the whole memory of a completed task."""
    chosen = int(here.learner.chosen[t, s])
    assert chosen < task
    return [on_memory(here, net, s, of_task(here, s, chosen))]


def gem_references(here, net, s, t, task):
    """The whole memory of each completed task."""
    return [on_memory(here, net, s, of_task(here, s, k)) for k in range(task)]


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
@pytest.mark.parametrize("seeds", [[3], [0, 1]], ids=len)
def test_a_run_equals_a_plain_module_s(seeds, net, order, train, learner):
    """Step by step against an ordinary net, each seed by itself."""
    constraints = {"s_gem": s_gem_references, "gem": gem_references}
    references = constraints.get(learner["name"], a_gem_references)
    here = way(learner, net, order, seeds, train)
    ordinary = [here.ordinary(s=s) for s in range(len(seeds))]
    optimizers = [here.optimizer(each) for each in ordinary]
    violations = np.zeros((len(seeds), 3), dtype=int)
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
            start = 0
            for p in plain.parameters():
                p.grad = g[start : start + p.numel()].view_as(p)
                start += p.numel()
            optimizer.step()
    for s, plain in enumerate(ordinary):
        assert_same_net(here.learner.net, plain, s)
        assert here.learner.report(s)["violations"] == violations[s].tolist()
    assert violations.sum() > 0


@ALL
def test_without_a_second_task_it_is_plain_descent(learner):
    spec = two_tasks(learner, MLP, oracle={"name": "none"}, order=RANDOM)
    data = images()
    held = Way(spec, data, [made(spec, data)]).walk()
    single = Way(spec | {"learner": {"name": "single"}}, data, [made(spec, data)]).walk()
    assert all(torch.equal(a, b) for a, b in zip(held.parameters, single.parameters))
    assert held.report(0) == {"violations": [0], "memory": [12]}
    assert held.learning_rate == LR
