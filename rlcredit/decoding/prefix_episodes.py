"""Episodes turn by turn: every turn is drawn anew behind all that came before it, for engines that keep no cache."""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from rlcredit.decoding.episode_loop import EpisodeRows, TurnTaker
from rlcredit.decoding.sampling import Samples

Result = TypeVar("Result")


class TurnRequest(NamedTuple):
    """A turn that an engine is to draw.

    Attributes:
        row: Number of its row, prompt by prompt.
        context: Tokens of the prompt and of all that came before.
        start: Tokens of the row before it.
        limit: Most tokens of the turn.

    """

    row: int
    context: list[int]
    start: int
    limit: int


class DrawnTurn(NamedTuple):
    """A turn that an engine has drawn; its end may be passed.

    Attributes:
        tokens: Token ids.
        facts: Log-probability, and entropy and sum of squares where they are known, of each token, shape ``(N, T)``.

    """

    tokens: list[int]
    facts: Tensor


DrawTurns = Callable[[Sequence[TurnRequest]], Awaitable[Sequence[DrawnTurn]]]
"""Draws one turn for each request."""


async def play_by_prefix(
    draw_turns: DrawTurns, prompts: Sequence[list[int]], taker: TurnTaker, limits: Sequence[int], device: torch.device
) -> Samples:
    """Return the episodes of some prompts; the turns of all open rows are drawn, and then answered, together.

    Args:
        draw_turns: What draws turns.
        prompts: Tokens of the prompt of each row, B of them.
        taker: What ends and answers turns.
        limits: Most tokens of each row, sampled and read.
        device: Device of the result.

    """
    episodes = EpisodeRows(taker, limits)
    tokens: list[list[int]] = [[] for _ in prompts]
    facts: list[list[Tensor]] = [[] for _ in prompts]
    while open_rows := [row for row in range(len(prompts)) if episodes.is_open[row]]:
        requests = []
        for row in open_rows:
            start = len(tokens[row])
            turn_limit = min(limits[row] - start, taker.turn_tokens or limits[row])
            requests.append(TurnRequest(row, prompts[row] + tokens[row], start, turn_limit))
        finished_rows = []
        for row, request, drawn_turn in zip(open_rows, requests, await draw_turns(requests), strict=True):
            number, has_ended = episodes.take_turn(row, drawn_turn.tokens[: request.limit])
            tokens[row] += drawn_turn.tokens[:number]
            facts[row].append(drawn_turn.facts[:, :number])
            if has_ended:
                finished_rows.append(row)
        episodes.answer_rows(finished_rows)
        for row in finished_rows:
            observation = episodes.read_pending(row)
            tokens[row] += observation
            facts[row].append(facts[row][0].new_zeros(len(facts[row][0]), len(observation)))
    turn = episodes.list_turns().to(device)
    columns = pad_sequence([torch.cat(parts, -1).T for parts in facts], batch_first=True).to(device)
    logprobs, *further_facts = columns.unbind(-1)
    ids = pad_sequence([torch.tensor(row) for row in tokens], batch_first=True).to(device)
    samples = Samples(ids, turn >= 0, logprobs, torch.tensor(episodes.is_cut, device=device), turn=turn)
    if further_facts:
        samples.entropy, samples.sum_pi_squared = further_facts
    return samples


def run_at_once(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Return the result of a coroutine that waits for nothing, in this thread."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise RuntimeError("A coroutine waits that should not.")
