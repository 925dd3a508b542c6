"""The part of vLLM's Python interface that the engine uses; it answers with the embedded policy."""

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace

import torch
from peft import set_peft_model_state_dict
from safetensors.torch import load_file

from rlcredit.policy.policy import LoRA, Policy
from tests.rlcredit.decoding.fake_vllm import draw_completion

ADAPTED = {"Qwen3ForCausalLM": True, "GPT2LMHeadModel": False}
"""Whether the fake has adapters for an architecture."""


class FakePackage:
    """Stand for an installed vLLM.

    Attributes:
        version: Version that it says it is.
        can_sleep: Whether the platform has a sleep mode.
        deaf: Take adapters, and answer with the base model all the same.
        fault: What ``generate`` raises, if anything.
        events: What was asked of the engine, in order.
        arguments: Arguments of every engine.
        requests: Adapter, prompt, settings, and the trainer's modes, of every completion.

    """

    def __init__(self, version="0.32.0", can_sleep=True):
        self.version, self.can_sleep, self.deaf, self.fault = version, can_sleep, False, None
        self.events, self.arguments, self.requests = [], [], []

    def install(self, monkeypatch):
        """Put its modules where they are imported from."""
        classes = {name: SimpleNamespace(load_model_cls=lambda name=name: name) for name in ADAPTED}
        modules = {
            "vllm": {
                "__version__": self.version,
                "LLM": lambda **arguments: FakeLLM(self, arguments),
                "SamplingParams": lambda **settings: settings,
                "TokensPrompt": lambda prompt_token_ids: prompt_token_ids,
            },
            "vllm.platforms": {"current_platform": SimpleNamespace(is_sleep_mode_available=lambda: self.can_sleep)},
            "vllm.lora": {},
            "vllm.lora.request": {"LoRARequest": lambda name, number, path: (name, number, path)},
            "vllm.model_executor": {},
            "vllm.model_executor.models": {
                "ModelRegistry": SimpleNamespace(models=classes),
                "supports_lora": ADAPTED.__getitem__,
            },
        }
        for name, content in modules.items():
            module = ModuleType(name)
            module.__spec__ = ModuleSpec(name, None, is_package=True)
            module.__dict__.update(content)
            monkeypatch.setitem(sys.modules, name, module)


class FakeLLM:
    """Hold adapters by number, as vLLM does: one whose number is known is not read again."""

    def __init__(self, package, arguments):
        self.package, self.policy, self.numbers, self.is_awake = package, None, {}, True
        package.arguments.append(arguments)
        package.events.append("start")
        torch.manual_seed(arguments["seed"])  # as vLLM does
        self.llm_engine = SimpleNamespace(engine_core=SimpleNamespace(shutdown=lambda: package.events.append("end")))

    def generate(self, prompts, params, use_tqdm, lora_request):
        assert self.is_awake
        self.package.events.append("generate")
        if self.package.fault:
            raise self.package.fault
        name, number, path = lora_request
        if number not in self.numbers:
            self.numbers = {number: load_file(f"{path}/adapter_model.safetensors")}
            if self.policy is None:
                rank = next(len(weight) for name, weight in self.numbers[number].items() if "lora_A" in name)
                self.policy = Policy(lora=LoRA(rank=rank))
                self.policy.load()
            if not self.package.deaf:
                set_peft_model_state_dict(self.policy.lm, self.numbers[number])
        return [self.complete(name, *request) for request in zip(prompts, params)]

    def complete(self, name, prompt, params):
        modes = torch.are_deterministic_algorithms_enabled(), torch.is_autocast_enabled("cpu")
        self.package.requests.append((name, prompt, params, modes))
        samples = draw_completion(self.policy, prompt, params["seed"], params["max_tokens"], params["temperature"])
        tokens, logprobs = samples.completion_ids[0].tolist(), samples.logprobs[0].tolist()
        entries = [{token: SimpleNamespace(logprob=value)} for token, value in zip(tokens, logprobs)]
        return SimpleNamespace(outputs=[SimpleNamespace(token_ids=tuple(tokens), logprobs=entries)])

    def reset_prefix_cache(self):
        self.package.events.append("reset")

    def sleep(self, level):
        self.package.events.append(f"sleep {level}")
        self.is_awake = False

    def wake_up(self):
        self.package.events.append("wake")
        self.is_awake = True
