"""A stack on the batches of verl's trainer (v1 of 0.10); written against verl 1dda039, which it does not import."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from rlcredit.bridge.assignment import assign_credit
from rlcredit.bridge.bridged_stack import StackSource
from rlcredit.credit.rollout import Decode

VERL_FIELDS = {
    "responses": "completion_ids",
    "old_log_probs": "old_logprobs",
    "entropy": "entropy",
    "ref_log_prob": "ref_logprobs",
}
"""Fields of verl's batch with one value per token, and the arguments that they are for; what is absent is left out."""


def assign_verl_credit(
    stack: StackSource,
    batch: Mapping[str, Tensor],
    keys: Sequence[str],
    padding: Sequence[bool],
    step: int | None = None,
    decode: Decode | None = None,
) -> Tensor:
    """Return the advantages of verl's rows, which come in any order, shape ``(B, T)``.

    The rows of a session count as one completion, in the order of their numbers, with the reward of the last; rows
    that fill up the batch count for nobody.

    Args:
        stack: Stack, the name of a condition, or a list of operators.
        batch: Padded tensors ``response_mask``, ``token_level_rewards`` or, where verl has written none, ``rm_scores``,
            and what else there is, each of shape ``(B, T)``.
        keys: Keys of the rows, ``{uid}_{session}_{number}``.
        padding: Whether each row only fills up the batch.
        step: Optimizer steps taken so far.
        decode: Function from token ids to the text of each token.

    Raises:
        StackError: an operator needs what the batch does not hold.
        ValueError: the batch holds no rewards.

    """
    width = batch["response_mask"].shape[1]
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
        wide = values.new_zeros(len(sessions), int(places.max()) + 1, width)
        wide[rows, places] = values
        return wide.flatten(1)

    token_mask = batch["response_mask"].bool() & ~torch.tensor(padding, device=batch["response_mask"].device)[:, None]
    scores = _find_rewards(batch).sum(-1)
    rewards = torch.full((len(sessions),), torch.nan)
    for row in row_order:
        if not padding[row]:
            rewards[rows[row]] = float(scores[row])  # the last row of a session comes last
    advantages = assign_credit(
        stack,
        mask=join(token_mask),
        rewards=rewards,
        groups=[uid for uid, _ in sessions],
        decode=decode,
        step=step,
        giver="verl",
        **{name: join(batch[field]) for field, name in VERL_FIELDS.items() if field in batch},
    )
    return advantages.view(len(sessions), -1, width)[rows, places]


def _find_rewards(batch: Mapping[str, Tensor]) -> Tensor:
    """Return the rewards of tokens; verl writes others than its scores only if a penalty is in them."""
    for name in ("token_level_rewards", "rm_scores"):
        if name in batch:
            return batch[name]
    raise ValueError(
        "the batch holds neither `token_level_rewards` nor `rm_scores`. Select both: verl writes the former if "
        "use_kl_in_reward is on."
    )
