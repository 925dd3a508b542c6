"""Rewards of one's own: functions in TRL's convention, weighted and added up, called in processes of their own."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch

from rlcredit.base.messages import warn_once
from rlcredit.verification.fault_attribution import AT_FAULT, UNTOLD_VALUE
from rlcredit.verification.reward_calls import REWARD_SIGNATURE, ChatText, RewardCall
from rlcredit.verification.rewards import Scores
from rlcredit.verification.user_functions import MADE_UP_COMPLETIONS, UserFunction, require_user_path
from rlcredit.verification.verifiers import Verdict, make_verdict

REWARDS_KEY = "data.init_args.rewards"

VERIFIER_NAME = "verifier"
"""Name of the reward that is the score of whatever judges the task."""

LARGEST_REWARD = torch.finfo(torch.float32).max

FAULT_CONSEQUENCE = "Such completions get the worst reward of their prompt, and at most 0"

SUM_ROUNDING = 1e-6
"""How far a sum of weighted rewards may lie below ``solved_at``: 0.7 + 0.2 + 0.1 is less than 1 in floating point."""

Values = Sequence[float | None]
"""What one function gives the completions of one prompt; None where it does not apply."""


@dataclass(frozen=True)
class RewardFunction:
    """A reward function and what it counts.

    Args:
        function: Dotted path of a function ``(prompts, completions, **columns) -> list[float | None]``, or of a class
            whose objects are called so; ``verifier`` is the score of whatever judges the task.
        weight: Factor of its rewards in the sum.
        locked: Whether it runs in locked processes, for functions that evaluate what completions say. If not, it may do
            what you may do: ask servers, read files, start processes.
        seconds: Seconds that a call may take, with one prompt and all its completions; 20, or 3 if it is locked, if
            None.

    """

    function: str
    weight: float = 1.0
    locked: bool = False
    seconds: float | None = None

    def __post_init__(self) -> None:
        """Refuse a weight that is not finite."""
        if not math.isfinite(self.weight):
            raise ValueError(
                f"{REWARDS_KEY}: the weight of {self.function} is {self.weight}, expected a finite number."
            )

    def __str__(self) -> str:
        """Return it as a term of a sum.

        Example:
            >>> str(RewardFunction("verifier")), str(RewardFunction("mine.has_format", 0.2))
            ('verifier', '0.2 mine.has_format')

        """
        return self.function if self.weight == 1 else f"{self.weight:g} {self.function}"


def read_reward_functions(setting: Any) -> tuple[RewardFunction, ...]:
    """Return reward functions as a task is given them: one, or a list; a bare name has the weight one.

    Args:
        setting: Text, :class:`RewardFunction`, mapping with its arguments, or a list of these.

    Raises:
        ValueError: it is something else, or names a function twice.

    Example:
        >>> [str(one) for one in read_reward_functions(["verifier", {"function": "mine.has_format", "weight": 0.2}])]
        ['verifier', '0.2 mine.has_format']

    """
    entries = setting if isinstance(setting, list | tuple) else [setting]
    functions = tuple(map(_read_reward_function, entries))
    names = [term.function for term in functions]
    if not names:
        raise ValueError(f"{REWARDS_KEY} is empty. Name a function {REWARD_SIGNATURE}, or leave it out.")
    if duplicates := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"{REWARDS_KEY}: {duplicates[0]} is named twice. Add up the weights.")
    return functions


def _read_reward_function(entry: Any) -> RewardFunction:
    if isinstance(entry, RewardFunction):
        return entry
    if isinstance(entry, str):
        return RewardFunction(entry)
    names = {field.name for field in fields(RewardFunction)}
    if isinstance(entry, Mapping) and "function" in entry and entry.keys() <= names:
        return RewardFunction(**entry)
    raise ValueError(
        f"{REWARDS_KEY}: expected the name of a function, or {{function: ..., weight: ..., locked: ..., "
        f"seconds: ...}}, got {entry!r:.80}."
    )


def describe_rewards(functions: Sequence[RewardFunction], solved_at: float) -> str:
    """Return a sum of rewards, and what is right, as one text.

    Args:
        functions: Functions with their weights.
        solved_at: Reward, or score of the verifier if it is one of the functions, from which a completion is right.

    Example:
        >>> describe_rewards(read_reward_functions(["verifier", "mine.has_format"]), 1.0)
        'verifier + mine.has_format; right is what the verifier scores 1 or more'

    """
    terms = " + ".join(map(str, functions)).replace("+ -", "- ")
    is_verified = any(term.function == VERIFIER_NAME for term in functions)
    return f"{terms}; right is {'what the verifier scores' if is_verified else 'a reward of'} {solved_at:g} or more"


def replace_faults(values: Values, weight: float) -> list[float | None]:
    """Give completions that broke a reward function the worst that it gave to the others, and no more than nothing.

    So no completion gains from making its reward function fail.

    Args:
        values: What a function gave the completions of a prompt.
        weight: Weight of the function; below zero, the worst is the largest.

    Example:
        >>> replace_faults([-3.0, AT_FAULT, -7.0, None], weight=1.0), replace_faults([0.5, AT_FAULT], weight=-1.0)
        ([-3.0, -7.0, -7.0, None], [0.5, 0.5])

    """
    finite_values = [0.0, *(value for value in values if value is not None and math.isfinite(value))]
    worst = max(finite_values) if weight < 0 else min(finite_values)
    return [worst if value == AT_FAULT else value for value in values]


def weighted_sums(values: Sequence[Values], weights: Sequence[float]) -> list[float | None]:
    """Return the weighted sum of what functions gave each completion, over those that apply.

    Args:
        values: What each function gave, K of them for B completions.
        weights: Weight of each function, K of them.

    Returns:
        None where no function applies, where one could not tell, and where float32 cannot hold the sum.

    Example:
        >>> weighted_sums([[1.0, 0.0, None, 1.0], [0.5, None, None, UNTOLD_VALUE]], [1.0, 0.2])
        [1.1, 0.0, None, None]

    """
    sums = list[float | None]()
    for row in zip(*values, strict=True):
        terms = [weight * value for weight, value in zip(weights, row, strict=True) if value is not None]
        total = math.fsum(terms) if all(map(math.isfinite, terms)) else math.nan
        sums.append(total if terms and abs(total) <= LARGEST_REWARD else None)
    return sums


class RewardSum:
    """Weighted sum of reward functions, and the verdicts that follow from it.

    What makes a function raise, hang or die gets the worst reward of its prompt, see :func:`replace_faults`. What it
    cannot reward with the reference as completion either is unjudged, and so is what it gives NaN or an infinity.

    Args:
        functions: Functions with their weights.
        solved_at: Reward from which a completion is right; if the verifier is one of the functions, it decides.
        budget: Seconds that a batch may lose to slow completions in locked processes; see
            :class:`~rlcredit.verification.worker_pool.RequestBatch`.
        unsafe: Whether to call locked ones even where the system cannot lock the process that does.

    Raises:
        ValueError: a path is none.

    """

    def __init__(
        self, functions: Sequence[RewardFunction], solved_at: float = 1.0, budget: float = 10.0, unsafe: bool = False
    ) -> None:
        self.functions, self.solved_at = functions, solved_at
        self.asked: dict[str, UserFunction] = {}
        for term in functions:
            if term.function != VERIFIER_NAME:
                example = "my_rewards.has_format, or verifier for the task's own"
                require_user_path(REWARDS_KEY, term.function, REWARD_SIGNATURE, example)
                limits = (term.locked, term.seconds, budget, unsafe)
                self.asked[term.function] = UserFunction(REWARDS_KEY, term.function, *limits, FAULT_CONSEQUENCE)

    def __str__(self) -> str:
        """Return the sum, and what is right; see :func:`describe_rewards`."""
        return describe_rewards(self.functions, self.solved_at)

    @property
    def takes_verifier(self) -> bool:
        """Whether the score of the verifier is one of the rewards."""
        return any(term.function == VERIFIER_NAME for term in self.functions)

    @property
    def names(self) -> list[str]:
        """Name of each function in metrics: the last part of its path, the whole path where several end alike."""
        short = [term.function.rpartition(".")[2] for term in self.functions]
        return [
            name if short.count(name) == 1 else term.function for name, term in zip(short, self.functions, strict=True)
        ]

    @property
    def files(self) -> dict[str, Path | None]:
        """File of each function of one's own by its path, found without importing it; None where there is none."""
        return {path: function.file for path, function in self.asked.items()}

    def start(self, *examples: RewardCall) -> None:
        """Try the functions with references and made-up completions, and start their processes.

        Later calls do nothing.

        Args:
            examples: One or two calls, of whose prompts the reference is tried as a completion if there is one.

        Raises:
            ValueError: with what is wrong with one.

        """
        first_call, last_call = examples[0], examples[-1]
        trial = [make_trial_call(first_call, len(MADE_UP_COMPLETIONS)), make_trial_call(last_call, 1)]
        for function in self.asked.values():
            try:
                function.start(trial)
            except ValueError as error:
                raise ValueError(f"{error}{_explain_form(str(error), first_call.prompt)}") from None

    def score(self, calls: Sequence[RewardCall], judgements: Sequence[tuple[Verdict, float | None]]) -> Scores:
        """Return verdicts and rewards of the completions of all calls.

        Args:
            calls: Prompts with their completions, B completions together.
            judgements: Verdict and score of the task's verifier on each of these; empty if it is none of the functions.

        """
        verifier_scores = iter([UNTOLD_VALUE if score is None else score for _, score in judgements])
        values: list[list[float | None]] = []
        if calls:
            self.start(*calls[:2])
        for term in self.functions:
            if term.function == VERIFIER_NAME:
                batches: Iterable[Values] = [[next(verifier_scores) for _ in call.completions] for call in calls]
            else:
                batches = [reply.values for reply in self.asked[term.function].judge(calls)]
            values.append([value for batch in batches for value in replace_faults(batch, term.weight)])
        sums = weighted_sums(values, [term.weight for term in self.functions])
        if any(total is None and _is_told(row) for total, row in zip(sums, zip(*values, strict=True), strict=True)):
            warn_once(f"{REWARDS_KEY}: float32 cannot hold some sums of {self}. Such completions are not judged.")
        verdicts = [
            judgements[row][0] if judgements and total is not None else self._judge_sum(total)
            for row, total in enumerate(sums)
        ]
        parts = {name: _make_tensor(rewards) for name, rewards in zip(self.names, values, strict=True)}
        return Scores(verdicts, _make_tensor(sums), parts)

    def _judge_sum(self, total: float | None) -> Verdict:
        return make_verdict(total, self.solved_at - SUM_ROUNDING)


def _is_told(row: Values) -> bool:
    """Whether some function gave a completion a reward, and none failed."""
    rewards = [value for value in row if value is not None]
    return bool(rewards) and all(map(math.isfinite, rewards))


def make_trial_call(example: RewardCall, made_up: int) -> RewardCall:
    """Return a call that a function is tried with: the reference if there is one, and made-up completions.

    Args:
        example: Call whose prompt is asked.
        made_up: Number of made-up completions; at least two are asked about.

    """
    completions: list[ChatText] = [
        text if isinstance(example.prompt, str) else [{"role": "assistant", "content": text}]
        for text in MADE_UP_COMPLETIONS
    ]
    references = [example.reference] if example.reference else []
    return example.about([*references, *completions[-max(made_up, 2 - len(references)) :]])


def _explain_form(complaint: str, prompt: ChatText) -> str:
    """Return why a function that expects a chat fails on texts, as the functions that TRL ships do."""
    if isinstance(prompt, str) and "string indices must be integers" in complaint:
        return (
            " It expects messages, and questions here are texts: set data.init_args.system, or "
            "write questions as turns."
        )
    return ""


def _make_tensor(values: Values) -> torch.Tensor:
    """Return numbers as float32, NaN where there is none."""
    return torch.tensor(
        [math.nan if value is None or not math.isfinite(value) else value for value in values], dtype=torch.float32
    )
