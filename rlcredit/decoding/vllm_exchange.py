"""What both vLLM engines hand over and get back: prompts, settings and adapters there, tokens here."""

import hashlib
import shutil
import tempfile
import uuid
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rlcredit.decoding.episode_loop import SingleTurns
from rlcredit.decoding.noise import turn_seeds
from rlcredit.decoding.prefix_episodes import DrawnTurn, TurnRequest
from rlcredit.decoding.sampling import Sampling
from rlcredit.policy.policy import Policy

MEMORY_FOLDER = Path("/dev/shm")
"""Where adapters lie by default, if the system has it."""

NEUTRAL_SETTINGS = {
    "top_p": 1.0,
    "top_k": 0,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}
"""Settings that vLLM would otherwise read from the model's generation config, which is not part of the policy."""


def make_sampling_settings(sampling: Sampling, stops: Sequence[int], turn_ends: Sequence[str] = ()) -> dict[str, Any]:
    """Return vLLM's settings for one completion, all but its seed.

    Args:
        sampling: How completions are drawn.
        stops: Tokens that end a completion.
        turn_ends: Texts that end it, too; they are part of it.

    """
    texts = {"stop": list(turn_ends), "include_stop_str_in_output": True} if turn_ends else {}
    return {
        **texts,
        "max_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "stop_token_ids": list(stops),
        "ignore_eos": True,  # only the policy's stop tokens end a completion
        "logprobs": 0,
        "skip_special_tokens": False,
        **NEUTRAL_SETTINGS,
    }


def list_contexts(policy: Policy, prompt_ids: Tensor, sampling: Sampling) -> tuple[list[list[int]], list[int]]:
    """Return the tokens of the prompt of every completion, prompt by prompt, and the most tokens of each completion.

    Args:
        policy: Policy, loaded.
        prompt_ids: Token ids of the prompts, left-padded, shape ``(P, L)``.
        sampling: How completions are drawn.

    """
    prompts = [ids[mask].tolist() for ids, mask in zip(prompt_ids, policy.prompt_mask(prompt_ids), strict=True)]
    contexts = [tokens for tokens in prompts for _ in range(sampling.completions)]
    return contexts, [sampling.max_tokens] * len(contexts)


def end_turns_with(stop_ids: Tensor) -> SingleTurns:
    """Return the taker of single turns that end with a stop token."""
    stops = frozenset(stop_ids.tolist())
    return SingleTurns(lambda tokens: tokens[-1] in stops)


def list_turns_and_seeds(
    requests: Sequence[TurnRequest], prompts: Sequence[int], group: int, *, seed: int, step: int
) -> list[tuple[TurnRequest, int]]:
    """Return the turns that are to be drawn, each with its seed.

    Args:
        requests: The turns.
        prompts: Number of each prompt in its data set, P of them.
        group: Completions per prompt, G.
        seed: Seed of the run.
        step: Optimizer steps taken.

    """
    rows = [request.row for request in requests]
    numbers, samples = [prompts[row // group] for row in rows], [row % group for row in rows]
    seeds = turn_seeds(seed, step, numbers, samples, [request.start for request in requests])
    return list(zip(requests, seeds, strict=True))


def pack_turns(answers: Sequence[tuple[list[int], list[float]]]) -> list[DrawnTurn]:
    """Return turns, each from its tokens and their log-probabilities."""
    return [DrawnTurn(tokens, torch.tensor([logprobs])) for tokens, logprobs in answers]


class AdapterFolder:
    """Folder with the adapter in PEFT's format, under a name and a number that no vLLM has heard before.

    Args:
        parent: Folder in which it is made; if None, one in memory where the system has it.

    Attributes:
        version: Number of the adapter, from 1 on; 0 before the first.

    """

    def __init__(self, parent: str | None = None) -> None:
        self.parent = parent
        self.prefix = f"rlcredit-{uuid.uuid4().hex[:12]}"
        self.version = 0
        self._digest = b""
        self._home: Path | None = None

    @property
    def name(self) -> str:
        """Name of the adapter."""
        return f"{self.prefix}-{self.version}"

    @property
    def path(self) -> str:
        """Folder of the adapter."""
        return str((self._home or Path()) / self.name)

    def replace_adapter(self, policy: Policy) -> bool:
        """Write the policy's adapter as the next version, instead of the last; return false if it is the same."""
        digest = _hash_adapter(policy)
        if digest == self._digest:
            return False
        if self._home is None:
            parent = self.parent or (MEMORY_FOLDER if MEMORY_FOLDER.is_dir() else None)
            Path(parent or tempfile.gettempdir()).mkdir(parents=True, exist_ok=True)
            self._home = Path(tempfile.mkdtemp(prefix=f"{self.prefix}-", dir=parent))
            self._home.chmod(0o755)  # a server may run as another user
            weakref.finalize(self, shutil.rmtree, self._home, ignore_errors=True)
        shutil.rmtree(self.path, ignore_errors=True)
        self.version += 1
        policy.save_adapter(self.path)
        self._digest = digest
        return True

    def remove_folder(self) -> bool:
        """Remove the folder; return whether there was one."""
        home, self._home, self._digest = self._home, None, b""
        if home is not None:
            shutil.rmtree(home, ignore_errors=True)
        return home is not None


def _hash_adapter(policy: Policy) -> bytes:
    """Return a hash of the adapter's weights."""
    digest = hashlib.sha256()
    for name, weight in policy.named_parameters():
        if weight.requires_grad:
            digest.update(name.encode())
            digest.update(weight.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return digest.digest()
