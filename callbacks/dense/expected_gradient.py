"""Expected gradient: credit for the tokens that might have been drawn too, as a critic judges what they lead to."""

import torch

from rlcredit.credit.alternatives import WeightedTokens
from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.prefix_statistics import extended_statistics, prefix_statistics
from rlcredit.formulas.value_estimates import expected_gradient_weights, following_values


class ExpectedGradient(
    CreditOperator,
    reads="advantages completion_ids critic critic_weight judged lookahead old_logprobs rewards values",
    writes="advantages alternatives",
    neutral={"share": 0.0},
    costly=True,
):
    r"""Replace credit by the expected policy gradient wherever the policy was undecided.

    .. math:: a \sum_t \sum_v \pi(v \mid s_t) \bigl(V(s_t v) - \bar V_t\bigr) \nabla \log \pi(v \mid s_t)
        + (1 - a) \sum_t A_t \nabla \log \pi(o_t \mid s_t)

    over the sampled token and its likely alternatives, :math:`\bar V_t` being their mean value and
    :math:`a = \text{share} \times \text{critic\_weight}`; see
    :func:`rlcredit.formulas.value_estimates.expected_gradient_weights`. The gradient has no noise from the draw at
    :math:`t`, nor from what was drawn later: it is as good as the critic. Alternatives are read by one forward pass of
    one token each; nothing is decoded. The credit of the sampled token stands in the advantages, that of the others in
    ``alternatives``. A token without likely alternatives gets none from the critic.

    Args:
        smallest: Probability that an alternative must exceed.
        most: Most alternatives of a completion; of more, those of the largest p (1 - p) are read.
        share: Share of credit that is replaced where the critic has all weight.

    """

    def __init__(self, smallest: float = 0.01, most: int = 16, share: float = 1.0) -> None:
        super().__init__()
        if not (0 < smallest < 0.5 and most >= 1 and 0 <= share <= 1):
            raise ValueError(
                "ExpectedGradient expects 0 < smallest < 0.5, most >= 1 and share from 0 to 1, got "
                f"{smallest:g}, {most} and {share:g}."
            )
        self.smallest = smallest
        self.most = most
        self.share = share

    def assign(self, rollout: Rollout) -> Metrics:
        """Replace; log the weight of the critic's credit, alternatives per completion and the size of their weights."""
        weight, mask = self.share * rollout.critic_weight, rollout.judged_mask
        if not weight or rollout.critic is None:
            return {"weight": 0.0, "alternatives": 0.0, "size": 0.0}
        options = rollout.lookahead.read_alternatives(rollout, self.smallest, self.most)
        rows, places = options.rows, options.places
        paths = prefix_statistics(-rollout.old_logprobs, rollout.mask)[rows, places]
        next_values = rollout.critic.estimate(
            rollout, rows, options.hidden, extended_statistics(paths, -options.logprobs)
        )
        forks, numbers = torch.stack([rows, places]).unique(dim=1, return_inverse=True)
        own_place = tuple(forks)
        following = following_values(rollout.rewards, rollout.values, mask)[own_place]
        weights = expected_gradient_weights(
            torch.cat([rollout.old_logprobs[own_place], options.logprobs]).exp(),
            torch.cat([following, next_values]),
            torch.cat([torch.arange(len(following), device=rows.device), numbers]),
            len(following),
        )
        sampled_weights, option_weights = weights.split([len(following), len(rows)])
        credit = torch.zeros_like(rollout.old_logprobs).index_put(own_place, sampled_weights)
        rollout.advantages = weight * credit.where(mask, 0) + (1 - weight) * rollout.advantages
        weighted_tokens = WeightedTokens(rows, places, options.tokens, options.logprobs, weight * option_weights)
        rollout.alternatives = weighted_tokens.keep(rollout.judged[rows])
        size = option_weights.abs().sum() / len(mask)
        return {"weight": weight, "alternatives": len(rows) / len(mask), "size": size}
