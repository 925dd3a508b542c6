import contextlib
from collections import Counter
from types import SimpleNamespace

import pytest
import torch
from lightning.pytorch import Callback
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.strategies import FSDPStrategy, ModelParallelStrategy
from torch.testing import assert_close

from callbacks.episode.grpo import GRPO
from callbacks.episode.maxrl import MaxRL
from callbacks.signals.bucket_normalization import BucketNormalization
from callbacks.signals.process_signal import ProcessSignal
from callbacks.tokens.outcome_anchor import OutcomeAnchor
from rlcredit.credit.contract import StackError
from rlcredit.credit.operator import CreditOperator
from rlcredit.losses import TEPO, ClipCov, ClippedSurrogate, ImportanceSampling, KLPenalty
from rlcredit.policy.policy import Policy
from rlcredit.tasks import ReasoningGym
from rlcredit.training.module import PolicyModule
from rlcredit.training.scoring import UpdateScores
from rlcredit.training.setup_checks import refuse_unfit_setup
from rlcredit.verification.verifiers import Verdict
from tests.rlcredit.losses.batches import batch, facts
from tests.training_runs import assert_like_adapter

NAMES = [
    "train/solve_rate",
    "train/reward",
    "train/loss",
    "train/completion_length",
    "train/truncated",
    "train/unjudged",
    "train/no_answer",
    "train/zero_variance",
    "train/zero_variance_all_right",
    "train/zero_variance_all_wrong",
    "train/entropy",
    "train/surprisal",
    "train/surprisal_p50",
    "train/surprisal_p90",
    "train/surprisal_p99",
    "train/kl_sampler",
    "train/ratio_min",
    "train/ratio_max",
    "train/gradient_norm",
    "time/rollout",
    "time/verify",
    "time/credit",
]


class Zero(CreditOperator, reads="advantages", writes="advantages"):
    """Take all credit away."""

    def assign(self, rollout):
        rollout.advantages = torch.zeros_like(rollout.advantages)
        return {}


class Spy(CreditOperator, reads="rewards advantages entropy"):
    """Keep the rollouts that pass."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def assign(self, rollout):
        self.seen.append(rollout)
        return {"reward": rollout.rewards.mean()}


def test_the_first_update_is_on_policy_and_every_metric_is_there(fit):
    run = fit(steps=3)
    for step in run.history:
        assert set(NAMES) <= set(step)
        assert 0.999 < step["train/ratio_min"] <= step["train/ratio_max"] < 1.001
        assert step["train/kl_sampler"] < 1e-5
        assert step["train/reward"] == step["train/solve_rate"]
        assert 0 < step["train/entropy"] < 1
    assert run.history[1]["train/gradient_norm"] > 0


def test_the_size_of_micro_batches_changes_nothing_but_memory(fit):
    whole, parts = fit(steps=3), fit(steps=3, micro_batch_tokens=120)
    assert parts.losses == pytest.approx(whole.losses, abs=1e-6)
    assert_like_adapter(parts.adapter, whole.adapter)


def test_decode_batch_size_changes_nothing_at_all(fit):
    whole, parts = fit(steps=2), fit(steps=2, decode=5)
    assert parts.losses == whole.losses
    assert all(torch.equal(parts.adapter[name], weight) for name, weight in whole.adapter.items())


def test_without_credit_nothing_is_learned_and_nothing_breaks(fit):
    before, after = fit(steps=1, lr=0.0), fit(steps=2, stack=[GRPO(), Zero()])
    assert after.losses == [0.0, 0.0]
    assert all(torch.equal(before.adapter[name], weight) for name, weight in after.adapter.items())


def test_rows_without_advantage_are_left_out_of_the_forward(fit, monkeypatch):
    rows, read = [], Policy.predicting_states

    def counted(self, context, *arguments):
        rows.append(len(context.of))
        return read(self, context, *arguments)

    monkeypatch.setattr(Policy, "predicting_states", counted)
    spy = Spy()
    fit(steps=2, stack=[GRPO(), spy], prompts=8, completions=2)
    taught = [int((rollout.advantages != 0).any(-1).sum()) for rollout in spy.seen]
    assert sum(rows) == sum(taught)
    assert 0 < max(taught) < 16


def test_the_sampled_policy_is_the_one_after_the_last_update(fit):
    # Were the rollout prefetched, the second step would find another ratio than one.
    run = fit(steps=4, lr=1e-2)
    assert all(step["train/ratio_min"] > 0.999 and step["train/ratio_max"] < 1.001 for step in run.history)


def test_accumulated_batches_are_refused_with_the_repair(fit):
    with pytest.raises(ValueError, match=r"must be 1. Memory is saved by model.micro_batch_tokens"):
        fit(accumulate_grad_batches=2)


@pytest.mark.parametrize("strategy", [ModelParallelStrategy(), FSDPStrategy()])
def test_weights_that_no_process_holds_are_refused_with_the_repair(strategy):
    trainer = SimpleNamespace(accumulate_grad_batches=1, strategy=strategy)
    with pytest.raises(ValueError, match=r"Strategy splits weights; .* Use ddp"):
        refuse_unfit_setup(PolicyModule(), trainer, None)


def test_an_operator_of_rewards_that_the_task_lacks_is_refused_with_the_repair(fit):
    class Reader(CreditOperator, reads="task_rewards advantages", writes="advantages"):
        """Multiply credit by the reward of the task."""

    with pytest.raises(
        StackError, match=r"Reader reads `task_rewards`, and this task has none.*Set " r"data.init_args.rewards"
    ):
        fit(stack=[GRPO(), Reader()])


class Undecided(ReasoningGym):
    """Judge every other completion only."""

    def judge(self, completions, examples):
        verdicts = super().judge(completions, examples)
        return [Verdict.UNJUDGED if place % 2 else verdict for place, verdict in enumerate(verdicts)]


def test_the_unjudged_are_counted_and_get_no_credit(fit):
    from tiny_traces import CHAIN_SUM

    spy = Spy()
    data = Undecided("chain_sum", CHAIN_SUM, train_size=64, validation_size=16, prompts_per_step=2)
    run = fit(steps=1, stack=[GRPO(), spy], task=data)
    assert run.history[0]["train/unjudged"] == 0.5
    assert_close(spy.seen[0].advantages[1::2], torch.zeros_like(spy.seen[0].advantages[1::2]))


@pytest.mark.parametrize(
    "loss",
    [
        ClippedSurrogate(),
        ClippedSurrogate(denominator="sequence"),
        ClippedSurrogate(denominator="constant", constant=9),
        KLPenalty(TEPO(low=0.1, high=0.2)),
        ClipCov(window_low=-1.0, share=0.5),
    ],
)
def test_an_update_is_the_one_without_the_completions_that_were_not_judged(loss):
    module, whole = PolicyModule(loss=loss), batch(2)
    judged = whole.judged = torch.tensor([True, False, True, True, *[False] * 4])
    known = facts(loss, whole)
    update_loss = module.update_loss
    update_loss.collect_facts = lambda rollout, entropy: known
    arguments, given = update_loss.collect_inputs(whole, UpdateScores(whole.logprobs, whole.now), whole.advantages)
    part = whole.select_rows(judged.nonzero().squeeze(-1))
    alone = (part.logprobs, part.old_logprobs, part.advantages, part.mask)
    of_part = {name: value[judged] if isinstance(value, torch.Tensor) else value for name, value in known.items()}
    assert torch.equal(loss(*arguments, **given), loss(*alone, **of_part))
    assert torch.equal(module.rows_to_score(whole), judged)


class Speechless(ReasoningGym):
    """Find an answer in every other completion only."""

    def judge(self, completions, examples):
        return [Verdict.NO_ANSWER if place % 2 else Verdict.RIGHT for place, _ in enumerate(completions)]


def test_completions_without_an_answer_are_counted_and_wrong(fit):
    from tiny_traces import CHAIN_SUM

    data = Speechless("chain_sum", CHAIN_SUM, train_size=64, validation_size=16, prompts_per_step=2)
    (step,) = fit(steps=1, task=data).history
    assert {name: step[f"train/{name}"] for name in ("no_answer", "solve_rate", "reward", "unjudged")} == {
        "no_answer": 0.5,
        "solve_rate": 0.5,
        "reward": 0.5,
        "unjudged": 0.0,
    }


def test_the_loss_is_chosen_by_class(fit):
    token, sequence = fit(steps=1), fit(steps=1, loss=ImportanceSampling("sequence"))
    assert token.losses != sequence.losses


def test_a_run_repeats_itself_bit_for_bit(fit):
    one, two = fit(steps=2), fit(steps=2)
    assert all(torch.equal(one.adapter[name], weight) for name, weight in two.adapter.items())
    assert one.losses == two.losses


@pytest.mark.parametrize("precision", ["bf16-mixed", "32-true"])
def test_half_precision_samples_and_trains_one_policy(fit, precision):
    run = fit(steps=3, policy=Policy(dtype="bfloat16"), precision=precision, micro_batch_tokens=320)
    for step in run.history:
        assert step["train/kl_sampler"] < 2e-3
        assert step["train/gradient_norm"] > 0
    assert {weight.dtype for weight in run.adapter.values()} == {torch.float32}


class Scored(Callback):
    """Count the passes that score completions, by whether the adapter was on."""

    def __init__(self, monkeypatch):
        self.passes = Counter()
        plain, off = Policy.score_completions, Policy.disable_adapter

        def scored(policy, *args):
            self.passes["reference" if self.off else "policy"] += 1
            return plain(policy, *args)

        @contextlib.contextmanager
        def adapter_off(policy):
            self.off = True
            with off(policy):
                yield
            self.off = False

        self.off = False
        monkeypatch.setattr(Policy, "score_completions", scored)
        monkeypatch.setattr(Policy, "disable_adapter", adapter_off)


@pytest.mark.slow
def test_the_reference_is_scored_once_per_rollout_and_only_if_something_reads_it(fit, monkeypatch):
    scored = Scored(monkeypatch)
    fit(steps=2, stack=[GRPO(), scored])
    assert scored.passes["reference"] == 0
    process = [ProcessSignal(), BucketNormalization(), OutcomeAnchor()]
    run = fit(steps=2, stack=[GRPO(), *process, scored])
    assert scored.passes["reference"] == 2
    penalised = Scored(monkeypatch)
    fit(steps=4, stack=[GRPO(), penalised], loss=KLPenalty(), updates_per_rollout=2)
    assert penalised.passes["reference"] == 2
    assert run.history[0]["credit/ProcessSignal/size"] == 0  # before the first update the policy is the reference
    assert run.history[1]["credit/ProcessSignal/size"] > 1e-6


@pytest.mark.slow
def test_a_checkpoint_is_named_by_the_step_it_holds(fit, tmp_path):
    saved = ModelCheckpoint(tmp_path / "saved", every_n_train_steps=2, save_top_k=-1, filename="{step}")
    validated = {"enable_checkpointing": True, "limit_val_batches": 1, "val_check_interval": 2}
    fit(steps=4, stack=[GRPO(), saved], **validated)
    held = {path.name: torch.load(path, weights_only=True)["global_step"] for path in (tmp_path / "saved").iterdir()}
    assert held == {f"step={step}.ckpt": step for step in (2, 4)}


class Answers(Callback):
    """Keep which held-out samples were right."""

    def __init__(self):
        self.right = []

    def on_validation_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        self.right.append(outputs["right"])


@pytest.mark.slow
def test_held_out_draws_are_shared_by_all_seeds_or_each_seeds_own(fit):
    def drawn(seed, validation_seed):
        answers, validated = Answers(), {"limit_val_batches": 1, "val_check_interval": 1}
        fit(steps=1, stack=[answers], lr=0.0, seed=seed, validation_seed=validation_seed, **validated)
        return torch.cat(answers.right)

    assert torch.equal(drawn(0, 0), drawn(1, 0))
    assert torch.equal(drawn(0, None), drawn(0, 0))
    assert not torch.equal(drawn(1, None), drawn(1, 0))


TRL_REWARDS = """
import re

def reward_len(completions, **kwargs):
    return [-abs(20 - len(completion)) for completion in completions]

def ends_with_answer(prompts, completions, answer, **kwargs):
    found = [re.findall(r"-?[0-9]+", completion) for completion in completions]
    return [float(numbers[-1] == right) if numbers else None for numbers, right in zip(found, answer)]
"""


def test_reward_functions_as_trl_calls_them_train_the_policy(fit, tmp_path, monkeypatch):
    from tiny_traces import CHAIN_SUM

    (tmp_path / "trl_rewards.py").write_text(TRL_REWARDS)
    monkeypatch.chdir(tmp_path)
    spy, sizes = Spy(), {"train_size": 64, "validation_size": 16, "prompts_per_step": 2}
    functions = ["trl_rewards.ends_with_answer", {"function": "trl_rewards.reward_len", "weight": 0.01}]
    data = ReasoningGym("chain_sum", CHAIN_SUM, rewards=functions, **sizes)
    run = fit(steps=2, stack=[GRPO(), spy], task=data, max_tokens=96, limit_val_batches=1, val_check_interval=2)
    for rollout, logged in zip(spy.seen, run.history, strict=True):
        lengths = torch.tensor([len("".join(pieces)) for pieces in rollout.tokens])
        answered = rollout.task_rewards + 0.01 * (20 - lengths).abs()
        assert all(min(abs(each), abs(each - 1)) < 1e-5 for each in answered.tolist())
        assert logged["train/rewards/reward_len"] == pytest.approx(-(20 - lengths).abs().float().mean().item())
        assert logged["train/reward"] == pytest.approx(rollout.task_rewards.mean().item(), abs=1e-6)
        groups = rollout.task_rewards.view(2, -1).double()
        assert_close(
            rollout.advantages[:, 0].double().view(2, -1), groups - groups.mean(1, keepdim=True), atol=1e-5, rtol=0
        )
        assert set(rollout.correct.tolist()) <= {0.0, 1.0}
    assert all(step["train/gradient_norm"] > 0 for step in run.history)


def test_a_stack_of_binary_rewards_is_refused_on_a_task_of_real_ones(fit):
    from tiny_traces import CHAIN_SUM

    data = ReasoningGym("chain_sum", CHAIN_SUM, rewards="verifier", train_size=64, validation_size=16)
    with pytest.raises(
        StackError, match=r"MaxRL takes rewards of one .*, and " r"data.init_args.rewards gives any numbers"
    ):
        fit(steps=1, stack=[MaxRL()], task=data)
