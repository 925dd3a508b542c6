"""Measure the share of an adapter that is lost where it is added into weights of 16 bits.

rlcredit fit --config configs/tiny.yaml
python -m studies.machinery.measure_merged_rounding --adapter FOLDER --out studies/machinery/results/merged_rounding.csv

The share is ``|round(W + B A) - W - B A| / |B A|`` over all adapted weights, with W in 16 bits: rounding moves a sum by
up to half the distance of neighbouring numbers, which grows with W and not with the adapter. The first rows are the
embedded policy with the adapter of a run, whole and at fractions of it. The others are random weights, with entries of
B as large as the learning rate of AdamW times the number of steps, whose signs do not change.
"""

import argparse
import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors.torch import load_file
from torch import Tensor

from rlcredit.policy.policy import Policy

PRECISIONS = (torch.bfloat16, torch.float16)
RATE, RANK, STANDARD_DEVIATION = 5e-5, 64, 0.02
STEP_NUMBERS = (1, 10, 100)
WIDTHS = (576, 2_560)
FRACTIONS = (1.0, 0.3, 0.1, 0.03, 0.01)


class AdaptedWeight(NamedTuple):
    """A weight, shape ``(E, D)``, and the sum of its adapter, of the same shape."""

    weight: Tensor
    delta: Tensor


def lost_share(pairs: Sequence[AdaptedWeight], dtype: torch.dtype) -> float:
    """Return the norm of what rounding changes in the adapters, as a share of theirs.

    Example:
        >>> pair = AdaptedWeight(torch.ones(1, 1), torch.full((1, 1), 2.0**-9))  # half the step of bfloat16 below 2
        >>> lost_share([pair], torch.bfloat16), lost_share([pair], torch.float16)
        (1.0, 0.0)

    """
    lost, whole = 0.0, 0.0
    for weight, delta in pairs:
        base = weight.to(dtype)
        merged = (base.double() + delta.double()).to(dtype)
        lost += float((merged.double() - base.double() - delta.double()).square().sum())
        whole += float(delta.double().square().sum())
    return (lost / whole) ** 0.5


def relative_size(pairs: Sequence[AdaptedWeight]) -> float:
    """Return the norm of the adapters as a share of the norm of the weights."""
    sizes = [sum(float(pair[part].double().square().sum()) for pair in pairs) for part in (1, 0)]
    return (sizes[0] / sizes[1]) ** 0.5


def read_trained_weights(adapter: Path) -> list[AdaptedWeight]:
    """Return the weights of the embedded policy with an adapter that a run has saved."""
    policy = Policy()
    policy.load()
    factors = load_file(adapter / "adapter_model.safetensors")
    pairs = []
    for name, layer in policy.lm.named_modules():
        if f"{name}.lora_A.weight" in factors:
            down, up = (factors[f"{name}.lora_{part}.weight"] for part in "AB")
            pairs.append(AdaptedWeight(layer.base_layer.weight.detach(), layer.scaling["default"] * up @ down))
    return pairs


def draw_weights(width: int, steps: int) -> list[AdaptedWeight]:
    """Return a square weight and an adapter as they are some steps after their first draw; alpha is twice the rank."""
    generator = torch.Generator().manual_seed(0)
    weight = STANDARD_DEVIATION * torch.randn(width, width, generator=generator)
    down = (2 * torch.rand(RANK, width, generator=generator) - 1) * width**-0.5
    up = RATE * steps * (2.0 * torch.randint(2, (width, RANK), generator=generator) - 1)
    return [AdaptedWeight(weight, 2 * up @ down)]


def measure_rows(adapter: Path) -> Iterator[dict[str, object]]:
    """Yield one row for every adapter."""
    trained = read_trained_weights(adapter)
    cases = {}
    for fraction in FRACTIONS:
        scaled = [AdaptedWeight(pair.weight, fraction * pair.delta) for pair in trained]
        cases["embedded policy, trained", f"{fraction:g} of its adapter"] = scaled
    for width in WIDTHS:
        cases |= {(f"random, {width} wide", f"{steps} steps"): draw_weights(width, steps) for steps in STEP_NUMBERS}
    for (weights, size), pairs in cases.items():
        entry = (
            sum(float(pair.delta.square().sum()) for pair in pairs) / sum(pair.delta.numel() for pair in pairs)
        ) ** 0.5
        row: dict[str, object] = {"weights": weights, "adapter": size, "entry": f"{entry:.2e}"}
        row["relative_size"] = f"{relative_size(pairs):.2e}"
        shares = {str(dtype).removeprefix("torch."): f"{lost_share(pairs, dtype):.3g}" for dtype in PRECISIONS}
        yield row | shares


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--adapter", type=Path, required=True, help="folder with adapter_model.safetensors")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    rows = list(measure_rows(args.adapter))
    with args.out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
