"""Rewritten golds: what keeps the value is right, and what changes it is not."""

from collections import Counter
from pathlib import Path
from zlib import crc32

import pytest
from gold_kinds import read_gold_number, read_mixed_number, read_percentage, read_scientific_number
from verifier_rewrites import DIFFERENT, EQUAL

from rlcredit.verification.verifiers import MathVerifier, Verdict

GOLDS = [
    line
    for line in (Path(__file__).parent / "golds.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("# ")
]
EQUAL_GOLDS, DIFFERENT_GOLDS = 8, 4
"""Golds that a rewrite is tried on, spread over those to which it applies, so that the test takes seconds."""


def spread(name, written):
    """Return some of a list, from its beginning to its end, other ones for every name."""
    number = min(len(written), EQUAL_GOLDS if name in EQUAL else DIFFERENT_GOLDS)
    begun = crc32(name.encode()) % len(written) if written else 0
    return [written[(begun + place * len(written) // number) % len(written)] for place in range(number)]


def cases(rewrites):
    """Return name, gold and completion of every rewrite of some golds."""
    found = []
    for name, rewrite in rewrites.items():
        written = [(name, gold, text) for gold in GOLDS if (text := rewrite(gold)) is not None]
        found += spread(name, written)
    return found


def judged(rewrites):
    """Return the cases of some rewrites by verdict."""
    found = cases(rewrites)
    verdicts = MathVerifier(budget=1e9).judge([text for *_, text in found], [gold for _, gold, _ in found])
    return list(zip(found, verdicts))


def number_in_box(completion):
    r"""Return the number in a ``\boxed{}`` that holds nothing else."""
    inside = completion.removeprefix(r"\boxed{").removesuffix("}")
    if inside == completion or not completion.endswith("}"):
        return None
    return next(
        (
            number
            for read in (read_gold_number, read_mixed_number, read_scientific_number)
            if (number := read(inside)) is not None
        ),
        None,
    )


def test_there_are_enough_golds_and_rewrites():
    assert len(GOLDS) == len(set(GOLDS)) >= 120
    assert len(EQUAL) >= 30
    assert len(DIFFERENT) >= 15


@pytest.mark.parametrize("rewrites", [EQUAL, DIFFERENT], ids=["equal", "different"])
def test_every_rewrite_applies_to_some_gold_and_changes_its_text(rewrites):
    counts = Counter(dict.fromkeys(rewrites, 0))
    for name, gold, text in cases(rewrites):
        counts[name] += 1
        assert text != gold
    assert [name for name, count in counts.items() if not count] == []


def test_rewritten_numbers_are_equal_or_different_as_fractions():
    for name, rewrite in {**EQUAL, **DIFFERENT}.items():
        for gold in GOLDS:
            value = read_gold_number(gold.strip("$"))
            written = number_in_box(rewrite(gold) or "")
            if value is not None and written is not None and read_percentage(gold) is None:
                assert (written == value) == (name in EQUAL), (name, gold)


def test_what_keeps_the_value_is_right():
    assert {case: verdict for case, verdict in judged(EQUAL) if verdict is not Verdict.RIGHT} == {}


def test_what_changes_the_value_is_not_right():
    assert [case for case, verdict in judged(DIFFERENT) if verdict is Verdict.RIGHT] == []
