"""Sampling noise as a function of seed, step, prompt, sample and position alone."""

import hashlib
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from rlcredit.formulas.distributed import rank_and_world_size
from rlcredit.formulas.running_sums import running_sums

VALIDATION = 2**63
"""Step number of validation noise, so that it never repeats the noise of a training step."""

ORACLE = 2**63 + 1
"""First step number of the noise of counterfactual continuations."""

FIRST_BRANCH_STEP = 2**63 + 2**62
"""First step number of the noise of continuations that are trained on."""

FIRST_PREFIX_NAME = 2**62
"""First name of the noise of a prefix of an episode, above those of continuations with common noise."""

FIRST_OPERATOR_PROMPT = 2**63
"""First prompt number of the noise of random operators, so that it never repeats that of a completion."""

MAX_ORACLE_SAMPLES = 2**32
"""Largest number of samples of one oracle; those of the next one follow."""

OPERATOR_STREAMS = {"RandomMask": (0, 2), "RandomPlanner": (1, 2), "CreditOracle": (2**61, 1), "loss": (2**62, 1)}
"""Where the streams of random operators begin, and how far those of one operator lie apart; any other name finds a
place of its own between these."""


def sampling_uniforms(seed: int, step: int, prompts: list[int], samples: list[int], length: int) -> Tensor:
    """Draw one uniform number per token from Philox, keyed by (seed, step) and counted by prompt, sample and position.

    A draw is the same whatever else is drawn, in whatever order, by however many processes; and two conditions of one
    seed share their noise (common random numbers).

    Args:
        seed: Seed of the run.
        step: Optimizer steps taken, or :data:`VALIDATION`.
        prompts: Number of each row's prompt in its data set.
        samples: Number of each row's completion in its group.
        length: Tokens per row, T.

    Returns:
        Shape ``(B, T)`` float64 in [0, 1).

    Example:
        >>> both = sampling_uniforms(0, 5, prompts=[7, 9], samples=[0, 3], length=4)
        >>> torch.equal(both[1, :2], sampling_uniforms(0, 5, prompts=[9], samples=[3], length=2)[0])
        True

    """
    rows = np.empty((len(prompts), length))
    for row, prompt, sample in zip(rows, prompts, samples, strict=True):
        np.random.Generator(_make_philox_generator(seed, step, prompt, sample)).random(out=row)
    return torch.from_numpy(rows)


def _make_philox_generator(seed: int, step: int, prompt: int, sample: int) -> np.random.Philox:
    # Not lists: of numbers on both sides of 2**63 numpy makes floats, which lose the last digits.
    key, counter = (np.array(numbers, dtype=np.uint64) for numbers in ([seed, step], [0, 0, sample, prompt]))
    return np.random.Philox(key=key, counter=counter)


def sampling_seeds(seed: int, step: int, prompts: list[int], samples: list[int]) -> list[int]:
    """Return one seed per row, below 2**63, for an engine that draws by itself.

    The arguments are those of :func:`sampling_uniforms`.
    """
    rows = zip(prompts, samples, strict=True)
    return [int(_make_philox_generator(seed, step, prompt, sample).random_raw()) >> 1 for prompt, sample in rows]


TURN_STRIDE = 2**32
"""How far the names of the seeds of two turns lie apart, per token before them in their row."""


def turn_seeds(seed: int, step: int, prompts: list[int], samples: list[int], starts: list[int]) -> list[int]:
    """Return one seed per turn, below 2**63; a turn at the start of its row has that of :func:`sampling_seeds`.

    Arguments are those of :func:`sampling_uniforms`, and the number of tokens before each turn in its row.
    """
    names = [sample + TURN_STRIDE * start for sample, start in zip(samples, starts, strict=True)]
    return sampling_seeds(seed, step, prompts, names)


def continuation_uniforms(seed: int, step: int, prompt: int, samples: int, length: int, oracle: int = 0) -> Tensor:
    """Draw the noise of an oracle's continuations of a prompt.

    Args:
        seed: Seed of the run.
        step: Optimizer steps taken.
        prompt: Number of the prompt in its data set.
        samples: Continuations per prefix, M.
        length: Tokens per continuation, T.
        oracle: Number of the oracle; another one draws other noise.

    Returns:
        Shape ``(M, T)`` float64 in [0, 1).

    """
    names = range(oracle * MAX_ORACLE_SAMPLES, oracle * MAX_ORACLE_SAMPLES + samples)
    return sampling_uniforms(seed, ORACLE + step, [prompt] * samples, list(names), length)


def branch_uniforms(
    seed: int,
    step: int,
    prompts: Sequence[int],
    completions: Sequence[int],
    places: Sequence[int],
    samples: Sequence[int],
    length: int,
    oracle: int = 0,
) -> Tensor:
    """Draw the noise of continuations that are trained on; no two of them share any, nor with a completion.

    Args:
        seed: Seed of the run.
        step: Optimizer steps taken.
        prompts: Number of each continuation's prompt in its data set.
        completions: Number in its group of the completion that each continuation leaves, below 2**20.
        places: Token before which it leaves, below 2**20.
        samples: Number of each continuation among those of its prefix, below 2**16.
        length: Tokens per continuation, T.
        oracle: Number of the oracle, below 2**8; another one draws other noise.

    Returns:
        Shape ``(N, T)`` float64 in [0, 1), of the first own token of each continuation and of those that follow.

    Example:
        >>> both = branch_uniforms(0, 5, prompts=[7, 7], completions=[1, 2], places=[3, 3], samples=[0, 0], length=4)
        >>> bool((both[0] == both[1]).any())
        False

    """
    names = [
        ((oracle << 20 | completion) << 20 | place) << 16 | sample
        for completion, place, sample in zip(completions, places, samples, strict=True)
    ]
    return sampling_uniforms(seed, FIRST_BRANCH_STEP + step, list(prompts), names, length)


def prefix_uniforms(
    seed: int,
    step: int,
    prompts: Sequence[int],
    prefixes: Sequence[Sequence[int]],
    samples: Sequence[int],
    length: int,
    oracle: int = 0,
) -> Tensor:
    """Draw the noise of an oracle's continuations of prefixes; those of one prefix are the same, whatever row it is in.

    ``prefixes`` are the tokens of the answer that each continues. Other arguments, and the result, are those of
    :func:`branch_uniforms`.

    Example:
        >>> both = prefix_uniforms(0, 5, prompts=[7, 7], prefixes=[[1], [1, 2]], samples=[0, 0], length=4)
        >>> bool((both[0] == both[1]).any())
        False

    """
    names = []
    for prefix, sample in zip(prefixes, samples, strict=True):
        name = hashlib.blake2b(np.array([oracle, sample, *prefix], dtype=np.int64).tobytes(), digest_size=8).digest()
        names.append(FIRST_PREFIX_NAME + int.from_bytes(name, "big") % FIRST_PREFIX_NAME)
    return sampling_uniforms(seed, ORACLE + step, list(prompts), names, length)


def stream_number(name: str, number: int = 0) -> int:
    """Return the number of a stream of noise.

    Args:
        name: Name of the operator, as a rule that of its class.
        number: Number that tells streams of one operator apart, from 0 to below 2**32.

    Example:
        >>> stream_number("RandomMask", 3), stream_number("RandomPlanner", 3)
        (6, 7)
        >>> stream_number("MyMask") == stream_number("MyOtherMask")
        False

    """
    if name in OPERATOR_STREAMS:
        start, stride = OPERATOR_STREAMS[name]
        return start + stride * number
    digest = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
    return 2**34 + digest % 2**26 * 2**33 + number


def token_uniforms(seed: int, step: int, stream: int, shape: tuple[int, ...], group_size: int) -> Tensor:
    """Draw one uniform per token for a random operator.

    Rows are named by their place in the batch of all processes, which share it out prompt by prompt: the draws do not
    depend on how many processes there are.

    Args:
        seed: Seed of the run.
        step: Optimizer steps taken.
        stream: Number that tells one random operator from another, by :func:`stream_number`.
        shape: Shape of the result, ``(B, T)``.
        group_size: Completions per prompt, G.

    Returns:
        Shape ``(B, T)`` float64 in [0, 1).

    """
    rank, world = rank_and_world_size()
    rows = [(row // group_size * world + rank) * group_size + row % group_size for row in range(shape[0])]
    return sampling_uniforms(seed, step, [FIRST_OPERATOR_PROMPT + stream] * shape[0], rows, shape[1])


def inverse_cdf(probabilities: Tensor, uniform: Tensor) -> Tensor:
    """Map uniforms to tokens: the first whose cumulated probability exceeds the uniform.

    Args:
        probabilities: Distribution of each row, shape ``(B, V)``; it need not sum to exactly one.
        uniform: Uniforms in [0, 1), one or more per row, shape ``(B,)`` or ``(B, M)``.

    Returns:
        Token ids, the shape of ``uniform``; never one of probability zero.

    Example:
        >>> inverse_cdf(torch.tensor([[0.0, 0.5, 0.0, 0.5]]).repeat(3, 1), torch.tensor([0.0, 0.49, 0.99]))
        tensor([1, 1, 3])

    """
    sums = running_sums(probabilities, dtype=torch.float64)
    total = sums[:, -1:]
    # A target rounded up to the total would fall behind the last token that can occur.
    target = torch.minimum(uniform.view(len(uniform), -1) * total, torch.nextafter(total, torch.zeros_like(total)))
    tokens = torch.searchsorted(sums, target, right=True).view(uniform.shape)
    return tokens.clamp(max=probabilities.shape[-1] - 1)  # for NaN, any token; the checks report NaN
