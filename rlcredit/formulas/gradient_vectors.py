"""Gradients as vectors of named parts, and how far two of them agree."""

import math
from collections.abc import Mapping

import torch
from torch import Tensor

Vector = Mapping[str, Tensor]
"""One tensor per weight, by name."""


def inner_product(a: Vector, b: Vector) -> float:
    """Return the inner product over all parts, summed in float64."""
    return float(sum((a[name].double() * b[name].double()).sum() for name in a))


def vector_agreement(vector: Vector, reference: Vector) -> dict[str, float]:
    r"""Compare a vector with another one.

    The cosine alone is no measure of change: :math:`1 - \cos` is not a share of anything. A cosine of 0.954 is an angle
    of 17.4 degrees, and 30 % of the vector's length stands at right angles to the other.

    Args:
        vector: Vector that is compared.
        reference: Vector that it is compared with, of the same parts.

    Returns:
        ``cosine``, ``degrees``, ``orthogonal_fraction`` (the sine) and ``norm_ratio`` (``vector`` over
        ``reference``); a zero vector counts as orthogonal to all, and the ratio to it is zero.

    Example:
        >>> both = vector_agreement({"w": torch.tensor([1.0, 1.0])}, {"w": torch.tensor([2.0, 0.0])})
        >>> {name: round(value, 4) for name, value in both.items()}
        {'cosine': 0.7071, 'degrees': 45.0, 'orthogonal_fraction': 0.7071, 'norm_ratio': 0.7071}

    """
    norms = [math.sqrt(inner_product(v, v)) for v in (vector, reference)]
    product = norms[0] * norms[1]
    cosine = max(-1.0, min(1.0, inner_product(vector, reference) / product)) if product > 0 else 0.0
    return {
        "cosine": cosine,
        "degrees": math.degrees(math.acos(cosine)),
        "orthogonal_fraction": math.sqrt(1 - cosine**2),
        "norm_ratio": norms[0] / norms[1] if norms[1] > 0 else 0.0,
    }


def gram_matrix(vectors: list[Vector]) -> Tensor:
    """Return all inner products, shape ``(N, N)`` float64."""
    products = [[inner_product(a, b) if j <= i else 0.0 for j, b in enumerate(vectors)] for i, a in enumerate(vectors)]
    lower = torch.tensor(products, dtype=torch.float64)
    return lower + lower.tril(-1).T
