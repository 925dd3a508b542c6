"""How well a signal finds true credit, how far a ledger agrees with it, and what tokens say about the verdict."""

import torch
from torch import Tensor

from rlcredit.functional.masked import masked_mean
from rlcredit.oracle.credit import TrueCredit
from rlcredit.oracle.ranking import captured_mass, roc_area_under_curve, signal_rank_correlation
from rlcredit.statistics.adjusted_p import benjamini_hochberg_adjusted_p

FALSE_DISCOVERIES = 0.05


def credit_fork_mask(truth: TrueCredit) -> Tensor:
    """Mark the tokens that have credit: exact sign tests, false discoveries held to 5 %, shape ``(N, T)`` bool."""
    significant = torch.zeros_like(truth.mask)
    significant[truth.mask] = torch.from_numpy(
        benjamini_hochberg_adjusted_p(truth.p[truth.mask].numpy()) <= FALSE_DISCOVERIES
    )
    return significant


def measure_credit_detection(truth: TrueCredit, scores: Tensor) -> dict[str, float]:
    """Return how well the size of a score finds the tokens on which credit lies, shapes ``(N, T)``.

    Estimates are noisy where the policy is uncertain, so their size would make any measure of uncertainty look good;
    the square of credit without its noise does not, see ``test_noise_is_not_taken_for_credit``.
    """
    size, square = scores[truth.mask].abs(), truth.square[truth.mask]
    return {
        "auc": roc_area_under_curve(size, credit_fork_mask(truth)[truth.mask]),
        "rank": signal_rank_correlation(size, square),
        "mass_10": captured_mass(square, size, 0.1),
        "mass_20": captured_mass(square, size, 0.2),
    }


def measure_credit_cosines(truth: TrueCredit, advantages: Tensor) -> dict[str, float]:
    """Return how far advantages agree with true credit, over all tokens and over deviations in completions."""

    def cosine(a: Tensor, b: Tensor) -> float:
        product = a.norm() * b.norm()
        return float(a @ b / product) if product > 0 else 0.0

    vectors = [values.double().where(truth.mask, 0) for values in (advantages, truth.credit)]
    centred = [values - masked_mean(values, truth.mask, dim=-1, keepdim=True) for values in vectors]
    return {
        "cosine": cosine(*(values[truth.mask] for values in vectors)),
        "cosine_within": cosine(*(values[truth.mask] for values in centred)),
    }


def measure_wrong_signs(truth: TrueCredit, advantages: Tensor) -> dict[str, float]:
    """Return the share of the forks whose advantage has the sign opposite to their true credit, and its two parts.

    What EP-GRPO (Yu et al., 2026, arXiv:2605.04960) says of uniform credit, measured against truth instead of a proxy:
    good tokens of wrong answers are punished, bad tokens of right answers rewarded. Forks without advantage count as
    agreeing; without any fork there is no share, and none is returned.
    """
    where = credit_fork_mask(truth)
    if not where.any():
        return {}
    credit, advantages = truth.credit[where], advantages[where]
    punished, rewarded = (credit > 0) & (advantages < 0), (credit < 0) & (advantages > 0)
    shares = {"opposite": punished | rewarded, "good_punished": punished, "bad_rewarded": rewarded}
    return {name: share.double().mean().item() for name, share in shares.items()}


def measure_token_information(truth: TrueCredit, entropy: Tensor, bins: int = 4) -> dict[str, float]:
    """Return the mean information about the verdict beside the mean entropy, in nats, over all tokens and by entropy.

    Args:
        truth: of some completions.
        entropy: of their tokens, shape ``(N, T)``.
        bins: of equally many tokens each, from the lowest entropy to the highest.

    """
    values, said = entropy[truth.mask].double(), truth.information[truth.mask]
    found = {"information": said.mean().item(), "entropy": values.mean().item()}
    for place, part in enumerate(values.argsort(stable=True).chunk(bins), start=1):
        found |= {f"information_{place}_of_{bins}": said[part].mean().item()}
        found |= {f"entropy_{place}_of_{bins}": values[part].mean().item()}
    return found
