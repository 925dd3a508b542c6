"""The interface of an engine: it answers prompts and, if it can, continues any context with given noise."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from rlcredit.decoding.episode_loop import TurnTaker
from rlcredit.decoding.noise import sampling_uniforms
from rlcredit.decoding.prefix_episodes import DrawnTurn, TurnRequest, play_by_prefix, run_at_once
from rlcredit.decoding.sampling import Samples, Sampling
from rlcredit.policy.policy import Policy
from rlcredit.policy.prompt_format import left_padded_ids


class PromptAnswerer(Protocol):
    """What answers the prompts of a rollout: an :class:`Engine`, or what stands before one."""

    exact: bool
    can_keep_hidden: bool

    def sample(
        self, policy: Policy, prompt_ids: Tensor, prompts: Sequence[int], sampling: Sampling, *, seed: int, step: int
    ) -> Samples:
        """Answer every prompt; see :meth:`Engine.sample`."""
        ...


class Engine(ABC):
    """Answers prompts; ``model.engine`` names one.

    An engine of one's own is one class in one file. It need not be the trainer: where ``exact`` is false, or entropy is
    missing from what it returns, one scoring pass of the trainer replaces both. How far the engine's log-probabilities
    were from the trainer's is measured (``train/mismatch_kl``, ``train/mismatch_max``, in nats), bounded
    (``model.sampler_tolerance``) and corrected (``model.mismatch_cap``).
    """

    exact: bool = False
    """Whether log-probabilities equal the trainer's up to rounding."""

    ahead: int = 0
    """Rollouts that are begun before the present one is used: 0, or 1 for the next one, which is then drawn with the
    weights from before the one that precedes it is used."""

    can_keep_hidden: bool = False
    """Whether ``sample`` takes ``keeps_hidden=True`` and then returns hidden states; else the trainer reads them."""

    can_play: bool = False
    """Whether ``sample`` and ``start_sampling`` take ``episodes=``, what ends and answers turns, and then play an
    episode for every completion. The noise of a token follows from the number of tokens before it in its row, too."""

    def refuse_run(self, policy: Policy, processes: int) -> None:  # noqa: B027  (most serve any)
        """Refuse a run that the engine cannot serve, before anything is loaded.

        Args:
            policy: Policy; it is not loaded.
            processes: Processes that train together.

        Raises:
            ValueError: with the repair.

        """

    @abstractmethod
    def sample(
        self, policy: Policy, prompt_ids: Tensor, prompts: Sequence[int], sampling: Sampling, *, seed: int, step: int
    ) -> Samples:
        """Answer every prompt ``sampling.completions`` times, with the policy as it is now.

        Args:
            policy: Policy, loaded; it is sampled in eval mode.
            prompt_ids: Token ids of the prompts, left-padded, shape ``(P, L)``, on the policy's device;
                ``policy.prompt_mask`` tells tokens from padding, which is -1 and has no embedding.
            prompts: Number of each prompt in its data set, P of them; with seed and step it determines the noise.
            sampling: How completions are drawn.
            seed: Seed of the run.
            step: Optimizer steps taken.

        """

    def start_sampling(
        self,
        policy: Policy,
        prompt_ids: Tensor,
        prompts: Sequence[int],
        sampling: Sampling,
        *,
        seed: int,
        step: int,
        episodes: TurnTaker | None = None,
    ) -> Callable[[], Samples]:
        """Begin to answer every prompt with the policy as it is now; it may change as soon as this returns.

        Arguments are those of :meth:`sample`. An engine that cannot answer in the background answers at once.

        Returns:
            Function that waits for the answers and returns them; it raises what went wrong. It is called once, or not
            at all where a run ends: then :meth:`close` gives up the answers.

        """
        options: dict[str, Any] = {} if episodes is None else {"episodes": episodes}
        samples = self.sample(policy, prompt_ids, prompts, sampling, seed=seed, step=step, **options)
        return lambda: samples

    def close(self) -> None:  # noqa: B027  (most hold nothing)
        """Give up answers that nobody has waited for, and release what the engine holds outside this process.

        It may be used again.
        """


class Decoder(Engine):
    """An engine that can continue any context with given noise, which an oracle needs."""

    exact = can_play = True
    decode_batch_size: int | None = None
    """Completions decoded at a time; as many as are asked for if None."""

    @abstractmethod
    def decode(
        self,
        policy: Policy,
        prompt_ids: Tensor,
        noise: Tensor,
        context_numbers: Tensor,
        temperature: float,
        limits: Tensor | None = None,
    ) -> Samples:
        """Continue contexts with given noise.

        Args:
            policy: Policy, loaded; it is sampled in eval mode.
            prompt_ids: Contexts, left-padded, shape ``(P, L)``, on the policy's device.
            noise: Uniforms in [0, 1), shape ``(B, T)``.
            context_numbers: Number of the context that each row continues, shape ``(B,)``; rows of one context share
                its prefill.
            temperature: Sampling temperature T.
            limits: Most tokens that each row may have, shape ``(B,)``; the width of the noise if None.

        """

    def sample(
        self,
        policy: Policy,
        prompt_ids: Tensor,
        prompts: Sequence[int],
        sampling: Sampling,
        *,
        seed: int,
        step: int,
        episodes: TurnTaker | None = None,
        **asked: Any,
    ) -> Samples:
        """Answer every prompt, or play episodes, with the noise of its number; see :meth:`Engine.sample`.

        ``asked`` is passed to :meth:`decode` or :meth:`continue_episodes`.
        """
        noise, group = draw_row_noise(prompts, sampling, seed, step), sampling.completions
        context_numbers = torch.arange(len(prompt_ids), device=prompt_ids.device).repeat_interleave(group)
        arguments = policy, prompt_ids, noise, context_numbers, sampling.temperature
        if episodes is None:
            return self.decode(*arguments, **asked)
        return self.continue_episodes(*arguments, episodes, **asked)

    def continue_episodes(
        self,
        policy: Policy,
        prompt_ids: Tensor,
        noise: Tensor,
        context_numbers: Tensor,
        temperature: float,
        taker: TurnTaker,
        limits: Tensor | None = None,
    ) -> Samples:
        """Play episodes to their end, each behind a context at whose end the policy is to act, with given noise.

        Arguments are those of :meth:`decode`, limits counting what the environment says, and what ends and answers
        turns, whose row b continues the context of row b.
        """
        device = prompt_ids.device
        contexts = [ids[mask].tolist() for ids, mask in zip(prompt_ids, policy.prompt_mask(prompt_ids), strict=True)]

        async def draw_turns(requests: Sequence[TurnRequest]) -> list[DrawnTurn]:
            turn_limits = torch.tensor([request.limit for request in requests])
            starts = torch.tensor([request.start for request in requests])
            places = (starts[:, None] + torch.arange(int(turn_limits.max()))).clamp(max=noise.shape[1] - 1)
            turn_noise = noise[[request.row for request in requests]].gather(1, places)
            turn_contexts = left_padded_ids([request.context for request in requests]).to(device)
            rows = torch.arange(len(requests), device=device)
            samples = self.draw_turns(policy, turn_contexts, turn_noise, rows, temperature, turn_limits, taker)
            return list_drawn_turns(samples)

        row_contexts = [contexts[number] for number in context_numbers.tolist()]
        row_limits = [noise.shape[1]] * len(noise) if limits is None else limits.tolist()
        return run_at_once(play_by_prefix(draw_turns, row_contexts, taker, row_limits, device))

    def draw_turns(
        self,
        policy: Policy,
        contexts: Tensor,
        noise: Tensor,
        context_numbers: Tensor,
        temperature: float,
        limits: Tensor,
        taker: TurnTaker,
    ) -> Samples:
        """Draw a turn behind each context; arguments as in :meth:`decode`. Tokens behind its end are left out later."""
        return self.decode(policy, contexts, noise, context_numbers, temperature, limits)


def list_drawn_turns(samples: Samples) -> list[DrawnTurn]:
    """Return the turns that an engine has drawn."""
    candidates = (samples.logprobs, samples.entropy, samples.sum_pi_squared)
    facts = torch.stack([values for values in candidates if values is not None], 1).cpu()
    rows = zip(samples.completion_ids.tolist(), facts, samples.mask.sum(-1).tolist(), strict=True)
    return [DrawnTurn(ids[:length], values[:, :length]) for ids, values, length in rows]


def draw_row_noise(prompts: Sequence[int], sampling: Sampling, seed: int, step: int) -> Tensor:
    """Return the noise of every completion of some prompts, shape ``(B, T)`` float64; see :meth:`Engine.sample`."""
    group = sampling.completions
    numbers = [number for number in prompts for _ in range(group)]
    return sampling_uniforms(seed, step, numbers, list(range(group)) * len(prompts), sampling.max_tokens)
