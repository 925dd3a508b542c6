"""Log-probabilities of sampled tokens under the trainer's policy: with gradients for an update, without for checks."""

import contextlib
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
from rlcredit.formulas.turns import find_read_lengths
from rlcredit.policy.memory import PassSize, UpdateCost, estimate_update_cost
from rlcredit.policy.packed_forward import PackedForward, find_packed_forward
from rlcredit.policy.policy import Policy, PromptContext, TokenScores
from rlcredit.training.micro_batches import (
    PACKED_TOKENS,
    MicroBatches,
    Part,
    choose_scored_tokens,
    find_update_room,
    mark_new_prompts,
    split_rows_by_tokens,
    split_rows_in_order,
)
from rlcredit.training.nan_and_mismatch import trainable_weights
from rlcredit.training.recomputation import attach_gradients, recompute_in_backward

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
        mask: True on the sampled tokens of answers, ``(B + N, W)``.
        alternatives: Other tokens with credit, in the rows of completions; None if there are none.

    """

    prompt_ids: Tensor
    completion_ids: Tensor
    mask: Tensor
    alternatives: WeightedTokens | None

    def count_tokens(self, rows: Tensor) -> int:
        """Count the tokens of some answers, and of their distinct prompts."""
        return count_sequence_tokens(self.prompt_ids[rows], self.mask[rows])

    def copy_to_host(self) -> "UpdateSequences":
        """Return copies on the CPU."""
        alternatives = self.alternatives and WeightedTokens(*(values.cpu() for values in self.alternatives))
        return UpdateSequences(self.prompt_ids.cpu(), self.completion_ids.cpu(), self.mask.cpu(), alternatives)


def list_update_sequences(rollout: Rollout) -> UpdateSequences:
    """Return the sequences that an update reads of a mini-batch."""
    extra = rollout.continuations
    if extra is None:
        return UpdateSequences(rollout.prompt_ids, rollout.completion_ids, rollout.mask, rollout.alternatives)
    answers, answer_mask = extra.join_prefixes(rollout.completion_ids, rollout.mask)
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


class UpdatePlan(NamedTuple):
    """How the sequences of an update are read; it is made before the first of them is.

    Attributes:
        read: The sequences.
        host: The same on the CPU, where they are laid out.
        parts: Numbers of the sequences of each part, on the CPU.
        spare: Parts at the end that are read only because another process has so many more.
        part: How a part is computed.
        graph_bytes: Bytes that the graph of the largest part is forecast to take; 0 if layers are computed again.
        room: Bytes that are free for a part.
        reader: Pass without padding; None where the model's own is used.

    """

    read: UpdateSequences
    host: UpdateSequences
    parts: list[Tensor]
    spare: int
    part: Part
    graph_bytes: float
    room: float
    reader: PackedForward | None


class RolloutScorer:
    """Score completions under the trained policy, as many at a time as memory allows.

    Policies of a known architecture are read without padding (:mod:`rlcredit.policy.packed_forward`); others, and small
    ones on a CPU, by the model's own forward pass, in order of length.

    Args:
        policy: The policy that is trained.
        temperature: Logits are divided by it, in sampling and in every update alike.
        update_batches: How many tokens an update computes at a time.
        scoring_batches: How many tokens are scored at a time without graph.
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

        The graph holds until the loss is known: where it does not fit, layers are computed again in the backward pass,
        or whole parts. A continuation is read as a row of its own, from its prompt on.

        Args:
            rollout: The mini-batch of an update.
            rows: Numbers of the rows to score, shape ``(N,)``, at least one.

        """
        plan = self.plan_update(rollout, rows, is_separate=False)
        scores = [self._score_part(plan, numbers) for numbers in plan.parts]
        return collect_scores(rollout, plan, scores)

    def score_with_loss(
        self, rollout: Rollout, rows: Tensor, compute_loss: Callable[[UpdateScores], Tensor], *, is_separate: bool
    ) -> tuple[UpdateScores, Tensor]:
        """Score as :meth:`score_for_update` does, and compute the loss.

        Where parts are separate, each has its backward pass before the next part is read: nothing is computed twice,
        and no more than one graph is held. The loss must then give a row the same gradient whatever the scores of other
        rows are (``row_wise`` of :class:`rlcredit.losses.base.PolicyLoss`).

        Args:
            rollout: The mini-batch of an update.
            rows: Numbers of the rows to score, shape ``(N,)``, at least one.
            compute_loss: Function of the scores of the mini-batch.
            is_separate: Whether parts may be separate.

        Returns:
            Scores, and the loss with its graph, or with gradients that are known by then.

        """
        plan = self.plan_update(rollout, rows, is_separate=is_separate)
        with self.update_batches.measure_memory(plan.graph_bytes, plan.room, self.policy.device):
            most_parts = find_largest_number(len(plan.parts), self.policy.device) if is_separate else 1
            if most_parts == 1:
                scores = collect_scores(rollout, plan, [self._score_part(plan, numbers) for numbers in plan.parts])
                return scores, compute_loss(scores)
            return self._differentiate_parts(rollout, plan, compute_loss, most_parts)

    def _differentiate_parts(
        self, rollout: Rollout, plan: UpdatePlan, compute_loss: Callable[[UpdateScores], Tensor], most_parts: int
    ) -> tuple[UpdateScores, Tensor]:
        """Return scores and loss part by part; ``most_parts`` is how many a process has at most."""
        weights = list(trainable_weights(self.policy).values())
        parts, totals = [], [torch.zeros_like(weight) for weight in weights]
        for numbers in plan.parts:
            part_scores = self._score_part(plan, numbers)
            loss = compute_loss(collect_scores(rollout, plan._replace(parts=[numbers]), [part_scores]))
            with torch.autocast(self.policy.device.type, enabled=False):
                gradients = torch.autograd.grad(loss, weights, allow_unused=True, materialize_grads=True)
            torch._foreach_add_(totals, gradients)  # pyright: ignore[reportPrivateImportUsage]
            parts.append(tuple(values.detach() for values in part_scores))
        scores = collect_scores(rollout, plan, parts)
        for _ in range(most_parts - len(plan.parts)):
            compute_loss(scores)  # the processes count tokens together
        return scores, attach_gradients(compute_loss(scores), totals, weights)

    def plan_update(self, rollout: Rollout, rows: Tensor, *, is_separate: bool) -> UpdatePlan:
        """Return the plan by which the sequences of an update are read.

        Args:
            rollout: The mini-batch of an update.
            rows: Numbers of the rows to score, shape ``(N,)``, at least one.
            is_separate: Whether each part has its backward pass before the next part is read.

        """
        read = list_update_sequences(rollout)
        host, numbers = read.copy_to_host(), number_update_sequences(rollout, rows).cpu()
        lengths, reader = find_read_lengths(host.mask)[numbers], find_packed_forward(self.policy)
        if reader is None:
            order = lengths.argsort(stable=True)
            numbers, lengths = numbers[order], lengths[order]
        prompts = host.prompt_ids[numbers]
        prompt_lengths = self.policy.prompt_mask(prompts).sum(-1)
        widths = (lengths + prompt_lengths.max()).tolist()
        is_new = mark_new_prompts(prompts)
        read_lengths = lengths + prompt_lengths * is_new
        tokens = int(read_lengths.sum()) if reader else len(widths) * widths[-1]
        cost, room = self._estimate_cost(reader, lengths, prompt_lengths, tokens), find_policy_room(self.policy)
        part = self.update_batches.choose_part(cost, tokens, room, is_separate=is_separate)
        if reader:
            cut = split_rows_in_order(lengths, prompt_lengths, is_new, part.tokens)
        else:
            cut = split_rows_by_tokens(widths, part.tokens)
        cut, spare = add_spare_passes(self.policy, cut)
        largest = max(int(read_lengths[rows_of_part].sum()) for rows_of_part in cut)
        is_whole = reader is not None and not part.recomputed_layers and not part.is_recomputed
        graph_bytes = largest * cost.graph if is_whole else 0.0
        parts = [numbers[rows_of_part] for rows_of_part in cut]
        return UpdatePlan(read, host, parts, spare, part, graph_bytes, room, reader)

    def _estimate_cost(
        self, reader: PackedForward | None, lengths: Tensor, prompt_lengths: Tensor, tokens: int
    ) -> UpdateCost:
        """Return the bytes that a token takes, of sequences with so many tokens in all, ``(N,)`` lengths of each."""
        widths = lengths + prompt_lengths
        keys = int(widths.sum()) if reader and reader.is_flat else len(widths) * int(widths.max())
        return estimate_update_cost(
            self.policy.architecture,
            self.policy.dtype,
            PassSize(len(widths), int(prompt_lengths.max()), len(widths), int(lengths.max())),
            rank=self.policy.lora.rank,
            is_packed=reader is not None,
            is_mixed=torch.is_autocast_enabled(self.policy.device.type),
            keys_per_token=keys / tokens,
        )

    def _score_part(self, plan: UpdatePlan, numbers: Tensor) -> tuple[Tensor, ...]:
        """Return log-probabilities and entropy of some sequences, ``(N, W)``, and log-probabilities of alternatives."""
        score = self._score_without_padding if plan.reader else self._score_at_once
        if not plan.part.is_recomputed:
            return score(plan, numbers)
        weights = list(trainable_weights(self.policy).values())
        return recompute_in_backward(lambda: score(plan, numbers), weights)

    def _score_without_padding(self, plan: UpdatePlan, numbers: Tensor) -> tuple[Tensor, ...]:
        """Score sequences in one row of tokens, every prompt read once."""
        assert plan.reader is not None
        host, rows, width = plan.host, len(numbers), plan.host.mask.shape[1]
        sequences = host.prompt_ids[numbers], host.completion_ids[numbers], host.mask[numbers]
        states, layout = plan.reader.read_rows(*sequences, plan.part.recomputed_layers)
        scores = self.policy.score_states(
            states, layout.targets, self.temperature, keeps_entropy=self.keeps_entropy_graph
        )
        zeros = torch.zeros(rows * width, device=states.device)
        logprobs, entropy = (
            zeros.index_copy(0, layout.cells, values).view(rows, width) for values in (scores.logprobs, scores.entropy)
        )
        if host.alternatives is None:
            return logprobs, entropy
        own_numbers, alternatives = host.alternatives.select_rows(numbers, len(host.mask))
        counts = host.mask[numbers].flatten().cumsum(0)
        states_before = counts[alternatives.rows * width + alternatives.places] - 1
        own_numbers, states_before, tokens = (
            move_index(index, states.device) for index in (own_numbers, states_before, alternatives.tokens)
        )
        return (
            logprobs,
            entropy,
            *self._score_alternatives(plan, own_numbers, states.index_select(0, states_before), tokens),
        )

    def _score_at_once(self, plan: UpdatePlan, numbers: Tensor) -> tuple[Tensor, ...]:
        """Score sequences of ascending length by the model's own pass, every prompt read once."""
        rows = numbers.to(self.policy.device)
        prompt_ids = plan.read.prompt_ids[rows]
        with self.policy.merge_for_gradients():
            context = self.policy.read_prompts(prompt_ids[:, self.policy.prompt_mask(prompt_ids).any(0)])
            cut = split_micro_batch(self.policy, find_read_lengths(plan.host.mask)[numbers].tolist())
            parts = [self._score_rows(plan, rows[part], context.select_rows(part)) for part in cut]
        logprobs, entropy, *alternatives = zip(*parts, strict=True)
        return torch.cat(logprobs), torch.cat(entropy), *(torch.stack(values).sum(0) for values in alternatives)

    def _score_rows(self, plan: UpdatePlan, rows: Tensor, context: PromptContext) -> tuple[Tensor, ...]:
        """Score some rows after their prompts, without columns that are padding in all of them."""
        read = plan.read
        width = int(find_read_lengths(read.mask[rows]).max())
        completion_ids = read.completion_ids[rows, :width]
        states = self.policy.predicting_states(context, completion_ids)
        scores = self.policy.score_states(states, completion_ids, self.temperature)
        padding = (0, read.mask.shape[1] - width)
        entropy = scores.entropy if self.keeps_entropy_graph else scores.entropy.detach()
        token_scores = tuple(pad(values, padding).where(read.mask[rows], 0) for values in (scores.logprobs, entropy))
        if read.alternatives is None:
            return token_scores
        numbers, alternatives = read.alternatives.select_rows(rows, len(read.mask))
        predicting = states.flatten(0, 1).index_select(0, alternatives.rows * states.shape[1] + alternatives.places)
        return *token_scores, *self._score_alternatives(plan, numbers, predicting, alternatives.tokens)

    def _score_alternatives(self, plan: UpdatePlan, numbers: Tensor, states: Tensor, tokens: Tensor) -> tuple[Tensor]:
        """Return the log-probabilities of alternatives, ``(N,)``, zero for those that are not among the numbers."""
        assert plan.read.alternatives is not None
        logprobs = self.policy.score_states(states, tokens, self.temperature).logprobs
        return (torch.zeros_like(plan.read.alternatives.logprobs).index_copy(0, numbers, logprobs),)

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
            temperature: Temperature by which logits are divided.
            precision: Opens the context in which the trainer computes.
            adapter: Whether the adapter acts. One that changes nothing leaves every bit of the scores as it is.

        """

        def score(rows: Tensor, context: PromptContext, completions: Tensor) -> tuple[Tensor, ...]:
            scores = self.policy.score_completions(context, completions, temperature)
            return rows, *(pad(values, (0, mask.shape[1] - completions.shape[1])) for values in scores)

        acting = self.policy.merge_for_gradients if adapter else self.policy.disable_adapter
        with torch.no_grad():
            with precision():
                reader = find_packed_forward(self.policy)
                if reader is not None:
                    with contextlib.nullcontext() if adapter else self.policy.disable_adapter():
                        return self._score_packed(reader, prompt_ids, completion_ids, mask, temperature)
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

    def _score_packed(
        self, reader: PackedForward, prompt_ids: Tensor, completion_ids: Tensor, mask: Tensor, temperature: float
    ) -> TokenScores:
        """Score completions without graph and without padding; arguments as in :meth:`score_without_graph`."""
        prompts, completions, host_mask = prompt_ids.cpu(), completion_ids.cpu(), mask.cpu()
        lengths = find_read_lengths(host_mask).clamp(min=1)
        prompt_lengths, size = self.policy.prompt_mask(prompts).sum(-1), self.scoring_batches.tokens
        if size == "auto":
            cost = self._estimate_cost(reader, lengths, prompt_lengths, int(lengths.sum()))
            layer_bytes = 2 * cost.graph / cost.layers
            size = min(PACKED_TOKENS, max(1, int(find_policy_room(self.policy) / layer_bytes)))
        cut = split_rows_in_order(lengths, prompt_lengths, mark_new_prompts(prompts), size)
        facts = torch.zeros(3, mask.numel(), device=mask.device)
        for part in cut:
            states, layout = reader.read_rows(prompts[part], completions[part], host_mask[part])
            scores = self.policy.score_states(states, layout.targets, temperature, keeps_entropy=False)
            facts.index_copy_(1, layout.cells + part.start * mask.shape[1], torch.stack(scores))
        return TokenScores(*facts.view(3, *mask.shape))


def collect_scores(rollout: Rollout, plan: UpdatePlan, parts: Sequence[tuple[Tensor, ...]]) -> UpdateScores:
    """Return the scores of a mini-batch from those of its parts; what no part holds keeps the scores of sampling.

    Args:
        rollout: The mini-batch of an update.
        plan: Plan with the numbers of the parts.
        parts: Log-probabilities, entropy and log-probabilities of alternatives, part by part.

    """
    numbers, spare = torch.cat(plan.parts[: len(plan.parts) - plan.spare]), parts[len(parts) - plan.spare :]
    logprobs, entropy, *alternatives = zip(*parts[: len(parts) - plan.spare], strict=True)
    logprobs, entropy = torch.cat(logprobs), torch.cat(entropy)
    for values in spare:
        logprobs = logprobs + 0 * values[0].sum()  # their backward passes are those that the others make
    rows, columns = rollout.mask.shape
    is_completion, device = numbers < rows, logprobs.device
    places, extra_places = (
        move_index(is_chosen.nonzero().squeeze(-1), device) for is_chosen in (is_completion, ~is_completion)
    )
    completions = move_index(numbers[is_completion], device)
    branches = move_index(numbers[~is_completion] - rows, device)
    return UpdateScores(
        rollout.old_logprobs.index_copy(0, completions, logprobs[places, :columns]),
        rollout.entropy.index_copy(0, completions, entropy[places, :columns]),
        torch.stack(alternatives[0]).sum(0) if alternatives else None,
        _pick_continuations(rollout, branches, logprobs[extra_places]),
    )


def _pick_continuations(rollout: Rollout, numbers: Tensor, logprobs: Tensor) -> Tensor | None:
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


def move_index(index: Tensor, device: torch.device) -> Tensor:
    """Return numbers on a device; the host does not wait for the copy."""
    return index if device.type == "cpu" else index.pin_memory().to(device, non_blocking=True)


def find_policy_room(policy: Policy) -> float:
    """Return the bytes that an update of a policy may take; see :func:`find_update_room`."""
    weights = list(policy.parameters())
    trained_weights = sum(weight.numel() for weight in weights if weight.requires_grad)
    if not policy.is_sharded:
        return find_update_room(policy.device, sum(weight.nbytes for weight in weights), trained_weights)
    from torch.distributed.tensor import DTensor  # noqa: PLC0415

    parts = [weight.to_local() if isinstance(weight, DTensor) else weight for weight in weights]
    gathered = 4 * sum(weight.nbytes for weight in weights) // policy.architecture.layers
    return find_update_room(policy.device, sum(part.nbytes for part in parts) + gathered, trained_weights)


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
    lengths, order = find_read_lengths(mask).clamp(min=1).sort(stable=True)

    def read_micro_batch(micro_batch: slice) -> list[Read]:
        rows, tokens = order[micro_batch], lengths[micro_batch].tolist()
        with acting():
            context = policy.read_prompts(prompt_ids[rows])
            return [
                read(rows[part], context.select_rows(part), completion_ids[rows[part], : tokens[part.stop - 1]])
                for part in split_micro_batch(policy, tokens)
            ]

    with policy.evaluation_mode(), precision():
        widths = (lengths + prompt_ids.shape[1]).tolist()
        cut = split_rows_by_tokens(widths, choose_read_tokens(policy, batches, len(widths) * widths[-1]))
        cut, spare = add_spare_passes(policy, cut)
        for number, micro_batch in enumerate(cut):
            results = read_micro_batch(micro_batch)
            if number < len(cut) - spare:
                yield results


def choose_read_tokens(policy: Policy, batches: MicroBatches, tokens: int) -> int:
    """Return the number of tokens that are read at a time without padding being left out, with their keys and values.

    Args:
        policy: Policy that reads.
        batches: How many tokens are read at a time.
        tokens: Tokens of the whole batch, padding included.

    """
    shape = policy.architecture
    cache_bytes = 2 * shape.layers * shape.key_width * policy.head.element_size()
    graph = cache_bytes + 2 * policy.head.element_size() * shape.hidden
    cost = UpdateCost(graph, None, shape.layers)
    return batches.choose_part(cost, tokens, find_policy_room(policy), is_separate=True).tokens


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
