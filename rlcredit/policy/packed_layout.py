"""Prompts and completions side by side in one row of tokens, without padding, every prompt once."""

from typing import NamedTuple

import torch
from torch import Tensor

from rlcredit.formulas.turns import find_read_lengths
from rlcredit.policy.prompt_format import PADDING


class PackedLayout(NamedTuple):
    """Where the tokens of B completions and of their P prompts lie: N of them in a row, prompts first.

    Attention alone sees sequences, each a prompt and its completion. They are gathered from the row: side by side, S
    tokens in all, or each as wide as the longest, S being B times its width.

    Attributes:
        ids: Token ids of distinct prompts, then of completions without the last token of each, shape ``(N,)``.
        positions: Position of each token in its sequence, shape ``(N,)``.
        sequences: Number in the row of each token of each sequence, shape ``(S,)``; padding is token 0.
        ends: End of each sequence, after a zero, int32, shape ``(B + 1,)``; None where all have one width.
        width: Tokens of the longest sequence.
        places: Place among the sequences of each token, the first one for a token of a prompt, shape ``(N,)``.
        copies: All places of each token of a prompt, shape ``(tokens of prompts, most completions of a prompt)``; S
            where there is none.
        predicting: Token whose state predicts each sampled token of the completions, row by row, shape ``(M,)``.
        targets: Token ids that are predicted, shape ``(M,)``.
        cells: Place of each predicted token in the completions, flattened, shape ``(M,)``.

    """

    ids: Tensor
    positions: Tensor
    sequences: Tensor
    ends: Tensor | None
    width: int
    places: Tensor
    copies: Tensor
    predicting: Tensor
    targets: Tensor
    cells: Tensor

    def move_to(self, device: torch.device) -> "PackedLayout":
        """Return the layout on a device; the host does not wait for the copies."""
        if device.type == "cpu":
            return self

        def move_tensor(value: Tensor) -> Tensor:
            return value.pin_memory().to(device, non_blocking=True)

        return PackedLayout(*(move_tensor(value) if isinstance(value, Tensor) else value for value in self))  # pyright: ignore[reportArgumentType]


def lay_out_rows(prompt_ids: Tensor, completion_ids: Tensor, mask: Tensor, *, is_padded: bool) -> PackedLayout:
    """Lay out completions and their prompts; all tensors are on the CPU.

    Args:
        prompt_ids: Left-padded prompts, shape ``(B, L)``.
        completion_ids: Right-padded completions, shape ``(B, T)``.
        mask: True on tokens that are predicted, shape ``(B, T)``; those between them are read.
        is_padded: Whether all sequences are as wide as the longest.

    """
    prompts, prompt_of = prompt_ids.unique(dim=0, return_inverse=True)
    prompt_lengths = (prompts != PADDING).sum(-1)
    read_lengths = (find_read_lengths(mask) - 1).clamp(min=0)  # nothing is predicted from the last token
    prompt_tokens = int(prompt_lengths.sum())
    prompt_starts = prompt_lengths.cumsum(0) - prompt_lengths
    starts = prompt_tokens + read_lengths.cumsum(0) - read_lengths
    own_lengths = prompt_lengths[prompt_of]
    sequence_lengths = own_lengths + read_lengths
    width, rows = int(sequence_lengths.max()), torch.arange(len(mask))
    ends = sequence_lengths.cumsum(0)
    sequence_starts = rows * width if is_padded else ends - sequence_lengths

    columns = torch.arange(width)
    sequences = torch.where(
        columns < own_lengths[:, None],
        prompt_starts[prompt_of][:, None] + columns,
        (starts - own_lengths)[:, None] + columns,
    )
    is_token = columns < sequence_lengths[:, None]
    sequences = sequences.where(is_token, 0).flatten() if is_padded else sequences[is_token]

    prompt_positions = _count_up(prompt_lengths)
    completion_positions = _count_up(read_lengths) + own_lengths.repeat_interleave(read_lengths)
    copies = _list_copies(prompt_of, sequence_starts, len(sequences)).repeat_interleave(prompt_lengths, 0)
    copies = (copies + prompt_positions[:, None]).where(copies < len(sequences), len(sequences))
    completion_places = sequence_starts.repeat_interleave(read_lengths) + completion_positions

    tokens = torch.arange(completion_ids.shape[1])
    is_read = tokens < read_lengths[:, None]
    predicting = (starts - 1)[:, None] + tokens
    predicting[:, 0] = (prompt_starts + prompt_lengths - 1)[prompt_of]
    return PackedLayout(
        ids=torch.cat([prompts[prompts != PADDING], completion_ids[is_read]]),
        positions=torch.cat([prompt_positions, completion_positions]),
        sequences=sequences,
        ends=None if is_padded else torch.cat([ends.new_zeros(1), ends]).int(),
        width=width,
        places=torch.cat([copies[:, 0], completion_places]),
        copies=copies,
        predicting=predicting[mask],
        targets=completion_ids[mask],
        cells=mask.flatten().nonzero().squeeze(-1),
    )


def _count_up(lengths: Tensor) -> Tensor:
    """Return the numbers from zero to below each length, one after another."""
    starts = lengths.cumsum(0) - lengths
    return torch.arange(int(lengths.sum())) - starts.repeat_interleave(lengths)


def _list_copies(prompt_of: Tensor, starts: Tensor, nowhere: int) -> Tensor:
    """Return the starts of the sequences of each prompt, shape ``(P, most of a prompt)``; ``nowhere`` fills up."""
    counts, order = torch.bincount(prompt_of), prompt_of.argsort(stable=True)
    table = torch.full((len(counts), int(counts.max())), nowhere)
    table[prompt_of[order], _count_up(counts)] = starts[order]
    return table
