"""A run of episodes that is killed in the middle of one, and continued."""

import json
import os
import signal

import pytest
from safetensors.torch import load_file

from tests.forks import CommandFork
from tests.small_runs import ROOT, wait_for_small_run

CONFIG = """
condition: episodes
threads: 1
trainer: {accelerator: cpu, max_steps: 5, val_check_interval: 2, callbacks: [RLOO], logger: false}
checkpoint: {every_n_train_steps: 2}
model:
  policy: {path: tiny, prompt: {chat: false}}
  sampling: {completions: 4, max_tokens: 64, temperature: 1.0}
  validation: {completions: 1, max_tokens: 64, temperature: 1.0}
  pass_k: 1
  optimizer: torch.optim.AdamW(lr=5.0e-3)
data:
  class_path: Episodes
  init_args:
    environment: tests.behaviour.fused_counting.FusedCounting(length=3)
    prompts_per_step: 2
    validation_size: 4
    train_size: 32
    turn_tokens: 8
"""
MEASURED = ("train/reward", "train/turns", "train/observation_tokens", "train/loss", "train/gradient_norm", "val/turns")


def run(cwd, *arguments):
    cwd.mkdir(exist_ok=True)
    (cwd / "run.yaml").write_text(CONFIG, encoding="utf-8")
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    command = ["-m", "rlcredit", "fit", "--config=run.yaml", *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": paths}
    return wait_for_small_run(CommandFork(command, cwd, environment))


def read_results(cwd):
    """Return weights, and what was measured at each step."""
    folder = cwd / "runs" / "episodes-seed0"
    entries = map(json.loads, (folder / "record.jsonl").read_text(encoding="utf-8").splitlines())
    measured = {
        (entry["step"], name): entry["metrics"][name]
        for entry in entries
        for name in MEASURED
        if name in entry.get("metrics", {})
    }
    return load_file(folder / "adapter" / "adapter_model.safetensors"), measured


@pytest.mark.slow
def test_a_run_killed_in_mid_episode_goes_on_to_the_same_weights_bit_for_bit(tmp_path):
    status, _, err = run(tmp_path / "whole")
    assert status == 0, err
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / "fuse").touch()
    assert run(tmp_path / "cut")[0] in (-signal.SIGKILL, 128 + signal.SIGKILL)
    assert not (tmp_path / "cut" / "fuse").exists()
    status, _, err = run(tmp_path / "cut", "--ckpt_path=last")
    assert status == 0, err
    (weights, measured), (other_weights, other_measured) = (read_results(tmp_path / name) for name in ("whole", "cut"))
    assert all(weights[name].equal(other_weights[name]) for name in weights)
    assert measured == other_measured
    assert measured[4, "train/turns"] == 3
    status, _, err = run(tmp_path / "cut", "--ckpt_path=last", "--data.init_args.environment.init_args.length=4")
    assert status == 2
    assert "the checkpoint was made with task 'Episodes(environment=FusedCounting(length=3)" in err
