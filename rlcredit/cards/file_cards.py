"""A card of one batch from a file, whoever has sampled it: what needs no run and no test policy."""

import argparse
import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from lightning.pytorch import Trainer
from numpy.typing import NDArray

from rlcredit.base.files import file_sha256
from rlcredit.bridge.assignment import refuse_partial_rewards
from rlcredit.bridge.bridged_stack import BridgedStack
from rlcredit.bridge.stack_file import make_operators
from rlcredit.cards.builder import build_card
from rlcredit.cards.card import BASELINE_VERDICT, ROLLOUT_BUDGET, UNTRAINED_SENTENCE, UNTRAINED_VERDICT, Card
from rlcredit.cards.card_batch import HEATMAP_ROWS, CreditedBatch
from rlcredit.cards.condition import CardCondition
from rlcredit.cards.credit_effects import measure_credit_effects
from rlcredit.cards.finding import Finding
from rlcredit.cards.gradient_change import measure_gradient_change
from rlcredit.cli.policy_arguments import load_named_policy
from rlcredit.config.strict_yaml import shorten_name
from rlcredit.credit.contract import StackError
from rlcredit.credit.heatmap import credit_heatmap
from rlcredit.credit.rollout import Decode, Rollout
from rlcredit.decoding.sampling import Sampling
from rlcredit.policy.model_loading import load_tokenizer
from rlcredit.policy.pieces import make_piece_decoder
from rlcredit.policy.policy import Policy
from rlcredit.training.credit_gradients import compute_prompt_vectors
from rlcredit.training.module import PolicyModule
from rlcredit.training.nan_and_mismatch import rms_difference
from rlcredit.training.scored_samples import ROUNDED_TOLERANCE

MIN_BATCHES = 3
"""Batches of prompts whose gradients are compared, at least."""

MAX_BATCH_PROMPTS = 4
"""Prompts per batch of gradients, at most; as many as with every budget."""


@dataclass
class FileCards:
    """Report cards of one batch from a file and one baseline.

    Args:
        file: File that :meth:`Rollout.save` has written.
        baseline: Condition with which all others are compared.
        tokenizer: Folder, hub id, or ``tiny``: tokenizer of the batch, where it holds no texts.
        model: Folder, hub id, or ``tiny``: policy whose gradients are compared.
        adapter: Folder with the policy's adapter.
        temperature: Temperature at which the batch was sampled.

    Raises:
        ValueError: the file is no batch, or nothing that credit can be given to.

    """

    file: Path
    baseline: CardCondition
    tokenizer: str | None = None
    model: str | None = None
    adapter: Path | None = None
    temperature: float = 1.0
    _decode: Decode | None = field(default=None, init=False)
    _policy: Policy | None = field(default=None, init=False)
    _apart: float = field(default=0.0, init=False)
    _base: CreditedBatch | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        """Read the batch, its texts and its policy."""
        self.rollout = read_batch_file(self.file)
        if self.model or self.adapter:
            defaults = dict.fromkeys(("ckpt_path", "config", "thinking", "engine"))
            policy_options = argparse.Namespace(model=self.model, adapter=self.adapter, raw=False, **defaults)
            self._policy = load_named_policy(policy_options).policy
            self._apart = self._fit_policy(self._policy)
        if self.tokenizer:
            self._decode = make_piece_decoder(load_tokenizer(Policy(self.tokenizer).location))
        elif self._policy is not None:
            self._decode = make_piece_decoder(self._policy.tokenizer)
        if self._decode is not None and not self.rollout.has_fact("tokens"):
            self.rollout.tokens = [
                self.rollout.list_read_texts(row, self._decode) for row in range(len(self.rollout.mask))
            ]

    @property
    def name(self) -> str:
        """Name of the batch, which folders can have."""
        return re.sub(r"[^\w.-]+", "-", self.file.stem).strip("-.") or "batch"

    def make_card(self, candidate: CardCondition) -> Card:
        """Return the card of a condition.

        Raises:
            StackError: an operator needs what the batch does not hold.

        """
        if self._base is None:
            self._base = self._measure_condition(self.baseline)
        is_baseline = candidate.content["trainer"] == self.baseline.content["trainer"]
        batch = self._base if is_baseline else self._measure_condition(candidate)
        candidate.refuse_edits()
        return build_card(
            candidate,
            self.baseline,
            batch,
            self._base,
            self._measure_sections(batch, self._base),
            origin=str(self.file),
            fingerprint=file_sha256(self.file),
            organism=self.name,
            budget=ROLLOUT_BUDGET,
            verdict=BASELINE_VERDICT if is_baseline else UNTRAINED_VERDICT,
            sentence=f"{_describe_batch(self.rollout)}. {UNTRAINED_SENTENCE}",
            policy=self._name_policy(),
        )

    def _name_policy(self) -> str:
        """Return the options that name tokenizer and policy."""
        values = {"--tokenizer": self.tokenizer, "--model": self.model, "--adapter": self.adapter}
        words = [f"{option} {value}" for option, value in values.items() if value is not None]
        return " ".join([*words, f"--temperature {self.temperature:g}"] if self._policy else words)

    def _measure_condition(self, condition: CardCondition) -> CreditedBatch:
        """Assign credit to the batch twice, so that gates are open and averages have begun; measure the second time."""
        stack = BridgedStack(make_operators(condition.content["trainer"]["callbacks"], condition.origin))
        self._refuse_missing(stack)
        stack.assign(self.rollout)
        credited_rollout = stack.assign(self.rollout)
        credited_rollout.sources = self.rollout.sources
        page = credit_heatmap(credited_rollout, completions=HEATMAP_ROWS, decode=self._decode)
        gradients = None if self._policy is None else self._compute_gradients(self._policy, credited_rollout)
        return CreditedBatch(stack=stack.operators, rollout=credited_rollout, page=page, gradients=gradients)

    def _refuse_missing(self, stack: BridgedStack) -> None:
        """Refuse a stack that needs what the batch does not hold."""
        name, needs = shorten_name(self.file.name), stack.list_needs()
        if "decode" in needs and not self.rollout.has_fact("tokens"):
            raise StackError(
                f"{needs['decode']} reads the texts of tokens, which {name} does not hold. Name the tokenizer: "
                "--tokenizer FOLDER."
            )
        facts = ("completion_ids", "old_logprobs", "entropy", "ref_logprobs", "sum_pi_squared", "prompt_ids")
        presence = {fact: self.rollout.has_fact(fact) or None for fact in facts}
        stack.refuse_missing({**presence, "decode": True, "step": self.rollout.step}, name)
        judgements = self.rollout.correct[self.rollout.judged]
        verdicts = self.rollout.verdicts if ((judgements == 0) | (judgements == 1)).all() else None
        refuse_partial_rewards(stack, self.rollout.given_rewards, verdicts, "Give verdicts as `correct`")

    def _measure_sections(self, batch: CreditedBatch, base: CreditedBatch) -> dict[str, list[Finding]]:
        """Return the findings; a bound on credit is one for rewards from zero to one."""
        rewards = self.rollout.judged_rewards
        is_bounded = not ((rewards < 0) | (rewards > 1)).any()
        effects = measure_credit_effects(batch, base)
        sections = {"batch": [finding for finding in effects if is_bounded or finding.name != "saturated"]}
        if batch.gradients is not None:
            size = max(1, min(MAX_BATCH_PROMPTS, len(self.rollout.mask) // self.rollout.group_size // MIN_BATCHES))
            sections["gradient"] = [*measure_gradient_change(batch, base, size), _describe_distance(self._apart)]
        return sections

    def _fit_policy(self, policy: Policy) -> float:
        """Move the batch to the policy's device, and return how far its log-probabilities lie from the policy's."""
        device = next(policy.parameters()).device
        for name, value in vars(self.rollout).items():
            if isinstance(value, torch.Tensor):
                vars(self.rollout)[name] = value.to(device)
        facts = self.rollout
        largest, vocabulary_size = (
            int(facts.completion_ids[facts.mask].max()),
            policy.lm.get_input_embeddings().num_embeddings,
        )
        faults = {
            "no token ids": not facts.has_fact("completion_ids"),
            "no prompts": not facts.has_fact("prompt_ids"),
            f"token {largest}, and {policy.path} has {vocabulary_size}": largest >= vocabulary_size,
        }
        if fault := next((name for name, is_fault in faults.items() if is_fault), None):
            raise ValueError(
                f"{shorten_name(self.file.name)} holds {fault}. Leave out --model, --adapter and --temperature."
            )
        module, trainer = self._make_module(policy)
        tensors = (facts.prompt_ids, facts.completion_ids, facts.mask)
        scores = module.scorer.score_without_graph(*tensors, self.temperature, trainer.precision_plugin.forward_context)
        if not facts.has_fact("old_logprobs"):
            facts.old_logprobs = scores.logprobs
        return rms_difference(scores.logprobs, facts.old_logprobs, facts.mask)

    def _make_module(self, policy: Policy) -> tuple[PolicyModule, Trainer]:
        quiet = dict.fromkeys(("logger", "enable_progress_bar", "enable_model_summary", "enable_checkpointing"), False)
        sampling = Sampling(temperature=self.temperature)
        trainer = Trainer(accelerator="cpu", devices=1, deterministic=True, **quiet)
        return PolicyModule(policy=policy, sampling=sampling), trainer

    def _compute_gradients(self, policy: Policy, rollout: Rollout) -> NDArray[np.float32]:
        """Return the gradient of the loss of each prompt."""
        module, trainer = self._make_module(policy)
        return compute_prompt_vectors(trainer, module, rollout, rollout.credit).cpu().numpy()


def read_batch_file(file: Path) -> Rollout:
    """Return the batch of a file, ready to get credit.

    Raises:
        ValueError: the file is no batch, or holds rewards that are none.

    """
    if not file.is_file():
        raise ValueError(f"--rollout: there is no file {shorten_name(str(file))}. Write one with Rollout.save.")
    rollout = Rollout.load(file)
    if not rollout.mask.any():
        raise ValueError(f"{shorten_name(file.name)} holds no token. Its mask is empty.")
    for name, values in (("correct", rollout.verdicts), ("rewards", rollout.judged_rewards)):
        if not values[rollout.judged].isfinite().all():
            row = int((~values.isfinite() & rollout.judged).nonzero()[0])
            raise ValueError(
                f"{shorten_name(file.name)}: {name} is {values[row]:g} in row {row}. Set judged to false where nobody "
                "can tell."
            )
    if rollout.ref_log_ratio is None and rollout.ref_logprobs is not None:
        rollout.ref_log_ratio = rollout.old_logprobs - rollout.ref_logprobs
    return rollout


def _describe_distance(distance: float) -> Finding:
    """Return the distance of the policy from the one that sampled the batch."""
    foreign_sentence = (
        "The policy is not the one that sampled this batch, or not at this temperature: the gradient is weighted."
    )
    sentence = "The policy is the one that sampled this batch." if distance < ROUNDED_TOLERANCE else foreign_sentence
    return Finding("distance", "distance of log-probabilities", distance, "nats", sentence=sentence)


def _describe_batch(rollout: Rollout) -> str:
    """Return the description of a batch, in words."""
    rows, tokens = int(rollout.mask.any(-1).sum()), int(rollout.mask.sum())
    prompts = len(rollout.mask) // rollout.group_size
    rewards = rollout.rewards[rollout.judged & rollout.mask.any(-1)]
    if ((rewards == 0) | (rewards == 1)).all():
        summary = f"{100 * rewards.mean():.0f} % right" if len(rewards) else "none judged"
    else:
        summary = f"rewards from {rewards.min():.3g} to {rewards.max():.3g}"
    return f"{rows:,} completions of {prompts:,} prompts at step {rollout.step}, {summary}, {tokens:,} tokens in all"
