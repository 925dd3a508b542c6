"""Tables of two rows and two columns: whether a mark goes with a class."""

import math

import torch
from torch import Tensor
from torch.nn.functional import pad


def class_counts(marks: Tensor, classes: Tensor, number: int) -> Tensor:
    """Return how often each mark occurs in each class.

    Args:
        marks: Number of the mark of each occurrence, shape ``(M,)``.
        classes: True for the classes that an occurrence belongs to, shape ``(C, M)``.
        number: Number of marks, N.

    Returns:
        Shape ``(C, N)`` float64.

    Example:
        >>> class_counts(torch.tensor([0, 1, 1]), torch.tensor([[True, True, False], [False, False, True]]), 3)
        tensor([[1., 1., 0.],
                [0., 1., 0.]], dtype=torch.float64)

    """
    return torch.stack([marks[inside].bincount(minlength=number) for inside in classes]).double()


def fisher_p_values(table: Tensor) -> Tensor:
    """Return the two-sided p values of Fisher's exact test.

    Args:
        table: Counts, shape ``(4, N)`` float64: of the first and of the second class with a mark, and of both without
            it; right and wrong answers that contain a token, for example.

    Returns:
        Shape ``(N,)``: the probability of all tables with these margins that are no likelier than the one given.

    Example:
        >>> fisher_p_values(torch.tensor([[4.0], [0.0], [1.0], [3.0]], dtype=torch.float64))
        tensor([0.1429], dtype=torch.float64)

    """
    a, b, c, d = table[..., None]
    other = torch.arange(int(pad(table[0::2].sum(0), (0, 1)).max()) + 1, dtype=table.dtype, device=table.device)
    cells = torch.stack([other.expand(len(a), -1), a + b - other, a + c - other, d - a + other])
    possible = (cells >= 0).all(0)
    log_weights = torch.lgamma(table + 1).sum(0)[:, None] - torch.lgamma(cells.clamp(min=0) + 1).sum(0)
    weights = log_weights.exp().where(possible, 0)  # relative to the table given
    return weights.where(weights <= 1 + 1e-7, 0).sum(-1) / weights.sum(-1)


def information_gain(table: Tensor) -> Tensor:
    """Return how many bits of the class the mark tells; arguments as above.

    Example:
        >>> information_gain(torch.tensor([[4.0], [0.0], [1.0], [3.0]], dtype=torch.float64))
        tensor([0.5488], dtype=torch.float64)

    """
    cells = table / table.sum(0)
    margins = torch.stack([cells[:2].sum(0), cells[2:].sum(0), cells[0::2].sum(0), cells[1::2].sum(0)])
    entropy, joint = torch.special.entr(margins).sum(0), torch.special.entr(cells).sum(0)
    return (entropy - joint).clamp(min=0) / math.log(2)
