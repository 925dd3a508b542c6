import time

import torch
from hypothesis import given
from hypothesis import strategies as st

from rlcredit.formulas.prefixes import companion_sums, shared_token_mask

GROUP = st.lists(st.tuples(st.lists(st.integers(0, 1), max_size=5), st.booleans()), min_size=1, max_size=5)


def tensors(ids):
    """Token ids padded with a token's id, and their mask."""
    width = max(1, *map(len, ids)) if len(ids) > 1 else max(1, len(ids[0]))
    mask = torch.tensor([[place < len(row) for place in range(width)] for row in ids])
    return torch.tensor([[*row, *[0] * (width - len(row))] for row in ids]), mask


@given(GROUP)
def test_companions_are_the_judged_others_that_begin_alike(group):
    rows, judged = [row for row, _ in group], [verdict for _, verdict in group]
    rewards = torch.arange(len(rows)) / 7
    counts, sums = companion_sums(rewards, torch.tensor(judged), *tensors(rows), group_size=len(rows))
    for i, row in enumerate(rows):
        for t in range(counts.shape[1]):
            others = [j for j, other in enumerate(rows) if j != i and judged[j] and len(other) >= t]
            near = [j for j in others if t <= len(row) and rows[j][:t] == row[:t]]
            assert counts[i, t] == len(near)
            assert abs(sums[i, t] - sum(j / 7 for j in near)) < 1e-6


def test_groups_do_not_see_each_other():
    ids, mask = tensors([[1, 2], [1, 2], [1, 2], [1, 3]])
    counts, _ = companion_sums(torch.zeros(4), torch.ones(4, dtype=torch.bool), ids, mask, group_size=2)
    assert counts.tolist() == [[1, 1, 1], [1, 1, 1], [1, 1, 0], [1, 1, 0]]


def test_a_completion_of_a_group_of_one_has_no_companion():
    ids, mask = tensors([[1, 2], [1, 2]])
    assert not shared_token_mask(ids, mask, torch.tensor([True, True]), group_size=1).any()


def test_groups_of_56_with_a_thousand_tokens_take_less_than_two_seconds():
    ids = torch.randint(0, 50_000, (448, 1000), generator=torch.Generator().manual_seed(0))
    ids[:, :100] = 1
    mask = torch.ones_like(ids, dtype=torch.bool)
    began = time.perf_counter()
    counts, _ = companion_sums(torch.ones(448), mask[:, 0], ids, mask, group_size=56)
    assert time.perf_counter() - began < 2
    assert (counts[:, :101] == 55).all()
    assert not counts[:, 102:].any()
