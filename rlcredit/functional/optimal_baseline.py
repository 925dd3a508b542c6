"""The baseline under which a gradient varies least."""

from torch import Tensor

SURE = 1e-6
"""Probability of all other tokens below which there is nothing to choose."""


def optimal_baseline_credit(credit: Tensor, logprobs: Tensor) -> Tensor:
    r"""Move true advantages of tokens to the baseline under which their gradient varies least.

    .. math:: A_t\, \frac{\pi_t}{1 - \pi_t}

    A baseline leaves the expected gradient as it is. The optimal one weighs the values of the tokens by the squared
    lengths of their scores (Greensmith, Bartlett and Baxter, 2004; of a state, Keane and Gao, 2022, arXiv:2212.13587).
    For two tokens with the values Q and Q' it is :math:`(1 - \pi) Q + \pi Q'`, and whichever of them is drawn, the
    gradient with respect to the logits is the expected one. So a rare slip is hardly punished; instead the token that
    is nearly always drawn in its place is rewarded for avoiding it.

    Of more than two tokens, those not drawn count as one. Then the expected gradient is another one: rare alternatives
    to a likely token are not told apart, and where k tokens are equally likely it is shorter by the factor 1 / (k - 1).

    Args:
        credit: value behind the token less that of its prefix, shape ``(B, T)``.
        logprobs: :math:`\log \pi_t` of the token, shape ``(B, T)``.

    Returns:
        Shape ``(B, T)``; zero where the token was sure, and unbounded near it if the credit is an estimate.

    Example:
        >>> import torch
        >>> optimal_baseline_credit(torch.tensor([[0.1, -0.9]]), torch.tensor([[0.9, 0.1]]).log())
        tensor([[ 0.9000, -0.1000]])

    """
    others = -logprobs.to(credit.dtype).expm1()
    return (credit * (1 - others) / others).where(others > SURE, 0)
