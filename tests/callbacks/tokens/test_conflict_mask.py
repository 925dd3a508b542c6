import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from callbacks.tokens.conflict_mask import ConflictMask, conflict_weights
from tests.callbacks.rollouts import numbers, rollout_of_ids

ROW = st.lists(st.integers(0, 2), min_size=1, max_size=5)


def weighted(ids, credit, **arguments):
    rollout = rollout_of_ids([float(each > 0) for each in credit], ids)
    rollout.advantages = torch.tensor(credit)[:, None].expand(rollout.mask.shape).where(rollout.mask, 0)
    metrics = ConflictMask(**arguments).assign(rollout)
    return [row[kept].tolist() for row, kept in zip(rollout.advantages, rollout.mask, strict=True)], numbers(metrics)


def test_the_worked_example():
    left, metrics = weighted([[1, 2, 3, 5], [1, 2, 4, 5]], [0.5, -0.5])
    assert left == [[1, 1, 0.5, 1], [0, 0, -0.5, 0]]
    assert metrics == {"weighted_fraction": 6 / 8, "weight_mean": 1.0}


def test_the_trailing_run_is_aligned_at_the_end():
    left, _ = weighted([[1, 2, 9], [3, 4, 5, 2, 9]], [0.5, -0.5])
    assert left == [[0.5, 1, 1], [-0.5, -0.5, -0.5, 0, 0]]


def test_a_run_ends_at_the_first_token_that_nobody_opposes():
    left, _ = weighted([[1, 2, 3, 4, 5], [1, 6, 3, 7, 8]], [0.5, -0.5])
    assert left == [[1, 0.5, 0.5, 0.5, 0.5], [0, -0.5, -0.5, -0.5, -0.5]]


def test_in_both_runs_the_weight_counts_twice_as_in_the_authors_code():
    left, _ = weighted([[1, 2], [1, 2]], [0.5, -0.5])
    assert left == [[2, 2], [0, 0]]


def test_completions_of_one_sign_are_in_no_conflict():
    left, metrics = weighted([[1, 2], [1, 2], [1, 2]], [0.5, 0.5, 0.0])
    assert left == [[0.5, 0.5], [0.5, 0.5], [0, 0]]
    assert metrics["weighted_fraction"] == 0


@given(st.lists(ROW, min_size=2, max_size=4), st.data())
def test_neutral_weights_are_the_identity_and_no_sign_flips(ids, data):
    credit = data.draw(st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=len(ids), max_size=len(ids)))
    before = [[each] * len(row) for each, row in zip(credit, ids, strict=True)]
    assert weighted(ids, credit, positive=1.0, negative=1.0)[0] == before
    after, _ = weighted(ids, credit)
    assert all(x * y >= 0 for old, new in zip(before, after, strict=True) for x, y in zip(old, new, strict=True))


def test_padding_with_the_id_of_a_token_extends_no_run():
    ids = torch.tensor([[1, 2, 7], [1, 2, 7]])
    mask = torch.tensor([[True, True, False], [True, True, True]])
    credit = torch.tensor([[1.0] * 3, [-1.0] * 3])
    weights = conflict_weights(credit, ids, mask, group_size=2, positive=2.0, negative=0.0)
    assert weights.where(mask, 9).tolist() == [[2, 2, 9], [0, 0, 1]]


def test_negative_weights_are_refused():
    with pytest.raises(ValueError, match=r"ConflictMask expects weights >= 0, got 2.0 and -1"):
        ConflictMask(negative=-1)
