"""Credit for a batch of tensors that another trainer has sampled and judged."""

import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence

import torch
from torch import Tensor

from rlcredit.bridge.batch_layout import BatchLayout, lay_out_batch
from rlcredit.bridge.bridged_stack import BridgedStack, StackSource, load_stack
from rlcredit.bridge.episode_facts import (
    TurnValues,
    hash_observations,
    read_turn_numbers,
    read_turn_rewards,
    read_turn_values,
)
from rlcredit.credit.contract import StackError, StackWarning
from rlcredit.credit.rollout import Decode, Rollout
from rlcredit.credit.stack_checks import explain_idle_operators, refuse_binary_operators
from rlcredit.formulas.groups import group_imputed_values
from rlcredit.formulas.turns import count_turns, number_turns
from rlcredit.verification.reward_calls import read_rewards

DIRECT_CALL = "this call"
"""Giver of a batch that comes from no trainer with a bridge."""

TURN_REPAIRS = {"turn_rewards": "Pass a list of None if each episode has one reward, at its end."}
"""Sentence for callers that give episodes without the rewards of their turns."""

VERDICT_REPAIR = "Let the trainer's rewards be verdicts"
"""Repair where a trainer gives rewards only, and verdicts are needed."""

ROUNDING_ABOVE_ZERO = 1e-2
"""By how much rounding may lift a log-probability above zero."""


def assign_credit(
    stack: StackSource,
    *,
    mask: Tensor,
    rewards: Tensor | Sequence[float | None],
    groups: Tensor | Sequence[Hashable],
    completion_ids: Tensor | None = None,
    old_logprobs: Tensor | None = None,
    entropy: Tensor | None = None,
    ref_logprobs: Tensor | None = None,
    sum_pi_squared: Tensor | None = None,
    prompt_ids: Tensor | None = None,
    correct: Tensor | Sequence[float] | None = None,
    turn: Tensor | None = None,
    turn_rewards: TurnValues | None = None,
    states: TurnValues | None = None,
    decode: Decode | None = None,
    step: int | None = None,
    giver: str = DIRECT_CALL,
) -> Tensor:
    """Return the advantage of every token.

    Rows may come in any order, groups may differ in size, and tokens that were not sampled may stand anywhere in a row:
    on the left, on the right, or between sampled ones. A row is an episode: what stands between sampled tokens is what
    an environment has said, and the sampled tokens between are a turn.

    Args:
        stack: Operators, as instances or as ``["GRPO", "GTPO(beta=0.1)"]``; the name of a condition, as
            ``sepa_paper/c8_maxrl_sepa``; a file; or what :func:`rlcredit.bridge.load_stack` returns, which keeps the
            state of operators from batch to batch.
        mask: True, or one, on tokens that the policy has sampled, shape ``(B, T)``.
        rewards: Reward of each completion, any real number, shape ``(B,)``; NaN or None where nobody could tell, which
            gives no credit and does not count for others.
        groups: Group of each completion, B integers, texts, or other hashable values; equal ones answer one prompt.
        completion_ids: Token ids, shape ``(B, T)``.
        old_logprobs: Log-probability of each sampled token, shape ``(B, T)``.
        entropy: Entropy in nats of the distribution that each token was drawn from, shape ``(B, T)``.
        ref_logprobs: Log-probability of each sampled token under the reference policy, shape ``(B, T)``.
        sum_pi_squared: Sum of the squared probabilities of all tokens at each place, shape ``(B, T)``.
        prompt_ids: Token ids of the prompts, shape ``(B, L)``.
        correct: One for right and zero for wrong, shape ``(B,)``; the rewards if these are nothing else.
        turn: Number of the turn of each sampled token, shape ``(B, T)``; the numbers of what lies between gaps of the
            mask if not given.
        turn_rewards: Reward after each turn, shape ``(B, K)``, or a list for each completion, None for one that has its
            reward at the end. The last turn has whatever ``rewards`` hold beyond the turns before it, given or not.
        states: Hash of the observation that each turn acts on, shape ``(B, K)``, or a list for each completion; if not
            given, made from ``completion_ids`` between the turns, and from the prompt for the first.
        decode: Function from the token ids of a completion to the text of each token; see
            :func:`rlcredit.policy.pieces.make_piece_decoder`.
        step: Optimizer steps taken so far, for schedules and noise.
        giver: Name of the trainer, for messages.

    Returns:
        Advantages, shape ``(B, T)`` float32, in the order of the rows given, zero outside the mask.

    Raises:
        ValueError: an argument does not have the shape that the mask gives it, or values that it may have; an entry of
            the stack names no operator.
        StackError: an operator needs what was not given, or compares tokens at places that are not comparable.

    Example:
        >>> assign_credit(
        ...     "sepa_paper/c1_grpo",
        ...     completion_ids=torch.tensor([[5, 6], [7, 0], [5, 8]]),
        ...     mask=torch.tensor([[1, 1], [1, 0], [1, 1]]),
        ...     rewards=[1.0, 0.5, 0.0],
        ...     groups=["a", "a", "a"],
        ... )
        tensor([[ 0.5000,  0.5000],
                [ 0.0000,  0.0000],
                [-0.5000, -0.5000]])

    """
    bridge = load_stack(stack)
    fields = {
        "old_logprobs": old_logprobs,
        "entropy": entropy,
        "ref_logprobs": ref_logprobs,
        "sum_pi_squared": sum_pi_squared,
    }
    named_ids = {"completion_ids": completion_ids, "prompt_ids": prompt_ids}
    _refuse_other_types({"mask": mask, "turn": turn, **named_ids, **fields})
    mask = _read_mask(mask)
    _refuse_other_shapes({"completion_ids": completion_ids, "turn": turn, **fields}, mask)
    turn = number_turns(mask) if turn is None else read_turn_numbers(turn, mask)
    has_turns = bool((count_turns(turn) > 1).any())
    turn_facts = {"turn_rewards": turn_rewards, "states": completion_ids if states is None else states}
    turn_facts = turn_facts if has_turns else dict.fromkeys(turn_facts, True)  # a rollout fills in one turn
    bridge.refuse_missing({**fields, **named_ids, **turn_facts, "decode": decode, "step": step}, giver, TURN_REPAIRS)
    rows = len(mask)
    group_names = _read_groups(groups, rows)
    _refuse_probabilities(fields.get("old_logprobs"), mask)
    _refuse_unreadable_values({name: fields[name] for name in bridge.list_needs().keys() & fields.keys()}, mask)
    if prompt_ids is not None and (prompt_ids.ndim != 2 or len(prompt_ids) != rows):
        raise ValueError(f"prompt_ids has shape {tuple(prompt_ids.shape)}, expected ({rows}, L).")
    rewards = _read_numbers("rewards", rewards, mask)
    correct = None if correct is None else _read_verdicts(correct, mask)
    refuse_partial_rewards(bridge, rewards, correct, "Pass `correct` too" if giver == DIRECT_CALL else VERDICT_REPAIR)
    layout = lay_out_batch(mask, group_names)
    if layout.group_size == 1:
        for notice in explain_idle_operators(bridge.operators, 1, has_real_rewards=True):
            warnings.warn(f"All groups have one row. {notice}", StackWarning, stacklevel=2)
    if states is None and completion_ids is not None and has_turns and "states" in bridge.list_needs():
        prompts = layout.slots[:, None] // layout.group_size if prompt_ids is None else prompt_ids
        states = hash_observations(turn, completion_ids, prompts.tolist())
    rollout = _make_rollout(
        layout,
        step or 0,
        mask.new_full(mask.shape, -1, dtype=torch.int64) if completion_ids is None else completion_ids,
        mask.new_zeros(rows, 0, dtype=torch.int64) if prompt_ids is None else prompt_ids,
        rewards,
        rewards if correct is None else correct,
        {name: value.detach().float() for name, value in fields.items() if value is not None},
        turn,
        None if turn_rewards is None else read_turn_rewards(turn_rewards, rewards, turn),
        None if states is None else read_turn_values("states", states, turn, -1),
    )
    return layout.restore_tokens(bridge.assign(rollout, None if completion_ids is None else decode).advantages)


def _refuse_other_types(tensors: Mapping[str, object]) -> None:
    """Refuse arrays and lists in place of tensors."""
    for name, value in tensors.items():
        if value is not None and not isinstance(value, Tensor):
            raise ValueError(
                f"{name} is {value!r:.40} ({type(value).__name__}), expected a tensor. Pass torch.as_tensor({name})."
            )


def _read_groups(groups: Tensor | Sequence[Hashable], rows: int) -> list[Hashable]:
    """Return the group of each row."""
    if not isinstance(groups, Iterable):
        raise ValueError(
            f"groups is {groups!r}, expected the group of each row, as [0, 0, 1, 1] for two groups of two."
        )
    group_names = groups.tolist() if isinstance(groups, Tensor) else list(groups)
    if len(group_names) != rows:
        raise ValueError(f"groups has {len(group_names)} entries, expected {rows}: the group of each row of the mask.")
    return group_names


def _read_mask(mask: Tensor) -> Tensor:
    """Return a mask as truth values."""
    if mask.ndim != 2 or not len(mask):
        raise ValueError(f"mask has shape {tuple(mask.shape)}, expected (B, T): one row per completion.")
    if mask.dtype != torch.bool and not ((mask == 0) | (mask == 1)).all():
        raise ValueError("mask holds other values than 0 and 1. Pass one on sampled tokens, zero elsewhere.")
    return mask.bool()


def _refuse_other_shapes(tensors: Mapping[str, Tensor | None], mask: Tensor) -> None:
    """Refuse tensors without one value per token."""
    for name, value in tensors.items():
        if value is not None and value.shape != mask.shape:
            raise ValueError(
                f"{name} has shape {tuple(value.shape)}, expected {tuple(mask.shape)} as the mask: one value per token."
            )


def _refuse_unreadable_values(tensors: Mapping[str, Tensor | None], mask: Tensor) -> None:
    """Refuse tensors that the stack reads and that hold no number at some sampled token."""
    for name, value in tensors.items():
        if value is not None and (odd := ~value.isfinite() & mask).any():
            row, column = odd.nonzero()[0].tolist()
            raise ValueError(
                f"{name} is {value[row, column]:g} in row {row}, column {column}, where the mask says that a token was "
                "sampled. Pass its number, or zero in the mask."
            )


def _refuse_probabilities(old_logprobs: Tensor | None, mask: Tensor) -> None:
    """Refuse log-probabilities above zero, as which probabilities or negated ones would be taken."""
    if old_logprobs is None or not (odd := (old_logprobs > ROUNDING_ABOVE_ZERO) & mask).any():
        return
    row, column = odd.nonzero()[0].tolist()
    raise ValueError(
        f"old_logprobs is {old_logprobs[row, column]:g} in row {row}, column {column}, and a log-probability is at "
        "most 0. Pass the logarithms of probabilities."
    )


def _read_numbers(name: str, values: Tensor | Sequence[float | None], mask: Tensor) -> Tensor:
    """Return one number per row, NaN where there is none."""
    if not isinstance(values, Tensor):
        try:
            numbers = read_rewards(values, len(mask))
        except TypeError as error:
            raise ValueError(f"`{name}` holds {error}.") from None
        values = torch.tensor([torch.nan if number is None else number for number in numbers], device=mask.device)
    if values.shape != mask.shape[:1]:
        raise ValueError(f"{name} has shape {tuple(values.shape)}, expected ({len(mask)},): one number per completion.")
    values = values.detach().to(device=mask.device, dtype=torch.float32)
    if values.isinf().any():
        raise ValueError(
            f"{name} is infinite in row {int(values.isinf().nonzero()[0])}. Pass NaN where nobody can tell."
        )
    return values


def _read_verdicts(correct: Tensor | Sequence[float | None], mask: Tensor) -> Tensor:
    """Return one verdict per row, NaN where there is none."""
    verdicts = _read_numbers("correct", correct, mask)
    if (odd := verdicts[(verdicts != 0) & (verdicts != 1) & ~verdicts.isnan()]).numel():
        raise ValueError(f"correct holds {odd[0]:g}, expected one for right and zero for wrong.")
    return verdicts


def refuse_partial_rewards(stack: BridgedStack, rewards: Tensor, correct: Tensor | None, repair: str) -> None:
    """Refuse rewards that are no verdicts where an operator needs verdicts and has none.

    Args:
        stack: Stack that reads them.
        rewards: Rewards, NaN where nobody could tell, shape ``(B,)``.
        correct: Verdicts beside the rewards, shape ``(B,)``; None if the rewards stand for them.
        repair: What gives verdicts beside rewards, for the message.

    Raises:
        StackError: with the operator and the first such reward.

    """
    partial = rewards[(rewards != 0) & (rewards != 1) & ~rewards.isnan()]
    if not len(partial):
        return
    reading = [operator.label for operator in stack.operators if "correct" in operator.reads]
    if correct is None and reading:
        raise StackError(
            f"{reading[0]} reads verdicts, and `rewards` hold {partial[0]:g}. {repair}: one for right, zero for wrong."
        )
    reward_readers = [operator for operator in stack.operators if "correct" not in operator.reads]
    refuse_binary_operators(reward_readers, f"`rewards` hold {partial[0]:g}", "pass verdicts as `rewards`")


def _make_rollout(
    layout: BatchLayout,
    step: int,
    completion_ids: Tensor,
    prompt_ids: Tensor,
    rewards: Tensor,
    correct: Tensor,
    values: Mapping[str, Tensor],
    turn: Tensor,
    turn_rewards: Tensor | None,
    states: Tensor | None,
) -> Rollout:
    """Return the batch as a rollout; what was not given, and no operator reads, is zero, and minus one for ids."""
    mask = layout.placed_mask
    nothing = torch.zeros_like(mask, dtype=torch.float32)
    per_token = {"old_logprobs": nothing, "entropy": nothing}
    per_token |= {name: layout.place_tokens(value) for name, value in values.items()}
    if "ref_logprobs" in per_token:
        per_token["ref_log_ratio"] = per_token["old_logprobs"] - per_token["ref_logprobs"]
    rewards, correct = (layout.place_rows(numbers, fill=torch.nan) for numbers in (rewards, correct))
    turn_tables = (("turn_rewards", turn_rewards, 0), ("states", states, -1))
    verdict_mask = ~(rewards.isnan() | correct.isnan())
    return Rollout(
        step=step,
        group_size=layout.group_size,
        prompt_ids=layout.place_rows(prompt_ids, fill=-1),
        completion_ids=layout.place_ids(completion_ids),
        mask=mask,
        correct=group_imputed_values(correct, verdict_mask, layout.group_size),
        judged=verdict_mask,
        task_rewards=group_imputed_values(rewards, verdict_mask, layout.group_size),
        tokens=[[]] * len(mask),
        **per_token,  # pyright: ignore[reportArgumentType]
        turn=layout.place_rows(turn.gather(1, layout.columns), fill=-1),
        **{name: layout.place_rows(table, filler) for name, table, filler in turn_tables if table is not None},
    )
