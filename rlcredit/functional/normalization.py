"""Scaling a completion's signal by its own deviation."""

from typing import Literal, get_args

from torch import Tensor

from rlcredit.functional.choices import require_choice
from rlcredit.functional.masked import masked_mean, masked_median, masked_var

Normalization = Literal["none", "zscore", "scale", "mad"]

FLAT = 1e-5
"""Below this deviation, as a share of its mean size, a signal varies by rounding only."""


def completion_normalized(values: Tensor, mask: Tensor, normalization: Normalization) -> Tensor:
    r"""Scale each completion's values by its own deviation.

    ``none``: as they are. ``scale``: :math:`x / \sigma`, population deviation. ``mad``: :math:`x / (1.4826\,
    \mathrm{MAD})`, robust against outliers, ``scale`` where more than half of the values are equal. ``zscore``:
    :math:`(x - \bar x) / \sigma`; the centring turns every value below the mean negative. Flat completions stay as they
    are.

    Args:
        values: shape ``(B, T)``.
        mask: true on sampled tokens, shape ``(B, T)``.
        normalization: which of the four.

    Returns:
        Shape ``(B, T)``.

    """
    require_choice("normalized", "normalization", normalization, get_args(Normalization))
    if normalization == "none":
        return values
    flat = FLAT * masked_mean(values.abs(), mask, dim=-1, keepdim=True)
    scale = masked_var(values, mask, dim=-1, keepdim=True).sqrt()
    if normalization == "mad":
        robust = 1.4826 * masked_median((values - masked_median(values, mask)).abs(), mask)
        scale = robust.where(robust > flat, scale)
    centre = masked_mean(values, mask, dim=-1, keepdim=True) if normalization == "zscore" else 0.0
    return ((values - centre) / scale).where(scale > flat, values)
