"""Compare the gradients that other stacks would produce from the same rollout."""

import copy
import itertools
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.utilities import rank_zero_only

from rlcredit.base.plot_style import draw_angle_matrix
from rlcredit.credit.alternatives import Credit
from rlcredit.credit.contract import StackError
from rlcredit.credit.operator import CreditOperator
from rlcredit.credit.rollout import FACT_FIELDS, Rollout
from rlcredit.credit.stack import CreditStack
from rlcredit.credit.stack_checks import check_stack
from rlcredit.formulas.gradient_vectors import vector_agreement
from rlcredit.record.artifacts import make_run_folder, publish_file, publish_text, warn_on_write_error
from rlcredit.training.credit_gradients import compute_credit_gradients, predict_optimizer_steps
from rlcredit.training.module import PolicyModule
from rlcredit.training.periodic_measurement import PeriodicMeasurement

PRESENT_STACK = "this_stack"


class CounterfactualProbe(PeriodicMeasurement, CreditOperator, reads="advantages step", state="states", costly=True):
    """Compare the gradients of any number of stacks, and of the one above this place, on the identical rollout.

    Every other stack starts from a neutral ledger at every step, so that gates and averages keep their history; it is
    checked like any stack. Logged for every pair as ``A_vs_B_raw_degrees`` and ``_cosine``, and likewise
    ``preconditioned`` by Adam's warm moments; as a picture (raw below the diagonal, preconditioned above) and a table
    under ``probes/``. Compare the angles with ``NoiseFloor``.

    Args:
        stacks: Stacks to compare with, each a name and a list of operators.
        every_n_steps: Steps from one measurement to the next; each takes one more forward and one backward pass per
            stack, this one included.

    """

    def __init__(self, stacks: dict[str, list[CreditOperator]] | None = None, every_n_steps: int = 10) -> None:
        super().__init__()
        self.stacks = stacks or {}
        self.every_n_steps = self.require_interval(every_n_steps)
        if PRESENT_STACK in self.stacks:
            raise ValueError(f"CounterfactualProbe calls the stack above it {PRESENT_STACK!r}. Choose another name.")
        for name, stack in self.stacks.items():
            try:
                check_stack(stack)
            except StackError as error:
                raise ValueError(f"CounterfactualProbe, stack {name}: {error}") from None
        self.reads = self.reads.union(*(op.reads & FACT_FIELDS for stack in self.stacks.values() for op in stack))
        self.others: dict[str, Credit] = {}

    @property
    def arguments(self) -> dict[str, Any]:
        """Stacks by their operators' arguments, as a checkpoint stores them."""
        contents = {name: [(type(op).__name__, op.arguments) for op in stack] for name, stack in self.stacks.items()}
        return {"stacks": contents, "every_n_steps": self.every_n_steps}

    @property
    def states(self) -> dict[str, list[dict[str, Any]]]:
        """What the operators of the other stacks cannot recompute."""
        return {name: [{key: getattr(op, key) for key in op.state} for op in ops] for name, ops in self.stacks.items()}

    @states.setter
    def states(self, states_of_stacks: dict[str, list[dict[str, Any]]]) -> None:
        for name, operators in self.stacks.items():
            for operator, state in zip(operators, states_of_stacks[name], strict=True):
                for key, value in state.items():
                    setattr(operator, key, value)

    def name_binary_operator(self) -> str | None:
        """Return the first operator of the other stacks that takes rewards of one and zero only."""
        names = (operator.name_binary_operator() for operator in itertools.chain(*self.stacks.values()))
        return next((f"{name} of CounterfactualProbe" for name in names if name), None)

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Hand the run's seed on."""
        super().setup(trainer, pl_module, stage)
        for operator in itertools.chain(*self.stacks.values()):
            operator.run_seed = self.run_seed

    def assign(self, rollout: Rollout) -> dict[str, float]:
        """Let every other stack assign its own credit."""
        twin = copy.copy(rollout)
        if "oracle" in self.reads:
            twin.oracle = rollout.oracle.with_own_cache()  # else this stack would use what the others have decoded
        ledgers = {name: CreditStack(stack).assign(twin) for name, stack in self.stacks.items()}
        self.others = {name: ledger.credit for name, ledger in ledgers.items()}
        rollout.token_counts.add(decoded_by_probes=sum(ledger.token_counts.decoded for ledger in ledgers.values()))
        return PeriodicMeasurement.assign(self, rollout)

    def measure(self, trainer: Trainer, module: PolicyModule, rollout: Rollout, credit: Credit) -> Mapping[str, float]:
        """Compare every pair of stacks."""
        rows = len(rollout.mask)
        credits = {PRESENT_STACK: credit}
        credits |= {name: ledger.first_rows(rows) for name, ledger in self.others.items()}
        vectors = {"raw": compute_credit_gradients(trainer, module, rollout, list(credits.values()))}
        if steps := predict_optimizer_steps(trainer, module, vectors["raw"]):
            vectors["preconditioned"] = [step.preconditioned for step in steps]
        metrics, degrees = {}, {kind: np.zeros((len(credits), len(credits))) for kind in vectors}
        for kind, stack_vectors in vectors.items():
            for (i, one_name), (j, other_name) in itertools.combinations(enumerate(credits), 2):
                comparison = vector_agreement(stack_vectors[i], stack_vectors[j])
                degrees[kind][i, j] = degrees[kind][j, i] = comparison["degrees"]
                pair = f"{one_name}_vs_{other_name}_{kind}"
                metrics |= {f"{pair}_{name}": comparison[name] for name in ("degrees", "cosine", "norm_ratio")}
        self._publish_table(trainer, rollout.step, list(credits), degrees, metrics)
        return metrics

    @rank_zero_only
    def _publish_table(
        self, trainer: Trainer, step: int, names: list[str], degrees: dict[str, np.ndarray], metrics: dict[str, float]
    ) -> None:
        path = make_run_folder(trainer) / "probes"
        picture, table = (path / f"{self.label}_step_{step:06d}.{ending}" for ending in ("png", "json"))
        raw, *means = degrees.items()
        with warn_on_write_error(picture):
            draw_angle_matrix(names, raw, means[0] if means else raw, f"angles between gradients, step {step}", picture)
            publish_file(trainer, picture, "probes")
        publish_text(trainer, f"probes/{table.name}", json.dumps(metrics, indent=1))
