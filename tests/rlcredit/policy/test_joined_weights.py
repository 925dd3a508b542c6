import torch
from torch import nn

from rlcredit.policy.joined_weights import join_weights


def test_layers_read_the_joined_matrix_and_keep_their_values():
    layers = [nn.Linear(5, rows, bias=False).requires_grad_(False) for rows in (4, 2, 2)]
    expected = torch.cat([layer.weight for layer in layers])
    joined = join_weights(layers)
    torch.testing.assert_close(joined, expected, rtol=0, atol=0)
    joined[4] = 7.0  # the first row of the second layer
    assert layers[1].weight[0].tolist() == [7.0] * 5


def test_a_second_call_copies_nothing_unless_rows_are_missing():
    layers = [nn.Linear(3, 2, bias=False).requires_grad_(False) for _ in range(2)]
    joined = join_weights(layers)
    assert join_weights(layers).data_ptr() == joined.data_ptr()
    wider = join_weights(layers, spare_rows=2)
    assert wider.shape == (6, 3)
    assert wider.data_ptr() != joined.data_ptr()
    assert join_weights(layers, spare_rows=2).data_ptr() == join_weights(layers).data_ptr() == wider.data_ptr()
    assert not wider[4:].any()


def test_a_matrix_that_an_evaluation_made_is_filled_outside_of_it():
    layers = [nn.Linear(3, 2, bias=False).requires_grad_(False)]
    with torch.inference_mode():
        joined = join_weights(layers, spare_rows=1)
        joined[2:] = 1.0
    joined[2:] = 2.0
    assert join_weights(layers, spare_rows=1)[2].tolist() == [2.0] * 3
