"""A stack on the batches of verl's trainer (v1 of 0.10); written against verl 1dda039, which it does not import."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from rlcredit.bridge.assignment import assign_credit
from rlcredit.bridge.bridged_stack import StackSource, load_stack
from rlcredit.bridge.episode_facts import hash_observations, read_turn_values
from rlcredit.credit.contract import StackError
from rlcredit.credit.rollout import Decode
from rlcredit.formulas.turns import count_turns, number_turns

VERL_FIELDS = {
    "responses": "completion_ids",
    "old_log_probs": "old_logprobs",
    "entropy": "entropy",
    "ref_log_prob": "ref_logprobs",
}
"""Fields of verl's batch with one value per token, and the arguments that they are for; what is absent is left out."""

TURN_SCORES = ("turn_scores", "tool_rewards")
"""Fields of verl's batch with rewards for the turns of each row: what interactions gave, and what tools gave."""


def assign_verl_credit(
    stack: StackSource,
    batch: Mapping[str, Any],
    keys: Sequence[str],
    padding: Sequence[bool],
    step: int | None = None,
    decode: Decode | None = None,
) -> Tensor:
    """Return the advantages of verl's rows, which come in any order, shape ``(B, T)``.

    The rows of a session count as one completion, in the order of their numbers, with the reward of the last; rows
    that fill up the batch count for nobody. Turns lie between gaps of ``response_mask``, and between rows.

    Where the batch holds ``turn_scores`` or ``tool_rewards``, each counts for its turn, and verl's reward for the last
    turn; the reward of the completion is the sum of all. Leave out what is in verl's reward already.

    Args:
        stack: Stack, the name of a condition, or a list of operators.
        batch: Padded tensors ``response_mask``, ``token_level_rewards`` or, where verl has written none, ``rm_scores``,
            and what else there is, each of shape ``(B, T)``; ``prompts``, ``(B, L)``, where operators compare what
            turns act on; ``turn_scores`` and ``tool_rewards``, lists with a number for each turn of a row, or none.
        keys: Keys of the rows, ``{uid}_{session}_{number}``.
        padding: Whether each row only fills up the batch.
        step: Optimizer steps taken so far.
        decode: Function from token ids to the text of each token.

    Raises:
        StackError: an operator needs what the batch does not hold, or scores are not those of a row's turns.
        ValueError: the batch holds no rewards.

    """
    stack, width = load_stack(stack), batch["response_mask"].shape[1]
    parts = [key.rsplit("_", 2) for key in keys]
    sessions: dict[tuple[str, str], int] = {}
    for uid, session, _ in parts:
        sessions.setdefault((uid, session), len(sessions))
    rows = torch.tensor([sessions[uid, session] for uid, session, _ in parts])
    row_order = sorted(range(len(parts)), key=lambda row: (int(rows[row]), int(parts[row][2])))
    places = torch.zeros_like(rows)
    for row, previous in zip(row_order[1:], row_order, strict=False):
        places[row] = places[previous] + 1 if rows[row] == rows[previous] else 0

    def join(values: Tensor) -> Tensor:
        wide = values.new_zeros(len(sessions), int(places.max()) + 1, width + 1)  # a gap behind each row
        wide[rows, places, :width] = values
        return wide.flatten(1)

    def join_lists(lists: Sequence[Sequence[Any]]) -> list[list[Any]]:
        session_lists: list[list[Any]] = [[] for _ in sessions]
        for row in row_order:
            session_lists[rows[row]].extend(lists[row])
        return session_lists

    token_mask = batch["response_mask"].bool() & ~torch.tensor(padding, device=batch["response_mask"].device)[:, None]
    turn, scores = number_turns(token_mask), _find_rewards(batch).sum(-1)
    turn_scores = join_lists(_add_turn_scores(batch, turn))
    rewards = torch.full((len(sessions),), torch.nan)
    for row in row_order:
        if not padding[row]:
            rewards[rows[row]] = float(scores[row]) + sum(
                turn_scores[rows[row]]
            )  # the last row of a session comes last
    states = None
    if label := stack.list_needs().get("states"):
        if not {"prompts", "responses"} <= batch.keys():
            raise StackError(f"{label} compares what turns act on. Select `prompts` and `responses` for the batch.")
        states = join_lists(hash_observations(turn, batch["responses"], batch["prompts"].tolist()))
    advantages = assign_credit(
        stack,
        mask=join(token_mask),
        rewards=rewards,
        groups=[uid for uid, _ in sessions],
        turn_rewards=turn_scores,
        states=states,
        decode=decode,
        step=step,
        giver="verl",
        **{name: join(batch[field]) for field, name in VERL_FIELDS.items() if field in batch},
    )
    return advantages.view(len(sessions), -1, width + 1)[rows, places, :width]


def _find_rewards(batch: Mapping[str, Any]) -> Tensor:
    """Return the rewards of tokens; verl writes others than its scores only if a penalty is in them."""
    for name in ("token_level_rewards", "rm_scores"):
        if name in batch:
            return batch[name]
    raise ValueError(
        "the batch holds neither `token_level_rewards` nor `rm_scores`. Select both: verl writes the former if "
        "use_kl_in_reward is on."
    )


def _add_turn_scores(batch: Mapping[str, Any], turn: Tensor) -> list[list[float]]:
    """Return the scores of each row's turns, of interactions and tools together; a last turn may have none."""
    counts = count_turns(turn)
    table = torch.zeros(len(turn), max(1, int(counts.max())), dtype=torch.float64, device=turn.device)
    for name in TURN_SCORES:
        if name in batch:
            scores = [numbers if len(numbers) else None for numbers in batch[name]]
            table = table + read_turn_values(name, scores, turn, 0.0, spare_turns=1)
    return [row[:count] for row, count in zip(table.tolist(), counts.tolist(), strict=True)]
