"""Does turn credit's signal-to-noise grow as turns that matter get fewer, and does it agree with true credit?

python -m studies.turns.measure_density --out studies/turns/results/density.csv
python -m studies.turns.measure_density --tiny --out /tmp/density.csv    # in about a minute

In every game, all operators credit the same episodes of the policy before training, and so does the truth: the change
of the value over a turn, by playing on from both its ends. Each prompt has two groups of episodes, credited apart, and
the gradient of every group is taken.

- ``signal_to_noise``: squared length of a prompt's expected gradient over the variance of that of one group, which is
  all that credit can change; the squared length is the product of both groups' gradients.
- ``gain``: root of the ratio of it to that of flat credit on the same prompts.
- ``batch_signal_to_noise`` and ``batch_gain``: the same for the gradient of the batch, whose noise holds how much the
  prompts' expected gradients differ.
- ``agreement``: cosine with the true credit over all turns; its error is taken off by halves of the continuations.
- ``agreement_within``: the same after the mean over its episode is taken off each; zero for flat credit.
- ``over_random``: agreement within less that of random turns, on the same prompts.

Intervals of 95 % are by bootstrap over prompts. Rows are written as soon as they are measured, and games that stand in
the file are not measured again.
"""

import argparse
import copy
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import torch
from lightning.pytorch import LightningModule, Trainer, seed_everything
from numpy.typing import NDArray
from short_runs import train_unlogged
from torch import Tensor
from torch.nn.functional import pad

from callbacks.critics.head_critic import HeadCritic
from callbacks.dense.gae import GAE
from callbacks.episode.rloo import RLOO
from callbacks.turns.gigpo import GiGPO
from callbacks.turns.last_turn import LastTurn
from callbacks.turns.random_turns import RandomTurns
from callbacks.turns.state_values import StateValues
from callbacks.turns.turn_returns import TurnReturns
from callbacks.turns.uncertain_turns import UncertainTurns
from rlcredit.campaign.resolved_condition import resolve_condition
from rlcredit.cli.quiet_libraries import silence_libraries
from rlcredit.credit.alternatives import Credit
from rlcredit.credit.operator import CreditOperator
from rlcredit.credit.rollout import FACT_FIELDS, Rollout
from rlcredit.credit.stack import CreditStack
from rlcredit.formulas.branches import places_in_order
from rlcredit.formulas.turns import mark_turns, spread_turns, sum_turns
from rlcredit.oracle import Oracle
from rlcredit.training.credit_gradients import compute_prompt_vectors
from rlcredit.training.module import PolicyModule
from studies import csv_rows
from studies.turns.declare_turns import ALL_GAMES

FLAT, RANDOM, TRUE, HALF = "flat", "random turns", "true credit", "true credit, half the samples"
EXACT = "true credit, its error taken off"

STACKS: dict[str, Callable[[], list[CreditOperator]]] = {
    FLAT: lambda: [RLOO()],
    RANDOM: lambda: [RLOO(), RandomTurns(share=0.5)],
    "last turn": lambda: [RLOO(), LastTurn()],
    "GiGPO": lambda: [GiGPO()],
    "StateValues": lambda: [StateValues()],
    "TurnReturns, gamma 0.95": lambda: [TurnReturns(gamma=0.95)],
    "GAE, turns": lambda: [RLOO(), HeadCritic(), GAE(lam=0.95, cuts="turn")],
    "UncertainTurns": lambda: [RLOO(), UncertainTurns(share=0.5)],
}

Floats = NDArray[np.float64]
Quantity = tuple[str, str, float, float, float]
"""Credit, name of the quantity, estimate, and ends of its interval."""


class DensityProbe(CreditOperator, reads="advantages oracle turn", writes="advantages", costly=True):
    """Let stacks credit the last of some rollouts and write what is measured; critics learn from those before.

    It leaves no credit, so that the policy stays as it is.

    Args:
        write: Function that keeps a quantity.
        rollouts: Number of rollouts.
        samples: Continuations from each end of a turn.
        draws: Bootstrap samples.
        seed: Seed of the bootstrap.

    """

    def __init__(self, write: Callable[[Quantity], None], rollouts: int, samples: int, draws: int, seed: int) -> None:
        super().__init__()
        self.write, self.rollouts, self.samples, self.draws, self.seed = write, rollouts, samples, draws, seed
        self.stacks = {name: CreditStack(make()) for name, make in STACKS.items()}
        operators = [operator for stack in self.stacks.values() for operator in stack.operators]
        self.reads = self.reads.union(*(operator.reads & FACT_FIELDS for operator in operators))

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Remember the run, whose weights and loss gradients are taken of."""
        assert isinstance(pl_module, PolicyModule)
        self.trainer, self.module = trainer, pl_module

    def assign(self, rollout: Rollout) -> dict[str, float]:
        """Measure the last rollout; nothing is logged."""
        self.rollouts -= 1
        halved = split_groups(rollout)
        credits = {name: stack.assign(halved).credit for name, stack in self.stacks.items()}
        if not self.rollouts:
            halves = measure_true_halves(rollout, self.samples)
            for quantity in self.list_quantities(halved, credits, halves):
                self.write(quantity)
        rollout.advantages = torch.zeros_like(rollout.advantages)
        return {}

    def list_quantities(
        self, rollout: Rollout, credits: dict[str, Credit], halves: tuple[Tensor, Tensor]
    ) -> Iterator[Quantity]:
        """Yield what is measured of every credit, flat credit and random turns first; a prompt has two groups."""
        prompts = len(rollout.mask) // rollout.group_size // 2
        shares = np.full(prompts, 1 / prompts)
        counts = np.random.default_rng(self.seed).multinomial(prompts, shares, self.draws).astype(float)
        counts = np.concatenate([np.ones((1, prompts)), counts])  # the prompts as they are, then as they are drawn
        truths = {TRUE: sum(halves) / 2, HALF: halves[0]}
        credits |= {name: Credit(spread_turns(value, rollout.turn).float()) for name, value in truths.items()}
        ratios: dict[str, dict[str, Floats]] = {}
        random = np.zeros(0)
        for name, credit in credits.items():
            vectors = compute_prompt_vectors(self.trainer, self.module, rollout, credit).double()
            pairs = vectors.view(prompts, 2, -1)
            whole = pairs.sum(1)
            ratios[name] = {
                "": resample_prompt_signal_to_noise((pairs @ pairs.mT).numpy(), counts),
                "batch_": resample_signal_to_noise((whole @ whole.T).numpy(), counts),
            }
            yield from list_ratios(name, ratios[name], ratios[FLAT])
            if name in truths:
                continue
            yield summarize_draws(name, "agreement", compare_with_truth(rollout, credit, halves, counts, within=False))
            within = compare_with_truth(rollout, credit, halves, counts, within=True)
            random = within if name == RANDOM else random
            yield summarize_draws(name, "agreement_within", within)
            if len(random) and name != RANDOM:
                yield summarize_draws(name, "over_random", within - random)
        exact = {kind: take_off_error(ratio, ratios[HALF][kind]) for kind, ratio in ratios[TRUE].items()}
        yield from list_ratios(EXACT, exact, ratios[FLAT])


def split_groups(rollout: Rollout) -> Rollout:
    """Return the rollout with two groups in place of each; a rollout of its own, whose tensors are shared."""
    halved = copy.copy(rollout)
    halved.group_size = rollout.group_size // 2
    halved.sources = tuple(source for source in rollout.sources for _ in range(2))
    return halved


def list_ratios(name: str, ratios: dict[str, Floats], flat_ratios: dict[str, Floats]) -> Iterator[Quantity]:
    """Yield the signal-to-noise of a credit and its gain, within prompts and of the batch."""
    for kind, draws in ratios.items():
        yield summarize_draws(name, f"{kind}signal_to_noise", draws)
        yield summarize_draws(name, f"{kind}gain", find_gain(draws, flat_ratios[kind]))


def measure_true_halves(rollout: Rollout, samples: int) -> tuple[Tensor, Tensor]:
    """Return the change of the value over each turn by either half of the continuations, shapes ``(B, K)`` float64."""
    assert isinstance(rollout.oracle, Oracle)
    rows, oracle = list(range(len(rollout.mask))), rollout.oracle.with_fresh_noise()
    starts = oracle.mark_places(rollout, rows)
    places = places_in_order(starts)
    outcomes = oracle.outcomes(rollout, rows, starts, samples)
    end = outcomes.shape[1] - 1
    bounds = pad(places.where(places >= 0, end), (0, 1), value=end)
    changes = outcomes.gather(1, bounds[..., None].expand(-1, -1, samples)).diff(dim=1).where(places[..., None] >= 0, 0)
    first, second = (changes[..., start::2].mean(-1) for start in (0, 1))
    return first, second


def resample_prompt_signal_to_noise(products: Floats, counts: Floats) -> Floats:
    """Return the signal-to-noise of the gradient of a group, its prompt given, for prompts that are drawn so often.

    Args:
        products: Inner products of the gradients of each prompt's two groups, shape ``(P, 2, 2)``.
        counts: Number of times that each prompt is drawn, shape ``(D, P)``.

    Example:
        >>> resample_prompt_signal_to_noise(np.array([[[3.0, 1.0], [1.0, 3.0]]]), np.ones((1, 1))).tolist()
        [0.5]

    """
    signal, total = counts @ products[:, 0, 1], counts @ products.trace(axis1=1, axis2=2) / 2
    return np.divide(signal, total - signal, out=np.zeros_like(signal), where=total > signal)


def resample_signal_to_noise(products: Floats, counts: Floats) -> Floats:
    """Return the signal-to-noise of prompts that are drawn so often; a prompt is not compared with itself.

    Args:
        products: Inner products of the prompts' gradients, shape ``(P, P)``.
        counts: Number of times that each prompt is drawn, shape ``(D, P)``.

    Example:
        >>> resample_signal_to_noise(np.array([[2.0, 1.0], [1.0, 2.0]]), np.ones((1, 2))).tolist()
        [2.0]

    """
    prompts, squares = counts.sum(-1), products.diagonal()
    pairs = ((counts @ products) * counts).sum(-1) - counts**2 @ squares
    numbers = prompts**2 - (counts**2).sum(-1)
    signal = np.divide(pairs, numbers, out=np.zeros_like(pairs), where=numbers > 0)
    variance = counts @ squares / prompts - signal
    return np.divide(prompts * signal, variance, out=np.zeros_like(signal), where=variance > 0)


def find_gain(ratios: Floats, flat_ratios: Floats) -> Floats:
    """Return the root of the ratio of two signals to noise; not a finite number where flat credit has no signal.

    Example:
        >>> find_gain(np.array([0.5, -1.0]), np.array([2.0, 2.0])).tolist()
        [0.5, 0.0]

    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.sqrt(np.maximum(ratios, 0) / np.maximum(flat_ratios, 0))


def take_off_error(ratios: Floats, half_ratios: Floats) -> Floats:
    """Return the signal-to-noise that credit by endless continuations would have; not a number where it has no end.

    The error of credit by M continuations adds noise in proportion to 1/M, and no signal.

    Args:
        ratios: Signal-to-noise by all continuations, shape ``(D,)``.
        half_ratios: Signal-to-noise by half of them, shape ``(D,)``.

    Example:
        >>> take_off_error(np.array([0.5]), np.array([1 / 3])).tolist()  # noise of 1, and of 1 and 2 by the error
        [1.0]

    """
    with np.errstate(divide="ignore", invalid="ignore"):
        noise = 2 / ratios - 1 / half_ratios
        return np.where((ratios > 0) & (half_ratios > 0) & (noise > 0), 1 / noise, np.nan)


def compare_with_truth(
    rollout: Rollout, credit: Credit, halves: tuple[Tensor, Tensor], counts: Floats, within: bool
) -> Floats:
    """Return the cosine of credit with the true credit of turns, for prompts that are drawn so often, ``(D,)``.

    Args:
        rollout: Episodes.
        credit: Credit that counts by its mean over the tokens of a turn.
        halves: True credit by either half of the continuations, whose errors are independent, shapes ``(B, K)``.
        counts: Number of times that each prompt is drawn, shape ``(D, P)``.
        within: Whether the mean over its episode is taken off each credit.

    """
    width = halves[0].shape[1]
    mask, sizes = mark_turns(rollout.turn, width), sum_turns(rollout.mask.double(), rollout.turn, width)
    ledger = sum_turns(credit.advantages.double() * rollout.mask, rollout.turn, width) / sizes.clamp(min=1)
    values = [ledger, *halves]
    if within:
        values = [value - (value * mask).sum(-1, keepdim=True) / mask.sum(-1, keepdim=True) for value in values]
    ledger, first, second = (value * mask for value in values)
    sums = [ledger * (first + second) / 2, ledger**2, first * second]
    across, own, true = (counts @ part.sum(-1).view(counts.shape[1], -1).sum(-1).numpy() for part in sums)
    size = np.sqrt(np.maximum(own, 0) * np.maximum(true, 0))
    return np.divide(across, size, out=np.zeros_like(across), where=size > 0)


def summarize_draws(name: str, quantity: str, draws: Floats) -> Quantity:
    """Return a quantity with its interval; the first draw is the estimate, and what cannot be told is left out."""
    sample = draws[1:][np.isfinite(draws[1:])]
    low, high = np.quantile(sample, [0.025, 0.975]) if len(sample) else (np.nan, np.nan)
    return name, quantity, float(draws[0]), float(low), float(high)


def measure_game(game: str, args: argparse.Namespace) -> None:
    """Measure one game and append its rows."""
    seed_everything(args.seed, verbose=False)
    task, environment, _ = ALL_GAMES[game]
    settings = {
        "data.init_args.environment": environment,
        "data.init_args.prompts_per_step": args.prompts,
        "model.policy.path": f"organisms/{task}",
        "model.sampling.completions": args.completions,
        "model.engine": "InProcessEngine(decode_batch_size=1024)",
        "seed_everything": args.seed,
        "threads": args.threads,
        "trainer.logger": "false",
    }
    files = ["--config=configs/turns.yaml", f"--config=configs/tasks/{task}.yaml"]
    run = resolve_condition([*files, *(f"--{name}={value}" for name, value in settings.items())])
    run.module.optimizer, run.module.scheduler = partial(torch.optim.AdamW, lr=0.0), None
    sizes = {"prompts": args.prompts, "completions": args.completions, "samples": args.samples}

    def write(quantity: Quantity) -> None:
        credit, name, *numbers = quantity
        values = dict(zip(("estimate", "low", "high"), (f"{number:.6g}" for number in numbers), strict=True))
        csv_rows.append_csv_rows(args.out, [{"game": game, "credit": credit, "quantity": name, **values, **sizes}])
        print(game, credit, name, *values.values(), flush=True)

    probe = DensityProbe(write, args.rollouts, args.samples, args.draws, args.seed)
    train_unlogged(run.module, run.task, args.rollouts, [RLOO(), probe])


def drop_unfinished_games(path: Path) -> set[str]:
    """Return the games that a file holds whole; rows of others are dropped."""
    rows = csv_rows.read_csv_rows(path) if path.exists() else []
    finished = {row["game"] for row in rows if (row["credit"], row["quantity"]) == (EXACT, "batch_gain")}
    path.unlink(missing_ok=True)
    if whole := [row for row in rows if row["game"] in finished]:
        csv_rows.append_csv_rows(path, whole)
    return finished


def main() -> None:
    """Measure the games that are not in the file yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", nargs="+", choices=ALL_GAMES, default=[*ALL_GAMES])
    parser.add_argument("--prompts", type=int, default=48)
    parser.add_argument("--completions", type=int, default=16, help="episodes of a prompt, in two groups")
    parser.add_argument("--samples", type=int, default=16, help="continuations from each end of a turn")
    parser.add_argument("--rollouts", type=int, default=5, help="critics learn from all but the last")
    parser.add_argument("--draws", type=int, default=2000, help="bootstrap samples")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tiny", action="store_true", help="a few episodes, to see that it runs")
    parser.add_argument("--out", type=Path, required=True, help="CSV file of the rows")
    args = parser.parse_args()
    if args.tiny:
        args.prompts, args.completions, args.samples, args.rollouts = 6, 4, 4, 2
    silence_libraries()
    torch.set_num_threads(args.threads)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    finished = drop_unfinished_games(args.out)
    for game in args.games:
        if game not in finished:
            measure_game(game, args)


if __name__ == "__main__":
    main()
