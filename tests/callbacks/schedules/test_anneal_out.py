import copy
import math

import pytest
import torch

from callbacks import StackError, check_stack
from callbacks.critics.ridge_critic import RidgeCritic
from callbacks.dense.expected_gradient import ExpectedGradient
from callbacks.episode.grpo import GRPO
from callbacks.episode.maxrl import MaxRL
from callbacks.episode.soft_overlong import SoftOverlong
from callbacks.planning.strategic_grams import StrategicGrams
from callbacks.probes.signal_stats import SignalStats
from callbacks.schedules.anneal_out import AnnealOut
from callbacks.schedules.constant_lambda import ConstantLambda
from callbacks.schedules.correctness_gate import CorrectnessGate
from callbacks.signals.sepa import SEPA
from callbacks.tokens.advantage_clip import AdvantageClip
from callbacks.tokens.gtpo import GTPO
from callbacks.tokens.hicra import HICRA
from callbacks.tokens.random_mask import RandomMask
from callbacks.tokens.repo import REPO
from callbacks.tokens.rsi_mask import RSIMask
from rlcredit.cli.explain import describe_stack
from rlcredit.credit.stack import CreditStack
from rlcredit.credit.stack_checks import bound_advantages, explain_idle_operators
from rlcredit.preflight.stack_rehearsal import rehearse_stack
from tests.callbacks.rollouts import numbers
from tests.conftest import copy_rollout_fields, make_rollout


def at(step, operator):
    """A rollout of some step, under GRPO and an operator, and what the operator reports."""
    rollout = make_rollout()
    GRPO().assign(rollout)
    rollout.step = step
    return rollout, numbers(operator.assign_checked(rollout))


def annealed(operator=None):
    return AnnealOut(operator or RSIMask(low=0.5, high=1.5), delay=4, steps=10)


@pytest.mark.parametrize("step", [0, 4])
def test_up_to_the_delay_it_is_the_operator_bit_for_bit(step):
    ours, metrics = at(step, annealed())
    theirs, alone = at(step, RSIMask(low=0.5, high=1.5))
    assert torch.equal(ours.advantages, theirs.advantages)
    assert metrics == {**alone, "strength": 1.0}


def test_in_between_it_mixes_in_a_straight_line():
    before, _ = at(0, RSIMask(low=0.0, high=math.inf))
    after, _ = at(0, RSIMask(low=0.5, high=1.5))
    erased = before.mask & (after.advantages != before.advantages)
    kept = before.mask & ~erased
    assert erased.any()
    assert kept.any()
    for step, strength in ((5, 0.9), (9, 0.5), (13, 0.1)):
        mixed, metrics = at(step, annealed())
        torch.testing.assert_close(mixed.advantages[erased], (1 - strength) * before.advantages[erased])
        assert torch.equal(mixed.advantages[kept], before.advantages[kept])
        assert metrics["strength"] == pytest.approx(strength)


@pytest.mark.parametrize("step", [14, 15, 1000])
def test_after_its_time_nothing_runs_and_nothing_changes(step):
    operator = annealed(REPO())
    rollout = make_rollout()
    rollout.step = step
    before, kept = copy_rollout_fields(rollout), operator.state_dict()
    assert operator.assign_checked(rollout) == {"strength": 0.0}
    after = copy_rollout_fields(rollout)
    for name, value in before.items():
        same = torch.equal(value, after[name]) if isinstance(value, torch.Tensor) else True
        assert same, name
    assert rollout.unwritten == make_rollout().unwritten
    assert operator.state_dict() == kept


def test_lambda_falls_from_one_as_the_schedule_of_the_paper_rises():
    stack = [GRPO(), StrategicGrams(), AnnealOut(ConstantLambda(), delay=5, steps=10), SEPA(), GTPO()]
    credit = CreditStack(stack)
    for step, expected in ((0, 1.0), (5, 1.0), (6, 0.9), (10, 0.5), (15, 0.0), (99, 0.0)):
        rollout = make_rollout()
        rollout.step = step
        assert credit.assign(rollout).sepa_lambda == pytest.approx(expected)


def test_its_contract_is_the_operators():
    rsi, repo, gate = annealed(), annealed(REPO()), annealed(CorrectnessGate())
    assert rsi.reads == RSIMask.reads | {"step"}
    assert rsi.writes == {"advantages"}
    assert (rsi.state, repo.state, gate.state) == ((), ("operator_state",), ("operator_state",))
    assert gate.writes == {"sepa_lambda"}
    assert annealed(ConstantLambda()).reads == {"step"}
    assert annealed(SEPA()).reads == SEPA.reads | {"step"}
    assert not rsi.costly
    stack = [MaxRL(), annealed(AdvantageClip(2.0)), annealed(HICRA(alpha=0.5))]
    assert bound_advantages(stack, 16) == [1, 15, 15, 22.5]
    assert "changes nothing" in explain_idle_operators([GRPO(), annealed(AdvantageClip(2.0))], 16)[0]


def test_an_estimator_fades_into_the_one_above_it():
    check_stack([GRPO(), AnnealOut(MaxRL(), delay=0, steps=4)])
    rollout = CreditStack([GRPO(), AnnealOut(MaxRL(), delay=0, steps=6)]).assign(make_rollout())  # of step 3
    flat, sharp = (CreditStack([each]).assign(make_rollout()).advantages for each in (GRPO(), MaxRL()))
    torch.testing.assert_close(rollout.advantages, (flat + sharp) / 2)


def test_a_stack_is_checked_as_if_the_operator_stood_there():
    with pytest.raises(StackError, match="AnnealOut reads `plan_mask`, which no callback above it writes"):
        check_stack([GRPO(), annealed(HICRA())])
    with pytest.raises(StackError, match="AnnealOut writes `signal`, which nothing below it reads"):
        check_stack([StrategicGrams(), ConstantLambda(), GRPO(), annealed(SEPA())])


@pytest.mark.parametrize(
    ("operator", "message"),
    [
        (SignalStats(), "cannot mix what SignalStats writes, nothing. List it by itself"),
        (ExpectedGradient(), "cannot mix what ExpectedGradient writes, advantages, alternatives. List it by itself"),
        (RidgeCritic(), "cannot mix what RidgeCritic writes, critic, critic_weight, values. List it by itself"),
        (StrategicGrams(), "cannot mix what StrategicGrams writes, plan_mask. List it by itself, and anneal out an"),
    ],
)
def test_what_cannot_be_mixed_is_refused(operator, message):
    with pytest.raises(ValueError, match=message):
        AnnealOut(operator)


def test_times_that_are_none_are_refused():
    with pytest.raises(ValueError, match="delay >= 0 and steps >= 1, got -1 and 50"):
        AnnealOut(RSIMask(), delay=-1)
    with pytest.raises(ValueError, match="got 0 and 0"):
        AnnealOut(RSIMask(), steps=0)


def test_the_state_inside_is_checkpointed_under_the_operators_arguments():
    one, two = annealed(REPO(zeta=2.0)), annealed(REPO(zeta=2.0))
    for step in range(3):
        at(step, one)
    saved = copy.deepcopy(one.state_dict())
    assert saved == {"operator_state": {"strength": one.operator.strength, "target": one.operator.target}}
    assert one.state_key == two.state_key != annealed(REPO(zeta=1.0)).state_key
    two.load_state_dict(saved)
    assert torch.equal(at(3, one)[0].advantages, at(3, two)[0].advantages)
    with pytest.raises(StackError, match="Two AnnealOut with the same arguments would share one state"):
        check_stack([GRPO(), annealed(REPO()), annealed(REPO())])


def test_the_operator_draws_with_the_seed_of_the_run():
    ours, theirs = annealed(RandomMask(rho=0.5)), RandomMask(rho=0.5)
    ours.run_seed = theirs.run_seed = 17
    assert torch.equal(at(0, ours)[0].advantages, at(0, theirs)[0].advantages)


def test_explain_shows_the_call_what_it_reads_and_the_paper():
    line = list(describe_stack([GRPO(), AnnealOut(RSIMask(), delay=0, steps=50)], 8))[3]
    assert "AnnealOut(operator=RSIMask(low=0.1, high=3.0, eps=1e-06), delay=0, steps=50)" in line
    assert line.endswith("advantages, entropy, old_logprobs, step -> advantages, at most 0.875   arXiv:2606.31575")


def test_a_rehearsal_tries_what_is_inside():
    assert rehearse_stack([GRPO(), annealed()], 4) == []
    assert rehearse_stack([annealed(SoftOverlong()), GRPO()], 4) == ["AnnealOut"]  # it asks the trainer for the limit


def test_a_run_logs_the_strength_and_numbers_the_second(fit):
    stack = [AnnealOut(SoftOverlong(), delay=0, steps=2), GRPO(), AnnealOut(RSIMask(), delay=1, steps=2)]
    history = fit(steps=4, stack=stack).history
    assert [step["credit/AnnealOut/strength"] for step in history] == [1, 0.5, 0, 0]
    assert [step["credit/AnnealOut_2/strength"] for step in history] == [1, 1, 0.5, 0]
    assert "credit/AnnealOut/penalized_fraction" in history[0]
    assert "credit/AnnealOut_2/high_fraction" in history[0]
