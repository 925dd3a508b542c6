import pytest
import torch

from callbacks.tokens.random_sign import RandomSign
from tests.conftest import make_rollout

WRONG = [0.0] * 400


def make_batch(verdicts, step=0):
    rollout = make_rollout(verdicts, group_size=4)
    rollout.step = step
    rollout.advantages = torch.arange(1.0, 7.0).expand(rollout.mask.shape)
    return rollout


def test_half_of_the_signs_are_turned_and_no_size_changes():
    rollout = make_batch(WRONG)
    metrics = RandomSign().assign(rollout)
    assert torch.equal(rollout.advantages.abs(), torch.arange(1.0, 7.0).expand(rollout.mask.shape))
    turned = (rollout.advantages < 0)[rollout.mask].float().mean()
    assert turned == metrics["turned_fraction"]
    assert 0.45 < turned < 0.55
    assert (rollout.advantages > 0)[~rollout.mask].all()


def test_a_share_of_one_turns_all_groups_without_a_right_answer():
    rollout = make_batch([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    RandomSign(share=1.0).assign(rollout)
    assert (rollout.advantages[:4] > 0).all()
    assert ((rollout.advantages[4:] < 0) == rollout.mask[4:]).all()


def test_draws_depend_on_step_and_seed_alone():
    signs = []
    for operator, step in ((RandomSign(), 0), (RandomSign(), 0), (RandomSign(), 1), (RandomSign(seed=1), 0)):
        rollout = make_batch(WRONG, step)
        operator.assign(rollout)
        signs.append(rollout.advantages.sign())
    assert torch.equal(signs[0], signs[1])
    assert not torch.equal(signs[0], signs[2])
    assert not torch.equal(signs[0], signs[3])


@pytest.mark.parametrize("arguments", [{"share": 1.5}, {"groups": "wrong"}])
def test_other_arguments_are_refused(arguments):
    with pytest.raises(ValueError, match=r"RandomSign expects"):
        RandomSign(**arguments)
