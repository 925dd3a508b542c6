"""Numbers of every type become the text that a verifier compares."""

import json
from decimal import Decimal

import pytest

from rlcredit.tasks.record_values import find_role_column, read_answer_text, read_question


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (42, "42"),
        (42.0, "42"),
        (-0.5, "-0.5"),
        (1e-05, "0.00001"),
        (1e22, "1" + "0" * 22),
        (1e300, "1" + "0" * 300),
        (Decimal("3.50"), "3.5"),
        (100.0, "100"),
        (True, None),
        (float("inf"), None),
        ([], None),
        ({"a": 1}, None),
        (b"4", None),
    ],
)
def test_the_text_of_an_answer(number, text):
    assert read_answer_text(number) == text


def test_a_question_is_a_text_or_a_conversation():
    user, system = {"role": "user", "content": "1+1?"}, {"role": "system", "content": "Think."}
    assert read_question([user], "x") == read_question("1+1?", "x") == "1+1?"
    assert read_question([system, user], "x") == [system, user]
    assert read_question([{"role": "user", "content": " "}], "x") is read_question(None, "x") is None
    for odd in ([system], ["1+1?"], []):
        with pytest.raises(ValueError, match="x: "):
            read_question(odd, "x")


def test_a_column_with_a_point_in_its_name_comes_before_one_inside_another():
    assert find_role_column("answer", "a.b", {"a.b": 1}, "x") == "a.b"
    with pytest.raises(ValueError, match=r"data.init_args.answer: x, has no column `a.c`. It has a\."):
        find_role_column("answer", "a.c", {"a": {"b": 1}}, "x")


@pytest.mark.parametrize("write", [json.dumps, str])
def test_turns_may_be_written_as_json_or_python(write):
    turns = [{"role": "system", "content": "Think."}, {"role": "user", "content": "It's 1+1?\n"}]
    assert read_question(write(turns), "x") == turns
    assert read_question(write(turns[1]), "x") == "It's 1+1?\n"


def test_only_a_text_that_is_turns_is_read_as_turns():
    for text in ('{"a": 1} has how many keys?', '[{"role": "user"}] names which role?', "[1, 2]", '[{"role": "king"}]'):
        assert read_question(text, "x") == text
    with pytest.raises(ValueError, match="x: turns are written as JSON, which this is not"):
        read_question("[{'role': 'system', 'content': 'a'}\n {'role': 'user', 'content': 'b'}]", "x")
    with pytest.raises(ValueError, match="x: a turn is"):
        read_question('[{"from": "human", "value": "1+1?"}]', "x")


def test_a_column_inside_another_is_proposed_by_its_usual_name():
    row = {"prompt": "1+1?", "reward_model": {"ground_truth": "2", "style": "rule"}, "extra_info": {"answer": "2"}}
    example = "data.init_args.answer, for example reward_model.ground_truth or extra_info.answer."
    with pytest.raises(ValueError, match=f"no column is called .* Name the column of the answer in {example}$"):
        find_role_column("answer", None, row, "x")
    with pytest.raises(ValueError, match=r"no column `ground_truth`. Did you mean `reward_model.ground_truth`\?$"):
        find_role_column("answer", "ground_truth", row, "x")
