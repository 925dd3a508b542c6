import torch
from torch.testing import assert_close

from rlcredit.formulas.prefix_statistics import extended_statistics, prefix_statistics

SURPRISALS = torch.tensor([[0.5, 2.0, 0.25, 1.5], [1.0, 1.1, 0.0, 0.0]])
WHOLE = torch.ones(2, 4, dtype=torch.bool)
EXPECTED = torch.tensor(
    [
        [[0, 0, 0, 0, 0], [0.5, 0.5, 0.5, 0, 0.02], [2.0, 2.5, 2.0, 1, 0.04], [0.25, 2.75, 2.0, 1, 0.06]],
        [[0, 0, 0, 0, 0], [1.0, 1.0, 1.0, 0, 0.02], [1.1, 2.1, 1.1, 1, 0.04], [0.0, 2.1, 1.1, 1, 0.06]],
    ]
)
"""Last, summed and largest surprisal, surprises of more than one nat, and fiftieths of the length."""


def test_prefix_statistics_of_two_completions():
    assert_close(prefix_statistics(SURPRISALS, WHOLE), EXPECTED)


def test_a_prefix_knows_nothing_of_what_comes_after_it():
    shorter = prefix_statistics(SURPRISALS[:, :3], WHOLE[:, :3])
    assert_close(shorter, prefix_statistics(SURPRISALS, WHOLE)[:, :3], rtol=0, atol=0)


def test_another_next_token_changes_what_it_changes():
    extended = extended_statistics(EXPECTED[:, 3], torch.tensor([1.5, 3.0]))
    assert_close(extended, torch.tensor([[1.5, 4.25, 2.0, 2, 0.08], [3.0, 5.1, 3.0, 2, 0.08]]))
