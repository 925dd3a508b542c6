"""The effects of a stack on a batch: how much credit it moves, where to, and at what cost."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rlcredit.cards.card_batch import CardBatch, CreditedBatch
from rlcredit.cards.finding import Finding, jackknife_estimate
from rlcredit.credit.stack_checks import bound_advantages, explain_idle_operators
from rlcredit.formulas.turns import count_turns

FACT_PASSES = {
    "ref_logprobs": {"reference"},
    "ref_log_ratio": {"reference", "trained"},
    "hidden": {"states"},
    "lookahead": {"alternatives"},
}
"""Forward passes over the batch that an optional fact takes; facts share those of one name."""


def count_forward_passes(needs: Iterable[str]) -> int:
    """Return the number of forward passes over a batch that some facts of a rollout take together.

    Example:
        >>> count_forward_passes(["ref_logprobs", "ref_log_ratio", "hidden", "entropy"])
        3

    """
    return len(set().union(*(FACT_PASSES.get(name, ()) for name in needs)))


def measure_credit_cost(batch: CardBatch, base: CardBatch) -> Iterator[Finding]:
    """Yield the share of a step's time, the passes and the tokens that credit takes.

    Args:
        batch: Batch under the stack that is judged.
        base: Same completions under the baseline.

    """
    share, flat = (
        credited_batch.seconds.get("credit", 0.0) / max(sum(credited_batch.seconds.values()), 1e-9)
        for credited_batch in (batch, base)
    )
    yield Finding(
        "credit_time",
        "share of a step",
        share,
        "share",
        baseline=flat,
        sentence=f"Assigning credit takes {share:.1%} of a step here, the baseline's {flat:.1%}; one step timed.",
    )
    needs = set().union(*(operator.reads for operator in batch.stack), batch.resolution.module.loss.needs)
    passes = count_forward_passes(needs)
    yield Finding(
        "passes",
        "more passes over a batch",
        float(passes),
        "number",
        sentence=f"{passes or 'No'} forward {'pass' if passes == 1 else 'passes'} more than the baseline's.",
    )
    token_count = int(batch.rollout.mask.sum())
    yield Finding(
        "decoded",
        "tokens decoded beside those of the completions",
        batch.decoded / token_count,
        "times",
        sentence=f"{batch.decoded:,} extra tokens are decoded, beside the {token_count:,} of the completions."
        if batch.decoded
        else "No extra tokens are decoded.",
    )


TURN_FACTS = frozenset(["turn_rewards", "states"])
"""Facts by which an operator gives turns credit of their own; those of the room of turns may do without."""

TOKEN_CLASSES = ("number", "word", "symbol", "space", "end")
"""Kinds of tokens."""

BOUND_SHARE = 1 - 1e-5
"""Share of the largest possible credit from which on a token is at its bound."""


def measure_credit_effects(batch: CreditedBatch, base: CreditedBatch) -> Iterator[Finding]:
    """Yield the effects of a stack on the credit of a batch, compared with the baseline's credit.

    Credit is that of the tokens of completions; alternatives and continuations show in the gradient.

    Args:
        batch: Batch under the stack that is judged.
        base: Same completions under the baseline.

    """
    ledgers = [
        credited_batch.rollout.advantages.where(credited_batch.rollout.mask, 0).double().cpu()
        for credited_batch in (batch, base)
    ]
    groups = (
        _group_by_prompt(ledgers[0], batch.rollout.group_size),
        _group_by_prompt(ledgers[1], base.rollout.group_size),
    )
    prompts = len(groups[0])
    moved_share = jackknife_estimate(lambda rows: displaced_credit_shares(groups[0][rows], groups[1][rows])[0], prompts)
    inner_share = jackknife_estimate(lambda rows: displaced_credit_shares(groups[0][rows], groups[1][rows])[1], prompts)
    yield Finding(
        "moved",
        "credit moved",
        unit="share",
        sentence=f"{moved_share['estimate']:.1%} of the credit has another place, or another sign, than the baseline's."
        if ledgers[0].any()
        else "No token is given any credit.",
        **moved_share,
    )
    yield Finding(
        "moved_within",
        "of it between tokens of one completion",
        unit="share",
        sentence=f"{inner_share['estimate']:.1%} of the moved credit stays inside its completion; the rest changes "
        "which completions count.",
        **inner_share,
    )
    if batch.rollout.has_fact("tokens"):
        yield from _measure_token_kinds(batch, base, groups)
    at_bound = _measure_saturation(batch)
    if at_bound is not None:
        sentence = f"{at_bound:.1%} of the tokens with credit have the largest credit that the stack can give."
        yield Finding("saturated", "tokens at the bound", at_bound, "share", sentence=sentence)
    empty_share = float((ledgers[0] == 0)[batch.rollout.mask.cpu()].double().mean())
    yield Finding(
        "without_credit",
        "tokens without credit",
        empty_share,
        "share",
        baseline=float((ledgers[1] == 0)[base.rollout.mask.cpu()].double().mean()),
        sentence=f"{empty_share:.1%} of the tokens get no credit at all.",
    )
    if batch.rollout.has_fact("old_logprobs"):
        yield _measure_logprob_correlation(batch, groups)


def list_stack_warnings(batch: CreditedBatch) -> list[str]:
    """Return warnings about operators that do nothing, and about a stack that gives no credit."""
    warnings = (
        [] if batch.rollout.advantages[batch.rollout.mask].any() else ["It gives no token of the batch any credit."]
    )
    readers = [
        type(operator).__name__
        for operator in batch.stack
        if operator.reads & TURN_FACTS or ".turns." in type(operator).__module__
    ]
    if readers and not count_turns(batch.rollout.turn).gt(1).any():
        warnings.append(
            f"{' and '.join(readers)} would tell turns apart, but every completion of this batch is one turn. Use "
            "episodes of several turns."
        )
    return [*warnings, *explain_idle_operators(batch.stack, batch.rollout.group_size)]


def displaced_credit_shares(credit: Tensor, base: Tensor) -> tuple[float, float]:
    r"""Return the share of credit that lies elsewhere, and the part of it that stays inside its completion.

    .. math:: \tfrac12 \sum_{i,t} |a_{i,t} - b_{i,t}|, \qquad
        1 - \frac{\sum_i |\sum_t (a_{i,t} - b_{i,t})|}{\sum_{i,t} |a_{i,t} - b_{i,t}|}

    with both ledgers scaled to :math:`\sum |a| = \sum |b| = 1`: a factor common to all credit moves nothing.

    Args:
        credit: Advantages under the stack, zero outside the mask, shape ``(..., G, T)``.
        base: Advantages under the baseline, same shape.

    Example:
        >>> displaced_credit_shares(torch.tensor([[2.0, 0.0], [-1.0, -1.0]]), torch.tensor([[0.5, 0.5], [-0.5, -0.5]]))
        (0.25, 1.0)

    """
    totals = [float(ledger.abs().sum()) for ledger in (credit, base)]
    if not min(totals):
        return (0.0, 0.0) if max(totals) == 0 else (1.0, 0.0)
    difference = credit / totals[0] - base / totals[1]
    whole = float(difference.abs().sum())
    between = float(difference.sum(-1).abs().sum())
    return whole / 2, max(0.0, 1 - between / whole) if whole > 1e-12 else 0.0


def classify_tokens(tokens: Sequence[Sequence[str]], width: int) -> NDArray[np.str_]:
    """Return the kind of every token, shape ``(B, T)``; a token without text is an end.

    Example:
        >>> classify_tokens([["12", " +", "the", " ", ""]], 5).tolist()
        [['number', 'symbol', 'word', 'space', 'end']]

    """
    kinds = np.full((len(tokens), width), "end", dtype="U6")
    for row, pieces in enumerate(tokens):
        for place, piece in enumerate(pieces[:width]):
            kinds[row, place] = _classify_piece(piece)
    return kinds


def _classify_piece(piece: str) -> str:
    if any(character.isdigit() for character in piece):
        return "number"
    if any(character.isalpha() for character in piece):
        return "word"
    return "symbol" if piece.strip() else ("space" if piece else "end")


def _measure_token_kinds(batch: CreditedBatch, base: CreditedBatch, groups: tuple[Tensor, Tensor]) -> Iterator[Finding]:
    """Yield the share of the credit on each kind of token that occurs."""
    mask, size = batch.rollout.mask.cpu(), batch.rollout.group_size
    classes = classify_tokens(batch.rollout.tokens, mask.shape[1])
    for kind in TOKEN_CLASSES:
        kind_mask = torch.from_numpy(classes == kind) & mask
        if not kind_mask.any():
            continue
        grouped_mask = _group_by_prompt(kind_mask, size)
        share = jackknife_estimate(
            lambda parts, at=grouped_mask: _credit_share(groups[0][parts], at[parts]), len(grouped_mask)
        )
        flat = _credit_share(groups[1], grouped_mask)
        tokens = float(kind_mask.sum() / mask.sum())
        yield Finding(
            f"on_{kind}",
            f"credit on {kind} tokens" if kind != "end" else "credit on ends",
            unit="share",
            baseline=flat,
            sentence=f"{tokens:.1%} of the tokens, with {share['estimate']:.1%} of the credit and {flat:.1%} of the "
            "baseline's.",
            **share,
        )


def _measure_logprob_correlation(batch: CreditedBatch, groups: tuple[Tensor, Tensor]) -> Finding:
    """Return the covariance of credit and log-probability: to first order, it lowers entropy (arXiv:2505.22617)."""
    size = batch.rollout.group_size
    logprobs = _group_by_prompt(batch.rollout.old_logprobs.double().cpu(), size)
    mask = _group_by_prompt(batch.rollout.mask.cpu(), size)

    def correlation(ledger: Tensor, rows: Sequence[int]) -> float:
        row_mask = mask[rows]
        pairs = torch.stack([ledger[rows][row_mask], logprobs[rows][row_mask]])
        return float(torch.corrcoef(pairs)[0, 1]) if bool((pairs.std(1) > 0).all()) else 0.0

    estimate = jackknife_estimate(lambda rows: correlation(groups[0], rows), len(mask), minimum=-1.0)
    return Finding(
        "confidence",
        "credit on what is likely",
        baseline=correlation(groups[1], range(len(mask))),
        sentence="Correlation of credit and log-probability of tokens: above zero a small step lowers entropy, below "
        "zero it raises it.",
        **estimate,
    )


def _credit_share(ledger: Tensor, token_mask: Tensor) -> float:
    total = float(ledger.abs().sum())
    return float(ledger.abs()[token_mask].sum()) / total if total else 0.0


def _group_by_prompt(values: Tensor, group_size: int) -> Tensor:
    return values.reshape(-1, group_size, values.shape[-1])


def _measure_saturation(batch: CreditedBatch) -> float | None:
    """Return the share of credited tokens whose credit is the largest possible; None if no bound is known."""
    limit = bound_advantages(batch.stack, batch.rollout.group_size)[-1]
    credit = batch.rollout.advantages[batch.rollout.mask].abs()
    has_credit = credit > 0
    if not np.isfinite(limit) or not has_credit.any():
        return None
    return float((credit[has_credit] >= BOUND_SHARE * limit).double().mean())
