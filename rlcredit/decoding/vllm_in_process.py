"""vLLM in the trainer's process: it decodes on the trainer's device, and sleeps during the update."""

import contextlib
import importlib.util
import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlcredit.base.exit_status import EngineUnavailable
from rlcredit.config.json_shapes import Shape, find_shape_mismatch
from rlcredit.decoding.engine import Engine
from rlcredit.decoding.sampling import Samples, Sampling
from rlcredit.decoding.vllm_answers import make_completion_shape
from rlcredit.decoding.vllm_exchange import (
    AdapterFolder,
    hash_adapter,
    list_prompts_and_seeds,
    make_sampling_settings,
    pack_samples,
)
from rlcredit.policy.model_loading import load_model_config
from rlcredit.policy.policy import Policy

ADAPTER_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""Ranks for which vLLM can reserve memory."""

OLDEST_VLLM = (0, 20)
"""First version of vLLM whose torch is one that rlcredit allows."""

PROCESS_SETTINGS = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # no process of its own, which Ctrl-C would end before the step does
    "VLLM_LOGGING_LEVEL": "WARNING",
    "VLLM_LOGGING_STREAM": "ext://sys.stderr",
}
"""Environment variables that vLLM reads, unless they are set already."""


class VLLMInProcess(Engine):
    """Answer prompts with vLLM in the trainer's process and environment; ``docs/howto/engine.md`` says how.

    vLLM holds the frozen weights a second time. It gets every adapter under a new name and a new number, so that it
    cannot answer with weights, or keys and values, of another step. On a GPU it sleeps between rollouts: its weights
    lie in main memory, its keys and values nowhere. Every completion has a seed that follows from seed, step, prompt
    and sample. The trainer scores what comes back, as with :class:`~rlcredit.decoding.vllm_server.VLLMServer`.

    Args:
        gpu_memory_utilization: Share of the GPU's memory that vLLM takes while it decodes, above 0 and below 1.
        max_model_len: Most tokens of a prompt and its completion together; as many as the model can read if None.

    """

    def __init__(self, gpu_memory_utilization: float = 0.5, max_model_len: int | None = None) -> None:
        if not 0 < gpu_memory_utilization < 1 or (max_model_len is not None and max_model_len < 1):
            raise ValueError(
                "VLLMInProcess expects gpu_memory_utilization above 0 and below 1 and max_model_len >= 1, got "
                f"{gpu_memory_utilization:g} and {max_model_len}. The trainer needs the rest: say 0.5."
            )
        self.gpu_memory_utilization, self.max_model_len = gpu_memory_utilization, max_model_len
        self._adapters = AdapterFolder()
        self._llm: Any = None
        self._base: tuple[str, str, int] | None = None
        self._is_asleep = False

    def refuse_run(self, policy: Policy, processes: int) -> None:
        """Refuse what vLLM cannot decode here; see :meth:`rlcredit.decoding.engine.Engine.refuse_run`."""
        if problem := _find_version_problem() or _find_policy_problem(policy, processes):
            raise ValueError(f"model.engine: VLLMInProcess {problem}")

    @torch.no_grad()
    def sample(
        self, policy: Policy, prompt_ids: Tensor, prompts: Sequence[int], sampling: Sampling, *, seed: int, step: int
    ) -> Samples:
        """Answer every prompt; see :meth:`rlcredit.decoding.engine.Engine.sample`.

        Raises:
            EngineUnavailable: vLLM does not start, or does not answer.

        """
        group, stops = sampling.completions, policy.stop_ids.tolist()
        rows = list_prompts_and_seeds(policy, prompt_ids, prompts, group, seed=seed, step=step)
        settings = {**make_sampling_settings(sampling, stops), "detokenize": False}
        with _keep_trainer_settings(policy.device), _explain_failure(policy):
            self._wake(policy, seed)
            outputs = self._generate(policy, rows, settings)
            self._rest()
        shape = make_completion_shape(sampling.max_tokens, policy.lm.get_input_embeddings().num_embeddings, stops)
        return pack_samples([_read_answer(output.outputs[0], shape) for output in outputs], stops, prompt_ids.device)

    def close(self) -> None:
        """Release vLLM with all its memory, and remove the adapter."""
        self._adapters.remove_folder()
        llm, self._llm, self._base = self._llm, None, None
        if llm is not None:
            llm.llm_engine.engine_core.shutdown()

    def _wake(self, policy: Policy, seed: int) -> None:
        """Start vLLM, or wake it; one that holds another model is started anew."""
        base = (policy.location, policy.dtype, policy.lora.rank)
        if self._llm is not None and self._base != base:
            self.close()
        torch.cuda.empty_cache()  # what the trainer has only reserved
        if self._llm is None:
            self._llm, self._base = self._start(policy, seed), base
        elif self._is_asleep:
            self._llm.wake_up()
        self._is_asleep = False

    def _start(self, policy: Policy, seed: int) -> Any:
        self.refuse_run(policy, 1)
        for name, value in PROCESS_SETTINGS.items():
            os.environ.setdefault(name, value)
        from vllm import LLM  # noqa: PLC0415  # pyright: ignore[reportMissingImports]

        return LLM(
            model=policy.location,
            dtype=policy.dtype,
            seed=seed % 2**32,
            enable_lora=True,
            max_lora_rank=min(rank for rank in ADAPTER_RANKS if rank >= policy.lora.rank),
            max_loras=1,
            logprobs_mode="processed_logprobs",
            enable_sleep_mode=_can_sleep(),
            gpu_memory_utilization=self.gpu_memory_utilization,
            max_model_len=self.max_model_len,
            use_tqdm_on_load=False,
        )

    def _generate(self, policy: Policy, rows: Sequence[tuple[list[int], int]], settings: dict[str, Any]) -> list[Any]:
        """Return vLLM's answer to every row, drawn with the policy's adapter."""
        from vllm import SamplingParams, TokensPrompt  # noqa: PLC0415  # pyright: ignore[reportMissingImports]
        from vllm.lora.request import LoRARequest  # noqa: PLC0415  # pyright: ignore[reportMissingImports]

        digest, former = hash_adapter(policy), self._adapters.name
        if digest != self._adapters.digest:
            self._adapters.write_adapter(policy)
            self._adapters.remove_adapter(former)
            self._adapters.digest = digest
        return self._llm.generate(
            [TokensPrompt(prompt_token_ids=tokens) for tokens, _ in rows],
            [SamplingParams(**settings, seed=seed) for _, seed in rows],
            use_tqdm=False,
            lora_request=LoRARequest(self._adapters.name, self._adapters.version, str(self._adapters.path)),
        )

    def _rest(self) -> None:
        """Forget keys and values, which the next adapter changes, and give the memory back if vLLM can sleep."""
        self._llm.reset_prefix_cache()
        if _can_sleep():
            self._llm.sleep(level=1)
            self._is_asleep = True


def _can_sleep() -> bool:
    from vllm.platforms import current_platform  # noqa: PLC0415  # pyright: ignore[reportMissingImports]

    return current_platform.is_sleep_mode_available()


def _find_version_problem() -> str | None:
    """Return how vLLM's installation falls short, as the end of a sentence; None if it does not."""
    oldest = ".".join(map(str, OLDEST_VLLM))
    repair = "docs/howto/engine.md says how to install it; or start a server, and set model.engine to VLLMServer."
    if importlib.util.find_spec("vllm") is None:
        return f"needs vLLM {oldest} or later beside rlcredit, and there is none. {repair}"
    import vllm  # noqa: PLC0415  # pyright: ignore[reportMissingImports]

    if tuple(int(part) for part in vllm.__version__.split(".")[:2]) < OLDEST_VLLM:
        return f"needs vLLM {oldest} or later, got {vllm.__version__}. {repair}"
    return None


def _find_policy_problem(policy: Policy, processes: int) -> str | None:
    """Return why vLLM cannot decode a policy, as the end of a sentence; None if it can. No weight is read."""
    from vllm.model_executor.models import (  # noqa: PLC0415  # pyright: ignore[reportMissingImports]
        ModelRegistry,
        supports_lora,
    )

    if processes > 1:
        return f"decodes for one process, got {processes}. Set trainer.devices to 1, or model.engine to VLLMServer."
    if policy.quantization:
        return (
            f"reads weights as they were published, and those of the policy are held in {policy.quantization}. Set "
            "model.policy.quantization to null, or model.engine to InProcessEngine."
        )
    if policy.lora.rank > ADAPTER_RANKS[-1]:
        return f"takes adapters of rank {ADAPTER_RANKS[-1]} at most, got {policy.lora.rank}. Lower model.policy.lora.rank."
    architectures = (load_model_config(policy.location).architectures or ()) if Path(policy.location).is_dir() else ()
    for name in architectures:
        model = ModelRegistry.models.get(name)
        if model is None or not supports_lora(model.load_model_cls()):
            return f"has no adapters for {name}, which {policy.path} is. Set model.engine to InProcessEngine."
    return None


def _read_answer(output: Any, shape: Shape) -> tuple[list[int], list[float]]:
    """Return tokens and their log-probabilities, of an answer that has a shape."""
    tokens = list(output.token_ids)
    logprobs = [entry[token].logprob for token, entry in zip(tokens, output.logprobs, strict=True)]
    choice = {"finish_reason": output.finish_reason, "token_ids": tokens, "logprobs": {"token_logprobs": logprobs}}
    if problem := find_shape_mismatch({"choices": [choice]}, shape):
        raise EngineUnavailable(f"vLLM does not answer as it was asked to: {problem}.")
    return tokens, logprobs


@contextlib.contextmanager
def _explain_failure(policy: Policy) -> Iterator[None]:
    """Turn what vLLM raises into one sentence."""
    try:
        yield
    except (RuntimeError, ValueError, OSError, AssertionError) as error:
        cause = " ".join(str(error).split()) or type(error).__name__
        raise EngineUnavailable(
            f"vLLM does not decode {policy.path}: {cause:.400} If memory is short, lower gpu_memory_utilization or "
            "max_model_len of model.engine, or set it to InProcessEngine."
        ) from error


@contextlib.contextmanager
def _keep_trainer_settings(device: torch.device) -> Iterator[None]:
    """Let vLLM run without the trainer's autocast and deterministic mode; it leaves random states as they were."""
    mode, precision = torch.get_deterministic_debug_mode(), torch.get_float32_matmul_precision()
    states = random.getstate(), np.random.get_state()
    with torch.random.fork_rng([device] if device.type == "cuda" else []), torch.autocast(device.type, enabled=False):
        torch.set_deterministic_debug_mode("default")
        try:
            yield
        finally:
            torch.set_deterministic_debug_mode(mode)
            torch.set_float32_matmul_precision(precision)
            random.setstate(states[0])
            np.random.set_state(states[1])
