"""Runs that must stay equal, bit for bit: weights, optimizer, record, and what the policy answered.

The hashes are those of ``golden_runs.json``, which knows the machines that it was recorded on. On any other, rounded
figures of every step are compared alone. A machine is added by::

    python tests/behaviour/test_golden_runs.py --record

Where numbers are meant to change, remove ``golden_runs.json`` and record again.
"""

import argparse
import hashlib
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

ROOT = Path(__file__).parents[2]
CONDITIONS = ROOT / "configs" / "conditions"
GOLDEN = Path(__file__).with_name("golden_runs.json")
SMALL = [
    *("fit", f"--config={ROOT / 'configs' / 'tiny.yaml'}", "--threads=1", "--trainer.logger=false"),
    *("--trainer.max_steps=3", "--trainer.val_check_interval=2"),
    *("--checkpoint.every_n_train_steps=2", "--completions.every_n_steps=2"),
    *("--model.sampling.completions=4", "--model.sampling.max_tokens=40", "--model.validation.max_tokens=40"),
    *("--data.init_args.prompts_per_step=2", "--data.init_args.train_size=64", "--data.init_args.validation_size=8"),
]
TWO_ROLLOUTS = (
    *("--model.updates_per_rollout=2", "--model.minibatches=2", "--model.optimizer.init_args.lr=0.003"),
    *("--trainer.max_steps=4", "--data.init_args.prompts_per_step=8", "--model.sampling.completions=8"),
)
RISING = "{class_path: LinearLambda, init_args: {delay: 0, steps: 4}}"
"""A pooling strength that leaves zero within three steps, which that of the condition does not."""

ORACLE = "{class_path: CreditOracle, init_args: {completions: 4, samples: 8}}"
PROBES = ("QuadrantStats", "ZeroVariance", "DecisionPivots", "EntropyCollapse", "SignalStats", "TopTokens", ORACLE)
RUNS = {
    "grpo": [],
    "maxrl_sepa_hicra": [
        f"--config={CONDITIONS / 'sepa_variants' / 'maxrl_sepa_hicra.yaml'}",
        f"--trainer.callbacks=[MaxRL, StrategicGrams, {RISING}, CorrectnessGate, SEPA, GTPO, HICRA]",
    ],
    "eapo": [f"--config={CONDITIONS / 'eapo' / 'eapo.yaml'}", *TWO_ROLLOUTS],
    "dynamic_sampling": [
        *(f"--config={CONDITIONS / 'losses' / 'dapo.yaml'}", *TWO_ROLLOUTS),
        *("--data.init_args.prompts_per_step=4", "--model.sampling.completions=4", "--model.micro_batch_tokens=240"),
    ],
    "tepo_reference": [
        *(f"--config={CONDITIONS / 'systems' / 'tepo_reference.yaml'}", *TWO_ROLLOUTS),
        "--model.minibatches=1",
    ],
    "monte_carlo_credit": [f"--config={CONDITIONS / 'monte_carlo' / 'monte_carlo_credit.yaml'}"],
    "probes": [
        f"--config={CONDITIONS / 'probes' / 'measured.yaml'}",
        *(f"--trainer.callbacks+={probe}" for probe in PROBES),
    ],
    "two_processes": ["--trainer.devices=2", "--trainer.strategy=ddp"],
}
CLOCKS = re.compile(r"time/|memory|per_second")
"""In the names of metrics that no two runs share."""

COUNTS = "tokens"
"""First part of the names of counts, and their key in held-out files. Runs counted none when they were recorded; what
the counts are is checked against rollouts in ``test_token_counts.py``."""

LATER = {"train/learning_rate", "reference", "verdict"}
"""A metric, and columns of tables, that runs did not write when they were recorded."""

FIGURES = ("train/reward", "train/loss", "train/gradient_norm")


def machine():
    """Return what the bits of a run depend on beside the code."""
    packages = (f"torch {version('torch')}", f"transformers {version('transformers')}")
    return ", ".join([*packages, torch.backends.cpu.get_cpu_capability(), platform.machine(), processor()])


def processor():
    """Return the kind of the processor: libraries choose their kernels by it."""
    try:
        told = dict(re.findall(r"^(\S[^\t:]*?)\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE))
        return " ".join(told[each] for each in ("vendor_id", "cpu family", "model"))
    except (OSError, LookupError):
        return platform.processor()


def outcome(name, home, *arguments, **environment):
    """Run one of ``RUNS`` and return hashes and figures of what it leaves."""
    cwd = Path(home) / name
    cwd.mkdir()
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "rlcredit", *SMALL, *RUNS[name], *arguments],
        **{"cwd": cwd, "capture_output": True, "text": True, "timeout": 300},
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": paths, **environment},
    )
    assert done.returncode == 0, done.stderr
    (run,) = (cwd / "runs").iterdir()
    metrics = recorded(run)
    return {
        "hashes": {
            "adapter": digest(tensors(run / "adapter" / "adapter_model.safetensors")),
            "optimizer": digest(optimizer(run / "checkpoints" / "last.ckpt")),
            "metrics": digest(repr(metric) for metric in metrics),
            "held_out": digest(tables(run, "held_out")),
            "tables": digest(tables(run, "completions", "probes", "tokens")),
        },
        "figures": {each: [float(f"{value:.6g}") for _, key, value in metrics if key == each] for each in FIGURES},
    }


def digest(parts):
    """Return the SHA-256 of texts and bytes, each set off from the next; nothing at all is a mistake."""
    whole, encoded = hashlib.sha256(), [part if isinstance(part, bytes) else part.encode() for part in parts]
    assert encoded
    for part in encoded:
        whole.update(len(part).to_bytes(8, "little") + part)
    return whole.hexdigest()


def tensors(path):
    """Yield name, type, shape and bytes of the tensors in a file, in the order of their names."""
    for name, tensor in sorted(load_file(path).items()):
        yield from (name, *described(tensor))


def optimizer(path):
    """Yield the tensors of the optimizer's state, weight by weight."""
    for state in torch.load(path, weights_only=True)["optimizer_states"]:
        for number, kept in sorted(state["state"].items()):
            for name, tensor in sorted(kept.items()):
                yield from (f"{number} {name}", *described(tensor))


def described(tensor):
    raw = tensor.contiguous().flatten().view(torch.uint8).numpy().tobytes()
    return str(tensor.dtype), str(tuple(tensor.shape)), raw


def recorded(run):
    """Return step, name and value of every metric but those of clocks, in order."""
    entries = [json.loads(line) for line in (run / "record.jsonl").read_text().splitlines()]
    return sorted(
        (entry["step"], name, value)
        for entry in entries
        for name, value in entry.get("metrics", {}).items()
        if not CLOCKS.search(name) and name.partition("/")[0] != COUNTS and name not in LATER
    )


def tables(run, *folders):
    """Yield names and contents of the JSON files in folders of a run."""
    for path in sorted(path for folder in folders for path in (run / folder).glob("*.json")):
        content = json.loads(path.read_text())
        if path.parent.name == "held_out":
            del content[COUNTS]
        if path.parent.name == "completions":
            content = [{name: value for name, value in row.items() if name not in LATER} for row in content]
        yield from (path.name, json.dumps(content, sort_keys=True))


def golden():
    """Return what has been recorded."""
    return json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {"figures": {}, "hashes": {}}


def near(figures):
    return {name: pytest.approx(values, rel=1e-3, abs=1e-6) for name, values in figures.items()}


@pytest.fixture(scope="module")
def outcomes(request, tmp_path_factory):
    """Return a function of a name; runs go two at a time where no other process tests."""
    home = tmp_path_factory.mktemp("golden")
    alone = "PYTEST_XDIST_WORKER" not in os.environ
    asked = [item.callspec.params["name"] for item in request.session.items if item.path == Path(__file__)]
    with ThreadPoolExecutor(2) as pool:
        begun = {name: pool.submit(outcome, name, home) for name in asked if alone}
        yield lambda name: begun[name].result() if name in begun else outcome(name, home)
        pool.shutdown(cancel_futures=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_a_run_is_what_it_was(outcomes, name):
    found, expected = outcomes(name), golden()
    assert found["figures"] == near(expected["figures"][name])
    known = expected["hashes"].get(machine(), {})
    assert found["hashes"] == known.get(name, found["hashes"])


def record():
    """Add this machine to what has been recorded."""
    kept = golden()
    with tempfile.TemporaryDirectory() as home, ThreadPoolExecutor(2) as pool:
        found = dict(zip(RUNS, pool.map(lambda name: outcome(name, home), RUNS)))
    for name, each in found.items():
        if each["figures"] != near(kept["figures"].setdefault(name, each["figures"])):
            sys.exit(f"{name} has other figures than recorded: {each['figures']}. To begin anew remove {GOLDEN}.")
    kept["hashes"][machine()] = {name: each["hashes"] for name, each in found.items()}
    GOLDEN.write_text(json.dumps(kept, indent=1) + "\n")
    print(f"{GOLDEN} knows {machine()}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Record runs that must stay equal.")
    parser.add_argument("--record", action="store_true", required=True, help="add this machine")
    parser.parse_args()
    record()
