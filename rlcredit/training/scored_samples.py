"""Completions or episodes of any engine, scored where it cannot tell, and judged; no trainer is needed."""

import contextlib
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from rlcredit.base.exit_status import PolicyMismatch
from rlcredit.decoding.engine import Engine
from rlcredit.decoding.sampling import Samples, Sampling
from rlcredit.episodes.episode_table import EpisodeTable
from rlcredit.pages.turn_blocks import TurnBlock, list_turn_blocks
from rlcredit.policy.policy import Policy
from rlcredit.tasks.example import Example
from rlcredit.tasks.task import Task
from rlcredit.training.micro_batches import MicroBatches
from rlcredit.training.nan_and_mismatch import rms_difference
from rlcredit.training.scoring import RolloutScorer
from rlcredit.verification.answer_formats import find_final_answer
from rlcredit.verification.rewards import Scores

EXACT_TOLERANCE = 0.01
"""Tolerated distance of an engine's log-probabilities in float32, in nats: ten times a bound that no single token
exceeds. The embedded policy shows 4e-7, and a small GPT-2 with a dropout of a tenth 0.07."""

ROUNDED_TOLERANCE = 0.2
"""In fewer bits, or with quantized weights: twice the rounding error of the worst token, as if every token had it.
The embedded policy shows 0.005 in bfloat16. Only gross mistakes are found: another temperature, other weights."""


def choose_tolerance(policy: Policy) -> float:
    """Return the tolerated distance of another engine's log-probabilities, as a root mean square, in nats."""
    exact = policy.dtype == "float32" and policy.quantization is None
    return EXACT_TOLERANCE if exact and torch.get_float32_matmul_precision() == "highest" else ROUNDED_TOLERANCE


@torch.no_grad()
def sample_with_scores(
    engine: Engine,
    policy: Policy,
    prompt_ids: Tensor,
    prompts: Sequence[int],
    sampling: Sampling,
    *,
    seed: int,
    step: int,
    episodes: EpisodeTable | None = None,
    **asked: Any,
) -> Samples:
    """Answer every prompt; an engine that is not exact, or tells no entropy, has its samples scored by the policy.

    Arguments are those of :meth:`rlcredit.decoding.engine.Engine.sample`; where there are episodes, these are played.
    ``asked`` is what else the engine is asked for.

    Raises:
        PolicyMismatch: the engine has drawn from another policy.

    """
    options = {**asked} if episodes is None else {**asked, "episodes": episodes}
    samples = engine.sample(policy, prompt_ids, prompts, sampling, seed=seed, step=step, **options)
    if engine.exact and samples.entropy is not None:
        return samples
    whole = MicroBatches()
    scorer = RolloutScorer(policy, sampling.temperature, whole, whole, keeps_entropy_graph=False)
    row_prompts = prompt_ids.repeat_interleave(sampling.completions, 0)
    scores = scorer.score_without_graph(
        row_prompts, samples.completion_ids, samples.mask, sampling.temperature, contextlib.nullcontext
    )
    scored_samples = samples.replace_scores(scores)
    refuse_distant_engine(engine, policy, scored_samples)
    return scored_samples


def refuse_distant_engine(engine: Engine, policy: Policy, samples: Samples) -> None:
    """Refuse samples whose log-probabilities are not the policy's.

    Args:
        engine: Engine that has drawn them.
        policy: Policy that was asked for.
        samples: Samples, scored by both.

    Raises:
        PolicyMismatch: they lie further away than rounding explains.

    """
    assert samples.engine_logprobs is not None
    distance = rms_difference(samples.engine_logprobs, samples.logprobs, samples.mask)
    if not distance <= choose_tolerance(policy):
        raise PolicyMismatch(
            f"--engine: {type(engine).__name__} is {distance:.2g} nats away from the log-probabilities of "
            f"{policy.path} (root mean square), and {choose_tolerance(policy):g} is allowed. It draws with other "
            "weights, at another temperature or in another precision; vLLM wants --logprobs-mode processed_logprobs."
        )


def judge_samples(
    task: Task, policy: Policy, texts: Sequence[str], examples: Sequence[Example], episodes: EpisodeTable | None = None
) -> Scores:
    """Return verdicts and rewards of completions, or of the episodes that they are.

    Args:
        task: Task that judges.
        policy: Policy that has drawn them.
        texts: Text of each completion.
        examples: Example of each; the completions of a prompt are neighbours with one and the same example.
        episodes: Episodes, played; None where questions are answered once.

    """
    if episodes is not None:
        return task.score_episodes(episodes, examples)
    return task.score(policy.prepend_thinking_mark(list(texts)), examples)


def find_stated_answers(
    task: Task, policy: Policy, texts: Sequence[str], episodes: EpisodeTable | None = None
) -> list[str | None]:
    """Return the answer that each completion states, None where it states none; arguments as in :func:`judge_samples`.

    Of an episode that earns no rewards, the last turn states it.
    """
    judged_texts = policy.prepend_thinking_mark(list(texts))
    if episodes is not None:
        judged_texts = ["" if item.has_rewards else "".join(item.actions[-1:]) for item in episodes.episodes]
    return [find_final_answer(text, task.answer_formats) for text in judged_texts]


def list_episode_blocks(
    pieces: Sequence[Sequence[str]], samples: Samples, episodes: EpisodeTable | None
) -> list[list[TurnBlock]]:
    """Return the turns of each row, with what its environment answered; none where questions are answered once.

    Args:
        pieces: Text of each token that was sampled or read, B lists.
        samples: Samples, B rows.
        episodes: Episodes, played.

    """
    if episodes is None or samples.turn is None:
        return [[] for _ in pieces]
    rows = []
    for texts, numbers, episode in zip(pieces, samples.turn.tolist(), episodes.episodes, strict=True):
        blocks = list_turn_blocks(numbers, texts, [turn.reward for turn in episode.turns])
        answers = [turn.text for turn in episode.turns]
        rows.append([block._replace(answer=text) for block, text in zip(blocks, [*answers, ""], strict=False)])
    return rows
