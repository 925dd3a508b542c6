"""Answers of a policy to a few questions with the numbers of each token; no trainer is needed."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import compress

import torch

from rlcredit.decoding.engine import Engine
from rlcredit.decoding.sampling import Sampling
from rlcredit.episodes.episode_table import EpisodeTable
from rlcredit.pages.turn_blocks import TurnBlock
from rlcredit.policy.chat_turns import Conversation
from rlcredit.policy.policy import Policy
from rlcredit.training.scored_samples import list_episode_blocks, sample_with_scores
from rlcredit.verification.verifiers import Verdict


@dataclass
class Completion:
    """One completion of a prompt.

    Attributes:
        tokens: Decoded text of each sampled token, T of them; empty for one without text of its own, such as the end.
        logprobs: Log-probability of each token under the tempered policy, in nats.
        entropy: Entropy of the distribution each token was drawn from, in nats.
        truncated: Whether the completion was cut before its end.
        answer: Answer that the completion states, None if it states none.
        reference: Reference answer that it is compared with, None without one.
        verdict: Verdict of the verifier, None without a reference.
        turns: Turns of the episode that it is; none where a question is answered once.

    """

    tokens: list[str]
    logprobs: list[float]
    entropy: list[float]
    truncated: bool
    answer: str | None = None
    reference: str | None = None
    verdict: Verdict | None = None
    turns: list[TurnBlock] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Text of the completion, without special tokens."""
        return "".join(self.tokens)

    @property
    def reward(self) -> float:
        """Sum of the rewards of an episode."""
        return sum(block.reward or 0.0 for block in self.turns)


@torch.no_grad()
def sample_completions(
    policy: Policy,
    engine: Engine,
    conversations: Sequence[Conversation],
    numbers: Sequence[int],
    sampling: Sampling,
    seed: int,
    episodes: EpisodeTable | None = None,
) -> list[list[Completion]]:
    """Sample ``sampling.completions`` answers to every conversation, or play as many episodes.

    Args:
        policy: Policy, loaded.
        engine: Engine that decodes.
        conversations: Conversations, P of them.
        numbers: Number of each conversation, by which its sampling noise is chosen.
        sampling: How completions are drawn.
        seed: Seed of the sampling noise.
        episodes: Episodes of all completions, begun; None where questions are answered once.

    Returns:
        P lists of G completions, none of them judged.

    """
    tools = None if episodes is None else episodes.tools
    prompt_ids = policy.encode_questions(conversations, tools).to(policy.device)
    samples = sample_with_scores(engine, policy, prompt_ids, numbers, sampling, seed=seed, step=0, episodes=episodes)
    pieces = policy.decode_pieces(samples.completion_ids, samples.mask)
    turns, masks = list_episode_blocks(pieces, samples, episodes), samples.mask.tolist()
    facts = zip(samples.logprobs.tolist(), samples.entropy.tolist(), samples.truncated.tolist(), strict=True)
    rows = [
        Completion(
            list(compress(tokens, mask)),
            list(compress(logprobs, mask)),
            list(compress(entropy, mask)),
            is_truncated,
            turns=blocks,
        )
        for tokens, mask, blocks, (logprobs, entropy, is_truncated) in zip(pieces, masks, turns, facts, strict=True)
    ]
    group = sampling.completions
    return [rows[start : start + group] for start in range(0, len(rows), group)]
