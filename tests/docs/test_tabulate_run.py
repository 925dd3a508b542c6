"""The held-out evaluations of a run, read back from its folder."""

import json

import pytest
from docs.studies.smollm2 import tabulate_run

from rlcredit.statistics.intervals import share_interval


@pytest.fixture
def run(tmp_path):
    """Write two evaluations ninety seconds apart, with a step between them."""
    (tmp_path / "held_out").mkdir()
    entries = [{"metrics": {"train/loss": 1.0}, "step": 0, "time": 5_000}, {"tags": {}}]
    for step, time, right in ((0, 10_000, [[1, 0], [0, 0]]), (6, 100_000, [[1, 1], [1, 0]])):
        accuracy = sum(map(sum, right)) / 4
        metrics = {"pass_at_1": accuracy, "pass_at_k": 0.5, "completion_length": 28.25, "entropy": 0.125}
        named = {f"val/{name}": value for name, value in {**metrics, "no_answer": 0.25}.items()}
        entries.append({"metrics": named, "step": step, "time": time})
        (tmp_path / "held_out" / f"step_{step:06d}.json").write_text(json.dumps({"right": right}))
    (tmp_path / "record.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return tmp_path


def test_every_evaluation_is_a_row_with_its_minutes_and_its_interval_over_questions(run):
    first, last = tabulate_run.read_run_evaluations(run)
    assert (first["step"], first["minutes"], first["pass_at_1"]) == ("0", "0", "0.25")
    assert (last["step"], last["minutes"], last["pass_at_1"]) == ("6", "1.5", "0.75")
    low, high, _ = share_interval([1.0, 0.5])
    assert (float(last["low"]), float(last["high"])) == pytest.approx((low, high), rel=1e-5)


def test_the_table_has_a_line_for_each(run):
    *_, line = tabulate_run.render_run_table(list(tabulate_run.read_run_evaluations(run))).splitlines()
    assert line.startswith("| 6 steps | 1.5 | 0.750 | ")
    assert line.endswith(" | 0.500 | 28.2 | 0.125 | 25.0 % |")
