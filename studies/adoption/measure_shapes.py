"""Does a critic need the siblings of a group? Noise of gradients, 32 completions being of 4, 8 or 16 prompts.

python -m studies.adoption.measure_shapes --out studies/adoption/results/shapes.csv
python -m studies.adoption.measure_shapes --tiny --out /tmp/shapes.csv    # in about a minute

The policy *hinted* stays as it is: before training, and after some rollouts with the guarded critic. Its critic first
learns from some batches. Then GRPO and the critic credit the same batches, and the gradient under each is kept.

Agreement is the mean cosine between the gradients of two batches: one without noise, zero without signal. ``more`` is
how much more the completions agree than those of 4 prompts do, ``interaction`` how much more of that the critic has
than GRPO. Batches also agree in what the critic has wrong; ``direction``, the cosine between its expected gradient and
GRPO's, is below one by that. Intervals of 95 % are by jackknife over batches.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from numpy.typing import NDArray
from short_runs import train_unlogged
from torch import Tensor

from callbacks.critics.head_critic import HeadCritic
from callbacks.dense.expected_gradient import ExpectedGradient
from callbacks.episode.grpo import GRPO
from callbacks.schedules.calibration_weight import CalibrationWeight
from rlcredit.campaign.resolved_condition import ResolvedCondition, resolve_condition
from rlcredit.cli.quiet_libraries import silence_libraries
from rlcredit.credit.operator import CreditOperator
from rlcredit.credit.rollout import Rollout
from rlcredit.credit.stack import CreditStack
from rlcredit.statistics.batch_agreement import agreement_and_direction, mean_cosines
from rlcredit.statistics.intervals import jackknife_interval
from rlcredit.training.credit_gradients import compute_credit_gradients
from rlcredit.training.module import PolicyModule
from rlcredit.training.nan_and_mismatch import trainable_weights
from studies import csv_rows
from studies.adoption.declare_adoption import CRITIC

SHAPES = {"4_by_8": (4, 8), "8_by_4": (8, 4), "16_by_2": (16, 2)}
"""Ways to make 32 completions: prompts, and completions of each."""

FLAT, GUARDED = "GRPO", "critic"
Floats = NDArray[np.float64]


class ShapeGradients(CreditOperator, reads="advantages alternatives", costly=True):
    """Keep the gradient of each rollout under flat credit and under that of the stack above, once a critic has learnt.

    Args:
        warmup: Rollouts that only the critic learns from.

    """

    def __init__(self, warmup: int) -> None:
        super().__init__()
        self.warmup = warmup
        self.kept: dict[str, list[Tensor]] = {FLAT: [], GUARDED: []}
        self.right: list[float] = []

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Remember the run, whose weights and loss gradients are taken of."""
        assert isinstance(pl_module, PolicyModule)
        self.trainer, self.module = trainer, pl_module

    def assign(self, rollout: Rollout) -> dict[str, float]:
        """Measure; nothing is logged."""
        if self.trainer.global_step >= self.warmup:
            credits = [CreditStack([GRPO()]).assign(rollout).credit, rollout.credit]
            vectors = compute_credit_gradients(self.trainer, self.module, rollout, credits)
            for name, vector in zip(self.kept, vectors, strict=True):
                self.kept[name].append(torch.cat([part.flatten() for part in vector.values()]))
            self.right.append(float(rollout.judged_rewards.mean()))
        return {}


class StartingWeights(Callback):
    """Begin with weights of another run.

    Args:
        weights: Weights by name.

    """

    def __init__(self, weights: Mapping[str, Tensor]) -> None:
        self.weights = weights

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Copy them."""
        for name, weight in trainable_weights(pl_module).items():
            weight.data.copy_(self.weights[name])


def resolve_shape(shape: str, seed: int, **settings: int) -> ResolvedCondition:
    """Return the critic's condition on *hinted* with prompts and completions as a shape has them."""
    files = ["configs/tiny.yaml", "configs/organisms/hinted.yaml", CRITIC]
    sizes = zip(("data.init_args.prompts_per_step", "model.sampling.completions"), SHAPES[shape], strict=True)
    given = {"seed_everything": seed, "trainer.logger": "false", **dict(sizes), **settings}
    return resolve_condition([*(f"--config={file}" for file in files), *(f"--{key}={given[key]}" for key in given)])


def train_policy(rollouts: int, seed: int) -> dict[str, Tensor]:
    """Return the weights after some rollouts with the guarded critic, each used twice; none of no rollout."""
    if not rollouts:
        return {}
    run = resolve_shape("4_by_8", seed)
    operators = [GRPO(), HeadCritic(), CalibrationWeight(), ExpectedGradient()]
    train_unlogged(run.module, run.task, rollouts * run.module.updates_per_rollout, operators)
    return {name: weight.detach().clone() for name, weight in trainable_weights(run.module).items()}


def measure_shape(shape: str, weights: Mapping[str, Tensor], args: argparse.Namespace) -> ShapeGradients:
    """Return the gradients of batches of one shape, under flat credit and under the critic's."""
    run = resolve_shape(shape, args.seed, **{"model.updates_per_rollout": 1, "model.minibatches": 1})
    run.module.optimizer, run.module.scheduler = (lambda parameters: torch.optim.SGD(parameters, lr=0.0)), None
    probe = ShapeGradients(args.warmup)
    start = [StartingWeights(weights)] if weights else []
    operators = [GRPO(), HeadCritic(), CalibrationWeight(), ExpectedGradient(), probe]
    train_unlogged(run.module, run.task, args.warmup + args.batches, [*start, *operators])
    return probe


def measure_agreements(kept: Mapping[str, Sequence[Tensor]]) -> dict[str, Floats]:
    """Return the agreement of batches under each credit, and the direction; over all batches and without each."""
    flat, guarded = (torch.stack(list(kept[name])).double().numpy() for name in (FLAT, GUARDED))
    agreement, _, direction = agreement_and_direction(guarded, flat)
    return {FLAT: mean_cosines(flat, flat), GUARDED: agreement, "direction": direction}


def compare_shapes(agreements: Mapping[str, Mapping[str, Floats]]) -> Iterator[dict[str, str | float]]:
    """Yield every quantity as a row.

    Args:
        agreements: As of :func:`measure_agreements`, by shape; the first is what the others are compared with.

    """
    first, *_ = agreements.values()
    for shape, found in agreements.items():
        quantities = {(credit, "agreement"): [found[credit]] for credit in (FLAT, GUARDED)}
        quantities[GUARDED, "direction"] = [found["direction"]]
        if found is not first:
            quantities |= {(credit, "more"): [found[credit], -first[credit]] for credit in (FLAT, GUARDED)}
            quantities[GUARDED, "interaction"] = [found[GUARDED] - found[FLAT], first[FLAT] - first[GUARDED]]
        for (credit, quantity), parts in quantities.items():
            yield {"shape": shape, "credit": credit, "quantity": quantity, **estimate_with_ends(parts)}


def estimate_with_ends(parts: Sequence[Floats]) -> dict[str, float]:
    """Return the sum of estimates on batches of their own, and the ends of its interval.

    Args:
        parts: Each estimate over all batches, then without each, ``(B + 1,)``.

    """
    estimate = sum(float(part[0]) for part in parts)
    ends = [jackknife_interval(float(part[0]), part[1:]) for part in parts]
    reach = float(np.hypot.reduce([(interval.high - interval.low) / 2 for interval in ends]))
    return {"estimate": estimate, "low": estimate - reach, "high": estimate + reach}


def main() -> None:
    """Measure all shapes at both stages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollouts", type=int, nargs="+", default=(0, 160), help="rollouts of training before")
    parser.add_argument("--warmup", type=int, default=16, help="batches that the critic learns from")
    parser.add_argument("--batches", type=int, default=64, help="batches that are measured")
    parser.add_argument("--seed", type=int, default=650)
    parser.add_argument("--tiny", action="store_true", help="few batches, to try it")
    parser.add_argument("--out", type=Path, required=True, help="CSV file")
    args = parser.parse_args()
    if args.tiny:
        args.rollouts, args.warmup, args.batches = [0, 2], 2, 4
    silence_libraries()
    torch.set_num_threads(1)
    rows = []
    for rollouts in args.rollouts:
        weights = train_policy(rollouts, args.seed)
        probes = {shape: measure_shape(shape, weights, args) for shape in SHAPES}
        right = {shape: float(np.mean(probe.right)) for shape, probe in probes.items()}
        found = compare_shapes({shape: measure_agreements(probe.kept) for shape, probe in probes.items()})
        rows += [{"rollouts": rollouts, "right": right[str(row["shape"])], **row} for row in found]
        csv_rows.write_csv_rows(args.out, rows)


if __name__ == "__main__":
    main()
