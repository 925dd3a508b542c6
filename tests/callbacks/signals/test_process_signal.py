import pytest
import torch
from torch.testing import assert_close

from callbacks.signals.process_signal import ProcessSignal, process_signal
from rlcredit.credit.contract import StackError
from tests.callbacks.rollouts import THREE_AND_TWO
from tests.conftest import make_rollout


def test_the_process_signal_is_a_scaled_log_ratio_and_nothing_under_padding():
    ratio = torch.tensor([[0.0, 0.5, -1.0], [0.9, -2.0, 8.0]])
    assert_close(process_signal(ratio, THREE_AND_TWO, 0.1), torch.tensor([[0.0, 0.05, -0.1], [0.09, -0.2, 0.0]]))


def test_without_the_reference_the_repair_is_named():
    rollout = make_rollout()
    rollout.ref_log_ratio = None
    with pytest.raises(StackError, match=r"ProcessSignal reads \['ref_log_ratio'\], which this rollout lacks"):
        ProcessSignal().assign_checked(rollout)


def test_a_negative_beta_is_refused():
    with pytest.raises(ValueError, match="beta >= 0"):
        ProcessSignal(beta=-1.0)
