"""What a condition learns: runs with several seeds, beside those of its baseline."""

import contextlib
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from rlcredit.campaign.declaration import Declaration
from rlcredit.campaign.launchers.choice import LAUNCHERS
from rlcredit.campaign.ledger import begun, locked
from rlcredit.campaign.run_spec import overlay
from rlcredit.campaign.start import started
from rlcredit.card.budget import Budget
from rlcredit.card.finding import Finding
from rlcredit.files import write_atomically
from rlcredit.notices import tell
from rlcredit.report.comparison import Comparison, area_under, comparisons
from rlcredit.report.evidence import Evidence, Run, collected
from rlcredit.statistics.collapse import collapsed
from rlcredit.statistics.t_test import paired_t

PRIMARY = "val/pass_at_1"

EFFECT = 0.01
"""Difference of it that would not matter."""

RATE = "model.optimizer.init_args.lr"
"""The setting that is tuned."""


COMMON = {
    "data.init_args.prompts_per_step": 4,
    "data.init_args.validation_batch": 256,
    "model.validation.completions": 2,
    "model.pass_k": 2,
}
"""Settings of all runs, unless a condition has its own."""


@dataclass(frozen=True)
class Arm:
    """A condition that learns.

    Args:
        name: of the condition.
        files: configurations of its runs, the later ones win.
        rate: its learning rate as configured.

    """

    name: str
    files: tuple[str, ...]
    rate: float


def learnt(arm: Arm, baseline: Arm, budget: Budget, root: Path, slots: int | None, threads: int | None) -> "Learnt":
    """Run what is missing of two arms, each with its own learning rate, and compare them.

    The runs of an arm are a campaign of its own, named by all that they depend on: another card finds them again.

    Args:
        arm: that is judged.
        baseline: with which it is compared.
        budget: how much is run.
        root: folder of all arms.
        slots: runs at a time; all cores if None.
        threads: of a run.

    Raises:
        ValueError: a run failed, or the two cannot be compared.

    """
    rates = {each.name: _rate(each, budget, root, slots, threads) for each in dict.fromkeys((baseline, arm))}
    found = {
        each.name: _evidence(each, budget, budget.seeds, rates[each.name], root, slots, threads)
        for each in dict.fromkeys((baseline, arm))
    }
    both = _joined(found, baseline.name, arm.name)
    compared = comparisons(both)[0]
    return Learnt(compared, both.of(arm.name), both.of(baseline.name), rates[arm.name], rates[baseline.name])


@dataclass(frozen=True)
class Learnt:
    """What runs have shown.

    Args:
        comparison: with the baseline.
        runs: of the condition.
        baseline: runs of the other.
        rate: learning rate of the condition.
        baseline_rate: of the other.

    """

    comparison: Comparison
    runs: Sequence[Run]
    baseline: Sequence[Run]
    rate: float
    baseline_rate: float

    @property
    def alike(self) -> bool:
        """Whether every answer of every run is that of the baseline's run with the same seed."""
        pairs = zip(self.runs, self.baseline, strict=True)
        return all(np.array_equal(run.right[step], base.right[step]) for run, base in pairs for step in run.right)

    def findings(self) -> Iterator[Finding]:
        """Yield what was learnt: at the end, on the way, how fast, and how safely."""
        compared = self.comparison
        end, flat = (np.mean([_end(run) for run in runs]) for runs in (self.runs, self.baseline))
        yield Finding(
            "pass_at_1",
            "held-out pass@1 at the end",
            float(end),
            "share",
            baseline=float(flat),
            sentence=f"{len(self.runs)} runs end at {end:.3f}, the baseline's at {flat:.3f}.",
        )
        assert compared.test is not None
        assert compared.area is not None
        gain = compared.test
        yield Finding(
            "gain",
            "gain at the end, paired",
            100 * gain.difference,
            "points",
            100 * gain.interval.low,
            100 * gain.interval.high,
            sentence=f"{100 * gain.difference:+.1f} points ({100 * gain.interval.low:+.1f} to "
            f"{100 * gain.interval.high:+.1f}): {compared.verdict}.",
        )
        yield Finding(
            "area_gain",
            "gain on the way, paired",
            100 * compared.area.difference,
            "points",
            100 * compared.area.interval.low,
            100 * compared.area.interval.high,
            sentence=f"Over the whole run it is {100 * compared.area.difference:+.1f} points ahead on average.",
        )
        yield self._speed()
        falls, base = (int(collapsed([_end(run) for run in runs]).sum()) for runs in (self.runs, self.baseline))
        yield Finding(
            "collapses",
            "runs that collapsed",
            float(falls),
            "number",
            baseline=float(base),
            sentence=f"{falls} of {len(self.runs)} runs end far below the others; {base} of the baseline's.",
        )
        entropy, other = (np.mean([_end(run, "val/entropy") for run in runs]) for runs in self._arms)
        yield Finding(
            "entropy",
            "held-out entropy at the end",
            float(entropy),
            "nats",
            baseline=float(other),
            sentence=f"The policy ends with {entropy:.3f} nats a token, under the baseline with {other:.3f}.",
        )
        yield Finding(
            "rate",
            "learning rate",
            self.rate,
            "number",
            baseline=self.baseline_rate,
            sentence=f"It learns with {self.rate:g}, the baseline with {self.baseline_rate:g}.",
        )

    @property
    def _arms(self) -> tuple[Sequence[Run], Sequence[Run]]:
        return self.runs, self.baseline

    def _speed(self) -> Finding:
        """Return how many steps it takes to half of what the baseline gains."""
        start = np.mean([min(run.curve(PRIMARY).items())[1] for run in self.baseline])
        threshold = float((start + np.mean([_end(run) for run in self.baseline])) / 2)
        own, base = (np.array([steps_to(run.curve(PRIMARY), threshold) for run in runs]) for runs in self._arms)
        last = max(self.baseline[0].metrics)
        never = int(np.isinf(own).sum())
        capped = [np.where(np.isinf(steps), last, steps) for steps in (own, base)]
        difference = paired_t(capped[0] - capped[1])
        more = f"; {never} of {len(own)} runs never get there" if never else ""
        return Finding(
            "steps",
            f"steps to {threshold:.2f}",
            float(capped[0].mean()),
            "steps",
            float(capped[1].mean() + difference.interval.low),
            float(capped[1].mean() + difference.interval.high),
            float(capped[1].mean()),
            f"Half of what the baseline gains takes {capped[0].mean():.0f} steps, the baseline {capped[1].mean():.0f}"
            f"{more}.",
        )


def steps_to(curve: Mapping[int, float], threshold: float) -> float:
    """Return after how many steps a held-out curve first reaches a value, between evaluations on a straight line.

    Example:
        >>> steps_to({0: 0.25, 10: 0.5, 20: 1.0}, 0.75), steps_to({0: 0.25, 10: 0.5}, 0.75)
        (15.0, inf)

    """
    before: tuple[int, float] | None = None
    for step, value in sorted(curve.items()):
        if value >= threshold:
            if before is None:
                return float(step)
            return before[0] + (step - before[0]) * (threshold - before[1]) / (value - before[1])
        before = (step, value)
    return float("inf")


def _end(run: Run, metric: str = PRIMARY) -> float:
    return run.metrics[max(run.metrics)][metric]


def _rate(arm: Arm, budget: Budget, root: Path, slots: int | None, threads: int | None) -> float:
    """Return the learning rate of the grid whose tuning runs end best; the one configured if there is no grid."""
    if not budget.factors:
        return arm.rate

    def ends(factor: float) -> tuple[float, float]:
        found = _evidence(arm, budget, budget.tuning_seeds, arm.rate * factor, root, slots, threads).of(arm.name)
        return float(np.mean([_end(run) for run in found])), float(np.mean([area_under(run, PRIMARY) for run in found]))

    return arm.rate * max(budget.factors, key=ends)


def _evidence(
    arm: Arm, budget: Budget, seeds: Sequence[int], rate: float, root: Path, slots: int | None, threads: int | None
) -> Evidence:
    """Run what is missing of an arm with one learning rate, and read it."""
    root.mkdir(parents=True, exist_ok=True)
    declaration = _declared(arm, budget, seeds, rate, root)
    folder = root / declaration.name
    folder.mkdir(exist_ok=True)
    with (
        begun(folder),
        LAUNCHERS["local"](folder, None, slots) as share,
        locked(folder),
        (folder / "said.txt").open("a", encoding="utf-8") as log,
    ):
        tell(f"learning   {arm.name}, {len(seeds)} runs of {budget.steps} steps, learning rate {rate:g}")
        with contextlib.redirect_stdout(log):
            status = started(declaration, folder, overlay(declaration.settings), share, threads, measure=False)
    if status:
        raise ValueError(f"runs of {arm.name} failed; {folder / 'said.txt'} says which. The same command tries again.")
    return collected(folder)


def _declared(arm: Arm, budget: Budget, seeds: Sequence[int], rate: float, root: Path) -> Declaration:
    """Return the declaration of an arm, whose name tells it from every other.

    What the budget says of batches and evaluations stands before the condition, which may say otherwise.
    """
    common = root / f"{budget.name}.yaml"
    write_atomically(common, overlay(COMMON | {"data.init_args.validation_size": budget.questions}))
    files = (*arm.files[:-1], str(common), arm.files[-1])
    declared = Declaration(
        name=arm.name,
        configs=files[:-1],
        conditions={arm.name: files[-1:]},
        baseline=arm.name,
        seeds=tuple(seeds),
        steps=budget.steps,
        primary=PRIMARY,
        effect=EFFECT,
        exploratory=True,
        settings={
            RATE: rate,
            "trainer.val_check_interval": budget.steps // budget.evaluations,
            "checkpoint.every_n_train_steps": budget.steps,
        },
    )
    contents = [Path(file).read_text(encoding="utf-8") for file in files]
    told = json.dumps([{**declared.plain(), "configs": [], "conditions": {}}, contents], sort_keys=True)
    return replace(declared, name=f"{arm.name}-{hashlib.sha256(told.encode()).hexdigest()[:10]}")


def _joined(found: Mapping[str, Evidence], baseline: str, condition: str) -> Evidence:
    """Return the runs of two arms as those of one campaign."""
    base, own = found[baseline], found[condition]
    conditions = {**base.declaration.conditions, **own.declaration.conditions}
    return Evidence(
        replace(base.declaration, name=condition, conditions=conditions, baseline=baseline),
        base.ledger,
        {**base.runs, **own.runs},
        {**base.refused, **own.refused},
        {**base.absent, **own.absent},
        {**base.measures, **own.measures},
    )
