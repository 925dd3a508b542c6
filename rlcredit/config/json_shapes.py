"""Shapes of stored JSON files, and where a file does not have its shape."""

import json
import reprlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlcredit.config.strict_yaml import read_text_file, shorten_name

MAX_STORED_BYTES = 2**28
"""Bytes of a stored file: more than a million questions with sixteen verdicts each."""

MAX_STORED_INTEGER = 2**63
"""From here on a whole number fits in no table and in no float."""

Shape = Any
"""A type, a tuple of types, a list of one shape, ``{str: shape}`` for any keys, shapes by key; ``key?`` may be absent.

A number that should be a float may be an integer, but true is no number. :class:`Limited` is a shape too.
"""


@dataclass(frozen=True)
class Limited:
    """A shape of which not every value will do.

    Attributes:
        shape: Shape that a value must have.
        holds: Function that says whether a value of this shape will do.
        wanted: Words for those that will.

    Example:
        >>> find_shape_mismatch([1, 7], [Limited(int, range(3).__contains__, "a number below 3")])
        '[1] is 7, not a number below 3'

    """

    shape: Shape
    holds: Callable[[Any], bool]
    wanted: str


TEXT_OR_NULL = (str, type(None))


def read_stored_json(path: Path, shape: Shape, repair: str) -> Any:
    """Return the content of a JSON file.

    Args:
        path: Path of the file.
        shape: Shape that its content must have.
        repair: Advice for the message if the content has another shape.

    Raises:
        ValueError: names the file, what is wrong in it, and the repair.

    Example:
        >>> read_stored_json(Path("nowhere.json"), dict, "Run it again.")
        Traceback (most recent call last):
        rlcredit.config.strict_yaml.UnreadableError: nowhere.json: there is no such file.

    """
    text = read_text_file(path, MAX_STORED_BYTES)
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        problem = f"not JSON ({error.msg} at line {error.lineno})" if text.strip() else "empty"
        raise ValueError(f"{shorten_name(path)} is damaged: {problem}. {repair}") from None
    except (RecursionError, ValueError) as error:
        raise ValueError(f"{shorten_name(path)} is damaged: not readable as JSON ({error}). {repair}") from None
    if problem := find_shape_mismatch(content, shape):
        raise ValueError(f"{shorten_name(path)} is damaged: {problem}. {repair}")
    return content


def find_shape_mismatch(value: Any, shape: Shape, place: str = "") -> str | None:
    """Name the place at which a value does not have its shape; None if there is none.

    Example:
        >>> find_shape_mismatch({"cells": {"a": {"seconds": "1"}}}, {"cells": {str: {"seconds?": float}}})
        "cells.a.seconds is '1', not a number"

    """
    if isinstance(shape, Limited):
        problem = find_shape_mismatch(value, shape.shape, place)
        return problem or (None if shape.holds(value) else _explain_wrong_type(value, place, shape.wanted))
    if isinstance(shape, dict):
        return _find_mapping_mismatch(value, shape, place)
    if isinstance(shape, list):
        if not isinstance(value, list):
            return _explain_wrong_type(value, place, "a list")
        problems = (find_shape_mismatch(item, shape[0], f"{place}[{number}]") for number, item in enumerate(value))
        return next(filter(None, problems), None)
    types = shape if isinstance(shape, tuple) else (shape,)
    kinds = (*types, int) if float in types else types
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in types):
        return _explain_wrong_type(value, place, " or ".join(_NAMES[kind] for kind in types))
    if isinstance(value, int) and abs(value) >= MAX_STORED_INTEGER:
        return f"{place or 'its content'} is a number of {value.bit_length()} bits"
    return None


def _find_mapping_mismatch(value: Any, shape: dict[Any, Shape], place: str) -> str | None:
    if not isinstance(value, dict):
        return _explain_wrong_type(value, place, "a mapping")
    common_shapes = dict.fromkeys(value, shape[str]) if str in shape else {}
    shapes = {**common_shapes, **{key.removesuffix("?"): inner for key, inner in shape.items() if key is not str}}
    for key, inner in shapes.items():
        inner_place = f"{place}.{key}".lstrip(".")
        if key not in value:
            if key in shape:
                return f"{inner_place} is missing"
        elif problem := find_shape_mismatch(value[key], inner, inner_place):
            return problem
    return None


_NAMES = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", dict: "a mapping"}
_NAMES |= {type(None): "null", list: "a list"}


def _explain_wrong_type(value: Any, place: str, expectation: str) -> str:
    return f"{place or 'its content'} is {shorten_repr(value)}, not {expectation}"


_BEGINNINGS = reprlib.Repr()
_BEGINNINGS.maxlevel = _BEGINNINGS.maxlist = _BEGINNINGS.maxdict = 30
_BEGINNINGS.maxstring = _BEGINNINGS.maxlong = _BEGINNINGS.maxother = 200


def shorten_repr(value: Any) -> str:
    """Return a short text of a value for a message, however deep or long it is."""
    text = _BEGINNINGS.repr(value)
    return text if len(text) <= 60 else f"{text[:60]} .."
