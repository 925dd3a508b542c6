"""True credit as records: the text of every token, or turn, with its values, credit and ledgers."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from rlcredit.credit.rollout import Rollout
from rlcredit.oracle.credit_estimate import TrueCredit


def list_credit_records(
    rollout: Rollout, true_credit: TrueCredit, ledgers: Mapping[str, Tensor]
) -> list[dict[str, Any]]:
    """Return one record for each completion whose true credit is known, numbers rounded.

    Args:
        rollout: Rollout of the completions.
        true_credit: True credit of some of them.
        ledgers: Advantages of their tokens, or turns, by operator, shape ``(N, T)``.

    """
    records, rows = [], list(true_credit.rows)
    fields = {
        "true_credit": true_credit.credit,
        "error": true_credit.error,
        "entropy": true_credit.average_units(rollout.entropy[rows].cpu()),
        **ledgers,
    }
    for place, row in enumerate(rows):
        mask, values = true_credit.mask[place], true_credit.values[place]
        texts = rollout.list_texts(row)
        if true_credit.turn is not None:
            texts = join_turn_texts(rollout.tokens[row], true_credit.turn[place].tolist())
        records.append(
            {
                "tokens": texts,
                "correct": rollout.correct[row].item() if rollout.judged[row] else None,
                "values": [round(v, 4) for v in [*values[:-1][mask].tolist(), values[-1].item()]],
                **{name: [round(v, 4) for v in column[place][mask].tolist()] for name, column in fields.items()},
            }
        )
    return records


def join_turn_texts(texts: Sequence[str], turn: Sequence[int]) -> list[str]:
    """Return the text of each turn.

    Args:
        texts: Text of each token.
        turn: Number of the turn of each token, -1 elsewhere.

    Example:
        >>> join_turn_texts(["go", " on", "now?", "stop"], [0, 0, -1, 1])
        ['go on', 'stop']

    """
    turns = [""] * (max(turn) + 1)
    for text, number in zip(texts, turn, strict=False):
        if number >= 0:
            turns[number] += text
    return turns
