"""Hidden states of sampled tokens, and of tokens that might have been drawn in their place; nothing is decoded."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from rlcredit.base.exit_status import RunStopped
from rlcredit.credit.alternatives import Alternatives
from rlcredit.credit.rollout import Rollout
from rlcredit.credit.token_counts import count_sequence_tokens
from rlcredit.decoding.in_process import MAX_STATE_ERROR
from rlcredit.formulas.distributed import find_largest_number
from rlcredit.formulas.groups import ranks_within_rows
from rlcredit.formulas.masked import masked_mean
from rlcredit.formulas.uncertainty import choose_chunk, predictive_variance, tempered_logits
from rlcredit.policy.policy import Policy, PromptContext
from rlcredit.policy.prompt_format import PADDING
from rlcredit.tasks.task import Task
from rlcredit.training.micro_batches import MicroBatches
from rlcredit.training.scoring import Read, RolloutScorer, read_by_length


@dataclass
class PolicyLookahead:
    """Read a rollout again with the policy that sampled it.

    Args:
        policy: Policy, which must not have changed since the rollout.
        temperature: Temperature by which logits are divided.
        batches: How many completions are read at a time.
        precision: Opens the context in which the trainer computes.
        task: Task that has asked the questions.

    """

    policy: Policy
    temperature: float
    batches: MicroBatches
    precision: Callable[[], AbstractContextManager[None]]
    task: Task

    @property
    def hidden_size(self) -> int:
        """Width D of the policy's hidden states."""
        return self.policy.head.shape[1]

    def decode_tokens(self, token_ids: Tensor) -> list[str]:
        """Return the text of each token, shape ``(N,)``."""
        return [self.policy.tokenizer.decode([token]) for token in token_ids.tolist()]

    @torch.no_grad()
    def read_hidden(self, rollout: Rollout) -> Tensor:
        """Return the last hidden state from which each sampled token was predicted, ``(B, T, D)``, zero on padding."""
        width = rollout.mask.shape[1]

        def read(rows: Tensor, context: PromptContext, completion_ids: Tensor) -> tuple[Tensor, Tensor]:
            states = self.policy.predicting_states(context, completion_ids)
            return rows, pad(states, (0, 0, 0, width - completion_ids.shape[1]))

        rollout.token_counts.add(forward=count_sequence_tokens(rollout.prompt_ids, rollout.mask))
        rows, states = map(torch.cat, zip(*self._read_parts(rollout, read), strict=True))
        return states[rows.argsort()].where(rollout.mask[..., None], 0)

    @torch.no_grad()
    def read_alternatives(self, rollout: Rollout, smallest: float, most: int) -> Alternatives:
        """Return likely tokens that were not sampled, and the states behind them, by one more pass of one token each.

        Tokens that end a completion are left out: what follows them is known without reading.

        Args:
            rollout: Rollout, not yet used for an update.
            smallest: Probability that an alternative must exceed.
            most: Most alternatives of a completion; of more, those of the largest variance p (1 - p) are read.

        """
        refuse_late_reading(rollout)

        def read(rows: Tensor, context: PromptContext, completion_ids: Tensor) -> Alternatives:
            states, cache = self.policy.read_completions(context, completion_ids)
            other_probability = 1 - rollout.old_logprobs[rows, : completion_ids.shape[1]].exp()
            is_candidate = rollout.mask[rows, : completion_ids.shape[1]] & (other_probability > smallest)
            part, places, tokens, logprobs = self._choose(states, is_candidate, completion_ids, smallest, most)
            branch_states = states.new_zeros(0, states.shape[-1])
            if len(part):
                branch_states = self._read_branches(rollout, rows, context, cache, part, places, tokens[:, None])[:, 0]
            return Alternatives(rows[part], places, tokens, logprobs, branch_states)

        alternatives = Alternatives(*map(torch.cat, zip(*self._read_parts(rollout, read), strict=True)))
        read_again = count_sequence_tokens(rollout.prompt_ids, rollout.mask)
        rollout.token_counts.add(forward=read_again + len(alternatives.rows))
        order = (alternatives.rows * rollout.mask.shape[1] + alternatives.places).argsort(stable=True)
        return Alternatives(*(values[order] for values in alternatives))

    def _read_branches(
        self,
        rollout: Rollout,
        rows: Tensor,
        context: PromptContext,
        cache: Any,
        part: Tensor,
        places: Tensor,
        token_ids: Tensor,
    ) -> Tensor:
        """Read branches, and compare the first one of all with a pass over its whole context.

        Args:
            rollout: Rollout that the branches leave.
            rows: Rows of the rollout that ``context`` is of, shape ``(N,)``.
            context: Prompts of these rows.
            cache: Cache of these rows.
            part: Place among ``rows`` of each branch, shape ``(M,)``.
            places: Tokens of the completion that are its prefix, shape ``(M,)``.
            token_ids: Its tokens, shape ``(M, K)``.

        Raises:
            ValueError: the model's attention takes no mask of a caller's own.

        """
        branch_states = self.policy.read_branches(context, cache, part, places, token_ids)
        if not self.policy.reads_branches:
            row, place, tokens = rows[part[0]], int(places[0]), token_ids[0][token_ids[0] != PADDING]
            prompt_ids = rollout.prompt_ids[row]
            prompt = prompt_ids[self.policy.prompt_mask(prompt_ids)]
            ids = torch.cat([prompt, rollout.completion_ids[row, :place], tokens])[None]
            whole_states, _ = self.policy.hidden_states(ids, torch.ones_like(ids, dtype=torch.bool))
            whole_part, branch_part = (
                whole_states[0, place + len(prompt) :].float(),
                branch_states[0, : len(tokens)].float(),
            )
            if (
                not (branch_part - whole_part).norm()
                <= MAX_STATE_ERROR[self.policy.computing_dtype] * whole_part.norm()
            ):
                raise ValueError(
                    f"{self.policy.path}: what might have been drawn cannot be read, because the model's attention "
                    "takes no mask of a caller's own, as with sliding windows. Use GAE with HeadCritic in place of "
                    "ExpectedGradient or ForcedAnswer."
                )
            self.policy.reads_branches = True
        return branch_states

    def _choose(
        self, states: Tensor, is_candidate: Tensor, completion_ids: Tensor, smallest: float, limit: int
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return row, place, token and log-probability of the alternatives at some places, rows ascending.

        Args:
            states: Hidden states from which tokens are predicted, shape ``(N, T, D)``.
            is_candidate: Places at which there may be alternatives, shape ``(N, T)`` bool.
            completion_ids: Sampled tokens, shape ``(N, T)``.
            smallest: Probability that an alternative must exceed.
            limit: Most alternatives of a row.

        """
        rows, places = is_candidate.nonzero(as_tuple=True)
        head, parts = self.policy.head, []
        for part in torch.arange(len(rows), device=rows.device).split(choose_chunk(head)):
            i, t = rows[part], places[part]
            log_p = tempered_logits(states[i, t], head, self.temperature).log_softmax(-1)
            is_excluded = torch.zeros_like(log_p, dtype=torch.bool)
            is_excluded[:, self.policy.stop_ids] = True
            is_excluded.scatter_(1, completion_ids[i, t][:, None], True)
            numbers, tokens = ((log_p.exp() > smallest) & ~is_excluded).nonzero(as_tuple=True)
            parts.append((i[numbers], t[numbers], tokens, log_p[numbers, tokens]))
        if not parts:
            empty = rows.new_zeros(0)
            return empty, empty, empty, states.new_zeros(0).float()
        i, t, tokens, logprobs = map(torch.cat, zip(*parts, strict=True))
        by_variance = predictive_variance(logprobs).argsort(descending=True, stable=True)
        by_row = by_variance[i[by_variance].argsort(stable=True)]
        order = by_row[ranks_within_rows(i[by_row], len(states)) < limit].sort().values
        return i[order], t[order], tokens[order], logprobs[order]

    def list_answers(self, rollout: Rollout) -> list[tuple[str, ...]]:
        """Return the accepted answers of each prompt, the reference first.

        Raises:
            RunStopped: a question has no answer.

        """
        refuse_unanswered_questions(rollout)
        return [example.accepted_answers for _, example in rollout.sources]

    @torch.no_grad()
    def read_answers(self, rollout: Rollout, starts: Tensor, closing: str) -> Tensor:
        """Return the likelihood of the reference answer, if the policy is made to answer after a prefix.

        Args:
            rollout: Rollout, with the sources of its prompts.
            starts: True at t if the prefix of t tokens is asked about, shape ``(B, T)``.
            closing: Text that is put behind the prefix, and that the answer follows.

        Returns:
            Mean log-probability of the tokens of the answer, shape ``(B, T)`` float32; NaN where nothing was asked.

        Raises:
            RunStopped: a question has no answer.

        """
        refuse_late_reading(rollout)
        encode = self.policy.tokenizer.encode
        closing_ids = encode(closing, add_special_tokens=False)
        answers = [encode(wordings[0], add_special_tokens=False) for wordings in self.list_answers(rollout)]
        width = len(closing_ids) + max(map(len, answers))
        ids = torch.full((len(answers), width), PADDING)
        is_answer = torch.zeros(ids.shape, dtype=torch.bool)
        for number, answer in enumerate(answers):
            end = len(closing_ids) + len(answer)
            ids[number, :end] = torch.tensor([*closing_ids, *answer])
            is_answer[number, len(closing_ids) : end] = True
        ids, is_answer = ids.to(starts.device), is_answer.to(starts.device)

        def read(rows: Tensor, context: PromptContext, completion_ids: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            states, cache = self.policy.read_completions(context, completion_ids)
            part, places = starts[rows, : completion_ids.shape[1]].nonzero(as_tuple=True)
            source = rows[part] // rollout.group_size
            if not len(part):
                return rows[part], places, states.new_zeros(0).float()
            answer_states = self._read_branches(rollout, rows, context, cache, part, places, ids[source])
            predicting = torch.cat([states[part, places][:, None], answer_states[:, :-1]], 1)
            scores = self.policy.score_states(predicting, ids[source].clamp(min=0), self.temperature)
            return rows[part], places, masked_mean(scores.logprobs, is_answer[source], dim=-1)

        rows, places, logprobs = map(torch.cat, zip(*self._read_parts(rollout, read), strict=True))
        answer_states = int((ids[rows // rollout.group_size] != PADDING).sum())
        rollout.token_counts.add(forward=count_sequence_tokens(rollout.prompt_ids, rollout.mask) + answer_states)
        read_at = torch.full(starts.shape, torch.nan, device=starts.device)
        read_at[rows, places] = logprobs
        return read_at

    @torch.no_grad()
    def score_with_hint(self, rollout: Rollout, row_mask: Tensor, hint: str) -> tuple[Tensor, Tensor]:
        """Return log-probabilities of sampled tokens, and entropies, as if the prompt had ended with a hint.

        Args:
            rollout: Rollout, with the sources of its prompts.
            row_mask: True on the completions to read, shape ``(B,)`` bool.
            hint: Text behind the question, in the same turn; ``{answer}`` stands for the reference answer.

        Returns:
            Two of shape ``(B, T)`` float32, zero in other rows and where no token was sampled.

        Raises:
            RunStopped: the hint tells the answer to a question that has none.

        """
        refuse_late_reading(rollout)
        if "{answer}" in hint:
            refuse_unanswered_questions(rollout)
        prompt_ids = self._write_hinted_prompts(rollout, hint)
        rows = row_mask.nonzero().squeeze(-1)
        if not len(rows):
            return torch.zeros_like(rollout.old_logprobs), torch.zeros_like(rollout.old_logprobs)
        sequences = prompt_ids[rows // rollout.group_size], rollout.completion_ids[rows], rollout.mask[rows]
        rollout.token_counts.add(forward=count_sequence_tokens(sequences[0], sequences[2]))
        scorer = RolloutScorer(self.policy, self.temperature, self.batches, self.batches, keeps_entropy_graph=False)
        scores = scorer.score_without_graph(*sequences, self.temperature, self.precision)
        logprobs, entropy = (
            torch.zeros_like(rollout.old_logprobs).index_copy(0, rows, values.float())
            for values in (scores.logprobs, scores.entropy)
        )
        return logprobs, entropy

    def _write_hinted_prompts(self, rollout: Rollout, hint: str) -> Tensor:
        """Return the prompt of each group with a hint at the end of its last turn, shape ``(P, L)``."""
        conversations = []
        for _, example in rollout.sources:
            *turns, question = self.task.build_conversation(example)
            content = question["content"] + hint.replace("{answer}", example.answer)
            conversations.append([*turns, {**question, "content": content}])
        prompt_ids = self.policy.encode_questions(conversations, self.task.tools).to(rollout.mask.device)
        # Padding is part of the arithmetic: all processes pad to one width, as a single one would.
        width = find_largest_number(prompt_ids.shape[1], self.policy.device)
        return pad(prompt_ids, (width - prompt_ids.shape[1], 0), value=PADDING)

    def create_adapter(self, noise: torch.Generator) -> list[Tensor]:
        """Return a fresh adapter; see :meth:`rlcredit.policy.policy.Policy.create_adapter`."""
        return self.policy.create_adapter(noise)

    def iterate_states(self, rollout: Rollout, factors: Sequence[Tensor]) -> Iterator[list[tuple[Tensor, Tensor]]]:
        """Yield rows and predicting states under another adapter, micro-batch by micro-batch; with graph, if enabled.

        Args:
            rollout: Rollout whose completions are read.
            factors: The adapter; see :meth:`rlcredit.policy.policy.Policy.use_adapter`.

        Yields:
            Parts of a micro-batch, which share the graph of their prompts: rows, shape ``(N,)``, and hidden states from
            which their tokens are predicted, shape ``(N, T', D)``, T' being the longest of them.

        """

        def read(rows: Tensor, context: PromptContext, completion_ids: Tensor) -> tuple[Tensor, Tensor]:
            return rows, self.policy.predicting_states(context, completion_ids)

        tokens = count_sequence_tokens(rollout.prompt_ids, rollout.mask)
        rollout.token_counts.add(**{"backward" if torch.is_grad_enabled() else "forward": tokens})
        with self.policy.use_adapter(factors):
            yield from self._iterate_micro_batches(rollout, read)

    def score_tokens(self, rollout: Rollout, rows: Tensor, states: Tensor) -> Tensor:
        """Return the log-probability of sampled tokens from the states that predict them, shape ``(N, T')``."""
        return self.policy.score_states(
            states, rollout.completion_ids[rows, : states.shape[1]], self.temperature
        ).logprobs

    def _read_parts(self, rollout: Rollout, read: Callable[[Tensor, PromptContext, Tensor], Read]) -> list[Read]:
        return [result for results in self._iterate_micro_batches(rollout, read) for result in results]

    def _iterate_micro_batches(
        self, rollout: Rollout, read: Callable[[Tensor, PromptContext, Tensor], Read]
    ) -> Iterator[list[Read]]:
        """Call ``read`` with rows, prompts and tokens of similar length, as many at a time as memory allows."""
        return read_by_length(
            self.policy,
            self.batches,
            rollout.prompt_ids,
            rollout.completion_ids,
            rollout.mask,
            read,
            self.precision,
            self.policy.merge_for_gradients,
        )


def refuse_unanswered_questions(rollout: Rollout) -> None:
    """Refuse questions without an answer where an operator reads it.

    Raises:
        RunStopped: there is one.

    """
    if bare := [example.text for _, example in rollout.sources if not example.answer]:
        raise RunStopped(
            f"The reference answer is read, and the question {bare[0]!r:.60} has none. Set "
            "data.init_args.skip_unanswered: true, or remove the operator that reads it (AnswerCritic, ForcedAnswer, "
            "SelfDistillation or CSCR)."
        )


def refuse_late_reading(rollout: Rollout) -> None:
    """Refuse to read with a policy that has changed since it sampled.

    Raises:
        ValueError: an update has changed it.

    """
    if rollout.update:
        raise ValueError("What might have been drawn depends on the policy that sampled; an update has changed it.")
