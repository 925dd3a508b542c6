"""The engine against vLLM's interface; the last tests ask vLLM itself, in an environment that has it.

    RLCREDIT_VLLM=vllm/bin/python vllm/bin/python -m pytest -m vllm tests/rlcredit/decoding/test_vllm_in_process.py

``docs/howto/engine.md`` says how that environment is made.
"""

import importlib.util
import json
import os
import random
from pathlib import Path

import pytest
import torch
from small_policies import load_with_random_adapter

from rlcredit.base.exit_status import REFUSED, EngineUnavailable, PolicyMismatch
from rlcredit.decoding.sampling import Sampling
from rlcredit.decoding.vllm_in_process import VLLM_ENVIRONMENT, VLLMInProcess
from rlcredit.policy.adapters import install_adapter
from rlcredit.policy.policy import LoRA, Policy
from tests.rlcredit.decoding.fake_vllm_package import FakePackage
from tests.small_runs import SMALL, finish_command
from tests.wide_heads import save_with_wide_heads


@pytest.fixture
def package(monkeypatch):
    for name in VLLM_ENVIRONMENT:
        monkeypatch.setenv(name, "")
    package = FakePackage()
    package.install(monkeypatch)
    return package


@pytest.fixture
def policy():
    return load_with_random_adapter(Policy())


def ask(engine, policy, step=0):
    prompt_ids = policy.encode_questions(["1 + 2?", "3 + 4?"])
    return engine.sample(policy, prompt_ids, [0, 1], Sampling(completions=2, max_tokens=12), seed=0, step=step)


def scale_adapter(policy, factor):
    install_adapter(policy, {name: factor * weight for name, weight in policy.copy_adapter().items()})


def test_every_update_is_answered_by_its_own_adapter_and_every_completion_by_its_own_seed(fit, package):
    run = fit(steps=3, engine=VLLMInProcess())
    assert all(step["train/mismatch_max"] < 1e-4 for step in run.history)
    assert all(0.999 < step["train/ratio_min"] <= step["train/ratio_max"] < 1.001 for step in run.history)
    names, _, settings, _ = zip(*package.requests)
    assert len(set(names)) == 3
    assert len({params["seed"] for params in settings}) == 3 * 16
    assert all(params["top_p"] == 1 and params["top_k"] == 0 and params["ignore_eos"] for params in settings)
    assert not [path for path in Path("/dev/shm").glob("*") if path.name.startswith(names[0].rpartition("-")[0])]


def test_it_sleeps_between_rollouts_and_forgets_keys_and_values_first(fit, package):
    fit(steps=2, engine=VLLMInProcess())
    rollout = ["generate", "reset", "sleep 1"]
    assert package.events == ["start", *rollout, "wake", *rollout, "end"]


def test_where_there_is_no_sleep_mode_it_stays_awake(package, policy):
    package.can_sleep = False
    engine = VLLMInProcess()
    ask(engine, policy)
    ask(engine, policy)
    engine.close()
    assert package.events == ["start", *2 * ["generate", "reset"], "end"]
    assert package.arguments[0]["enable_sleep_mode"] is False


def test_an_adapter_that_is_not_applied_stops_the_run_at_the_first_step_after_an_update(fit, package):
    package.deaf = True
    with pytest.raises(PolicyMismatch, match=r"^Step 1: .* the adapter has not been applied"):
        fit(steps=3, lr=1e-4, engine=VLLMInProcess(), sampler_tolerance=1.0)
    assert package.events[-1] == "end"


def test_a_changed_adapter_changes_log_probabilities_and_the_same_one_is_not_sent_again(package, policy):
    engine = VLLMInProcess()
    samples = [ask(engine, policy), ask(engine, policy)]
    scale_adapter(policy, 2.0)
    samples.append(ask(engine, policy))
    assert [name[-2:] for name, *_ in package.requests] == 8 * ["-1"] + 4 * ["-2"]
    assert torch.equal(samples[0].logprobs, samples[1].logprobs)
    assert samples[0].completion_ids[0, 0] != samples[2].completion_ids[0, 0] or not torch.allclose(
        samples[0].logprobs[:, 0], samples[2].logprobs[:, 0], atol=1e-3
    )
    engine.close()


def test_the_trainers_modes_and_random_states_are_its_own(package, policy):
    torch.manual_seed(5)
    random.seed(5)
    states = torch.get_rng_state(), random.getstate()
    torch.use_deterministic_algorithms(True)
    try:
        with torch.autocast("cpu", torch.bfloat16):
            ask(VLLMInProcess(), policy)
            assert torch.is_autocast_enabled("cpu")
        assert torch.are_deterministic_algorithms_enabled()
    finally:
        torch.use_deterministic_algorithms(False)
    assert {modes for *_, modes in package.requests} == {(False, False)}
    assert torch.equal(torch.get_rng_state(), states[0])
    assert random.getstate() == states[1]


@pytest.mark.parametrize(("rank", "reserved"), [(1, 1), (3, 8), (16, 16), (33, 64)])
def test_memory_is_reserved_for_the_next_rank_that_vllm_knows(package, rank, reserved):
    policy = Policy(lora=LoRA(rank=rank))
    policy.load()
    engine = VLLMInProcess(gpu_memory_utilization=0.25, max_model_len=64)
    ask(engine, policy)
    arguments = package.arguments[0]
    assert arguments["max_lora_rank"] == reserved
    assert (arguments["gpu_memory_utilization"], arguments["max_model_len"]) == (0.25, 64)
    assert (arguments["model"], arguments["dtype"]) == (policy.location, "float32")
    assert arguments["load_format"] == "safetensors"
    assert arguments["logprobs_mode"] == "processed_logprobs"


def test_another_model_starts_vllm_anew_and_after_closing_it_can_be_used_again(package, policy):
    engine, other = VLLMInProcess(), Policy(lora=LoRA(rank=2))
    other.load()
    ask(engine, policy)
    ask(engine, other)
    engine.close()
    ask(engine, other)
    assert [event for event in package.events if event in ("start", "end")] == ["start", "end", "start", "end", "start"]
    assert [arguments["max_lora_rank"] for arguments in package.arguments] == [16, 8, 8]


def test_what_vllm_raises_is_one_sentence(package, policy):
    package.fault = RuntimeError("CUDA out of\n memory.")
    with pytest.raises(EngineUnavailable, match=r"tiny: CUDA out of memory\. If memory is short, lower gpu_memory_"):
        ask(VLLMInProcess(), policy)


@pytest.mark.parametrize(
    ("policy", "processes", "text"),
    [
        (Policy(), 2, "decodes for one process, got 2. Set trainer.devices to 1"),
        (Policy(quantization="4bit"), 1, "not in 4bit. Set model.policy.quantization to null"),
        (Policy(lora=LoRA(rank=513)), 1, "up to rank 512, got 513. Lower model.policy.lora.rank"),
    ],
)
def test_what_vllm_cannot_decode_is_refused(package, policy, processes, text):
    with pytest.raises(ValueError, match=rf"^model.engine: VLLMInProcess .*{text}"):
        VLLMInProcess().refuse_run(policy, processes)


def test_an_architecture_without_adapters_is_refused_before_its_weights_are_read(package, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]}))
    with pytest.raises(ValueError, match=r"has no adapters for GPT2LMHeadModel, which .* is\. Set model\.engine"):
        VLLMInProcess().refuse_run(Policy(str(tmp_path)), 1)


def test_an_old_vllm_is_refused(monkeypatch):
    FakePackage(version="0.19.1").install(monkeypatch)
    with pytest.raises(ValueError, match=r"needs vLLM 0\.20 or later .* has 0\.19\.1\. Install it"):
        VLLMInProcess().refuse_run(Policy(), 1)


@pytest.mark.skipif(importlib.util.find_spec("vllm") is not None, reason="this environment has vLLM")
@pytest.mark.parametrize("command", ["explain", "fit"])
def test_without_vllm_a_run_is_refused_at_once(tmp_path, command, mlflow_database):
    status, _, err = finish_command(tmp_path, command, *SMALL[1:], "--model.engine=VLLMInProcess")
    assert status == REFUSED, err
    assert "needs vLLM 0.20 or later beside rlcredit, and this environment has none" in err
    assert "Traceback" not in err
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    "arguments", [{"gpu_memory_utilization": 0.0}, {"gpu_memory_utilization": 1.0}, {"max_model_len": 0}]
)
def test_arguments_that_cannot_be_meant(arguments):
    with pytest.raises(ValueError, match="VLLMInProcess expects gpu_memory_utilization above 0 and below 1"):
        VLLMInProcess(**arguments)


real = [
    pytest.mark.vllm,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="this environment has no vLLM"),
]


def mark_real(test):
    for mark in real:
        test = mark(test)
    return test


@pytest.fixture(scope="module")
def twin(tmp_path_factory):
    os.environ.update({"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"})
    os.environ.update({"VLLM_CPU_NUM_OF_RESERVED_CPU": "0", "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1"})
    folder = tmp_path_factory.mktemp("twin")
    save_with_wide_heads(Policy().location, folder)
    return str(folder)


@mark_real
def test_ten_steps_are_trained_on_what_vllm_answers_and_twice_the_same(fit, twin):
    runs = [fit(steps=10, lr=2e-3, policy=Policy(twin), engine=VLLMInProcess(), prompts=4) for _ in range(2)]
    assert max(step["train/mismatch_max"] for step in runs[0].history) < 1e-3
    assert runs[0].losses == runs[1].losses
    assert all(torch.equal(weight, runs[1].adapter[name]) for name, weight in runs[0].adapter.items())


@mark_real
def test_vllm_answers_with_the_adapter_as_it_is(twin):
    policy, engine = load_with_random_adapter(Policy(twin)), VLLMInProcess()
    for factor in (1.0, 2.0):
        scale_adapter(policy, factor)
        samples = ask(engine, policy)
        prompt_ids = policy.encode_questions(["1 + 2?", "3 + 4?"]).repeat_interleave(2, 0)
        with torch.no_grad():
            scores = policy.score_prompts(prompt_ids, samples.completion_ids, Sampling().temperature)
        torch.testing.assert_close(samples.logprobs[samples.mask], scores.logprobs[samples.mask], atol=1e-4, rtol=0)
    engine.close()


@mark_real
def test_an_adapter_that_vllm_does_not_get_stops_the_run(fit, twin):
    engine = VLLMInProcess()
    replace_adapter = engine._adapter.replace_adapter
    engine._adapter.replace_adapter = lambda policy: engine._adapter.version == 0 and replace_adapter(policy)
    with pytest.raises(PolicyMismatch, match=r"^Step 1: .* the adapter has not been applied"):
        fit(steps=20, lr=2e-3, policy=Policy(twin), engine=engine)
