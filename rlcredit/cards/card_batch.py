"""One batch of completions under a stack: its ledger, gradients, cost, and true credit."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from numpy.typing import NDArray

from rlcredit.campaign.config_differences import flatten_config
from rlcredit.campaign.resolved_condition import ResolvedCondition, resolve_condition
from rlcredit.cards.budget import CardBudget
from rlcredit.cards.measuring_bar import MeasuringBar
from rlcredit.cli.application import read_expanded_config
from rlcredit.cli.explain import find_trainer_stack
from rlcredit.credit.alternatives import Credit
from rlcredit.credit.heatmap import credit_heatmap
from rlcredit.credit.operator import CreditOperator
from rlcredit.credit.rollout import Rollout
from rlcredit.decoding.engine import Engine
from rlcredit.oracle import Oracle, TrueCredit
from rlcredit.training.credit_gradients import compute_prompt_vectors
from rlcredit.training.module import PolicyModule
from rlcredit.training.periodic_measurement import PeriodicMeasurement

HEATMAP_ROWS = 3
"""Completions on the heat-map."""

BATCH_SEED = 0
"""Of the batch: questions, adapter and noise."""

UPDATE_SETTINGS = {"model.updates_per_rollout": 1, "model.minibatches": 1}
"""How often and by what part a rollout is used; a batch is used once and whole, as is every rollout by default."""

MEASUREMENT_PARTS = 4
"""Parts of a measurement that a bar shows, beside true credit."""

BATCH_STEPS = 3
"""The first opens gates and starts averages, the second is measured, the third timed; none changes the policy."""


@dataclass(kw_only=True)
class CreditedBatch:
    """A batch under one stack, wherever it comes from.

    Attributes:
        stack: Operators that have assigned credit.
        rollout: Rollout with the ledger as the operators left it.
        page: Heat-map of some completions.
        gradients: Gradients of the loss for each prompt, shape ``(P, D)`` float32; None where they are not known.

    """

    stack: Sequence[CreditOperator]
    rollout: Rollout
    page: str = ""
    gradients: NDArray[np.float32] | None = None


@dataclass(kw_only=True)
class CardBatch(CreditedBatch):
    """A batch of a test policy under one stack, and all that was measured beside its credit.

    Attributes:
        resolution: Resolved configuration of the condition, but for its updates.
        updates: How often and by what part runs of the condition use a rollout, by setting.
        seconds: Seconds that each part of a step took, by name.
        decoded: Tokens that operators decoded for the step, beside its completions.
        truth: True credit of some completions, None where it was not asked for.

    """

    resolution: ResolvedCondition
    updates: Mapping[str, Any]
    seconds: Mapping[str, float] = field(default_factory=dict)
    decoded: int = 0
    truth: TrueCredit | None = None


def measure_card_batch(
    files: Sequence[str],
    budget: CardBudget,
    truth: TrueCredit | None = None,
    *,
    threads: int = 1,
    failure_folder: Path | None = None,
    bar: MeasuringBar | None = None,
    engine: Engine | None = None,
) -> CardBatch:
    """Sample the batch, let a stack assign credit to it, and measure the result.

    The completions are functions of the policy, how it is sampled, and the seed. Operators see the step at
    which their runs end: those of the budget, or the configured one where it has none. Where memory may not suffice for
    all completions at a time, as many go through the policy as a batch of gradients has.

    Args:
        files: Configuration files of the run; later ones win.
        budget: Budget that says how much is measured.
        truth: True credit of some of these completions, if it is known.
        threads: CPU threads of torch.
        failure_folder: Folder for a batch on which an operator fails; a temporary one if None.
        bar: Bar that shows which part is under way; no bar if None.
        engine: Engine that samples the batch, released afterwards; the configured one if None.

    Raises:
        SystemExit: a configuration is refused; the message has been printed.

    """
    if bar is not None:
        bar.begin_part("a batch to warm up")
    resolution = resolve_batch_config(files, budget, threads)
    module, settings = resolution.module, resolution.leaves["trainer"]
    module.engine = engine or module.engine
    module.engine.ahead = 0  # a second batch of the same policy is all there is to come
    module.optimizer, module.scheduler = partial(torch.optim.SGD, lr=0.0), None
    stack = [operator for operator in find_trainer_stack(resolution.trainer) if operator.writes]
    updates = read_update_settings(files)
    final_step = budget.steps * updates["model.updates_per_rollout"] or max(settings["max_steps"], 0)
    recorder = _BatchRecorder(budget, truth, bar)
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(
            max_steps=BATCH_STEPS,
            accelerator=settings["accelerator"],
            precision=settings["precision"],
            devices=1,
            deterministic=True,
            default_root_dir=failure_folder or folder,
            logger=False,
            limit_val_batches=0,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            callbacks=[_FinalStepSetter(final_step), *stack, recorder],  # pyright: ignore[reportArgumentType]
        )
        trainer.fit(module, resolution.task)
    return CardBatch(resolution=resolution, updates=updates, stack=stack, **recorder.facts)  # pyright: ignore[reportArgumentType]


def resolve_batch_config(files: Sequence[str], budget: CardBudget, threads: int = 1) -> ResolvedCondition:
    """Return the resolved configuration under which a batch is sampled; nothing is loaded.

    Raises:
        SystemExit: it is refused; the message has been printed.

    """
    return resolve_condition(
        [*(f"--config={file}" for file in files), f"--threads={threads}", *_list_batch_overrides(budget)]
    )


def read_update_settings(files: Sequence[str]) -> dict[str, Any]:
    """Return the settings of updates that runs have and a batch has not, by name; later files win."""
    settings: dict[str, Any] = {}
    for file in files:
        leaves = flatten_config(read_expanded_config(Path(file)))
        settings |= {name: leaves[name] for name in UPDATE_SETTINGS if name in leaves}
    return UPDATE_SETTINGS | settings


def _list_batch_overrides(budget: CardBudget) -> list[str]:
    values = {
        "seed_everything": BATCH_SEED,
        "data.init_args.prompts_per_step": budget.prompts,
        "model.sampling.completions": budget.completions,
        "model.dynamic_sampling": "null",
        "trainer.logger": "false",
    }
    return [f"--{name}={value}" for name, value in (values | UPDATE_SETTINGS).items()]


class _FinalStepSetter(Callback):
    """Move the batch to the last step of a run, where schedules have their final value."""

    def __init__(self, step: int) -> None:
        self.step = step

    def on_train_batch_start(
        self, trainer: Trainer, pl_module: LightningModule, batch: Rollout, batch_idx: int
    ) -> None:
        """Set the step that operators see."""
        batch.step = self.step


class _BatchRecorder(
    PeriodicMeasurement, CreditOperator, reads="advantages correct entropy judged old_logprobs step tokens", costly=True
):
    """Record everything that a card is made from."""

    every_n_steps = 1

    def __init__(self, budget: CardBudget, truth: TrueCredit | None, bar: MeasuringBar | None) -> None:
        super().__init__()
        self.bar = bar
        self.budget = budget
        self.truth = truth
        self.asks = budget.asked > 0 and truth is None
        if self.asks:
            self.reads = self.reads | {"oracle"}
        self.facts: dict[str, Any] = {}
        self.seen_before = 0

    def measure(self, trainer: Trainer, module: PolicyModule, rollout: Rollout, credit: Credit) -> Mapping[str, float]:
        """Record the second batch; nothing is logged."""
        self.seen_before += 1
        if self.seen_before == 1:
            self._begin_part(f"completions of {self.budget.prompts} prompts")
        if self.seen_before != 2:
            return {}
        self._begin_part(f"gradients of {self.budget.prompts} prompts")
        vectors = compute_prompt_vectors(trainer, module, rollout, credit)
        token_count = rollout.oracle.decoded if isinstance(rollout.oracle, Oracle) else 0
        rollout.truth = self._measure_true_credit(rollout)
        self.facts = {
            "rollout": rollout,
            "gradients": vectors.cpu().numpy(),
            "decoded": token_count,
            "truth": rollout.truth,
            "page": credit_heatmap(rollout, completions=HEATMAP_ROWS),
        }
        self._begin_part("a step to time")
        return {}

    def _begin_part(self, part: str) -> None:
        if self.bar is not None:
            self.bar.begin_part(part)

    def _measure_true_credit(self, rollout: Rollout) -> TrueCredit | None:
        """Estimate true credit with noise of its own, so that credit an operator measured is judged independently."""
        if not self.asks:
            return self.truth if self.truth is not None and self.truth.is_of(rollout) else None
        assert isinstance(rollout.oracle, Oracle)
        self._begin_part(f"true credit of {self.budget.asked} completions")
        return rollout.oracle.with_fresh_noise().credit(
            rollout, rollout.evenly_spaced_rows(self.budget.asked), self.budget.samples
        )

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Record the times of the last step, during which nothing is measured."""
        assert isinstance(pl_module, PolicyModule)
        times = pl_module.state.metrics.items()
        self.facts["seconds"] = {name.removeprefix("time/"): t for name, t in times if name.startswith("time/")}
