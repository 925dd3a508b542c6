"""Errors of other people's code, told with the line that they can change."""

import json

from rlcredit.config.error_messages import describe_exception, find_root_cause


def raised(function):
    try:
        function()
    except Exception as error:  # noqa: BLE001  (whatever it is)
        return error
    raise AssertionError("nothing was raised")


def test_the_line_is_that_of_ones_own_code_where_a_library_raises():
    def failing():
        json.loads("{")

    line = failing.__code__.co_firstlineno + 1
    told = describe_exception(raised(failing))
    assert told.startswith("JSONDecodeError: Expecting property name")
    assert told.endswith(f"(test_error_messages.py, line {line})")


def test_a_syntax_error_names_the_line_of_the_source():
    assert describe_exception(raised(lambda: compile("a = 1\nb = (\n", "mine.py", "exec"))) == (
        "SyntaxError: '(' was never closed (mine.py, line 2)"
    )


def test_the_cause_is_the_first_of_a_chain():
    def chained():
        try:
            raise KeyError("first")
        except KeyError as error:
            raise ValueError("second") from error

    assert isinstance(find_root_cause(raised(chained)), KeyError)
    assert isinstance(find_root_cause(ValueError("alone")), ValueError)
