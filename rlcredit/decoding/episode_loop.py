"""The decoding loop of episodes: every row takes one token at a time, drawn by the policy or said by an environment."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from rlcredit.decoding.decoding_loop import (
    MAX_OPEN_SHARE,
    ROW_MULTIPLE,
    DecodingForward,
    DrawnTokens,
    TokenSampler,
    fill_up_rows,
)


class TurnTaker(Protocol):
    """What ends turns and answers them; see :class:`rlcredit.episodes.episode_table.EpisodeTable`."""

    episodes: list[Any]
    """What has happened in each row."""

    @property
    def is_slow(self) -> bool:
        """Whether rows wait for each other's answers, because these take long."""
        ...

    @property
    def turn_tokens(self) -> int | None:
        """Most tokens of a turn; as many as an episode may have if None."""
        ...

    @property
    def turn_ends(self) -> Sequence[str]:
        """Texts that end a turn, beside the policy's stop tokens."""
        ...

    def has_ended(self, tokens: Sequence[int]) -> bool:
        """Whether a turn ends with the last of its tokens so far."""
        ...

    def answer_turns(self, rows: Sequence[int], turns: Sequence[Sequence[int]]) -> list[list[int] | None]:
        """Return the tokens that follow on the turns that rows have taken; None where the episode has ended."""
        ...


class SingleTurns:
    """Ends turns and answers none: every episode is over behind its first turn.

    Args:
        has_ended: Function that tells whether a turn ends with the last of its tokens.

    """

    is_slow = False
    turn_tokens = None
    turn_ends: Sequence[str] = ()

    def __init__(self, has_ended: Callable[[Sequence[int]], bool]) -> None:
        self.tells_end, self.episodes = has_ended, list[Any]()

    def has_ended(self, tokens: Sequence[int]) -> bool:
        """Whether a turn ends with the last of its tokens so far."""
        return self.tells_end(tokens)

    def answer_turns(self, rows: Sequence[int], turns: Sequence[Sequence[int]]) -> list[list[int] | None]:
        """Return None for each row."""
        return [None] * len(rows)


class EpisodeRows:
    """The rows of some episodes: turns in their order, and what an environment has said and the policy has yet to read.

    Args:
        taker: What ends and answers turns.
        limits: Most tokens of each row, sampled and read.

    Attributes:
        turn: Number of the turn of each token of each row, -1 where the environment speaks.
        is_open: Whether each row goes on.
        is_cut: Whether each row ended at the limit.

    """

    def __init__(self, taker: TurnTaker, limits: Sequence[int]) -> None:
        rows = len(limits)
        self.taker, self.limits = taker, limits
        self.turn: list[list[int]] = [[] for _ in range(rows)]
        self.is_open, self.is_cut = [True] * rows, [False] * rows
        self.turn_counts = [0] * rows
        self.turn_tokens: list[list[int]] = [[] for _ in range(rows)]
        self.pending: list[deque[int]] = [deque() for _ in range(rows)]

    def take_column(self, rows: Sequence[int], draws: Sequence[int]) -> list[int]:
        """Take one token in every row, what is pending or else what was drawn, and have turns that end answered.

        Args:
            rows: Numbers of the rows; closed ones take nothing.
            draws: Token that was drawn for each.

        Returns:
            The token of each row.

        """
        tokens, finished_rows = list(draws), []
        for place, row in enumerate(rows):
            if not self.is_open[row]:
                continue
            if self.pending[row]:
                tokens[place] = self.pending[row].popleft()
                self.turn[row].append(-1)
                continue
            if self._take_token(row, tokens[place]):
                finished_rows.append(row)
            elif len(self.turn[row]) == self.limits[row]:
                self.close_row(row, is_cut=True)
        if finished_rows:
            self.answer_rows(finished_rows)
        return tokens

    def take_turn(self, row: int, tokens: Sequence[int]) -> tuple[int, bool]:
        """Take a turn, up to its end; return its number of tokens, and whether it is to be answered."""
        for number, token in enumerate(tokens, start=1):
            if self._take_token(row, token):
                return number, True
        self.close_row(row, is_cut=True)
        return len(tokens), False

    def _take_token(self, row: int, token: int) -> bool:
        """Take the next token of a row's turn; return whether it is the last."""
        self.turn_tokens[row].append(token)
        self.turn[row].append(self.turn_counts[row])
        return self.taker.has_ended(self.turn_tokens[row])

    def read_pending(self, row: int) -> list[int]:
        """Return the tokens that an environment has said in a row, which are read at once."""
        tokens = list(self.pending[row])
        self.pending[row].clear()
        self.turn[row] += [-1] * len(tokens)
        return tokens

    def answer_rows(self, rows: Sequence[int]) -> None:
        """Have the turns that rows have taken answered; close those whose episode is over or has no more room."""
        answers = self.taker.answer_turns(rows, [self.turn_tokens[row] for row in rows])
        for row, tokens in zip(rows, answers, strict=True):
            self.turn_counts[row] += 1
            self.turn_tokens[row] = []
            if tokens is None or len(self.turn[row]) + len(tokens) >= self.limits[row]:
                self.close_row(row, is_cut=tokens is not None)
            else:
                self.pending[row].extend(tokens)

    def close_row(self, row: int, *, is_cut: bool) -> None:
        """End a row."""
        self.is_open[row], self.is_cut[row] = False, is_cut

    def list_turns(self) -> Tensor:
        """Return the number of the turn of each token, -1 elsewhere, shape ``(B, T)`` int64, on the CPU."""
        rows = [torch.tensor(turn, dtype=torch.long) for turn in self.turn]
        return pad_sequence(rows, batch_first=True, padding_value=-1)


def decode_episodes(
    reader: DecodingForward,
    draw: TokenSampler,
    prompt_ids: Tensor,
    context_numbers: Tensor,
    noise: Tensor,
    episodes: EpisodeRows,
    storage: DrawnTokens,
    first_row: int,
) -> None:
    """Draw and read tokens in every row until the last episode has ended.

    Args:
        reader: Forward pass of the policy over the contexts.
        draw: Sampler that chooses the tokens.
        prompt_ids: Contexts, left-padded, shape ``(P, L)``.
        context_numbers: Number of the context that each row continues, shape ``(B,)``.
        noise: Uniforms in [0, 1), one per token, shape ``(B, T)``.
        episodes: Rows of all episodes.
        storage: Storage for the tokens.
        first_row: Row of ``episodes`` and of the storage at which the first row stands.

    """
    contexts, context_of = torch.unique(context_numbers, return_inverse=True)
    rows = fill_up_rows(torch.arange(len(context_numbers), device=context_numbers.device))
    states = reader.read_contexts(prompt_ids[contexts], context_of[rows], noise.shape[1])
    count, noise = len(context_numbers), noise[rows]
    numbers, places = _number_rows(rows, count, first_row, storage)
    tokens, facts = draw(states, noise[:, 0])
    block = states[None], tokens[None], facts[None]
    for position in range(1, noise.shape[1] + 1):
        column = block[1][0].tolist()
        column[:count] = episodes.take_column(numbers, column[:count])
        tokens = torch.tensor(column, device=noise.device)
        storage.add_tokens(block[0], tokens[None], block[2])
        open_places = [place for place, number in enumerate(numbers) if episodes.is_open[number]]
        if not open_places:
            storage.write_rows(places, position)
            return
        if len(open_places) + (-len(open_places) % ROW_MULTIPLE) <= MAX_OPEN_SHARE * len(rows):
            storage.write_rows(places, position)
            rows_to_keep = fill_up_rows(torch.tensor(open_places, device=noise.device))
            reader.keep_rows(rows_to_keep)
            rows, noise, tokens, count = rows[rows_to_keep], noise[rows_to_keep], tokens[rows_to_keep], len(open_places)
            numbers, places = _number_rows(rows, count, first_row, storage)
        block = reader.draw_tokens(draw, tokens, noise[:, position : position + 1])


def _number_rows(rows: Tensor, count: int, first_row: int, storage: DrawnTokens) -> tuple[list[int], Tensor]:
    """Return the numbers of the rows of a batch, and the rows of the storage, where what fills up is discarded."""
    places = rows + first_row
    numbers = places[:count].tolist()
    is_row = torch.arange(len(rows), device=rows.device) < count
    return numbers, places.where(is_row, storage.discard_row)
