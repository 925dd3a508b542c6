"""The half of the LightningModule that answers prompts and has the answers judged."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from lightning.pytorch import LightningModule
from torch import Tensor
from torch.nn import ModuleList
from torch.nn.functional import pad

from rlcredit.credit.rollout import Rollout
from rlcredit.decoding.engine import Decoder, Engine
from rlcredit.decoding.noise import VALIDATION
from rlcredit.decoding.sampling import Samples, Sampling
from rlcredit.formulas.masked import masked_mean
from rlcredit.oracle import Oracle
from rlcredit.policy.policy import Policy, TokenScores
from rlcredit.policy.prompt_format import PADDING
from rlcredit.tasks.held_out_sets import HeldOutSet
from rlcredit.tasks.task import PromptBatch, Task
from rlcredit.training.dynamic_sampling import DynamicSampling, sample_until_informative
from rlcredit.training.metrics import MeanPassAtK
from rlcredit.training.micro_batches import TOKENS, MicroBatches, split_rows_by_tokens
from rlcredit.verification.rewards import judged_mask, require_verdicts, verdict_mask, verdict_rewards
from rlcredit.verification.verifiers import Verdict


class RolloutSampler(LightningModule):
    """Turn prompts into rollouts, and held-out prompts into pass@k; see :class:`rlcredit.training.module.PolicyModule`.

    Attributes:
        pass_at_1: of the held-out questions, over all processes.
        pass_at_k: likewise.
        pass_of_others: both, for every further held-out set.
        scoring: completions that are scored at a time without graph.
        needs: optional facts of a rollout that operators or the loss read.
        step_metrics: of the rollout at hand and its updates, by name.

    """

    policy: Policy
    sampling: Sampling
    validation: Sampling
    engine: Engine
    dynamic_sampling: DynamicSampling | None
    seed: int
    validation_seed: int
    pass_at_1: MeanPassAtK
    pass_at_k: MeanPassAtK
    pass_of_others: ModuleList
    scoring: MicroBatches
    needs: set[str]
    step_metrics: dict[str, float]

    @property
    def rounds(self) -> int:
        """How many batches of prompts a rollout may ask."""
        return self.dynamic_sampling.rounds if self.dynamic_sampling else 1

    def configure_model(self) -> None:
        """Read the weights, after everything that can be checked without them."""
        self.policy.load(self.seed)

    @torch.no_grad()
    def rollout(self, prompts: PromptBatch) -> Rollout:
        """Sample G completions per prompt and have them judged; if dynamic, of as many prompts as it takes."""
        self.step_metrics = dict.fromkeys(("time/rollout", "time/verify"), 0.0)
        prompt_ids, per_round = self._encoded(prompts), len(prompts.numbers) // self.rounds
        solved: list[Tensor] = []
        rounds = (
            self._round(prompts.slice_batch(start, per_round), prompt_ids[start : start + per_round], solved)
            for start in range(0, len(prompts.numbers), per_round)
        )
        if self.dynamic_sampling:
            rollout, counted = sample_until_informative(rounds, per_round)
            self.step_metrics.update({f"train/{name}": value for name, value in counted.items()})
        else:
            rollout = next(rounds)
        right, judged, truncated, no_answer = torch.cat(solved, -1)
        self.step_metrics["train/solve_rate"] = masked_mean(right.float(), judged).item()
        self.step_metrics["train/unjudged"] = 1 - judged.float().mean().item()
        self.step_metrics["train/no_answer"] = no_answer.float().mean().item()
        self.step_metrics["train/truncated"] = truncated.float().mean().item()
        if self.needs & {"ref_logprobs", "ref_log_ratio"}:
            started = self._now()
            self._compare(rollout)
            self.step_metrics["time/rollout"] += self._now() - started
        if "oracle" in self.needs:
            rollout.oracle = self._oracle()
        self._clock = self._now()
        return rollout

    def _round(self, prompts: PromptBatch, prompt_ids: Tensor, solved: list[Tensor]) -> Rollout:
        """Sample and judge once; note which completions are right, judged, truncated, without answer."""
        started, group = self._now(), self.sampling.completions
        samples = self._sampled(prompts, prompt_ids, self.sampling, self.seed, self.global_step)
        decoded = self._now()
        tokens = self.policy.decode_pieces(samples.completion_ids, samples.mask)
        verdicts = self._judged(self._task, prompts, ["".join(pieces) for pieces in tokens], group)
        right, judged = verdict_mask(verdicts, Verdict.RIGHT), judged_mask(verdicts)
        solved.append(torch.stack([right, judged, samples.truncated.cpu(), verdict_mask(verdicts, Verdict.NO_ANSWER)]))
        self.step_metrics["time/rollout"] += decoded - started
        self.step_metrics["time/verify"] += self._now() - decoded
        rollout = Rollout(
            step=self.global_step,
            group_size=group,
            prompt_ids=prompt_ids.repeat_interleave(group, 0),
            completion_ids=samples.completion_ids,
            mask=samples.mask,
            old_logprobs=samples.logprobs,
            entropy=samples.entropy,
            sum_pi_squared=samples.sum_pi_squared,
            engine_logprobs=samples.engine_logprobs,  # pyright: ignore[reportArgumentType]
            correct=verdict_rewards(right, judged, group).to(self.device),
            judged=judged.to(self.device),
            tokens=tokens,
        )
        rollout.sources = tuple(zip(prompts.numbers, prompts.examples, strict=True))
        return rollout

    def _oracle(self) -> Oracle:
        assert isinstance(self.engine, Decoder)  # see `PolicyModule.check`
        return Oracle(
            self.policy,
            self.engine,
            self.trainer.datamodule,  # pyright: ignore[reportAttributeAccessIssue]
            self.sampling.temperature,
            self.sampling.max_tokens,
            self.seed,
            self.global_step,
            precision=self.trainer.precision_plugin.forward_context,
        )

    def teardown(self, stage: str) -> None:
        """Let the engine release what it holds."""
        self.engine.close()

    def _compare(self, rollout: Rollout) -> None:
        """Score what was sampled with the adapter off, tempered as the policy is, and for the ratio with it on."""
        arguments = (rollout.prompt_ids, rollout.completion_ids, rollout.mask, self.sampling.temperature)
        rollout.ref_logprobs = self.scores(*arguments, adapter=False).logprobs
        if "ref_log_ratio" in self.needs:
            rollout.ref_log_ratio = self.scores(*arguments).logprobs - rollout.ref_logprobs

    def scores(
        self, prompt_ids: Tensor, completion_ids: Tensor, mask: Tensor, temperature: float, adapter: bool = True
    ) -> TokenScores:
        """Score completions without graph, those of similar length together and as many at a time as an update does.

        Args:
            prompt_ids: left-padded, shape ``(B, L)``.
            completion_ids: right-padded, shape ``(B, T)``.
            mask: true on sampled tokens, shape ``(B, T)``; scores are zero elsewhere.
            temperature: logits are divided by it.
            adapter: whether it acts. An adapter that changes nothing leaves every bit of the scores as it is.

        """
        lengths, order = mask.sum(-1).clamp(min=1).sort(stable=True)

        def score(micro_batch: slice) -> list[TokenScores]:
            rows, tokens = order[micro_batch], lengths[micro_batch].tolist()
            context, scored = self.policy.read_prompts(prompt_ids[rows]), []
            for part in split_rows_by_tokens(tokens, TOKENS):
                width = tokens[part.stop - 1]
                scores = self.policy.score_completions(
                    context.select_rows(part), completion_ids[rows[part], :width], temperature
                )
                scored.append(TokenScores(*(pad(values, (0, mask.shape[1] - width)) for values in scores)))
            return scored

        acting = self.policy.merge_for_gradients if adapter else self.policy.disable_adapter
        with torch.no_grad(), self.policy.evaluation_mode(), self.trainer.precision_plugin.forward_context(), acting():
            cut = self.scoring.split_batch((lengths + prompt_ids.shape[1]).tolist(), score)
            scored = [scores for micro_batch in cut for scores in score(micro_batch)]
        place = order.argsort()
        return TokenScores(*(torch.cat(values)[place].where(mask, 0) for values in zip(*scored, strict=True)))

    def _encoded(self, prompts: PromptBatch) -> Tensor:
        prompt_ids = self.policy.encode_questions(prompts.questions).to(self.device)
        if self.trainer.training and self.trainer.world_size > 1:
            # Padding is part of the arithmetic: all processes pad to one width, as a single one would. In validation
            # the processes may have different numbers of batches, and one would wait for ever.
            longest = torch.tensor(prompt_ids.shape[1], device=self.device)
            width = int(self.trainer.strategy.reduce(longest, reduce_op="max"))  # pyright: ignore[reportArgumentType]
            prompt_ids = pad(prompt_ids, (width - prompt_ids.shape[1], 0), value=PADDING)
        return prompt_ids

    def _sampled(self, prompts: PromptBatch, prompt_ids: Tensor, sampling: Sampling, seed: int, step: int) -> Samples:
        with self.trainer.precision_plugin.forward_context():
            samples = self.engine.sample(self.policy, prompt_ids, prompts.numbers, sampling, seed=seed, step=step)
        if self.engine.exact and samples.entropy is not None:
            return samples
        return self._scored_anew(samples, prompt_ids, sampling)

    def _scored_anew(self, samples: Samples, prompt_ids: Tensor, sampling: Sampling) -> Samples:
        """Replace what the engine says of its tokens by what the trainer says, and measure how far the two differ."""
        prompt_ids, mask = prompt_ids.repeat_interleave(sampling.completions, 0), samples.mask
        logprobs, entropy, squares = self.scores(prompt_ids, samples.completion_ids, mask, sampling.temperature)
        by_engine = samples.logprobs.where(mask, 0)
        if self.trainer.training:
            self.step_metrics["train/mismatch_kl"] = masked_mean(by_engine - logprobs, mask).item()
            self.step_metrics["train/mismatch_max"] = (by_engine - logprobs).abs().max().item()
        return replace(samples, logprobs=logprobs, entropy=entropy, sum_pi_squared=squares, engine_logprobs=by_engine)

    def _judged(self, task: Task, prompts: PromptBatch, answers: list[str], group: int) -> Sequence[Verdict]:
        examples = [example for example in prompts.examples for _ in range(group)]
        return require_verdicts(task.judge(self.policy.prepend_thinking_mark(answers), examples), len(answers), task)

    @property
    def _task(self) -> Task:
        return self.trainer.datamodule  # pyright: ignore[reportAttributeAccessIssue]

    def validation_step(self, batch: PromptBatch, batch_idx: int, dataloader_idx: int = 0) -> dict[str, Tensor]:
        """Answer held-out questions, in every validation with the same noise; return which are right, ``(P, G)``."""
        asked = self._task.held_out_sets[dataloader_idx]
        sampling, prompt_ids = asked.choose_sampling(self.validation), self._encoded(batch)
        samples = self._sampled(
            asked.shift_noise_numbers(batch), prompt_ids, sampling, self.validation_seed, VALIDATION
        )
        answers = self.policy.decode_texts(samples.completion_ids, samples.mask)
        verdicts = self._judged(asked.task, batch, answers, sampling.completions)
        right = verdict_mask(verdicts, Verdict.RIGHT).view(-1, sampling.completions)
        solved = self.solved_of(asked)
        for metric in solved.values():
            metric.update(right)
        unjudged, no_answer = (
            verdict_mask(verdicts, kind).float().mean().item() for kind in (Verdict.UNJUDGED, Verdict.NO_ANSWER)
        )
        named = {asked.name_metric(name): metric for name, metric in solved.items()}
        self.log_dict(named, batch_size=len(right), add_dataloader_idx=False)
        if dataloader_idx == 0:  # the step at which Lightning logs the results; one loader of several says it
            self._log({"step": float(self.global_step)}, len(right))
        length = samples.mask.sum(-1).float().mean()
        entropy = masked_mean(samples.entropy, samples.mask)
        held_out = {"unjudged": unjudged, "no_answer": no_answer, "completion_length": length, "entropy": entropy}
        self._log({asked.name_metric(name): value for name, value in held_out.items()}, len(right))
        return {"right": right}

    def solved_of(self, asked: HeldOutSet) -> dict[str, MeanPassAtK]:
        """Return the two metrics of a held-out set, by quantity."""
        pair = (self.pass_at_1, self.pass_at_k) if asked.number == 0 else self.pass_of_others[asked.number - 1]
        return dict(zip(("pass_at_1", "pass_at_k"), pair, strict=True))  # pyright: ignore[reportArgumentType]

    def _log(self, metrics: dict[str, Any], batch_size: int) -> None:
        sync_dist = self.trainer.world_size > 1
        self.log_dict(metrics, batch_size=batch_size, sync_dist=sync_dist, add_dataloader_idx=False)

    def _now(self) -> float:
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()

    def _lap(self, name: str) -> None:
        now = self._now()
        self.step_metrics[name], self._clock = now - self._clock, now
