"""Which braces of an instruction name columns."""

import pytest

from rlcredit.tasks.instruction_columns import fill_template, split_instruction


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
