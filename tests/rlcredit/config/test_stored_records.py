"""Tests of typed records: whatever is wrong in a file, the message names the key, its value and what it should be."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import pytest
from pydantic import AfterValidator, Field

from rlcredit.config.stored_records import RecordError, parse_record, read_stored_record


def _refuse_odd(number: int) -> int:
    if number % 2:
        raise ValueError(f"{number} is odd")
    return number


@dataclass
class Cell:
    """A part of a record."""

    seconds: float


@dataclass
class Book:
    """A record with values of every kind."""

    __pydantic_config__: ClassVar[Any] = {"extra": "forbid"}
    name: str
    count: Annotated[int, Field(lt=10)] = 0
    even: Annotated[int, AfterValidator(_refuse_odd)] = 0
    holds: bool | None = None
    size: Literal["quick", "full"] = "quick"
    pair: tuple[str, str] = ("", "")
    cells: Mapping[str, Sequence[Cell]] = field(default_factory=dict)


def test_a_record_is_read_with_its_defaults_and_parts() -> None:
    book = parse_record('{"name": "a", "cells": {"first": [{"seconds": 2}]}, "pair": ["x", "y"]}', Book)
    assert book == Book("a", pair=("x", "y"), cells={"first": [Cell(2.0)]})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("{", "not JSON (EOF while parsing an object at line 1 column 1)"),
        ("[]", "its content is [], not a mapping"),
        ("{}", "name is missing"),
        ('{"name": 3}', "name is 3, not a text"),
        ('{"name": "", "count": true}', "count is True, not a whole number"),
        ('{"name": "", "count": 10}', "count is 10, not less than 10"),
        ('{"name": "", "even": 3}', "even: 3 is odd"),
        ('{"name": "", "holds": "yes"}', "holds is 'yes', not true or false"),
        ('{"name": "", "size": "huge"}', "size is 'huge', not 'quick' or 'full'"),
        ('{"name": "", "pair": ["x"]}', "pair[1] is missing"),
        ('{"name": "", "cells": {"first": "x"}}', "cells.first is 'x', not a list"),
        ('{"name": "", "cells": {"first": [{"seconds": "2"}]}}', "cells.first[0].seconds is '2', not a number"),
        ('{"name": "", "cells": {"first": [3]}}', "cells.first[0] is 3, not a mapping"),
        ('{"name": "", "nmae": 1}', "nmae is an unknown key"),
    ],
)
def test_a_fault_is_named_by_its_key_with_what_was_expected(text: str, message: str) -> None:
    with pytest.raises(RecordError) as caught:
        parse_record(text, Book)
    assert str(caught.value) == message


def test_a_text_that_is_nested_too_deep_is_refused() -> None:
    with pytest.raises(RecordError, match="recursion limit exceeded"):
        parse_record("[" * 100_000, Book)


def test_a_damaged_file_is_named_with_the_repair(tmp_path: Path) -> None:
    file = tmp_path / "book.json"
    file.write_text('{"name": null}')
    with pytest.raises(ValueError, match=r"book.json is damaged: name is None, not a text\. Remove it\."):
        read_stored_record(file, Book, "Remove it.")
