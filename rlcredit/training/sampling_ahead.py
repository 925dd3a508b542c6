"""Rollouts that are decoded while the one before them is scored and used; each is older by one's updates."""

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import NamedTuple

from torch import Tensor
from torch.nn import Parameter

from rlcredit.decoding.engine import Engine
from rlcredit.decoding.episode_loop import TurnTaker
from rlcredit.decoding.sampling import Samples, Sampling
from rlcredit.policy.policy import Policy


class AskedPrompts(NamedTuple):
    """Prompts that are to be answered.

    Attributes:
        numbers: Number of each prompt in its data set, P of them.
        ids: Token ids, left-padded, shape ``(P, L)``.
        episodes: Episodes of their completions, begun; None where questions are answered once.

    """

    numbers: list[int]
    ids: Tensor
    episodes: TurnTaker | None = None


class AnswersAhead(NamedTuple):
    """Answers that are on their way.

    Attributes:
        step: Optimizer steps that will have been taken when they are used.
        asked: Prompts that they answer.
        wait: Function that waits for them.

    """

    step: int
    asked: AskedPrompts
    wait: Callable[[], Samples]


class SamplingAhead:
    """Stand before an engine: return the answers to one rollout, and begin those to the next one at once.

    The first rollout is drawn when it is asked for, and so is the first one of a continued run: with the same weights
    as in a run that was not interrupted. The trainer scores all answers anew, whatever the engine can tell of them.
    It is no engine itself, so that no configuration can name it.

    Args:
        engine: Engine that answers.
        read_prompts: Function that returns this process's prompts of a step, as the rollout of that step will have
            them, or None if the run ends before it.
        stride: Optimizer steps from one rollout to the next.

    """

    exact = False
    can_keep_hidden = False

    def __init__(self, engine: Engine, read_prompts: Callable[[int], AskedPrompts | None], stride: int) -> None:
        self.engine, self.read_prompts, self.stride = engine, read_prompts, stride
        self._answers: AnswersAhead | None = None
        self._adapters: dict[int, dict[str, Tensor]] = {}

    def find_adapter(self, step: int) -> dict[str, Tensor] | None:
        """Return the weights, by name, that have drawn or will draw the rollout of a step; None if the present do."""
        return self._adapters.get(step)

    def restore_adapter(self, step: int, adapter: Mapping[str, Tensor]) -> None:
        """Have the rollout of a step drawn with given weights: those that began it before a run was interrupted."""
        self._adapters = {step: dict(adapter)}

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
    ) -> Samples:
        """Return the answers of a step's rollout, and begin those of the next one with the policy as it is now.

        Arguments are those of :meth:`rlcredit.decoding.engine.Engine.sample`. ``episodes`` then holds those that have
        been played.

        Raises:
            EngineUnavailable: a server does not answer, or refuses to.
            ValueError: the prompts are not those that ``read_prompts`` has named for this step.

        """
        request = AskedPrompts(list(prompts), prompt_ids, episodes)
        answers, self._answers = self._answers, None
        drawing, present = self._adapters.get(step), policy.copy_adapter()
        factors = None if drawing is None else [drawing[name].to(policy.device) for name in present]
        if answers is not None and answers.step == step:
            _refuse_other_prompts(answers, request.numbers)
            samples, seconds = _time_wait(answers.wait)
            if request.episodes is not None and answers.asked.episodes is not None:
                request.episodes.episodes = answers.asked.episodes.episodes
        else:
            with _act_with(policy, factors):
                samples, seconds = _time_wait(self._start_answers(policy, request, sampling, seed, step))
        # The weights of this rollout are kept until it has been used: a checkpoint may still send the run back to it.
        self._adapters = {step + self.stride: present, **({} if drawing is None else {step: drawing})}
        self._begin_next(policy, sampling, seed, step + self.stride)
        return replace(samples, adapter=factors, waited=seconds)

    def _begin_next(self, policy: Policy, sampling: Sampling, seed: int, step: int) -> None:
        """Have the rollout of a step decoded in the background, unless the run ends before it."""
        prompts = self.read_prompts(step)
        if prompts is not None:
            self._answers = AnswersAhead(step, prompts, self._start_answers(policy, prompts, sampling, seed, step))

    def _start_answers(
        self, policy: Policy, prompts: AskedPrompts, sampling: Sampling, seed: int, step: int
    ) -> Callable[[], Samples]:
        """Begin to answer prompts; return the function that waits for it."""
        request = policy, prompts.ids, prompts.numbers, sampling
        return self.engine.start_sampling(*request, seed=seed, step=step, episodes=prompts.episodes)


def _time_wait(wait: Callable[[], Samples]) -> tuple[Samples, float]:
    """Return answers, and the seconds until they were there."""
    start_time = time.perf_counter()
    return wait(), time.perf_counter() - start_time


def _act_with(policy: Policy, factors: Sequence[Tensor] | None) -> AbstractContextManager[None]:
    """Have a policy act with an adapter's factors meanwhile, which learn as its own do; with its own if None."""
    return (
        contextlib.nullcontext() if factors is None else policy.use_adapter([Parameter(factor) for factor in factors])
    )


def _refuse_other_prompts(answers: AnswersAhead, prompts: Sequence[int]) -> None:
    """Refuse a task whose data loader yields other prompts than it has named beforehand."""
    if answers.asked.numbers != list(prompts):
        raise ValueError(
            f"model.engine: with ahead 1 the prompts of step {answers.step} were asked for beforehand, numbers "
            f"{answers.asked.numbers[:4]} first, but the data loader yields {list(prompts)[:4]} first. Let "
            "draw_prompts of the task return what its train_dataloader yields, or set ahead to 0."
        )
