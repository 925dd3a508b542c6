"""Where an earlier implementation of the SEPA paper decided silently, each decision of ours, one test a topic."""

import copy
import math

import pytest
import torch
from lightning.pytorch import Callback
from torch.testing import assert_close

from callbacks.base import CreditOperator, StackError, check_stack
from callbacks.episode.batch_normalization import batch_normalized_advantages
from callbacks.episode.grpo import GRPO
from callbacks.episode.maxrl import MaxRL
from callbacks.planning.strategic_grams import StrategicGrams
from callbacks.probes.signal_stats import SignalStats
from callbacks.schedules.constant_lambda import ConstantLambda
from callbacks.schedules.correctness_gate import CorrectnessGate
from callbacks.schedules.linear_lambda import linear_ramp
from callbacks.schedules.variance_lambda import VarianceLambda
from callbacks.signals.predictive_variance import PredictiveVariance
from callbacks.signals.sepa import SEPA, sepa_pool
from callbacks.signals.sepa_amplification import sepa_amplify
from callbacks.tokens.advantage_clip import AdvantageClip
from callbacks.tokens.delight import Delight
from callbacks.tokens.entropy_mask import EntropyMask, entropy_mask
from callbacks.tokens.gtpo import GTPO, gtpo_weights
from callbacks.tokens.hard_delight import HardDelight
from callbacks.tokens.hicra import HICRA
from rlcredit.engines.in_process import InProcessEngine
from rlcredit.engines.sampling import Sampling
from rlcredit.functional.gates import AdaptiveEta
from rlcredit.losses import ImportanceSampling
from rlcredit.metrics import sampling_metrics
from rlcredit.tasks.order import PromptOrder
from rlcredit.verification.verifiers import Verdict
from tests.callbacks.worked_example import MASK, PLAN, SIGNAL
from tests.conftest import make_rollout

ALL_WRONG_ALL_RIGHT = [0.0] * 4 + [1.0] * 4


def test_numeric_type_is_float32_and_agrees_with_a_float64_reference():
    rollout = make_rollout()
    weights = gtpo_weights(sepa_pool(rollout.signal, rollout.plan_mask, rollout.mask, 0.5), rollout.mask, 0.1)
    assert weights.dtype == torch.float32
    for row in range(8):
        signal = rollout.signal[row][rollout.mask[row]].tolist()
        mean = math.fsum(signal) / len(signal)
        reference = [max(0.0, 1 + 0.1 * ((0.5 * mean + 0.5 * s) / mean - 1)) for s in signal]
        assert weights[row][rollout.mask[row]].tolist() == pytest.approx(reference, abs=1e-6)


def test_scope_of_a_statistic_is_chosen_and_named():
    signal = torch.tensor([[0.9, 0.8], [0.2, 0.1]])
    kept = {s: entropy_mask(signal, torch.ones(2, 2) > 0, 0.5, s, 1).tolist() for s in ("group", "batch")}
    assert kept == {"group": [[True, False], [True, False]], "batch": [[True, True], [False, False]]}


def test_zero_success_group_is_zero_under_maxrl_and_counted():
    rollout = make_rollout(ALL_WRONG_ALL_RIGHT)
    MaxRL().assign(rollout)
    assert not rollout.advantages.any()
    metrics = sampling_metrics(rollout)
    assert metrics["train/zero_variance_all_wrong"] == metrics["train/zero_variance_all_right"] == 0.5


def test_all_equal_rewards_teach_nothing_and_stay_in_the_statistics():
    rollout = make_rollout(ALL_WRONG_ALL_RIGHT)
    GRPO().assign(rollout)
    assert not rollout.credited().any()
    assert SignalStats().assign(rollout)["execution_mean"] == rollout.signal[rollout.mask].mean()


def test_batch_normalization_counts_by_mask_and_not_by_value():
    advantages = torch.tensor([[0.0, 0.0, 0.5, 0.5], [0.0, -0.5, -0.5, -0.5]])
    published = batch_normalized_advantages(advantages, advantages != 0)
    values = torch.tensor([1.22474] * 2 + [-0.81650] * 3)  # mean -0.1, deviation 0.4899, of five tokens
    assert_close(published[advantages != 0], values, atol=5.1e-6, rtol=0)
    everything = batch_normalized_advantages(advantages, torch.ones_like(advantages) > 0)
    assert_close(everything.mean(), torch.tensor(0.0), atol=1e-6, rtol=0)
    assert everything[0, 0] != 0


class Nothing(CreditOperator, reads="advantages", writes="advantages"):
    """Take all credit away."""

    def assign(self, rollout):
        rollout.advantages = torch.zeros_like(rollout.advantages)
        return {}


def test_step_without_any_credit_is_a_step_with_a_row_of_metrics(fit):
    history = fit(steps=2, stack=[GRPO(), Nothing()]).history
    assert [step["train/loss"] for step in history] == [0.0, 0.0]
    assert all("train/solve_rate" in step and "train/entropy" in step for step in history)


def test_correct_threshold_is_a_parameter_of_the_task(task, monkeypatch):
    monkeypatch.setattr(task.jury, "answers", lambda requests: [0.7] * len(requests))
    examples = task.held_out_set[:1]
    assert task.judge(["the answer is 1."], examples) == [Verdict.WRONG]
    monkeypatch.setattr(task, "solved_at", 0.5)
    assert task.judge(["the answer is 1."], examples) == [Verdict.RIGHT]


def lambdas(gate, steps, step_of=lambda step: step):
    """Lambda of one behind a gate, on batches of which a quarter is right."""
    seen = []
    for step in range(steps):
        rollout = make_rollout()
        rollout.step, rollout.sepa_lambda = step_of(step), 1.0
        gate.assign(rollout)
        seen.append(rollout.sepa_lambda)
    return seen


def test_step_zero_has_lambda_zero_behind_a_gate_and_the_first_effect_comes_one_step_later():
    assert lambdas(CorrectnessGate(threshold=0.1), 3) == [0.0, 1.0, 1.0]


def test_before_the_gate_opens_token_weights_are_active():
    rollout = make_rollout()
    for operator in (GRPO(), StrategicGrams(), ConstantLambda(), CorrectnessGate(threshold=1.0), SEPA()):
        operator.assign(rollout)
    assert rollout.sepa_lambda == 0
    assert GTPO().assign(rollout)["weight_deviation"] > 0.01


def test_gate_in_practice_opens_after_the_first_batch_of_a_policy_that_solves_a_tenth():
    gate = CorrectnessGate()
    lambdas(gate, 1)
    assert gate.opened_at == 0


@pytest.mark.parametrize(
    ("delay", "steps", "step", "value"),
    [
        (5, 100, 99, 0.94),
        (10, 100, 15, 0.05),
        (50, 500, 99, 0.098),
        (2, 137, 136, 0.978),
        (2, 30, 29, 0.9),
        (5, 100, 5, 0),
    ],
)
def test_0_94_is_99_minus_5_over_100(delay, steps, step, value):
    assert linear_ramp(step, delay, steps) == pytest.approx(value, abs=5e-4)


def test_lambda_outside_its_range_is_refused_and_zero_leaves_the_signal_alone():
    with pytest.raises(ValueError, match=r"value in \[0, 1\]"):
        ConstantLambda(1.1)
    huge = 100 * SIGNAL  # no hidden clip of large surprisals either
    assert torch.equal(sepa_pool(huge, PLAN, MASK, 0.0), huge)


def test_empty_execution_set_changes_nothing():
    everything = torch.ones_like(PLAN)
    assert torch.equal(sepa_pool(SIGNAL, everything, MASK, 1.0), SIGNAL)
    assert torch.equal(sepa_amplify(SIGNAL, everything, MASK, 1.0, clamped=True), SIGNAL)


def test_empty_sequence_is_a_row_like_others_and_what_could_not_be_judged_is_counted(fit, task, monkeypatch):
    rollout = make_rollout()
    rollout.mask[3] = False
    for operator in (
        GRPO(),
        StrategicGrams(),
        ConstantLambda(),
        SEPA(),
        GTPO(),
        Delight(),
        EntropyMask(scope="sequence"),
    ):
        operator.checked(rollout)
    assert not rollout.advantages[3].any()
    monkeypatch.setattr(task, "judge", lambda texts, _: [Verdict.UNJUDGED] * len(texts))
    assert fit(steps=1, task=task).history[0]["train/unjudged"] == 1


def test_mean_uncertainty_of_zero_gives_equal_weights_and_is_counted():
    rollout = make_rollout()
    rollout.signal = rollout.signal.where(torch.arange(8)[:, None] > 0, 0)
    assert GTPO(beta=0.9).assign(rollout)["flat_completions"] == 1 / 8
    assert_close(rollout.advantages[0], rollout.rewards[0].expand(6))


def test_beta_of_zero_is_uniform():
    assert torch.equal(gtpo_weights(SIGNAL, MASK, 0.0), torch.ones_like(SIGNAL))


def test_normaliser_is_the_mean_over_all_tokens_of_the_completion_planning_included():
    weights = gtpo_weights(SIGNAL, MASK, 1.0)
    assert_close(weights, SIGNAL / SIGNAL.mean())
    assert SIGNAL.mean() != SIGNAL[~PLAN].mean()


def test_weight_mass_is_one_per_token_until_the_clamp_acts():
    transformed = [
        SIGNAL,
        *(f(SIGNAL, PLAN, MASK, 0.7) for f in (sepa_pool, sepa_amplify)),
        sepa_amplify(SIGNAL, PLAN, MASK, 0.7, True),
    ]
    assert [gtpo_weights(s, MASK, 0.1).mean().item() for s in transformed] == pytest.approx([1.0] * 4)
    assert gtpo_weights(SIGNAL, MASK, 2.0).mean().item() == pytest.approx(1.248, abs=5e-4)


def test_minimum_weight_is_far_from_zero_so_that_raw_amplification_masks_nothing():
    surprise = torch.tensor([[0.0] * 19 + [1.0]])
    nothing, mask = torch.zeros(1, 20, dtype=torch.bool), torch.ones(1, 20, dtype=torch.bool)
    assert gtpo_weights(surprise, mask, 0.1).min().item() == pytest.approx(0.9)
    # Raw amplification at 0.94 on execution tokens only: at least 1 - 0.1 * 1.94.
    assert gtpo_weights(sepa_amplify(surprise, nothing, mask, 0.94), mask, 0.1).min().item() == pytest.approx(0.806)
    rollout = make_rollout()
    rollout.sepa_lambda = 0.94
    rollout.signal = sepa_amplify(rollout.signal, rollout.plan_mask, rollout.mask, 0.94)
    metrics = GTPO().assign(rollout)
    assert metrics["zero_weight_fraction"] == 0
    assert metrics["weight_min"] > 0.8


def test_weight_spread_is_beta_times_the_coefficient_of_variation():
    rollout = make_rollout()
    spread = GTPO(beta=0.1).assign(rollout)["weight_deviation"].item()
    relative = [s / s.mean() for s in (rollout.signal[row][rollout.mask[row]] for row in range(8))]
    assert spread == pytest.approx(0.1 * torch.cat(relative).std(correction=0).item(), rel=1e-5)


def test_hicra_flips_no_sign_and_refuses_an_alpha_that_would():
    rollout = make_rollout()
    GRPO().assign(rollout)
    before, rollout.plan_mask = rollout.advantages, rollout.mask
    HICRA(alpha=1.0).assign(rollout)
    assert (rollout.advantages * before >= 0).all()
    with pytest.raises(ValueError, match=r"alpha in \[0, 1\], got 1.2"):
        HICRA(alpha=1.2)


def test_hard_delight_gives_exact_zeros_and_keeps_the_least_surprising_of_wrong_answers():
    rollout = make_rollout()
    rollout.signal, rollout.mask = SIGNAL.repeat(8, 1), MASK.repeat(8, 1)
    rollout.advantages = torch.tensor([0.5, -0.5] + [0.0] * 6)[:, None].expand(8, 10)
    HardDelight(keep=0.2).assign(rollout)
    assert rollout.advantages[0].nonzero().flatten().tolist() == [2, 6]
    assert rollout.advantages[1].nonzero().flatten().tolist() == [3, 8]
    assert not rollout.advantages[2:].any()


def test_loss_denominator_counts_tokens_whose_advantage_is_zero():
    mask, advantages = torch.ones(1, 10, dtype=torch.bool), torch.zeros(1, 10)
    advantages[0, :2] = 1.0
    zeros = torch.zeros(1, 10)
    assert ImportanceSampling()(zeros, zeros, advantages, mask).item() == pytest.approx(-0.2)
    rollout = make_rollout([1.0], group_size=1, width=10)
    rollout.mask, rollout.signal, rollout.advantages = mask, SIGNAL, torch.ones(1, 10)
    EntropyMask(rho=0.2, denominator="kept").assign(rollout)
    assert ImportanceSampling()(zeros, zeros, rollout.advantages, mask).item() == pytest.approx(-1.0)


def test_clip_fraction_is_of_the_tokens_that_have_credit():
    rollout = make_rollout([0.0] * 4, group_size=4)
    rollout.mask = torch.ones_like(rollout.mask)
    rollout.advantages = torch.tensor([0.0, 15.0, -1.0, 7.0])[:, None].expand(4, 6)
    metrics = AdvantageClip(limit=5.0).assign(rollout)
    assert rollout.advantages[:, 0].tolist() == [0, 5, -1, 5]
    assert metrics["clipped_fraction"].item() == pytest.approx(2 / 3)
    assert metrics["clipped_magnitude"] == 11
    assert metrics["triggered"] == 1


def test_prompt_tokens_have_no_place_in_the_ledger():
    rollout = make_rollout()
    shapes = {getattr(rollout, name).shape for name in ("mask", "signal", "plan_mask", "advantages", "old_logprobs")}
    assert shapes == {rollout.completion_ids.shape}


@pytest.fixture(scope="module")
def sampled(policy, task):
    """Completions of the embedded policy, at most 40 tokens long."""
    examples = task.held_out_set[:4]
    prompt_ids = policy.encode([example.question for example in examples])
    samples = InProcessEngine().sample(policy, prompt_ids, range(4), Sampling(8, max_tokens=40), seed=0, step=0)
    return prompt_ids.repeat_interleave(8, 0), samples


def test_end_of_sequence_is_a_sampled_token_with_credit_of_its_own(policy, sampled):
    _, samples = sampled
    last = samples.completion_ids.gather(1, samples.mask.sum(-1, keepdim=True) - 1).squeeze(-1)
    assert torch.equal(torch.isin(last, policy.stop_ids), ~samples.truncated)


def test_special_tokens_have_no_text_and_never_plan(policy, sampled):
    _, samples = sampled
    for row, pieces in enumerate(policy.pieces(samples.completion_ids, samples.mask)):
        if not samples.truncated[row]:
            assert pieces[-1] == ""
    rollout = make_rollout([0.0], group_size=1, width=3)
    rollout.tokens, rollout.mask = [["let me", " think", ""]], torch.ones(1, 3, dtype=torch.bool)
    StrategicGrams().assign(rollout)
    assert rollout.plan_mask.tolist() == [[True, True, False]]


def test_truncated_completions_are_trained_on_and_counted(fit):
    assert fit(steps=1, max_tokens=4).history[0]["train/truncated"] == 1


def test_recorded_logprob_is_that_of_the_policy_that_is_optimised(policy, sampled):
    prompt_ids, samples = sampled
    with torch.no_grad(), policy.sampling():
        scores = policy.logprobs(prompt_ids, samples.completion_ids, temperature=0.7)
    assert (scores.logprobs - samples.logprobs)[samples.mask].abs().max() < 1e-4


def test_entropy_and_surprisal_are_of_one_distribution(policy, sampled):
    prompt_ids, samples = sampled
    with torch.no_grad(), policy.sampling():
        scores = policy.logprobs(prompt_ids, samples.completion_ids, temperature=0.7)
    assert_close(samples.entropy[samples.mask], scores.entropy[samples.mask], atol=1e-4, rtol=1e-3)


def test_top_p_is_refused_because_the_trainer_does_not_truncate():
    with pytest.raises(ValueError, match="top_p = 1"):
        Sampling(top_p=0.95)


def test_entropy_mask_keeps_exactly_its_share_and_reports_ties():
    rollout = make_rollout(width=40)
    rollout.signal = torch.zeros_like(rollout.signal)
    tokens = rollout.mask.sum().item()
    metrics = EntropyMask(rho=0.2).assign(rollout)
    assert metrics["kept_fraction"].item() == pytest.approx(int(0.2 * tokens) / tokens)
    assert metrics["tied_fraction"] > 0.79


def test_mask_signal_is_that_of_its_place_in_the_list():
    masks = []
    for stack in ([EntropyMask(scope="sequence")], [SEPA(), EntropyMask(scope="sequence")]):
        rollout = make_rollout([1.0], group_size=1, width=10)
        rollout.mask, rollout.signal, rollout.advantages = MASK, SIGNAL, torch.ones(1, 10)
        rollout.plan_mask, rollout.sepa_lambda = MASK & (SIGNAL < 0.25), 1.0
        for operator in stack:
            operator.assign(rollout)
        masks.append(rollout.advantages.nonzero()[:, 1].tolist())
    assert masks == [[2, 6], [1, 2]]  # pooled, the uncertain tokens are all alike


@pytest.mark.parametrize("other", [GTPO(), HICRA(), Delight(), HardDelight(keep=0.5), AdvantageClip(limit=0.3)])
def test_mask_composes_with_every_other_transform(other):
    rollout, alone = make_rollout(), make_rollout()
    for target in (rollout, alone):
        GRPO().assign(target)
        StrategicGrams().assign(target)
        other.assign(target)
    EntropyMask(rho=0.5).assign(rollout)
    kept = rollout.advantages != 0
    assert torch.equal(rollout.advantages[kept], alone.advantages[kept])
    assert kept.sum() < (alone.advantages != 0).sum()


def test_surprisal_statistics_are_of_all_groups_weighted_by_tokens():
    for rewards in (ALL_WRONG_ALL_RIGHT, [1.0, 0.0] * 4):
        rollout = make_rollout(rewards)
        assert sampling_metrics(rollout)["train/surprisal"] == rollout.signal[rollout.mask].mean()


def test_plan_and_execution_statistics_need_a_planner():
    with pytest.raises(StackError, match=r"SignalStats reads `plan_mask`.*Put StrategicGrams above SignalStats"):
        check_stack([GRPO(), SignalStats()])
    check_stack([GRPO(), StrategicGrams(), SignalStats()])


def test_metric_names_do_not_call_another_signal_surprisal():
    rollout = make_rollout()
    PredictiveVariance().assign(rollout)
    assert not any("surprisal" in name or "entropy" in name for name in SignalStats().assign(rollout))


def test_extra_metrics_are_of_the_whole_batch_and_have_the_same_names_whatever_it_holds():
    names = []
    for rewards in (ALL_WRONG_ALL_RIGHT, [1.0, 0.0] * 4):
        rollout = make_rollout(rewards)
        GRPO().assign(rollout)
        names.append(list(Delight(eta=0.1).assign(rollout)))
    assert names[0] == names[1]


def test_adaptive_lambda_observes_once_per_step_however_many_completions_there_are():
    schedule = VarianceLambda(warmup=2)
    for _ in range(3):
        schedule.assign(make_rollout())
    assert schedule.observed == 3
    assert schedule.baseline == pytest.approx(schedule.ema)  # three equal batches


class Order(Callback):
    """Write down when credit is assigned."""

    def __init__(self, seen):
        self.seen = seen

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        self.seen.append(("sampled", batch.step))

    def on_before_backward(self, trainer, pl_module, loss):
        self.seen.append(("trained", trainer.global_step))


def test_reading_order_is_sample_then_credit_then_train(fit):
    seen = []
    fit(steps=2, stack=[GRPO(), Order(seen)])
    assert seen == [("sampled", 0), ("trained", 0), ("sampled", 1), ("trained", 1)]


def test_adaptive_eta_remembers_every_step_and_survives_a_checkpoint():
    first, second, fresh = (Delight(eta=AdaptiveEta(decay=0.5)) for _ in range(3))
    for seed in range(2):
        first.assign(make_rollout(seed=seed))
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    etas = [operator.assign(make_rollout(seed=2))["eta"] for operator in (first, second, fresh)]
    assert etas[0] == etas[1] != etas[2]


def test_seeds_order_the_data():
    orders = [PromptOrder(size=64, batch=8, seed=seed, step=lambda: 0).numbers(0) for seed in (0, 1, 0)]
    assert orders[0] == orders[2] != orders[1]


def test_resume_keeps_a_gate_open():
    gate = CorrectnessGate()
    lambdas(gate, 1)
    again = CorrectnessGate()
    again.load_state_dict(copy.deepcopy(gate.state_dict()))
    assert lambdas(again, 1, lambda _: 50) == [1.0]


def test_scalar_credit_is_never_assumed():
    mask, logprobs = torch.ones(1, 4, dtype=torch.bool), torch.zeros(1, 4, requires_grad=True)
    ImportanceSampling()(logprobs, torch.zeros(1, 4), torch.tensor([[1.0, -2.0, 0.0, 3.0]]), mask).backward()
    assert_close(logprobs.grad, torch.tensor([[-0.25, 0.5, 0.0, -0.75]]))
