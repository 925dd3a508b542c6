"""A control for signals: the same uncertainties, dealt out anew to the tokens of each completion."""

from torch import Tensor

from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.decoding.noise import stream_number
from rlcredit.formulas.gaps import close_gaps, number_places, open_gaps
from rlcredit.formulas.masked import masked_correlation


def shuffled_signal(signal: Tensor, draws: Tensor, mask: Tensor) -> Tensor:
    """Return the signal with the sampled tokens of each completion in the order of some draws.

    Args:
        signal: Per-token uncertainty, shape ``(B, T)``.
        draws: Numbers below two, one for each place among sampled tokens, shape ``(B, T)``.
        mask: True on sampled tokens, shape ``(B, T)``.

    Returns:
        Shape ``(B, T)``; as it was outside the mask.

    Example:
        >>> import torch
        >>> mask = torch.tensor([[True, True, True, False]])
        >>> shuffled_signal(torch.tensor([[1.0, 2.0, 3.0, 9.0]]), torch.tensor([[0.9, 0.1, 0.5, 0.0]]), mask)
        tensor([[2., 3., 1., 9.]])

    """
    places = number_places(mask)
    order = draws.where(close_gaps(mask, places), 2).argsort(dim=1, stable=True)
    return open_gaps(close_gaps(signal, places).gather(1, order), places)


class ShuffledSignal(CreditOperator, reads="signal step", writes="signal"):
    """Replace the signal by :func:`shuffled_signal`, with draws of the run's seed, step, row and place.

    Weights that are made of it are as large and as unequal as before, and stand elsewhere. If a signal does better than
    this, that is due to *where* it is large.
    """

    def assign(self, rollout: Rollout) -> Metrics:
        """Shuffle; log the correlation with what was there."""
        mask, old_signal = rollout.mask, rollout.signal
        draws = self.draw_token_uniforms(rollout, stream_number("ShuffledSignal"))
        rollout.signal = shuffled_signal(old_signal, draws, mask)
        return {"correlation": masked_correlation(rollout.signal, old_signal, mask)}
