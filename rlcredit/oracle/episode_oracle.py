"""The value of an episode before a turn by Monte Carlo: play it to its end many times and average what it earns."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn.functional import pad

from rlcredit.credit.continuations import Continuations
from rlcredit.credit.contract import StackError
from rlcredit.credit.rollout import Rollout
from rlcredit.decoding.noise import prefix_uniforms
from rlcredit.decoding.sampling import Samples
from rlcredit.episodes.episode_table import Episode, EpisodeTable
from rlcredit.episodes.replay import replay_turns
from rlcredit.formulas.branches import places_in_order
from rlcredit.formulas.turns import find_read_lengths, find_turn_starts
from rlcredit.oracle.credit_estimate import TrueCredit, true_credit
from rlcredit.oracle.oracle import (
    ContinuationCost,
    Oracle,
    list_prefixes,
    pack_continuations,
    refuse_late_questions,
)
from rlcredit.verification.rewards import Scores, Verdict, judged_mask, verdict_mask

History = tuple[int, int, tuple[int, ...]]
"""Continuations per prefix, number of the prompt, and the tokens that follow it."""


@dataclass
class EpisodeOracle(Oracle):
    """Estimate values of episodes with the policy itself, before every turn; results are cached.

    The environment is replayed up to the turn and copied, and the copies answer the policy until their episodes end. An
    outcome is the reward of the whole episode, with what the turns before have earned: one or zero for a verdict, or a
    real number if the task gives such; what cannot be judged counts as zero. Every continuation has noise of its own,
    by seed, step, prompt, tokens of the prefix and sample. Episodes of a prompt with the same history have one value.

    """

    _known: dict[History, Tensor] = field(default_factory=dict, init=False)

    def mark_places(self, rollout: Rollout, rows: Sequence[int]) -> Tensor:
        """Mark the first token of every turn, shape ``(N, T)`` bool, on the CPU."""
        return find_turn_starts(rollout.turn[list(rows)]).cpu()

    def estimate_cost(self, rollout: Rollout, rows: Sequence[int], starts: Tensor, samples: int) -> ContinuationCost:
        """Return the cost of :meth:`outcomes` with the same arguments."""
        prefixes = self._find_prefixes(rollout, rows, starts, samples)
        new = {history: place for history, _, place in prefixes if history not in self._known}
        tokens = sum(self.max_tokens - place for place in new.values())
        return ContinuationCost(len(new), len(new) * samples, tokens * samples)

    def outcomes(self, rollout: Rollout, rows: Sequence[int], starts: Tensor, samples: int) -> Tensor:
        """Return the reward of each continuation of some prefixes, all of which end where a turn begins.

        Arguments and result are those of :meth:`rlcredit.oracle.Oracle.outcomes`, rewards in place of verdicts.

        Raises:
            StackError: a prefix ends inside of a turn.

        """
        refuse_late_questions(rollout)
        prefixes = self._find_prefixes(rollout, rows, starts, samples)
        self._play_new_prefixes(rollout, [(h, rows[number], place) for h, number, place in prefixes], samples)
        rewards = torch.full((len(rows), rollout.mask.shape[1] + 1, samples), torch.nan, dtype=torch.float64)
        for number, row in enumerate(rows):
            rewards[number, int(find_read_lengths(rollout.mask[row])) :] = self._completion_outcome(rollout, row)
        for history, number, place in prefixes:
            rewards[number, place] = self._known[history]
        return rewards

    def credit(self, rollout: Rollout, rows: Sequence[int], samples: int) -> TrueCredit:
        """Return the credit of every turn of some episodes; arguments as in :meth:`outcomes`, M at least 2."""
        starts = self.mark_places(rollout, rows)
        outcomes, places = self.outcomes(rollout, rows, starts, samples), places_in_order(starts)
        end = outcomes.shape[1] - 1
        bounds = pad(places.where(places >= 0, end), (0, 1), value=end)
        return true_credit(
            rows,
            outcomes.gather(1, bounds[..., None].expand(-1, -1, samples)),
            places >= 0,
            rollout.turn[list(rows)].cpu(),
            self.task.has_real_rewards,
        )

    @staticmethod
    def _completion_outcome(rollout: Rollout, row: int) -> float:
        return rollout.given_rewards[row].nan_to_num().item()

    def _find_prefixes(
        self, rollout: Rollout, rows: Sequence[int], starts: Tensor, samples: int
    ) -> list[tuple[History, int, int]]:
        """Return the history of each prefix that is asked about, the place of its row among them, and its length."""
        is_read = torch.arange(starts.shape[1]) < find_read_lengths(rollout.mask[list(rows)]).cpu()[:, None]
        numbers, places = (starts & is_read).nonzero(as_tuple=True)
        asked_rows = torch.tensor(rows)[numbers]
        _refuse_other_places(rollout, asked_rows, places)
        prefixes = list_prefixes(rollout, asked_rows.tolist(), places.tolist())
        return [
            ((samples, rollout.sources[row // rollout.group_size][0], tuple(tokens)), number, len(tokens))
            for number, (row, tokens) in zip(numbers.tolist(), prefixes, strict=True)
        ]

    def _play_new_prefixes(self, rollout: Rollout, prefixes: Sequence[tuple[History, int, int]], samples: int) -> None:
        """Continue what has not been continued yet, and note what it earns; prefixes by history, row and length."""
        new = [(h, *place) for h, place in {h: place for h, *place in prefixes}.items() if h not in self._known]
        per_batch = self._count_prefixes_at_a_time(rollout, samples)
        for start in range(0, len(new), per_batch):
            histories, rows, places = (list(column) for column in zip(*new[start : start + per_batch], strict=True))
            noise = prefix_uniforms(
                self.seed,
                self.step,
                prompts=[number for _, number, _ in histories for _ in range(samples)],
                prefixes=[tokens for *_, tokens in histories for _ in range(samples)],
                samples=list(range(samples)) * len(histories),
                length=self.max_tokens - min(places),
                oracle=self.stream,
            )
            _, rewards = self._play_prefixes(rollout, rows, places, samples, noise)
            self._known.update(zip(histories, rewards.nan_to_num().view(-1, samples), strict=True))

    def _continue_batch(
        self, rollout: Rollout, rows: Tensor, places: Tensor, samples: int
    ) -> tuple[Continuations, Tensor]:
        """Play a batch of prefixes to their end; their verdicts are rewards, NaN where there is none."""
        _refuse_other_places(rollout, rows, places)
        noise = self._draw_branch_noise(rollout, rows, places, samples)
        answers, rewards = self._play_prefixes(rollout, rows.tolist(), places.tolist(), samples, noise)
        own_rows, own_places = (values.repeat_interleave(samples) for values in (rows, places))
        return pack_continuations(own_rows, own_places, answers), rewards

    @torch.no_grad()
    def _play_prefixes(
        self, rollout: Rollout, rows: list[int], places: list[int], samples: int, noise: Tensor
    ) -> tuple[Samples, Tensor]:
        """Play prefixes to their end, M times each; return tokens, and rewards with NaN for none, ``(N * M,)``."""
        device = rollout.mask.device
        table = self._open_table(rollout, [])
        table.episodes = [
            episode.copy_episode() for episode in self._replay_prefixes(rollout, rows, places) for _ in range(samples)
        ]
        contexts = self._build_contexts(rollout, list_prefixes(rollout, rows, places))
        indices = torch.arange(len(rows), device=device).repeat_interleave(samples)
        limits = self.max_tokens - torch.tensor(places, device=device)[indices]
        answers = self._decode_contexts(rollout, contexts, noise, indices, limits, table)
        examples = [rollout.sources[row // rollout.group_size][1] for row in rows for _ in range(samples)]
        return answers, list_rewards(self.task.score_episodes(table, examples))

    def _open_table(self, rollout: Rollout, rows: Sequence[int]) -> EpisodeTable:
        """Return an episode for each of some rows, begun."""
        examples = [rollout.sources[row // rollout.group_size][1] for row in rows]
        table = self.task.open_episodes(self.policy, examples)
        assert table is not None
        return table

    def _replay_prefixes(self, rollout: Rollout, rows: list[int], places: list[int]) -> list[Episode]:
        """Return an episode for each prefix, which stands where its actions have led."""
        own_rows, next_turns = sorted(set(rows)), rollout.turn[rows, places].tolist()
        counts = {row: number for number, row in sorted(zip(next_turns, rows, strict=True))}  # the last turn of each
        turns = [
            [rollout.completion_ids[row][rollout.turn[row] == number].tolist() for number in range(counts[row])]
            for row in own_rows
        ]
        table, episodes = self._open_table(rollout, own_rows), {}
        for number in replay_turns(table, turns, rollout.states[own_rows]):
            for place in [place for place, next_turn in enumerate(next_turns) if next_turn == number]:
                episodes[place] = table.episodes[own_rows.index(rows[place])].copy_episode()
        return [episodes[place] for place in range(len(rows))]


def list_rewards(scores: Scores) -> Tensor:
    """Return rewards, or one for right and zero for wrong, NaN where there is none, shape ``(B,)`` float64."""
    rewards = verdict_mask(scores.verdicts, Verdict.RIGHT) if scores.rewards is None else scores.rewards
    return rewards.double().where(judged_mask(scores.verdicts), torch.nan)


def _refuse_other_places(rollout: Rollout, rows: Tensor, places: Tensor) -> None:
    """Refuse prefixes that end anywhere but where a turn begins."""
    if not find_turn_starts(rollout.turn)[rows, places].all():
        raise StackError(
            "The oracle continues an episode where a turn begins, and was asked inside of a turn. Let operators cut "
            "there: MonteCarloCredit(cuts='turn'), Branches(cuts='turn')."
        )
