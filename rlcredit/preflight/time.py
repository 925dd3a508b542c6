"""The time that a run is forecast to take on a card: the least that its work can take, over shares of that limit."""

import math
from collections.abc import Iterable, Iterator, Mapping

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

REACHED_RATE = 0.8
"""Share of these rates that a large product or copy reaches: 781 TFLOP/s and 3.0 TB/s on an H100 80GB HBM3."""

LIMIT_SHARES = {
    134_515_008: {"rollout": (0.14, 0.20), "update": (0.11, 0.15)},
    4_022_468_096: {"rollout": (0.30, 0.35), "update": (0.35, 0.38)},
}
"""Shares of the limit by number of parameters, as measured (the slow end) and as aimed at (the fast end). The update of
the larger model was aimed at 0.35 and took 0.38. One H200, torch 2.11, transformers 5.17, PEFT 0.21, 2026-11-28, random
weights in bfloat16 of the shapes of SmolLM2-135M (two steps with completions of 1,024 tokens) and Qwen3-4B (one, 512),
LoRA of rank 64 on all linear layers, 16 prompts x 16 completions."""

SHARE_NOTE = "measured on an H200, 2026-11-28, with two models; fast ends are aims that rollouts have not met"
"""Origin of the forecast, said below it."""


def find_least_seconds(
    architecture: DecoderArchitecture, machine: Mapping[str, float], prompts: int, prompt: int, rows: int, tokens: float
) -> dict[str, float]:
    """Return the seconds that a rollout and an update take at least.

    A rollout reads all weights for every token, and the keys and values before it; an update multiplies every token of
    prompts and completions with every weight once forwards and once backwards. ``machine`` has the ``operations`` and
    ``bytes`` of a second; there are ``prompts`` of ``prompt`` tokens, and ``rows`` of ``tokens``.
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
    """Return the seconds of a rollout and an update with some completions, at the fast and at the slow end.

    Between both sizes of :data:`LIMIT_SHARES` the shares follow the logarithm of the weights; beyond, the nearer holds.
    The seconds between both ends are the host's: they are the H200's on every card.
    """
    limits: dict[str, dict[str, float]] = {}
    for name in (card, "NVIDIA H200"):
        operations, bandwidth = (REACHED_RATE * rate * 1e12 for rate in CARD_RATES[name])
        machine = {"operations": operations, "bytes": bandwidth}
        limits[name] = find_least_seconds(architecture, machine, prompts, ASSUMED_PROMPT_TOKENS, rows, tokens)
    (small, small_shares), (large, large_shares) = LIMIT_SHARES.items()
    place = min(max(math.log(architecture.parameters / small) / math.log(large / small), 0.0), 1.0)
    ranges: dict[str, tuple[float, float]] = {}
    for part, seconds in limits[card].items():
        pairs = zip(small_shares[part], large_shares[part], strict=True)
        measured_share, aim = ((1 - place) * start + place * end for start, end in pairs)
        host_seconds = limits["NVIDIA H200"][part] * (1 / measured_share - 1 / aim)
        ranges[part] = seconds / aim, seconds / aim + host_seconds
    return ranges


def report_time(trainer: Trainer, module: PolicyModule, task: Task, steps: int | None, card: str) -> Iterator[str]:
    """Yield the time of a step and of a run of some steps on a card, if all completions are as long as allowed.

    Nothing is said where nothing alike was measured: of unknown cards and sizes, mixtures of experts, other precision
    than 16 bits, and continuations.
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
        yield SHARE_NOTE
        return
    rollout = step["rollout"][0], step["rollout"][1] * module.rounds
    yield f"rollout {format_range(rollout)} s, update {format_range(update)} s on one {card}, at full length"
    if steps is not None and all(held_out_set.size is not None for held_out_set in task.held_out_sets):
        evaluation = [0.0, 0.0]
        for held_out_set in task.held_out_sets:
            batch, answers = held_out_set.task.validation_batch, held_out_set.choose_sampling(module.validation)
            ranges = forecast_seconds(shape, card, batch, batch * answers.completions, answers.max_tokens)
            share = (held_out_set.size or 0) / batch / trainer.world_size
            evaluation = [total + share * end for total, end in zip(evaluation, ranges["rollout"], strict=True)]
        number = 1 + -(-steps // int(trainer.val_check_interval)) if trainer.val_check_interval else 0
        hours = [
            (steps / module.updates_per_rollout * drawing + steps * learning + number * answering) / 3600
            for drawing, learning, answering in zip(rollout, update, evaluation, strict=True)
        ]
        run = f"{steps} steps and {number} evaluations of {format_range(evaluation)} s"
        yield f"{run}: {format_range(hours)} hours, without judging"
    yield SHARE_NOTE


def format_range(ends: Iterable[float]) -> str:
    """Return both ends of a range, with a decimal below ten."""
    return " to ".join(f"{number:.1f}" if number < 9.95 else f"{number:,.0f}" for number in ends)
