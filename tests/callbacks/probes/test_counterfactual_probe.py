"""Updates of other stacks on the same batch."""

import pytest

from callbacks.critics.oracle_teacher import OracleTeacher
from callbacks.critics.ridge_critic import RidgeCritic
from callbacks.dense.expected_gradient import ExpectedGradient
from callbacks.dense.gae import GAE
from callbacks.episode.grpo import GRPO
from callbacks.episode.maxrl import MaxRL
from callbacks.probes.counterfactual_probe import CounterfactualProbe
from callbacks.schedules.anneal_out import AnnealOut
from callbacks.tokens.delight import Delight
from callbacks.tokens.ktae import KTAE
from rlcredit.credit.contract import StackError
from rlcredit.credit.stack_checks import refuse_binary_operators
from rlcredit.formulas.gates import AdaptiveEta
from rlcredit.losses import ClippedSurrogate


def maxrl_against_grpo(fit, **how):
    probe = CounterfactualProbe({"maxrl": [MaxRL()]}, every_n_steps=1)
    fit(steps=1, stack=[GRPO(), probe], completions=16, **how)
    return probe.last


@pytest.mark.slow
def test_inside_one_group_maxrl_is_grpo_and_over_groups_of_mixed_success_it_is_not(fit, tmp_path):
    alone, mixed = maxrl_against_grpo(fit, prompts=1), maxrl_against_grpo(fit, prompts=8)
    assert alone["this_stack_vs_maxrl_raw_cosine"] == pytest.approx(1, abs=1e-6)
    assert mixed["this_stack_vs_maxrl_raw_cosine"] < 0.98
    assert mixed["this_stack_vs_maxrl_preconditioned_cosine"] < 0.98
    assert (tmp_path / "probes" / "CounterfactualProbe_step_000000.png").stat().st_size > 5000


def test_credit_of_alternatives_is_part_of_the_update_of_every_stack(fit):
    def learned():
        return [GRPO(), RidgeCritic(warmup=1), ExpectedGradient()]

    probe = CounterfactualProbe({"same": learned(), "flat": [GRPO()]}, every_n_steps=1)
    fit(steps=4, stack=[*learned(), probe], minibatches=2, updates_per_rollout=2, loss=ClippedSurrogate())
    assert probe.last["this_stack_vs_same_raw_cosine"] == pytest.approx(1, abs=1e-6)
    assert probe.last["this_stack_vs_flat_raw_cosine"] < 0.95


def test_other_stacks_keep_their_history_and_a_checkpoint_keeps_it_too():
    def make():
        return CounterfactualProbe({"adaptive": [GRPO(), Delight(eta=AdaptiveEta())]})

    first, second = make(), make()
    first.stacks["adaptive"][1].ema = 0.3
    second.load_state_dict(first.state_dict())
    assert second.stacks["adaptive"][1].ema == 0.3
    assert first.state_key == second.state_key != CounterfactualProbe({}).state_key


def test_another_stack_that_means_nothing_is_refused():
    with pytest.raises(ValueError, match="stack bad: GRPO overwrites the `advantages` of MaxRL"):
        CounterfactualProbe({"bad": [MaxRL(), GRPO()]})
    with pytest.raises(ValueError, match="Choose another name"):
        CounterfactualProbe({"this_stack": []})


@pytest.mark.parametrize("stack", [[MaxRL()], [GRPO(), AnnealOut(operator=KTAE())]], ids=["itself", "annealed out"])
def test_another_stack_of_binary_rewards_is_refused_beside_real_ones(stack):
    probe = CounterfactualProbe({"flat": [GRPO()], "other": stack})
    said = f"{type(stack[-1]).__name__} of CounterfactualProbe takes rewards of one for right"
    with pytest.raises(StackError, match=said):
        refuse_binary_operators(
            [GRPO(), probe], "data.init_args.rewards gives any numbers", "leave out data.init_args.rewards"
        )
    refuse_binary_operators([GRPO(), CounterfactualProbe({"flat": [GRPO()]})], "they are", "change them")


@pytest.mark.parametrize("first", [True, False], ids=["above", "below"])
def test_what_other_stacks_have_decoded_is_not_used_by_this_one(fit, first):
    def learned():
        return [GRPO(), OracleTeacher(completions=2, samples=2), RidgeCritic(), GAE()]

    probe = CounterfactualProbe({"same": learned()}, every_n_steps=1)
    alone = fit(steps=2, stack=learned()).history
    beside = fit(steps=2, stack=[probe, *learned()] if first else [*learned(), probe]).history
    decoded = [step["tokens/decoded"] for step in alone]
    assert [step["tokens/decoded"] for step in beside] == decoded
    told = [step["credit/OracleTeacher/decoded_tokens"] for step in alone]
    assert [step["credit/OracleTeacher/decoded_tokens"] for step in beside] == told
    assert beside[-1]["tokens/decoded_by_probes"] == sum(told) > 0
