"""Rows in any order, groups of any size and tokens anywhere, to a rollout and back."""

import torch

from rlcredit.bridge.batch_layout import lay_out_batch

MASK = torch.tensor([[0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 1, 1]], dtype=torch.bool)


def test_groups_come_in_the_order_of_their_first_rows_and_short_ones_are_filled_up():
    layout = lay_out_batch(MASK, [7, "x", 7, 7])
    assert layout.slots.tolist() == [0, 3, 1, 2]
    assert (layout.rows, layout.group_size) == (6, 3)
    assert layout.place_rows(torch.tensor([1.0, 2.0, 3.0, 4.0]), fill=9).tolist() == [1, 3, 4, 2, 9, 9]


def test_tokens_move_to_the_left_with_what_lies_between_and_back():
    values = torch.arange(16.0).view(4, 4) + 1
    layout = lay_out_batch(MASK, [7, "x", 7, 7])
    placed = layout.place_tokens(values)
    assert placed.tolist() == [[2, 0, 4], [0, 0, 0], [15, 16, 0], [5, 6, 0], [0, 0, 0], [0, 0, 0]]
    assert layout.place_ids(values)[0].tolist() == [2, 3, 4]
    assert layout.placed_mask.sum(-1).tolist() == [2, 0, 2, 2, 0, 0]
    assert torch.equal(layout.restore_tokens(placed), values.where(MASK, 0))
