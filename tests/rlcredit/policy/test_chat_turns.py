"""Turns are read as tables and exports of agents have them, where nothing of them is lost."""

import pytest

from rlcredit.policy.chat_turns import parse_conversation, write_turn

USER = {"role": "user", "content": "1 + 1 ="}
CALLS = [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": {"a": 1, "b": 1}}}]
CALL = {"role": "assistant", "content": None, "tool_calls": CALLS}
RESULT = {"role": "tool", "tool_call_id": "c1", "name": "add", "content": "2"}


@pytest.mark.parametrize(
    ("turn", "content"),
    [
        ({"content": [{"type": "text", "text": "1 + 1 ="}]}, "1 + 1 ="),
        ({"content": [{"type": "text", "text": "1 +"}, {"text": "1 ="}, "Add."]}, "1 +\n1 =\nAdd."),
        ({"content": [{"type": "input_text", "text": "1 + 1 =", "image_url": None, "annotations": []}]}, "1 + 1 ="),
        ({"content": "1 + 1 =", "tool_calls": None, "refusal": None, "name": "", "annotations": []}, "1 + 1 ="),
    ],
)
def test_parts_of_text_are_lines_and_empty_keys_count_as_absent(turn, content):
    assert parse_conversation([{"role": "user", **turn}]) == [{"role": "user", "content": content}]


def test_a_developer_speaks_as_the_system_does():
    said = parse_conversation([{"role": "developer", "content": "Add."}, USER])
    assert said == [{"role": "system", "content": "Add."}, USER]


def test_calls_and_their_results_are_kept_without_the_nulls_of_other_calls():
    filled = [{**CALLS[0], "function": {"name": "add", "arguments": {"a": 1, "b": 1, "city": None}}}]
    said = parse_conversation([{**USER, "tool_calls": None}, {**CALL, "tool_calls": filled}, RESULT])
    assert said == [USER, {**CALL, "content": ""}, RESULT]
    assert parse_conversation(said) == said
    assert write_turn(said[2]) == 'tool: 2 {"tool_call_id": "c1", "name": "add"}'
    assert write_turn(said[0]) == "user: 1 + 1 ="


@pytest.mark.parametrize(
    ("turns", "message"),
    [
        ([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}], "Only text can be read"),
        ([{"role": "user", "content": [{"type": "text", "text": "1", "url": "x"}]}], "Only text can be read"),
        ([{**USER, "id": "m1"}], "a turn has id: 'm1'"),
        ([USER, {**CALL, "tool_calls": "add(1, 1)"}, RESULT], r"a turn has tool_calls: 'add\(1, 1\)'"),
        ([{**USER, "function_call": {"name": "add"}}], "a turn has function_call: {'name': 'add'}"),
        ([{"role": "assistant", "content": None, "tool_calls": None}, USER], "a turn has no content"),
        ([USER, CALL], "the last turn must be the user's or a tool's"),
        ([{"from": "human", "value": "1 + 1 ="}], "a turn is {role: system | developer | user | assistant | tool,"),
    ],
)
def test_what_would_be_lost_is_refused_with_its_place(turns, message):
    with pytest.raises(ValueError, match=f"^row 3: .*{message.replace('|', '[|]').replace('{', '[{]')}"):
        parse_conversation(turns, "row 3")
