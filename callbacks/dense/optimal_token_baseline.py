"""Optimal token baseline: at every position, the baseline that keeps the gradient's variance smallest."""

from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.gaps import close_gaps, number_places, open_gaps
from rlcredit.formulas.groups import ROUNDING_ERROR
from rlcredit.formulas.masked import masked_mean, masked_sum
from rlcredit.formulas.uncertainty import squared_score_norm


def optimal_token_advantages(
    rewards: Tensor, judged: Tensor, old_logprobs: Tensor, sum_pi_squared: Tensor, mask: Tensor, group_size: int
) -> Tensor:
    r"""Subtract a baseline per position, completions weighted by the gradient they have gathered so far.

    .. math:: A_{i,t} = r_i - \frac{\sum_j r_j W_{j,t}}{\sum_j W_{j,t}}, \qquad
        W_{i,t} = \sum_{k \le t} \bigl(1 - 2 \pi_k + \textstyle\sum_v \pi_k(v)^2\bigr)

    over the judged completions alive at t, after ``optimal_token_baseline`` in verl but without its special cases: a
    completion alone at its position is its own baseline, and gets nothing there. Each term of W is the squared norm of
    the gradient of :math:`\log \pi_k` with respect to the logits. Where all W are zero, the baseline is the mean.

    Args:
        rewards: Reward of each completion, shape ``(B,)``, groups of ``group_size`` neighbours.
        judged: False where there was no verdict; such rows get zero and enter no baseline, shape ``(B,)``.
        old_logprobs: Log-probability of the sampled token when it was drawn, shape ``(B, T)``.
        sum_pi_squared: Sum of squared probabilities of the distribution the token was drawn from, shape ``(B, T)``.
        mask: True on sampled tokens, shape ``(B, T)``.
        group_size: Completions per prompt, G.

    Returns:
        Shape ``(B, T)``; zero in groups of equal rewards.

    Example:
        >>> import torch
        >>> even = torch.full((2, 1), 0.5)
        >>> rewards, judged = torch.tensor([1.0, 0.0]), torch.tensor([True, True])
        >>> optimal_token_advantages(rewards, judged, even.log(), even, even > 0, group_size=2)
        tensor([[ 0.5000],
                [-0.5000]])

    """
    places = number_places(mask)
    old_logprobs, sum_pi_squared, mask = (close_gaps(values, places) for values in (old_logprobs, sum_pi_squared, mask))
    alive = (mask & judged[:, None]).view(-1, group_size, mask.shape[-1])
    norms = squared_score_norm(old_logprobs.double(), sum_pi_squared)
    energies = norms.where(mask, 0).cumsum(-1).view(alive.shape)
    row_rewards = rewards.double().view(-1, group_size, 1).expand(alive.shape)
    weight = masked_sum(energies, alive, dim=1, keepdim=True)
    baselines = masked_sum(energies * row_rewards, alive, dim=1, keepdim=True) / weight
    baseline = baselines.where(weight > 0, masked_mean(row_rewards, alive, dim=1, keepdim=True))
    advantages = row_rewards - baseline
    advantages = advantages.where(alive & (advantages.abs() > ROUNDING_ERROR), 0).view(mask.shape).to(rewards.dtype)
    return open_gaps(advantages, places)


class OptimalTokenBaseline(CreditOperator, reads="judged old_logprobs rewards sum_pi_squared", writes="advantages"):
    """Replace the advantages by :func:`optimal_token_advantages`. Put it where ``GRPO`` would stand."""

    def assign(self, rollout: Rollout) -> Metrics:
        """Replace; log how far credit varies along a completion, which under a mean it does not."""
        rollout.advantages = optimal_token_advantages(
            rollout.rewards,
            rollout.judged,
            rollout.old_logprobs,
            rollout.sum_pi_squared,
            rollout.mask,
            rollout.group_size,
        )
        mean = masked_mean(rollout.advantages, rollout.mask, dim=-1, keepdim=True)
        return {"deviation_within": masked_mean((rollout.advantages - mean) ** 2, rollout.mask).sqrt()}

    def bound(self, limit: float, group_size: int) -> float:
        """A baseline lies between the smallest and the largest reward; a single completion is its own."""
        return 1.0 if group_size > 1 else 0.0
