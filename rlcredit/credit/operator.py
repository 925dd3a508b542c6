"""A credit operator: one callback that edits the ledger of a rollout at its place in the list."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rlcredit.base.interrupts import is_signal
from rlcredit.base.messages import suggest_name
from rlcredit.base.process_end import STOPPING_ERRORS, catch_process_end
from rlcredit.config.error_messages import describe_exception, find_own_source
from rlcredit.credit.alternatives import WeightedTokens
from rlcredit.credit.continuations import Continuations
from rlcredit.credit.contract import OperatorContract, StackError
from rlcredit.credit.field_changes import (
    ALWAYS_WATCHED,
    WATCHED_FIELDS,
    count_changes,
    digest_fields,
    list_changed_fields,
)
from rlcredit.credit.operator_state import collect_state, restore_state
from rlcredit.credit.rollout import FACT_FIELDS, OPTIONAL_FACTS, ROLLOUT_FIELDS, Rollout
from rlcredit.credit.undeclared_reads import note_undeclared_reads
from rlcredit.credit.value_fault import find_value_fault
from rlcredit.decoding.noise import token_uniforms

if TYPE_CHECKING:
    from lightning.pytorch import Callback
else:
    try:
        from lightning.pytorch import Callback
    except ImportError:  # operators assign credit without it; see docs/howto/without_lightning.md

        class Callback:
            """Substitute for Lightning's callback if Lightning is not installed; nothing calls its hooks."""


Metrics = Mapping[str, Tensor | float]
"""What an operator reports, by quantity."""


LIGHTNING_METHODS = ("log", "log_dict")
"""Methods of the policy's module that Lightning sets on every callback."""

SHARE_FIELDS = ("sepa_lambda", "critic_weight")
"""Fields that hold one share in [0, 1] for the whole rollout."""

IN_PLACE = "of the written-to tensor refers to a single memory location"
"""Torch's message when code writes to an expanded tensor."""


class CreditOperator(OperatorContract, Callback):
    """One line of a credit stack: it reads some fields of the rollout, rebinds others, and reports metrics.

    The class header declares which; see :class:`rlcredit.credit.contract.OperatorContract`.
    """

    label: str
    run_seed: int = 0

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Record name and the header's ``state``, and wrap ``assign`` so that it always runs without gradients."""
        super().__init_subclass__(**kwargs)
        cls.label = cls.__name__
        if cls.state:
            # Lightning treats a callback with these two methods as stateful, and rejects two with the same state key.
            cls.state_dict = collect_state  # pyright: ignore[reportAttributeAccessIssue]
            cls.load_state_dict = restore_state  # pyright: ignore[reportAttributeAccessIssue]
        if "assign" in vars(cls):
            cls.assign = torch.no_grad()(cls.assign)

    def __init__(self) -> None:
        """Take no arguments; the constructor of a subclass need not call this one."""

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes of a copy, without logging methods, with which the policy would be copied."""
        return {name: value for name, value in vars(self).items() if name not in LIGHTNING_METHODS}

    def assign(self, rollout: Rollout) -> Metrics:
        """Edit the ledger of ``rollout`` and return metrics, without gradients."""
        own_names = [name for name in vars(type(self)) if not name.startswith("_")]
        raise StackError(f"{type(self).__name__} has no method `assign`.{suggest_name('assign', own_names)}")

    def draw_token_uniforms(self, rollout: Rollout, stream: int) -> Tensor:
        """Return a number in [0, 1) for each token, by the run's seed, step, row and position, ``(B, T)`` float64.

        Args:
            rollout: Rollout whose ``step`` the operator has declared to read.
            stream: Number of :func:`rlcredit.decoding.noise.stream_number`, which tells random operators apart.

        """
        mask = rollout.mask
        draws = token_uniforms(self.run_seed, rollout.step, stream, tuple(mask.shape), rollout.group_size)
        return draws.to(mask.device)

    @property
    def state_key(self) -> str:
        """Key of this operator in a checkpoint, made from its class and arguments."""
        from rlcredit.base.lightning_private import build_state_key  # noqa: PLC0415  (credit is assigned without Lightning, too)

        return build_state_key(self, self.arguments)

    def check_state(self) -> None:
        """Refuse state that a checkpoint cannot hold.

        Raises:
            StackError: with the attribute.

        """
        collect_state(self)

    def list_missing_facts(self, rollout: Rollout) -> list[str]:
        """Return the names of the facts that this operator reads and a rollout lacks."""
        return sorted(name for name in self.reads & OPTIONAL_FACTS if getattr(rollout, name) is None)

    def assign_checked(self, rollout: Rollout, watch: bool = True) -> Metrics:
        """Assign credit and check that the operator keeps to its header.

        Args:
            rollout: The rollout whose ledger is edited.
            watch: Whether to note what the operator reads and to compare every bit of what it was given, which costs
                more than the other checks together; the mask is compared in any case.

        Raises:
            StackError: it read or rebound a field that it does not declare, changed what a field holds, left one of
                another shape, reported no metrics or one of several numbers, or tried to end the process.
            NotFinite: it left a field that is not finite.

        """
        try:
            return self._assign_and_check(rollout, watch)
        except StackError as error:
            source = find_own_source(type(self).assign)
            if not source or ", line " in str(error):
                raise
            raise StackError(f"{str(error).removesuffix('.')} ({source}).") from error.__cause__

    def _assign_and_check(self, rollout: Rollout, watch: bool) -> Metrics:
        if missing := self.list_missing_facts(rollout):
            raise StackError(f"{self.label} reads {missing}, which this rollout lacks. Pass them to Rollout.")
        old_fields = {name: getattr(rollout, name) for name in WATCHED_FIELDS}
        names = WATCHED_FIELDS if watch else ALWAYS_WATCHED
        versions, digests, attributes = count_changes(old_fields), digest_fields(old_fields, names), {*vars(rollout)}
        with self._refuse_stop():
            metrics = self._assign_watched(rollout) if watch else self.assign(rollout)
        self._refuse_metrics(metrics)
        if strange_names := sorted(vars(rollout).keys() - attributes - ROLLOUT_FIELDS):
            suggestion = suggest_name(strange_names[0], self.writes)
            raise StackError(f"{self.label} sets `{strange_names[0]}`, which rollouts do not have.{suggestion}")
        rebound = {
            name for name in ROLLOUT_FIELDS if getattr(rollout, name) is not old_fields[name]
        } - rollout.unwritten
        if strangers := rebound - self.writes:
            raise StackError(f"{self.label} rebinds {sorted(strangers)} without declaring it in `writes`.")
        self._refuse_mutation(list_changed_fields(versions, count_changes(old_fields)))
        self._refuse_mutation(list_changed_fields(digests, digest_fields(old_fields, names)))
        for name in sorted(self.writes - {*SHARE_FIELDS, "critic", "alternatives", "continuations"}):
            self._check_values(name, getattr(rollout, name), rollout)
        for name in SHARE_FIELDS:
            if not 0 <= getattr(rollout, name) <= 1:
                raise StackError(f"{self.label} leaves {name} = {getattr(rollout, name):g}, expected one in [0, 1].")
        if "alternatives" in self.writes and rollout.alternatives is not None:
            self._check_alternatives(rollout.alternatives, rollout)
        if "continuations" in self.writes and rollout.continuations is not None:
            self._check_continuations(rollout.continuations, rollout)
        return metrics

    @contextmanager
    def _refuse_stop(self) -> Iterator[None]:
        """Refuse to end the process, or a loop of Lightning's, from inside of an operator."""
        try:
            with catch_process_end():
                yield
        except STOPPING_ERRORS as error:
            if is_signal(error):
                raise
            raise StackError(
                f"{self.label} tries to end the run by {describe_exception(error)}. Return metrics, or raise an error."
            ) from error

    def _refuse_metrics(self, metrics: object) -> None:
        """Refuse what is not one number for each quantity."""
        if not isinstance(metrics, Mapping):
            raise StackError(
                f"{self.label}.assign returns {metrics!r}, expected a dict of metrics, which may be empty."
            )
        for name, value in metrics.items():
            if not _is_one_number(value):
                shape = getattr(value, "shape", None)
                description = f"of type {type(value).__name__}" if shape is None else f"of shape {tuple(shape)}"
                raise StackError(
                    f"{self.label}.assign returns a metric {name!r} {description}. Return one number, such as its mean."
                )

    def _refuse_mutation(self, names: Sequence[str]) -> None:
        """Refuse changes of what fields hold."""
        if not names:
            return
        ledger = ROLLOUT_FIELDS - FACT_FIELDS
        repair = "Rebind the field to a new tensor." if ledger.issuperset(names) else "Facts stay: work on a copy."
        raise StackError(f"{self.label} changes {names} in place. {repair}")

    def _assign_watched(self, rollout: Rollout) -> Metrics:
        """Assign credit and refuse reads that the header does not declare, even if they led to an error."""
        with note_undeclared_reads(rollout, self.reads) as notes:
            try:
                metrics, failure = self.assign(rollout), None
            except Exception as error:
                if not notes.read:
                    if IN_PLACE in str(error):
                        message = f"{self.label} changes a tensor in place. Rebind the field to a new one."
                        raise StackError(message) from error
                    raise
                metrics, failure = {}, error
        if notes.read:
            name, place = next(iter(notes.read.items()))
            raise StackError(
                f"{self.label} reads `{name}` ({place}), which it does not declare. Add {name} to `reads` in the "
                "header of its class: the stack is checked by it, and facts are computed for it."
            ) from failure
        return metrics

    def _check_alternatives(self, alternatives: WeightedTokens, rollout: Rollout) -> None:
        """Require places of sampled tokens, and finite weights and log-probabilities."""
        self._check_places("alternatives", alternatives, rollout)
        full_mask = torch.ones_like(alternatives.weights, dtype=torch.bool)
        for name, values in (("weights", alternatives.weights), ("log-probabilities", alternatives.logprobs)):
            if fault := find_value_fault(rollout.step, f"{self.label} crediting alternatives", name, values, full_mask):
                raise fault

    def _check_continuations(self, continuations: Continuations, rollout: Rollout) -> None:
        """Require places of sampled tokens, continuations that begin with one, and finite credit."""
        self._check_places("continuations", continuations, rollout)
        mask = continuations.mask
        if shapes := {tuple(values.shape) for values in continuations[2:]} - {tuple(mask.shape)}:
            raise StackError(f"{self.label} leaves continuations of shape {shapes.pop()} and {tuple(mask.shape)}.")
        if not mask[:, :1].all():
            raise StackError(f"{self.label} leaves continuations that do not begin with a sampled token.")
        for name, values in (("credit values", continuations.credit), ("log-probabilities", continuations.logprobs)):
            if fault := find_value_fault(rollout.step, f"{self.label} crediting continuations", name, values, mask):
                raise fault

    def _check_places(self, name: str, tokens: WeightedTokens | Continuations, rollout: Rollout) -> None:
        """Require one place of a sampled token for each of some things with credit."""
        if len({len(values) for values in tokens}) != 1:
            lengths = ", ".join(f"{field} {len(values)}" for field, values in tokens._asdict().items())
            raise StackError(f"{self.label} leaves {name} of different lengths: {lengths}.")
        if not len(tokens.rows):
            return
        rows, width = rollout.mask.shape
        in_batch = (tokens.rows < rows) & (tokens.places < width) & (tokens.rows >= 0) & (tokens.places >= 0)
        if not in_batch.all() or not rollout.mask[tokens.rows, tokens.places].all():
            raise StackError(f"{self.label} leaves {name} at places where no token was sampled.")

    def _check_values(self, name: str, value: Tensor, rollout: Rollout) -> None:
        """Require one finite value per token, or per completion."""
        value_mask = rollout.mask.any(-1) if name == "rewards" else rollout.mask
        if value.shape != value_mask.shape:
            shape, mask_shape = tuple(value.shape), tuple(value_mask.shape)
            unit = "completion" if name == "rewards" else "token"
            raise StackError(f"{self.label} leaves {name} of shape {shape}, expected {mask_shape}: one per {unit}.")
        if fault := find_value_fault(rollout.step, f"{self.label} assigning credit", name, value, value_mask):
            raise fault


def _is_one_number(value: Any) -> bool:
    """Whether a metric is one number; the number on a device is not waited for."""
    if isinstance(value, Tensor):
        return value.numel() == 1
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
