"""The loss of an update: credit of judged completions, and of tokens outside them, as a scalar."""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from rlcredit.credit.alternatives import Credit
from rlcredit.credit.rollout import Rollout
from rlcredit.decoding.noise import stream_number, token_uniforms
from rlcredit.formulas.masked import masked_sum
from rlcredit.losses.base import PolicyLoss, bounded_ratio
from rlcredit.training.scoring import UpdateScores


@dataclass
class UpdateLoss:
    """Turn credit into a scalar.

    Args:
        loss: Loss of the tokens of completions.
        mismatch_cap: Largest weight of a token in :meth:`correct_engine_mismatch`; nothing is corrected if None.
        seed: Seed of the run.
        step: Optimizer steps taken.

    """

    loss: PolicyLoss
    mismatch_cap: float | None
    seed: int
    step: int
    judged_rows: tuple[Rollout, Tensor] | None = field(default=None, init=False, repr=False)

    def correct_engine_mismatch(self, rollout: Rollout, credit: Tensor) -> Tensor:
        r"""Weigh credit by truncated importance sampling, where an engine that is not the trainer drew the tokens.

        .. math:: \min\bigl(\pi_{\mathrm{old}}(o_t) / \mu(o_t),\; C\bigr)\, A_t

        Args:
            rollout: The rollout with the engine's log-probabilities, :math:`\log \mu`.
            credit: Credit A of each token, shape ``(B, T)``.

        """
        if rollout.engine_logprobs is None or self.mismatch_cap is None:
            return credit
        return credit * bounded_ratio(rollout.old_logprobs - rollout.engine_logprobs).clamp(max=self.mismatch_cap)

    def find_judged_rows(self, rollout: Rollout) -> Tensor:
        """Return the numbers of judged rows, shape ``(N,)``; the host waits for the device once for each mini-batch."""
        if self.judged_rows is None or self.judged_rows[0] is not rollout:
            self.judged_rows = rollout, rollout.judged.nonzero().squeeze(-1)
        return self.judged_rows[1]

    def compute_loss(self, rollout: Rollout, scores: UpdateScores, credit: Credit) -> Tensor:
        """Return the loss of a mini-batch under some credit.

        Args:
            rollout: The mini-batch.
            scores: Scores of the mini-batch by the policy that is trained.
            credit: Credit of its tokens, of tokens in their place, and of continuations.

        """
        arguments, facts = self.collect_inputs(rollout, scores, credit.advantages)
        return self.loss(*arguments, **facts) + self.weigh_other_tokens(rollout, scores, credit)

    @torch.no_grad()
    def compute_metrics(self, rollout: Rollout, scores: UpdateScores) -> dict[str, Tensor]:
        """Return the loss's metrics of the tokens of completions, by name."""
        arguments, facts = self.collect_inputs(rollout, scores, rollout.advantages)
        return self.loss.metrics(*arguments, **facts)

    def weigh_other_tokens(self, rollout: Rollout, scores: UpdateScores, credit: Credit) -> Tensor | float:
        r"""Return the part of the loss that comes from tokens outside the completions; zero if none has credit.

        .. math:: -\sum_n c_{i_n, t_n}\, \rho_n\, w_n, \qquad
            \rho_n = \frac{\pi_\theta(v_n \mid o_{i_n, <t_n})}{\pi_{old}(v_n \mid o_{i_n, <t_n})}

        over alternatives to sampled tokens, and over all tokens of continuations, :math:`t_n` being the place where the
        continuation leaves its completion. c is the weight that the loss gives to the token sampled at that place, and
        :math:`\rho_n w_n` is bounded as the loss bounds it, see
        :meth:`rlcredit.losses.base.PolicyLoss.token_objective`. An engine's mismatch changes the credit of all tokens
        that might stand at a place alike; a continuation is other tokens, which the oracle's decoder has drawn.

        Args:
            rollout: The mini-batch.
            scores: Scores of the mini-batch by the policy that is trained.
            credit: Credit that ``scores`` are of.

        """
        other_tokens, branches = credit.alternatives, credit.continuations
        if other_tokens is None and branches is None:
            return 0.0
        rows, total = self.find_judged_rows(rollout), torch.zeros((), device=rollout.mask.device)
        weights = torch.zeros(rollout.mask.shape, device=rollout.mask.device)
        weights[rows] = self.loss.token_weights(rollout.mask[rows])
        if other_tokens is not None:
            assert scores.alternatives is not None
            place = (other_tokens.rows, other_tokens.places)
            gain = other_tokens.weights * self.correct_engine_mismatch(rollout, torch.ones_like(weights))[place]
            objective = self.loss.token_objective(scores.alternatives, other_tokens.logprobs, gain)
            total = total - (weights[place] * objective).sum()
        if branches is not None:
            assert scores.continuations is not None
            gain = branches.credit.where(branches.mask, 0)
            objective = self.loss.token_objective(scores.continuations, branches.logprobs, gain)
            share = weights[branches.rows, branches.places][:, None].expand(branches.mask.shape)
            total = total - masked_sum(share * objective, branches.mask)
        return total

    def collect_inputs(
        self, rollout: Rollout, scores: UpdateScores, credit: Tensor
    ) -> tuple[tuple[Tensor, Tensor, Tensor, Tensor], dict[str, Any]]:
        """Return arguments and facts of the loss, without the rows that were not judged.

        An update is the one that would be taken had those completions not been sampled.

        Args:
            rollout: The mini-batch.
            scores: Scores of the mini-batch by the policy that is trained.
            credit: Credit A of each token, shape ``(B, T)``.

        """
        rows = self.find_judged_rows(rollout)

        def select_judged(values: Tensor) -> Tensor:
            return values.index_select(0, rows.to(values.device))

        credit = self.correct_engine_mismatch(rollout, credit)
        known_facts = self.collect_facts(rollout, scores.entropy)
        facts = {
            name: select_judged(value) if isinstance(value, Tensor) else value for name, value in known_facts.items()
        }
        tensors = (scores.logprobs, rollout.old_logprobs, credit, rollout.mask)
        logprobs, old_logprobs, credit, mask = (select_judged(values) for values in tensors)
        return (logprobs, old_logprobs, credit, mask), facts

    def collect_facts(self, rollout: Rollout, entropy: Tensor) -> dict[str, Any]:
        """Return the facts that the loss needs besides credit; entropy is ``(B, T)`` with its graph."""
        available = {
            "entropy": entropy.detach,
            "entropy_graph": lambda: entropy,
            "old_entropy": lambda: rollout.entropy,
            "ref_logprobs": lambda: rollout.ref_logprobs,
            "update": lambda: rollout.update,
            "token_uniforms": lambda: token_uniforms(
                self.seed, self.step, stream_number("loss"), rollout.mask.shape, rollout.group_size
            ),
        }
        return {name: available[name]() for name in self.loss.needs}
