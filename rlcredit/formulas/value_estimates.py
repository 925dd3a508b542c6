"""Credit from the values of prefixes, and how good the values are."""

import torch
from torch import Tensor

from rlcredit.formulas.distributed import pooled_mean_var
from rlcredit.formulas.gaps import close_gaps, number_places, open_gaps
from rlcredit.formulas.groups import leave_one_out_means
from rlcredit.formulas.masked import last_token_mask, masked_mean
from rlcredit.formulas.running_sums import running_sums


def generalized_advantages(rewards: Tensor, values: Tensor, mask: Tensor, lam: float | Tensor) -> Tensor:
    r"""Return generalised advantage estimates of a reward that comes at the end, undiscounted.

    .. math:: A_t = \sum_{k \ge 0} \lambda^k \delta_{t+k}, \qquad \delta_t = V_{t+1} - V_t, \qquad V_{T+1} = r

    Schulman et al. (2016, arXiv:1506.02438). :math:`\lambda = 1` is the reward less the value of the prefix,
    :math:`\lambda = 0` the change of the value by the token.

    Args:
        rewards: Reward of each completion, shape ``(B,)``.
        values: Value V of the prefix before each token, shape ``(B, T)``.
        mask: True on sampled tokens, shape ``(B, T)``.
        lam: Lambda, or one for each completion, shape ``(B,)``.

    Returns:
        Shape ``(B, T)``, zero outside the mask.

    Example:
        >>> values, mask = torch.tensor([[0.5, 0.75]]), torch.ones(1, 2, dtype=torch.bool)
        >>> generalized_advantages(torch.tensor([1.0]), values, mask, lam=0.0)
        tensor([[0.2500, 0.2500]])
        >>> generalized_advantages(torch.tensor([1.0]), values, mask, lam=1.0)
        tensor([[0.5000, 0.2500]])

    """
    deltas = following_values(rewards, values, mask) - values
    advantages, following = torch.zeros_like(values), torch.zeros_like(rewards)
    for place in reversed(range(values.shape[1])):
        following = torch.where(mask[:, place], deltas[:, place] + lam * following, following)
        advantages[:, place] = following
    return advantages.where(mask, 0)


def process_returns(rewards: Tensor, mask: Tensor, judged: Tensor, group_size: int) -> Tensor:
    r"""Return the sum of the process rewards from each token on, with a baseline from the group's others.

    .. math:: \sum_{s \ge t} \Bigl(r_{i,s} - \frac{1}{G - 1} \sum_{j \ne i} \bar r_j\Bigr)

    with :math:`\bar r_j` the mean reward of a token of completion j. Cui et al. (2025, arXiv:2502.01456), equation 5;
    undiscounted.

    Args:
        rewards: Process reward of each token, shape ``(B, T)``.
        mask: True on sampled tokens, shape ``(B, T)``.
        judged: True where there is a verdict; the others count as if they had not been sampled, shape ``(B,)``.
        group_size: Completions per prompt G.

    Returns:
        Shape ``(B, T)``, zero outside the mask and where a completion is its group's only one.

    Example:
        >>> rewards, mask = torch.tensor([[1.0, 3.0], [0.0, 1.0]]), torch.ones(2, 2, dtype=torch.bool)
        >>> process_returns(rewards, mask, mask[:, 0], group_size=2)  # means 2 and 0.5
        tensor([[ 3.0000,  2.5000],
                [-3.0000, -1.0000]])

    """
    means = leave_one_out_means(masked_mean(rewards, mask, dim=-1).where(judged, torch.nan), group_size)
    companions = judged.view(-1, group_size).sum(-1).repeat_interleave(group_size) - judged.long()
    reward_mask = mask & (judged & (companions > 0))[:, None]
    deviations = (rewards - means[:, None]).where(reward_mask, 0)
    return running_sums(deviations.flip(1)).flip(1).where(reward_mask, 0)


def following_values(rewards: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    """Return the value of the prefix before the next sampled token; behind the last one it is the reward.

    Arguments as for :func:`generalized_advantages`; shape ``(B, T)``.
    """
    places = number_places(mask)
    next_values = open_gaps(close_gaps(values, places).roll(-1, dims=1), places)
    return next_values.where(~last_token_mask(mask), rewards[:, None])


def carried_values(values: Tensor, starts: Tensor, mask: Tensor) -> Tensor:
    """Return the value at the last start at or before each token.

    Args:
        values: Values where ``starts`` is true, anything elsewhere, shape ``(B, T)``.
        starts: True where a segment begins, shape ``(B, T)``; true at the first token.
        mask: True on sampled tokens, shape ``(B, T)``.

    Returns:
        Shape ``(B, T)``, zero outside the mask.

    Example:
        >>> values, starts = torch.tensor([[0.2, torch.nan, 0.7]]), torch.tensor([[True, False, True]])
        >>> carried_values(values, starts, torch.ones_like(starts))
        tensor([[0.2000, 0.2000, 0.7000]])

    """
    places = torch.arange(mask.shape[1], device=mask.device).expand(mask.shape)
    last_starts = places.where(starts, 0).cummax(1).values
    return values.gather(1, last_starts).where(mask, 0)


def expected_gradient_weights(probabilities: Tensor, values: Tensor, places: Tensor, number: int) -> Tensor:
    r"""Return the weight of each token's log-probability in the expected gradient at its place.

    .. math:: \sum_v w_v \nabla \log \pi(v), \qquad w_v = \pi(v) \Bigl(Q_v - \bar Q\Bigr), \qquad
        \bar Q = \frac{\sum_u \pi(u) Q_u}{\sum_u \pi(u)}

    over the tokens v that are given for a place. Over the whole vocabulary it is the expectation of
    :math:`\nabla \log \pi(v)\, Q_v`, the policy gradient without the noise of the draw (Ciosek and Whiteson, 2018,
    arXiv:1706.05374); over some tokens it is that within them, and the share of the others stays as it is.

    Args:
        probabilities: Probability of each token when the rollout was sampled, shape ``(N,)``.
        values: Value Q of the prefix behind each token, shape ``(N,)``.
        places: Number of the place of each token, from zero, shape ``(N,)``.
        number: Number of places.

    Returns:
        Shape ``(N,)``; the weights of a place add up to zero.

    Example:
        >>> probabilities, values = torch.tensor([0.5, 0.25]), torch.tensor([1.0, 0.0])
        >>> expected_gradient_weights(probabilities, values, torch.tensor([0, 0]), number=1)
        tensor([ 0.1667, -0.1667])

    """
    mass = probabilities.new_zeros(number).index_add(0, places, probabilities)
    total = probabilities.new_zeros(number).index_add(0, places, probabilities * values)
    means = total / mass.clamp(min=torch.finfo(mass.dtype).tiny)
    return probabilities * (values - means[places])


def reward_baselines(rewards: Tensor, group_size: int) -> Tensor:
    """Return the expected reward without a critic: the mean of the group's others, or of the whole batch.

    Args:
        rewards: NaN where there was no verdict, shape ``(B,)``.
        group_size: Completions per prompt G; with one, the mean over the judged completions of all processes is taken.

    Returns:
        Shape ``(B,)`` float32.

    """
    if group_size > 1:
        return leave_one_out_means(rewards, group_size)
    mean, _ = pooled_mean_var(rewards, ~rewards.isnan())
    return mean.float().expand(rewards.shape)


def critic_briers(values: Tensor, rewards: Tensor, mask: Tensor, group_size: int) -> tuple[Tensor, Tensor]:
    """Return the Brier score of values, and that of :func:`reward_baselines`, over the tokens of all processes.

    Args:
        values: Value of the prefix before each token, shape ``(B, T)``.
        rewards: NaN where there was no verdict, shape ``(B,)``.
        mask: True on sampled tokens, shape ``(B, T)``.
        group_size: Completions per prompt, G.

    Returns:
        Two scalars, float64.

    Example:
        >>> values, mask = torch.tensor([[0.5, 1.0], [0.5, 0.0]]), torch.ones(2, 2, dtype=torch.bool)
        >>> critic_briers(values, torch.tensor([1.0, 0.0]), mask, group_size=2)
        (tensor(0.1250, dtype=torch.float64), tensor(1., dtype=torch.float64))

    """
    value_mask = mask & ~rewards.isnan()[:, None]
    verdicts = rewards.nan_to_num()[:, None]
    guesses = (values, reward_baselines(rewards, group_size)[:, None].expand(mask.shape))
    scores = [pooled_mean_var((guess - verdicts).square(), value_mask)[0] for guess in guesses]
    return scores[0], scores[1]


def calibration_sums(values: Tensor, rewards: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    r"""Return the two means whose ratio is the slope of the reward on the value, both as changes from the start.

    .. math:: \overline{(V_t - V_1)(r - V_1)} \quad \text{and} \quad \overline{(V_t - V_1)^2}

    over the tokens of all processes. The ratio is one for the true value, however hard the reward is to foresee: what a
    value has gained along the completion is what the reward will gain on average. It is below one for a critic that
    exaggerates, and zero for one whose changes mean nothing.

    Args:
        values: Value V of the prefix before each token, shape ``(B, T)``.
        rewards: Reward r, NaN where there was no verdict, shape ``(B,)``.
        mask: True on sampled tokens, shape ``(B, T)``.

    Returns:
        Two scalars, float64.

    Example:
        >>> values, mask = torch.tensor([[0.5, 1.0], [0.5, 0.0]]), torch.ones(2, 2, dtype=torch.bool)
        >>> calibration_sums(values, torch.tensor([1.0, 0.0]), mask)
        (tensor(0.1250, dtype=torch.float64), tensor(0.1250, dtype=torch.float64))

    """
    value_mask = mask & ~rewards.isnan()[:, None]
    start = values[:, :1]
    covariance, _ = pooled_mean_var((values - start) * (rewards.nan_to_num()[:, None] - start), value_mask)
    variance, _ = pooled_mean_var((values - start).square(), value_mask)
    return covariance, variance


def value_skill(brier: Tensor, baseline_brier: Tensor) -> Tensor:
    r"""Return the share of the baseline's Brier score that a critic removes, at least zero.

    .. math:: \max(0,\; 1 - \text{Brier} / \text{Brier of the baseline})

    Args:
        brier: Brier score of the critic on rollouts that it was not fitted to.
        baseline_brier: Brier score of the baseline on the same; where it is zero there is nothing to remove.

    Example:
        >>> value_skill(torch.tensor(0.15), torch.tensor(0.2))
        tensor(0.2500)

    """
    return (1 - brier / baseline_brier).where(baseline_brier > 0, 0).clamp(min=0)
