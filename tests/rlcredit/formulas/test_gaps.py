"""Formulas that walk along a row step over its gaps; numbers by hand."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from rlcredit.formulas.gaps import close_gaps, number_places, open_gaps
from rlcredit.formulas.masked import last_token_mask
from rlcredit.formulas.prefixes import companion_sums, prefix_values, shared_token_mask
from rlcredit.formulas.value_estimates import following_values, generalized_advantages, process_returns
from rlcredit.losses.fipo import future_influence

GAPS = torch.tensor([[True, False, False, True, True, False], [True, True, False, False, False, False]])
SHARED = torch.tensor([[5, 90, 91, 6, 7, 92], [5, 6, 93, 94, 95, 96]])
"""Two rows that say 5, 6, 7 and 5, 6; the first one is answered after its 5, and both are right."""


@given(st.lists(st.booleans(), max_size=8))
def test_closing_keeps_the_order_and_opening_reverses_it(flags):
    mask, columns = torch.tensor([flags], dtype=torch.bool), torch.arange(len(flags))[None]
    closed = close_gaps(columns, number_places(mask))
    assert closed[0].tolist() == [*mask[0].nonzero().flatten().tolist(), *(~mask[0]).nonzero().flatten().tolist()]
    assert torch.equal(open_gaps(closed, number_places(mask)), columns)


def test_values_that_share_memory_are_closed():
    rewards = torch.tensor([[1.0], [2.0]]).expand(GAPS.shape)
    assert torch.equal(close_gaps(rewards, number_places(GAPS)), rewards)


def test_estimates_of_a_row_with_gaps_are_those_of_its_tokens():
    values = torch.tensor([[0.5, 9.0, -9.0, 0.75, 0.25, 7.0], [0.5, 0.0, 8.0, 8.0, 8.0, 8.0]])
    rewards = torch.tensor([1.0, 0.0])
    assert last_token_mask(GAPS).nonzero().tolist() == [[0, 4], [1, 1]]
    assert following_values(rewards, values, GAPS)[GAPS].tolist() == [0.75, 0.25, 1.0, 0.0, 0.0]
    half = generalized_advantages(rewards, values, GAPS, lam=0.5)
    assert half.tolist() == [[0.1875, 0, 0, -0.125, 0.75, 0], [-0.5, 0, 0, 0, 0, 0]]
    influence = future_influence(torch.ones(2, 6), GAPS, half_life=1)
    assert influence[GAPS].tolist() == [1.75, 1.5, 1.0, 1.5, 1.0]


def test_returns_of_processes_do_not_count_what_the_environment_says():
    rewards, judged = torch.tensor([[1.0, 50.0, 50.0, 3.0, 2.0, 50.0], [1.0, 2.0, 50.0, 50.0, 50.0, 50.0]]), GAPS[:, 0]
    returns = process_returns(rewards, GAPS, judged, group_size=2)  # means 2 and 1.5
    assert returns[GAPS].tolist() == [1.5, 2.0, 0.5, -1.0, 0.0]


def test_prefixes_are_those_of_sampled_tokens():
    judged, rewards = torch.tensor([True, True]), torch.tensor([1.0, 0.0])
    counts, sums = companion_sums(rewards, judged, SHARED, GAPS, group_size=2)
    assert counts[:, :-1][GAPS].tolist() == [1, 1, 1, 1, 1]
    values = prefix_values(rewards, counts, sums, GAPS)
    assert values[:, :-1][GAPS].tolist() == [0.5] * 5
    assert following_values(rewards, values[:, :-1], GAPS)[GAPS].tolist() == [0.5, 0.5, 1.0, 0.5, 0.0]
    assert torch.equal(shared_token_mask(SHARED, GAPS, judged, group_size=2), GAPS)


def test_a_row_without_gaps_has_its_columns_for_places():
    places = number_places(torch.arange(5) < torch.tensor([[3], [0], [5]]))
    assert_close(places, torch.arange(5).expand(3, 5))
