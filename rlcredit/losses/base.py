"""The weight of each token in a loss."""

from abc import ABC, abstractmethod
from typing import Any, Literal

import torch
from torch import Tensor

from rlcredit.formulas.distributed import rank_and_world_size, sum_over_processes
from rlcredit.formulas.masked import masked_sum

Denominator = Literal["token", "sequence", "constant"]


def token_weights(mask: Tensor, denominator: Denominator, constant: int | None = None) -> Tensor:
    r"""Return the weight of each token, so that the loss is a weighted sum.

    ``token``: :math:`1 / \sum_i T_i`, every token alike (DAPO). ``sequence``: :math:`1 / (B\, T_i)`, every
    completion alike (GRPO). ``constant``: :math:`1 / (B\, C)`, free of length bias (Dr. GRPO, C being the budget).
    Counts are those of the batch over *all* processes; since data-parallel training averages gradients over processes,
    the mean count per process is the one to divide by.

    Args:
        mask: True on sampled tokens, shape ``(B, T)``; tokens whose advantage is zero count too, and so do rows without
            any token. Rows of completions that were not judged are not among the B.
        denominator: Denominator, one of the three.
        constant: Number c of tokens per completion, used by ``constant`` only.

    Returns:
        Weights, float32, shape ``(B, T)``, zero outside the mask.

    Example:
        >>> mask = torch.tensor([[True, True, True], [True, False, False]])
        >>> token_weights(mask, "token")[0], token_weights(mask, "sequence")[:, 0]
        (tensor([0.2500, 0.2500, 0.2500]), tensor([0.1667, 0.5000]))

    """
    if denominator == "token":
        return mask / (sum_over_processes(mask.sum().float()).clamp(min=1) / rank_and_world_size()[1])
    rows = sum_over_processes(torch.tensor(float(len(mask)), device=mask.device)) / rank_and_world_size()[1]
    if denominator == "sequence":
        return mask / (rows * mask.sum(-1, keepdim=True).clamp(min=1))
    assert constant is not None
    return mask / (rows * constant)


LOSS_FACTS = frozenset(["entropy", "entropy_graph", "old_entropy", "ref_logprobs", "update", "token_uniforms"])
"""What a loss may name in ``needs``: entropy of the policy that is trained, without graph and with one, and of the one
that sampled, log pi_ref, all ``(B, T)``; which update of its rollout this is, counted from zero; a uniform number per
token, drawn from the run's seed and the step, ``(B, T)``."""


class PolicyLoss(torch.nn.Module, ABC):
    """A scalar from credit, log-probabilities and whatever else the class header names.

    ``class TEPO(PolicyLoss, needs="entropy old_entropy update")``. What is needed comes as keyword arguments of these
    names; costly ones are computed only for a loss that needs them. With ``every_row`` completions without any credit
    are scored too, because their gradient or their statistics count. With ``row_wise``, which is not inherited, the
    gradient in a completion does not depend on the scores of others, so that an update can be computed part by part.

    Args:
        denominator: How tokens are averaged: ``token``, ``sequence`` or ``constant``; see :func:`token_weights`.
        constant: Tokens per completion that ``constant`` divides by, usually ``sampling.max_tokens``; else None.

    """

    needs: frozenset[str] = frozenset()
    every_row: bool = False
    row_wise: bool = False

    def __init_subclass__(
        cls, needs: str | None = None, every_row: bool | None = None, row_wise: bool = False, **kwargs: Any
    ) -> None:
        """Record what the header names; a header that names nothing inherits."""
        super().__init_subclass__(**kwargs)
        cls.needs = cls.needs if needs is None else frozenset(needs.split())
        cls.every_row = cls.every_row if every_row is None else every_row
        cls.row_wise = row_wise
        if unknown_facts := cls.needs - LOSS_FACTS:
            raise TypeError(f"{cls.__name__} needs {sorted(unknown_facts)}; a loss can have {sorted(LOSS_FACTS)}.")

    def __init__(self, denominator: Denominator = "token", constant: int | None = None) -> None:
        super().__init__()
        if (denominator == "constant") != (constant is not None) or (constant is not None and constant < 1):
            raise ValueError(
                f"{type(self).__name__} expects a constant >= 1 with denominator `constant` and none with another, got "
                f"{denominator!r} and {constant}."
            )
        self.denominator: Denominator = denominator
        self.constant = constant

    def token_weights(self, mask: Tensor) -> Tensor:
        """Return the weight of each token in the loss; see :func:`token_weights`."""
        return token_weights(mask, self.denominator, self.constant)

    def token_average(self, values: Tensor, mask: Tensor) -> Tensor:
        """Return the weighted sum of a value per token, ``(B, T)``, over the batch."""
        return masked_sum(self.token_weights(mask) * values, mask)

    def forward(self, logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, mask: Tensor, **facts: Any) -> Tensor:
        """Return the loss, a scalar: minus the averaged objective.

        Args:
            logprobs: Log pi of the sampled tokens with graph, shape ``(B, T)``.
            old_logprobs: Log pi_old of the same tokens, shape ``(B, T)``.
            advantages: Advantage of each token, shape ``(B, T)``.
            mask: True on sampled tokens, shape ``(B, T)``.
            facts: Facts of the rollout named in ``needs``.

        """
        return -self.token_average(self.objective(logprobs, old_logprobs, advantages, mask, **facts), mask)

    @abstractmethod
    def objective(
        self, logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, mask: Tensor, **facts: Any
    ) -> Tensor:
        """Return the objective to maximise, per token, shape ``(B, T)``; arguments as in :meth:`forward`."""

    def token_objective(self, logprobs: Tensor, old_logprobs: Tensor, credit: Tensor) -> Tensor:
        """Return the objective of tokens that are no part of a completion: importance ratio times credit.

        They are alternatives to sampled tokens, and tokens of continuations.

        Args:
            logprobs: Log pi of the tokens with graph, any shape.
            old_logprobs: Log pi_old of the same tokens, same shape.
            credit: Credit of each token, same shape; zero on padding.

        """
        return credited_ratio(logprobs - old_logprobs, credit) * credit

    def metrics(
        self, logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, mask: Tensor, **facts: Any
    ) -> dict[str, Tensor]:
        """Return metrics of the tokens of completions, logged as ``train/<name>``; arguments as in :meth:`forward`."""
        return {}


class AddedTerm(PolicyLoss, every_row=True):
    """Maximise a loss's objective plus ``beta`` times a term of one's own, averaged as the loss is.

    Args:
        loss: Loss that the term is added to.
        beta: Strength of the term; 0 leaves the loss as it is, and asks for nothing that only the term needs.
        harm: Harm that a negative strength would do, for the error.

    """

    def __init__(self, loss: PolicyLoss, beta: float, harm: str) -> None:
        super().__init__(loss.denominator, loss.constant)
        if not beta >= 0:
            raise ValueError(f"{type(self).__name__} expects beta >= 0, got {beta}. A negative one would {harm}.")
        self.loss, self.beta = loss, beta
        self.needs = loss.needs | self.needs if beta else loss.needs
        self.every_row = self.every_row if beta else loss.every_row
        self.row_wise = loss.row_wise and (self.row_wise or not beta)

    @abstractmethod
    def term(self, logprobs: Tensor, mask: Tensor, **facts: Any) -> Tensor:
        """Return the term before it is multiplied by beta, shape ``(B, T)``."""

    @abstractmethod
    def term_metrics(self, term: Tensor, mask: Tensor) -> dict[str, Tensor]:
        """Return the metrics of the term."""

    def objective(
        self, logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, mask: Tensor, **facts: Any
    ) -> Tensor:
        """Return the loss's objective plus the term."""
        inner = self.loss.objective(logprobs, old_logprobs, advantages, mask, **facts)
        return inner + self.beta * self.term(logprobs, mask, **facts) if self.beta else inner

    def token_objective(self, logprobs: Tensor, old_logprobs: Tensor, credit: Tensor) -> Tensor:
        """Return the loss's own; the term is about the tokens of completions."""
        return self.loss.token_objective(logprobs, old_logprobs, credit)

    def metrics(
        self, logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, mask: Tensor, **facts: Any
    ) -> dict[str, Tensor]:
        """Return the term beside what the loss reports."""
        inner = self.loss.metrics(logprobs, old_logprobs, advantages, mask, **facts)
        return {**inner, **self.term_metrics(self.term(logprobs, mask, **facts), mask)} if self.beta else inner


MAX_LOG_RATIO = 80.0
"""Log-ratio from which on a bounded surrogate meets a constant ratio. Float32 ends at 88.7, and an infinite ratio has
no gradient, not even the zero that a clip gives it."""


def bounded_ratio(log_ratio: Tensor) -> Tensor:
    """Return the ratio, at most e^80, where it has no gradient; same shape.

    Example:
        >>> bounded_ratio(torch.tensor([0.0, 95.0])).isfinite()
        tensor([True, True])

    """
    return log_ratio.clamp(max=MAX_LOG_RATIO).exp()


def credited_ratio(log_ratio: Tensor, advantages: Tensor) -> Tensor:
    """Return the ratio where there is credit and one elsewhere, so that a token without credit never overflows.

    Args:
        log_ratio: Log pi - log pi_old, zero outside the mask, shape ``(B, T)``.
        advantages: Advantage of each token, shape ``(B, T)``.

    """
    return log_ratio.where(advantages != 0, 0).exp()


def masked_log_ratio(logprobs: Tensor, old_logprobs: Tensor, mask: Tensor) -> Tensor:
    """Return log pi - log pi_old, zero outside the mask, shape ``(B, T)``."""
    return (logprobs - old_logprobs).where(mask, 0)
