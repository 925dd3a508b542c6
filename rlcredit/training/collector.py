"""Turn prompts into a rollout: sample completions, judge them, and compute the trainer's own log-probabilities."""

from collections.abc import Set
from dataclasses import dataclass, field
from typing import Any

import torch
from lightning.pytorch import Trainer
from torch import Tensor
from torch.nn.functional import pad

from rlcredit.base.exit_status import PolicyMismatch
from rlcredit.base.lightning_private import read_datamodule
from rlcredit.credit.rollout import Rollout, evenly_spaced_rows, unshaped_rewards
from rlcredit.credit.token_counts import TokenCounts, count_distinct_prompt_tokens, count_sequence_tokens
from rlcredit.decoding.engine import Decoder, PromptAnswerer
from rlcredit.decoding.sampling import Samples, Sampling
from rlcredit.episodes.episode_table import EpisodeTable
from rlcredit.formulas.distributed import find_largest_number
from rlcredit.formulas.groups import group_imputed_values
from rlcredit.formulas.masked import masked_mean
from rlcredit.formulas.turns import find_read_lengths, place_last
from rlcredit.oracle import EpisodeOracle, Oracle
from rlcredit.policy.policy import Policy, TokenScores
from rlcredit.policy.prompt_format import PADDING
from rlcredit.tasks.example import Example
from rlcredit.tasks.task import PromptBatch, Task
from rlcredit.training.dynamic_sampling import DynamicSampling, sample_until_informative
from rlcredit.training.lookahead import PolicyLookahead
from rlcredit.training.nan_and_mismatch import (
    find_engine_fault,
    find_rollout_fault,
    find_weight_fault,
    rms_difference,
    trainable_weights,
)
from rlcredit.training.postmortem import stop_on_fault
from rlcredit.training.scored_samples import judge_samples
from rlcredit.training.scoring import RolloutScorer
from rlcredit.training.step_state import read_clock
from rlcredit.verification.rewards import (
    Scores,
    judged_mask,
    mean_rewards,
    verdict_mask,
    verdict_rewards,
)
from rlcredit.verification.verifiers import Verdict

COMPARED_ROWS = 8
"""Completions of each rollout that the trainer also scores without its adapter, if the engine is another, and with the
adapter that drew them, if that is an earlier one."""


@dataclass
class RolloutCollector:
    """Sample completions with the policy and judge them.

    Args:
        trainer: The run that asks: its device, precision and processes.
        policy: The policy that is sampled.
        engine: What answers prompts.
        decoder: What continues partial answers for an oracle.
        scorer: What scores completions by the trainer's own forward pass.
        sampling: How a training rollout is drawn.
        seed: Seed of the sampling noise.
        dynamic_sampling: How groups that teach nothing are replaced; they are not if None.
        needs: Optional facts of a rollout that operators or the loss read.
        tolerance: How far an engine's log-probabilities may lie from the trainer's, in nats, as a root mean square.
        token_counts: Tokens that this collector has decoded and scored.

    """

    trainer: Trainer
    policy: Policy
    engine: PromptAnswerer
    decoder: Decoder
    scorer: RolloutScorer
    sampling: Sampling
    seed: int
    dynamic_sampling: DynamicSampling | None
    needs: Set[str]
    tolerance: float
    token_counts: TokenCounts = field(default_factory=TokenCounts)

    @torch.no_grad()
    def collect(self, prompts: PromptBatch, step: int) -> tuple[Rollout, dict[str, float]]:
        """Sample and judge G completions per prompt; with dynamic sampling, for as many prompts as it takes.

        Args:
            prompts: P prompts, or as many times P as dynamic sampling may ask.
            step: Optimizer steps taken.

        Returns:
            The rollout with a neutral ledger, and metrics of all that was sampled for it, by name; times in seconds.

        Raises:
            RunStopped: a value is not finite, or the engine samples another policy; the batch is kept.

        """
        metrics: dict[str, float] = {"time/rollout": 0.0, "time/verify": 0.0}
        rounds = self.dynamic_sampling.rounds if self.dynamic_sampling else 1
        prompt_ids = self.encode(prompts)
        per_round = len(prompts.numbers) // rounds
        outcomes: list[tuple[Tensor, Scores]] = []
        rollouts = (
            self._collect_round(
                prompts.slice_batch(start, per_round), prompt_ids[start : start + per_round], step, outcomes, metrics
            )
            for start in range(0, len(prompts.numbers), per_round)
        )
        if self.dynamic_sampling:
            rollout, round_metrics = sample_until_informative(rollouts, per_round)
            metrics.update({f"train/{name}": value for name, value in round_metrics.items()})
        else:
            rollout = next(rollouts)
        rollout.token_counts = self.token_counts
        round_facts, scores = zip(*outcomes, strict=True)
        right, is_judged, is_truncated, no_answer = torch.cat(round_facts, -1)
        metrics["train/solve_rate"] = masked_mean(right.float(), is_judged).item()
        metrics["train/unjudged"] = 1 - is_judged.float().mean().item()
        metrics["train/no_answer"] = no_answer.float().mean().item()
        metrics["train/truncated"] = is_truncated.float().mean().item()
        metrics.update({f"train/rewards/{name}": mean for name, mean in mean_rewards(scores).items()})
        if self.needs & {"ref_logprobs", "ref_log_ratio"}:
            start_time = read_clock(self.policy.device)
            self._score_reference(rollout)
            metrics["time/rollout"] += read_clock(self.policy.device) - start_time
        if "oracle" in self.needs:
            rollout.oracle = self._make_oracle(step)
        if self.needs & {"hidden", "lookahead"}:
            start_time = read_clock(self.policy.device)
            self._read_again(rollout)
            metrics["time/rollout"] += read_clock(self.policy.device) - start_time
        if rollout.ref_logprobs is not None:
            stop_on_fault(self.trainer, find_rollout_fault(rollout), rollout)
        return rollout, metrics

    def _collect_round(
        self,
        prompts: PromptBatch,
        prompt_ids: Tensor,
        step: int,
        outcomes: list[tuple[Tensor, Scores]],
        metrics: dict[str, float],
    ) -> Rollout:
        """Sample and judge once; record which completions are right, judged, truncated, without answer."""
        group, device = self.sampling.completions, self.policy.device
        start_time = read_clock(device)
        options = {"keeps_hidden": True} if "hidden" in self.needs and self.engine.can_keep_hidden else {}
        task: Task = read_datamodule(self.trainer)
        episodes = task.open_episodes(self.policy, repeat_examples(prompts, group))
        samples = self.sample(prompts, prompt_ids, self.sampling, self.seed, step, episodes, **options)
        if samples.waited is not None:
            metrics["time/waited"] = samples.waited
        engine_fault = self.compare_engine(prompt_ids, samples, self.sampling, step)
        decoding_end = read_clock(device)
        tokens = self.policy.decode_pieces(samples.completion_ids, samples.mask)
        scores = self.judge(task, prompts, ["".join(pieces) for pieces in tokens], group, episodes)
        right, is_judged = verdict_mask(scores.verdicts, Verdict.RIGHT), judged_mask(scores.verdicts)
        no_answer = verdict_mask(scores.verdicts, Verdict.NO_ANSWER)
        outcomes.append((torch.stack([right, is_judged, samples.truncated.cpu(), no_answer]), scores))
        metrics["time/rollout"] += decoding_end - start_time - (samples.waited or 0.0)
        metrics["time/verify"] += read_clock(device) - decoding_end
        rollout = Rollout(
            step=step,
            group_size=group,
            prompt_ids=prompt_ids.repeat_interleave(group, 0),
            completion_ids=samples.completion_ids,
            mask=samples.mask,
            old_logprobs=samples.logprobs,
            entropy=samples.entropy,
            sum_pi_squared=samples.sum_pi_squared,
            engine_logprobs=samples.engine_logprobs,  # pyright: ignore[reportArgumentType]
            correct=verdict_rewards(right, is_judged, group).to(device),
            judged=is_judged.to(device),
            tokens=tokens,
            hidden=samples.hidden,  # pyright: ignore[reportArgumentType]
            turn=samples.turn,  # pyright: ignore[reportArgumentType]
        )
        if scores.rewards is not None:
            rollout.task_rewards = group_imputed_values(scores.rewards, is_judged, group).to(device)
        if episodes is not None:
            rollout.turn_rewards, rollout.states = episodes.list_rewards().to(device), episodes.list_states().to(device)
            if not episodes.has_rewards:
                rollout.turn_rewards = place_last(unshaped_rewards(rollout), rollout.turn)
        rollout.sources = tuple(zip(prompts.numbers, prompts.examples, strict=True))
        self._check_round(rollout, engine_fault)
        if samples.engine_logprobs is not None:
            difference = samples.engine_logprobs - samples.logprobs
            metrics["train/mismatch_kl"] = masked_mean(difference, samples.mask).item()
            metrics["train/mismatch_max"] = difference.abs().max().item()
        return rollout

    def _check_round(self, rollout: Rollout, engine_fault: PolicyMismatch | None) -> None:
        """Stop all processes if one has sampled non-finite values, or with other weights."""
        fault = find_rollout_fault(rollout)
        if fault:
            weights = trainable_weights(self.trainer.lightning_module)
            fault = find_weight_fault(rollout.step, weights, "whatever came between two steps") or fault
        stop_on_fault(self.trainer, fault, rollout)
        if rollout.engine_logprobs is not None:
            stop_on_fault(self.trainer, engine_fault, rollout)

    def encode(self, prompts: PromptBatch) -> Tensor:
        """Return the prompts as tokens, left-padded, shape ``(P, L)``."""
        prompt_ids = self.policy.encode_questions(prompts.questions, prompts.tools).to(self.policy.device)
        if self.trainer.training:
            # Padding is part of the arithmetic: all processes pad to one width, as a single one would. In validation
            # the processes may have different numbers of batches, and one would wait for ever.
            width = find_largest_number(prompt_ids.shape[1], self.policy.device)
            prompt_ids = pad(prompt_ids, (width - prompt_ids.shape[1], 0), value=PADDING)
        return prompt_ids

    def sample(
        self,
        prompts: PromptBatch,
        prompt_ids: Tensor,
        sampling: Sampling,
        seed: int,
        step: int,
        episodes: EpisodeTable | None = None,
        **asked: bool,
    ) -> Samples:
        """Answer prompts; the trainer scores the tokens anew if another engine has drawn them.

        Args:
            prompts: Prompts, P of them, whose numbers determine the sampling noise.
            prompt_ids: Same prompts as token ids, shape ``(P, L)``.
            sampling: How completions are drawn.
            seed: Seed of the sampling noise.
            step: Optimizer steps taken, or :data:`rlcredit.decoding.noise.VALIDATION`.
            episodes: Episodes of all completions, begun; None where questions are answered once.
            asked: What else the engine is asked for.

        """
        options: dict[str, Any] = {**asked} if episodes is None else {**asked, "episodes": episodes}
        with self.trainer.precision_plugin.forward_context():
            samples = self.engine.sample(
                self.policy, prompt_ids, prompts.numbers, sampling, seed=seed, step=step, **options
            )
        sampled_tokens, read_tokens = int(samples.mask.sum()), int(find_read_lengths(samples.mask).sum())
        self.token_counts.add(
            decoded=sampled_tokens,
            prefill=count_distinct_prompt_tokens(prompt_ids) + read_tokens - sampled_tokens,
        )
        if self.engine.exact and samples.entropy is not None and not self.policy.is_sharded:
            return samples
        scores = self.score(
            prompt_ids.repeat_interleave(sampling.completions, 0),
            samples.completion_ids,
            samples.mask,
            sampling.temperature,
        )
        return samples.replace_scores(scores)

    def score(
        self, prompt_ids: Tensor, completion_ids: Tensor, mask: Tensor, temperature: float, adapter: bool = True
    ) -> TokenScores:
        """Score completions without graph; see :meth:`rlcredit.training.scoring.RolloutScorer.score_without_graph`."""
        precision = self.trainer.precision_plugin.forward_context
        self.token_counts.add(forward=count_sequence_tokens(prompt_ids, mask))
        return self.scorer.score_without_graph(prompt_ids, completion_ids, mask, temperature, precision, adapter)

    def compare_engine(
        self, prompt_ids: Tensor, samples: Samples, sampling: Sampling, step: int
    ) -> PolicyMismatch | None:
        """Compare the log-probabilities of another engine with the trainer's, with its adapter and without.

        Where an earlier adapter has drawn the completions, it is this one that some of them are scored with: what the
        policy has learned since is no fault of the engine.
        """
        engine_logprobs, mask = samples.engine_logprobs, samples.mask
        if engine_logprobs is None:
            return None
        rows = torch.tensor(evenly_spaced_rows(len(mask), COMPARED_ROWS), device=self.policy.device)
        prompts, completions = prompt_ids[rows // sampling.completions], samples.completion_ids[rows]
        base = self.score(prompts, completions, mask[rows], sampling.temperature, adapter=False)
        if samples.adapter is None:
            with_adapter = rms_difference(engine_logprobs[rows], samples.logprobs[rows], mask[rows])
            distance = rms_difference(engine_logprobs, samples.logprobs, mask)
        else:
            with self.policy.use_adapter(samples.adapter):
                adapter_scores = self.score(prompts, completions, mask[rows], sampling.temperature)
            distance = with_adapter = rms_difference(engine_logprobs[rows], adapter_scores.logprobs, mask[rows])
        without_adapter = rms_difference(engine_logprobs[rows], base.logprobs, mask[rows])
        return find_engine_fault(step, distance, with_adapter, without_adapter, self.tolerance)

    def judge(
        self,
        task: Task,
        prompts: PromptBatch,
        answers: list[str],
        group_size: int,
        episodes: EpisodeTable | None = None,
    ) -> Scores:
        """Return verdicts and rewards of G answers to every prompt, or of the episodes that they are."""
        return judge_samples(task, self.policy, answers, repeat_examples(prompts, group_size), episodes)

    def _score_reference(self, rollout: Rollout) -> None:
        """Score what was sampled with the adapter off, tempered as the policy is, and for the ratio with it on."""
        arguments = (rollout.prompt_ids, rollout.completion_ids, rollout.mask, self.sampling.temperature)
        rollout.ref_logprobs = self.score(*arguments, adapter=False).logprobs
        if "ref_log_ratio" in self.needs:
            rollout.ref_log_ratio = self.score(*arguments).logprobs - rollout.ref_logprobs

    def _read_again(self, rollout: Rollout) -> None:
        """Keep the hidden states of what was sampled, and a reader of what was not."""
        lookahead = PolicyLookahead(
            self.policy,
            self.sampling.temperature,
            self.scorer.scoring_batches,
            self.trainer.precision_plugin.forward_context,
            read_datamodule(self.trainer),
        )
        if "lookahead" in self.needs:
            rollout.lookahead = lookahead
        if "hidden" in self.needs and rollout.hidden is None:
            rollout.hidden = lookahead.read_hidden(rollout)

    def _make_oracle(self, step: int) -> Oracle:
        task: Task = read_datamodule(self.trainer)
        make_oracle = Oracle if task.environment is None else EpisodeOracle
        return make_oracle(
            self.policy,
            self.decoder,
            task,
            self.sampling.temperature,
            self.sampling.max_tokens,
            self.seed,
            step,
            precision=self.trainer.precision_plugin.forward_context,
        )


def repeat_examples(prompts: PromptBatch, group_size: int) -> list[Example]:
    """Return the example of every completion, G of each prompt."""
    return [example for example in prompts.examples for _ in range(group_size)]
