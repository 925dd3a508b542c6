"""Answering the questions of an evaluation batch by batch, each stored before the next."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

import torch

from rlcredit.base.exit_status import StorageUnavailable
from rlcredit.base.messages import print_message
from rlcredit.decoding.engine import Engine
from rlcredit.decoding.in_process import InProcessEngine
from rlcredit.decoding.noise import VALIDATION
from rlcredit.decoding.sampling import Samples, Sampling
from rlcredit.episodes.episode_table import EpisodeTable
from rlcredit.evaluation.evaluated_policies import EvaluatedPolicy
from rlcredit.evaluation.evaluation_folder import Answer, EvaluationFolder, PolicyTask
from rlcredit.evaluation.evaluation_request import EvaluationRequest, SamplingParameters
from rlcredit.evaluation.question_sets import QuestionSet
from rlcredit.pages.turn_blocks import write_messages
from rlcredit.policy.adapters import install_adapter, load_adapter_weights
from rlcredit.policy.policy import Policy
from rlcredit.record.journal import Journal
from rlcredit.training.collector import repeat_examples
from rlcredit.training.scored_samples import (
    find_stated_answers,
    judge_samples,
    list_episode_blocks,
    sample_with_scores,
)

PROGRESS_INTERVAL = 10.0
"""Seconds between two lines that say how far it is."""


@dataclass
class PolicyLoader:
    """Loader of policies; adapters are exchanged as long as the model stays the same.

    Args:
        device: Device that the policies run on.

    """

    device: torch.device
    policy: Policy | None = None
    settings: Any = None

    def load_policy(self, evaluated_policy: EvaluatedPolicy) -> Policy:
        """Return an evaluated policy, loaded.

        Raises:
            ValueError: the adapter is not of the model.

        """
        if self.policy is None or self.settings != evaluated_policy.settings:
            self.policy = None  # before the next one takes memory
            policy = evaluated_policy.build_policy()
            policy.load()
            self.policy, self.settings = policy.to(self.device), evaluated_policy.settings
        install_adapter(
            self.policy, load_adapter_weights(evaluated_policy.adapter) if evaluated_policy.adapter else None
        )
        return self.policy


@dataclass
class AnsweringProgress:
    """Progress of an evaluation, printed now and then.

    Args:
        total: Number of completions.
        done: Number of completions that were stored before.

    """

    total: int
    done: int
    drawn: int = 0
    tokens: int = 0
    started: float = field(default_factory=time.monotonic)
    told: float = field(default_factory=time.monotonic)

    def count_batch(self, place: PolicyTask, answers: Sequence[Answer]) -> None:
        """Count the answers of a batch."""
        self.done, self.drawn = self.done + len(answers), self.drawn + len(answers)
        self.tokens += sum(answer["tokens"] for answer in answers)
        if (clock := time.monotonic()) - self.told < PROGRESS_INTERVAL:
            return
        self.told, duration = clock, clock - self.started
        seconds_left = duration / self.drawn * (self.total - self.done)
        print_message(
            f"{self.done:,} of {self.total:,} completions, at {place.policy} on {place.task}; "
            f"{self.tokens / duration:,.0f} tokens/s, about {seconds_left / 60:.0f} min left"
        )


def answer_remaining_questions(
    request: EvaluationRequest, folder: EvaluationFolder, device: torch.device, batch_size: int
) -> None:
    """Answer the questions that have not been answered yet.

    Args:
        request: Evaluation that is requested.
        folder: Folder in which the evaluation has begun.
        device: Device that the policies run on.
        batch_size: Completions at a time.

    Raises:
        ValueError: an adapter is not of its model.
        PolicyMismatch: the engine draws from another policy.
        NoStorage: the disk does not take the answers.

    """
    stored_answers, sampling = folder.read_answers(), request.sampling
    places = [
        (evaluated_policy, question_set) for evaluated_policy in request.policies for question_set in request.sets
    ]
    count = sum(map(len, stored_answers.values()))
    progress = AnsweringProgress(sampling.completions * sum(question_set.size for _, question_set in places), count)
    if count == progress.total:
        return
    if count:
        print_message(f"{count:,} of {progress.total:,} completions lie in {folder.path}; it goes on after them.")
    journal, loader, engine = folder.open_journal(), PolicyLoader(device), request.engine
    stride = max(1, batch_size // sampling.completions)
    for evaluated_policy, question_set in places:
        place = PolicyTask(evaluated_policy.name, question_set.name)
        offset = len(stored_answers.get(place, ())) // sampling.completions
        if offset == question_set.size:
            continue
        question_set.task.start_verifier()
        policy = loader.load_policy(evaluated_policy)
        for start in range(offset, question_set.size, stride):
            answers = answer_question_batch(
                policy, engine, question_set, start, min(stride, question_set.size - start), sampling
            )
            _append_answers(journal, place, answers)
            progress.count_batch(place, answers)


def answer_question_batch(
    policy: Policy, engine: Engine, questions: QuestionSet, start: int, size: int, sampling: SamplingParameters
) -> list[Answer]:
    """Return judged answers to consecutive questions, grouped by question.

    The noise is that of validation in training, a function of seed, question and sample alone: every policy that is
    asked gets the same.

    Args:
        policy: Policy, loaded.
        engine: Engine that decodes the completions.
        questions: Questions of a task.
        start: Number of the first question.
        size: Number of questions.
        sampling: Way of drawing completions.

    """
    prompts = questions.task.held_out_prompts(start, size)
    prompt_ids = policy.encode_questions(prompts.questions, prompts.tools).to(policy.device)
    samples = list(range(sampling.completions)) * size
    numbers = [number for number in prompts.numbers for _ in range(sampling.completions)]
    examples, task = repeat_examples(prompts, sampling.completions), questions.task
    episodes = task.open_episodes(policy, examples)
    engine_sampling = Sampling(sampling.completions, sampling.max_tokens, sampling.temperature)
    options = {"token_filter": sampling.token_filter} if isinstance(engine, InProcessEngine) else {}
    request = engine, policy, prompt_ids, prompts.numbers, engine_sampling
    batch_samples = sample_with_scores(*request, seed=sampling.seed, step=VALIDATION, episodes=episodes, **options)
    texts = policy.decode_texts(batch_samples.completion_ids, batch_samples.mask)
    verdicts = judge_samples(task, policy, texts, examples, episodes).verdicts
    answers = find_stated_answers(task, policy, texts, episodes)
    facts = zip(numbers, samples, texts, answers, verdicts, _describe_completions(batch_samples), strict=True)
    records = [
        {
            "question": number,
            "sample": sample,
            "completion": text,
            "answer": answer,
            "verdict": verdict.name.lower(),
            **fact,
        }
        for number, sample, text, answer, verdict, fact in facts
    ]
    if episodes is not None:
        for record, messages in zip(records, _list_episode_messages(policy, batch_samples, episodes), strict=True):
            rewards = [message["reward"] or 0.0 for message in messages if "reward" in message]
            record |= {"messages": messages, "turns": len(rewards), "reward": sum(rewards)}
    return records


def _list_episode_messages(policy: Policy, samples: Samples, episodes: EpisodeTable) -> Iterator[list[dict[str, Any]]]:
    """Yield every episode as messages."""
    pieces = policy.decode_pieces(samples.completion_ids, samples.mask)
    rows = zip(list_episode_blocks(pieces, samples, episodes), pieces, samples.mask.tolist(), strict=True)
    for blocks, texts, mask in rows:
        yield write_messages(blocks, list(compress(texts, mask)))


def _describe_completions(samples: Samples) -> list[dict[str, Any]]:
    """Return length, truncation, log-probability and entropy of every completion."""
    lengths = samples.mask.sum(-1)
    logprobs = samples.logprobs.where(samples.mask, 0).double().sum(-1)
    entropy = samples.entropy.where(samples.mask, 0).double().sum(-1) / lengths
    columns = (lengths.tolist(), samples.truncated.tolist(), logprobs.tolist(), entropy.tolist())
    return [
        {"tokens": length, "truncated": cut, "logprob": logprob, "entropy": nats}
        for length, cut, logprob, nats in zip(*columns, strict=True)
    ]


def _append_answers(journal: Journal, place: PolicyTask, answers: Sequence[Answer]) -> None:
    journal.append({**place._asdict(), "answers": answers})
    try:
        journal.sync()
    except OSError as error:
        raise StorageUnavailable(
            f"{error} The evaluation stops here; once there is room, the same command goes on."
        ) from error
