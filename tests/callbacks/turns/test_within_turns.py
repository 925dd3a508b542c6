import copy

import pytest
import torch
from torch.testing import assert_close

from callbacks import StackError, check_stack
from callbacks.dense.expected_gradient import ExpectedGradient
from callbacks.episode.grpo import GRPO
from callbacks.tokens.delight import Delight
from callbacks.tokens.entropy_mask import EntropyMask
from callbacks.tokens.gtpo import GTPO
from callbacks.tokens.hicra import HICRA
from callbacks.tokens.probability_weight import ProbabilityWeight
from callbacks.tokens.random_mask import RandomMask
from callbacks.tokens.repo import REPO
from callbacks.turns.turn_returns import TurnReturns
from callbacks.turns.within_turns import WithinTurns
from rlcredit.cli.explain import describe_stack
from rlcredit.formulas.turns import sum_turns
from tests.callbacks.turns.episodes import is_equal_on_tokens, make_episodes, make_one_turn


def make_example():
    """Turns of credit 1 and -2 whose first tokens are three times as surprising as their second ones."""
    rollout = make_episodes([[1.0, 0.0], [0.0]])
    rollout.advantages = torch.tensor([[1.0, 1.0, 0.0, -2.0, -2.0, 0.0], [0.5, 0.5, 0.0, 0.0, 0.0, 0.0]])
    rollout.signal = torch.tensor([[3.0, 1.0, 9.0, 0.3, 0.1, 9.0], [1.0, 1.0, 9.0, 9.0, 9.0, 9.0]])
    return rollout


def test_a_surprising_turn_has_no_more_than_before_and_a_surprising_token_has():
    rollout = make_example()
    WithinTurns(GTPO(beta=1.0)).assign_checked(rollout)
    expected = torch.tensor([[1.5, 0.5, 0.0, -3.0, -1.0, 0.0], [0.5, 0.5, 0.0, 0.0, 0.0, 0.0]])
    assert_close(rollout.advantages, expected)


@pytest.mark.parametrize(
    "operator",
    [GTPO(beta=3.0), Delight(), EntropyMask(rho=0.3), RandomMask(rho=0.5), ProbabilityWeight(), REPO()],
    ids=lambda operator: type(operator).__name__,
)
def test_the_credit_of_a_turn_adds_up_to_what_it_was(operator):
    ours, before = (make_episodes([[1.0, 0.0, 2.0], [0.0, 1.0], [4.0], [0.5, 0.0]]) for _ in range(2))
    for rollout in (ours, before):
        TurnReturns().assign(rollout)
    WithinTurns(operator).assign_checked(ours)
    assert not torch.equal(ours.advantages, before.advantages)
    ours_sums, sums = (sum_turns(rollout.advantages, rollout.turn, 3) for rollout in (ours, before))
    assert_close(ours_sums, sums)


def test_a_turn_that_a_mask_erases_stays_as_it_was():
    rollout = make_example()
    rollout.signal = torch.tensor([[3.0, 1.0, 0.0, 0.2, 0.1, 0.0], [0.1, 0.0, 0.0, 0.0, 0.0, 0.0]])
    WithinTurns(EntropyMask(rho=0.2)).assign_checked(rollout)  # one token of six
    assert rollout.advantages.tolist() == [[2.0, 0.0, 0.0, -2.0, -2.0, 0.0], [0.5, 0.5, 0.0, 0.0, 0.0, 0.0]]


def test_on_one_turn_it_is_an_operator_that_keeps_the_mean():
    ours, theirs = make_one_turn(), make_one_turn()
    for rollout, operator in ((ours, WithinTurns(GTPO(beta=0.5))), (theirs, GTPO(beta=0.5))):
        GRPO().assign(rollout)
        operator.assign(rollout)
    assert is_equal_on_tokens(ours, theirs)


def test_a_stack_is_checked_as_if_the_operator_stood_there():
    check_stack([TurnReturns(), WithinTurns(GTPO())])
    assert WithinTurns(GTPO()).reads == GTPO.reads | {"turn"}
    with pytest.raises(StackError, match="WithinTurns reads `plan_mask`, which no callback above it writes"):
        check_stack([TurnReturns(), WithinTurns(HICRA())])
    text = "\n".join(describe_stack([TurnReturns(), WithinTurns(GTPO(beta=0.5))], 4))
    assert "WithinTurns(operator=GTPO(beta=0.5))" in text


@pytest.mark.parametrize("operator", [GRPO(), ExpectedGradient()])
def test_an_operator_that_moves_no_credit_is_refused(operator):
    with pytest.raises(ValueError, match=f"edits advantages alone, got {type(operator).__name__}. List it alone"):
        WithinTurns(operator)


def test_the_state_inside_is_checkpointed():
    one, two = WithinTurns(REPO(zeta=2.0)), WithinTurns(REPO(zeta=2.0))
    for _ in range(3):
        one.assign(make_example())
    assert one.state_key == two.state_key != WithinTurns(REPO(zeta=1.0)).state_key
    two.load_state_dict(copy.deepcopy(one.state_dict()))
    assert two.operator.strength == one.operator.strength != REPO(zeta=2.0).strength


def test_the_operator_draws_with_the_seed_of_the_run():
    credit = []
    for seed in (0, 1):
        rollout, operator = make_example(), WithinTurns(RandomMask(rho=0.5))
        operator.run_seed = seed
        operator.assign(rollout)
        credit.append(rollout.advantages)
    assert not torch.equal(*credit)
