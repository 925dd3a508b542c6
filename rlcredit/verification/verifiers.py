"""Verifiers: decide whether the final answer is right, wrong, or cannot be judged."""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, TypeVar, get_args

from rlcredit.formulas.parameter_choices import require_choice
from rlcredit.verification import sandbox
from rlcredit.verification.answer_formats import MARKED_FORMATS, AnswerFormat, find_final_answer, state_answer
from rlcredit.verification.answer_grammar import LONGEST_EXPRESSION, is_plain_latex
from rlcredit.verification.fault_attribution import judge_or_blame
from rlcredit.verification.mathematics.equality import UndecidedError, UnreadableReferenceError
from rlcredit.verification.mathematics.expressions import ExactEquality
from rlcredit.verification.mathematics.named_values import drop_leading_name
from rlcredit.verification.mathematics.notation import write_normal_form
from rlcredit.verification.mathematics.numbers import read_normal_rational, read_rational
from rlcredit.verification.mathematics.reference_kinds import is_equal_answer
from rlcredit.verification.mathematics.symbolic import make_symbolic_judge
from rlcredit.verification.mathematics.units import read_quantity
from rlcredit.verification.worker_pool import WorkerPool


class Verdict(Enum):
    """A verifier's decision. ``UNJUDGED`` is not a zero: such a completion gets no credit, good or bad.

    ``NO_ANSWER`` earns what ``WRONG`` earns, and is counted apart: the completion states no answer in any known format.
    What fails because of the answer is wrong; what fails because of judge, reference or machine is unjudged.
    Otherwise a policy could learn to stall its judge, for the mean reward of its group is more than that of a mistake.
    """

    RIGHT = "right"
    WRONG = "wrong"
    NO_ANSWER = "no answer found"
    UNJUDGED = "could not judge"


def judge_exactly(answer: str, reference: str, tolerance: float = 0.0) -> Verdict | None:
    r"""Compare by the reference's kind, without computer algebra; None if only algebra can decide.

    Args:
        answer: Final answer of a completion.
        reference: Reference that it is compared with.
        tolerance: How far two numbers may differ, as a share of the reference.

    """
    try:
        return Verdict.RIGHT if is_equal_answer(answer, reference, ExactEquality(tolerance)) else Verdict.WRONG
    except UndecidedError:
        return None
    except UnreadableReferenceError:
        return Verdict.UNJUDGED


def strip_name_and_unit(answer: str, reference: str) -> str:
    """Return an answer as a bare number, if its reference is one and the answer is one with a name or a unit.

    Example:
        >>> strip_name_and_unit("x = 5 apples", "5")
        '5'
        >>> strip_name_and_unit("5 apples", "5 pears"), strip_name_and_unit("5 or 6", "5")
        ('5 apples', '5 or 6')

    """
    is_bare = answer.isascii() and answer.removeprefix("-").isdecimal()
    if is_bare or len(answer) > LONGEST_EXPRESSION or read_rational(reference) is None or "%" in reference:
        return answer
    quantity = read_quantity(drop_leading_name(write_normal_form(answer)))
    value = read_normal_rational(quantity.value)
    return answer if value is None or quantity.factor != 1 else quantity.value


class MathVerifier:
    """Exact comparison first; what it cannot decide goes to math-verify, in processes that can do nothing else.

    What fails because of the answer is wrong: it cannot be read, is no plain mathematics
    (:mod:`rlcredit.verification.answer_grammar`), takes too long where the reference alone does not, or takes two
    workers down. What fails because of the reference, the judge or the machine is not judged, and so is an answer that
    is stated in a known format which does not count.

    Args:
        timeout: Processor seconds that one comparison may take.
        budget: Processor seconds that a batch may lose to slow comparisons, which share them; see
            :class:`~rlcredit.verification.worker_pool.RequestBatch`.
        unsafe: Whether to compare even where the system cannot lock the processes that do.
        formats: Formats in which an answer counts, the most binding first; see :func:`find_final_answer`.
        tolerance: How far two numbers may differ, as a share of the reference.

    """

    def __init__(
        self,
        timeout: float = 3.0,
        budget: float = 10.0,
        unsafe: bool = False,
        formats: Sequence[AnswerFormat] = MARKED_FORMATS,
        tolerance: float = 0.0,
    ) -> None:
        if not timeout > 0:
            raise ValueError(f"MathVerifier expects timeout > 0 seconds, got {timeout}.")
        if not 0 <= tolerance < 1:
            raise ValueError(
                f"data.init_args.tolerance is a share of the reference, from 0 (exact) to below 1, got {tolerance}. "
                "One per cent is 0.01."
            )
        self.timeout, self.unsafe, self.tolerance = timeout, unsafe, tolerance
        self.formats = require_known_formats(formats)
        self.worker_pool = WorkerPool(
            make_symbolic_judge,
            timeout=timeout,
            budget=budget,
            # A comparison may take long because of its reference: beside itself, or beside 0.
            alone=lambda _, reference, tolerance: [(answer, reference, tolerance) for answer in (reference, "0")],
        )

    def judge(self, completions: Sequence[str], references: Sequence[str]) -> list[Verdict]:
        """Judge each completion against its reference; an empty reference never matches."""
        cases = zip(completions, references, strict=True)
        looks = [
            inspect_answer(self._inspect_completion, text, reference, self._state_reference)
            for text, reference in cases
        ]
        requests = list(dict.fromkeys(look for look in looks if not isinstance(look, Verdict)))
        if requests:
            require_sandbox("math-verify", self.unsafe)
        verdicts = dict(zip(requests, map(make_verdict, self.worker_pool.answer_requests(requests)), strict=True))
        return [look if isinstance(look, Verdict) else verdicts[look] for look in looks]

    def judge_one(self, completion: str, reference: str) -> Verdict:
        """Judge one completion."""
        return self.judge([completion], [reference])[0]

    def _state_reference(self, reference: str) -> str:
        return state_answer(reference, self.formats)[0]

    def _inspect_completion(self, completion: str, reference: str) -> "Verdict | tuple[str, str, float]":
        """Return the verdict if exact comparison decides, otherwise the request for the workers."""
        answer = find_final_answer(completion, self.formats)
        if answer is None:
            return judge_unanswered(completion)
        return self._judge_at_once(answer, reference) or (answer, reference, self.tolerance)

    def _judge_at_once(self, answer: str, reference: str) -> Verdict | None:
        if not reference.strip() or not answer:
            return Verdict.WRONG
        if answer.strip() == reference.strip():
            return Verdict.RIGHT
        if not is_plain_latex(answer, reference):
            return Verdict.WRONG
        return judge_exactly(answer, reference, self.tolerance)


ReferenceType = TypeVar("ReferenceType")
ResultType = TypeVar("ResultType")


def inspect_answer(
    look: Callable[[str, ReferenceType], ResultType],
    completion: str,
    reference: ReferenceType,
    state: Callable[[ReferenceType], str],
) -> ResultType | Verdict:
    """Inspect a completion in the trainer; one that makes ``look`` raise is wrong.

    Args:
        look: Function that takes a completion and its reference.
        completion: Completion of the policy.
        reference: Reference that it is compared with.
        state: Function that returns a completion stating the reference; if looking at this one raises too, nobody can
            judge.

    """
    result: Any = judge_or_blame(lambda: look(completion, reference), lambda: look(state(reference), reference))
    return make_verdict(result) if result is None or isinstance(result, float) else result


def require_known_formats(formats: Sequence[AnswerFormat]) -> tuple[AnswerFormat, ...]:
    """Return the answer formats, after checking that all are known.

    Raises:
        ValueError: there is none, or one that is not known.

    """
    if not formats:
        raise ValueError(f"answer_formats is empty, so no answer counts. Name some of {', '.join(MARKED_FORMATS)}.")
    return tuple(require_choice("a verifier", "answer_formats", name, get_args(AnswerFormat)) for name in formats)


def judge_unanswered(text: str) -> Verdict:
    """Return the verdict on a completion without an answer that counts: unjudged if another known format has one."""
    return Verdict.NO_ANSWER if find_final_answer(text) is None else Verdict.UNJUDGED


def make_verdict(score: float | None, solved_at: float = 1.0) -> Verdict:
    """Return the verdict of a score; unjudged without one."""
    if score is None:
        return Verdict.UNJUDGED
    return Verdict.RIGHT if score >= solved_at else Verdict.WRONG


def require_sandbox(judge_name: str, unsafe: bool) -> None:
    """Refuse to evaluate answers in a process that is not locked, unless the user says so."""
    if not (unsafe or sandbox.can_lock_process()):
        raise ValueError(
            f"{judge_name} evaluates answers of the policy, and this system cannot lock the process that does (Linux "
            "with seccomp on x86_64 or aarch64 can). If you trust the policy with your files and secrets, set "
            "--unsafe_scorers (in fit: --unsafe_scorers true)."
        )
