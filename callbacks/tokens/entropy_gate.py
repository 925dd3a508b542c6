"""Entropy gate: credit and process signal count where the policy was undecided for its group."""

from typing import Literal, get_args

from torch import Tensor

from rlcredit.credit.contract import StackError
from rlcredit.credit.operator import CreditOperator, Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.groups import group_standardized
from rlcredit.formulas.masked import masked_mean
from rlcredit.formulas.parameter_choices import require_choice

Compared = Literal["sequence", "group"]


def entropy_gate(entropy: Tensor, mask: Tensor, group_size: int, gamma: float) -> Tensor:
    r"""Return a gate that opens above the mean token entropy of the group.

    .. math:: W_{i,t} = \sigma\Bigl(\gamma\, \frac{H_{i,t} - \mu_{H,G}}{\sigma_{H,G}}\Bigr)

    Eq. 8 of ERPO (2603.28204), reconstructed where its parentheses are lost; population deviation over all tokens of
    the group. W > 1/2 marks what the paper calls critical decision pivots.

    Args:
        entropy: Entropy of each token's distribution in nats, shape ``(B, T)``.
        mask: True on sampled tokens, shape ``(B, T)``.
        group_size: Completions per prompt G; 1 compares a token with its own completion.
        gamma: Steepness of the gate; 0 makes every gate one half.

    Returns:
        In (0, 1), shape ``(B, T)``; one half where the group's entropy does not vary.

    Example:
        >>> import torch
        >>> entropy_gate(torch.tensor([[0.0, 2.0]]), torch.tensor([[True, True]]), group_size=1, gamma=1.0)
        tensor([[0.2689, 0.7311]])

    """
    return (gamma * group_standardized(entropy, mask, group_size)).sigmoid()


class EntropyGate(
    CreditOperator,
    reads="judged entropy advantages process",
    writes="advantages process",
    neutral={"gamma": 0.0, "normalize": "double"},
):
    """Multiply advantages and process signal by :func:`entropy_gate`; the parameters are readings of the paper.

    Args:
        gamma: Steepness of the gate. A third-party ERPO uses 5.
        normalize: ``none`` takes W as it is, which about halves the update; ``double`` 2 W, which is one at the mean
            entropy; ``mean`` W over its mean in the completion, so that none of its credit is lost.
        scope: Tokens with which a token's entropy is compared: those of its ``group``, as in the equation, or of its
            ``sequence``.
        advantages: Whether advantages are gated.
        process: Whether the process signal is gated.

    """

    def __init__(
        self,
        gamma: float = 5.0,
        normalize: Literal["none", "double", "mean"] = "none",
        scope: Compared = "group",
        advantages: bool = True,
        process: bool = True,
    ) -> None:
        super().__init__()
        if not gamma >= 0:
            raise ValueError(f"EntropyGate expects gamma >= 0, got {gamma}. A negative gamma would open on certainty.")
        self.gamma, self.advantages, self.process = gamma, advantages, process
        self.normalize = require_choice("EntropyGate", "normalize", normalize, ("none", "double", "mean"))
        self.scope: Compared = require_choice("EntropyGate", "scope", scope, get_args(Compared))
        self.writes = frozenset(name for name in ("advantages", "process") if getattr(self, name))
        self.reads = self.writes | {"entropy", "judged"}
        if not self.writes:
            raise StackError("EntropyGate gates neither advantages nor process. Remove it from trainer.callbacks.")

    def assign(self, rollout: Rollout) -> Metrics:
        """Gate; log the gate's mean, the weights' mean and the share of critical decision pivots."""
        group_rows, mask = rollout.group_size if self.scope == "group" else 1, rollout.judged_mask
        gate = entropy_gate(rollout.entropy, mask, group_rows, self.gamma)
        scale = {"none": 1.0, "double": 0.5, "mean": masked_mean(gate, mask, dim=-1, keepdim=True)}
        weights = (gate / scale[self.normalize]).where(mask, 0)
        for name in self.writes:
            setattr(rollout, name, getattr(rollout, name) * weights)
        pivots = masked_mean((gate > 0.5).float(), mask)
        means = {"gate_mean": masked_mean(gate, mask), "weight_mean": masked_mean(weights, mask)}
        return {**means, "pivot_fraction": pivots}
