"""Procedural tasks of reasoning-gym, by name, with their own configuration and scorer."""

import dataclasses
import difflib
import json
import platform
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from importlib.metadata import version
from typing import Any

from lightning.pytorch.utilities import rank_zero_only

from rlcredit.base.messages import print_message, suggest_name
from rlcredit.policy.memory import read_machine_memory
from rlcredit.tasks import question_cache
from rlcredit.tasks.example import Example, QuestionSets
from rlcredit.tasks.held_out_split import split_held_out
from rlcredit.tasks.reference_checks import write_reference_warning
from rlcredit.tasks.task import Task, require_positive, score_verdict
from rlcredit.verification.answer_formats import find_final_answer, state_answer
from rlcredit.verification.reasoning_gym_scorers import has_evaluating_scorer, is_admissible_answer, make_gym_scorer
from rlcredit.verification.verifiers import (
    Verdict,
    inspect_answer,
    judge_unanswered,
    make_verdict,
    require_sandbox,
    strip_name_and_unit,
)
from rlcredit.verification.worker_pool import WorkerPool

SCORE_TIMEOUT = 3.0
"""Processor seconds that one scoring may take."""

PATIENCE_SECONDS, REPORT_SECONDS = 5.0, 15.0
"""Seconds between messages about the generation of questions."""

TRIED_REFERENCES = 8
"""Number of references scored before a run: enough to detect a data set without any."""

WORTH_KEEPING = 3.0
"""Seconds of generation from which questions are cached."""


LARGE_NUMBER = 1000
"""Smallest number in a configuration that leads to a trial question, which may have as many digits."""

MIN_QUESTION_BYTES = 1000
"""Bytes of memory that a question takes at least."""

MAX_QUESTION_SECONDS, MAX_QUESTION_BYTES = 5.0, 4 * 2**30
"""Seconds and bytes that one question may take."""

TRIAL_PROGRAM = """
import json, resource, sys
import reasoning_gym
print("begun", flush=True)
name, seed, memory, config = json.loads(sys.argv[1])
resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
try:
    reasoning_gym.create_dataset(name, seed=seed, size=1, **config)[0]
except MemoryError:
    sys.exit(9)
"""


def _iterate_numbers(config: Any) -> Iterator[float]:
    """Yield the numbers in a configuration."""
    if isinstance(config, dict | list):
        for value in config.values() if isinstance(config, dict) else config:
            yield from _iterate_numbers(value)
    elif isinstance(config, int | float):
        yield abs(config)


def refuse_endless_question(name: str, seed: int, config: Mapping[str, Any]) -> None:
    """Refuse a configuration of which one question takes too long or too much memory.

    Another process makes it, since no signal reaches arithmetic with a billion digits.

    Args:
        name: Name of the data set.
        seed: Seed of its questions.
        config: Parameters of the data set.

    Raises:
        ValueError: with the repair.

    """
    request = json.dumps([name, seed, MAX_QUESTION_BYTES, config], default=str)
    process = subprocess.Popen(
        [sys.executable, "-c", TRIAL_PROGRAM, request], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()  # it has imported the package
        status = process.wait(MAX_QUESTION_SECONDS)
    except subprocess.TimeoutExpired:
        status = None
    finally:
        process.kill()
        process.communicate()
    if status in (None, 9, -signal.SIGKILL):
        large = ", ".join(f"{value:,g}" for value in sorted({*_iterate_numbers(config)}) if value > LARGE_NUMBER)
        raise ValueError(
            f"data.init_args.config: one question of {name} takes more than {MAX_QUESTION_SECONDS:g} s or "
            f"{MAX_QUESTION_BYTES >> 30} GiB to generate. Lower its large values: {large}."
        )


class ReasoningGym(Task):
    """Any data set of reasoning-gym.

    Rewards are binary: right is what the data set's own scorer gives at least ``solved_at``.
    Partial credit for answers that merely contain the right one is no verdict. ``rewards: verifier`` makes the scores
    the rewards.

    Args:
        name: Name of the data set, for example ``chain_sum``.
        config: Parameters of the data set; those not named keep reasoning-gym's defaults.
        train_size: Number of training questions generated.
        solved_at: Score from which an answer counts as right.
        generator_seed: Seed of the questions; the same for all runs, so that they are compared on the same ones.
        kwargs: Arguments of :class:`~rlcredit.tasks.task.Task`.

    """

    def __init__(
        self,
        name: str,
        config: dict[str, Any] | None = None,
        train_size: int = 4096,
        solved_at: float = 1.0,
        generator_seed: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(solved_at=solved_at, **kwargs)
        if self.tolerance:
            raise ValueError(
                f"data.init_args.tolerance is {self.tolerance}, but data sets of reasoning-gym are "
                f"judged by their own scorers. "
                "Leave it out, or name a verifier of your own in data.init_args.verifier."
            )
        from reasoning_gym.factory import DATASETS  # noqa: PLC0415

        self.name, self.config, self.train_size = name, config or {}, train_size
        require_positive("data.init_args.train_size", train_size)
        if train_size * MIN_QUESTION_BYTES > read_machine_memory():
            raise ValueError(
                f"data.init_args.train_size: {train_size:,} questions take more than the "
                f"{read_machine_memory() / 2**30:,.0f} GiB of this machine. Lower it."
            )
        if name not in DATASETS:
            close = ", ".join(difflib.get_close_matches(name, DATASETS)) or "none"
            raise ValueError(f"data.init_args.name: reasoning-gym has no data set {name!r}. Close names: {close}.")
        fields = {field.name for field in dataclasses.fields(DATASETS[name][1])} - {"seed", "size"}
        if extra_names := sorted(map(str, set(self.config) - fields)):
            raise ValueError(
                f"data.init_args.config: `{name}` has no parameter "
                f"{' and no '.join(f'`{extra}`' for extra in extra_names)}."
                f"{suggest_name(extra_names[0], fields)} It accepts {', '.join(sorted(fields))}."
            )
        # Distinct questions are drawn until both sets are full: many more than wanted must be on offer.
        self._generator_seed, self.offered = generator_seed, 50 * (train_size + self.held_out_size)
        if any(value > LARGE_NUMBER for value in _iterate_numbers(self.config)):
            refuse_endless_question(name, generator_seed, self.config)
        self._one = self._make_dataset(1)
        if has_evaluating_scorer(name, self.config):
            require_sandbox(f"data.init_args.name: the scorer of {name}", self.unsafe_scorers)
        self.admissible = partial(is_admissible_answer, name)
        self.worker_pool = WorkerPool(
            make_gym_scorer,
            name,
            self.config,
            timeout=SCORE_TIMEOUT,
            budget=self.verify_budget,
            alone=lambda _, entry: [(entry["answer"], entry)],
        )

    @cached_property
    def source(self) -> Any:
        """The data set; some generate all questions when they are created."""
        return self._make_dataset(self.offered)

    def _make_dataset(self, size: int) -> Any:
        import reasoning_gym  # noqa: PLC0415

        try:
            return reasoning_gym.create_dataset(str(self.name), seed=self._generator_seed, size=size, **self.config)
        except (AssertionError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
            reason = str(error) or type(error).__name__
            raise ValueError(f"data.init_args.config: {self.name} cannot be made of {self.config}: {reason}") from None

    @property
    def held_out_size(self) -> int:
        """Number of held-out questions; as many as are wanted are generated."""
        return self.validation_size or 512

    def examples(self) -> QuestionSets:
        """Generate distinct questions; a hash of the text decides which are held out.

        What has taken long is kept in a cache on disk, and read from there by the next run that wants the same.
        """
        key = {
            **{"name": self.name, "config": repr(sorted(self.config.items())), "seed": self._generator_seed},
            **{"train": self.train_size, "held_out": self.held_out_size, "offered": self.offered},
            **{"reasoning_gym": version("reasoning-gym"), "python": platform.python_version()},
        }
        if cached_sets := question_cache.load_cached_questions(key):
            return cached_sets
        start_time = time.monotonic()
        examples = self._draw_distinct_questions()
        if time.monotonic() - start_time > WORTH_KEEPING:
            question_cache.cache_questions(key, examples)
        return examples

    def _draw_distinct_questions(self) -> QuestionSets:
        train, held_out = split_held_out(self._generate_examples(), self.train_size, self.held_out_size)
        if len(train) < self.train_size or len(held_out) < self.held_out_size:
            raise ValueError(
                f"{self.name} with this configuration has too few distinct questions: {len(train)} for training and "
                f"{len(held_out)} held out, wanted {self.train_size} and {self.held_out_size}. "
                f"Lower data.init_args.train_size "
                "and data.init_args.validation_size, or make the questions longer."
            )
        return train, held_out

    def _generate_examples(self) -> Iterator[Example]:
        count = self.train_size + self.held_out_size
        news = f"reasoning-gym generates {count:,} questions of {self.name}"
        timer = threading.Timer(
            PATIENCE_SECONDS, print_message, [f"{news}, once: the next start finds them in the cache."]
        )
        timer.daemon = True
        timer.start()
        try:
            report_time = time.monotonic() + PATIENCE_SECONDS
            for number, entry in enumerate(self.source):
                if time.monotonic() > report_time + REPORT_SECONDS:
                    report_time = time.monotonic()
                    print_message(f"{news}: {number:,} drawn. A smaller data.init_args.train_size takes less time.")
                yield Example(entry["question"], str(entry["answer"]), entry["metadata"])
        finally:
            timer.cancel()

    def judge_with_scores(
        self, completions: Sequence[str], examples: Sequence[Example]
    ) -> list[tuple[Verdict, float | None]]:
        """Score in locked processes: inadmissible answers are wrong, equal ones are scored once."""
        if self.own is not None:
            return super().judge_with_scores(completions, examples)
        pairs = list(zip(completions, examples, strict=True))
        looks = [
            inspect_answer(self._inspect_completion, text, question, self._state_reference) for text, question in pairs
        ]
        requests = {
            (look, id(example)): (look, example._asdict())
            for look, example in zip(looks, examples, strict=True)
            if isinstance(look, str)
        }
        scores = dict(zip(requests, self.worker_pool.answer_requests(list(requests.values())), strict=True))
        judgements = list[tuple[Verdict, float | None]]()
        for look, example in zip(looks, examples, strict=True):
            score = scores[look, id(example)] if isinstance(look, str) else score_verdict(look)
            judgements.append((make_verdict(score, self.solved_at) if isinstance(look, str) else look, score))
        return judgements

    def check_references(self) -> None:
        """Warn if the scorer rejects the references of the first questions; some data sets have none.

        They are not the policy's, and are scored here without waiting for a process.
        """
        answer_format, sample = self.answer_formats[0], (self.train_set or self.held_out_set)[:TRIED_REFERENCES]
        faults = [] if self.own else [(example, "wrong") for example in sample if not self._is_right_by_itself(example)]
        if faults:
            warning = write_reference_warning(faults, len(sample), answer_format, self.locate_example)
            rank_zero_only(print_message)(
                f"{warning} The scorer of {self.name} decides; where the data set holds no reference, a completion may "
                "still be right."
            )

    def _is_right_by_itself(self, example: Example) -> bool:
        answer = find_final_answer(state_answer(example.answer, self.answer_formats)[0], self.answer_formats)
        entry = example._asdict()
        if answer is None or not self.admissible(answer, entry):
            return False
        try:
            return float(self._one.score_answer(answer, entry)) >= self.solved_at
        except Exception:  # noqa: BLE001  (over a hundred scorers by other hands)
            return False

    def _inspect_completion(self, completion: str, example: Example) -> str | Verdict:
        """Return the answer for the scorer, or a verdict if the scorer must not see it."""
        statement = find_final_answer(completion, self.answer_formats)
        if statement is None:
            return judge_unanswered(completion)
        answer = strip_name_and_unit(statement, str(example.answer))
        return answer if answer and self.admissible(answer, example._asdict()) else Verdict.WRONG

    def _state_reference(self, example: Example) -> str:
        return state_answer(example.answer, self.answer_formats)[0]

    def start_verifier(self) -> None:
        """Start the scorer's process in the background."""
        if self.own is None:
            self.worker_pool.start_workers()
