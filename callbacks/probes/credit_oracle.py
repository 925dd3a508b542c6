"""Which signals and which credit find the decisive tokens, measured with continuations by the policy itself."""

import json
from collections.abc import Mapping, Sequence

import torch
from lightning.pytorch import Trainer
from lightning.pytorch.utilities import rank_zero_only
from torch import Tensor

from rlcredit.credit.alternatives import Credit
from rlcredit.credit.operator import CreditOperator
from rlcredit.credit.rollout import Rollout
from rlcredit.decoding.noise import stream_number, token_uniforms
from rlcredit.formulas.groups import leave_one_out_deviations
from rlcredit.formulas.uncertainty import predictive_variance, surprisal
from rlcredit.oracle import Oracle, TrueCredit, credit_agreement
from rlcredit.record.artifacts import publish_text
from rlcredit.training.module import PolicyModule
from rlcredit.training.periodic_measurement import PeriodicMeasurement


class CreditOracle(
    PeriodicMeasurement,
    CreditOperator,
    reads="advantages correct entropy judged old_logprobs oracle step tokens turn",
    costly=True,
):
    r"""Measure true credit by Monte Carlo, and compare every ledger of the stack and every signal with it.

    The value of a prefix is the share of its continuations that are right, the credit of a token the difference it
    makes, :math:`A^*_t = V_{t+1} - V_t`; see :class:`rlcredit.oracle.Oracle`. For the advantages after each operator of
    the stack, wherever the probe stands: cosine with the true credit, over all tokens and of what differs inside
    completions; and the share of forks whose advantage has the opposite sign. Forks are tokens that made continuations
    right, or wrong, more often than a coin would (exact sign tests, false discoveries held to 5 %). For the size of
    advantages, and for surprisal, entropy, p(1-p), the planning mask if there is one, and a random number: the area
    under the curve for finding forks, and, for :math:`A^{*2}` without its noise, the rank correlation and which part of
    its sum the top 10 and 20 % hold. For tokens in four classes of entropy: what they say about the verdict, and their
    entropy, in nats. Its noise is independent of what the operators have drawn. Every token goes into a table under
    ``probes/``. With several processes only the first one measures, while the others wait; with several mini-batches
    only the first one is measured. Credit of alternatives and of continuations is left out.

    Episodes have credit by turns. The value before a turn is the mean reward of whole episodes that are played from
    there; a ledger and a signal count by their mean over the tokens of a turn, and names end in ``_by_turn``. Three
    controls stand beside the ledgers: the reward less the mean of the group's other episodes, on all turns
    (``equal_credit``), on the last one (``last_turn``), or on one drawn at random (``random_turn``).
    ``decisive_fraction_by_turn`` is the share of the turns that matter: they pass the tests above, by Student's t where
    rewards are real numbers, and the size of their credit is above ``threshold``. What ``samples`` are too few to tell
    from noise does not count.

    Args:
        every_n_steps: Steps from one measurement to the next.
        completions: Number of completions asked about, taken evenly from the mini-batch.
        samples: Continuations per prefix; the cost is their number times the tokens, and is printed first.
        threshold: Size of credit, a change of the expected reward, above which a turn may matter.

    """

    def __init__(
        self, every_n_steps: int = 50, completions: int = 8, samples: int = 64, threshold: float = 0.05
    ) -> None:
        super().__init__()
        self.every_n_steps = self.require_interval(every_n_steps)
        if completions < 1 or samples < 2 or threshold < 0:
            raise ValueError(
                "CreditOracle expects completions >= 1, samples >= 2 and threshold >= 0, got "
                f"{completions}, {samples} and {threshold:g}."
            )
        self.completions, self.samples, self.threshold = completions, samples, threshold

    def measure(self, trainer: Trainer, module: PolicyModule, rollout: Rollout, credit: Credit) -> Mapping[str, float]:
        """Measure true credit and compare."""
        return self._compare_ledgers(trainer, rollout) or {}

    @rank_zero_only
    def _compare_ledgers(self, trainer: Trainer, rollout: Rollout) -> dict[str, float]:
        rows = rollout.evenly_spaced_rows(self.completions)
        assert isinstance(rollout.oracle, Oracle)
        oracle = rollout.oracle.with_fresh_noise()
        cost = oracle.estimate_cost(rollout, rows, oracle.mark_places(rollout, rows), self.samples)
        print(
            f"{self.label}: {cost.prefixes:,} prefixes x {self.samples} continuations, of which {cost.continuations:,} "
            f"leave the completions and are decoded: at most {cost.tokens:,} tokens",
            flush=True,
        )
        true_credit = oracle.credit(rollout, rows, self.samples)
        rollout.truth = true_credit
        entropy = true_credit.sum_units(rollout.entropy[rows].cpu())
        information = credit_agreement.measure_token_information(true_credit, entropy)
        metrics = {
            "decoded_tokens": float(oracle.decoded),
            "value": true_credit.values[:, 0].mean().item(),
            "credit_square": true_credit.square[true_credit.mask].mean().item(),
            "error_square": true_credit.error[true_credit.mask].square().mean().item(),
            "fork_fraction": credit_agreement.credit_fork_mask(true_credit)[true_credit.mask].double().mean().item(),
            **{f"verdict_{name}": value for name, value in information.items()},
        }
        ledgers = {label: true_credit.average_units(ledger[rows].cpu()) for label, ledger in rollout.trail}
        controls = self._place_controls(rollout, true_credit) if true_credit.turn is not None else {}
        for label, ledger in {**ledgers, **controls}.items():
            for measure in (credit_agreement.measure_credit_cosines, credit_agreement.measure_wrong_signs):
                metrics |= {f"{label}_{name}": value for name, value in measure(true_credit, ledger).items()}
        signals = self._collect_signals(rollout, rows)
        signals = {name: true_credit.average_units(values) for name, values in signals.items()}
        for name, scores in {**ledgers, **controls, **signals}.items():
            detection = credit_agreement.measure_credit_detection(true_credit, scores)
            metrics |= {f"{name}_{kind}": value for kind, value in detection.items()}
        self._publish_table(trainer, rollout, rows, true_credit, ledgers)
        if true_credit.turn is None:
            return metrics
        decisive = credit_agreement.mark_decisive_turns(true_credit, self.threshold)
        metrics["decisive_fraction"] = decisive[true_credit.mask].double().mean().item()
        return {name if name == "decoded_tokens" else f"{name}_by_turn": value for name, value in metrics.items()}

    def _place_controls(self, rollout: Rollout, true_credit: TrueCredit) -> dict[str, Tensor]:
        """Return the credit of whole episodes on all their turns, the last, or one drawn at random, ``(N, K)``."""
        rows, mask = list(true_credit.rows), true_credit.mask
        deviations = leave_one_out_deviations(rollout.given_rewards, rollout.group_size).flatten()[rows].cpu()
        shape = len(rollout.mask), mask.shape[1]
        stream = stream_number("CreditOracle", 1)
        draws = token_uniforms(self.run_seed, rollout.step, stream, shape, rollout.group_size)[rows]
        number, equal = torch.arange(mask.shape[1]), deviations[:, None].where(mask, 0)
        return {
            "equal_credit": equal,
            "last_turn": equal.where(number == mask.sum(-1, keepdim=True) - 1, 0),
            "random_turn": equal.where(number == draws.where(mask, -1).argmax(-1, keepdim=True), 0),
        }

    def _collect_signals(self, rollout: Rollout, rows: list[int]) -> dict[str, Tensor]:
        """The signals that may find decisive tokens."""
        stream = stream_number("CreditOracle")
        signals = {
            "surprisal": surprisal(rollout.old_logprobs),
            "entropy": rollout.entropy,
            "predictive_variance": predictive_variance(rollout.old_logprobs),
            "random": token_uniforms(self.run_seed, rollout.step, stream, rollout.mask.shape, rollout.group_size),
        }
        if rollout.plan_mask.any():
            signals["planning"] = rollout.plan_mask.float()
        return {name: values[rows].cpu() for name, values in signals.items()}

    def _publish_table(
        self, trainer: Trainer, rollout: Rollout, rows: list[int], true_credit: TrueCredit, ledgers: dict[str, Tensor]
    ) -> None:
        """Write every token, or turn, with its values, credit and ledgers."""
        records = []
        for place, row in enumerate(rows):
            mask, values = true_credit.mask[place], true_credit.values[place]
            fields = {
                "true_credit": true_credit.credit,
                "error": true_credit.error,
                "entropy": true_credit.average_units(rollout.entropy[rows].cpu()),
                **ledgers,
            }
            texts = rollout.list_texts(row)
            if true_credit.turn is not None:
                texts = join_turn_texts(rollout.tokens[row], true_credit.turn[place].tolist())
            records.append(
                {
                    "tokens": texts,
                    "correct": rollout.correct[row].item() if rollout.judged[row] else None,
                    "values": [round(v, 4) for v in [*values[:-1][mask].tolist(), values[-1].item()]],
                    **{name: [round(v, 4) for v in column[place][mask].tolist()] for name, column in fields.items()},
                }
            )
        name = f"probes/{self.label}_step_{rollout.step:06d}.json"
        publish_text(trainer, name, json.dumps(records, ensure_ascii=False))


def join_turn_texts(texts: Sequence[str], turn: Sequence[int]) -> list[str]:
    """Return the text of each turn.

    Args:
        texts: Text of each token.
        turn: Number of the turn of each token, -1 elsewhere.

    Example:
        >>> join_turn_texts(["go", " on", "now?", "stop"], [0, 0, -1, 1])
        ['go on', 'stop']

    """
    turns = [""] * (max(turn) + 1)
    for text, number in zip(texts, turn, strict=False):
        if number >= 0:
            turns[number] += text
    return turns
