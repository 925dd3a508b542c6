"""The time that a run is forecast to take on a card: the least that its work can take, over shares of that limit."""

import math
from collections.abc import Iterator, Mapping, Sequence

from lightning.pytorch import Trainer

from rlcredit.base.lightning_private import read_callbacks
from rlcredit.credit.contract import select_operators
from rlcredit.decoding.in_process import InProcessEngine
from rlcredit.policy.architecture import DecoderArchitecture
from rlcredit.policy.policy_sizes import find_policy_sizes
from rlcredit.preflight.memory import ASSUMED_PROMPT_TOKENS
from rlcredit.tasks.task import Task
from rlcredit.training.module import PolicyModule

CARD_RATES = {
    "NVIDIA H200": (989, 4.80),
    "NVIDIA H100 80GB HBM3": (989, 3.35),
    "NVIDIA A100-SXM4-80GB": (312, 2.04),
    "NVIDIA A100 80GB PCIe": (312, 1.94),
    "NVIDIA L4": (121, 0.30),
    "NVIDIA GeForce RTX 4090": (165, 1.01),
}
"""Dense TFLOP/s in bfloat16 and TB/s of memory in the data sheet of a card, by the name that torch has for it."""

MEASURED_CARD = "NVIDIA H200"
"""Card on which :data:`LIMIT_SHARES` were measured."""

REACHED_RATE = 0.8
"""Share of these rates that a large product or copy reaches: 781 TFLOP/s and 3.0 TB/s on an H100 80GB HBM3."""

LIMIT_SHARES = {
    134_515_008: {"rollout": (0.12, 0.20), "update": (0.02, 0.15)},
    4_022_468_096: {"rollout": (0.27, 0.35), "update": (0.07, 0.35)},
}
"""Shares of the limit by number of weights, each as measured and as aimed at: one H200, torch 2.11, transformers 5.17,
PEFT 0.21, 2026-11-27, random weights in bfloat16 of the shapes of SmolLM2-135M (completions of 1,024 tokens) and
Qwen3-4B (512), LoRA of rank 64 on all linear layers, 16 prompts x 16 completions. The update was measured with the
scorer before the packed one. No card has run what is aimed at."""

SHARE_NOTE = "slow ends as measured on an H200, 2026-11-27, by an earlier update; fast ends as aimed at, on no card yet"
"""Origin of the forecast, said below it."""


def find_least_seconds(
    architecture: DecoderArchitecture, machine: Mapping[str, float], prompts: int, prompt: int, rows: int, tokens: int
) -> dict[str, float]:
    """Return the seconds that a rollout and an update take at least.

    A rollout reads all weights for every token, and the keys and values before it; an update multiplies every token of
    prompts and completions with every weight once forwards and once backwards.

    Args:
        architecture: Sizes of the model.
        machine: Operations and bytes of the machine in a second.
        prompts: Number of prompts.
        prompt: Tokens of a prompt.
        rows: Number of completions.
        tokens: Tokens of a completion.

    """
    weights = architecture.linear_parameters + architecture.vocabulary * architecture.hidden
    cache_bytes = 2 * 2 * architecture.layers * architecture.key_width  # bytes of the keys and values of a token
    bytes_read = tokens * 2 * weights + cache_bytes * rows * (tokens * prompt + tokens**2 / 2)
    operations = 2 * weights * (rows * tokens + prompts * prompt)
    return {
        "rollout": max(bytes_read / machine["bytes"], operations / machine["operations"]),
        "update": 2 * operations / machine["operations"],
    }


def forecast_seconds(
    architecture: DecoderArchitecture, card: str, prompts: int, rows: int, tokens: int
) -> dict[str, tuple[float, float]]:
    """Return the seconds of a rollout and an update, each if all goes as aimed at and if all goes as measured.

    Between both sizes of :data:`LIMIT_SHARES` the shares follow the logarithm of the weights; beyond, the nearer holds.
    The seconds between aim and measurement are the host's: they are the H200's on every card.

    Args:
        architecture: Sizes of the model.
        card: One of :data:`CARD_RATES`.
        prompts: Number of prompts, of :data:`~rlcredit.preflight.memory.ASSUMED_PROMPT_TOKENS` each.
        rows: Number of completions that are decoded together.
        tokens: Tokens of a completion.

    """
    least: dict[str, dict[str, float]] = {}
    for name in (card, MEASURED_CARD):
        operations, bandwidth = (REACHED_RATE * rate * 1e12 for rate in CARD_RATES[name])
        machine = {"operations": operations, "bytes": bandwidth}
        least[name] = find_least_seconds(architecture, machine, prompts, ASSUMED_PROMPT_TOKENS, rows, tokens)
    small, large = LIMIT_SHARES
    place = min(max(math.log(architecture.parameters / small) / math.log(large / small), 0.0), 1.0)
    ranges: dict[str, tuple[float, float]] = {}
    for part, seconds in least[card].items():
        measured_share, aim = (
            (1 - place) * start + place * end
            for start, end in zip(LIMIT_SHARES[small][part], LIMIT_SHARES[large][part], strict=True)
        )
        host_seconds = least[MEASURED_CARD][part] * (1 / measured_share - 1 / aim)
        ranges[part] = seconds / aim, seconds / aim + host_seconds
    return ranges


def report_time(trainer: Trainer, module: PolicyModule, task: Task, steps: int | None, card: str) -> Iterator[str]:
    """Yield the time of a step and of the run, if all completions are as long as allowed; nothing without measurements.

    There are none of unknown cards and sizes, mixtures of experts, other precision than 16 bits, and continuations.

    Args:
        trainer: Trainer that has not begun.
        module: Module; it is not loaded.
        task: Task; it is not loaded.
        steps: Number of updates; None without a limit.
        card: Name that torch has for the card.

    """
    policy, sampling, prompts = module.policy, module.sampling, max(1, task.prompts_per_step // trainer.world_size)
    sizes = find_policy_sizes(policy.location)
    shape = sizes and sizes.architecture
    continues = any("oracle" in operator.reads for operator in select_operators(read_callbacks(trainer)))
    is_unlike = card not in CARD_RATES or policy.quantization or policy.dtype == "float32" or continues
    if not shape or shape.sparse or is_unlike:
        return
    step = forecast_seconds(shape, card, prompts, prompts * sampling.completions, sampling.max_tokens)
    update = [seconds / module.minibatches for seconds in step["update"]]
    if not isinstance(module.engine, InProcessEngine):
        yield f"update {format_range(update)} s on one {card}; rollouts of {type(module.engine).__name__}: not known"
    else:
        rollout = [seconds * factor for seconds, factor in zip(step["rollout"], (1, module.rounds), strict=True)]
        yield f"rollout {format_range(rollout)} s, update {format_range(update)} s on one {card}, at full length"
        evaluation = _forecast_evaluation(module, task, shape, card)
        if steps is not None and evaluation is not None:
            interval = trainer.val_check_interval
            evaluations = 1 + -(-steps // int(interval)) if interval else 0
            rollouts = steps / module.updates_per_rollout
            hours = [
                (rollouts * drawing + steps * learning + evaluations * answering / trainer.world_size) / 3600
                for drawing, learning, answering in zip(rollout, update, evaluation, strict=True)
            ]
            run = f"{steps} steps and {evaluations} evaluations of {format_range(evaluation)} s"
            yield f"{run}: {format_range(hours)} hours, without judging"
    yield SHARE_NOTE


def _forecast_evaluation(
    module: PolicyModule, task: Task, architecture: DecoderArchitecture, card: str
) -> list[float] | None:
    """Return the seconds in which one process answers all held-out questions; None if their number is unknown."""
    total = [0.0, 0.0]
    for held_out_set in task.held_out_sets:
        if held_out_set.size is None:
            return None
        batch, sampling = held_out_set.task.validation_batch, held_out_set.choose_sampling(module.validation)
        ranges = forecast_seconds(architecture, card, batch, batch * sampling.completions, sampling.max_tokens)
        batches = held_out_set.size / batch
        total = [end + batches * seconds for end, seconds in zip(total, ranges["rollout"], strict=True)]
    return total


def format_range(ends: Sequence[float]) -> str:
    """Return both ends of a range, with a decimal below ten."""
    return " to ".join(f"{number:.1f}" if number < 9.95 else f"{number:,.0f}" for number in ends)
