"""How noisy a gradient is: credit operators on identical completions of one policy that is not trained.

python -m studies.measured_credit.measure_noise                                             # the embedded policy
python -m studies.measured_credit.measure_noise --policy organisms/long_chains --terms 6 8 GRPO "hard Delight"
python -m studies.measured_credit.measure_noise --config configs/smollm2.yaml --prompts 32 GRPO  # any policy and task

Every stack assigns its credit to the same completions, and the gradients of batches of prompts are kept. Agreement is
the mean cosine between the gradients of two batches: one if all batches say the same, zero without signal. Direction is
the cosine between the expected gradients of a stack and of GRPO, every batch scaled to length one: the cosine between
different batches of the two, over the root of both agreements. Intervals are by jackknife over batches.

"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from lightning.pytorch import LightningModule, Trainer, seed_everything
from numpy.typing import NDArray
from short_runs import train_unlogged
from torch import Tensor

from callbacks.dense.monte_carlo_credit import MonteCarloCredit
from callbacks.dense.optimal_token_baseline import OptimalTokenBaseline
from callbacks.episode.grpo import GRPO
from callbacks.episode.maxrl import MaxRL
from callbacks.planning.strategic_grams import StrategicGrams
from callbacks.schedules.constant_lambda import ConstantLambda
from callbacks.signals.entropy import Entropy
from callbacks.signals.sepa import SEPA
from callbacks.tokens.delight import Delight
from callbacks.tokens.entropy_mask import EntropyMask
from callbacks.tokens.gtpo import GTPO
from callbacks.tokens.hard_delight import HardDelight
from callbacks.tokens.hicra import HICRA
from callbacks.tokens.random_mask import RandomMask
from rlcredit.campaign.resolved_condition import resolve_condition
from rlcredit.cli.quiet_libraries import silence_libraries
from rlcredit.credit.operator import CreditOperator
from rlcredit.credit.rollout import FACT_FIELDS, Rollout
from rlcredit.credit.stack import CreditStack
from rlcredit.decoding.in_process import InProcessEngine
from rlcredit.decoding.sampling import Sampling
from rlcredit.pages.number_formats import format_with_interval
from rlcredit.pages.tables import Table
from rlcredit.policy.policy import Policy
from rlcredit.statistics.batch_agreement import agreement_and_direction
from rlcredit.statistics.intervals import jackknife_interval
from rlcredit.tasks import ReasoningGym, Task
from rlcredit.training.credit_gradients import compute_credit_gradients
from rlcredit.training.module import PolicyModule
from studies import csv_rows

STACKS: dict[str, Callable[[], list[CreditOperator]]] = {
    "GRPO": lambda: [GRPO()],
    "MaxRL": lambda: [MaxRL()],
    "GTPO": lambda: [GRPO(), GTPO()],
    "SEPA": lambda: [GRPO(), StrategicGrams(), ConstantLambda(1.0), SEPA(), GTPO()],
    "HICRA": lambda: [GRPO(), StrategicGrams(), HICRA()],
    "top 20 % entropy": lambda: [GRPO(), Entropy(), EntropyMask(rho=0.2)],
    "Delight": lambda: [GRPO(), Delight()],
    "hard Delight": lambda: [GRPO(), HardDelight(keep=0.2)],
    "optimal token baseline": lambda: [OptimalTokenBaseline()],
    "random 20 %": lambda: [GRPO(), RandomMask(rho=0.2)],
    "Monte Carlo, 8": lambda: [MonteCarloCredit(8)],
    "Monte Carlo, 32": lambda: [MonteCarloCredit(32)],
    "Monte Carlo, 8, optimal": lambda: [MonteCarloCredit(8, baseline="optimal")],
    "Monte Carlo, 32, optimal": lambda: [MonteCarloCredit(32, baseline="optimal")],
}

NEVER = partial(torch.optim.AdamW, lr=0.0)
"""An optimizer that leaves the policy as it is."""


class BatchGradients(CreditOperator, reads="advantages tokens", writes="advantages", costly=True):
    """Let stacks assign credit to one rollout, and keep the gradients of its batches under each, flat, ``(N, D)``.

    It leaves no credit, so that the step which follows costs nothing.

    Args:
        stacks: Stacks by name.
        size: Prompts per batch; left-over prompts are dropped.

    """

    def __init__(self, stacks: Mapping[str, Sequence[CreditOperator]], size: int) -> None:
        super().__init__()
        self.stacks, self.size = stacks, size
        self.reads = self.reads.union(*(op.reads & FACT_FIELDS for stack in stacks.values() for op in stack))
        self.kept: dict[str, list[Tensor]] = {name: [] for name in stacks}

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Remember the run, whose weights and loss gradients are taken of."""
        assert isinstance(pl_module, PolicyModule)
        self.trainer, self.module = trainer, pl_module

    def assign(self, rollout: Rollout) -> dict[str, float]:
        """Measure; nothing is logged."""
        credits = {name: CreditStack(stack).assign(rollout).credit for name, stack in self.stacks.items()}
        for rows in torch.arange(len(rollout.mask)).split(self.size * rollout.group_size):
            if len(rows) == self.size * rollout.group_size:
                parts, batch = [credit.select_rows(rows) for credit in credits.values()], rollout.select_rows(rows)
                vectors = compute_credit_gradients(self.trainer, self.module, batch, parts)
                for name, vector in zip(credits, vectors, strict=True):
                    self.kept[name].append(torch.cat([part.flatten() for part in vector.values()]))
        rollout.advantages = torch.zeros_like(rollout.advantages)
        return {}


def measure_batch_gradients(stacks: Sequence[str], args: argparse.Namespace) -> dict[str, NDArray[np.float64]]:
    """Return the gradients of batches under each stack; the completions depend on the policy and the seed alone."""
    seed_everything(args.seed, verbose=False)
    probe = BatchGradients({name: STACKS[name]() for name in stacks}, args.batch)
    module, task = make_configured_run(args) if args.config else make_chain_run(args)
    train_unlogged(module, task, 1, [GRPO(), probe])
    return {name: torch.stack(vectors).double().numpy() for name, vectors in probe.kept.items()}


def make_chain_run(args: argparse.Namespace) -> tuple[PolicyModule, Task]:
    """Return a policy that adds chains of numbers, and the chains."""
    module = PolicyModule(
        policy=Policy(path=args.policy),
        sampling=Sampling(completions=args.completions, max_tokens=args.max_tokens),
        engine=InProcessEngine(decode_batch_size=256),
        optimizer=NEVER,
        seed=args.seed,
    )
    chains = {"min_terms": args.terms[0], "max_terms": args.terms[1], "min_digits": 1, "max_digits": 1}
    return module, ReasoningGym("chain_sum", chains, prompts_per_step=args.prompts, seed=args.seed)


def make_configured_run(args: argparse.Namespace) -> tuple[PolicyModule, Task]:
    """Return the policy and the task of a run, as its configurations say."""
    settings = {
        "seed_everything": args.seed,
        "model.sampling.completions": args.completions,
        "data.init_args.prompts_per_step": args.prompts,
        "trainer.logger": "false",
    }
    named = [f"--config={file}" for file in args.config]
    run = resolve_condition(
        [*named, f"--threads={args.threads}", *(f"--{name}={value}" for name, value in settings.items())]
    )
    run.module.optimizer, run.module.scheduler = NEVER, None
    return run.module, run.task


def compare_with_grpo(stack: NDArray[np.float64], grpo: NDArray[np.float64]) -> list[tuple[float, float, float]]:
    """Return agreement, how much of it is more than GRPO's, and direction, with intervals."""
    found = agreement_and_direction(stack, grpo)
    return [(float(row[0]), *jackknife_interval(float(row[0]), row[1:])[:2]) for row in found]


def append_noise_rows(args: argparse.Namespace, stack: str, values: Sequence[tuple[float, float, float]]) -> None:
    """Append the rows of one stack to a CSV file."""
    place = {"task": Path(args.config[-1]).stem} if args.config else {"terms": "-".join(map(str, args.terms))}
    key = {**place, "completions": args.completions, "stack": stack}
    rows = [
        {**key, "quantity": quantity, "estimate": f"{mean:.6g}", "low": f"{low:.6g}", "high": f"{high:.6g}"}
        for quantity, (mean, low, high) in zip(("agreement", "more_than_grpo", "direction"), values, strict=True)
    ]
    csv_rows.append_csv_rows(args.out, rows)


def main() -> None:
    """Print one row per stack."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stacks", nargs="*", help=f"of {', '.join(STACKS).replace('%', '%%')}; all if none is named")
    parser.add_argument("--config", nargs="+", default=[], help="files instead of --policy, --terms, --max_tokens")
    parser.add_argument("--policy", default="tiny")
    parser.add_argument("--terms", type=int, nargs=2, default=(3, 5), help="fewest and most terms of the chains")
    parser.add_argument("--max_tokens", type=int, default=128)
    parser.add_argument("--prompts", type=int, default=128)
    parser.add_argument("--completions", type=int, default=8)
    parser.add_argument("--batch", type=int, default=4, help="prompts of each")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=None, help="CSV file to which the values are appended")
    args = parser.parse_args()
    if args.prompts < 3 * args.batch:
        parser.error(f"intervals need three batches, that is --prompts {3 * args.batch}.")
    if unknown := set(args.stacks) - set(STACKS):
        parser.error(f"no stack {sorted(unknown)}; there are {', '.join(STACKS)}.")
    silence_libraries()
    torch.set_num_threads(args.threads)
    wanted = args.stacks or list(STACKS)
    found = measure_batch_gradients(list(dict.fromkeys(["GRPO", *wanted])), args)
    print(f"{args.prompts} prompts x {args.completions} completions, batches of {args.batch} prompts")
    rows = []
    for name in wanted:
        values = compare_with_grpo(found[name], found["GRPO"])
        if args.out is not None:
            append_noise_rows(args, name, values)
        rows.append((name, *(format_with_interval(*value, ".2f") for value in values)))
    print(Table(("stack", "agreement", "more than GRPO's", "direction"), rows).to_markdown())


if __name__ == "__main__":
    main()
