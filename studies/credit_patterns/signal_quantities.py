"""What surprisal, entropy, p(1-p) and pooled credit are on one batch, with jackknife intervals."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from callbacks.signals.predictive_variance import masked_rank_correlation
from callbacks.signals.sepa import sepa_pooled_signal
from callbacks.tokens.gtpo import GTPO, gtpo_weights
from rlcredit.cards.finding import jackknife_estimate
from rlcredit.cards.true_credit import select_completions
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.groups import group_standardized
from rlcredit.formulas.masked import masked_correlation, masked_mean, masked_var
from rlcredit.formulas.spans import plan_coverage
from rlcredit.formulas.uncertainty import predictive_variance, surprisal
from rlcredit.oracle import TrueCredit
from rlcredit.oracle.credit_agreement import credit_fork_mask, measure_credit_cosines, roc_area_under_curve
from rlcredit.statistics.intervals import jackknife_interval

Row = dict[str, Any]


def measure_over_prompts(
    rollout: Rollout, quantities: Mapping[str, Callable[[Tensor], Any]], least: float = 0.0, most: float = torch.inf
) -> Iterator[Row]:
    """Yield quantities of a batch with jackknife intervals over prompts.

    Args:
        rollout: Batch.
        quantities: Functions of row numbers, by name.
        least: Smallest value that a quantity can have.
        most: Largest value that a quantity can have.

    """
    numbers = torch.arange(len(rollout.mask)).view(-1, rollout.group_size)
    for name, quantity in quantities.items():
        prompts = list(range(len(numbers)))
        estimate = float(quantity(numbers.flatten()))
        others = [[other for other in prompts if other != prompt] for prompt in prompts]
        interval = jackknife_interval(estimate, np.array([float(quantity(numbers[part].flatten())) for part in others]))
        yield {
            "quantity": name,
            "estimate": estimate,
            "low": max(least, interval.low),
            "high": min(most, interval.high),
        }


def measure_variance_split(rollout: Rollout, where: Tensor) -> Iterator[Row]:
    r"""Yield how the variance of surprisal splits: :math:`Var(s) = Var(H) + E[(s - H)^2]`, since E[s | prefix] = H.

    Args:
        rollout: Batch.
        where: True on the tokens meant, shape ``(B, T)``.

    """
    s, h = surprisal(rollout.old_logprobs).double(), rollout.entropy.double()
    whole = {"variance": lambda rows: masked_var(s[rows], where[rows])}
    shares = {
        "entropy_share": lambda rows: masked_var(h[rows], where[rows]) / masked_var(s[rows], where[rows]),
        "noise_share": lambda rows: masked_mean((s - h)[rows] ** 2, where[rows]) / masked_var(s[rows], where[rows]),
        "correlation": lambda rows: masked_correlation(s[rows], h[rows], where[rows]),
    }
    rest = {"rest": lambda rows: 1 - shares["entropy_share"](rows) - shares["noise_share"](rows)}
    yield from measure_over_prompts(rollout, {**whole, **shares})
    yield from measure_over_prompts(rollout, rest, least=-torch.inf)


def count_opposite_pairs(surprisals: Tensor, variances: Tensor, mask: Tensor) -> Tensor:
    """Count the pairs of tokens of each completion: all, those with a token below one half, those ordered oppositely.

    Args:
        surprisals: Surprisal of each token, shape ``(B, T)``.
        variances: Value of p(1-p) of each token, same shape.
        mask: True on sampled tokens, same shape.

    Returns:
        Shape ``(B, 3)`` float64.

    Example:
        >>> p = torch.tensor([[0.9, 0.5, 0.05]])  # 0.05 is the most surprising, and has the lowest p(1-p)
        >>> count_opposite_pairs(-p.log(), p * (1 - p), torch.ones(1, 3, dtype=torch.bool))
        tensor([[3., 2., 2.]], dtype=torch.float64)

    """
    counts = []
    for s, v, row in zip(surprisals, variances, mask, strict=True):
        first, second = torch.combinations(torch.arange(int(row.sum()))).T
        s, v = s[row], v[row]
        unlikely = torch.maximum(s[first], s[second]) > math.log(2)
        opposite = (s[first] - s[second]) * (v[first] - v[second]) < 0
        counts.append([len(first), int(unlikely.sum()), int(opposite.sum())])
    return torch.tensor(counts, dtype=torch.float64)


def measure_order(rollout: Rollout) -> Iterator[Row]:
    """Yield how far p(1-p) and surprisal order the tokens of a completion in the same way."""
    s, v = surprisal(rollout.old_logprobs), predictive_variance(rollout.old_logprobs)
    pairs = count_opposite_pairs(s, v, rollout.mask)
    shares = {
        "below_half": lambda rows: masked_mean((s[rows] > math.log(2)).double(), rollout.mask[rows]),
        "opposite_pairs": lambda rows: pairs[rows, 2].sum() / pairs[rows, 0].sum(),
        "opposite_of_unlikely": lambda rows: pairs[rows, 2].sum() / pairs[rows, 1].sum(),
    }
    by_s, by_v = (gtpo_weights(signal, rollout.mask, GTPO().beta) for signal in (s, v))
    correlations = {
        "rank_correlation": lambda rows: masked_rank_correlation(s[rows], v[rows], rollout.mask[rows]),
        "weight_correlation": lambda rows: masked_correlation(by_s[rows], by_v[rows], rollout.mask[rows]),
    }
    yield from measure_over_prompts(rollout, shares, most=1.0)
    yield from measure_over_prompts(rollout, correlations, least=-1.0, most=1.0)


def measure_pooling(rollout: Rollout, plan_mask: Tensor) -> Iterator[Row]:
    """Yield mean and variance of surprisal over planning and execution tokens, before and after SEPA at lambda 1."""
    before = surprisal(rollout.old_logprobs).double()
    after = sepa_pooled_signal(before, plan_mask, rollout.mask, 1.0)
    for subject, where in (("planning", plan_mask), ("execution", rollout.mask & ~plan_mask)):
        quantities = {
            "mean": lambda rows, of=where: masked_mean(before[rows], of[rows]),
            "before": lambda rows, of=where: masked_var(before[rows], of[rows]),
            "after": lambda rows, of=where: masked_var(after[rows], of[rows]),
            "left": lambda rows, of=where: masked_var(after[rows], of[rows]) / masked_var(before[rows], of[rows]),
        }
        yield from ({"subject": subject, **row} for row in measure_over_prompts(rollout, quantities))
    coverage = {
        name: lambda rows, name=name: plan_coverage(plan_mask[rows], rollout.mask[rows])[name]
        for name in ("coverage", "planning_completions")
    }
    yield from ({"subject": "marked", **row} for row in measure_over_prompts(rollout, coverage, most=1.0))


def measure_over_completions(
    truth: TrueCredit, quantities: Mapping[str, Callable[[Sequence[int]], float]], least: float = 0.0
) -> Iterator[Row]:
    """Yield quantities with jackknife intervals over the completions asked about, each a function of their numbers."""
    for name, quantity in quantities.items():
        yield {"quantity": name, **jackknife_estimate(quantity, len(truth.rows), least)}


def measure_fork_areas(truth: TrueCredit, scores: Mapping[str, Tensor], where: Tensor, base: str) -> Iterator[Row]:
    """Yield the area under the curve of each score for finding the forks, and what it has beyond that of one of them.

    The forks are those of all completions; the jackknife leaves out completions, not the search for forks.

    Args:
        truth: True credit of some completions.
        scores: Score of each of their tokens, by name, shapes ``(N, T)``.
        where: True on the tokens meant, same shape.
        base: Name of the score with which the others are compared.

    """
    forks = credit_fork_mask(truth)

    def area(name: str, chosen: Sequence[int]) -> float:
        rows = list(chosen)
        return roc_area_under_curve(scores[name][rows][where[rows]], forks[rows][where[rows]])

    for name in scores:
        yield from ({"subject": name, **row} for row in measure_over_completions(truth, {"area": partial(area, name)}))
        if name != base:
            beyond = {f"area_beyond_{base}": lambda chosen, name=name: area(name, chosen) - area(base, chosen)}
            yield from ({"subject": name, **row} for row in measure_over_completions(truth, beyond, least=-1.0))


def measure_pivots(rollout: Rollout, truth: TrueCredit) -> Iterator[Row]:
    """Yield how well the score of ERPO's decision pivots, entropy and surprisal find the forks."""
    rows, forks = list(truth.rows), credit_fork_mask(truth)
    score = group_standardized(rollout.entropy, rollout.mask, rollout.group_size)[rows]
    scores = {
        "entropy": rollout.entropy[rows],
        "surprisal": surprisal(rollout.old_logprobs)[rows],
        "pivot score": score,
        "pivot": (score > 0).double(),
    }
    yield from measure_fork_areas(truth, scores, truth.mask, "entropy")
    pivots = (score > 0) & truth.mask

    def share(of: Tensor, among: Tensor, chosen: Sequence[int]) -> float:
        return float(masked_mean(of[list(chosen)].double(), among[list(chosen)]))

    quantities = {
        "pivots": partial(share, pivots, truth.mask),
        "forks": partial(share, forks, truth.mask),
        "forks_that_are_pivots": partial(share, pivots, forks),
        "pivots_that_are_forks": partial(share, forks, pivots),
    }
    yield from ({"subject": "pivot", **row} for row in measure_over_completions(truth, quantities))


def measure_pooled_credit(truth: TrueCredit, ledgers: Mapping[str, Tensor], plan_mask: Tensor) -> Iterator[Row]:
    """Yield how well credit after GTPO, with and without pooling, finds the forks, and where these are."""
    rows, forks = list(truth.rows), credit_fork_mask(truth)
    credit = {name: ledger[rows] for name, ledger in ledgers.items()}
    sizes = {name: values.abs() for name, values in credit.items()}
    execution = truth.mask & ~plan_mask[rows]

    def agreement(name: str, chosen: Sequence[int]) -> float:
        return measure_credit_cosines(select_completions(truth, chosen), credit[name][list(chosen)])["cosine_within"]

    yield from ({"tokens": "all", **row} for row in measure_fork_areas(truth, sizes, truth.mask, "GTPO"))
    yield from ({"tokens": "execution", **row} for row in measure_fork_areas(truth, sizes, execution, "GTPO"))
    for name in credit:
        quantities = {
            "cosine_within": partial(agreement, name),
            **{
                f"cosine_within_beyond_{base}": lambda chosen, name=name, base=base: (
                    agreement(name, chosen) - agreement(base, chosen)
                )
                for base in ("GTPO", "SEPA")
            },
        }
        found = measure_over_completions(truth, quantities, least=-2.0)
        yield from ({"tokens": "all", "subject": name, **row} for row in found)
    shares = {
        "execution_forks": lambda chosen: float(masked_mean(execution[list(chosen)].double(), forks[list(chosen)])),
        "execution_credit": lambda chosen: float(
            truth.square[list(chosen)][execution[list(chosen)]].sum() / truth.square[list(chosen)].sum()
        ),
    }
    found = measure_over_completions(truth, shares)
    yield from ({"tokens": "execution", "subject": "true credit", **row} for row in found)
