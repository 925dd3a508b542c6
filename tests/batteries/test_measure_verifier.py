import json

import pytest
from measure_verifier import (
    RewrittenGold,
    count_verdicts,
    group_misjudged_golds,
    is_right_for_math_verify,
    read_golds,
    rewrite_golds,
)
from tabulate_verifier import render_rewrite_table, render_verifier_table

from rlcredit.verification.verifiers import Verdict

RIGHT, WRONG, UNJUDGED = Verdict.RIGHT, Verdict.WRONG, Verdict.UNJUDGED


@pytest.mark.parametrize(
    ("records", "golds"),
    [
        ([{"question": "a", "answer": "thus\n#### 1,200"}, {"question": "b", "answer": "#### 1,200"}], ["1,200"]),
        ([{"problem": "a", "solution": r"so \boxed{\frac{1}{2}}.", "answer": "0.5"}], ["0.5"]),
        ([{"problem": "a", "solution": r"first \boxed{3}, then \boxed{\frac{1}{2}}."}], [r"\frac{1}{2}"]),
        ([{"input": "a", "target": 43.0}, {"input": "b", "target": 0.5}], ["43", "0.5"]),
        ([{"problem": "a", "answer": ["$x$"]}, {"problem": "b", "answer": ["1", "2"]}], ["$x$"]),
    ],
)
def test_golds_are_found_where_files_have_them(tmp_path, records, golds):
    path = tmp_path / "questions.jsonl"
    path.write_text("\n".join(map(json.dumps, records)), "utf-8")
    assert read_golds(path, None, None) == golds


def test_a_rewrite_has_so_many_cases_the_same_for_one_seed():
    golds = [str(number) for number in range(3, 40)]
    cases = rewrite_golds(golds, 2, seed=1)
    assert cases == rewrite_golds(golds, 2, seed=1) != rewrite_golds(golds, 2, seed=2)
    assert [case.kind for case in cases if case.rewrite == "in a box"] == ["equal"] * 2
    assert {case.completion for case in cases if case.rewrite == "one more"} == {
        rf"\boxed{{{int(case.gold) + 1}}}" for case in cases if case.rewrite == "one more"
    }


def test_counts_and_tables_follow_from_the_verdicts():
    cases = [RewrittenGold("equal", "in a box", "3", r"\boxed{3}")] * 4 + [
        RewrittenGold("different", "one more", "3", r"\boxed{4}")
    ] * 2
    verdicts = [RIGHT, RIGHT, WRONG, UNJUDGED, RIGHT, WRONG]
    rows = [
        {name: str(cell) for name, cell in row.items()}
        for row in count_verdicts("sums.csv", cases, verdicts, [True] * 3 + [False] * 3)
    ]
    assert [(row["cases"], row["right"], row["math_verify_right"]) for row in rows] == [
        ("4", "2", "3"),
        ("2", "1", "0"),
    ]
    assert (
        render_verifier_table(rows).splitlines()[2]
        == "| `sums.csv` | 4 | 2 (50.0 %) | 1 (25.0 %) | 2 | 1 (50.0 %) | 0 (0.0 %) |"
    )
    assert render_rewrite_table(rows, rows).splitlines()[2:] == [
        "| equal | in a box | 4 | 2 | 2 | 1 |",
        "| different | one more | 2 | 1 | 1 | 0 |",
    ]
    assert [len(missed) for missed in group_misjudged_golds(cases, verdicts).values()] == [2, 1]


def test_the_library_alone_is_not_right_where_it_raises(monkeypatch):
    case = RewrittenGold("equal", "in a box", r"\frac{1}{2}", r"\boxed{0.5}")
    assert is_right_for_math_verify(case)

    def fail(*_, **__):
        raise RecursionError

    monkeypatch.setattr("math_verify.parse", fail)
    assert not is_right_for_math_verify(case)
