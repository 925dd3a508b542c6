"""Which signals and which credit find the tokens that decide, by asking the policy itself."""

import json
from collections.abc import Mapping

import torch
from lightning.pytorch import Trainer
from lightning.pytorch.utilities import rank_zero_only
from torch import Tensor

from callbacks.base import CreditOperator
from callbacks.measurement import Measurement
from rlcredit.artifacts import folder, publish
from rlcredit.engines.noise import lots
from rlcredit.functional.masked import masked_mean
from rlcredit.functional.ranking import area_under_curve, mass_captured, rank_correlation
from rlcredit.functional.uncertainty import predictive_variance, surprisal
from rlcredit.module import PolicyModule
from rlcredit.oracle import Oracle, TrueCredit
from rlcredit.rollout import Rollout

STREAM = 2**61


def scored(found: TrueCredit, scores: Tensor) -> dict[str, float]:
    """Return how well the size of a score finds the tokens on which credit lies, shapes ``(N, T)``."""
    size, mass = scores[found.mask].abs(), found.credit[found.mask].abs()
    fork = mass > 2 * found.error[found.mask]
    return {
        "auc": area_under_curve(size, fork),
        "rank": rank_correlation(size, mass),
        "mass_10": mass_captured(mass, size, 0.1),
        "mass_20": mass_captured(mass, size, 0.2),
    }


def signed(found: TrueCredit, advantages: Tensor) -> dict[str, float]:
    """Return how far advantages agree with true credit, over all tokens and as far as they differ in a completion."""

    def cosine(one: Tensor, two: Tensor) -> float:
        product = one.norm() * two.norm()
        return float(one @ two / product) if product > 0 else 0.0

    both = [each.double().where(found.mask, 0) for each in (advantages, found.credit)]
    centred = [each - masked_mean(each, found.mask, dim=-1, keepdim=True) for each in both]
    return {
        "cosine": cosine(*(each[found.mask] for each in both)),
        "cosine_within": cosine(*(each[found.mask] for each in centred)),
    }


class CreditOracle(Measurement, CreditOperator, reads="advantages entropy old_logprobs oracle step"):
    r"""Measure true credit by Monte Carlo, and hold every ledger of the stack and every signal against it.

    The value of a prefix is the share of its continuations that are right, the credit of a token the difference it
    makes, :math:`A^*_t = V_{t+1} - V_t`; see :class:`rlcredit.oracle.Oracle`. For the advantages after each operator of
    the stack, wherever the probe stands: cosine with the true credit, over all tokens and of what differs inside
    completions. For their size, and for surprisal, entropy, p(1-p), the planning mask if there is one, and a random
    number: the area under the curve for finding forks (tokens with :math:`|A^*|` above two standard errors), the rank
    correlation with :math:`|A^*|`, and which part of its mass the top 10 and 20 % hold. Every token goes into a table
    under ``probes/``. Of several processes the first one asks.

    Args:
        every_n_steps: how often.
        completions: asked about, taken evenly from the batch.
        samples: continuations per prefix; the cost is their number times the tokens, and is told before.

    """

    def __init__(self, every_n_steps: int = 50, completions: int = 8, samples: int = 64) -> None:
        super().__init__()
        self.every_n_steps = self.every(every_n_steps)
        if completions < 1 or samples < 2:
            raise ValueError(
                f"CreditOracle expects completions >= 1 and samples >= 2, got {completions} and {samples}."
            )
        self.completions, self.samples = completions, samples

    def measure(
        self, trainer: Trainer, module: PolicyModule, rollout: Rollout, advantages: Tensor
    ) -> Mapping[str, float]:
        """Ask, and compare."""
        return self._asked(trainer, rollout) or {}

    @rank_zero_only
    def _asked(self, trainer: Trainer, rollout: Rollout) -> dict[str, float]:
        rows = torch.linspace(0, len(rollout.mask) - 1, min(self.completions, len(rollout.mask))).round().int().tolist()
        oracle = rollout.oracle
        assert isinstance(oracle, Oracle)
        cost, before = oracle.cost(rollout, rows, rollout.mask[rows].cpu(), self.samples), oracle.decoded
        print(
            f"{self.label}: {cost.prefixes:,} prefixes x {self.samples} continuations, of which {cost.continuations:,} "
            f"leave their completion and are decoded: at most {cost.tokens:,} tokens",
            flush=True,
        )
        rollout.truth = found = oracle.credit(rollout, rows, self.samples)
        mass = found.credit[found.mask].abs()
        metrics = {
            "decoded_tokens": float(oracle.decoded - before),
            "value": found.values[:, 0].mean().item(),
            "credit_size": mass.mean().item(),
            "error": found.error[found.mask].mean().item(),
            "fork_fraction": (mass > 2 * found.error[found.mask]).double().mean().item(),
        }
        ledgers = {label: ledger[rows].cpu() for label, ledger in rollout.trail}
        for label, ledger in ledgers.items():
            metrics |= {f"{label}_{name}": value for name, value in signed(found, ledger).items()}
        for name, scores in {**ledgers, **self._signals(rollout, rows)}.items():
            metrics |= {f"{name}_{kind}": value for kind, value in scored(found, scores).items()}
        self._table(trainer, rollout, rows, found, ledgers)
        return metrics

    def _signals(self, rollout: Rollout, rows: list[int]) -> dict[str, Tensor]:
        """What is offered as a guide to the tokens that matter."""
        chance = lots(self.run_seed, rollout.step, STREAM, rollout.mask.shape, rollout.group_size)
        signals = {
            "surprisal": surprisal(rollout.old_logprobs),
            "entropy": rollout.entropy,
            "predictive_variance": predictive_variance(rollout.old_logprobs),
            "random": chance,
        }
        if rollout.plan_mask.any():
            signals["planning"] = rollout.plan_mask.float()
        return {name: values[rows].cpu() for name, values in signals.items()}

    def _table(
        self, trainer: Trainer, rollout: Rollout, rows: list[int], found: TrueCredit, ledgers: dict[str, Tensor]
    ) -> None:
        """Write every token with its values, credit and ledgers."""
        records = []
        for place, row in enumerate(rows):
            length = int(found.mask[place].sum())
            numbers = {"true_credit": found.credit, "error": found.error, "entropy": rollout.entropy[rows], **ledgers}
            records.append(
                {
                    "tokens": rollout.tokens[row],
                    "correct": rollout.correct[row].item(),
                    "values": [round(v, 4) for v in found.values[place, : length + 1].tolist()],
                    **{name: [round(v, 4) for v in each[place, :length].tolist()] for name, each in numbers.items()},
                }
            )
        path = folder(trainer) / "probes" / f"{self.label}_step_{rollout.step:06d}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(records, ensure_ascii=False), encoding="utf-8")
        publish(trainer, path, "probes")
