"""Time, memory and error of the output head: log-probability and entropy from hidden states, forwards and backwards.

python -m studies.machinery.bench_head
python -m pip install -e ".[bench]"   for the column of TRL's ChunkedLogProbFunction

Every measurement is a process of its own. ``alone`` is our head without the entropy: the same chunks, computed again in
the backward pass. ``naive`` holds all logits. Errors are the largest difference from float64, of log-probabilities,
entropies, and of the gradient relative to its largest value.
"""

import json
import math
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from benchmarks import (
    format_median_and_range,
    make_benchmark_parser,
    measure_in_turns,
    print_columns,
    round_ratios,
    write_measurements,
)
from torch import Tensor

from rlcredit.formulas.uncertainty import choose_chunk, scores_from_hidden

SHAPES = {384: (4096, 64), 32_000: (1024, 256), 151_936: (1024, 256)}
"""Positions and width by vocabulary: what two cores can do in seconds."""

TEMPERATURE = 0.7

Scores = tuple[Tensor, Tensor | None]


def naive_head_scores(hidden: Tensor, weight: Tensor, targets: Tensor) -> Scores:
    """All logits at once, by autograd."""
    log_p = (hidden @ weight.T / TEMPERATURE).log_softmax(-1)
    entropy = -(log_p.exp() * log_p).sum(-1)
    return log_p.gather(1, targets[:, None]).squeeze(1), entropy.detach()


def shared_head_scores(hidden: Tensor, weight: Tensor, targets: Tensor) -> Scores:
    """The one head of sampler and trainer."""
    logprobs, entropy, _ = scores_from_hidden(hidden, weight, targets, TEMPERATURE)
    return logprobs, entropy.detach()


def trl_head_scores(hidden: Tensor, weight: Tensor, targets: Tensor) -> Scores:
    """TRL's, with the entropy."""
    from trl.kernels import ChunkedLogProbFunction  # noqa: PLC0415  # pyright: ignore[reportMissingImports]

    pair: Any = ChunkedLogProbFunction.apply(hidden, weight, None, targets, TEMPERATURE, 8192, None, 1.0, ("entropy",))
    return pair[0], pair[1].detach()


class _HeadLogprobs(torch.autograd.Function):
    """Log-probability and nothing else, chunk by chunk."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, targets: Tensor, chunk: int) -> Tensor:
        ctx.save_for_backward(hidden, weight, targets)
        ctx.chunk = chunk
        parts = zip(hidden.split(chunk), targets.split(chunk), strict=True)
        return torch.cat(
            [(h @ weight.T).div_(TEMPERATURE).log_softmax(-1).gather(1, t[:, None]).squeeze(1) for h, t in parts]
        )

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        hidden, weight, targets = ctx.saved_tensors
        gradient = torch.empty_like(hidden)
        for start in range(0, len(hidden), ctx.chunk):
            part = slice(start, start + ctx.chunk)
            up = grad[part, None] / TEMPERATURE
            inner = (hidden[part] @ weight.T).div_(TEMPERATURE).softmax(-1).mul_(-up)
            gradient[part] = inner.scatter_add_(1, targets[part, None], up) @ weight
        return gradient, None, None, None


def head_logprobs_alone(hidden: Tensor, weight: Tensor, targets: Tensor) -> Scores:
    """Log-probability without entropy."""
    return _HeadLogprobs.apply(hidden, weight, targets, choose_chunk(weight)), None  # pyright: ignore


Head = Callable[[Tensor, Tensor, Tensor], Scores]
HEADS: dict[str, Head] = {
    "ours": shared_head_scores,
    "alone": head_logprobs_alone,
    "naive": naive_head_scores,
    "trl": trl_head_scores,
}


def make_head_inputs(vocabulary: int, positions: int, width: int) -> tuple[Tensor, Tensor, Tensor]:
    """Hidden states, output embedding and targets; logits spread as those of a language model do."""
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(positions, width, generator=generator)
    weight = 2 * torch.randn(vocabulary, width, generator=generator) / math.sqrt(width)
    return hidden, weight, torch.randint(vocabulary, (positions,), generator=generator)


def measure_head(name: str, vocabulary: int, positions: int, width: int) -> dict[str, float]:
    """Return CPU seconds of a forward and backward pass, MiB at its peak, and the largest errors."""
    hidden, weight, targets = make_head_inputs(vocabulary, positions, width)
    leaf = hidden.clone().requires_grad_()
    before, times = _read_peak_memory(), []
    for _ in range(3):
        started = time.process_time()
        HEADS[name](leaf, weight, targets)[0].sum().backward()
        times.append(time.process_time() - started)
    mib, subset = _read_peak_memory() - before, slice(0, 64)
    reference_input = hidden[subset].double().requires_grad_()
    expected, expected_entropy = naive_head_scores(reference_input, weight.double(), targets[subset])
    (expected_gradient,) = torch.autograd.grad(expected.sum(), reference_input)
    leaf = hidden[subset].clone().requires_grad_()
    logprobs, entropy = HEADS[name](leaf, weight, targets[subset])
    (gradient,) = torch.autograd.grad(logprobs.sum(), leaf)
    entropy_error = 0.0
    if entropy is not None and expected_entropy is not None:
        entropy_error = (entropy - expected_entropy).abs().max().item()
    return {
        "seconds": statistics.median(times),
        "mib": mib,
        "error_logprob": (logprobs - expected).abs().max().item(),
        "error_entropy": entropy_error,
        "error_gradient": ((gradient - expected_gradient).abs().max() / expected_gradient.abs().max()).item(),
    }


def _read_peak_memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure_head_in_process(name: str, vocabulary: int, threads: int) -> dict[str, float]:
    """Measure in a process of its own."""
    command = [
        sys.executable,
        "-m",
        "studies.machinery.bench_head",
        "--side",
        name,
        "--vocabulary",
        str(vocabulary),
        "--threads",
        str(threads),
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    process = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if process.returncode:
        sys.exit(process.stderr)
    return json.loads(process.stdout.splitlines()[-1])


def main() -> None:
    """Print a row per head and vocabulary."""
    parser = make_benchmark_parser(__doc__)
    parser.add_argument("--side", choices=HEADS)
    parser.add_argument("--vocabulary", type=int)
    parser.add_argument("--without", nargs="*", default=[], choices=HEADS, help="heads that are left out")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    if args.side:
        print(json.dumps(measure_head(args.side, args.vocabulary, *SHAPES[args.vocabulary])))
        return
    rows, runs_by_vocabulary = [], {}
    for vocabulary, (positions, width) in SHAPES.items():
        heads: dict[str, list[dict[str, float]]] = {name: [] for name in HEADS if name not in args.without}

        def side(name: str, vocabulary: int = vocabulary, heads: dict[str, list[dict[str, float]]] = heads) -> float:
            heads[name].append(measure_head_in_process(name, vocabulary, args.threads))
            return heads[name][-1]["seconds"]

        seconds = measure_in_turns({name: lambda name=name: side(name) for name in heads}, args.rounds)
        for name, runs in heads.items():
            last = runs[-1]
            rows.append(
                {
                    "V": vocabulary,
                    "N x D": f"{positions} x {width}",
                    "head": name,
                    "CPU seconds": format_median_and_range(seconds[name]),
                    "of alone": format_median_and_range(round_ratios(seconds[name], seconds["alone"]), 2),
                    "MiB": f"{statistics.median(run['mib'] for run in runs):.0f}",
                    "errors": " ".join(f"{last[f'error_{score}']:.0e}" for score in ("logprob", "entropy", "gradient")),
                }
            )
        runs_by_vocabulary[vocabulary] = heads
    print_columns(rows)
    write_measurements(args.out, head=runs_by_vocabulary)


if __name__ == "__main__":
    main()
