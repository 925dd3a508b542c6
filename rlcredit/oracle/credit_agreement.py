"""How well a signal finds true credit, and how far the credit in a ledger agrees with it."""

import numpy as np
import torch
from torch import Tensor

from rlcredit.formulas.masked import masked_mean
from rlcredit.oracle.credit_estimate import TrueCredit
from rlcredit.statistics.adjusted_p import benjamini_hochberg_adjusted_p


def signal_rank_correlation(one_signal: Tensor, other_signal: Tensor) -> float:
    """Return Spearman's correlation; zero where one of the two does not vary.

    Args:
        one_signal: Values of one signal, shape ``(N,)``.
        other_signal: Values of the other signal, shape ``(N,)``.

    Example:
        >>> import torch
        >>> signal_rank_correlation(torch.tensor([1.0, 2.0, 9.0]), torch.tensor([0.3, 0.2, 0.1]))
        -1.0

    """
    from scipy import stats  # noqa: PLC0415

    ranks = [stats.rankdata(values.double().numpy()) for values in (one_signal, other_signal)]
    if min(np.ptp(r) for r in ranks) == 0:
        return 0.0
    return round(float(np.corrcoef(*ranks)[0, 1]), 12)


def roc_area_under_curve(scores: Tensor, positive: Tensor) -> float:
    """Return the chance that a positive scores higher than a negative, ties counting half; one half without either.

    Args:
        scores: Score of each sample, shape ``(N,)``.
        positive: True on positive samples, shape ``(N,)`` bool.

    Example:
        >>> import torch
        >>> roc_area_under_curve(torch.tensor([0.9, 0.1, 0.1]), torch.tensor([True, True, False]))
        0.75

    """
    from scipy import stats  # noqa: PLC0415

    positives, negatives = int(positive.sum()), int((~positive).sum())
    if not positives or not negatives:
        return 0.5
    ranks = stats.rankdata(scores.double().numpy())
    return float((ranks[positive.numpy()].sum() - positives * (positives + 1) / 2) / (positives * negatives))


def captured_mass(mass: Tensor, scores: Tensor, share: float) -> float:
    """Return the fraction of the mass on the share of positions with the highest scores.

    Positions with equal scores at the edge count in part, as if drawn by lot: a score that is constant captures
    ``share`` of the mass.

    Args:
        mass: Non-negative mass at each position, shape ``(N,)``.
        scores: Score of each position, shape ``(N,)``.
        share: Share of the positions, in [0, 1].

    Example:
        >>> import torch
        >>> captured_mass(torch.tensor([3.0, 1.0, 0.0, 0.0]), torch.tensor([0.9, 0.2, 0.2, 0.1]), share=0.5)
        0.875

    """
    weights, values = mass.double().numpy(), scores.double().numpy()
    if weights.sum() == 0:
        return 0.0
    count = share * len(values)
    edge = np.sort(values)[::-1][min(len(values) - 1, int(np.ceil(count)) - 1)] if count > 0 else np.inf
    over_edge, on_edge = values > edge, values == edge
    tied_share = (count - over_edge.sum()) / on_edge.sum() if on_edge.any() else 0.0
    return float((weights[over_edge].sum() + tied_share * weights[on_edge].sum()) / weights.sum())


FALSE_DISCOVERIES = 0.05


def credit_fork_mask(true_credit: TrueCredit) -> Tensor:
    """Mark the tokens that have credit: tests of each, false discoveries held to 5 %, shape ``(N, T)`` bool."""
    significant = torch.zeros_like(true_credit.mask)
    significant[true_credit.mask] = torch.from_numpy(
        benjamini_hochberg_adjusted_p(true_credit.p[true_credit.mask].numpy()) <= FALSE_DISCOVERIES
    )
    return significant


def mark_decisive_turns(true_credit: TrueCredit, threshold: float) -> Tensor:
    """Mark the turns that matter: their credit is beyond noise, and its size above a threshold."""
    return credit_fork_mask(true_credit) & (true_credit.credit.abs() > threshold)


def measure_credit_detection(true_credit: TrueCredit, scores: Tensor) -> dict[str, float]:
    """Return the agreement of the size of a score with the tokens on which credit lies, shapes ``(N, T)``.

    Estimates are noisy where the policy is uncertain, so their size would make any measure of uncertainty look good;
    the square of credit without its noise does not, see ``test_noise_is_not_taken_for_credit``.
    """
    size, square = scores[true_credit.mask].abs(), true_credit.square[true_credit.mask]
    return {
        "auc": roc_area_under_curve(size, credit_fork_mask(true_credit)[true_credit.mask]),
        "rank": signal_rank_correlation(size, square),
        "mass_10": captured_mass(square, size, 0.1),
        "mass_20": captured_mass(square, size, 0.2),
    }


def measure_credit_cosines(true_credit: TrueCredit, advantages: Tensor) -> dict[str, float]:
    """Return the agreement of advantages with true credit, over all tokens and over deviations in completions."""

    def cosine(a: Tensor, b: Tensor) -> float:
        product = a.norm() * b.norm()
        return float(a @ b / product) if product > 0 else 0.0

    vectors = [values.double().where(true_credit.mask, 0) for values in (advantages, true_credit.credit)]
    deviations = [values - masked_mean(values, true_credit.mask, dim=-1, keepdim=True) for values in vectors]
    return {
        "cosine": cosine(*(values[true_credit.mask] for values in vectors)),
        "cosine_within": cosine(*(values[true_credit.mask] for values in deviations)),
    }


def measure_wrong_signs(true_credit: TrueCredit, advantages: Tensor) -> dict[str, float]:
    """Return the share of the forks whose advantage has the sign opposite to their true credit, and its two parts.

    EP-GRPO (Yu et al., 2026, arXiv:2605.04960) says that uniform credit punishes good tokens of wrong answers and
    rewards bad tokens of right ones; this measures it against true credit instead of a proxy. Forks without advantage
    count as agreeing. Without any fork there is no share, and the result is empty.
    """
    forks = credit_fork_mask(true_credit)
    if not forks.any():
        return {}
    credit, advantages = true_credit.credit[forks], advantages[forks]
    wrong_blame, wrong_praise = (credit > 0) & (advantages < 0), (credit < 0) & (advantages > 0)
    shares = {"opposite": wrong_blame | wrong_praise, "good_punished": wrong_blame, "bad_rewarded": wrong_praise}
    return {name: share.double().mean().item() for name, share in shares.items()}


def measure_token_information(true_credit: TrueCredit, entropy: Tensor, bins: int = 4) -> dict[str, float]:
    """Return the mean information about the verdict beside the mean entropy, in nats, over all tokens and by entropy.

    Args:
        true_credit: True credit of some completions; of real rewards nothing is returned.
        entropy: Entropy of their tokens, summed over a turn where turns have credit, shape ``(N, T)``.
        bins: Number of bins of equally many tokens, from the lowest entropy to the highest.

    """
    if true_credit.information is None:
        return {}
    values, token_bits = entropy[true_credit.mask].double(), true_credit.information[true_credit.mask]
    metrics = {"information": token_bits.mean().item(), "entropy": values.mean().item()}
    for place, part in enumerate(values.argsort(stable=True).chunk(bins), start=1):
        metrics |= {f"information_{place}_of_{bins}": token_bits[part].mean().item()}
        metrics |= {f"entropy_{place}_of_{bins}": values[part].mean().item()}
    return metrics
