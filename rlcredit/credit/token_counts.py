"""Tokens that a run has decoded, read, scored and learnt from."""

from dataclasses import asdict, dataclass

from torch import Tensor

from rlcredit.formulas.turns import find_read_lengths


@dataclass
class TokenCounts:
    """Exact numbers of tokens; operators, oracles and engines add theirs through ``rollout.token_counts``.

    Held-out answers are not counted, nor are the forward and backward passes of probes, nor a pass that is computed
    again to save memory. Padding is no token.

    Args:
        decoded: Tokens decoded for training: completions of all rounds of dynamic sampling, groups passed over
            included, and continuations that operators ask an oracle for.
        decoded_by_probes: Tokens that an oracle decodes for probes.
        prefill: Tokens read before decoding begins: every distinct prompt of a round once, every continued prefix
            once, its prompt included.
        forward: Tokens through a forward pass without gradient: every distinct prompt once, and the completions.
        backward: Tokens through forward and backward pass of an update: rows that are scored with gradient,
            continuations with the prefix that they share, and distinct prompts once.

    Example:
        >>> counts = TokenCounts()
        >>> counts.add(decoded=120, prefill=16)
        >>> counts.add(decoded=30)
        >>> counts.decoded, counts.prefill
        (150, 16)

    """

    decoded: int = 0
    decoded_by_probes: int = 0
    prefill: int = 0
    forward: int = 0
    backward: int = 0

    def add(
        self, *, decoded: int = 0, decoded_by_probes: int = 0, prefill: int = 0, forward: int = 0, backward: int = 0
    ) -> None:
        """Add numbers of tokens, by kind."""
        self.decoded += decoded
        self.decoded_by_probes += decoded_by_probes
        self.prefill += prefill
        self.forward += forward
        self.backward += backward

    def take_counts(self) -> dict[str, int]:
        """Return the numbers by kind, and start again at zero."""
        counts = asdict(self)
        for kind in counts:
            setattr(self, kind, 0)
        return counts


def count_distinct_prompt_tokens(prompt_ids: Tensor) -> int:
    """Count the tokens of distinct prompts.

    Args:
        prompt_ids: Token ids, negative on padding, shape ``(B, L)``.

    Example:
        >>> import torch
        >>> count_distinct_prompt_tokens(torch.tensor([[-1, 5, 6], [-1, 5, 6], [4, 5, 6]]))
        5

    """
    return int((prompt_ids.unique(dim=0) >= 0).sum()) if len(prompt_ids) else 0


def count_sequence_tokens(prompt_ids: Tensor, mask: Tensor) -> int:
    """Count the tokens of distinct prompts and of all completions.

    Args:
        prompt_ids: Token ids of the prompts, negative on padding, shape ``(B, L)``.
        mask: True on sampled tokens, shape ``(B, T)``; those in gaps are read, too.

    Example:
        >>> import torch
        >>> count_sequence_tokens(torch.tensor([[5, 6], [5, 6]]), torch.tensor([[True, True], [True, False]]))
        5

    """
    return count_distinct_prompt_tokens(prompt_ids) + int(find_read_lengths(mask).sum())
