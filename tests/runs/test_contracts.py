"""What a method from outside is told and may answer: undeclared facts and answers without form are refused."""

from pathlib import Path

import pytest
import torch
from tiny import CHUNKS, SPLIT, cell, setting

from clpapers.runs.contracts import Broken, Undeclared, checked_scores, checked_step
from clpapers.streams import orders

HERE = Path(__file__)


def scores():
    """A function to blame."""


def line(function):
    return f"{HERE}:{function.__code__.co_firstlineno}:"


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
    with pytest.raises(Broken) as refusal:
        use(Undeclared("setting.tasks", "tasks"))
    assert str(refusal.value).startswith(f"{HERE}:{use.__code__.co_firstlineno}: setting.tasks")
    assert '"uses"' in str(refusal.value)


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
    with pytest.raises(Broken) as refusal:
        checked_scores(wrong, (2, 5, 4), scores)
    assert str(refusal.value).startswith(line(scores))
    assert "[2, 5, 4]" in str(refusal.value)


def test_a_nan_beside_finite_scores_is_refused_and_a_diverged_net_is_not():
    good = torch.tensor([[[0.0, -torch.inf], [-torch.inf, -torch.inf], [torch.nan, torch.nan]]])
    assert checked_scores(good, (1, 3, 2), scores) is good
    with pytest.raises(Broken, match="-inf"):
        checked_scores(torch.tensor([[[0.0, torch.nan]]]), (1, 1, 2), scores)


def test_a_steps_answer_is_a_copy():
    loss, logits = torch.ones(2), torch.ones(2, 5, 4, requires_grad=True)
    kept = list(checked_step((loss, logits), 2, (2, 5, 4), scores))
    loss.zero_()
    assert kept[0].tolist() == [1, 1]
    assert not kept[1].requires_grad
    assert list(checked_step((None, None), 2, (2, 5, 4), scores)) == [None, None]


@pytest.mark.parametrize("wrong", [torch.ones(2), (torch.ones(()), None), (None, torch.ones(2, 5)), (0.5, None), None])
def test_a_step_that_answers_otherwise_is_refused(wrong):
    with pytest.raises(Broken) as refusal:
        list(checked_step(wrong, 2, (2, 5, 4), scores))
    assert str(refusal.value).startswith(line(scores))


def test_a_method_has_a_setting_of_its_own_with_what_it_declares(data):
    """Whatever it does to that one, the loop's stays."""
    spec = cell("single", {}, "mlp", order=SPLIT, oracle=CHUNKS)
    whole = setting(spec, data, {0: orders.make(SPLIT, data.train_y, 0)})
    before = whole.labels.clone(), whole.items.clone(), dict(whole.budget), whole.ends.copy()
    own = whole.apart(["tasks"])
    assert torch.equal(own.tasks, whole.tasks)
    own.labels -= 1
    own.items.zero_()
    own.ends[:] = 0
    own.budget["memory"] = 10**6
    after = whole.labels, whole.items, whole.budget, whole.ends
    assert all((a == b) if isinstance(a, dict) else (a == b).all() for a, b in zip(before, after))
    less = whole.apart([])
    for name in ("tasks", "task_count", "task_classes"):
        assert isinstance(getattr(less, name), Undeclared)
