"""Samples of any engine, with scores of the policy where the engine cannot tell them; no trainer is needed."""

from collections.abc import Sequence

import torch
from torch import Tensor

from rlcredit.base.exit_status import PolicyMismatch
from rlcredit.decoding.engine import Engine
from rlcredit.decoding.sampling import Samples, Sampling
from rlcredit.formulas.masked import masked_mean
from rlcredit.policy.policy import Policy, TokenScores

EXACT = 0.01
"""Tolerated distance of an engine's log-probabilities in float32, in nats: ten times a bound that no single token
exceeds. The embedded policy shows 4e-7, and a small GPT-2 with a dropout of a tenth 0.07."""

ROUNDED = 0.2
"""In fewer bits, or with quantized weights: twice the rounding error of the worst token, as if every token had it.
The embedded policy shows 0.005 in bfloat16. Only gross mistakes are found: another temperature, other weights."""


def choose_tolerance(policy: Policy) -> float:
    """Return how far log-probabilities of another engine may lie from the policy's, as a root mean square, in nats."""
    exact = policy.dtype == "float32" and policy.quantization is None
    return EXACT if exact and torch.get_float32_matmul_precision() == "highest" else ROUNDED


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
    group, parts = sampling.completions, []
    with policy.evaluation_mode():
        for number in range(len(prompts)):  # a prompt at a time: as much memory as one group takes
            rows = slice(number * group, (number + 1) * group)
            width = max(1, int(samples.mask[rows].sum(-1).max()))
            ids = samples.completion_ids[rows, :width]
            scores = policy.score_prompts(prompt_ids[number].expand(group, -1), ids, sampling.temperature)
            padding = (0, samples.mask.shape[1] - width)
            parts.append([torch.nn.functional.pad(values, padding) for values in scores])
    whole = (torch.cat(values).where(samples.mask, 0) for values in zip(*parts, strict=True))
    scored = samples.replace_scores(TokenScores(*whole))
    refuse_distant_engine(engine, policy, scored)
    return scored


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
    distance = masked_mean((samples.engine_logprobs - samples.logprobs).square(), samples.mask).sqrt().item()
    if not distance <= choose_tolerance(policy):
        raise PolicyMismatch(
            f"--engine: {type(engine).__name__} is {distance:.2g} nats away from the log-probabilities of "
            f"{policy.path} (root mean square), and {choose_tolerance(policy):g} is allowed. It draws with other "
            "weights, at another temperature or in another precision; vLLM wants --logprobs-mode processed_logprobs."
        )
