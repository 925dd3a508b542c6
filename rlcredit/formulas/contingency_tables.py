"""Tables of two rows and two columns: whether a mark goes with a class."""

import math

import torch
from torch import Tensor
from torch.nn.functional import pad


def class_counts(marks: Tensor, classes: Tensor, number: int) -> Tensor:
    """Return the count of each mark in each class.

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
    return torch.stack([marks[members].bincount(minlength=number) for members in classes]).double()


def answer_counts(marks: Tensor, rows: Tensor, classes: Tensor, number: int) -> Tensor:
    """Return the number of answers of each class that contain each mark, however often they do.

    Args:
        marks: Number of the mark of each occurrence, shape ``(M,)``.
        rows: Row of the answer of each occurrence, shape ``(M,)``.
        classes: True for the classes that an answer belongs to, shape ``(C, B)``.
        number: Number of marks, N.

    Returns:
        Shape ``(C, N)`` float64.

    Example:
        >>> classes = torch.tensor([[True, True], [False, False]])
        >>> answer_counts(torch.tensor([0, 0, 0, 1]), torch.tensor([0, 0, 1, 1]), classes, 2)
        tensor([[2., 1.],
                [0., 0.]], dtype=torch.float64)

    """
    pairs = (marks * classes.shape[1] + rows).unique()
    return class_counts(pairs // classes.shape[1], classes[:, pairs % classes.shape[1]], number)


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
    numbers = torch.arange(int(pad(table[0::2].sum(0), (0, 1)).max()) + 1, dtype=table.dtype, device=table.device)
    cells = torch.stack([numbers.expand(len(a), -1), a + b - numbers, a + c - numbers, d - a + numbers])
    possible = (cells >= 0).all(0)
    log_weights = torch.lgamma(table + 1).sum(0)[:, None] - torch.lgamma(cells.clamp(min=0) + 1).sum(0)
    weights = log_weights.exp().where(possible, 0)  # relative to the table given
    return weights.where(weights <= 1 + 1e-7, 0).sum(-1) / weights.sum(-1)


def information_gain(table: Tensor) -> Tensor:
    """Return the bits of the class that the mark tells; arguments as above.

    Example:
        >>> information_gain(torch.tensor([[4.0], [0.0], [1.0], [3.0]], dtype=torch.float64))
        tensor([0.5488], dtype=torch.float64)

    """
    cells = table / table.sum(0)
    margins = torch.stack([cells[:2].sum(0), cells[2:].sum(0), cells[0::2].sum(0), cells[1::2].sum(0)])
    entropy, joint = torch.special.entr(margins).sum(0), torch.special.entr(cells).sum(0)
    return (entropy - joint).clamp(min=0) / math.log(2)


def key_token_values(table: Tensor, uses: Tensor, tokens: Tensor, frequency: float) -> Tensor:
    r"""Return the strength with which a token speaks for right answers, between -1 and 1.

    .. math:: k = \tanh \tfrac14 \bigl[(e^{-2p} + I)\,(h + f q)\bigr], \qquad h = \arcsin \sqrt{\tfrac{a}{a + c}} -
        \arcsin \sqrt{\tfrac{b}{b + d}}, \qquad q = \frac{F_r}{F_w + 10^{-5}} - \frac{F_w}{F_r + 10^{-5}}

    p is Fisher's (its term is 0 where p = 1), I the information gain in bits, h half of Cohen's, as the authors' code
    has it. F is the saturated frequency of BM25 with k = 2 and b = 1/2, of the token among all tokens of right answers
    and of wrong ones. If one side never uses a token, q is of the order of thousands, and k is 1 or -1 whatever p is.

    Args:
        table: Counts of completions, shape ``(4, N)`` float64, as in
            :func:`fisher_p_values`.
        uses: How often right and wrong answers use the token, shape ``(2, N)`` float64.
        tokens: How many tokens right and wrong answers have, shape ``(2, N)`` float64.
        frequency: Weight f of the ratio of frequencies; 0 leaves Fisher, information and h.

    Returns:
        Shape ``(N,)``; zero where all answers are right, or all wrong.

    Example:
        >>> table = torch.tensor([[4.0], [0.0], [1.0], [3.0]], dtype=torch.float64)
        >>> uses, tokens = torch.tensor([[4.0], [0.0]]), torch.tensor([[50.0], [30.0]])
        >>> [key_token_values(table, uses, tokens, f).round(decimals=3).item() for f in (0.0, 1.0)]
        [0.345, 1.0]

    """
    a, b, c, d = table
    p = fisher_p_values(table)
    strength = (-2 * p).exp().where(p < 1 - 1e-9, 0) + information_gain(table)
    share, saturation = uses / tokens, 1 + 2 * tokens / tokens.sum(0)
    right, wrong = 3 * share / (share + saturation)
    direction = (a / (a + c)).sqrt().asin() - (b / (b + d)).sqrt().asin()
    direction = direction + frequency * (right / (wrong + 1e-5) - wrong / (right + 1e-5))
    return (strength * direction / 4).tanh().where((a + c > 0) & (b + d > 0), 0)
