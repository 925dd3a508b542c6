"""A run read back from its folder as tables."""

import json
from pathlib import Path

import pandas as pd
import pytest

from rlcredit.record.recorded_run import read_run

KEPT = Path(__file__).parents[2] / "kept" / "runs" / "kept-seed0"

RECORD = (
    {"step": 0, "time": 1, "metrics": {"val/pass_at_1": 0.25}},
    {"file": "held_out/step_000000.json", "to": "held_out"},
    {"tags": {"held_out.step": "0"}},
    {"parameters": {"optimizer.lr": "0.0005", "stack": "MaxRL(eps=1e-06) > SEPA > GTPO(beta=0.1)"}},
    {"step": 0, "time": 2, "metrics": {"train/loss": -0.5, "train/reward": 0.5}},
    {"table": "completions/step_000000.json"},
    {"step": 2, "time": 4, "metrics": {"val/pass_at_1": 0.75}},
    {"step": 1, "time": 3, "metrics": {"train/loss": float("nan"), "train/reward": 1.0}},
)


@pytest.fixture
def folder(tmp_path):
    lines = [json.dumps(entry) for entry in RECORD]
    begun = '{"step":3,"time":5,"met'  # by a run that still writes
    (tmp_path / "record.jsonl").write_text("\n".join([*lines, begun]), encoding="utf-8")
    return tmp_path


def write_evaluation(folder, step, right, **sets):
    verdicts = {name: {"numbers": [4], "questions_sha256": "b", "right": rows} for name, rows in sets.items()}
    evaluation = {"step": step, "metrics": {}, "numbers": [0, 7], "questions_sha256": "a", "right": right}
    (folder / "held_out").mkdir(exist_ok=True)
    path = folder / "held_out" / f"step_{step:06d}.json"
    path.write_text(json.dumps({**evaluation, **({"sets": verdicts} if sets else {})}), encoding="utf-8")


def test_a_row_holds_all_that_was_logged_of_a_step(folder):
    expected = pd.DataFrame(
        {
            "val/pass_at_1": [0.25, float("nan"), 0.75],
            "train/loss": [-0.5, float("nan"), float("nan")],
            "train/reward": [0.5, 1.0, float("nan")],
        },
        index=pd.Index([0, 1, 2], name="step"),
    )
    pd.testing.assert_frame_equal(read_run(folder).metrics, expected)


def test_parameters_and_stack_are_those_of_the_record(folder):
    run = read_run(str(folder))
    assert run.parameters["optimizer.lr"] == "0.0005"
    assert run.stack == ["MaxRL(eps=1e-06)", "SEPA", "GTPO(beta=0.1)"]


def test_every_held_out_answer_is_a_row(folder):
    write_evaluation(folder, 0, [[1, 0], [0, 0]])
    write_evaluation(folder, 20, [[1, 1], [1, 0]], hard=[[0]])
    answers = read_run(folder).held_out
    assert answers[answers["set"] == ""].groupby("step")["right"].mean().to_dict() == {0: 0.25, 20: 0.75}
    assert answers.iloc[-1].to_dict() == {"step": 20, "set": "hard", "question": 4, "sample": 0, "right": False}
    assert answers.iloc[1].to_dict() == {"step": 0, "set": "", "question": 0, "sample": 1, "right": False}


def test_a_run_that_has_only_begun_has_empty_tables(tmp_path):
    (tmp_path / "record.jsonl").touch()
    run = read_run(tmp_path)
    assert run.metrics.empty
    assert list(run.held_out.columns) == ["step", "set", "question", "sample", "right"]
    assert run.held_out.empty
    assert run.parameters.empty
    assert run.stack == []


def test_a_folder_without_a_record_holds_no_run(tmp_path):
    with pytest.raises(ValueError, match=r"holds no run: there is no record.jsonl in it. Pass the folder of a run."):
        read_run(tmp_path)


def test_a_run_of_an_earlier_state_of_the_code_is_read():
    run = read_run(KEPT)
    assert run.stack == ["GRPO(normalize_std=False)", "Halved"]
    assert run.parameters["optimizer.class"] == "AdamW"
    solved = run.metrics["val/pass_at_1"].dropna()
    assert solved.to_dict() == {0: 0.1875, 2: 0.1875, 4: 0.1875}
    assert run.held_out.groupby("step")["right"].mean().to_dict() == solved.to_dict()
    assert run.metrics["train/loss"].notna().tolist() == [True, True, True, True, False]
