"""Planners on texts."""

from studies.smollm2 import count_plans


def test_text_that_two_windows_share_counts_once():
    answers = [
        {"completion": "let me think: 4", "verdict": "right"},
        {"completion": "4 + 4 = 8", "verdict": "wrong"},
    ]

    def finds(texts):
        return [[(0, 10), (5, 12)] if "let" in text else [] for text in texts]

    rows = list(count_plans.count_planning_answers("x", finds, answers))
    assert [(row["answers"], row["completions"], row["with_a_plan"]) for row in rows] == [
        ("all", "2", "1"),
        ("right", "1", "1"),
        ("not right", "1", "0"),
    ]
    assert rows[1]["share_of_text"] == "0.8000"
    assert rows[0]["share_of_text"] == "0.5000"


def test_phrases_are_found_as_the_operator_finds_them():
    assert count_plans.make_phrase_planner(["let me think"])(["Let me\nthink: 4", "4"]) == [[(0, 12)], []]
