"""Changes that torch does not count."""

import re

import pytest
import torch

from rlcredit.credit.contract import StackError
from rlcredit.credit.operator import CreditOperator
from tests.conftest import make_rollout

FACT = "Facts stay: work on a copy."
LEDGER = "Rebind the field to a new tensor."


class Changing(CreditOperator, reads="advantages tokens", writes="advantages"):
    """Do to a rollout what it is told."""

    def __init__(self, change):
        super().__init__()
        self.change = change

    def assign(self, rollout):
        self.change(rollout)
        return {}


def rebind_and_clear(rollout):
    former, rollout.advantages = rollout.advantages, rollout.advantages * 2
    former.data.zero_()


def swap_data(rollout):
    rollout.mask.data = torch.zeros_like(rollout.mask)


CHANGES = {
    "an array of it": (lambda rollout: rollout.mask.numpy().fill(False), f"['mask'] in place. {FACT}"),
    "an array of a view": (lambda rollout: rollout.mask[0].numpy().fill(False), f"['mask'] in place. {FACT}"),
    "data": (lambda rollout: rollout.mask.data[1].zero_(), f"['mask'] in place. {FACT}"),
    "other data": (swap_data, f"['mask'] in place. {FACT}"),
    "DLPack": (lambda rollout: torch.from_dlpack(rollout.mask).zero_(), f"['mask'] in place. {FACT}"),
    "storage": (lambda rollout: rollout.mask.untyped_storage().fill_(0), f"['mask'] in place. {FACT}"),
    "set_": (lambda rollout: rollout.mask.set_(torch.ones(3) > 2), f"['mask'] in place. {FACT}"),
    "resize_": (lambda rollout: rollout.mask.resize_(2, 2), f"['mask'] in place. {FACT}"),
    "past the rollout": (
        lambda rollout: vars(rollout)["entropy"].numpy().fill(0),
        f"['entropy'] in place. {FACT}",
    ),
    "texts": (lambda rollout: rollout.tokens[0].clear(), f"['tokens'] in place. {FACT}"),
    "credit above": (lambda rollout: rollout.trail[0][1].data.zero_(), f"['trail'] in place. {FACT}"),
    "what it writes": (lambda rollout: rollout.advantages.numpy().fill(3), f"['advantages'] in place. {LEDGER}"),
    "what it has rebound": (rebind_and_clear, f"['advantages'] in place. {LEDGER}"),
}


@pytest.fixture
def credited():
    rollout = make_rollout()
    rollout.advantages = rollout.advantages.clone()
    rollout.trail = (("GRPO", rollout.advantages.clone()),)
    return rollout


@pytest.mark.parametrize("way", CHANGES)
def test_a_field_that_is_changed_in_whatever_way_is_named(credited, way):
    change, said = CHANGES[way]
    with pytest.raises(StackError) as refusal:
        Changing(change).assign_checked(credited)
    assert re.sub(r" \(test_field_changes.py, line \d+\)", "", str(refusal.value)) == f"Changing changes {said}"


def test_a_tensor_of_its_own_may_be_changed_in_any_way(credited):
    def change(rollout):
        rollout.advantages = rollout.advantages.clone()
        rollout.advantages.numpy()[:] = 2.0

    Changing(change).assign_checked(credited)
    assert (credited.advantages == 2).all()


def test_a_mask_that_a_later_rollout_loses_is_named_too(credited):
    with pytest.raises(StackError, match=r"changes \['mask'\] in place"):
        Changing(lambda rollout: rollout.mask.numpy().fill(False)).assign_checked(credited, watch=False)


def test_not_a_number_is_no_change(credited):
    credited.entropy = credited.entropy * torch.nan
    Changing(lambda rollout: None).assign_checked(credited)


def test_a_run_ends_at_the_operator_that_empties_its_mask(fit):
    with pytest.raises(StackError, match=r"^Changing changes \['mask'\] in place. Facts stay"):
        fit(steps=1, stack=[Changing(lambda rollout: rollout.mask.numpy().fill(False))])
