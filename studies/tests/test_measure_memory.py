"""The forecast of memory beside what a run takes, and the parts of the script that measures it."""

import json
import os
import subprocess
import sys

import pytest
from small_policies import save_as_policy
from transformers import AutoConfig, AutoModelForCausalLM

from rlcredit.policy.memory import FORECAST_ERROR
from rlcredit.preflight.memory import ASSUMED_PROMPT_TOKENS
from studies.machinery import measure_memory
from tests.small_runs import ROOT


@pytest.mark.slow
@pytest.mark.parametrize("name", ["update", "bfloat16"])
def test_a_run_takes_its_forecast_within_thirty_percent(name, tmp_path):
    found = measure_memory.start_measurement(name, measure_memory.CPU_RUNS[name], tmp_path, "cpu", 1)
    for phase in measure_memory.PHASES:
        assert found[phase]["forecast"] == pytest.approx(found[phase]["measured"], rel=FORECAST_ERROR), phase


def test_the_kept_measurements_are_of_the_runs_that_there_are():
    kept = json.loads((ROOT / "studies/machinery/results/performance/memory.json").read_text())["memory"]
    runs = {name: measure_memory.Measured(**each["run"]) for name, each in kept.items()}
    assert runs == measure_memory.CPU_RUNS


def test_questions_differ_and_have_the_tokens_that_are_assumed(tmp_path):
    policy = save_as_policy(AutoModelForCausalLM.from_config(small_config()), tmp_path / "policy")
    texts = measure_memory.write_questions(tmp_path / "policy", 3)
    policy.load()
    assert policy.encode_questions(texts).shape == (3, ASSUMED_PROMPT_TOKENS)
    assert len(set(texts)) == 3


def test_weights_that_lie_in_a_mapped_file_are_counted_once(tmp_path):
    policy = save_as_policy(AutoModelForCausalLM.from_config(small_config()), tmp_path / "policy")
    file = (tmp_path / "policy").resolve() / "model.safetensors"
    assert measure_memory.list_mappings(file) == []
    policy.load()
    frozen = sum(weight.nbytes for weight in policy.parameters() if not weight.requires_grad)
    assert measure_memory.count_mapped_bytes(policy, file) == frozen  # neither the adapter nor the tied head


PEAKS = """
import json
from pathlib import Path

import torch
from studies.machinery.measure_memory import PeakRecorder

recorder = PeakRecorder("cpu", Path("no file"))
recorder.before = recorder.reset()
for phase, megabytes in {"large": 200, "small": 50}.items():
    torch.ones(megabytes * 2**18)
    recorder.record(phase)
print(json.dumps(recorder.peaks))
"""


def test_a_peak_is_that_of_its_phase_and_freed_memory_does_not_count():
    # In a process of its own: what other tests have left in this one may be freed meanwhile.
    done = subprocess.run(
        [sys.executable, "-c", PEAKS],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    peaks = json.loads(done.stdout)
    assert peaks["large"] == pytest.approx(200 * 2**20, rel=0.05)
    assert peaks["small"] == pytest.approx(50 * 2**20, rel=0.1)


def small_config():
    sizes = {"vocab_size": 384, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2}
    return AutoConfig.for_model("llama", **sizes, num_attention_heads=4, tie_word_embeddings=True, eos_token_id=2)
