"""vLLM in the trainer's process: it decodes on the trainer's device, and sleeps during the update."""

import contextlib
import gc
import importlib.util
import os
import random
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlcredit.base.exit_status import EngineUnavailable
from rlcredit.decoding.engine import Engine
from rlcredit.decoding.episode_loop import TurnTaker
from rlcredit.decoding.prefix_episodes import DrawnTurn, TurnRequest, play_by_prefix, run_at_once
from rlcredit.decoding.sampling import Samples, Sampling
from rlcredit.decoding.vllm_exchange import (
    AdapterFolder,
    end_turns_with,
    list_contexts,
    list_turns_and_seeds,
    make_sampling_settings,
    pack_turns,
)
from rlcredit.policy.model_loading import load_model_config
from rlcredit.policy.policy import Policy

ADAPTER_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""Ranks for which vLLM can reserve memory."""

OLDEST_VLLM = (0, 20)
"""First version of vLLM whose torch is one that rlcredit allows."""

VLLM_ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # Ctrl-C would end a process of its own before the step is done
    "VLLM_LOGGING_LEVEL": "CRITICAL",  # what goes wrong is raised, too
}
"""Environment variables that vLLM gets unless they are set."""


class VLLMInProcess(Engine):
    """Answer prompts with vLLM, in the trainer's environment and process; ``docs/howto/engine.md`` says how.

    vLLM holds the frozen weights a second time, and gets every adapter under a new name and number: it cannot answer
    with weights, or keys and values, of another step. On a GPU it sleeps between rollouts, with its weights in main
    memory and without a cache. Every completion has a seed that follows from seed, step, prompt and sample. The trainer
    scores what comes back, as with :class:`~rlcredit.decoding.vllm_server.VLLMServer`.

    Args:
        gpu_memory_utilization: Share of the GPU's memory that vLLM takes while it decodes, above 0 and below 1.
        max_model_len: Most tokens of a prompt and its completion together; as many as the model can read if None.

    """

    can_play = True

    def __init__(self, gpu_memory_utilization: float = 0.5, max_model_len: int | None = None) -> None:
        if not 0 < gpu_memory_utilization < 1 or (max_model_len is not None and max_model_len < 1):
            raise ValueError(
                "VLLMInProcess expects gpu_memory_utilization above 0 and below 1 and max_model_len >= 1, got "
                f"{gpu_memory_utilization:g} and {max_model_len}. The trainer needs the rest: say 0.5."
            )
        self.gpu_memory_utilization, self.max_model_len = gpu_memory_utilization, max_model_len
        self._adapter = AdapterFolder()
        self._llm: Any = None
        self._base: tuple[str, str, int] | None = None
        self._can_sleep = False

    def refuse_run(self, policy: Policy, processes: int) -> None:
        """Refuse what vLLM cannot decode here; see :meth:`rlcredit.decoding.engine.Engine.refuse_run`."""
        if problem := _find_version_problem() or _find_policy_problem(policy, processes):
            raise ValueError(f"model.engine: VLLMInProcess {problem}")

    @torch.no_grad()
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
        """Answer every prompt, or play episodes; see :meth:`rlcredit.decoding.engine.Engine.sample`.

        Raises:
            EngineUnavailable: vLLM does not start, or does not answer.

        """
        group, taker = sampling.completions, episodes or end_turns_with(policy.stop_ids)
        settings = make_sampling_settings(sampling, policy.stop_ids.tolist(), taker.turn_ends)
        with self._awake(policy, seed) as llm:

            async def draw_turns(requests: Sequence[TurnRequest]) -> list[DrawnTurn]:
                turns = list_turns_and_seeds(requests, prompts, group, seed=seed, step=step)
                own_settings = [
                    {**settings, "seed": turn_seed, "max_tokens": request.limit} for request, turn_seed in turns
                ]
                return pack_turns(self._generate(llm, policy, [request.context for request in requests], own_settings))

            contexts, limits = list_contexts(policy, prompt_ids, sampling)
            return run_at_once(play_by_prefix(draw_turns, contexts, taker, limits, prompt_ids.device))

    @contextlib.contextmanager
    def _awake(self, policy: Policy, seed: int) -> Iterator[Any]:
        """Yield vLLM, which decodes with a policy's weights meanwhile, and then sleeps."""
        if self._llm is None:
            self.refuse_run(policy, 1)
        with _keep_trainer_settings(policy.device), _explain_failure(policy):
            llm = self._start_or_wake(policy, seed)
            yield llm
            llm.reset_prefix_cache()  # before the weights change
            if self._can_sleep:
                llm.sleep(level=1)

    def close(self) -> None:
        """Release vLLM with its memory, and remove the adapter."""
        self._adapter.remove_folder()
        if self._llm is not None:
            self._llm.llm_engine.engine_core.shutdown()
            self._llm = None
            gc.collect()  # its parts know each other
            torch.cuda.empty_cache()

    def _start_or_wake(self, policy: Policy, seed: int) -> Any:
        """Return vLLM, awake, with the policy's frozen weights."""
        base = (policy.location, policy.dtype, policy.lora.rank)
        if self._base != base:
            self.close()
        torch.cuda.empty_cache()  # the trainer has reserved more than it uses
        if self._llm is None:
            self._llm, self._base = self._start_vllm(policy, seed), base
        elif self._can_sleep:
            self._llm.wake_up()
        return self._llm

    def _start_vllm(self, policy: Policy, seed: int) -> Any:
        for name, value in VLLM_ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        from vllm import LLM  # noqa: PLC0415  # pyright: ignore[reportMissingImports]
        from vllm.platforms import current_platform  # noqa: PLC0415  # pyright: ignore[reportMissingImports]

        self._can_sleep = current_platform.is_sleep_mode_available()
        return LLM(
            model=policy.location,
            load_format="safetensors",  # as the trainer reads it: other formats can run code
            dtype=policy.dtype,
            seed=seed % 2**32,
            enable_lora=True,
            max_lora_rank=min(rank for rank in ADAPTER_RANKS if rank >= policy.lora.rank),
            max_loras=1,
            logprobs_mode="processed_logprobs",
            enable_sleep_mode=self._can_sleep,
            # On a CPU a seeded prompt cannot be read in two parts.
            enable_chunked_prefill=policy.device.type != "cpu",
            gpu_memory_utilization=self.gpu_memory_utilization,
            max_model_len=self.max_model_len,
            use_tqdm_on_load=False,
        )

    def _generate(
        self, llm: Any, policy: Policy, contexts: Sequence[list[int]], settings: Sequence[dict[str, Any]]
    ) -> list[tuple[list[int], list[float]]]:
        """Return tokens and log-probabilities behind each context, drawn with the policy's adapter by its settings."""
        from vllm import SamplingParams, TokensPrompt  # noqa: PLC0415  # pyright: ignore[reportMissingImports]
        from vllm.lora.request import LoRARequest  # noqa: PLC0415  # pyright: ignore[reportMissingImports]

        self._adapter.replace_adapter(policy)
        requests = llm.generate(
            [TokensPrompt(prompt_token_ids=tokens) for tokens in contexts],
            [SamplingParams(**row_settings) for row_settings in settings],
            use_tqdm=False,
            lora_request=LoRARequest(self._adapter.name, self._adapter.version, self._adapter.path),
        )
        outputs = [request.outputs[0] for request in requests]
        return [(list(output.token_ids), _read_logprobs(output)) for output in outputs]


def _read_logprobs(output: Any) -> list[float]:
    return [entry[token].logprob for token, entry in zip(output.token_ids, output.logprobs, strict=True)]


def _find_version_problem() -> str | None:
    """Return the fault of the installation of vLLM, as the end of a sentence; None if it has none."""
    version = None
    if importlib.util.find_spec("vllm"):
        from vllm import __version__ as version  # noqa: PLC0415  # pyright: ignore[reportMissingImports]

        if tuple(int(part) for part in version.split(".")[:2]) >= OLDEST_VLLM:
            return None
    return (
        f"needs vLLM {'.'.join(map(str, OLDEST_VLLM))} or later beside rlcredit, and this environment has "
        f"{version or 'none'}. Install it as docs/howto/engine.md says, or set model.engine to VLLMServer."
    )


def _find_policy_problem(policy: Policy, processes: int) -> str | None:
    """Return the obstacle to decoding a policy, as the end of a sentence; None if it has none. No weight is read."""
    from vllm.model_executor.models import (  # noqa: PLC0415  # pyright: ignore[reportMissingImports]
        ModelRegistry,
        supports_lora,
    )

    if processes > 1:
        return f"decodes for one process, got {processes}. Set trainer.devices to 1, or model.engine to VLLMServer."
    if policy.quantization:
        return (
            f"reads weights as they were published, not in {policy.quantization}. Set model.policy.quantization to "
            "null, or model.engine to InProcessEngine."
        )
    if policy.lora.rank > (limit := ADAPTER_RANKS[-1]):
        return f"takes adapters up to rank {limit}, got {policy.lora.rank}. Lower model.policy.lora.rank."
    is_local = Path(policy.location).is_dir()  # of a model on the hub, vLLM says the same when it starts
    for name in load_model_config(policy.location).architectures or () if is_local else ():
        model = ModelRegistry.models.get(name)
        if model is None or not supports_lora(model.load_model_cls()):
            return f"has no adapters for {name}, which {policy.path} is. Set model.engine to InProcessEngine."
    return None


@contextlib.contextmanager
def _explain_failure(policy: Policy) -> Iterator[None]:
    """Turn what vLLM raises into one sentence."""
    try:
        yield
    except (RuntimeError, ValueError, OSError, AssertionError) as error:
        cause = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        raise EngineUnavailable(
            f"vLLM does not decode {policy.path}: {cause:.400}. If memory is short, lower gpu_memory_utilization or "
            "max_model_len of model.engine; or set model.engine to InProcessEngine."
        ) from error


@contextlib.contextmanager
def _keep_trainer_settings(device: torch.device) -> Iterator[None]:
    """Let vLLM run without the trainer's autocast and deterministic mode, and restore what it changes."""
    mode, precision = torch.get_deterministic_debug_mode(), torch.get_float32_matmul_precision()
    states = random.getstate(), np.random.get_state()
    gpus = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(gpus), torch.autocast(device.type, enabled=False), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.set_deterministic_debug_mode("default")
        try:
            yield
        finally:
            torch.set_deterministic_debug_mode(mode)
            torch.set_float32_matmul_precision(precision)
            random.setstate(states[0])
            np.random.set_state(states[1])
