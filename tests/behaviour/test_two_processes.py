"""What one process finds stops, or skips, all; what each decodes and trains on is what one process would."""

import re
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

from tests.behaviour.two_branches import train_on_branches
from tests.behaviour.two_hints import train_on_hints
from tests.small_runs import run_test_script


@pytest.mark.slow
def test_what_is_not_finite_in_one_process_is_skipped_and_stopped_by_both(tmp_path):
    done = run_test_script(Path(__file__).with_name("two_processes.py"), tmp_path)
    assert done.returncode == 3, done.stderr
    skipped = re.findall(r"rank (\d), step (\d), skipped (\w+)", done.stdout)
    assert sorted(skipped) == [(rank, step, str(step == "2")) for rank in "01" for step in "12"]
    said = re.findall(r"rank (\d), error: (.*)", done.stdout)
    kept = tmp_path / "postmortem" / "step_000002_rank1.pt"
    for _, message in said:
        assert message.startswith("Step 2: SpoiledCredit assigning credit gives advantages that are not finite")
        assert message.endswith(f"The batch is kept in {kept}.")
    assert sorted(rank for rank, _ in said) == ["0", "1"]
    assert torch.load(kept, weights_only=True)["rank"] == 1
    assert torch.load(kept.with_name("step_000002.pt"), weights_only=True)["message"] == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "train"), [("two_branches.py", train_on_branches), ("two_hints.py", train_on_hints)]
)
def test_two_processes_train_on_the_continuations_and_the_hints_of_one(tmp_path, script, train):
    done = run_test_script(Path(__file__).with_name(script), tmp_path)
    assert done.returncode == 0, done.stderr
    gradients, tokens = train(tmp_path)
    assert min(max(part.abs().max() for part in gradient.values()) for gradient in gradients) > 1e-3
    for rank in (0, 1):
        of_rank, tokens_of_both = torch.load(tmp_path / f"rank{rank}.pt", weights_only=True)
        assert tokens_of_both == tokens
        for one, two in zip(of_rank, gradients, strict=True):
            for name in two:
                assert_close(one[name], two[name], atol=5e-6, rtol=1e-3)
