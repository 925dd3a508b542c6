"""Questions that are written alike are alike; those that ask something else are not."""

import pytest

from rlcredit.tasks import Example
from rlcredit.tasks.held_out_split import normalise_wording, separate_alike_questions


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("What is 3+1?", "what is  3 + 1 ?"),
        ("Tom\u2019s cat, \u201cKit\u201d.", 'Tom\'s cat "Kit"'),
        ("4 \u2212 1", "4 - 1"),
        ("caf\u00e9", "cafe\u0301"),
        ("\uff12 + \uff12", "2 + 2"),
        ("one\u00a0two\u200b", "one two"),
        ("Find it!", "find it."),
        ("He said 'no'.", "He said no"),
        ("It costs $5.", "It costs 5"),
    ],
)
def test_spaces_case_marks_and_forms_of_characters_do_not_count(one, other):
    assert normalise_wording(one) == normalise_wording(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1.5 + 2", "15 + 2"),
        ("3 4", "34"),
        ("1 1/2", "11/2"),
        ("5!", "5"),
        ("5\u00b2", "52"),
        ("x\u00b2", "x2"),
        ("f'(x)", "f(x)"),
        ("3 - 1", "3 + 1"),
        ("-3", "3"),
        ("1:2", "12"),
        ("2 < 3", "2 > 3"),
        ("|x|", "x"),
    ],
)
def test_what_changes_the_meaning_does(one, other):
    assert normalise_wording(one) != normalise_wording(other)


def test_training_questions_like_held_out_ones_are_set_apart_in_their_order():
    train = [Example(text, "", {}) for text in ("3+1", "a", "A?", "b")]
    kept, alike = separate_alike_questions(train, [Example("A", "", {}), Example("3 + 1 ", "", {})])
    assert ([each.text for each in kept], [each.text for each in alike]) == (["b"], ["3+1", "a", "A?"])
