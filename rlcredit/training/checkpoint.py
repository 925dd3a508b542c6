"""What a checkpoint of a run holds: the adapter, and what of the step's state outlives it."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from torch import Tensor

from rlcredit.base.exit_status import NotFinite
from rlcredit.credit.token_counts import TokenCounts
from rlcredit.formulas.finite import find_non_finite_name
from rlcredit.training.nan_and_mismatch import trainable_weights

if TYPE_CHECKING:
    from rlcredit.training.module import PolicyModule


def fill_checkpoint(module: "PolicyModule", checkpoint: dict[str, Any]) -> None:
    """Leave only the adapter in a checkpoint, because the base weights do not change, and add the state of the run.

    Raises:
        NotFinite: with the first weight, or moment of a weight.

    """
    weights = trainable_weights(module)
    names = list(weights)
    values = list(weights.items())
    for optimizer_state in checkpoint.get("optimizer_states", []):
        for index, moments in optimizer_state["state"].items():
            values += [(f"{moment} of {names[index]}", value) for moment, value in moments.items()]
    if name := find_non_finite_name((name, value) for name, value in values if isinstance(value, Tensor)):
        raise NotFinite(
            f"Step {module.global_step}: {name} is not finite. No such checkpoint is written; earlier ones are as "
            "they were."
        )
    state = module.state
    if module.skip_not_finite:
        checkpoint["skipped_in_a_row"] = state.skipped_in_a_row
    checkpoint["tokens_per_second"] = state.tokens_per_second
    checkpoint["token_counts"] = state.token_counts and asdict(state.token_counts)
    checkpoint["memory_correction"] = module.micro_batches.correction
    checkpoint["state_dict"] = {name: value for name, value in checkpoint["state_dict"].items() if name in weights}
    if module.sampling_ahead and (adapter := module.sampling_ahead.find_adapter(module.global_step)):
        checkpoint["drawing_adapter"] = adapter


def restore_checkpoint(module: "PolicyModule", checkpoint: Mapping[str, Any]) -> None:
    """Restore the state of the run; refuse an adapter of another shape, which loading would pass over.

    With an engine that decodes ahead, the next rollout is drawn with the weights that had begun it.

    Raises:
        NotFinite: with the first weight.
        ValueError: with the weights that do not fit.

    """
    adapter: dict[str, Tensor] = checkpoint.get("drawing_adapter", {})
    if name := find_non_finite_name([*checkpoint["state_dict"].items(), *adapter.items()]):
        raise NotFinite(f"ckpt_path: {name} of the checkpoint is not finite. Continue from an earlier one.")
    token_counts = checkpoint.get("token_counts")
    module.state.skipped_in_a_row = checkpoint.get("skipped_in_a_row", 0)
    module.state.tokens_per_second = checkpoint.get("tokens_per_second")
    module.state.token_counts = TokenCounts(**token_counts) if token_counts else None
    module.micro_batches.correction = checkpoint.get("memory_correction")
    shapes = {name: weight.shape for name, weight in trainable_weights(module).items()}
    saved_shapes = {name: weight.shape for name, weight in checkpoint["state_dict"].items()}
    names = sorted(name for name in shapes.keys() | saved_shapes.keys() if shapes.get(name) != saved_shapes.get(name))
    if names:
        raise ValueError(
            f"The checkpoint holds another adapter: {len(names)} weights differ, {names[0]} first. "
            "Use the model.policy.lora it was trained with."
        )
    if module.sampling_ahead and adapter:
        module.sampling_ahead.restore_adapter(checkpoint["global_step"], adapter)
