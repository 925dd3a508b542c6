"""Samples of any engine, with scores of the policy where the engine cannot tell them; no trainer is needed."""

import contextlib
from collections.abc import Sequence

import torch
from torch import Tensor

from rlcredit.base.exit_status import PolicyMismatch
from rlcredit.decoding.engine import Engine
from rlcredit.decoding.sampling import Samples, Sampling
from rlcredit.policy.policy import Policy
from rlcredit.training.micro_batches import MicroBatches
from rlcredit.training.nan_and_mismatch import rms_difference
from rlcredit.training.scoring import RolloutScorer

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
) -> Samples:
    """Answer every prompt; an engine that is not exact, or tells no entropy, has its samples scored by the policy.

    Arguments are those of :meth:`rlcredit.decoding.engine.Engine.sample`.

    Raises:
        PolicyMismatch: the engine has drawn from another policy.

    """
    samples = engine.sample(policy, prompt_ids, prompts, sampling, seed=seed, step=step)
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
