import json
import sys

import pytest
from mine_grams import extract_grams, frequent_clusters, main, read_right_completions

from callbacks.planning.mined_grams import MinedGrams


def test_grams_stay_inside_a_stretch_of_words():
    assert extract_grams("Let me check: 4 + 5 = 9, so that’s not right.") == {
        *("let me check", "so that's not", "that's not right", "so that's not right")
    }
    assert extract_grams("a b c d e f") == {
        *("a b c", "b c d", "c d e", "d e f", "a b c d", "b c d e", "c d e f", "a b c d e", "b c d e f")
    }


def test_a_cluster_counts_once_in_a_solution_and_what_is_everywhere_is_left_out():
    solutions = [{"the end", "let us see"}, {"the end", "let me see", "let us see"}, {"the end", "by chance"}]
    labels = {"the end": 0, "let us see": 1, "let me see": 1, "by chance": 2}
    assert frequent_clusters(solutions, labels, share=1.0) == [0, 1, 2]
    assert frequent_clusters(solutions, labels, share=0.3) == [0]
    assert frequent_clusters(solutions, labels, share=0.3, max_share=0.9) == [1]


def test_only_right_completions_count_each_once(tmp_path):
    records = [
        {"completion": text, "reward": reward} for text, reward in (("a", 1.0), ("b", 0.0), ("a", 1.0), ("c", 1.0))
    ]
    (tmp_path / "list.json").write_text(json.dumps(records))
    (tmp_path / "lines.jsonl").write_text("\n".join(map(json.dumps, records)))
    assert [read_right_completions([path]) for path in sorted(tmp_path.iterdir())] == [["a", "c"], ["a", "c"]]


def test_answers_of_an_evaluation_count_by_their_verdict(tmp_path):
    file = tmp_path / "answers.jsonl"
    file.write_text("\n".join(json.dumps({"completion": text, "verdict": text}) for text in ("right", "wrong")))
    assert read_right_completions([file]) == ["right"]


def test_what_it_writes_is_what_the_callback_reads(tmp_path, monkeypatch, capsys):
    texts = [f"let me think about it. 4 + {n} = {n + 4}. the answer is {n}." for n in range(6)]
    texts += [f"another way to see it: 4 + {n} = {n + 4}. the answer is {n}." for n in range(4)]
    table, out = tmp_path / "table.json", tmp_path / "grams.json"
    table.write_text(json.dumps([{"completion": text, "reward": 1.0} for text in texts]))
    monkeypatch.setattr(
        sys, "argv", ["mine_grams.py", str(table), "--out", str(out), "--clusters", "4", "--share", "0.5"]
    )
    main()
    assert "10 solutions" in capsys.readouterr().out
    grams = MinedGrams(str(out)).grams
    assert "let me think" in grams
    assert "the answer is" not in grams
    table.write_text("[]")
    with pytest.raises(SystemExit):
        main()
