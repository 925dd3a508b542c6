"""The meaning of verdicts."""

import pytest

from rlcredit.report.verdict_text import explain_verdict


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        ("better", "is shown to be higher"),
        ("worse", "is shown to be lower"),
        ("equivalent within 2 pp", "to differ by less than 2 pp"),
        ("undecided: a new campaign needs 16 seeds", "neither to differ, nor to differ by less than 2 pp"),
        ("could not decide: 2 pairs cannot reach a verdict", "Below 6 pairs no test"),
        ("undecided: 1 of 8 runs collapsed, 0 of the baseline's", None),
        ("not compared: other questions or evaluations", None),
    ],
)
def test_a_verdict_that_gives_no_reason_itself_is_explained(verdict, words):
    said = explain_verdict(verdict, 0.02, "The end")
    assert words in said if words else said == ""
