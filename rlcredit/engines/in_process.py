"""The embedded engine: decode with the training weights themselves, in this process."""

import contextlib
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from rlcredit.engines.noise import inverse_cdf, uniforms
from rlcredit.engines.sampling import Samples, Sampling
from rlcredit.functional.uncertainty import logprobs_and_entropy_from_logits, tempered_logits
from rlcredit.inputs.limits import THREADS
from rlcredit.policy import Policy

ROW_MULTIPLE = 16
"""Decoding batches are filled up to a multiple of this many rows: matrix kernels for a handful of rows add in another
order than those for many, and a completion must not depend on which others are decoded beside it."""


class InProcessEngine:
    """Decode with a KV cache; a group shares one prefill, finished rows leave the batch.

    Args:
        decode_batch_size: completions decoded at a time; if None, all those of a batch, and as many for the oracle. It
            changes memory and speed only: a small policy answers the oracle several times faster with 512.
        threads: CPU threads while decoding. With one, completions and their log-probabilities are the same bit for bit
            whatever is decoded beside them. With more, attention rounds differently in different threads; a small
            model, whose tensors are too small to share, is no faster for it.
        merge: add the adapter into the weights while decoding, which saves the embedded policy a quarter of the time.
            Float32 only; log-probabilities then agree with the trainer's up to rounding.

    """

    def __init__(self, decode_batch_size: int | None = None, threads: int = 1, merge: bool = False) -> None:
        if decode_batch_size is not None and decode_batch_size < 1:
            raise ValueError(f"InProcessEngine expects decode_batch_size >= 1, got {decode_batch_size}.")
        if not 1 <= threads <= THREADS:
            raise ValueError(f"InProcessEngine expects 1 to {THREADS} threads, got {threads}.")
        self.decode_batch_size, self.threads, self.merge = decode_batch_size, threads, merge

    @torch.no_grad()
    def sample(
        self, policy: Policy, prompt_ids: Tensor, prompts: Sequence[int], sampling: Sampling, *, seed: int, step: int
    ) -> Samples:
        """Answer every prompt ``sampling.completions`` times.

        Args:
            policy: loaded; sampled in eval mode.
            prompt_ids: left-padded, shape ``(P, L)``, on the policy's device.
            prompts: number of each prompt in its data set, P of them; with seed and step it names the noise.
            sampling: how to draw.
            seed: of the run.
            step: optimizer steps taken.

        """
        group = sampling.completions
        numbers = [number for number in prompts for _ in range(group)]
        noise = uniforms(seed, step, numbers, list(range(group)) * len(prompts), sampling.max_tokens)
        of = torch.arange(len(prompt_ids), device=prompt_ids.device).repeat_interleave(group)
        return self.decode(policy, prompt_ids, noise, of, sampling.temperature)

    @torch.no_grad()
    def decode(
        self,
        policy: Policy,
        prompt_ids: Tensor,
        noise: Tensor,
        of: Tensor,
        temperature: float,
        limits: Tensor | None = None,
    ) -> Samples:
        """Continue contexts by given noise.

        Args:
            policy: loaded; sampled in eval mode.
            prompt_ids: contexts, left-padded, shape ``(P, L)``, on the policy's device.
            noise: uniforms in [0, 1), shape ``(B, T)``.
            of: the context that each row continues, shape ``(B,)``; rows of one context share its prefill.
            temperature: T.
            limits: tokens each row may have, shape ``(B,)``; the width of the noise if None.

        """
        pad, shape, noise = policy.tokenizer.pad_token_id, tuple(noise.shape), noise.to(prompt_ids.device)
        limits = torch.full(shape[:1], shape[1]) if limits is None else limits
        limits = limits.to(prompt_ids.device)
        found = Samples(
            completion_ids=torch.full(shape, pad, device=prompt_ids.device),
            mask=torch.zeros(shape, dtype=torch.bool, device=prompt_ids.device),
            logprobs=torch.zeros(shape, dtype=torch.float32, device=prompt_ids.device),
            entropy=torch.zeros(shape, dtype=torch.float32, device=prompt_ids.device),
            sum_pi_squared=torch.zeros(shape, dtype=torch.float32, device=prompt_ids.device),
            truncated=torch.zeros(shape[0], dtype=torch.bool, device=prompt_ids.device),
        )
        rows = torch.arange(shape[0], device=prompt_ids.device)
        merged = policy.merged() if self.merge else contextlib.nullcontext()
        with policy.sampling(), merged, _threads(self.threads):
            for part in rows.split(self.decode_batch_size or len(rows)):
                self._decode(policy, prompt_ids, part, of, temperature, noise, limits, found)
        width = int(found.mask.any(0).sum())
        for name in ("completion_ids", "mask", "logprobs", "entropy", "sum_pi_squared"):
            setattr(found, name, getattr(found, name)[:, :width])
        return found

    def _decode(
        self,
        policy: Policy,
        prompt_ids: Tensor,
        rows: Tensor,
        of: Tensor,
        temperature: float,
        noise: Tensor,
        limits: Tensor,
        found: Samples,
    ) -> None:
        """Fill ``rows`` of ``found``, token by token, until the last of them has ended."""
        stop_ids = policy.stop_ids
        prompts, place = torch.unique(of[rows], return_inverse=True)
        prompt_mask = policy.prompt_mask(prompt_ids[prompts])
        hidden, cache = policy.hidden(prompt_ids[prompts], prompt_mask, use_cache=True)
        place = _filled(place)
        hidden, mask = hidden[:, -1:][place], prompt_mask[place]
        cache.batch_select_indices(place)
        for position in range(noise.shape[1]):
            # The filling rows come along: sums over a few rows, too, are not those over many.
            tempered = tempered_logits(hidden[:, -1], policy.head, temperature)
            probabilities = tempered.softmax(-1)
            tokens = inverse_cdf(probabilities, noise[_filled(rows), position])
            logprobs, entropy = logprobs_and_entropy_from_logits(tempered, tokens)
            tokens = tokens[: len(rows)]
            found.completion_ids[rows, position] = tokens
            found.mask[rows, position] = True
            found.logprobs[rows, position] = logprobs[: len(rows)]
            found.entropy[rows, position] = entropy[: len(rows)]
            found.sum_pi_squared[rows, position] = probabilities.square().sum(-1)[: len(rows)]
            ended, full = torch.isin(tokens, stop_ids), position + 1 >= limits[rows]
            found.truncated[rows] = full & ~ended
            going = (~ended & ~full).nonzero().squeeze(-1)
            rows = rows[going]
            if len(rows) == 0:
                break
            kept = _filled(going)
            if len(going) < len(tokens):
                cache.batch_select_indices(kept)
                mask = mask[kept]
            mask = torch.cat([mask, mask.new_ones(len(mask), 1)], -1)
            hidden, cache = policy.hidden(tokens[kept][:, None], mask, cache, use_cache=True)


@contextlib.contextmanager
def _threads(number: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _filled(rows: Tensor) -> Tensor:
    """Repeat the first row behind the others up to a multiple of :data:`ROW_MULTIPLE`."""
    return torch.cat([rows, rows[:1].expand(-len(rows) % ROW_MULTIPLE)])
