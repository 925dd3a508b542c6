"""Scorers of reasoning-gym; a module of its own so that the worker that imports it stays small."""

import re
from collections.abc import Callable
from typing import Any

from rlcredit.verification.answer_grammar import LONGEST_EXPRESSION, is_plain_expression, is_short_answer
from rlcredit.verification.fault_attribution import judge_or_blame
from rlcredit.verification.mathematics.symbolic import preload_sympy
from rlcredit.verification.reasoning_gym_answers import Shape, has_answer_shape, make_pattern_shape
from rlcredit.verification.worker_process import warm_up_judge

_FUNCTIONS = frozenset(re.findall(r"\w+", "sin cos tan cot sec csc asin acos atan sinh cosh tanh exp log ln sqrt"))
_INTEGRATION = ("C", "pi", "E")
_ADDED_LETTER = re.compile(r"(?:^|[-+])\s*([A-Za-z])\d{0,2}\s*(?=[-+]|$)", re.ASCII)


def _is_arithmetic(answer: str, _: dict[str, Any]) -> bool:
    return is_plain_expression(answer) and "**" not in answer and "//" not in answer


def _is_antiderivative(answer: str, metadata: dict[str, Any]) -> bool:
    names = {metadata["variable"], *_INTEGRATION}
    constants = _find_added_letters(answer) - names
    return len(constants) <= 1 and is_plain_expression(answer, names | constants, _FUNCTIONS)


def _find_added_letters(answer: str) -> set[str]:
    """Return letters that are terms of a sum by themselves, outside of brackets: constants of integration."""
    if len(answer) > LONGEST_EXPRESSION:
        return set()
    deepest = None
    while deepest != answer:
        deepest, answer = answer, re.sub(r"\([^()]*\)", "0", answer)
    return set(_ADDED_LETTER.findall(answer))


def _is_polynomial(answer: str, metadata: dict[str, Any]) -> bool:
    return is_plain_expression(answer, metadata["variables"])


EVALUATING_DATASETS: dict[str, Shape] = {
    "countdown": _is_arithmetic,
    "puzzle24": _is_arithmetic,
    "simple_integration": _is_antiderivative,
    "intermediate_integration": _is_antiderivative,
    "polynomial_multiplication": _is_polynomial,
    # These evaluate a list; letters that are no names of Python's, and nothing that calls or looks up.
    "string_insertion": make_pattern_shape(r"[A-Z\s,\[\]'\"]{0,2000}"),
    "spiral_matrix": make_pattern_shape(r"[-\d\s,\[\]]{0,20000}"),
    "binary_matrix": make_pattern_shape(r"[\d\s,\[\]]{0,20000}"),
    "n_queens": make_pattern_shape(r"[Q_\s,\[\]'\"]{0,20000}"),
}
"""Data sets whose scorers evaluate the answer as Python, and the expressions they may see."""


def has_evaluating_scorer(name: str, config: dict[str, Any]) -> bool:
    """Whether a data set's scorer evaluates answers, or one of those that it is composed of."""
    return name in EVALUATING_DATASETS or (
        name == "composite" and not EVALUATING_DATASETS.keys().isdisjoint(_list_component_names(config))
    )


def _list_component_names(config: dict[str, Any]) -> set[str]:
    return {part["name"] if isinstance(part, dict) else part.name for part in config.get("datasets", [])}


def is_admissible_answer(name: str, answer: str, entry: dict[str, Any]) -> bool:
    """Whether the scorer may see the answer; other answers are wrong.

    Args:
        name: Name of the data set.
        answer: Answer of the policy.
        entry: Example that was asked; that of a composed data set names the data set it is from.

    """
    if not is_short_answer(answer, str(entry["answer"])):
        return False
    name = _find_source_dataset(name, entry)
    return name not in EVALUATING_DATASETS or EVALUATING_DATASETS[name](answer, entry["metadata"])


def _find_source_dataset(name: str, entry: dict[str, Any]) -> str:
    """Return the data set of an example."""
    return entry["metadata"]["source_dataset"] if name == "composite" else name


def make_gym_scorer(name: str, config: dict[str, Any]) -> Callable[[str, dict[str, Any]], float | None]:
    """Return the scorer of a data set. An answer on which it raises scores 0 if the reference passes, else None."""
    import reasoning_gym  # noqa: PLC0415

    source = reasoning_gym.create_dataset(name, seed=0, **{"size": 1, **config})

    def score(answer: str, entry: dict[str, Any]) -> float | None:
        part, reference = _find_source_dataset(name, entry), str(entry["answer"])
        has_reference = reference != "None"  # a puzzle with many solutions shows none that could be scored
        if not has_answer_shape(part, answer, entry):
            return None if has_reference and not has_answer_shape(part, reference, entry) else 0.0

        def score_reference() -> None:
            if has_reference and not source.score_answer(entry["answer"], entry) > 0:
                raise ValueError("its scorer rejects its reference")

        return judge_or_blame(lambda: float(source.score_answer(answer, entry)), score_reference)

    if has_evaluating_scorer(name, config):
        preload_sympy()
    entry = source[0]
    return warm_up_judge(score, [(str(entry["answer"]), entry), ("0", entry), ("x", entry)])
