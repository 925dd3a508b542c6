"""Answer critic: the head critic with the reference answer in sight, and how far it departs from one without."""

import re
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate, compress

import torch
from torch import Tensor

from rlcredit.credit.network_critic import NetworkCritic
from rlcredit.credit.operator import Metrics
from rlcredit.credit.rollout import Rollout
from rlcredit.formulas.masked import masked_mean

MOST_STATEMENTS = 3
"""Statements of an answer of which further ones make no difference."""


def answer_statements(texts: Sequence[str], answers: Sequence[str]) -> Tensor:
    r"""Return the number of statements of an answer before each token, and whether that text ends with one.

    .. math:: \Bigl(\tfrac{1}{3} \min(3, n_t),\; 1[\text{an answer ends at } t]\Bigr)

    An answer is a word of its own: 12 does not state 2, and 25 does so only until its 5 is written. What stands behind
    a prefix is not read.

    Args:
        texts: Texts of the sampled tokens of a completion, N of them.
        answers: Accepted answers.

    Returns:
        Shape ``(N, 2)`` float32.

    Example:
        >>> answer_statements(["2", ";", " 2", "5", "."], ["2"])
        tensor([[0.0000, 0.0000],
                [0.3333, 1.0000],
                [0.3333, 0.0000],
                [0.6667, 1.0000],
                [0.3333, 0.0000]])

    """
    text, prefix_lengths = "".join(texts), list(accumulate(map(len, texts), initial=0))[:-1]
    wordings = rf"(?<!\w)(?:{'|'.join(map(re.escape, answers))})"
    ends = [match.end() for match in re.finditer(rf"{wordings}(?!\w)", text)]
    final_wording, size = re.compile(rf"{wordings}\Z"), max(map(len, answers))
    rows = []
    for length in prefix_lengths:
        is_last = final_wording.search(text, max(0, length - size), length) is not None
        rows.append((min(bisect_left(ends, length) + is_last, MOST_STATEMENTS) / MOST_STATEMENTS, float(is_last)))
    return torch.tensor(rows).view(-1, 2)


class AnswerCritic(
    NetworkCritic,
    reads="hidden judged lookahead old_logprobs returns rewards step tokens values",
    writes="critic_weight signal values",
):
    r"""Estimate values as ``HeadCritic`` does, but with the answer in sight; signal where the critic above disagrees.

    .. math:: S_t = |V^{\text{seeing}}_t - V^{\text{blind}}_t|

    Put it below a ``HeadCritic``; the signal is zero until both have warmed up. It has two more features than that one,
    :func:`answer_statements`, for which nothing is decoded or read, and which need no policy that understands hints.
    It cannot check the steps on the way to the answer, nor judge tokens that were not sampled.

    ReDiPPO (Zhang et al., 2026, arXiv:2607.27631), a reconstruction from its abstract and a third party's summary. Its
    credit is the reward less the seeing critic's value, weighted by the disagreement: here ``GAE(lam=1.0)`` and
    ``GTPO``. There both critics are language models, one of which has the answer in its prompt, and a weight is one
    plus the standard score of the disagreement in the batch, clipped to [0.5, 2].

    Args:
        width: Units of each hidden layer.
        rate: Learning rate.
        decay: Weight decay of AdamW.
        fits: Steps of AdamW per rollout; four times as many while it warms up.
        batch: Prefixes per step.
        rollouts: Rollouts that it learns from, the last one included.
        prefixes: Most prefixes of a rollout that it keeps, chosen at random.
        target: Histogram in which it predicts the reward; right or wrong if None.
        warmup: Rollouts that it learns from before it is used.
        lam: Lambda of what it learns; 1 is the return itself, less learns from rewards and its own values alone.

    """

    def describe_prefixes(self, rollout: Rollout, token_mask: Tensor) -> Tensor:
        """Return the features of ``HeadCritic``, and the statements of the answer; arguments as there."""
        answers, masks = rollout.lookahead.list_answers(rollout), rollout.mask.cpu()
        statements = torch.zeros(*masks.shape, 2)
        for row, mask in enumerate(masks):
            texts = list(compress(rollout.tokens[row], mask.tolist()))
            places = mask.nonzero().squeeze(1)[: len(texts)]  # a rollout may come without texts
            statements[row, places] = answer_statements(texts, answers[row // rollout.group_size])
        features = super().describe_prefixes(rollout, token_mask)
        return torch.cat([features, statements.to(features)[token_mask]], -1)

    def assign(self, rollout: Rollout) -> Metrics:
        """Estimate; log the quality of the values, and the mean disagreement."""
        blind_values, is_second = rollout.values, "values" not in rollout.unwritten
        metrics = super().assign(rollout)
        has_both = is_second and rollout.critic_weight > 0
        gap = (rollout.values - blind_values).abs() if has_both else torch.zeros_like(blind_values)
        rollout.signal = gap.where(rollout.mask, 0)
        return {**metrics, "disagreement": masked_mean(rollout.signal, rollout.mask)}
