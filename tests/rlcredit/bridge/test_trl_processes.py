"""Two processes of TRL: with flat credit the gradients of flat TRL, and groups that they would share are refused."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("trl")

SCRIPT = """
import json, os, sys, warnings
warnings.simplefilter("ignore")
from tests.rlcredit.bridge.test_trl import norms, train
from callbacks import GRPO
from pathlib import Path
stack = None if sys.argv[1] == "flat" else [GRPO()]
trainer = train(Path(sys.argv[2]), stack, per_device_train_batch_size=int(sys.argv[3]), ddp_backend="gloo")
if trainer.accelerator.is_main_process:
    print("NORMS", json.dumps(norms(trainer)))
"""


def run_processes(kind, folder, rows):
    """Run two processes and return what they print, and say."""
    root = Path(__file__).parents[3]
    environment = os.environ | {
        "PYTHONPATH": f"{root}:{root / 'scripts'}",
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
    }
    script = folder / "script.py"
    script.write_text(SCRIPT)
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    done = subprocess.run(
        [*launch, str(script), kind, str(folder / kind), str(rows)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
        check=False,
    )
    found = [line for line in done.stdout.splitlines() if line.startswith("NORMS")]
    return (json.loads(found[0].removeprefix("NORMS")) if found else None), done.stderr


@pytest.mark.slow
def test_two_processes_with_flat_credit_have_the_gradients_of_flat_trl(tmp_path):
    flat, said = run_processes("flat", tmp_path, rows=8)
    assert flat is not None, said
    assert any(flat)
    credited, said = run_processes("credited", tmp_path, rows=8)
    assert credited == pytest.approx(flat, rel=1e-5), said


@pytest.mark.slow
def test_groups_that_two_processes_would_share_are_refused(tmp_path):
    credited, said = run_processes("credited", tmp_path, rows=2)
    assert credited is None
    assert "a multiple of num_generations" in said
