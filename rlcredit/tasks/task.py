"""The base class of tasks: questions, answers, their order, and the judge."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import LightningDataModule
from lightning.pytorch.utilities import rank_zero_only
from torch.utils.data import DataLoader

from rlcredit.base.exit_status import RunStopped
from rlcredit.base.messages import print_message, warn_once
from rlcredit.config.allowed_values import validate_folder_name
from rlcredit.episodes.environment import Environment
from rlcredit.episodes.episode_table import EpisodeTable, TurnLimits, open_episode
from rlcredit.episodes.locked_environment import lock_environment
from rlcredit.episodes.observation_format import choose_turn_format
from rlcredit.episodes.replay import refuse_changing_environment
from rlcredit.policy.chat_turns import Conversation
from rlcredit.policy.policy import Policy
from rlcredit.policy.prompt_format import Tools
from rlcredit.tasks.example import Example, QuestionSets, Shot, build_conversation
from rlcredit.tasks.held_out_sets import HeldOutSet
from rlcredit.tasks.held_out_split import separate_alike_questions
from rlcredit.tasks.prompt_order import PromptOrder
from rlcredit.tasks.reference_checks import (
    find_reference_faults,
    find_unreadable_references,
    suggest_reference_remedy,
    write_reference_warning,
    write_unreadable_warning,
)
from rlcredit.tasks.task_files import read_task
from rlcredit.verification.answer_formats import MARKED_FORMATS, AnswerFormat
from rlcredit.verification.reward_calls import RewardCall
from rlcredit.verification.reward_functions import RewardFunction, RewardSum, read_reward_functions
from rlcredit.verification.rewards import Scores, require_verdicts
from rlcredit.verification.user_verifier import UserVerifier, VerifierFunction
from rlcredit.verification.verifiers import (
    MathVerifier,
    Verdict,
    make_verdict,
    require_known_formats,
    require_sandbox,
)


@dataclass
class PromptBatch:
    """A batch of questions.

    Attributes:
        numbers: Numbers of the examples in their set; they determine the sampling noise.
        questions: Conversations that the policy is asked, P of them.
        examples: Same P examples, for the verifier.
        tools: Schemas of the tools of the environment that answers, if it has any; None without an environment.

    """

    numbers: list[int]
    questions: list[Conversation]
    examples: list[Example]
    tools: Tools | None = None

    def slice_batch(self, start: int, size: int) -> "PromptBatch":
        """Return a slice of the batch."""
        rows = slice(start, start + size)
        return PromptBatch(self.numbers[rows], self.questions[rows], self.examples[rows], self.tools)


def pick_best_verdict(verdicts: Sequence[Verdict]) -> Verdict:
    """Return the best of a completion's verdicts, one by each accepted answer.

    Example:
        >>> pick_best_verdict([Verdict.WRONG, Verdict.RIGHT]), pick_best_verdict([Verdict.UNJUDGED, Verdict.WRONG])
        (<Verdict.RIGHT: 'right'>, <Verdict.UNJUDGED: 'could not judge'>)

    """
    return next((best for best in (Verdict.RIGHT, Verdict.UNJUDGED) if best in verdicts), verdicts[0])


def pick_best_score(scores: Sequence[float | None]) -> float | None:
    """Return the best of a completion's scores, one by each accepted answer; None if none is known.

    Example:
        >>> pick_best_score([0.3, None, 0.7]), pick_best_score([None])
        (0.7, None)

    """
    return max((score for score in scores if score is not None), default=None)


def score_verdict(verdict: Verdict) -> float | None:
    """Return one for right, zero for wrong, None where the verifier could not tell."""
    return None if verdict is Verdict.UNJUDGED else float(verdict is Verdict.RIGHT)


def require_positive(name: str, value: int) -> None:
    """Refuse a number below one, and name its setting."""
    if value < 1:
        raise ValueError(f"{name}: expected a number from 1 on, got {value}.")


class Task(LightningDataModule):
    """Questions for training, and held-out questions disjoint from them.

    Args:
        prompts_per_step: Prompts per step, P, over all processes.
        validation_size: Number of held-out questions used; all of them if None; only those of ``held_out`` if 0.
        validation_batch: Number of questions answered at a time in validation, per process.
        instruction: Text that the policy reads; ``{question}`` stands for the question.
        seed: Seed of the order; the questions themselves do not depend on it.
        unsafe_scorers: Whether verifiers may evaluate answers even where the system cannot lock the processes that do.
            Where it can (Linux), they are always locked, but for a verifier of one's own with ``locked: false``.
        verify_budget: Processor seconds that a batch may lose to slow answers, beyond a tenth of a second each. Slow
            answers share them, and what has had its share is wrong unless its reference alone takes as long; see
            :class:`~rlcredit.verification.worker_pool.RequestBatch`.
        answer_formats: Formats in which a completion may state its answer, the most binding first: ``boxed``, ``tag``,
            ``phrase``, ``hashes``, ``label``, and ``number`` and ``whole``, which count only where they are named; see
            :func:`~rlcredit.verification.answer_formats.find_final_answer`. An answer in another of the first five is
            not judged, and shows in ``train/unjudged``; a completion without any shows in ``train/no_answer``.
        tolerance: How far an answer that is a number may lie from its reference, as a share of it; 0 is exact.
        verifier: Dotted path of a function ``(completion: str, answer: str, metadata: dict) -> bool | float``, or of a
            class whose objects are called so, that judges instead, formats and tolerance left to it; see
            :class:`~rlcredit.verification.user_verifier.UserVerifier`. It runs in locked processes; ``{function: ...,
            locked: false}`` lifts that. The task's own verifier if None.
        rewards: Dotted path of a reward function ``(prompts, completions, **columns) -> list[float | None]``, as TRL
            calls them; or a list of such paths, and of ``{function: ..., weight: ..., locked: ..., seconds: ...}``,
            whose weighted sum is the reward. ``verifier`` in the list is the score of whatever judges the task. If
            None, rewards are one for right and zero for wrong; see
            :class:`~rlcredit.verification.reward_functions.RewardSum`.
        solved_at: Reward from which a completion is right; for a verifier that returns numbers, the score.
        environment: What answers the policy turn by turn, as in ``Corridor(rho=0.25)``; every episode gets a copy. The
            reward is then the sum of those it gives; of an environment that gives none, the last turn is judged as a
            completion is. None for questions that are answered once.
        max_turns: Most turns of an episode; it then ends as it stands.
        turn_tokens: Most tokens of a turn; as many as are left of ``model.sampling.max_tokens`` if None, which counts
            what the environment says, too.
        held_out: Further held-out questions: names, and the task files that they are from. Each set is asked and judged
            as its own file says, and reported as ``val/<name>/pass_at_1`` and so on.
        held_out_completions: Completions per held-out question of this task; ``model.validation.completions`` if None.
        held_out_k: Value of k in the ``pass_at_k`` of its held-out questions; ``model.pass_k`` if None.
        system: System prompt; what the chat template does without one if None.
        shots: Questions with their answers, shown before every question.

    """

    def __init__(
        self,
        prompts_per_step: int = 8,
        validation_size: int | None = 512,
        validation_batch: int = 64,
        instruction: str = "{question}",
        seed: int = 0,
        unsafe_scorers: bool = False,
        verify_budget: float = 10.0,
        answer_formats: tuple[AnswerFormat, ...] = MARKED_FORMATS,
        held_out: dict[str, str] | None = None,
        held_out_completions: int | None = None,
        held_out_k: int | None = None,
        system: str | None = None,
        shots: tuple[Shot, ...] = (),
        tolerance: float = 0.0,
        verifier: VerifierFunction | str | None = None,
        rewards: list[RewardFunction | str] | RewardFunction | str | None = None,
        solved_at: float = 1.0,
        environment: Environment | None = None,
        max_turns: int = 8,
        turn_tokens: int | None = None,
    ) -> None:
        super().__init__()
        self.refuse_instruction(instruction)
        require_positive("data.init_args.max_turns", max_turns)
        require_positive("data.init_args.turn_tokens", 1 if turn_tokens is None else turn_tokens)
        self.turn_limits = TurnLimits(max_turns, turn_tokens)
        self.environment = environment
        # What episodes get copies of, where the class says that they run.
        self.prototype = environment and lock_environment(environment, unsafe_scorers, verify_budget)
        require_positive("data.init_args.prompts_per_step", prompts_per_step)
        require_positive("data.init_args.validation_batch", validation_batch)
        if validation_size or not held_out:
            require_positive("data.init_args.validation_size", 1 if validation_size is None else validation_size)
        for name, number in {"held_out_completions": held_out_completions, "held_out_k": held_out_k}.items():
            require_positive(f"data.init_args.{name}", 1 if number is None else number)
        self.prompts_per_step = prompts_per_step
        self.validation_size = validation_size
        self.validation_batch = validation_batch
        self.instruction, self.system, self.shots = instruction, system, list(shots)
        self.seed = seed
        if not verify_budget > 0:
            raise ValueError(f"data.init_args.verify_budget must be positive, got {verify_budget} seconds.")
        self.unsafe_scorers, self.verify_budget = unsafe_scorers, verify_budget
        self.answer_formats = require_known_formats(answer_formats)
        self.tolerance = tolerance
        self.verifier = MathVerifier(
            budget=verify_budget, unsafe=unsafe_scorers, formats=self.answer_formats, tolerance=tolerance
        )
        self.solved_at, self.rewards = solved_at, None
        self.own = None if verifier is None else UserVerifier(verifier, verify_budget, unsafe_scorers)
        self.reward_sum: RewardSum | None = None
        if rewards is not None:
            functions = read_reward_functions(rewards)
            self.reward_sum = RewardSum(functions, solved_at, verify_budget, unsafe_scorers)
            self.rewards = str(self.reward_sum)  # among the parameters of a run
        self.train_set: list[Example] = []
        self.held_out_set: list[Example] = []
        self.held_out, self.held_out_completions, self.held_out_k = held_out, held_out_completions, held_out_k
        self.others = {name: self._read_other_task(name, path) for name, path in (held_out or {}).items()}

    @abstractmethod
    def examples(self) -> QuestionSets:
        """Return training and held-out examples, disjoint by question."""

    def judge(self, completions: Sequence[str], examples: Sequence[Example]) -> list[Verdict]:
        """Judge each completion against its example; right is what equals one of the accepted answers."""
        return [verdict for verdict, _ in self.judge_with_scores(completions, examples)]

    def judge_with_scores(
        self, completions: Sequence[str], examples: Sequence[Example]
    ) -> list[tuple[Verdict, float | None]]:
        """Return verdict and score of each completion, by the best of the accepted answers.

        Scores other than one and zero come from verifiers of one's own that return numbers, and from scorers.
        """
        calls = [
            (completion, answer, example.metadata)
            for completion, example in zip(completions, examples, strict=True)
            for answer in example.accepted_answers
        ]
        if self.own is not None:
            scores = self.own.score_completions(calls)
            verdicts = [make_verdict(score, self.solved_at) for score in scores]
        else:
            verdicts = self.verifier.judge([completion for completion, *_ in calls], [answer for _, answer, _ in calls])
            scores = list(map(score_verdict, verdicts))
        judgements = iter(zip(verdicts, scores, strict=True))
        results = (zip(*islice(judgements, len(example.accepted_answers)), strict=True) for example in examples)
        return [(pick_best_verdict(verdicts), pick_best_score(scores)) for verdicts, scores in results]

    def score(self, completions: Sequence[str], examples: Sequence[Example]) -> Scores:
        """Return the verdicts, and the rewards if these are real numbers.

        Args:
            completions: Completions as the verifier reads them.
            examples: Example of each; the completions of a prompt are neighbours with one and the same example.

        Raises:
            RunStopped: a ``judge`` of one's own did not return verdicts.

        """
        if self.reward_sum is None:
            return Scores(require_verdicts(self.judge(completions, examples), len(completions), self))
        judgements: list[tuple[Verdict, float | None]] = []
        if self.reward_sum.takes_verifier and type(self).judge is Task.judge:
            judgements = self.judge_with_scores(completions, examples)
        elif self.reward_sum.takes_verifier:
            verdicts = require_verdicts(self.judge(completions, examples), len(completions), self)
            judgements = [(verdict, score_verdict(verdict)) for verdict in verdicts]
        pairs = groupby(zip(completions, examples, strict=True), key=lambda pair: id(pair[1]))
        groups = [list(group) for _, group in pairs]
        calls = [self._make_reward_call(group[0][1], [completion for completion, _ in group]) for group in groups]
        return self.reward_sum.score(calls, judgements)

    def open_episodes(self, policy: Policy, examples: Sequence[Example]) -> EpisodeTable | None:
        """Return an episode for each of some examples, begun; None where questions are answered once."""
        if self.prototype is None:
            return None
        return EpisodeTable(
            self.prototype, examples, choose_turn_format(policy, self.prototype.tools), self.turn_limits
        )

    def score_episodes(self, table: EpisodeTable, examples: Sequence[Example]) -> Scores:
        """Return the verdicts on episodes, and the rewards if these are real numbers.

        The sum of its rewards decides about an episode; where an environment gives none, and the task can judge a text,
        its last turn does.

        Raises:
            RunStopped: an episode earned another reward than one and zero, which the environment does not declare.

        """
        table.report_faults()
        if self.judges_texts and not (table.has_rewards or table.is_graded):
            scores = self.score(["".join(episode.actions[-1:]) for episode in table.episodes], examples)
            is_sound = torch.tensor([episode.fault is None for episode in table.episodes])
            pairs = zip(scores.verdicts, is_sound.tolist(), strict=True)
            verdicts = [verdict if sound else Verdict.UNJUDGED for verdict, sound in pairs]
            rewards = None if scores.rewards is None else scores.rewards.where(is_sound, math.nan)
            return scores._replace(verdicts=verdicts, rewards=rewards)
        rewards = [None if episode.fault else episode.reward for episode in table.episodes]
        verdicts = [make_verdict(reward, self.solved_at) for reward in rewards]
        if table.is_graded:
            return Scores(verdicts, torch.tensor([math.nan if reward is None else reward for reward in rewards]))
        if strange := [reward for reward in rewards if reward not in (None, 0, 1)]:
            raise RunStopped(
                f"data.init_args.environment: an episode of {type(self.environment).__name__} "
                f"earned {strange[0]:g}, which is "
                "neither one for right nor zero for wrong. Write `is_graded = True` into its class."
            )
        return Scores(verdicts)

    def _make_reward_call(self, example: Example, completions: Sequence[str]) -> RewardCall:
        """Return the call of reward functions: messages for a chat, texts where the question is one text."""
        conversation = self.build_conversation(example)
        is_chat = len(conversation) > 1 or not isinstance(example.question, str)

        def write(completion: str) -> Any:
            return [{"role": "assistant", "content": completion}] if is_chat else completion

        return RewardCall(
            [dict(turn) for turn in conversation] if is_chat else conversation[0]["content"],  # pyright: ignore[reportArgumentType]
            [write(completion) for completion in completions],
            example.list_columns(),
            write(example.answer) if example.answer else None,
            (self.trainer.global_step, self.trainer.max_steps) if self.trainer else (0, 0),
        )

    def refuse_instruction(self, instruction: str) -> None:
        """Refuse an instruction without a place for the question."""
        if "{question}" not in instruction:
            raise ValueError(f"data.init_args.instruction must contain {{question}}, got {instruction!r}.")

    def locate_example(self, example: Example) -> str:
        """Return the place of a question, for messages."""
        return f"the question {example.text!r:.60}"

    def suggest_shortening(self, characters: int, left_out: int) -> str:
        """Return the repair for questions that are too long for a policy.

        Args:
            characters: Length in characters of the longest question that is short enough.
            left_out: Number of questions that are longer.

        """
        return "Leave out long questions, or shorten data.init_args.instruction, system or shots."

    @property
    def has_real_rewards(self) -> bool:
        """Whether rewards are real numbers, and not one for right and zero for wrong."""
        return self.reward_sum is not None or (self.environment is not None and self.environment.is_graded)

    @property
    def compares_answers(self) -> bool:
        """Whether the verifier that comes with every task decides anything, so that questions need answers."""
        cls = type(self)
        is_used = self.own is None and (self.reward_sum is None or self.reward_sum.takes_verifier)
        return is_used and cls.judge is Task.judge and cls.judge_with_scores is Task.judge_with_scores

    @property
    def judges_texts(self) -> bool:
        """Whether the task can judge a completion by its text."""
        cls = type(self)
        is_own = cls.judge is not Task.judge or cls.judge_with_scores is not Task.judge_with_scores
        return is_own or self.compares_answers or self.has_user_functions

    @property
    def has_training(self) -> bool:
        """Whether the task has questions to train on."""
        return True

    @property
    def held_out_size(self) -> int | None:
        """Number of held-out questions; None before they have been read."""
        return len(self.held_out_set) or None

    def start_verifier(self) -> None:
        """Start the judge in the background, so that no step waits for its imports; does nothing by default."""

    def held_out_examples(self) -> list[Example]:
        """Return the held-out examples, read without the others if the task can."""
        return self.examples()[1]

    @staticmethod
    def read(path: str | Path, /, **overrides: Any) -> "Task":
        """Return the task that a file describes; see :func:`rlcredit.tasks.task_files.read_task`."""
        return read_task(path, Task, **overrides)

    def _read_other_task(self, name: str, path: str) -> "Task":
        """Return the task whose held-out questions are asked under a name."""
        validate_folder_name("data.init_args.held_out", name)
        try:
            return self.read(path, unsafe_scorers=self.unsafe_scorers, held_out=None)
        except ValueError as error:
            raise ValueError(f"data.init_args.held_out.{name}: {error}") from None

    @property
    def held_out_sets(self) -> list[HeldOutSet]:
        """Held-out sets of the validation, one data loader each: the task's own questions and those of other tasks."""
        sets = [HeldOutSet(name, number, task) for number, (name, task) in enumerate({"": self, **self.others}.items())]
        return sets[1:] if self.validation_size == 0 else sets

    def setup(self, stage: str = "fit") -> None:
        """Read the examples, once; a malformed one fails here, before any weight is loaded.

        Args:
            stage: ``fit``; in any other only held-out questions are read.

        Raises:
            ValueError: the task has nothing to train on, no question that is held out, or a verifier that this system
                cannot lock in.

        """
        old_count = len(self.train_set) + len(self.held_out_set)
        if stage == "fit" and not self.train_set:
            self.train_set, self.held_out_set = self.examples()
            if not self.train_set:
                raise ValueError(
                    "data: all questions of this task are held out, so that nothing can be trained on them. Name it in "
                    "data.init_args.held_out of another task, or use `rlcredit validate`."
                )
            PromptOrder(len(self.train_set), self.prompts_per_step, self.seed, step=lambda: 0)
        elif not self.held_out_set and self.validation_size != 0:
            self.held_out_set = self.held_out_examples()
        if self.validation_size == 0:
            self.held_out_set = []
        for example in (*self.train_set, *self.held_out_set):
            if not isinstance(example.question, str):
                self.build_conversation(example)
        self._try_user_functions((self.train_set or self.held_out_set)[:2])
        if self.prototype is not None:
            for example in (self.train_set or self.held_out_set)[:1]:
                refuse_changing_environment(self.prototype, example)
        if self.compares_answers:
            require_sandbox("math-verify, which compares answers that are no numbers,", self.unsafe_scorers)
        if len(self.train_set) + len(self.held_out_set) > old_count:
            self.check_references()
        for name, task in self.others.items():
            task.setup("validate")
            self._warn_of_trained(name, task)

    def _try_user_functions(self, examples: Sequence[Example]) -> None:
        """Try a verifier and rewards of one's own on some questions, before any weight is loaded."""
        if self.own is not None and examples:
            self.own.start(*((example.answer, example.metadata) for example in examples))
        if self.reward_sum is not None and examples:
            self.reward_sum.start(*(self._make_reward_call(example, []) for example in examples))

    @property
    def has_user_functions(self) -> bool:
        """Whether a function of one's own judges or rewards."""
        return self.own is not None or (self.reward_sum is not None and bool(self.reward_sum.asked))

    def _warn_of_trained(self, name: str, task: "Task") -> None:
        """Warn about training questions that another held-out set asks too."""
        _, repeats = separate_alike_questions(self.train_set, task.held_out_set)
        if repeats:
            rank_zero_only(warn_once)(
                f"data.init_args.held_out.{name} asks {len(repeats):,} of the "
                f"{len(self.train_set):,} training questions, or "
                f"asks them in other spaces, case or punctuation, first: {self.locate_example(repeats[0])}. "
                "It measures memory in part."
            )

    def check_references(self) -> None:
        """Warn about references that are not right against themselves, or unreadable; custom judges are not asked."""
        if self.compares_answers:
            examples, answer_format = [*self.train_set, *self.held_out_set], self.answer_formats[0]
            faults = list(find_reference_faults(examples, answer_format, self.judge))
            if faults:
                warning = write_reference_warning(faults, len(examples), answer_format, self.locate_example)
                rank_zero_only(print_message)(f"{warning} {suggest_reference_remedy(faults)}")
            faulty = {id(example) for example, _ in faults}
            sound = [example for example in examples if id(example) not in faulty]
            unreadable, count = find_unreadable_references(sound, answer_format, self.judge)
            if unreadable:
                rank_zero_only(print_message)(write_unreadable_warning(unreadable, count, self.locate_example))

    def build_conversation(self, example: Example) -> Conversation:
        """Return the conversation: system prompt, shots, and the question inside the instruction."""
        return build_conversation(self.find_question(example), self.instruction, self.system, self.shots)

    @property
    def tools(self) -> Tools | None:
        """Schemas of the environment's tools; None without an environment."""
        return None if self.environment is None else self.environment.tools

    def find_question(self, example: Example) -> str | Conversation:
        """Return the question, or with what an environment begins in its place."""
        if self.prototype is None:
            return example.question
        return open_episode(self.prototype, example).opening or example.question

    def train_dataloader(self) -> DataLoader[PromptBatch]:
        """Yield the prompts of every step, continued at the trainer's global step.

        As many times P as the module may ask for one rollout, and again for each of its updates.
        """
        self.start_verifier()
        order = self._order_prompts()
        return DataLoader(self._number_examples(self.train_set), batch_sampler=order, collate_fn=self._collate_prompts)  # pyright: ignore[reportArgumentType]

    def draw_prompts(self, step: int) -> PromptBatch:
        """Return the prompts that :meth:`train_dataloader` yields for a step, before it is reached."""
        numbers = self._order_prompts().draw_numbers(step)
        return self._collate_prompts([(number, self.train_set[number]) for number in numbers])

    def _order_prompts(self) -> PromptOrder:
        """Return the order of this process's prompts."""
        assert self.trainer is not None
        trainer, module = self.trainer, self.trainer.lightning_module
        rounds, repeats = int(module.rounds), int(module.updates_per_rollout)  # pyright: ignore[reportArgumentType]
        return PromptOrder(
            len(self.train_set),
            self.prompts_per_step * rounds,
            self.seed,
            step=lambda: trainer.global_step,
            repeats=repeats,
            rank=trainer.global_rank,
            world=trainer.world_size,
        )

    def val_dataloader(self) -> DataLoader[PromptBatch] | list[DataLoader[PromptBatch]]:
        """Yield this process's share of the held-out questions, with one loader per set."""
        loaders = [self._held_out_loader(held_out_set.task) for held_out_set in self.held_out_sets]
        return loaders[0] if len(loaders) == 1 else loaders

    def _held_out_loader(self, task: "Task") -> DataLoader[PromptBatch]:
        assert self.trainer is not None
        task.start_verifier()
        share = task._number_examples(task.held_out_set)[self.trainer.global_rank :: self.trainer.world_size]
        return DataLoader(share, batch_size=task.validation_batch, collate_fn=task._collate_prompts)  # pyright: ignore[reportArgumentType]

    def held_out_prompts(self, start: int, size: int) -> PromptBatch:
        """Return a slice of the held-out questions, by their numbers in validation."""
        return self._collate_prompts(self._number_examples(self.held_out_set)[start : start + size])

    @staticmethod
    def _number_examples(examples: list[Example]) -> list[tuple[int, Example]]:
        return list(enumerate(examples))

    def _collate_prompts(self, batch: list[tuple[int, Example]]) -> PromptBatch:
        numbers, examples = (list(column) for column in zip(*batch, strict=True))
        questions = [self.build_conversation(example) for example in examples]
        return PromptBatch(numbers, questions, examples, self.tools)
