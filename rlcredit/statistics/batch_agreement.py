"""How far the gradients of independent batches agree, under one kind of credit and between two."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def batch_gradients(prompts: ArrayLike, size: int) -> Array:
    """Return the gradients of batches of prompts; left-over prompts are dropped.

    Args:
        prompts: Gradient of each prompt, shape ``(P, D)``.
        size: Prompts per batch.

    Returns:
        Shape ``(B, D)`` float64, B the number of whole batches.

    """
    rows = np.asarray(prompts, dtype=np.float64)
    return rows[: len(rows) // size * size].reshape(-1, size, rows.shape[-1]).sum(1)


def mean_cosines(gradients: Array, other_gradients: Array) -> Array:
    """Return the mean cosine between different batches of two kinds of gradients, then that without each batch.

    Batches of one number are of the same prompts and are not compared: their noise is common.

    Args:
        gradients: Gradients of batches, shape ``(B, D)``.
        other_gradients: Gradients of the same batches, of the other kind; may be the same tensor.

    Returns:
        Over all, then with each batch left out, shape ``(B + 1,)``.

    """
    matrix = unit_gradients(gradients) @ unit_gradients(other_gradients).T
    number = len(matrix)
    self_cosines = matrix.diagonal()
    total = matrix.sum() - self_cosines.sum()
    jackknife_sums = total - (matrix.sum(0) + matrix.sum(1) - 2 * self_cosines)
    return np.append(total / (number * (number - 1)), jackknife_sums / ((number - 1) * (number - 2)))


def unit_gradients(gradients: Array) -> Array:
    """Return gradients scaled to length one, shape ``(B, D)``; one that is zero stays zero."""
    lengths = np.linalg.norm(gradients, axis=-1, keepdims=True)
    return gradients / np.where(lengths > 0, lengths, 1)


def agreement_and_direction(gradients: Array, baseline: Array) -> tuple[Array, Array, Array]:
    r"""Return the agreement of batches, its gain over the baseline's, and the cosine of the expectations.

    Agreement is the mean cosine between the gradients of two batches of different prompts: one if all batches say the
    same, zero without signal. The direction is the cosine between the expected gradients of the two, every batch scaled
    to length one: the cosine between different batches, over the root of both agreements,
    :math:`c_{ab} / \sqrt{c_{aa}\, c_{bb}}`.

    Args:
        gradients: Gradients of batches, shape ``(B, D)``, B at least three.
        baseline: Gradients of the same batches under the baseline.

    Returns:
        Three rows as of :func:`mean_cosines`; the direction is NaN where an agreement is not positive.

    """
    agreement, baseline_agreement = mean_cosines(gradients, gradients), mean_cosines(baseline, baseline)
    with np.errstate(invalid="ignore", divide="ignore"):
        direction = mean_cosines(gradients, baseline) / np.sqrt(agreement * baseline_agreement)
    return agreement, agreement - baseline_agreement, direction
