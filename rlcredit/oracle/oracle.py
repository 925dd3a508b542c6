"""The value of a prefix by Monte Carlo: continue it many times and count how often the answer is right."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from rlcredit.credit.continuations import Continuations, concatenate_continuations
from rlcredit.credit.rollout import Rollout
from rlcredit.credit.token_counts import count_distinct_prompt_tokens, count_sequence_tokens
from rlcredit.decoding.decoding_loop import ROW_MULTIPLE
from rlcredit.decoding.engine import Decoder
from rlcredit.decoding.noise import branch_uniforms, continuation_uniforms, inverse_cdf
from rlcredit.decoding.sampling import Samples
from rlcredit.episodes.episode_table import EpisodeTable
from rlcredit.formulas.turns import find_read_lengths
from rlcredit.formulas.uncertainty import tempered_logits
from rlcredit.oracle.credit_estimate import TrueCredit, true_credit
from rlcredit.oracle.prefix_tree import Branch, PrefixTree
from rlcredit.policy.policy import Policy
from rlcredit.policy.prompt_format import PADDING
from rlcredit.tasks.task import Task
from rlcredit.verification.rewards import judged_mask, verdict_mask
from rlcredit.verification.verifiers import Verdict

MAX_LOGITS = 2**24
"""Logits held at one time while tokens are drawn from the noise."""


@dataclass
class ContinuationCost:
    """Cost of a call of :meth:`Oracle.outcomes`.

    Attributes:
        prefixes: Number of prefixes to be continued, each as many times as there are samples.
        continuations: Number of distinct continuations that leave all known completions, and so must be decoded.
        tokens: Largest number of tokens decoded.

    """

    prefixes: int
    continuations: int
    tokens: int


@dataclass
class Oracle:
    """Estimate values of prefixes with the policy itself; results are cached.

    Continuation m of every prefix of a prompt uses the m-th noise of that prompt, from the prefix's length on
    (common random numbers). As long as the noise draws the tokens of a known completion, the continuation *is* that
    completion; it is decoded only from the first token on at which it leaves them all. Tokens of which the policy was
    certain cost nothing and have a credit of exactly zero. Prefixes that completions share are continued once. What is
    read and decoded is added to the counts of the rollout.

    Args:
        policy: Policy, which must not have changed since the rollout; ask before the first update.
        engine: Engine that decodes the continuations.
        task: Task that judges them; what cannot be judged counts as wrong.
        temperature: Sampling temperature T.
        max_tokens: Most tokens of a whole completion.
        seed: Seed of the noise.
        step: Optimizer steps taken, which also determine the noise.
        stream: Stream of the noise; different streams are independent.
        precision: Context in which the policy runs.
        decoded: Number of tokens decoded so far.

    """

    policy: Policy
    engine: Decoder
    task: Task
    temperature: float
    max_tokens: int
    seed: int = 0
    step: int = 0
    stream: int = 0
    precision: Callable[[], AbstractContextManager[None]] = nullcontext
    decoded: int = field(default=0, init=False)
    _trees: dict[int, PrefixTree] = field(default_factory=dict, init=False)
    _noises: dict[tuple[int, int], Tensor] = field(default_factory=dict, init=False)

    def with_fresh_noise(self) -> "Oracle":
        """Return an oracle with independent noise, to evaluate credit that was assigned with this one."""
        return replace(self, stream=self.stream + 1)

    def with_own_cache(self) -> "Oracle":
        """Return an oracle with the same noise that has decoded nothing yet: what it decodes is its own."""
        return replace(self)

    def estimate_cost(self, rollout: Rollout, rows: Sequence[int], starts: Tensor, samples: int) -> ContinuationCost:
        """Return the cost of :meth:`outcomes` with the same arguments."""
        tree, prefixes = self._grow_tree(rollout, rows, starts, samples)
        missing = self._find_missing_branches(tree, prefixes)
        new = {node for nodes in prefixes for node in nodes if any(branch in missing for branch in tree.leads[node])}
        return ContinuationCost(len(new), len(missing), sum(self.max_tokens - tree.depth(node) for node, _ in missing))

    def outcomes(self, rollout: Rollout, rows: Sequence[int], starts: Tensor, samples: int) -> Tensor:
        """Return the verdict on each continuation of some prefixes.

        Args:
            rollout: Rollout, not yet used for an update, with the sources of its prompts.
            rows: Row numbers of the completions, N of them.
            starts: True at t if the prefix of t tokens is asked about, shape ``(N, T)``; ignored after the end.
            samples: Continuations per prefix, M.

        Returns:
            One or zero, shape ``(N, T + 1, M)`` float64 on the CPU; NaN where nothing was asked, and the verdict
            from the end on.

        """
        tree, prefixes = self._grow_tree(rollout, rows, starts, samples)
        missing = sorted(
            self._find_missing_branches(tree, prefixes), key=lambda branch: (tree.depth(branch[0]), branch)
        )
        batch_size = self.engine.decode_batch_size or max(len(rollout.mask), samples)
        for start in range(0, len(missing), batch_size):
            self._decode_branches(rollout, tree, missing[start : start + batch_size], samples)
        right = torch.full((len(rows), rollout.mask.shape[1] + 1, samples), torch.nan, dtype=torch.float64)
        for place, (row, nodes) in enumerate(zip(rows, prefixes, strict=True)):
            length = int(rollout.mask[row].sum())
            right[place, length:] = self._completion_outcome(rollout, row)
            prefix_lengths = starts[place, :length].nonzero().squeeze(-1)
            right[place, prefix_lengths] = torch.tensor(
                [[tree.ended[branch] for branch in tree.leads[node]] for node in nodes], dtype=torch.float64
            ).view(len(prefix_lengths), samples)
        return right

    def continue_prefixes(
        self, rollout: Rollout, rows: Tensor, places: Tensor, samples: int
    ) -> tuple[Continuations, Tensor]:
        """Decode continuations of some prefixes, to be trained on, and judge them; nothing is cached.

        Unlike those of :meth:`outcomes`, every continuation has noise of its own, by seed, step, prompt, completion,
        place and sample. Given its prefix, it is independent of the completion and of all others.

        Args:
            rollout: Rollout, not yet used for an update, with the sources of its prompts.
            rows: Row of each prefix, N of them, shape ``(N,)`` int64.
            places: Tokens of each prefix, fewer than its completion has, shape ``(N,)`` int64.
            samples: Continuations per prefix, M.

        Returns:
            Continuations without credit, N times M of them, prefix by prefix; and their verdicts, one for right, zero
            for wrong, NaN where the verifier could not tell, shape ``(N, M)`` float64.

        """
        refuse_late_questions(rollout)
        per_batch = self._count_prefixes_at_a_time(rollout, samples)
        no_tokens = rows.new_zeros(0, 0)
        batches = [Continuations(rows[:0], rows[:0], no_tokens, no_tokens.bool(), no_tokens.float(), no_tokens.float())]
        verdicts = [torch.zeros(0, samples, dtype=torch.float64, device=rows.device)]
        for start in range(0, len(rows) if samples else 0, per_batch):
            part = slice(start, start + per_batch)
            continuations, part_verdicts = self._continue_batch(rollout, rows[part], places[part], samples)
            batches.append(continuations)
            verdicts.append(part_verdicts.view(-1, samples).to(rows.device))
        return concatenate_continuations(batches), torch.cat(verdicts)

    def _count_prefixes_at_a_time(self, rollout: Rollout, samples: int) -> int:
        return max(1, (self.engine.decode_batch_size or max(len(rollout.mask), samples)) // max(samples, 1))

    def _continue_batch(
        self, rollout: Rollout, rows: Tensor, places: Tensor, samples: int
    ) -> tuple[Continuations, Tensor]:
        """Decode and judge continuations of a batch of prefixes."""
        contexts = self._build_contexts(rollout, list_prefixes(rollout, rows.tolist(), places.tolist()))
        indices = torch.arange(len(rows), device=rows.device).repeat_interleave(samples)
        noise, limits = self._draw_branch_noise(rollout, rows, places, samples), self.max_tokens - places[indices]
        answers = self._decode_contexts(rollout, contexts, noise, indices, limits)
        continuations = pack_continuations(rows[indices], places[indices], answers)
        return continuations, self._judge_continuations(rollout, continuations)

    def _draw_branch_noise(self, rollout: Rollout, rows: Tensor, places: Tensor, samples: int) -> Tensor:
        """Return noise that no two continuations share, nor with a completion, shape ``(N * M, T)``."""
        own_rows, own_places = (values.repeat_interleave(samples).tolist() for values in (rows, places))
        return branch_uniforms(
            self.seed,
            self.step,
            prompts=[rollout.sources[row // rollout.group_size][0] for row in own_rows],
            completions=[row % rollout.group_size for row in own_rows],
            places=own_places,
            samples=list(range(samples)) * len(rows),
            length=self.max_tokens - min(own_places),
            oracle=self.stream,
        )

    def _judge_continuations(self, rollout: Rollout, continuations: Continuations) -> Tensor:
        """Return one for right, zero for wrong, NaN where the verifier could not tell, shape ``(N,)`` float64."""
        answers = continuations.join_prefixes(rollout.completion_ids, rollout.mask)
        verdicts = self._judge_answers(rollout, continuations.rows.tolist(), *answers)
        return verdict_mask(verdicts, Verdict.RIGHT).double().where(judged_mask(verdicts), torch.nan)

    def credit(self, rollout: Rollout, rows: Sequence[int], samples: int) -> TrueCredit:
        """Return the credit of every token of some completions; arguments as in :meth:`outcomes`, M at least 2."""
        mask = self.mark_places(rollout, rows)
        return true_credit(rows, self.outcomes(rollout, rows, mask, samples), mask)

    def mark_places(self, rollout: Rollout, rows: Sequence[int]) -> Tensor:
        """Mark the places of some completions whose values can be asked, shape ``(N, T)`` bool, on the CPU."""
        return rollout.mask[list(rows)].cpu()

    @staticmethod
    def _completion_outcome(rollout: Rollout, row: int) -> float:
        return (rollout.correct[row] * rollout.judged[row]).item()

    @staticmethod
    def _find_missing_branches(tree: PrefixTree, prefixes: list[list[int]]) -> set[Branch]:
        return {branch for nodes in prefixes for node in nodes for branch in tree.leads[node]} - tree.ended.keys()

    def _grow_tree(
        self, rollout: Rollout, rows: Sequence[int], starts: Tensor, samples: int
    ) -> tuple[PrefixTree, list[list[int]]]:
        """Add some completions to the tree; return the prefixes asked about, row by row."""
        refuse_late_questions(rollout)
        tree, paths = self._trees.setdefault(samples, PrefixTree()), []
        new: dict[int, list[int]] = {}
        nodes: set[int] = set()
        for row in rows:
            completion = rollout.completion_ids[row][rollout.mask[row]].tolist()
            *path, end = tree.path(rollout.sources[row // rollout.group_size][0], completion)
            tree.end_completion(end, self._completion_outcome(rollout, row), samples)
            if not all(node in tree.drawn or node in nodes for node in path):
                new[row] = path
                nodes.update(path)
            paths.append(path)
        tokens = self._draw_next_tokens(rollout, list(new), samples)
        for row, path in new.items():
            tree.drawn.update(zip(path, tokens[row].tolist(), strict=True))
        tree.follow_leads({node for path in paths for node in path})
        prefixes = [
            [path[length] for length in starts[place, : len(path)].nonzero().squeeze(-1).tolist()]
            for place, path in enumerate(paths)
        ]
        return tree, prefixes

    @torch.no_grad()
    def _draw_next_tokens(self, rollout: Rollout, rows: Sequence[int], samples: int) -> dict[int, Tensor]:
        """Return the token that each noise draws behind each prefix of some completions, shapes ``(length, M)``."""
        lengths, tokens = rollout.mask.sum(-1).tolist(), {}
        rollout.token_counts.add(forward=count_sequence_tokens(rollout.prompt_ids[rows], rollout.mask[rows]))
        by_length = sorted(rows, key=lambda row: lengths[row])
        for start in range(0, len(rows), ROW_MULTIPLE):
            part = by_length[start : start + ROW_MULTIPLE]
            width = lengths[part[-1]]
            with self.policy.evaluation_mode(), self.precision():
                context = self.policy.read_prompts(rollout.prompt_ids[part])
                last_states = self.policy.predicting_states(context, rollout.completion_ids[part, :width])
            for row, states in zip(part, last_states, strict=True):
                tokens[row] = self._draw_row_tokens(rollout, row, states[: lengths[row]], samples)
        return tokens

    def _draw_row_tokens(self, rollout: Rollout, row: int, row_states: Tensor, samples: int) -> Tensor:
        noise = self._noise(rollout, row, samples)[:, : len(row_states)].T.to(row_states.device).contiguous()
        chunk = max(1, MAX_LOGITS // len(self.policy.head))
        parts = zip(row_states.split(chunk), noise.split(chunk), strict=True)
        tokens = [
            inverse_cdf(tempered_logits(states, self.policy.head, self.temperature).softmax(-1), uniform)
            for states, uniform in parts
        ]
        return torch.cat(tokens).cpu()

    def _noise(self, rollout: Rollout, row: int, samples: int) -> Tensor:
        """The noise of every continuation of a prompt, shape ``(M, max_tokens)``."""
        number, _ = rollout.sources[row // rollout.group_size]
        if (number, samples) not in self._noises:
            self._noises[number, samples] = continuation_uniforms(
                self.seed, self.step, number, samples, self.max_tokens, self.stream
            )
        return self._noises[number, samples]

    @torch.no_grad()
    def _decode_branches(self, rollout: Rollout, tree: PrefixTree, branches: list[Branch], samples: int) -> None:
        """Continue some prefixes and record how each continuation ended."""
        row_of = {number: place * rollout.group_size for place, (number, _) in enumerate(rollout.sources)}
        prefixes = {node: tree.tokens(node) for node, _ in branches}
        rows = {node: row_of[tree.prompt(node)] for node in prefixes}
        stops = set(self.policy.stop_ids.tolist())
        open_branches = [
            (node, m)
            for node, m in branches
            if prefixes[node][-1] not in stops and len(prefixes[node]) < self.max_tokens
        ]
        continuations: dict[Branch, list[int]] = {}
        if open_branches:
            prefix_lengths = torch.tensor([len(prefixes[node]) for node, _ in open_branches])
            noise = torch.stack([self._noise(rollout, rows[node], samples)[m] for node, m in open_branches])
            places = torch.arange(self.max_tokens - int(prefix_lengths.min())) + prefix_lengths[:, None]
            context_of = {node: number for number, node in enumerate(dict.fromkeys(node for node, _ in open_branches))}
            contexts = self._build_contexts(rollout, [(rows[node], prefixes[node]) for node in context_of])
            answers = self._decode_contexts(
                rollout,
                contexts,
                noise.gather(1, places.clamp(max=self.max_tokens - 1)),
                torch.tensor([context_of[node] for node, _ in open_branches], device=rollout.prompt_ids.device),
                self.max_tokens - prefix_lengths,
            )
            lengths = answers.mask.sum(-1).tolist()
            rows_decoded = zip(open_branches, answers.completion_ids.tolist(), lengths, strict=True)
            continuations = {branch: tokens[:length] for branch, tokens, length in rows_decoded}
        completions = [torch.tensor(prefixes[branch[0]] + continuations.get(branch, [])) for branch in branches]
        ids = pad_sequence(completions, batch_first=True)
        mask = torch.arange(ids.shape[1]) < torch.tensor([len(tokens) for tokens in completions])[:, None]
        verdicts = self._judge_answers(rollout, [rows[node] for node, _ in branches], ids, mask)
        right = verdict_mask(verdicts, Verdict.RIGHT)
        tree.ended.update(zip(branches, right.double().tolist(), strict=True))

    def _decode_contexts(
        self,
        rollout: Rollout,
        contexts: Tensor,
        noise: Tensor,
        sources: Tensor,
        limits: Tensor,
        episodes: EpisodeTable | None = None,
    ) -> Samples:
        """Continue contexts, or episodes that stand there, and count the tokens that are decoded and read for it."""
        request = self.policy, contexts, noise, sources, self.temperature
        with self.precision():
            if episodes is None:
                answers = self.engine.decode(*request, limits)
            else:
                answers = self.engine.continue_episodes(*request, episodes, limits)
        number, read = int(answers.mask.sum()), int(find_read_lengths(answers.mask).sum())
        self.decoded += number
        rollout.token_counts.add(decoded=number, prefill=count_distinct_prompt_tokens(contexts) + read - number)
        return answers

    def _judge_answers(self, rollout: Rollout, rows: Sequence[int], ids: Tensor, mask: Tensor) -> Sequence[Verdict]:
        """Return the verdicts on whole answers to the prompts of some rows."""
        answers = self.policy.prepend_thinking_mark(self.policy.decode_texts(ids, mask))
        examples = [rollout.sources[row // rollout.group_size][1] for row in rows]
        return self.task.score(answers, examples).verdicts

    def _build_contexts(self, rollout: Rollout, prefixes: list[tuple[int, list[int]]]) -> Tensor:
        """Return prompts, each with the beginning of an answer, left-padded."""
        contexts = []
        for row, tokens in prefixes:
            prompt_ids = rollout.prompt_ids[row : row + 1]
            prompt = prompt_ids[self.policy.prompt_mask(prompt_ids)]
            contexts.append(torch.cat([prompt, prompt.new_tensor(tokens)]))
        return pad_sequence(contexts, batch_first=True, padding_value=PADDING, padding_side="left")


def list_prefixes(rollout: Rollout, rows: Sequence[int], places: Sequence[int]) -> list[tuple[int, list[int]]]:
    """Return rows with the tokens that stand in them before some places."""
    return [(row, rollout.completion_ids[row, :place].tolist()) for row, place in zip(rows, places, strict=True)]


def pack_continuations(rows: Tensor, places: Tensor, answers: Samples) -> Continuations:
    """Return answers that were decoded behind some places as continuations without credit."""
    longest = int(find_read_lengths(answers.mask).max())
    ids, mask, logprobs = (values[:, :longest] for values in (answers.completion_ids, answers.mask, answers.logprobs))
    return Continuations(rows, places, ids, mask, logprobs, torch.zeros_like(logprobs))


def refuse_late_questions(rollout: Rollout) -> None:
    """Refuse to continue with a policy that has changed since it sampled."""
    if rollout.update:
        raise ValueError("The oracle needs the policy that sampled, but an update has changed it. Ask before it.")
