"""What a record accepts as answers, and what is said where nobody knows."""

import datetime

import pytest

from rlcredit.tasks.record_answers import AmbiguousListError, AnswerColumn, MissingAnswerError, find_comma_decimals


def accepted(content, *arguments, **options):
    return AnswerColumn("a", *arguments, **options).read_answers({"a": content}, "x.json, entry 3")


@pytest.mark.parametrize(
    ("content", "meaning", "answers"),
    [
        (["0.01\n", "1e-2\n"], "any", ("0.01", "1e-2")),
        (["4", "4\n"], "any", ("4",)),
        ([4, 6.0], "all", ("4, 6",)),
        (["1,000", "$2,500$", "(1,2)"], "all", ("1000, $2500$, (1,2)",)),
        (["9.6\n"], None, ("9.6",)),
        ("['0.5', '1/2']", "any", ("0.5", "1/2")),
        ("['0.5' '1/2'\n '\\\\frac{1}{2}']", "any", ("0.5", "1/2", r"\frac{1}{2}")),
        (r'["\frac{1}{2}", "\u00bd", "\nu"]', "any", (r"\frac{1}{2}", "½", r"\nu")),
        ("['9.6\\n']", None, ("9.6",)),
        ("[0, 1]", None, ("[0, 1]",)),
        ("['a", None, ("['a",)),
        ("9.6\n", None, ("9.6\n",)),
    ],
)
def test_a_list_is_what_its_file_says(content, meaning, answers):
    assert accepted(content, meaning) == answers


@pytest.mark.parametrize("content", [["0.01", "0.02"], "['0.01', '0.02']"])
def test_a_list_of_several_is_refused_where_nobody_says_what_it_means(content):
    with pytest.raises(AmbiguousListError) as refused:
        accepted(content)
    assert str(refused.value) == (
        "x.json, entry 3: column `a` lists 2 answers, ['0.01', '0.02']. If each of them is right, set "
        "data.init_args.answers: any; if a completion must state all of them, set data.init_args.answers: all."
    )


@pytest.mark.parametrize("content", [None, " ", float("nan"), float("inf"), [], [None], ["1", ""], ["1", None]])
def test_a_record_without_an_answer_is_one(content):
    with pytest.raises(
        MissingAnswerError, match=r"x.json, entry 3: column `a` must be a non-empty text or a number, got"
    ):
        accepted(content, "any")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (True, "is the truth value true. Write it as the text that a completion should state."),
        (
            {"value": 1},
            r"is an object with the fields \['value'\]. Name one of them in",
        ),
        (b"4", "is a value of type bytes, b'4'. Write it as a text or a number."),
        (datetime.date(2023, 1, 15), "is a value of type date, datetime.date"),
        ([["1", "2"], ["3"]], r"lists the list \['1', '2'\]. Write each entry as a text or a number."),
        (["1", False], "lists the truth value false. Write each entry as a text or a number."),
    ],
)
def test_what_can_be_no_answer_is_refused_with_its_kind(content, message):
    with pytest.raises(ValueError, match=f"x.json, entry 3: column `a` {message}") as refused:
        accepted(content, "any")
    assert type(refused.value) is ValueError


def test_solutions_state_their_answers_in_every_entry():
    assert accepted(["so #### 4", "or #### 5"], "any", "hashes") == ("4", "5")
    for reference, mark in {"hashes": "####", "label": "Answer:", "number": "number"}.items():
        with pytest.raises(MissingAnswerError, match=f"has no `?{mark}`? that states its answer"):
            accepted("four", None, reference)


@pytest.mark.parametrize(
    ("text", "read"),
    [("3,5", "3.5"), ("-0,125", "-0.125"), ("1.234,5", "1234.5"), ("1.234.567", "1234567"), ("3,5 kg", "3.5 kg")],
)
def test_a_decimal_comma_is_a_point_where_the_file_says_so(text, read):
    assert accepted(text, decimal_comma=True) == (read,)
    assert accepted(text) == (text,)


def test_numbers_have_no_decimal_comma_to_lose():
    assert accepted(1.234, decimal_comma=True) == ("1.234",)


def test_decimals_with_commas_are_told_from_thousands_pairs_and_lists():
    assert find_comma_decimals(["3,5", "12", "$-0,75$", "1.250,00"]) == [0, 2, 3]
    assert find_comma_decimals(["1,000", "2,500,000", "(3,5)", "a,b", "12"]) == []
    assert (
        find_comma_decimals(["1,3", "1,3,5"])
        == find_comma_decimals(["1,3", "2, 4"])
        == find_comma_decimals(["1,3", "0.5"])
        == []
    )
