"""A rehearsal of a run's stack, data and output folder, which takes a second."""

import copy
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch
from lightning.pytorch.utilities.seed import isolate_rng

from rlcredit.base.exit_status import NotFinite
from rlcredit.config.error_messages import describe_exception
from rlcredit.credit.contract import OperatorContract, StackError
from rlcredit.credit.operator import CreditOperator
from rlcredit.credit.rollout import Rollout
from rlcredit.tasks.record_sources import RecordSource
from rlcredit.tasks.records import Records
from rlcredit.tasks.task import Task

TRIAL_LENGTHS = (8, 5, 1, 7, 3, 6, 2, 4)
"""Tokens of the made-up completions, by turns."""

TRIAL_PIECES = ("Let", " me", " think", ":", " 4", " +", " 4", " = 8")


def rehearse_stack(stack: Sequence[OperatorContract], group_size: int) -> list[str]:
    """Let copies of the operators assign credit to a few made-up completions, in stack order.

    Args:
        stack: Operators in order; they stay as they are, and so do the random numbers of the run.
        group_size: Completions per prompt, G.

    Returns:
        The names of operators that were passed over, since they need the policy, an oracle or the trainer.

    Raises:
        StackError: one fails, or does not do what its header says; with its line.

    """
    rollout, passed_over = make_trial_rollout(group_size), list[str]()
    with isolate_rng(), torch.random.fork_rng(devices=[]):
        for operator in stack:
            name = type(operator).__name__
            if not isinstance(operator, CreditOperator) or _is_run_dependent(operator, rollout):
                passed_over.append(name)
                continue
            try:
                copy.deepcopy(operator).assign_checked(rollout)
            except StackError:
                raise
            except NotFinite as error:
                raise StackError(
                    f"{error} This was a trial on made-up completions, one group of them all wrong."
                ) from None
            except Exception as error:  # noqa: BLE001  (an operator is anybody's, and may raise anything)
                raise StackError(f"{name} fails on made-up completions: {describe_exception(error)}.") from None
    return passed_over


def _is_run_dependent(operator: CreditOperator, rollout: Rollout) -> bool:
    """Whether an operator needs something from the run: a model, an oracle, or what only a trainer knows.

    An operator around another needs what that one does.
    """
    inner_operators = [value for value in vars(operator).values() if isinstance(value, CreditOperator)]
    if inner_operators:
        return any(_is_run_dependent(inner_operator, rollout) for inner_operator in inner_operators)
    cls = type(operator)
    hooks = ("setup", "on_train_batch_start", "on_fit_start", "on_train_start")
    has_hook = any(getattr(cls, hook) is not getattr(CreditOperator, hook) for hook in hooks)
    missing = bool(operator.list_missing_facts(rollout))
    return operator.costly or missing or has_hook


def make_trial_rollout(group_size: int) -> Rollout:
    """Return three groups of completions: every other one right, all wrong, and only the first right.

    Args:
        group_size: Completions per prompt, G.

    """
    rows, width = 3 * group_size, max(TRIAL_LENGTHS)
    number, place = torch.arange(rows), torch.arange(width)
    group, rank = number // group_size, number % group_size
    lengths = torch.tensor(TRIAL_LENGTHS)[number % len(TRIAL_LENGTHS)]
    mask = place < lengths[:, None]
    entropy = (0.1 + 0.2 * ((number[:, None] + 3 * place) % 7)).where(mask, 0.0)
    logprobs = (-0.05 - 0.1 * ((2 * number[:, None] + place) % 11)).where(mask, 0.0)
    right = ((group == 0) & (rank % 2 == 0)) | ((group == 2) & (rank == 0))
    return Rollout(
        step=0,
        group_size=group_size,
        prompt_ids=torch.ones(rows, 4, dtype=torch.long),
        completion_ids=(3 + number[:, None] + place).where(mask, 0),
        mask=mask,
        old_logprobs=logprobs,
        entropy=entropy,
        correct=right.float(),
        tokens=[list(TRIAL_PIECES[:length]) for length in lengths.tolist()],
        ref_logprobs=0.9 * logprobs,
        ref_log_ratio=0.1 * logprobs,
        sum_pi_squared=(2 * logprobs).exp().where(mask, 0.0),
        engine_logprobs=logprobs.clone(),
    )


def open_local_data(task: Task) -> str | None:
    """Read the examples of a task whose data files are on this machine, and try functions of one's own, as a run would.

    Returns:
        What was left alone, for people; None if everything was read.

    Raises:
        ValueError: the data cannot be read, or is no task; with file and line.

    """
    tasks = (task, *task.others.values())
    hub_paths = {one_task: [s.path for s in _list_data_sources(one_task) if s.is_perhaps_on_hub] for one_task in tasks}
    for one_task in tasks[::-1]:
        is_opened = isinstance(one_task, Records) or one_task.has_user_functions
        if is_opened and not hub_paths[one_task] and (one_task is not task or not any(hub_paths.values())):
            one_task.setup("fit" if one_task is task and task.has_training else "validate")
    if not (paths := dict.fromkeys(path for one_task in hub_paths.values() for path in one_task)):
        return None
    note = "; what judges or rewards its answers was not tried either" if task.has_user_functions else ""
    return f"data: {', '.join(paths)} may lie on the hub, and was not opened{note}"


def _list_data_sources(task: Task) -> list[RecordSource]:
    return (
        [task.make_source(path, None) for path in (task.path, task.validation) if path]
        if isinstance(task, Records)
        else []
    )


def refuse_unwritable_folder(folder: Path) -> None:
    """Refuse a folder that cannot be created or written to; nothing is left there.

    Raises:
        ValueError: with what is in the way.

    """
    existing = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    try:
        with tempfile.TemporaryFile(dir=existing) as file:
            file.write(b"tried")
    except OSError as error:
        raise ValueError(f"{folder} cannot be written to: {existing}: {error.strerror or error}.") from None
