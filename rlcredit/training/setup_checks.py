"""Refuse trainers, data and settings with which credit would see part of a batch, or a run could not continue."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lightning.pytorch import Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.strategies import DeepSpeedStrategy, FSDPStrategy, ModelParallelStrategy
from lightning.pytorch.trainer.states import TrainerFn

from rlcredit.base.lightning_private import read_callbacks, read_checkpoint_times
from rlcredit.credit.contract import StackError
from rlcredit.credit.stack_checks import (
    refuse_binary_operators,
    refuse_creditless_stack,
    refuse_narrow_histograms,
)
from rlcredit.decoding.engine import Decoder
from rlcredit.decoding.in_process import InProcessEngine
from rlcredit.tasks.task import Task
from rlcredit.training.sharded_base import ShardedBaseStrategy

if TYPE_CHECKING:
    from rlcredit.training.module import PolicyModule

SPLITTING_STRATEGIES = (FSDPStrategy, ModelParallelStrategy, DeepSpeedStrategy)
"""Strategies under which no process holds the weights."""


def refuse_unfit_settings(module: "PolicyModule") -> None:
    """Refuse arguments of a module that contradict each other.

    Raises:
        ValueError: with the repair.

    """
    answers = module.validation.completions
    if module.pass_k < 1:
        raise ValueError(f"model.pass_k: expected a number from 1 on, got {module.pass_k}.")
    if module.pass_k > answers:
        raise ValueError(
            f"model.pass_k is {module.pass_k}, but only {answers} completions are drawn. "
            "Raise model.validation.completions."
        )
    updates, minibatches = module.updates_per_rollout, module.minibatches
    if minibatches < 1 or updates < 1 or updates % minibatches:
        raise ValueError(
            f"model.minibatches must divide model.updates_per_rollout, both at least 1, got {minibatches} and "
            f"{updates}: each update uses one of them, and each is used equally often."
        )
    if module.engine.ahead not in (0, 1):
        raise ValueError(f"model.engine: ahead must be 0 or 1, got {module.engine.ahead}.")
    if module.engine.ahead and module.dynamic_sampling:
        raise ValueError(
            "model.dynamic_sampling asks prompts until enough groups are informative, so what comes next is not known "
            "before they are judged. Set model.engine.init_args.ahead to 0, or model.dynamic_sampling to null."
        )
    if module.policy.quantization and merges_adapter(module):
        raise ValueError(
            f"model.engine: merge adds the adapter into the weights, and those in {module.policy.quantization} are "
            "packed. Set model.engine.init_args.merge to false, or model.policy.quantization to null."
        )
    skipped_steps, tolerance, cap = module.skip_not_finite, module.sampler_tolerance, module.mismatch_cap
    if skipped_steps < 0:
        raise ValueError(f"model.skip_not_finite counts steps, got {skipped_steps}. 0 stops at the first.")
    if tolerance is not None and not tolerance > 0:
        raise ValueError(f"model.sampler_tolerance must be above 0, got {tolerance}. Rounding is never 0.")
    if cap is not None and not cap >= 1:
        raise ValueError(f"model.mismatch_cap must be at least 1, got {cap}. null corrects nothing.")


def merges_adapter(module: "PolicyModule") -> bool:
    """Whether the engine adds the adapter into the weights, which packed ones do not allow."""
    return isinstance(module.engine, InProcessEngine) and module.engine.merge


def refuse_unfit_setup(module: "PolicyModule", trainer: Trainer, task: Task) -> None:
    """Refuse a trainer or data under which credit would see a part of a batch, or a run could not be continued.

    Raises:
        StackError: an operator takes rewards of one and zero only, and those of the task are other numbers.
        ValueError: with the repair.

    """
    if trainer.accumulate_grad_batches != 1:
        raise ValueError(
            f"trainer.accumulate_grad_batches is {trainer.accumulate_grad_batches}; credit is assigned to "
            "whole batches, so it must be 1. Memory is saved by model.micro_batch_tokens, which is auto by itself."
        )
    if isinstance(trainer.strategy, SPLITTING_STRATEGIES):
        raise ValueError(
            f"trainer.strategy: {type(trainer.strategy).__name__} splits weights; engine, checks and probes need "
            "them whole. Use ddp; where a GPU has too little memory, use sharded_base, or load the model in fewer "
            "bits: model.policy.quantization 4bit, or model.policy.dtype bfloat16."
        )
    if isinstance(trainer.strategy, ShardedBaseStrategy):
        _refuse_whole_readers(module, trainer)
        _refuse_idle_processes(trainer.world_size, task)
    module.engine.refuse_run(module.policy, trainer.world_size)
    has_environment = any(held_out_set.task.environment is not None for held_out_set in task.held_out_sets)
    if (has_environment or task.environment is not None) and not module.engine.can_play:
        raise ValueError(
            f"model.engine: {type(module.engine).__name__} answers single turns, and the task has an environment. Set "
            "it to InProcessEngine, VLLMInProcess or VLLMServer."
        )
    _refuse_oracle_ahead(module, trainer)
    callbacks = read_callbacks(trainer)
    if trainer.state.fn != TrainerFn.VALIDATING:
        refuse_creditless_stack(callbacks, module.sampling.completions, task.has_real_rewards)
    if task.has_real_rewards:
        refuse_binary_operators(
            callbacks, "data.init_args.rewards gives any numbers", "leave out data.init_args.rewards"
        )
    else:
        refuse_narrow_histograms(callbacks)
        _refuse_missing_rewards(callbacks)
    for held_out_set in task.held_out_sets:
        held_out_set.choose_k(module.pass_k, module.validation.completions)
    _refuse_uneven_prompts(module, trainer, task)
    _refuse_split_rollouts(module.updates_per_rollout, trainer)


def _refuse_missing_rewards(callbacks: Sequence[object]) -> None:
    """Refuse operators that read the rewards of a task whose verdicts are the rewards."""
    if readers := _list_readers(callbacks, "task_rewards"):
        raise StackError(
            f"{readers[0]} reads `task_rewards`, and this task has none: its verdicts are the "
            f"rewards. Set data.init_args.rewards"
            f", or let {readers[0]} read `rewards`."
        )


def _refuse_whole_readers(module: "PolicyModule", trainer: Trainer) -> None:
    """Refuse what makes other passes in every process, where each pass is an exchange between all."""
    if isinstance(module.engine, Decoder):
        raise ValueError(
            f"trainer.strategy: sharded_base cuts the model into parts, and {type(module.engine).__name__} decodes "
            "with all of it. Set model.engine: VLLMServer, or use trainer.strategy ddp."
        )
    if module.policy.quantization:
        raise ValueError(
            f"model.policy.quantization: {module.policy.quantization} weights are packed and cannot be cut into parts. "
            "Use trainer.strategy ddp, which holds them whole in every process, or remove model.policy.quantization."
        )
    if obstacle := find_whole_reader(module, read_callbacks(trainer)):
        raise ValueError(obstacle)


def find_whole_reader(module: "PolicyModule", callbacks: Sequence[object]) -> str | None:
    """Return an error message if forward passes differ between processes whatever draws completions, else None.

    Args:
        module: Module; it is not loaded.
        callbacks: Callbacks of the trainer.

    """
    if "lookahead" in module.needs or _list_readers(callbacks, "lookahead"):
        return (
            "trainer.strategy: sharded_base cannot read what was not sampled, as a credit operator of this run does "
            "(`reads` of `rlcredit explain`). Use trainer.strategy ddp, or another operator."
        )
    if readers := _list_readers(callbacks, "oracle"):
        return (
            f"trainer.strategy: sharded_base cuts the model into parts, and {readers[0]} continues partial answers in "
            f"this process, with all of it. Use trainer.strategy ddp, or remove {', '.join(readers)}."
        )
    return None


def _refuse_idle_processes(processes: int, task: Task) -> None:
    """Refuse held-out sets of which a process would have no question: it could not answer along with the others."""
    for held_out_set in task.held_out_sets:
        size = len(held_out_set.task.held_out_set)
        if 0 < size < processes:
            raise ValueError(
                f"trainer.strategy: sharded_base needs a held-out question in each of {processes} processes, and a set "
                f"has {size}. Raise data.init_args.validation_size."
            )


def _list_readers(callbacks: Sequence[object], fact: str) -> list[str]:
    """Return the names of the callbacks that read a fact, such as ``oracle``, with which partial answers continue."""
    names = (type(callback).__name__ for callback in callbacks if fact in getattr(callback, "reads", ()))
    return list(dict.fromkeys(names))


def _refuse_oracle_ahead(module: "PolicyModule", trainer: Trainer) -> None:
    """Refuse operators that continue partial answers if these are older than the policy."""
    readers = _list_readers(read_callbacks(trainer), "oracle")
    if readers and module.engine.ahead:
        raise ValueError(
            f"{readers[0]} continues answers with the policy that drew them, and with ahead 1 it has changed by then. "
            f"Set ahead of {type(module.engine).__name__} to 0, or remove {', '.join(readers)}."
        )


def _refuse_uneven_prompts(module: "PolicyModule", trainer: Trainer, task: Task) -> None:
    """Refuse prompts that processes or mini-batches cannot share evenly, and more than there are."""
    prompts, world = task.prompts_per_step, trainer.world_size
    if prompts % world:
        raise ValueError(f"data.init_args.prompts_per_step is {prompts}, which {world} processes cannot share evenly.")
    if task.train_set and prompts * module.rounds > len(task.train_set):
        raise ValueError(
            f"model.dynamic_sampling may ask {module.rounds} x {prompts} prompts a step, but there are "
            f"{len(task.train_set)} training prompts. Lower its rounds."
        )
    if module.rounds > 1 and module.sampling.completions == 1:
        raise ValueError("model.dynamic_sampling finds no group of one informative. Raise sampling.completions.")
    share = prompts // world
    if share % module.minibatches:
        raise ValueError(
            f"model.minibatches is {module.minibatches}, which cannot share {share} prompts per process evenly."
        )


def _refuse_split_rollouts(updates: int, trainer: Trainer) -> None:
    """Refuse a run, or a checkpoint, that ends inside a rollout."""
    if trainer.max_steps > 0 and trainer.max_steps % updates:
        raise ValueError(
            f"trainer.max_steps is {trainer.max_steps} and ends inside a rollout; it counts updates. Choose a "
            f"multiple of model.updates_per_rollout, which is {updates}."
        )
    callbacks: list[ModelCheckpoint] = trainer.checkpoint_callbacks  # pyright: ignore[reportAssignmentType]
    for callback in callbacks:
        interval, has_other_time = read_checkpoint_times(callback)
        if updates > 1 and (has_other_time or not interval or interval % updates):
            raise ValueError(
                f"checkpoint.every_n_train_steps is {interval or 'not set'}; a checkpoint inside a rollout cannot be "
                f"continued. Choose a multiple of model.updates_per_rollout, which is {updates}, and no other time."
            )
