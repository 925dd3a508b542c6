"""The request of an evaluation, and the settings that must be equal for it to continue."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rlcredit.decoding.engine import Engine
from rlcredit.decoding.in_process import InProcessEngine
from rlcredit.decoding.token_filters import TokenFilter
from rlcredit.evaluation.evaluated_policies import EvaluatedPolicy
from rlcredit.evaluation.question_sets import QuestionSet


@dataclass(frozen=True)
class SamplingParameters:
    """How completions are drawn.

    Args:
        completions: Completions per question, n.
        k: Largest k of pass@k and maj@k, at most n.
        max_tokens: Number of tokens after which a completion is cut.
        temperature: Temperature T. Reported log-probabilities and entropies are those of ``softmax(logits / T)`` over
            the whole vocabulary, whatever is left out of it.
        top_p: Probability mass kept, see :class:`~rlcredit.decoding.token_filters.TokenFilter`; all if None.
        top_k: Number of tokens kept, see :class:`~rlcredit.decoding.token_filters.TokenFilter`; all if None.
        greedy: Whether to take the likeliest token each time; then n is 1.
        seed: Seed of the sampling noise. With 0, and the other settings of a run's validation, completions are those of
            its evaluations.

    """

    completions: int
    k: int
    max_tokens: int
    temperature: float
    top_p: float | None = None
    top_k: int | None = None
    greedy: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse contradictory settings."""
        if self.k > self.completions:
            raise ValueError(
                f"--k: pass@{self.k} needs {self.k} completions per question, got {self.completions}. Raise "
                "--completions, or leave it out."
            )
        if self.greedy and self.completions > 1:
            raise ValueError(f"--greedy: all {self.completions} completions would be the same. Ask for one.")

    @property
    def token_filter(self) -> TokenFilter | None:
        """Return the filter of tokens; None if every token may be drawn."""
        token_filter = TokenFilter(self.top_k, self.top_p, self.greedy)
        return None if token_filter.keeps_all else token_filter

    @property
    def ks(self) -> list[int]:
        """Return 1, 2, 4 and so on below the largest k, and the largest k."""
        return sorted({2**power for power in range(self.k.bit_length()) if 2**power <= self.k} | {self.k})

    @property
    def description(self) -> str:
        """Return the settings in words."""
        if self.greedy:
            method = f"greedy, entropy at temperature {self.temperature:g}"
        else:
            left_out = [
                f"{name} {value:g}" for name in ("top_p", "top_k") if (value := getattr(self, name)) is not None
            ]
            method = ", ".join([f"temperature {self.temperature:g}", *left_out])
        number = "1 completion" if self.completions == 1 else f"{self.completions} completions"
        return f"{number} per question, {self.max_tokens} tokens at most, {method}, seed {self.seed}"


@dataclass(frozen=True)
class EvaluationRequest:
    """One evaluation of policies on sets of questions.

    Args:
        sets: Sets of questions.
        policies: Policies that answer; the others are compared with the first.
        sampling: How completions are drawn.
        margin: Difference of accuracy that would not matter, in proportions.
        engine: Engine that decodes.

    """

    sets: Sequence[QuestionSet]
    policies: Sequence[EvaluatedPolicy]
    sampling: SamplingParameters
    margin: float
    engine: Engine = field(default_factory=InProcessEngine)

    def __post_init__(self) -> None:
        """Refuse a way of drawing that the engine does not know."""
        option = next((name for name in ("greedy", "top_p", "top_k") if getattr(self.sampling, name)), None)
        if option and not isinstance(self.engine, InProcessEngine):
            raise ValueError(
                f"--{option}: {type(self.engine).__name__} draws from the whole distribution. Leave it out, or leave "
                "out --engine."
            )

    @property
    def description(self) -> str:
        """Return the way of drawing completions, in words."""
        engine_text = "" if isinstance(self.engine, InProcessEngine) else f", decoded by {type(self.engine).__name__}"
        return f"{self.sampling.description}{engine_text}"

    def settings(self) -> dict[str, Any]:
        """Return all settings that answers depend on; an engine in this process gives the same as no other."""
        engine_name = type(self.engine).__name__
        return {
            **({} if isinstance(self.engine, InProcessEngine) else {"engine": engine_name}),
            "drawing": {name: value for name, value in asdict(self.sampling).items() if name != "k"},  # k only counts
            "policies": {policy.name: policy.identity() for policy in self.policies},
            "tasks": {question_set.name: question_set.identity() for question_set in self.sets},
        }


def hash_evaluation_settings(settings: Mapping[str, Any]) -> str:
    """Return a hash of settings, eight hexadecimal digits long."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:8]


def list_setting_differences(old_settings: Any, new_settings: Any, place: str = "") -> list[str]:
    """Return the differences between two settings, as ``place: before, not now``.

    Example:
        >>> list_setting_differences({"drawing": {"seed": 0}}, {"drawing": {"seed": 1}})
        ['drawing.seed: 0, not 1']

    """
    if isinstance(old_settings, Mapping) and isinstance(new_settings, Mapping):
        keys = [*old_settings, *(key for key in new_settings if key not in old_settings)]
        inner = (
            list_setting_differences(old_settings.get(key), new_settings.get(key), f"{place}.{key}".lstrip("."))
            for key in keys
        )
        return [line for lines in inner for line in lines]
    return (
        []
        if old_settings == new_settings
        else [f"{place}: {_shorten_json(old_settings)}, not {_shorten_json(new_settings)}"]
    )


def _shorten_json(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:56]} ..."
