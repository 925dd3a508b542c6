"""The questions that a comparison of an answer with its reference may ask, for any kind."""

from fractions import Fraction
from typing import Protocol


class UndecidedError(Exception):
    """Only computer algebra can decide, and it does not run in this process."""


class UnreadableReferenceError(Exception):
    """The reference cannot be read, so the answer cannot be judged."""


class ValueEquality(Protocol):
    """Equality of single values in normal form."""

    def is_equal(self, answer: str, reference: str, factor: Fraction = Fraction(1)) -> bool:
        """Whether an answer, multiplied by a factor, has the value of its reference."""
        ...

    def is_proportional(self, answer: str, reference: str, positive: bool) -> bool:
        """Whether their ratio is a constant other than zero; greater than zero if ``positive``."""
        ...


class AnswerEquality(Protocol):
    """Equality of anything in normal form."""

    @property
    def values(self) -> ValueEquality:
        """Equality of single values."""
        ...

    def is_equal(self, answer: str, reference: str) -> bool:
        """Whether an answer equals its reference, by the kind of thing that the reference is."""
        ...
