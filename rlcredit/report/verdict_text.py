"""What a verdict means, said where the verdict stands."""

from rlcredit.report.condition_comparison import FEWEST_PAIRS


def explain_verdict(verdict: str, margin: float) -> str:
    """Return the meaning of a verdict in one sentence; empty where the verdict says its reason itself.

    Args:
        verdict: Conclusion of a comparison.
        margin: Difference that was declared not to matter, as a share.

    Example:
        >>> explain_verdict("undecided: a new campaign needs 16 seeds", 0.01)
        'Neither is shown: that there is a difference, nor that it is smaller than 1 pp.'
        >>> explain_verdict("open: 3 of 8 pairs", 0.01)
        ''

    """
    points = f"{100 * margin:g} pp"
    if verdict.endswith("cannot reach a verdict"):
        return f"Below {FEWEST_PAIRS} pairs no test reaches 5 %, however large the difference is."
    meanings = {
        "better": "The difference is shown to be above zero.",
        "worse": "The difference is shown to be below zero.",
        f"equivalent within {points}": f"It is shown to be smaller than {points}, whether or not it is zero.",
        "undecided": f"Neither is shown: that there is a difference, nor that it is smaller than {points}.",
    }
    kind = "undecided" if verdict.startswith("undecided: a new campaign") else verdict
    return meanings.get(kind, "")
