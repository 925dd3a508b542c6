"""Time six stacked operators on a large batch, and their share of a training step of the embedded policy.

python -m studies.machinery.bench_stack --threads 1

``token by token`` is the same credit in plain Python, and phrases looked for from every token on in windows that grow.

"""

import re
import statistics
import time

import torch
from benchmarks import make_benchmark_parser, write_measurements

from callbacks.episode.maxrl import MaxRL
from callbacks.planning.strategic_grams import PLANNING_PHRASES, StrategicGrams
from callbacks.schedules.linear_lambda import LinearLambda
from callbacks.signals.sepa import SEPA
from callbacks.tokens.gtpo import GTPO
from callbacks.tokens.hicra import HICRA
from rlcredit.cli.quiet_libraries import silence_libraries
from rlcredit.credit.operator import CreditOperator
from rlcredit.credit.rollout import Rollout
from studies.machinery.bench_step import measure_training_steps

PROSE = "so we have x = 4 y + 12 and the sum of both is equal to 17 minus what was there"


def make_timed_stack() -> list[CreditOperator]:
    """MaxRL, StrategicGrams, LinearLambda, SEPA, GTPO, HICRA."""
    return [MaxRL(), StrategicGrams(), LinearLambda(delay=0, steps=100), SEPA(), GTPO(), HICRA()]


def make_prose_pieces(length: int, row: int) -> list[str]:
    """A completion of some pieces, with a strategic phrase every two hundred or so."""
    words = PROSE.split()
    pieces = [f" {words[(7 * i + row) % len(words)]}" for i in range(length)]
    for place in range(row % 200, length - 8, 200):
        phrase = PLANNING_PHRASES[(place + row) % len(PLANNING_PHRASES)].split()
        pieces[place : place + len(phrase)] = [f" {word}" for word in phrase]
    return pieces


def make_random_rollout(rows: int, width: int, device: str) -> Rollout:
    """A rollout of ``rows`` completions of up to ``width`` tokens, with random uncertainty."""
    generator = torch.Generator().manual_seed(0)
    lengths = torch.randint(width // 2, width + 1, (rows,), generator=generator)
    return Rollout(
        step=50,
        group_size=16,
        prompt_ids=torch.ones(rows, 1, dtype=torch.long, device=device),
        completion_ids=torch.ones(rows, width, dtype=torch.long, device=device),
        mask=(torch.arange(width) < lengths[:, None]).to(device),
        old_logprobs=torch.rand(rows, width, generator=generator).log().to(device) / 10,
        entropy=torch.rand(rows, width, generator=generator).to(device),
        correct=(torch.rand(rows, generator=generator) < 0.4).float().to(device),
        tokens=[make_prose_pieces(int(length), row) for row, length in enumerate(lengths)],
    )


def measure_operator_seconds(rollout: Rollout, repetitions: int) -> dict[str, float]:
    """Return the median seconds of each operator, checks of the header included."""
    seconds: dict[str, list[float]] = {}
    for _ in range(repetitions):
        rollout.__post_init__()
        for operator in make_timed_stack():
            started = time.perf_counter()
            operator.assign_checked(rollout)
            if rollout.mask.is_cuda:
                torch.cuda.synchronize()
            seconds.setdefault(type(operator).__name__, []).append(time.perf_counter() - started)
    return {name: statistics.median(values) for name, values in seconds.items()}


WINDOW = 8
"""Tokens of the longest phrase that is looked for token by token."""


def assign_token_by_token(rollout: Rollout) -> list[list[float]]:
    """Assign the credit of the stack without a tensor."""
    phrases = re.compile("|".join(map(re.escape, PLANNING_PHRASES)), re.IGNORECASE)
    lengths = rollout.mask.sum(-1).tolist()
    logprobs, correct, size = rollout.old_logprobs.tolist(), rollout.correct.tolist(), rollout.group_size
    gtpo, hicra = GTPO().beta, HICRA().alpha
    sepa_lambda = min(1.0, rollout.step / LinearLambda(delay=0, steps=100).steps)
    credits = []
    for row, length in enumerate(lengths):
        members = correct[row // size * size : row // size * size + size]
        mean = sum(members) / size
        credit = (correct[row] - mean) / (mean + 1e-6) if mean > 1e-6 else 0.0
        signal = [-value for value in logprobs[row][:length]]
        plan = _find_planned_pieces(rollout.tokens[row][:length], phrases)
        execution = [value for value, planned in zip(signal, plan, strict=True) if not planned]
        pooled = sum(execution) / len(execution) if execution else 0.0
        signal = [
            value if planned else value + sepa_lambda * (pooled - value)
            for value, planned in zip(signal, plan, strict=True)
        ]
        mean_signal = sum(signal) / length
        weights = [max(0.0, 1 + gtpo * (value / mean_signal - 1)) for value in signal]
        shared = [credit * weight for weight in weights]
        credits.append([c + hicra * abs(c) * planned for c, planned in zip(shared, plan, strict=True)])
    return credits


def _find_planned_pieces(pieces: list[str], phrases: re.Pattern[str]) -> list[bool]:
    plan = [False] * len(pieces)
    for start in range(len(pieces)):
        for end in range(start + 1, min(start + WINDOW, len(pieces)) + 1):
            if phrases.fullmatch("".join(pieces[start:end]).strip()):
                plan[start:end] = [True] * (end - start)
    return plan


def main() -> None:
    """Print both tables."""
    parser = make_benchmark_parser(__doc__)
    parser.add_argument("--rows", type=int, default=256)
    parser.add_argument("--width", type=int, default=2048)
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    silence_libraries()
    torch.set_num_threads(args.threads)
    rollout = make_random_rollout(args.rows, args.width, args.device)
    medians = measure_operator_seconds(rollout, args.repetitions)
    print(f"{args.rows} x {args.width} tokens, {int(rollout.mask.sum()):,} sampled, medians of {args.repetitions}")
    for name, seconds in [*medians.items(), ("stack", sum(medians.values()))]:
        print(f"{name:<16} {seconds * 1000:8.1f} ms")
    started = time.process_time()
    credits = assign_token_by_token(rollout)
    python_seconds = time.process_time() - started
    ratio = python_seconds / sum(medians.values())
    pad = max(map(len, credits))
    difference = torch.tensor([row + [0.0] * (pad - len(row)) for row in credits]) - rollout.advantages.cpu()[:, :pad]
    agreement = (difference.where(rollout.mask.cpu()[:, :pad], 0).abs() < 1e-4).float().mean().item()
    print(f"{'token by token':<16} {python_seconds * 1000:8.1f} ms, {ratio:.0f} times the stack; {agreement:.1%} agree")
    steps = measure_training_steps(args.steps, stack=make_timed_stack())[2:]
    credit = statistics.median(step["time/credit"] for step in steps)
    parts = ("time/rollout", "time/verify", "time/credit", "time/update")
    step = statistics.median(sum(step[part] for part in parts) for step in steps)
    print(f"\nembedded policy, 8 x 16 completions, medians of {len(steps)} steps")
    print(f"{'credit':<16} {credit * 1000:8.1f} ms of {step * 1000:.0f} ms, {credit / step:.1%} of a step")
    write_measurements(args.out, operators=medians, token_by_token=python_seconds, credit=credit, step=step)


if __name__ == "__main__":
    main()
