"""GSPO: one importance ratio per completion, in the form that takes an advantage per token."""

from torch import Tensor

from rlcredit.formulas.masked import masked_mean
from rlcredit.losses.base import Denominator, bounded_ratio, masked_log_ratio
from rlcredit.losses.clipped_surrogate import ClippedSurrogate


def sequence_ratio(log_ratio: Tensor, mask: Tensor) -> Tensor:
    r"""Return each completion's geometric mean ratio on every token, with that token's gradient.

    .. math:: s_{i,t} = \mathrm{sg}[s_i]\, \frac{\pi_\theta(o_{i,t})}{\mathrm{sg}[\pi_\theta(o_{i,t})]}, \qquad
        s_i = \exp\Bigl(\frac{1}{T_i} \sum_t \log \rho_{i,t}\Bigr)

    Zheng et al. (2025, arXiv:2507.18071), GSPO-token. With one advantage per completion its averaged gradient is that
    of :math:`s_i` itself.

    Args:
        log_ratio: Log pi - log pi_old with graph, shape ``(B, T)``.
        mask: True on sampled tokens, shape ``(B, T)``.

    Returns:
        Shape ``(B, T)``; equal along a completion.

    Example:
        >>> import torch
        >>> sequence_ratio(torch.tensor([[1.0, -0.5, 9.9]]), torch.tensor([[True, True, False]])).log()
        tensor([[0.2500, 0.2500, 0.2500]])

    """
    mean = masked_mean(log_ratio.detach(), mask, dim=-1, keepdim=True)
    return bounded_ratio(mean + (log_ratio - log_ratio.detach()).where(mask, 0))


class GSPO(ClippedSurrogate, row_wise=True):
    """Clip the ratio of whole completions, :func:`sequence_ratio`; every completion counts alike.

    On policy, and averaged per sequence, the gradient is GRPO's.

    Args:
        low: How far a completion's ratio may fall. The paper uses 3e-4.
        high: How far a completion's ratio may rise. The paper uses 4e-4.
        denominator: How tokens are averaged; the paper's is ``sequence``.
        constant: Tokens per completion that ``constant`` divides by; else None.

    """

    def __init__(
        self,
        low: float = 3e-4,
        high: float = 4e-4,
        denominator: Denominator = "sequence",
        constant: int | None = None,
    ) -> None:
        super().__init__(low, high, denominator=denominator, constant=constant)

    def ratio(self, logprobs: Tensor, old_logprobs: Tensor, mask: Tensor) -> Tensor:
        """Return the ratio of the completion on each of its tokens."""
        return sequence_ratio(masked_log_ratio(logprobs, old_logprobs, mask), mask)
