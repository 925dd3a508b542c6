"""What an operator declares about itself."""

import inspect
import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Literal, get_args

from rlcredit.base.messages import suggest_name
from rlcredit.credit.rollout import FACT_FIELDS, ROLLOUT_FIELDS


class StackError(ValueError):
    """A list of operators that is inconsistent; the message names the repair."""


class StackWarning(UserWarning):
    """Warning about a stack in which an operator does nothing, or not what its name says."""


RewardKind = Literal["real", "binary"]
"""Rewards that an operator can work with: any real numbers, or only one for right and zero for wrong."""

RESERVED_NAMES = frozenset(
    [
        *("reads", "writes", "state", "usual", "costly", "neutral", "rewards"),
        *("bound", "bound_rewards", "notice", "count_continuations", "arguments", "label", "run_seed"),
    ]
)
"""Names that an operator must not use for its arguments."""


class OperatorContract:
    """Which fields of the rollout a class reads and which it rebinds, declared in its header.

    ``class GTPO(CreditOperator, reads="signal advantages", writes="advantages")``; a list or tuple of names says the
    same. ``mask`` and ``group_size`` describe
    shapes and need not be declared. A contract without ``writes`` is a probe's: it only watches. ``state`` names the
    attributes that cannot be recomputed when a run is continued. If a stack lacks a writer of a field, the error
    proposes the ``usual`` one. An operator that runs a model, or has one run for it, is ``costly``. ``neutral`` holds
    arguments with which the operator is the identity, as in ``neutral={"beta": 0.0}``; tests, cards and the reference
    read it. An operator whose ``rewards`` are ``"binary"`` means something only where one stands for right and zero for
    wrong; it is refused where rewards are other numbers. One that reads the oracle is, unless it says otherwise.
    """

    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    state: tuple[str, ...] = ()
    usual: bool = False
    costly: bool = False
    neutral: Mapping[str, Any] = MappingProxyType({})
    rewards: RewardKind = "real"

    def __init_subclass__(
        cls,
        reads: str | Iterable[str] | None = None,
        writes: str | Iterable[str] | None = None,
        state: str | Iterable[str] | None = None,
        usual: bool = False,
        costly: bool = False,
        neutral: Mapping[str, Any] | None = None,
        rewards: RewardKind | None = None,
        **kwargs: Any,
    ) -> None:
        """Record the contract, inherit what is not given, and refuse names that are no field of a rollout."""
        super().__init_subclass__(**kwargs)
        cls.reads = cls.reads if reads is None else frozenset(_split_field_names("reads", reads))
        cls.writes = cls.writes if writes is None else frozenset(_split_field_names("writes", writes))
        cls.state = (*cls.state, *_split_field_names("state", state or ()))
        cls.usual = usual
        cls.costly = costly or cls.costly
        cls.neutral = MappingProxyType(dict(neutral or {}))
        counts_right: RewardKind = "binary" if cls.writes and "oracle" in cls.reads else cls.rewards
        cls.rewards = counts_right if rewards is None else rewards
        if cls.rewards not in get_args(RewardKind):
            raise TypeError(f'{cls.__name__} declares rewards={rewards!r}; expected "real" or "binary".')
        if odd := sorted(cls.neutral.keys() - inspect.signature(cls).parameters.keys()):
            raise TypeError(f"{cls.__name__} declares {odd[0]} as neutral, which is not one of its arguments.")
        if clashes := RESERVED_NAMES & set(inspect.signature(cls).parameters):
            raise TypeError(f"{cls.__name__} has an argument {sorted(clashes)}, which every operator uses. Rename it.")
        strangers = (cls.reads - ROLLOUT_FIELDS) | (cls.writes - (ROLLOUT_FIELDS - FACT_FIELDS))
        if strangers:
            suggestion = suggest_name(min(strangers), ROLLOUT_FIELDS)
            raise TypeError(
                f"{cls.__name__} declares {sorted(strangers)}.{suggestion} Rollouts have {sorted(ROLLOUT_FIELDS)}, "
                "facts read-only."
            )

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of the constructor that are kept under their own names."""
        return {name: vars(self)[name] for name in inspect.signature(type(self)).parameters if name in vars(self)}

    def bound(self, limit: float, group_size: int) -> float:
        """Return the largest advantage that can leave when rewards lie in [0, 1]; infinity if none is known.

        Infinity enters where rewards are any real numbers.

        Args:
            limit: Largest advantage that can enter, in absolute value like the result.
            group_size: Completions per prompt, G.

        """
        return math.inf if "advantages" in self.writes else limit

    def bound_rewards(self, low: float, high: float) -> tuple[float, float]:
        """Return the range of rewards that can leave, given that of those that enter; infinite if unknown."""
        return (-math.inf, math.inf) if "rewards" in self.writes else (low, high)

    def count_continuations(self) -> tuple[int, int] | None:
        """Return the largest number of prefixes of a completion that are continued, and of continuations of each.

        None if only the text of a completion tells.
        """
        return None if "continuations" in self.writes else (0, 0)

    def name_binary_operator(self) -> str | None:
        """Return the name of this operator, or of one that it runs, if that takes rewards of one and zero only."""
        return type(self).__name__ if self.writes and self.rewards == "binary" else None

    def notice(self, limit: float, group_size: int) -> str | None:
        """Return why this operator cannot have an effect at its place, or None; arguments as in `bound`."""
        if "advantages" in self.writes and limit and not self.bound(limit, group_size):
            return f"{type(self).__name__} gives no credit to groups of {group_size}. Draw more for each prompt."
        return None


def _split_field_names(header: str, entry: str | Iterable[str]) -> list[str]:
    """Return the names in a header; a text is split at its spaces."""
    names = entry.split() if isinstance(entry, str) else list(entry)
    if odd := [name for name in names if not isinstance(name, str)]:
        raise TypeError(f'{header}= holds {odd[0]!r}; expected names of fields, as in {header}="signal advantages".')
    return names


def select_operators(callbacks: Iterable[object]) -> list[OperatorContract]:
    """Return the credit operators of a list of callbacks."""
    return [callback for callback in callbacks if isinstance(callback, OperatorContract)]
