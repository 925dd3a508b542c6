import torch
from torch.testing import assert_close

from rlcredit.formulas.masked import (
    masked_correlation,
    masked_mean,
    masked_median,
    masked_quantiles,
    masked_topk,
    masked_var,
    variance_within_between,
)


def test_what_stands_under_padding_never_matters():
    values = torch.tensor([[1.0, 3.0, torch.nan], [5.0, torch.inf, 7.0]])
    mask = torch.tensor([[True, True, False], [True, False, False]])
    assert_close(masked_mean(values, mask), torch.tensor(3.0))
    assert_close(masked_mean(values, mask, dim=-1), torch.tensor([2.0, 5.0]))
    assert masked_quantiles(values, mask, [0.0, 0.5, 1.0]) == [1.0, 3.0, 5.0]


def test_a_row_without_any_token_has_mean_zero():
    assert_close(masked_mean(torch.ones(1, 3), torch.zeros(1, 3, dtype=torch.bool), dim=-1), torch.zeros(1))


def test_median_and_variance_are_numpys_on_what_is_true():
    import numpy as np

    generator = torch.Generator().manual_seed(0)
    values = torch.randn(20, 9, generator=generator, dtype=torch.float64)
    mask = torch.rand(20, 9, generator=generator) < 0.6
    mask[0] = False
    dirty = values.where(mask, torch.nan)
    for row in range(1, 20):
        kept = values[row][mask[row]].numpy()
        assert_close(masked_median(dirty, mask)[row].item(), float(np.median(kept)))
        assert_close(masked_var(dirty, mask, dim=-1)[row].item(), float(np.var(kept)))
    assert masked_median(dirty, mask)[0] == masked_var(dirty, mask, dim=-1)[0] == 0
    assert_close(masked_var(dirty, mask).item(), float(np.var(values[mask].numpy())))


def test_correlation_is_numpys_and_zero_where_nothing_varies():
    values, others = torch.randn(4, 5, dtype=torch.float64), torch.randn(4, 5, dtype=torch.float64)
    mask = torch.rand(4, 5) < 0.8
    expected = torch.corrcoef(torch.stack([values[mask], others[mask]]))[0, 1]
    assert_close(masked_correlation(values, others, mask), expected)
    assert masked_correlation(values, torch.ones_like(values), mask) == 0


def test_the_parts_of_the_variance_add_up():
    values, mask = torch.randn(6, 7, dtype=torch.float64), torch.rand(6, 7) < 0.7
    within, between = variance_within_between(values, mask)
    assert_close(within + between, masked_var(values, mask))


def test_topk_marks_exactly_its_share_of_every_row():
    values = torch.randint(0, 3, (50, 40)).float()
    mask = torch.rand(50, 40) < 0.7
    for share in (0.01, 0.2, 0.5, 0.99, 1.0):
        kept = masked_topk(values, mask, share)
        assert kept.sum(-1).tolist() == [max(1, int(n * share + 1e-9)) for n in mask.sum(-1).tolist()]
        assert not (kept & ~mask).any()
        lowest = values.where(kept, 9).amin(-1, keepdim=True)
        assert (values.where(mask & ~kept, -1) <= lowest).all()
        assert torch.equal(masked_topk(values, mask, share, keep_ties=True), mask & (values >= lowest))


def test_a_row_without_any_token_has_no_largest():
    assert not masked_topk(torch.ones(1, 3), torch.zeros(1, 3, dtype=torch.bool), 0.5).any()
    assert not masked_topk(torch.ones(1, 3), torch.zeros(1, 3, dtype=torch.bool), 0.5, keep_ties=True).any()
