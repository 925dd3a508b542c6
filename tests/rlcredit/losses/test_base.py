import pytest
import torch
from torch.testing import assert_close

from rlcredit.losses import ImportanceSampling, PolicyLoss, token_weights
from tests.rlcredit.losses.batches import FOUR_AND_ONE


@pytest.mark.parametrize(
    ("denominator", "first", "second"),
    [("token", 1 / 5, 1 / 5), ("sequence", 1 / 8, 1 / 2), ("constant", 1 / 20, 1 / 20)],
)
def test_denominators_by_hand(denominator, first, second):
    # Five tokens; two completions of four and one; a budget of ten tokens for each of two completions.
    weights = token_weights(FOUR_AND_ONE, denominator, constant=10)
    assert_close(weights[:, 0], torch.tensor([first, second]))
    assert (weights[~FOUR_AND_ONE] == 0).all()


def test_a_loss_names_what_it_needs_and_nothing_else():
    with pytest.raises(TypeError, match=r"needs \['plan_mask'\]; a loss can have"):
        type("Wrong", (PolicyLoss,), {}, needs="plan_mask")


def test_a_budget_of_nothing_is_refused():
    for arguments in (("constant", 0), ("constant", None), ("token", 5)):
        with pytest.raises(ValueError, match="expects a constant >= 1 with denominator `constant`"):
            ImportanceSampling(*arguments)
