"""vLLM behind a server: completions from processes that share a folder with the trainer and nothing else."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from torch import Tensor

from rlcredit.base.exit_status import EngineUnavailable
from rlcredit.config.json_shapes import Shape, find_shape_mismatch
from rlcredit.decoding.background_coroutine import BackgroundCoroutine
from rlcredit.decoding.engine import Engine
from rlcredit.decoding.episode_loop import TurnTaker
from rlcredit.decoding.http_client import MAX_ANSWER_BYTES, RetryingClient, summarise_server_error
from rlcredit.decoding.prefix_episodes import DrawnTurn, TurnRequest, play_by_prefix
from rlcredit.decoding.sampling import Samples, Sampling
from rlcredit.decoding.vllm_answers import ADAPTER_LOADED, make_completion_shape
from rlcredit.decoding.vllm_exchange import (
    AdapterFolder,
    end_turns_with,
    list_contexts,
    list_turns_and_seeds,
    make_sampling_settings,
    pack_turns,
)
from rlcredit.policy.policy import Policy

_OK_STATUS, _REFUSED_STATUS, _UNKNOWN_STATUS = 200, 400, 404
TOKEN_BYTES = 2**10
"""Bytes of an answer that a token of prompt or completion may take, with its text and its log-probability."""


class VLLMServer(Engine):
    """Answer prompts with vLLM, in an environment and processes of its own; ``docs/howto/engine.md`` says how.

    Tokens go there and come back as numbers. After every update the adapter is sent under a name that no server has
    heard before, and the one before is taken away: no server can answer with weights, or keys and values, of another
    step. Every completion has a seed that follows from seed, step, prompt and sample. The trainer scores what comes
    back: a server that answers with other weights stops the run (``model.sampler_tolerance``), and the difference that
    remains is corrected by truncated importance weights (``model.mismatch_cap``).

    Args:
        url: Address of the server, or a list of several, which share the prompts.
        folder: Folder where adapters are written and servers read them, by the same path; if None, one in memory that
            disappears when the run ends. Servers on other machines need one that they share.
        requests: Completions asked for at a time.
        timeout: Seconds for the whole answer to one request.
        patience: Seconds for which a server that fails is asked again; then the run ends, and can be continued.
        ahead: 1 to decode the next rollout while the present one is scored and used, so that its weights are
            older by the updates of one rollout; 0 to decode it afterwards.

    """

    can_play = True

    def __init__(
        self,
        url: str | list[str] = "http://127.0.0.1:8000",
        folder: str | None = None,
        requests: int = 256,
        timeout: float = 600.0,
        patience: float = 60.0,
        ahead: int = 0,
    ) -> None:
        self.urls = [address.rstrip("/").removesuffix("/v1") for address in ([url] if isinstance(url, str) else url)]
        if not self.urls or not all(address.startswith(("http://", "https://")) for address in self.urls):
            raise ValueError(f"VLLMServer expects url to be http://HOST:PORT, or a list of such, got {url!r}.")
        if requests < 1 or not timeout > 0 or not patience >= 0:
            raise ValueError(
                "VLLMServer expects requests >= 1, timeout > 0 and patience >= 0, got "
                f"{requests}, {timeout} and {patience}."
            )
        if ahead not in (0, 1):
            raise ValueError(f"VLLMServer expects ahead 0 or 1, got {ahead}. No rollout may be two rollouts old.")
        self.folder, self.requests, self.timeout, self.patience = folder, requests, timeout, patience
        self.ahead = ahead
        self._adapter = AdapterFolder(folder)
        self._answering: BackgroundCoroutine[Samples] | None = None

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
            EngineUnavailable: a server does not answer, refuses to, or answers what no vLLM would.

        """
        return self.start_sampling(policy, prompt_ids, prompts, sampling, seed=seed, step=step, episodes=episodes)()

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
        """Send the adapter, and have prompts answered, or episodes played, in the background.

        Answers that are still on their way arrive first, because the servers hold one adapter at a time. See
        :meth:`rlcredit.decoding.engine.Engine.start_sampling`; an unavailable server is reported by the function that
        waits.
        """
        if self._answering is not None:
            self._answering.wait_until_ended()
        group, stops = sampling.completions, policy.stop_ids.tolist()
        taker = episodes or end_turns_with(policy.stop_ids)
        common = {**make_sampling_settings(sampling, stops, taker.turn_ends), "return_token_ids": True}
        vocabulary = policy.lm.get_input_embeddings().num_embeddings
        shape = make_completion_shape(sampling.max_tokens, vocabulary, stops, taker.turn_ends)
        contexts, limits = list_contexts(policy, prompt_ids, sampling)

        async def play(transport: RetryingClient) -> Samples:
            async def draw_turns(requests: Sequence[TurnRequest]) -> list[DrawnTurn]:
                turns = list_turns_and_seeds(requests, prompts, group, seed=seed, step=step)
                bodies = (
                    {**common, "prompt": request.context, "seed": turn_seed, "max_tokens": request.limit}
                    for request, turn_seed in turns
                )
                # Completions of a prompt share a server, which keeps its keys and values.
                urls = (self.urls[request.row // group % len(self.urls)] for request in requests)
                completions = (self._completion(transport, *pair, shape) for pair in zip(urls, bodies, strict=True))
                return pack_turns(await asyncio.gather(*completions))

            return await play_by_prefix(draw_turns, contexts, taker, limits, prompt_ids.device)

        sending = threading.Event()
        answering = self._answering = BackgroundCoroutine(self._answered(policy, play, sending))
        answering.wait_for_event(sending)
        return answering.wait

    def close(self) -> None:
        """Give up answers that are on their way, and remove the adapter from the servers and from the folder."""
        if self._answering is not None:
            self._answering.cancel()
        self._answering = None
        if self._adapter.remove_folder():
            BackgroundCoroutine(self._unload_everywhere()).wait()  # a notebook has an event loop of its own

    async def _answered(
        self, policy: Policy, answer: Callable[[RetryingClient], Awaitable[Samples]], sending: threading.Event
    ) -> Samples:
        """Return answers drawn with a policy's adapter; set ``sending`` once the policy may change."""
        try:
            async with RetryingClient(self.requests, self.timeout, self.patience) as transport:
                await self._update_adapter(transport, policy)
                sending.set()
                return await answer(transport)
        finally:
            sending.set()

    async def _update_adapter(self, transport: RetryingClient, policy: Policy) -> None:
        """Load the adapter on every server unless they have it already."""
        former = self._adapter.name
        if not self._adapter.replace_adapter(policy):
            return
        await asyncio.gather(*(self._load_adapter(transport, url) for url in self.urls))
        if self._adapter.version > 1:
            await asyncio.gather(*(self._unload_adapter(transport, url, former) for url in self.urls))

    async def _load_adapter(self, transport: RetryingClient, url: str) -> None:
        body = {"lora_name": self._adapter.name, "lora_path": self._adapter.path}
        status, content = await transport.post(f"{url}/v1/load_lora_adapter", body)
        answer = summarise_server_error(content)
        is_loaded = status == _OK_STATUS and find_shape_mismatch(content, ADAPTER_LOADED) is None
        if is_loaded or (status == _REFUSED_STATUS and "already been loaded" in answer):  # the first answer was lost
            return
        hint = "Start it with --enable-lora, --max-lora-rank and VLLM_ALLOW_RUNTIME_LORA_UPDATING=True. "
        raise EngineUnavailable(
            f"{url} does not accept the adapter ({status}: {answer}). {hint if status == _UNKNOWN_STATUS else ''}"
            "It must be able to read the folder; see model.engine.init_args.folder."
        )

    async def _unload_adapter(self, transport: RetryingClient, url: str, name: str) -> None:
        # An error status is ignored: a server that has lost the adapter need not unload it.
        await transport.post(f"{url}/v1/unload_lora_adapter", {"lora_name": name})

    async def _completion(
        self, transport: RetryingClient, url: str, body: Mapping[str, Any], shape: Shape
    ) -> tuple[list[int], list[float]]:
        """Return tokens and their log-probabilities, of an answer that has a shape."""
        body = {**body, "model": self._adapter.name}
        largest = MAX_ANSWER_BYTES + TOKEN_BYTES * (len(body["prompt"]) + body["max_tokens"])
        status, content = await transport.post(f"{url}/v1/completions", body, largest)
        if status == _UNKNOWN_STATUS:  # a server that has been started again knows no adapter
            await self._load_adapter(transport, url)
            status, content = await transport.post(f"{url}/v1/completions", body, largest)
        if status != _OK_STATUS or (isinstance(content, dict) and content.get("error")):
            raise EngineUnavailable(
                f"{url} does not answer a prompt of {len(body['prompt'])} tokens "
                f"({status}: {summarise_server_error(content)})."
            )
        if problem := find_shape_mismatch(content, shape):
            raise EngineUnavailable(
                f"{url} does not answer as vLLM does: {problem}. Is it a vLLM that knows return_token_ids and serves "
                "this model?"
            )
        (choice,) = content["choices"]
        return choice["token_ids"], choice["logprobs"]["token_logprobs"]

    async def _unload_everywhere(self) -> None:
        async with RetryingClient(self.requests, timeout=10.0, patience=0.0) as transport:
            requests = (self._unload_adapter(transport, url, self._adapter.name) for url in self.urls)
            await asyncio.gather(*requests, return_exceptions=True)  # a server that has ended holds no adapter
