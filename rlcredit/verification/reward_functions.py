"""Rewards of one's own: functions in TRL's convention, weighted and added up, called in locked processes."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from rlcredit.base.messages import warn_once
from rlcredit.verification import user_verifier
from rlcredit.verification.fault_attribution import AT_FAULT
from rlcredit.verification.reward_calls import (
    NOT_FINITE,
    SIGNATURE,
    UNTOLD,
    ChatText,
    RewardCall,
    make_reward_judge,
    prepare_reward_trial,
)
from rlcredit.verification.rewards import Scores
from rlcredit.verification.user_functions import find_user_fault, find_user_file, require_user_path
from rlcredit.verification.verifiers import Verdict, make_verdict, require_sandbox
from rlcredit.verification.worker_pool import Request, WorkerPool

SETTING = "data.rewards"

VERIFIER = "verifier"
"""Name of the reward that is the score of whatever judges the task."""

ADVICE = "Return None for a completion that it cannot reward"

ROUNDING = 1e-6
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

    """

    function: str
    weight: float = 1.0

    def __post_init__(self) -> None:
        """Refuse a weight that is not finite."""
        if not math.isfinite(self.weight):
            raise ValueError(f"{SETTING}: the weight of {self.function} is {self.weight}, expected a finite number.")

    def __str__(self) -> str:
        """Return it as a term of a sum.

        Example:
            >>> str(RewardFunction("verifier")), str(RewardFunction("mine.has_format", 0.2))
            ('verifier', '0.2 mine.has_format')

        """
        return self.function if self.weight == 1 else f"{self.weight:g} {self.function}"


def read_reward_functions(written: Any) -> tuple[RewardFunction, ...]:
    """Return reward functions as a task is given them: one, or a list; a bare name has the weight one.

    Args:
        written: Text, :class:`RewardFunction`, mapping with its arguments, or a list of these.

    Raises:
        ValueError: it is something else, or names a function twice.

    Example:
        >>> [str(one) for one in read_reward_functions(["verifier", {"function": "mine.has_format", "weight": 0.2}])]
        ['verifier', '0.2 mine.has_format']

    """
    listed = written if isinstance(written, list | tuple) else [written]
    functions = tuple(map(_read_reward_function, listed))
    names = [each.function for each in functions]
    if not names:
        raise ValueError(f"{SETTING} is empty. Name a function {SIGNATURE}, or leave it out.")
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"{SETTING}: {twice[0]} is named twice. Add up the weights.")
    return functions


def _read_reward_function(entry: Any) -> RewardFunction:
    if isinstance(entry, RewardFunction):
        return entry
    if isinstance(entry, str):
        return RewardFunction(entry)
    if isinstance(entry, Mapping) and "function" in entry and entry.keys() <= {"function", "weight"}:
        return RewardFunction(**entry)
    raise ValueError(
        f"{SETTING}: expected the name of a function, or {{function: ..., weight: ...}}, got {entry!r:.80}."
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
    is_verified = any(each.function == VERIFIER for each in functions)
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
    given = [0.0, *(each for each in values if each is not None and math.isfinite(each))]
    worst = max(given) if weight < 0 else min(given)
    return [worst if each == AT_FAULT else each for each in values]


def weighted_sums(values: Sequence[Values], weights: Sequence[float]) -> list[float | None]:
    """Return the weighted sum of what functions gave each completion, over those that apply.

    Args:
        values: What each function gave, K of them for B completions.
        weights: Weight of each function, K of them.

    Returns:
        None where no function applies, and where one could not tell.

    Example:
        >>> weighted_sums([[1.0, 0.0, None, 1.0], [0.5, None, None, UNTOLD]], [1.0, 0.2])
        [1.1, 0.0, None, None]

    """
    sums = list[float | None]()
    for row in zip(*values, strict=True):
        terms = [weight * each for weight, each in zip(weights, row, strict=True) if each is not None]
        total = math.fsum(terms) if all(map(math.isfinite, terms)) else math.nan
        sums.append(total if terms and math.isfinite(total) else None)
    return sums


class RewardSum:
    """Weighted sum of reward functions, and the verdicts that follow from it.

    What makes a function raise, hang or die gets the worst reward of its prompt, see :func:`replace_faults`. What it
    cannot reward with the reference as completion either is unjudged, and so is what it gives NaN or an infinity.

    Args:
        functions: Functions with their weights.
        solved_at: Reward from which a completion is right; if the verifier is one of the functions, it decides.
        budget: Seconds that a batch may lose to slow completions; see
            :class:`~rlcredit.verification.worker_pool.RequestBatch`.
        unsafe: Whether to call them even where the system cannot lock the process that does.

    Raises:
        ValueError: a path is none.

    """

    def __init__(
        self, functions: Sequence[RewardFunction], solved_at: float = 1.0, budget: float = 10.0, unsafe: bool = False
    ) -> None:
        self.functions, self.solved_at, self.budget, self.folder = functions, solved_at, budget, str(Path.cwd())
        self.paths = [each.function for each in functions if each.function != VERIFIER]
        for path in self.paths:
            require_user_path(SETTING, path, SIGNATURE, "my_rewards.has_format, or verifier for the task's own")
            require_sandbox(f"{SETTING}: {path}", unsafe)
        self.worker_pool: WorkerPool | None = None
        self.warned: set[str] = set()

    def __str__(self) -> str:
        """Return the sum, and what is right; see :func:`describe_rewards`."""
        return describe_rewards(self.functions, self.solved_at)

    @property
    def takes_verifier(self) -> bool:
        """Whether the score of the verifier is one of the rewards."""
        return any(each.function == VERIFIER for each in self.functions)

    @property
    def names(self) -> list[str]:
        """Name of each function in metrics: the last part of its path, the whole path where several end alike."""
        short = [each.function.rpartition(".")[2] for each in self.functions]
        return [
            name if short.count(name) == 1 else each.function for name, each in zip(short, self.functions, strict=True)
        ]

    @property
    def files(self) -> list[Path | None]:
        """File of each function of one's own, found without importing it; None where there is none."""
        return [find_user_file(path, self.folder) for path in self.paths]

    def start(self, example: RewardCall) -> None:
        """Try the functions once with the reference as completion, and start their workers; later calls do nothing.

        Raises:
            ValueError: with what is wrong with one.

        """
        if self.worker_pool is not None or not self.paths:
            return
        example = example._replace(completions=[example.reference])
        said = f"called with the completion {example.reference!r:.80} to the prompt {example.prompt!r:.80}"
        for path in self.paths:
            arguments = (path, self.folder, example)
            if complaint := find_user_fault(prepare_reward_trial, arguments, said, ADVICE, user_verifier.SECONDS):
                raise ValueError(f"{SETTING}: {path}: {complaint}.{_explain_form(complaint, example.prompt)}")
        self.worker_pool = WorkerPool(
            *(make_reward_judge, self.paths, self.folder, example),
            timeout=user_verifier.SECONDS,
            budget=self.budget,
            alone=build_reference_reward_call,
            count=count_completions,
        )
        self.worker_pool.start_workers()

    def score(self, calls: Sequence[RewardCall], judged: Sequence[tuple[Verdict, float | None]]) -> Scores:
        """Return verdicts and rewards of the completions of all calls.

        Args:
            calls: Prompts with their completions, B completions together.
            judged: Verdict and score of the task's verifier on each of these; empty if it is none of the functions.

        """
        told = iter([UNTOLD if score is None else score for _, score in judged])
        verified = [[next(told) for _ in call.completions] for call in calls] if judged else []
        asked = self._ask_functions(calls)
        values: list[list[float | None]] = []
        for each in self.functions:
            of_calls = verified if each.function == VERIFIER else asked[each.function]
            values.append([value for one in of_calls for value in replace_faults(one, each.weight)])
        sums = weighted_sums(values, [each.weight for each in self.functions])
        verdicts = [
            judged[row][0] if judged and total is not None else self._judge_sum(total) for row, total in enumerate(sums)
        ]
        parts = {name: _make_tensor(each) for name, each in zip(self.names, values, strict=True)}
        return Scores(verdicts, _make_tensor(sums), parts)

    def _judge_sum(self, total: float | None) -> Verdict:
        return make_verdict(total, self.solved_at - ROUNDING)

    def _ask_functions(self, calls: Sequence[RewardCall]) -> dict[str, list[list[float | None]]]:
        """Return what each function of one's own gives the completions of each call.

        A call that takes too long, or breaks its workers, is repeated completion by completion.
        """
        if not calls or not self.paths:
            return {}
        self.start(calls[0])
        assert self.worker_pool is not None
        requests = [(call.reference, place, call) for place in range(len(self.paths)) for call in calls]
        answers = self.worker_pool.answer_requests(requests)
        failed = [number for number, answer in enumerate(answers) if answer is None or {*answer} == {AT_FAULT}]
        single = [request for number in failed for request in _split_request(requests[number])]
        alone = iter(self.worker_pool.answer_requests(single))
        for number in failed:
            found = [next(alone) for _ in requests[number][2].completions]
            answers[number] = [UNTOLD if answer is None else answer[0] for answer in found]
        for (_, place, call), answer in zip(requests, answers, strict=True):
            self._warn_of_odd_answers(self.paths[place], call, answer)
        of_each = iter(answers)
        return {path: [next(of_each) for _ in calls] for path in self.paths}

    def _warn_of_odd_answers(self, path: str, call: RewardCall, answers: Values) -> None:
        """Say once of a function that it returned NaN or an infinity, or that it fails with the reference, too."""
        for completion, answer in zip(call.completions, answers, strict=True):
            if answer is None or math.isfinite(answer) or answer == AT_FAULT or path in self.warned:
                continue
            self.warned.add(path)  # one completion is example enough
            said = f"for the completion {completion!r:.80} to the prompt {call.prompt!r:.80}"
            done = f"returned NaN or an infinity {said}" if answer == NOT_FINITE else f"fails {said}, or is too slow"
            warn_once(
                f"{SETTING}: {path} {done}. Such completions are not judged; return None where it does not apply."
            )


def _split_request(request: Request) -> Iterator[Request]:
    reference, place, call = request
    for completion in call.completions:
        yield reference, place, call._replace(completions=[completion])


def build_reference_reward_call(reference: ChatText, place: int, call: RewardCall) -> list[Request]:
    """Return a request that shows whether a function takes long because of the question."""
    return [(reference, place, call._replace(completions=[reference]))]


def count_completions(_: ChatText, __: int, call: RewardCall) -> int:
    """Return the number of answers to a request."""
    return len(call.completions)


def _explain_form(complaint: str, prompt: ChatText) -> str:
    """Return why a function that expects a chat fails on texts, as the functions that TRL ships do."""
    if isinstance(prompt, str) and "string indices must be integers" in complaint:
        return " It expects messages, and questions here are texts: set data.system, or write questions as turns."
    return ""


def _make_tensor(values: Values) -> torch.Tensor:
    """Return numbers as float32, NaN where there is none."""
    return torch.tensor(
        [math.nan if each is None or not math.isfinite(each) else each for each in values], dtype=torch.float32
    )
