import pytest
import torch

from rlcredit.base.exit_status import NotFinite
from rlcredit.credit.alternatives import Credit, WeightedTokens
from rlcredit.credit.contract import StackError
from rlcredit.credit.operator import CreditOperator
from tests.conftest import make_rollout


def weighted(rows, weights=None, places=None, logprobs=None):
    """Alternatives at the first place of some rows; their numbers are their tokens."""
    count = len(rows)
    return WeightedTokens(
        torch.tensor(rows),
        torch.zeros(count, dtype=torch.long) if places is None else torch.tensor(places),
        torch.arange(count),
        torch.full((count,), -1.0) if logprobs is None else torch.tensor(logprobs),
        torch.ones(count) if weights is None else torch.tensor(weights),
    )


def test_rows_that_are_selected_are_renumbered():
    numbers, others = weighted([0, 2, 2, 3, 5]).select_rows(torch.tensor([5, 2, 1]), rows=6)
    assert numbers.tolist() == [1, 2, 4]
    assert others.rows.tolist() == [1, 1, 0]
    assert others.tokens.tolist() == [1, 2, 4]


def test_minibatches_have_the_alternatives_of_their_own_prompts():
    rollout = make_rollout()
    rollout.alternatives = weighted([0, 3, 4, 6, 6])
    first, second = (rollout.select_minibatch(number, 2).alternatives for number in (0, 1))
    assert (first.rows.tolist(), first.tokens.tolist()) == ([0, 3], [0, 1])
    assert (second.rows.tolist(), second.tokens.tolist()) == ([0, 2, 2], [2, 3, 4])
    assert rollout.alternatives.rows.tolist() == [0, 3, 4, 6, 6]
    part = rollout.select_rows(torch.tensor([4, 5, 6, 7]))
    assert part.credit.alternatives.rows.tolist() == [0, 2, 2]


def test_credit_is_selected_cut_and_kept_by_rows():
    credit = Credit(torch.arange(12.0).view(6, 2), weighted([0, 2, 2, 3, 5]))
    chosen = credit.select_rows(torch.tensor([3, 2]))
    assert chosen.advantages.tolist() == [[6.0, 7.0], [4.0, 5.0]]
    assert (chosen.alternatives.rows.tolist(), chosen.alternatives.tokens.tolist()) == ([1, 1, 0], [1, 2, 3])
    first = credit.first_rows(3)
    assert first.advantages.tolist() == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    assert first.alternatives.tokens.tolist() == [0, 1, 2]
    kept = credit.keep_rows(torch.tensor([False, True, True, False, False, True]))
    assert kept.advantages.tolist() == [[0.0, 0.0], [2.0, 3.0], [4.0, 5.0], [0.0, 0.0], [0.0, 0.0], [10.0, 11.0]]
    assert (kept.alternatives.rows.tolist(), kept.alternatives.tokens.tolist()) == ([2, 2, 5], [1, 2, 4])
    assert Credit(credit.advantages).select_rows(torch.tensor([1])).alternatives is None


def test_a_row_whose_only_credit_is_an_alternative_has_credit():
    mask = torch.tensor([[True, True], [True, False], [True, True], [True, True]])
    advantages = torch.tensor([[0.0, 1.0], [0.0, 9.0], [0.0, 0.0], [0.0, 0.0]])  # the nine is padding
    assert Credit(advantages).credited_rows(mask).tolist() == [True, False, False, False]
    others = weighted([2, 3], weights=[-0.5, 0.0])
    assert Credit(advantages, others).credited_rows(mask).tolist() == [True, False, True, False]


class Proposal(CreditOperator, reads="advantages", writes="alternatives"):
    """Leave the alternatives that it is given."""

    def __init__(self, alternatives):
        super().__init__()
        self.proposed = alternatives

    def assign(self, rollout):
        rollout.alternatives = self.proposed
        return {}


@pytest.mark.parametrize(
    ("alternatives", "message"),
    [
        (weighted([0, 8]), "at places where no token was sampled"),
        (weighted([-1, 0]), "at places where no token was sampled"),
        (weighted([0, 0], places=[0, 6]), "at places where no token was sampled"),
        (weighted([0, 0], places=[-1, 0]), "at places where no token was sampled"),
        (weighted([2, 2], places=[0, 5]), "at places where no token was sampled"),  # padding
        (weighted([0, 1])._replace(weights=torch.ones(3)), "different lengths: rows 2, .* weights 3"),
        (weighted([0, 1], weights=[1.0, torch.nan]), "weights that are not finite"),
        (weighted([0, 1], logprobs=[-torch.inf, -1.0]), "log-probabilities that are not finite"),
    ],
)
def test_alternatives_that_cannot_be_are_refused(alternatives, message):
    rollout = make_rollout()
    assert rollout.mask[2].sum() < 6
    with pytest.raises((StackError, NotFinite), match=message):
        Proposal(alternatives).assign_checked(rollout)


def test_alternatives_that_can_be_are_accepted():
    rollout = make_rollout()
    for alternatives in (weighted([0, 7]), weighted([]), None):
        assert Proposal(alternatives).assign_checked(rollout) == {}
