"""One batch of a policy, measured whole."""

import argparse

import pytest

from studies.credit_patterns import measure_signals


def test_a_row_has_the_words_that_it_lacks_empty():
    row = measure_signals.write_row(
        "decoy", "order", {"quantity": "below_half", "estimate": 1 / 3, "low": 0.0, "high": 1}
    )
    assert row == {
        **{"policy": "decoy", "part": "order", "tokens": "", "subject": "", "quantity": "below_half"},
        **{"estimate": "0.333333", "low": "0", "high": "1"},
    }
    assert measure_signals.format_value(row) == "0.333 (0.000 to 1.000)"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["aligned", "backward"])
def test_only_policies_that_say_phrases_are_pooled(name):
    rows = measure_signals.measure_policy(name, argparse.Namespace(prompts=12, asked=4, samples=4))
    parts = {row["part"] for row in rows}
    assert {"variance", "order", "pivots"} <= parts
    assert ({"pooling", "pooled credit", "masks"} <= parts) == (name == "aligned")
    assert len({tuple(row[key] for key in ("part", "tokens", "subject", "quantity")) for row in rows}) == len(rows)
    unlike = [row for row in rows if not float(row["low"]) <= float(row["estimate"]) <= float(row["high"])]
    assert unlike == []
