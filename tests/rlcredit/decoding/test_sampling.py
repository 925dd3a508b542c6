import pytest

from rlcredit.decoding.sampling import Sampling


def test_top_p_is_refused_because_the_trainer_does_not_truncate():
    with pytest.raises(ValueError, match="top_p: expected 1"):
        Sampling(top_p=0.95)
