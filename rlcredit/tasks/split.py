"""Which questions are held out: a property of the text alone."""

import math
import zlib
from collections.abc import Iterable, Sequence

from rlcredit.tasks.example import Example


def held_out(question: str, share: float = 0.1) -> bool:
    """Decide by a hash whether a question belongs to the held-out ``share``, whatever the seed, size or order.

    Because nothing but the text decides, no training set, of whatever seed, can contain a held-out question.

    Example:
        >>> held_out("4 - 1 ="), held_out("any", share=1.0), held_out("any", share=0.0)
        (False, True, False)

    """
    return _hash(question) < share * 2**32


def _hash(question: str) -> int:
    return zlib.crc32(question.encode())


def least(examples: Sequence[Example], share: float = 0.1) -> tuple[list[Example], list[Example]]:
    """Hold out those with the smallest hash, ``share`` of them and at least one: for a set too small for chance.

    Unlike :func:`held_out` it depends on the other questions, too.

    Returns:
        Those for training, and those held out, each in the order given.

    """
    number = max(1, round(share * len(examples)))
    chosen = set(sorted(range(len(examples)), key=lambda place: _hash(examples[place].text))[:number])
    parts: tuple[list[Example], list[Example]] = ([], [])
    for place, example in enumerate(examples):
        parts[place in chosen].append(example)
    return parts


def split(
    examples: Iterable[Example], train_size: int | None, validation_size: int | None, share: float = 0.1
) -> tuple[list[Example], list[Example]]:
    """Deal distinct questions to a training and a held-out set until both are full or the examples end.

    Args:
        examples: in a fixed order; repeated questions are dropped.
        train_size: wanted, or None for all.
        validation_size: wanted, or None for all.
        share: of all questions that is held out.

    """
    wanted = [math.inf if size is None else size for size in (train_size, validation_size)]
    dealt: tuple[list[Example], list[Example]] = ([], [])
    seen: set[str] = set()
    for example in examples:
        if example.text in seen:
            continue
        seen.add(example.text)
        index = int(held_out(example.text, share))
        if len(dealt[index]) < wanted[index]:
            dealt[index].append(example)
        if all(len(part) >= size for part, size in zip(dealt, wanted, strict=True)):
            break
    return dealt


def disjoint(
    train: Iterable[Example], held_out: Iterable[Example], validation_size: int | None
) -> tuple[list[Example], list[Example]]:
    """Take every question of a held-out set out of the training set, then cut the held-out set to size.

    Args:
        train: repeated questions are dropped.
        held_out: repeated questions are dropped.
        validation_size: wanted, or None for all.

    """
    _, validation = split(held_out, None, None, share=1.0)
    forbidden = {example.text for example in validation}
    training, _ = split((example for example in train if example.text not in forbidden), None, None, share=0.0)
    return training, validation[:validation_size]
