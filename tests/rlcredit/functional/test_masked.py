import torch
from torch.testing import assert_close

from rlcredit.functional.masked import masked_mean, masked_quantiles


def test_what_stands_under_padding_never_matters():
    values = torch.tensor([[1.0, 3.0, torch.nan], [5.0, torch.inf, 7.0]])
    mask = torch.tensor([[True, True, False], [True, False, False]])
    assert_close(masked_mean(values, mask), torch.tensor(3.0))
    assert_close(masked_mean(values, mask, dim=-1), torch.tensor([2.0, 5.0]))
    assert masked_quantiles(values, mask, [0.0, 0.5, 1.0]) == [1.0, 3.0, 5.0]


def test_a_row_without_any_token_has_mean_zero():
    assert_close(masked_mean(torch.ones(1, 3), torch.zeros(1, 3, dtype=torch.bool), dim=-1), torch.zeros(1))
