"""Which braces of an instruction name columns, and what is written for them; anything else is refused."""

import datetime
import re

import pytest

from rlcredit.tasks.instruction_columns import fill_template, split_instruction, write_column_text

A_AND_B = "A. 3\nB. 8"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([{"label": "A", "text": "3"}, {"label": "B", "text": "8"}], A_AND_B),
        ([{"label": "A", "text": 3.0, "image": None}, {"label": "B", "text": 8, "image": None}], A_AND_B),
        ({"text": ["3", "8"], "label": ["A", "B"]}, A_AND_B),
        ({"A": "3", "B": "8", "C": None}, A_AND_B),
        ([{"A": "3"}, {"B": "8"}], A_AND_B),
        ({"text": ["3", "8"]}, "3\n8"),
        ([{"text": "3"}, {"text": "8"}], "3\n8"),
        ([{"label": "(A)", "text": "3"}, {"label": "B)", "text": "8"}], "(A) 3\nB) 8"),
        ({0: "3", 1: "8"}, "0. 3\n1. 8"),
        (["A) 3", 8.0, {"label": "C", "text": "9"}], "A) 3\n8\nC. 9"),
        (["", "8"], "\n8"),
        (["3", "8"], "3\n8"),
        (None, ""),
        ([], ""),
        ({}, ""),
        (" ", ""),
        (1e-05, "0.00001"),
    ],
)
def test_texts_numbers_and_options_are_written_on_separate_lines(content, text):
    assert write_column_text(content) == text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (True, "is the truth value true. Write it as a text."),
        (float("nan"), "is the number nan. Write it as a text."),
        (b"3", "is a value of type bytes, b'3'. Write it as a text."),
        (datetime.date(2026, 11, 27), "is a value of type date, datetime.date(2026, 11, 27). Write it as a text."),
        (
            [["A", "3"]],
            "lists the list ['A', '3']. Write each entry as a text, or as an option: {label: A, text: ...}.",
        ),
        (["3", None], "lists null. Write each entry"),
        (["3", False], "lists the truth value false. Write each entry"),
        ([{"id": "A", "content": "3"}], "lists an object with the fields ['content', 'id']. Write each entry"),
        (
            [{"label": "A", "text": "3", "correct": True}],
            "lists an object with the fields ['correct', 'label', 'text']",
        ),
        ({"name": "Eve", "age": 7}, "is an object with the fields ['age', 'name']. Name one of them as column.field."),
        ({"A": {"text": "3"}}, "has in an option an object with the fields ['text']. Write it as a text."),
        ({"A": True}, "has in an option the truth value true."),
        ([{"label": True, "text": "3"}], "has as a label the truth value true."),
        ({"text": ["3", "8"], "label": ["A"]}, "has 2 texts and for labels ['A']. Write one label for each text."),
        ({"text": ["3", None], "label": ["A", "B"]}, "has in an option null."),
    ],
)
def test_what_has_no_text_is_refused_with_what_it_is(content, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        write_column_text(content)


@pytest.mark.parametrize(
    ("instruction", "template", "around"),
    [
        ("{Body} {Question}", "{Body} {Question}", "{question}"),
        ("{Body}{Question}", "{Body}{Question}", "{question}"),
        ("Read.\n{Body}\n\n{question}\nBox it.", "{Body}\n\n{question}", "Read.\n{question}\nBox it."),
        ("{question} Box it.", "{question}", "{question} Box it."),
        ("{question}? {question}!", "{question}", "{question}? {question}!"),
        (r"{question} in \boxed{Body}, x^{Body}, \frac{1}{Body}", "{question}", None),
        ("{question} {Other}", "{question}", None),
    ],
)
def test_columns_become_part_of_the_question(instruction, template, around):
    assert split_instruction(instruction, {"Body", "Question"}.__contains__) == (template, around or instruction)


def test_what_a_column_says_is_not_read_as_an_instruction():
    texts = {"a": "{b} {question}", "b": "secret"}
    assert fill_template(r"{a} \text{b} {c}", texts.get) == r"{b} {question} \text{b} {c}"
