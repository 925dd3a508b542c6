import pytest
import torch

from rlcredit.base.exit_status import NotFinite
from rlcredit.credit.alternatives import Credit
from rlcredit.credit.continuations import Continuations, concatenate_continuations
from rlcredit.credit.contract import StackError
from rlcredit.credit.operator import CreditOperator
from tests.conftest import make_rollout


def continued(rows, places=None, lengths=None, credit=1.0, logprob=-1.0):
    """Continuations of up to two tokens, 10 n + 1 and 10 n + 2 for the n-th."""
    count = len(rows)
    lengths = torch.tensor([2] * count if lengths is None else lengths)
    mask = torch.arange(2) < lengths[:, None]
    ids = torch.arange(count)[:, None] * 10 + torch.tensor([1, 2])
    places = torch.zeros(count, dtype=torch.long) if places is None else torch.tensor(places)
    values = torch.full((2, count, 2), 1.0) * torch.tensor([logprob, credit]).view(2, 1, 1)
    return Continuations(torch.tensor(rows, dtype=torch.long), places, ids, mask, *values)


def test_minibatches_have_the_continuations_of_their_own_prompts():
    rollout = make_rollout()
    rollout.continuations = continued([0, 3, 4, 6, 6])
    first, second = (rollout.select_minibatch(number, 2).continuations for number in (0, 1))
    assert (first.rows.tolist(), first.completion_ids[:, 0].tolist()) == ([0, 3], [1, 11])
    assert (second.rows.tolist(), second.completion_ids[:, 0].tolist()) == ([0, 2, 2], [21, 31, 41])
    assert rollout.continuations.rows.tolist() == [0, 3, 4, 6, 6]
    part = rollout.select_rows(torch.tensor([4, 5, 6, 7]))
    assert part.credit.continuations.rows.tolist() == [0, 2, 2]


def test_credit_is_selected_cut_and_kept_by_rows():
    credit = Credit(torch.arange(12.0).view(6, 2), continuations=continued([0, 2, 2, 3, 5]))
    chosen = credit.select_rows(torch.tensor([3, 2])).continuations
    assert (chosen.rows.tolist(), chosen.completion_ids[:, 1].tolist()) == ([1, 1, 0], [12, 22, 32])
    assert credit.first_rows(3).continuations.rows.tolist() == [0, 2, 2]
    kept = credit.keep_rows(torch.tensor([False, True, True, False, False, True])).continuations
    assert (kept.rows.tolist(), kept.completion_ids[:, 0].tolist()) == ([2, 2, 5], [11, 21, 41])
    assert Credit(credit.advantages).select_rows(torch.tensor([1])).continuations is None


def test_whole_answers_are_prefixes_and_their_continuations():
    completions = torch.tensor([[5, 6, 7], [8, 9, 99]])
    whole = torch.ones_like(completions, dtype=torch.bool)
    answers, mask = continued([0, 1, 0], places=[2, 0, 1], lengths=[2, 1, 1]).join_prefixes(completions, whole)
    assert answers.tolist() == [[5, 6, 1, 2], [11, 0, 0, 0], [5, 21, 0, 0]]
    assert mask.sum(-1).tolist() == [4, 1, 2]
    answers, mask = continued([]).join_prefixes(completions, whole)
    assert answers.shape == mask.shape == (0, 3)


def test_whole_answers_hold_what_an_environment_has_said_to_either():
    completions, mask = torch.tensor([[5, 90, 6, 7]]), torch.tensor([[True, False, True, True]])
    ids, own_mask = torch.tensor([[1, 91, 2, 0]]), torch.tensor([[True, False, True, False]])
    numbers, values = torch.tensor([[0], [3]]), torch.zeros(2, 1, 4)
    answers, sampled = Continuations(*numbers, ids, own_mask, *values).join_prefixes(completions, mask)
    assert answers.tolist() == [[5, 90, 6, 1, 91, 2]]
    assert sampled.tolist() == [[True, False, True, True, False, True]]


def test_only_credit_of_tokens_on_judged_completions_has_a_gradient():
    credited = continued([0, 1, 2, 3], lengths=[2, 2, 2, 1])
    credited = credited._replace(credit=torch.tensor([[0.0, 0.0], [0.0, 0.5], [1.0, 1.0], [0.0, 9.0]]))
    assert credited.find_credited(torch.tensor([True, True, False, True])).tolist() == [1]  # the nine is padding


def test_lists_are_joined_at_the_width_of_the_longest():
    short = Continuations(*(values[:, :1] if values.ndim == 2 else values for values in continued([0, 1])))
    both = concatenate_continuations([short, continued([3])])
    assert both.rows.tolist() == [0, 1, 3]
    assert both.completion_ids.tolist() == [[1, 0], [11, 0], [1, 2]]
    assert both.mask.tolist() == [[True, False], [True, False], [True, True]]


class Proposal(CreditOperator, reads="advantages", writes="continuations"):
    """Leave the continuations that it is given."""

    def __init__(self, continuations):
        super().__init__()
        self.proposed = continuations

    def assign(self, rollout):
        rollout.continuations = self.proposed
        return {}


@pytest.mark.parametrize(
    ("continuations", "message"),
    [
        (continued([0, 8]), "continuations at places where no token was sampled"),
        (continued([-1, 0]), "continuations at places where no token was sampled"),
        (continued([0, 0], places=[0, 6]), "continuations at places where no token was sampled"),
        (continued([2, 2], places=[0, 5]), "continuations at places where no token was sampled"),  # padding
        (continued([0, 1])._replace(credit=torch.ones(3, 2)), "of different lengths: rows 2, .* credit 3"),
        (continued([0, 1])._replace(credit=torch.ones(2, 3)), r"of shape \(2, 3\) and \(2, 2\)"),
        (continued([0, 1], lengths=[2, 0]), "that do not begin with a sampled token"),
        (continued([0])._replace(mask=torch.tensor([[False, True]])), "that do not begin with a sampled token"),
        (continued([0, 1], credit=torch.nan), "crediting continuations gives credit values that are not finite"),
        (continued([0, 1], logprob=-torch.inf), "log-probabilities that are not finite"),
    ],
)
def test_continuations_that_cannot_be_are_refused(continuations, message):
    with pytest.raises((StackError, NotFinite), match=message):
        Proposal(continuations).assign_checked(make_rollout())


def test_continuations_that_can_be_are_accepted():
    unknown_padding = continued([1], lengths=[1])._replace(credit=torch.tensor([[0.5, torch.nan]]))
    for continuations in (continued([0, 7], places=[5, 0]), unknown_padding, continued([]), None):
        assert Proposal(continuations).assign_checked(make_rollout()) == {}
