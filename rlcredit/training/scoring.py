"""Log-probabilities of sampled tokens under the trainer's policy: with gradients for an update, without for checks."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor
from torch.nn.functional import pad

from rlcredit.credit.alternatives import WeightedTokens
from rlcredit.credit.rollout import Rollout
from rlcredit.credit.token_counts import count_sequence_tokens
from rlcredit.formulas.distributed import find_largest_number
from rlcredit.policy.policy import Policy, PromptContext, TokenScores
from rlcredit.training.micro_batches import MicroBatches, choose_scored_tokens, split_rows_by_tokens
from rlcredit.training.nan_and_mismatch import trainable_weights
from rlcredit.training.recomputation import recompute_in_backward

Read = TypeVar("Read")


class UpdateScores(NamedTuple):
    """Scores by the policy that is trained.

    Attributes:
        logprobs: Log pi of the sampled tokens with graph, ``(B, T)``.
        entropy: Entropy of the policy, ``(B, T)``.
        alternatives: Log pi of the tokens that have credit without being sampled, with graph, ``(N,)``; None if there
            are none.
        continuations: Log pi of the tokens of continuations, with graph, ``(N, T')``; None if there are none.

    """

    logprobs: Tensor
    entropy: Tensor
    alternatives: Tensor | None = None
    continuations: Tensor | None = None


class UpdateSequences(NamedTuple):
    """What an update reads: the completions of a mini-batch and, below them, the N whole answers of continuations.

    Attributes:
        prompt_ids: Left-padded prompts, ``(B + N, L)``.
        completion_ids: Right-padded answers, those of continuations with the prefix that they share, ``(B + N, W)``.
        mask: True on the tokens of answers, ``(B + N, W)``.
        alternatives: Other tokens with credit, in the rows of completions; None if there are none.

    """

    prompt_ids: Tensor
    completion_ids: Tensor
    mask: Tensor
    alternatives: WeightedTokens | None

    def count_tokens(self, rows: Tensor) -> int:
        """Count the tokens of some answers, and of their distinct prompts."""
        return count_sequence_tokens(self.prompt_ids[rows], self.mask[rows])


def list_update_sequences(rollout: Rollout) -> UpdateSequences:
    """Return the sequences that an update reads of a mini-batch."""
    extra = rollout.continuations
    if extra is None:
        return UpdateSequences(rollout.prompt_ids, rollout.completion_ids, rollout.mask, rollout.alternatives)
    answers, answer_mask = extra.join_prefixes(rollout.completion_ids)
    padding = (0, answers.shape[1] - rollout.mask.shape[1])
    return UpdateSequences(
        torch.cat([rollout.prompt_ids, rollout.prompt_ids[extra.rows]]),
        torch.cat([pad(rollout.completion_ids, padding), answers]),
        torch.cat([pad(rollout.mask, padding), answer_mask]),
        rollout.alternatives,
    )


def number_update_sequences(rollout: Rollout, rows: Tensor) -> Tensor:
    """Return the numbers of some completions and of all continuations that have a gradient.

    Args:
        rollout: The mini-batch of an update.
        rows: Numbers of completions, shape ``(N,)``.

    """
    if rollout.continuations is None:
        return rows
    return torch.cat([rows, len(rollout.mask) + rollout.continuations.find_credited(rollout.judged)])


class RolloutScorer:
    """Score completions under the trained policy, grouped by similar length.

    Args:
        policy: The policy that is trained.
        temperature: Logits are divided by it, in sampling and in every update alike.
        update_batches: How many completions an update computes at a time.
        scoring_batches: How many completions are scored at a time without graph.
        keeps_entropy_graph: Whether the loss has gradients through the entropy.

    """

    def __init__(
        self,
        policy: Policy,
        temperature: float,
        update_batches: MicroBatches,
        scoring_batches: MicroBatches,
        keeps_entropy_graph: bool,
    ) -> None:
        self.policy = policy
        self.temperature = temperature
        self.update_batches = update_batches
        self.scoring_batches = scoring_batches
        self.keeps_entropy_graph = keeps_entropy_graph

    def score_for_update(self, rollout: Rollout, rows: Tensor) -> UpdateScores:
        """Score some rows, and continuations that have a gradient; others keep the scores of sampling, without one.

        Micro-batches are computed again in the backward pass; without them all parts stay in memory. A continuation
        is read as a row of its own, from its prompt on.

        Args:
            rollout: The mini-batch of an update.
            rows: Numbers of the rows to score, shape ``(N,)``, at least one.

        """
        read, numbers = list_update_sequences(rollout), number_update_sequences(rollout, rows)
        numbers = numbers[read.mask.sum(-1)[numbers].argsort(stable=True)]
        width = self._trim_prompts(read, numbers).shape[1]
        lengths = (read.mask.sum(-1)[numbers] + width).tolist()
        cut = self.update_batches.split_batch(lengths, lambda part: self._try_gradient(read, numbers[part]))
        cut, spare = add_spare_passes(self.policy, cut)
        if len(cut) > 1:
            scores = [self._score_with_recomputation(read, numbers[part]) for part in cut]
        else:
            scores = self._score_at_once(read, numbers)
        scores, spare_scores = scores[: len(scores) - spare], scores[len(scores) - spare :]
        logprobs, entropy, *alternatives = zip(*scores, strict=True)
        logprobs, entropy = torch.cat(logprobs), torch.cat(entropy)
        for values in spare_scores:
            logprobs = logprobs + 0 * values[0].sum()  # their backward passes are those that the others make
        alternative_logprobs = torch.stack(alternatives[0]).sum(0) if alternatives else None
        is_completion, columns = numbers < len(rollout.mask), rollout.mask.shape[1]
        return UpdateScores(
            rollout.old_logprobs.index_copy(0, numbers[is_completion], logprobs[is_completion, :columns]),
            rollout.entropy.index_copy(0, numbers[is_completion], entropy[is_completion, :columns]),
            alternative_logprobs,
            self._pick_continuations(rollout, numbers[~is_completion] - len(rollout.mask), logprobs[~is_completion]),
        )

    def _pick_continuations(self, rollout: Rollout, numbers: Tensor, logprobs: Tensor) -> Tensor | None:
        """Return the log-probabilities of continuations, those that were not scored as they were.

        Args:
            rollout: The mini-batch of an update.
            numbers: Numbers of the continuations that were scored, shape ``(M,)``.
            logprobs: Log-probabilities of their whole answers, shape ``(M, W)``.

        """
        extra = rollout.continuations
        if extra is None:
            return None
        chosen_branches = extra.keep(numbers)
        places = chosen_branches.places[:, None] + torch.arange(extra.mask.shape[1], device=numbers.device)
        branch_logprobs = logprobs.gather(1, places.clamp(max=logprobs.shape[1] - 1)).where(chosen_branches.mask, 0)
        return extra.logprobs.index_copy(0, numbers, branch_logprobs)

    def _score_at_once(self, read: UpdateSequences, rows: Tensor) -> list[tuple[Tensor, ...]]:
        """Score rows of ascending length, every prompt read once."""
        with self.policy.merge_for_gradients():
            context = self.policy.read_prompts(self._trim_prompts(read, rows))
            cut = split_micro_batch(self.policy, read.mask.sum(-1)[rows].tolist())
            return [self._score_rows(read, rows[part], context.select_rows(part)) for part in cut]

    def _score_with_recomputation(self, read: UpdateSequences, rows: Tensor) -> tuple[Tensor, ...]:
        """Score some rows, and once more in the backward pass."""
        prompt_ids = self._trim_prompts(read, rows)

        def score() -> tuple[Tensor, ...]:
            with self.policy.merge_for_gradients():
                return self._score_rows(read, rows, self.policy.read_prompts(prompt_ids))

        weights = list(trainable_weights(self.policy).values())
        return recompute_in_backward(score, weights)

    def _score_rows(self, read: UpdateSequences, rows: Tensor, context: PromptContext) -> tuple[Tensor, ...]:
        """Score some rows after their prompts, without columns that are padding in all of them.

        Returns:
            Log-probabilities and entropy; if alternatives have credit, their log-probabilities too, zero in other rows.

        """
        width = int(read.mask[rows].sum(-1).max())
        completion_ids = read.completion_ids[rows, :width]
        states = self.policy.predicting_states(context, completion_ids)
        scores = self.policy.score_states(states, completion_ids, self.temperature)
        padding = (0, read.mask.shape[1] - width)
        entropy = scores.entropy if self.keeps_entropy_graph else scores.entropy.detach()
        token_scores = pad(scores.logprobs, padding), pad(entropy, padding)
        if read.alternatives is None:
            return token_scores
        numbers, others = read.alternatives.select_rows(rows, len(read.mask))
        predicting = states.flatten(0, 1).index_select(0, others.rows * states.shape[1] + others.places)
        logprobs = self.policy.score_states(predicting, others.tokens, self.temperature).logprobs
        return *token_scores, torch.zeros_like(read.alternatives.logprobs).index_copy(0, numbers, logprobs)

    def _try_gradient(self, read: UpdateSequences, rows: Tensor) -> None:
        """Compute the gradient of some rows and discard it, to find out whether memory suffices."""
        scores = torch.cat([logprobs.flatten() for logprobs, *_ in self._score_at_once(read, rows)])
        weights = list(trainable_weights(self.policy).values())
        torch.autograd.grad(scores.sum(), weights, allow_unused=True)

    def _trim_prompts(self, read: UpdateSequences, rows: Tensor) -> Tensor:
        """Return the prompts of some rows, without columns that are padding in all of them."""
        prompt_ids = read.prompt_ids[rows]
        return prompt_ids[:, self.policy.prompt_mask(prompt_ids).any(0)]

    def score_without_graph(
        self,
        prompt_ids: Tensor,
        completion_ids: Tensor,
        mask: Tensor,
        temperature: float,
        precision: Callable[[], AbstractContextManager[None]],
        adapter: bool = True,
    ) -> TokenScores:
        """Score completions without graph, as many at a time as memory allows.

        Args:
            prompt_ids: Left-padded prompts, shape ``(B, L)``.
            completion_ids: Right-padded completions, shape ``(B, T)``.
            mask: True on sampled tokens, shape ``(B, T)``; scores are zero elsewhere.
            temperature: Logits are divided by it.
            precision: Opens the context in which the trainer computes.
            adapter: Whether the adapter acts. One that changes nothing leaves every bit of the scores as it is.

        """

        def score(rows: Tensor, context: PromptContext, completions: Tensor) -> tuple[Tensor, ...]:
            scores = self.policy.score_completions(context, completions, temperature)
            return rows, *(pad(values, (0, mask.shape[1] - completions.shape[1])) for values in scores)

        acting = self.policy.merge_for_gradients if adapter else self.policy.disable_adapter
        with torch.no_grad():
            parts = [
                part
                for micro_batch in read_by_length(
                    self.policy, self.scoring_batches, prompt_ids, completion_ids, mask, score, precision, acting
                )
                for part in micro_batch
            ]
        rows, *scores = map(torch.cat, zip(*parts, strict=True))
        place = rows.argsort()
        return TokenScores(*(values[place].where(mask, 0) for values in scores))


def read_by_length(
    policy: Policy,
    batches: MicroBatches,
    prompt_ids: Tensor,
    completion_ids: Tensor,
    mask: Tensor,
    read: Callable[[Tensor, PromptContext, Tensor], Read],
    precision: Callable[[], AbstractContextManager[None]],
    acting: Callable[[], AbstractContextManager[None]],
) -> Iterator[list[Read]]:
    """Call ``read`` with completions of similar length, micro-batch by micro-batch, in evaluation mode.

    Args:
        policy: Policy that reads.
        batches: How many completions are read at a time.
        prompt_ids: Left-padded prompts, shape ``(B, L)``.
        completion_ids: Right-padded completions, shape ``(B, T)``.
        mask: True on sampled tokens, shape ``(B, T)``.
        read: Function of some rows, shape ``(N,)``, their prompts, and their tokens, shape ``(N, T')``, T' being the
            longest of them.
        precision: Opens the context in which the trainer computes.
        acting: Opens the context in which an adapter acts, or none; anew for each micro-batch, because the backward
            pass of one frees what it shares.

    """
    lengths, order = mask.sum(-1).clamp(min=1).sort(stable=True)

    def read_micro_batch(micro_batch: slice) -> list[Read]:
        rows, tokens = order[micro_batch], lengths[micro_batch].tolist()
        with acting():
            context = policy.read_prompts(prompt_ids[rows])
            return [
                read(rows[part], context.select_rows(part), completion_ids[rows[part], : tokens[part.stop - 1]])
                for part in split_micro_batch(policy, tokens)
            ]

    with policy.evaluation_mode(), precision():
        cut = batches.split_batch((lengths + prompt_ids.shape[1]).tolist(), read_micro_batch)
        cut, spare = add_spare_passes(policy, cut)
        for number, micro_batch in enumerate(cut):
            results = read_micro_batch(micro_batch)
            if number < len(cut) - spare:
                yield results


def split_micro_batch(policy: Policy, lengths: Sequence[int]) -> list[slice]:
    """Return the rows of a micro-batch that are read together after their prompts; all, if every pass is an exchange.

    Args:
        policy: Policy that reads.
        lengths: Tokens of each completion, ascending.

    """
    if policy.is_sharded:
        return [slice(0, len(lengths))]
    return split_rows_by_tokens(lengths, choose_scored_tokens(policy.device.type))


def add_spare_passes(policy: Policy, cut: list[slice]) -> tuple[list[slice], int]:
    """Return micro-batches, and how many at the end are there only because another process has so many more.

    Args:
        policy: Policy that reads; if its layers lie in parts, every process must make as many passes.
        cut: Micro-batches of this process.

    """
    if not policy.is_sharded:
        return cut, 0
    spare = find_largest_number(len(cut), policy.device) - len(cut)
    return [*cut, *[slice(0, 1)] * spare], spare
