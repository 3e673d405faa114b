"""What a method from outside is told and may answer: undeclared facts and answers without form are refused."""

import pytest
import torch
from tiny import CHUNKS, SPLIT, cell, setting

from clpapers.runs.contracts import Broken, Undeclared, checked_scores, checked_step


def scores():
    """A function to blame."""


def refused(function, call):
    """The words of the line that refuses a call and blames a function's first line."""
    with pytest.raises(Broken) as refusal:
        call()
    where = f"{__file__}:{function.__code__.co_firstlineno}:"
    assert str(refusal.value).startswith(where)
    return str(refusal.value)


@pytest.mark.parametrize(
    "use",
    [
        lambda fact: fact[0],
        lambda fact: fact.max(),
        lambda fact: fact + 1,
        lambda fact: fact == 1,
        lambda fact: list(fact),
        lambda fact: bool(fact),
        lambda fact: range(fact),
        lambda fact: torch.arange(3)[fact],
        lambda fact: torch.ones(3) + fact,
        lambda fact: torch.full((2,), fact),
    ],
)
def test_whatever_is_done_with_an_undeclared_fact_is_refused_where_it_is_done(use):
    told = refused(use, lambda: use(Undeclared("setting.tasks", "tasks")))
    assert "setting.tasks" in told
    assert '"uses"' in told


@pytest.mark.parametrize(
    "wrong",
    [
        torch.zeros(2, 5, 5),  # a column too many
        torch.zeros(2, 5),  # labels
        torch.zeros(2, 5, 4, dtype=torch.int64),
        torch.zeros(1, 5, 4),
        None,
    ],
)
def test_scores_of_another_form_are_refused_with_the_form_they_have(wrong):
    assert "[2, 5, 4]" in refused(scores, lambda: checked_scores(wrong, (2, 5, 4), scores))


def test_a_nan_beside_finite_scores_is_refused_and_a_diverged_net_is_not():
    good = torch.tensor([[[0.0, -torch.inf], [-torch.inf, -torch.inf], [torch.nan, torch.nan]]])
    assert checked_scores(good, (1, 3, 2), scores) is good
    assert "-inf" in refused(scores, lambda: checked_scores(torch.tensor([[[0.0, torch.nan]]]), (1, 1, 2), scores))


def test_a_steps_answer_is_a_copy():
    loss, logits = torch.ones(2), torch.ones(2, 5, 4, requires_grad=True)
    kept = list(checked_step((loss, logits), 2, (2, 5, 4), scores))
    loss.zero_()
    assert kept[0].tolist() == [1, 1]
    assert not kept[1].requires_grad
    assert list(checked_step((None, None), 2, (2, 5, 4), scores)) == [None, None]


@pytest.mark.parametrize("wrong", [torch.ones(2), (torch.ones(()), None), (None, torch.ones(2, 5)), (0.5, None), None])
def test_a_step_that_answers_otherwise_is_refused(wrong):
    refused(scores, lambda: list(checked_step(wrong, 2, (2, 5, 4), scores)))


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
