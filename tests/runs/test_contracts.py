"""A method from outside has a setting of its own, and its answers are copied; `cases.yaml` has the wrong ones."""

import torch
from tiny import CHUNKS, SPLIT, cell, setting

from clpapers.runs.contracts import Undeclared, checked_scores, checked_step


def scores():
    """A function to blame."""


def test_a_diverged_net_has_scores():
    good = torch.tensor([[[0.0, -torch.inf], [-torch.inf, -torch.inf], [torch.nan, torch.nan]]])
    assert checked_scores(good, (1, 3, 2), scores) is good


def test_a_steps_answer_is_a_copy():
    loss, logits = torch.ones(2), torch.ones(2, 5, 4, requires_grad=True)
    kept = list(checked_step((loss, logits), 2, (2, 5, 4), scores))
    loss.zero_()
    assert kept[0].tolist() == [1, 1]
    assert not kept[1].requires_grad
    assert list(checked_step((None, None), 2, (2, 5, 4), scores)) == [None, None]


def test_a_method_has_a_setting_of_its_own_with_what_it_declares(data, chunked):
    """Whatever it does to that one, the loop's stays."""
    spec = cell("single", {}, "mlp", order=SPLIT, oracle=CHUNKS)
    whole, fresh = (setting(spec, data, {0: chunked[0]}) for _ in range(2))
    own = whole.apart(["tasks"])
    assert torch.equal(own.tasks, whole.tasks)
    own.labels -= 1
    own.items.zero_()
    own.ends[:] = 0
    own.budget["memory"] = 10**6
    assert whole.budget == fresh.budget
    assert all((getattr(whole, name) == getattr(fresh, name)).all() for name in ("labels", "items", "ends"))
    less = whole.apart([])
    assert all(isinstance(getattr(less, name), Undeclared) for name in ("tasks", "task_count", "task_classes"))
