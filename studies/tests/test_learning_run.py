"""The learning run for a card goes through on a CPU with small sizes, and leaves curves."""

import json
import sys

import pytest

from studies.csv_rows import read_csv_rows
from studies.one_card import learning_run


@pytest.mark.slow
def test_a_policy_is_pretrained_and_trained_in_both_ways(tmp_path, monkeypatch):
    """Of one rollout each, flat makes one update and twice makes two."""
    folders = ["--out", tmp_path / "out", "--runs", tmp_path / "runs", "--policy", tmp_path / "policy"]
    arguments = [*map(str, folders), "--tiny", "--pretraining", "2", "--batch", "4"]
    monkeypatch.setattr(sys, "argv", ["learning_run", *arguments])
    with pytest.raises(SystemExit) as end:
        learning_run.main()
    assert end.value.code == 0, (tmp_path / "out" / "campaign.log").read_text()
    summaries = learning_run.summarise_runs(read_csv_rows(tmp_path / "out" / "curves.csv"))
    assert [(row["condition"], row["updates"]) for row in summaries] == [("flat", 1), ("twice", 2)]
    assert [row["step"] for row in read_csv_rows(tmp_path / "out" / "pretraining.csv")] == ["0", "1"]
    assert (tmp_path / "out" / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_a_run_that_was_cut_leaves_the_lines_that_are_whole(tmp_path):
    """The first line is the evaluation before any step; seconds count from it, tokens stay until the next count."""
    record = tmp_path / "flat" / "seed600" / "record.jsonl"
    record.parent.mkdir(parents=True)
    lines = [
        {"step": 0, "time": 10_000, "metrics": {"val/pass_at_1": 0.25}},
        {"file": "config.yaml", "to": None},
        {"step": 0, "time": 12_500, "metrics": {"tokens/decoded": 300.0, "time/update": 0.5}},
        {"step": 1, "time": 13_000, "metrics": {"val/pass_at_1": 0.75}},
    ]
    record.write_text("\n".join(map(json.dumps, lines)) + '\n{"step": 1, "ti')
    rows = learning_run.read_curve(record)
    assert [(row["seconds"], row["decoded_tokens"]) for row in rows] == [("0.0", "0"), ("2.5", "300"), ("3.0", "300")]
    [summary] = learning_run.summarise_runs(rows)
    assert summary == {
        **{"condition": "flat", "seed": "600", "updates": 1, "before": "0.250", "after": "0.750"},
        **{"seconds": "3.0", "decoded_tokens": "300"},
    }
