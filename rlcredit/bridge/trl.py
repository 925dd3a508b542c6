"""TRL's GRPOTrainer with the credit of an rlcredit stack; written for trl 1.16, whose private methods it overrides."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer

from rlcredit.bridge.assignment import assign_credit
from rlcredit.bridge.bridged_stack import BridgedStack, StackSource, load_stack
from rlcredit.credit.contract import StackWarning
from rlcredit.formulas.masked import masked_mean
from rlcredit.policy.pieces import make_piece_decoder
from rlcredit.verification.reward_calls import check_rewards

STACK_STATE_FILE = "rlcredit_stack.pt"
"""File of a checkpoint with what operators have learned."""

SCORED_ARGUMENTS = ("old_logprobs", "entropy")
"""Arguments for which completions are read once more."""

TRL_REPAIRS = {"ref_logprobs": "Set beta to more than 0."}
"""How TRL comes to give what it may leave out."""

WITH_LOGPROBS = ("cispo", "vespo")
"""Losses of log-probabilities, weighted by ratios without a graph: every token keeps its credit at either level."""


class CreditGRPOTrainer(GRPOTrainer):
    """Train with TRL, and take the advantage of every token from a stack of operators.

    TRL samples, judges and updates as always; ``scale_rewards`` has no effect, since the stack makes the advantages
    (``GRPO(normalize_std=True)`` divides by the deviation). What the stack does not read costs nothing: completions are
    read once more only for ``old_logprobs`` and ``entropy``.

    With tools, an ``environment_factory``, or the ``env_mask`` of a ``rollout_func``, a completion is an episode, and
    what the policy writes between two answers is a turn. TRL has one reward for an episode, which is the reward of the
    last turn unless a reward function calls ``log_extra("turn_rewards", lists)``, or ``rollout_func`` returns
    ``turn_rewards``: for each completion a list with a number for each turn, or None.

    Args:
        *args: Arguments of ``trl.GRPOTrainer``.
        stack: Operators, as instances or as ``["GRPO", "GTPO(beta=0.1)"]``; the name of a condition, as
            ``sepa_paper/c8_maxrl_sepa``; or a file in YAML.
        **kwargs: Further arguments of ``trl.GRPOTrainer``.

    Attributes:
        stack: The stack; ``stack.rollout`` is the last batch with its credit, which ``credit_heatmap`` draws.

    Raises:
        StackError: the list is no program, or an operator needs what TRL does not give.
        ValueError: a setting of TRL would give credit a second time, keep differences between the tokens of a
            completion from the gradient, or divide groups between processes; an entry of the stack names no operator.

    """

    def __init__(self, *args: Any, stack: StackSource, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.stack = load_stack(stack, seed=self.args.seed)
        self._rewards = torch.empty(0)
        self._turn_rewards: list[Sequence[float] | None] = []
        self.reward_funcs = [
            scorer if isinstance(scorer, torch.nn.Module) else check_rewards(scorer) for scorer in self.reward_funcs
        ]
        self._decode = make_piece_decoder(self._tokenizer)
        names = ("completion_ids", "prompt_ids", "turn_rewards", "states", "decode", "step", *SCORED_ARGUMENTS)
        arguments = dict.fromkeys(names, True)
        self.stack.refuse_missing({**arguments, "ref_logprobs": self.beta or None}, "TRL", TRL_REPAIRS)
        refuse_settings(cast(GRPOConfig, self.args))

    def _calculate_rewards(self, inputs: list[dict[str, Any]], *args: Any, **kwargs: Any) -> Tensor:
        """Keep the rewards of all functions and processes, and rewards of turns, which TRL does not hand on."""
        self._rewards = super()._calculate_rewards(inputs, *args, **kwargs)
        columns = {"turn_rewards": [row.get("turn_rewards") for row in inputs], **self._pending_extra_logs}
        self._turn_rewards = columns["turn_rewards"]
        return self._rewards

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        """Replace TRL's advantages of completions by the stack's of tokens, before rows are shuffled."""
        batch = super()._generate_and_score_completions(inputs)
        training = cast(torch.nn.Module, self.model).training
        stack = self.stack if training else self.stack.copy_for_evaluation()
        size = cast(int, self.num_generations if training else self.num_generations_eval)
        rows = len(batch["completion_ids"])
        if rows % size:
            raise ValueError(
                f"a process has {rows} completions and groups have {size}, so that groups lie on several processes. "
                "Make per_device_train_batch_size * steps_per_generation a multiple of num_generations."
            )
        start = self.accelerator.process_index * rows
        rewards = self._rewards[start : start + rows]
        row_rewards = (rewards * self.reward_weights.to(rewards)).nansum(-1).where(~rewards.isnan().all(-1), torch.nan)
        mask = batch["completion_mask"].bool()
        if "tool_mask" in batch:
            mask = mask & batch["tool_mask"].bool()
        batch["advantages"] = assign_credit(
            stack,
            completion_ids=batch["completion_ids"],
            mask=mask,
            rewards=row_rewards,
            groups=torch.arange(rows) // size,
            ref_logprobs=batch.get("ref_per_token_logps"),
            prompt_ids=batch["prompt_ids"].where(batch["prompt_mask"].bool(), -1),
            turn_rewards=self._turn_rewards,
            decode=self._decode,
            step=self.state.global_step,
            giver="TRL",
            **self._score_tokens(batch),
        )
        if not is_flat(batch["advantages"], mask):
            refuse_flattening(cast(GRPOConfig, self.args))
        self._log_credit(stack, batch["advantages"], mask, "train" if training else "eval")
        return batch

    @torch.no_grad()
    def _score_tokens(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        """Return log-probabilities and entropies of sampled tokens as far as the stack reads them."""
        needs = self.stack.list_needs()
        if not needs.keys() & {*SCORED_ARGUMENTS}:
            return {}
        if batch.get("old_per_token_logps") is not None and "entropy" not in needs:
            return {"old_logprobs": batch["old_per_token_logps"]}
        if "pixel_values" in batch:
            raise ValueError(
                f"{needs.get('entropy') or needs['old_logprobs']} reads tokens of prompts with images, which "
                "is not supported. Take it out of the stack."
            )
        logprobs, entropies, *_ = self._get_per_token_logps_and_entropies(
            self.model,
            torch.cat([batch["prompt_ids"], batch["completion_ids"]], 1),
            torch.cat([batch["prompt_mask"], batch["completion_mask"]], 1),
            batch["completion_ids"].shape[1],
            batch_size=self.args.per_device_train_batch_size,
            compute_entropy=True,
        )
        return {"old_logprobs": logprobs, "entropy": entropies}

    def _log_credit(self, stack: BridgedStack, advantages: Tensor, mask: Tensor, mode: str) -> None:
        """Log what operators report, and the mean credit of completions in place of TRL's advantages."""
        for name, value in sorted(stack.metrics.items()):
            everywhere = self._gather(torch.tensor([value], device=advantages.device))
            self._metrics[mode][name].append(everywhere.mean().item())
        means = self._gather(advantages.sum(-1) / mask.sum(-1).clamp(min=1)).tolist()
        log = self._logs["advantages"]
        for _ in means:
            log.pop()
        log.extend(means)

    def _gather(self, values: Tensor) -> Tensor:
        """Return the values of all processes."""
        return cast(Tensor, self.accelerator.gather(values))

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        """Save what operators have learned beside the rest of a checkpoint."""
        super()._save_checkpoint(model, trial)
        if self.args.should_save:
            folder = Path(self._get_output_dir(trial=trial)) / f"checkpoint-{self.state.global_step}"
            torch.save(self.stack.state_dict(), folder / STACK_STATE_FILE)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        """Restore what operators had learned when the checkpoint was saved."""
        super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint is not None and (file := Path(checkpoint) / STACK_STATE_FILE).is_file():
            self.stack.load_state_dict(torch.load(file, map_location="cpu", weights_only=True))


def is_flat(advantages: Tensor, mask: Tensor) -> bool:
    """True if all tokens of a completion have the same credit, up to rounding, in every completion.

    Args:
        advantages: Credit, shape ``(B, T)``.
        mask: True on sampled tokens, shape ``(B, T)`` bool.

    """
    means = masked_mean(advantages, mask, dim=-1, keepdim=True).expand(advantages.shape)
    return torch.allclose(advantages[mask], means[mask], rtol=1e-4, atol=1e-7)


def refuse_flattening(config: GRPOConfig) -> None:
    """Refuse settings under which credit that differs between the tokens of a completion does not reach the gradient.

    Raises:
        ValueError: with the setting and the repair.

    """
    if config.importance_sampling_level == "sequence" and config.loss_type not in WITH_LOGPROBS:
        raise ValueError(
            f"importance_sampling_level='sequence' with loss_type={config.loss_type!r} lets only the mean credit of a "
            "completion reach the gradient, and this stack gives its tokens different credit. Set "
            "importance_sampling_level to 'token'."
        )
    if config.top_entropy_quantile < 1:
        raise ValueError(
            f"top_entropy_quantile={config.top_entropy_quantile:g} takes away the credit of all other tokens, and this "
            "stack gives tokens different credit. Set it to 1; EntropyMask in the stack does the same."
        )


def refuse_settings(config: GRPOConfig) -> None:
    """Refuse settings of TRL that give credit a second time, and warn of those that change its size.

    Raises:
        ValueError: with the setting and the repair.

    """
    if config.multi_objective_aggregation != "sum_then_normalize":
        raise ValueError(
            f"multi_objective_aggregation={config.multi_objective_aggregation!r} makes advantages of its own. Set it "
            "to 'sum_then_normalize': the stack is given the weighted sum of the rewards."
        )
    if config.loss_type == "cispo" and (config.epsilon_high or config.epsilon) < 1:
        warnings.warn(
            "loss_type='cispo' clamps the ratio itself at epsilon_high: below one, all gradients shrink. Set it to 4 "
            "or more.",
            StackWarning,
            stacklevel=3,
        )
    if config.loss_type == "luspo":
        warnings.warn("loss_type='luspo' multiplies credit by the length of a completion.", StackWarning, stacklevel=3)
