import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from callbacks.signals.bucket_normalization import BucketNormalization, bucket_normalized
from tests.callbacks.rollouts import THREE_AND_TWO
from tests.conftest import make_rollout


def test_buckets_compare_a_group_at_one_stage():
    process = torch.tensor([[1.0, 4.0, 0.0], [3.0, 8.0, 99.0]])
    progress = torch.tensor([[0.3, 0.5, 1.0], [0.5, 1.0, 1.0]])
    # Two buckets. First half: 1, 4, 3 with mean 8/3 and deviation sqrt(14)/3. Second half: 0 and 8.
    deviation = math.sqrt(14) / 3
    first = [(value - 8 / 3) / deviation for value in (1.0, 4.0, 3.0)]
    expected = torch.tensor([[first[0], first[1], -1.0], [first[2], 1.0, 0.0]])
    assert_close(bucket_normalized(process, progress, THREE_AND_TWO, 2, 2), expected)


def test_a_bucket_of_one_token_or_of_equal_signals_is_silent_and_tenths_lie_where_they_should():
    progress = torch.arange(1, 11)[None] / 10
    mask = torch.ones(1, 10, dtype=torch.bool)
    assert not bucket_normalized(torch.rand(1, 10), progress, mask, 1, 10).any()
    assert not bucket_normalized(torch.full((1, 10), 0.3), progress, mask, 1, 1).any()


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000), st.integers(1, 4))
def test_every_bucket_of_every_group_has_mean_zero_and_deviation_one_or_zero(seed, buckets):
    rollout = make_rollout(seed=seed, width=12)
    process = torch.randn(8, 12, generator=torch.Generator().manual_seed(seed))
    result = bucket_normalized(process, rollout.progress, rollout.mask, 4, buckets).double()
    bucket = (buckets * rollout.progress - 1e-6).ceil().clamp(1, buckets)
    for group in range(2):
        for number in range(1, buckets + 1):
            rows = slice(4 * group, 4 * group + 4)
            values = result[rows][rollout.mask[rows] & (bucket[rows] == number)]
            if len(values) > 1:
                assert values.mean().item() == pytest.approx(0, abs=1e-5)
                assert values.std(correction=0).item() == pytest.approx(1, abs=1e-4)


def test_no_buckets_are_refused():
    with pytest.raises(ValueError, match="buckets >= 1"):
        BucketNormalization(buckets=0)
