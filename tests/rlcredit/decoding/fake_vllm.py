"""A server that speaks the part of vLLM's protocol that the engine uses, and answers with the embedded policy."""

import asyncio
import threading
from collections import Counter
from contextlib import contextmanager

import torch
from aiohttp import web
from peft import set_peft_model_state_dict
from safetensors.torch import load_file

from rlcredit.decoding.in_process import InProcessEngine
from rlcredit.decoding.noise import sampling_uniforms
from rlcredit.policy.policy import Policy

REFUSED, UNKNOWN, BUSY = 400, 404, 503


class FakeVLLM:
    """Hold adapters by name; draw by the seed of each request.

    Attributes:
        deaf: take adapters, and answer with the base model all the same.
        busy: how many requests are still answered with status 503.
        lost: how many answers still get lost on the way.
        holds: function that tells of a request for a completion, by its number, whether it is still held back.
        answering: how many requests of each adapter are not yet answered.
        faults: what no engine may do: ask with two adapters at once, or unload one that is asked.

    """

    def __init__(self):
        self.policy = Policy()
        self.policy.load()
        self.adapters, self.names, self.bodies = {}, [], []
        self.current = None
        self.deaf, self.busy, self.lost = False, 0, 0
        self.holds, self.asked, self.answering, self.faults = lambda number: False, 0, Counter(), []

    async def handle(self, request):
        body = await request.json()
        if self.busy:
            self.busy -= 1
            return web.json_response({"error": {"message": "not now"}}, status=BUSY)
        if request.path == "/v1/completions":
            answer = await self.complete_in_turn(request, body)
        else:
            answer = {"/v1/load_lora_adapter": self.load, "/v1/unload_lora_adapter": self.unload}[request.path](body)
        if self.lost:
            self.lost -= 1
            request.transport.close()
        return answer

    def load(self, body):
        if body["lora_name"] in self.adapters:
            said = f"The lora adapter '{body['lora_name']}' has already been loaded."
            return web.json_response({"error": {"message": said}}, status=REFUSED)
        self.adapters[body["lora_name"]] = load_file(f"{body['lora_path']}/adapter_model.safetensors")
        self.names.append(body["lora_name"])
        return web.Response(text="Success")

    async def complete_in_turn(self, request, body):
        number, self.asked = self.asked, self.asked + 1
        self.answering[body["model"]] += 1
        if len(+self.answering) > 1:
            self.faults.append(f"asked with {', '.join(+self.answering)}")
        try:
            while self.holds(number):
                if request.transport is None:  # nobody waits for the answer any more
                    return web.Response()
                await asyncio.sleep(0.005)
            return self.complete(body)
        finally:
            self.answering[body["model"]] -= 1

    def unload(self, body):
        if self.answering[body["lora_name"]]:
            self.faults.append(f"unloaded {body['lora_name']}")
        found = self.adapters.pop(body["lora_name"], None)
        return web.json_response({}, status=UNKNOWN if found is None else 200)

    def complete(self, body):
        if body["model"] not in self.adapters:
            said = f"The model `{body['model']}` does not exist."
            return web.json_response({"error": {"message": said}}, status=UNKNOWN)
        self.bodies.append(body)
        if body["model"] != self.current and not self.deaf:
            set_peft_model_state_dict(self.policy.lm, self.adapters[body["model"]])
            self.current = body["model"]
        samples = draw_completion(self.policy, body["prompt"], body["seed"], body["max_tokens"], body["temperature"])
        choice = {
            "finish_reason": "length" if samples.truncated[0] else "stop",
            "token_ids": samples.completion_ids[0].tolist(),
            "logprobs": {"token_logprobs": samples.logprobs[0].tolist()},
        }
        return web.json_response({"choices": [choice]})


def draw_completion(policy, prompt, seed, max_tokens, temperature):
    """Continue a prompt, by a seed."""
    noise = sampling_uniforms(seed, 0, [0], [0], max_tokens)
    return InProcessEngine().decode(policy, torch.tensor([prompt]), noise, torch.tensor([0]), temperature)


@contextmanager
def served(fake):
    """Serve on a free port of this machine; yield the URL."""
    loop, started, where = asyncio.new_event_loop(), threading.Event(), []

    async def start():
        app = web.Application()
        app.router.add_post("/{path:.*}", fake.handle)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        where.extend([runner, site._server.sockets[0].getsockname()[1]])
        started.set()

    def run():
        asyncio.set_event_loop(loop)
        loop.run_until_complete(start())
        loop.run_forever()
        loop.run_until_complete(where[0].cleanup())
        loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    started.wait()
    try:
        yield f"http://127.0.0.1:{where[1]}"
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
