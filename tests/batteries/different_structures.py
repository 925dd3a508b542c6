"""Completions that answer another thing of the same kind than a gold does."""

import re
from collections.abc import Callable, Mapping
from fractions import Fraction

from gold_kinds import (
    GoldCollection,
    is_formula,
    is_scalar,
    is_unevaluated_scalar,
    read_gold_collection,
    read_gold_number,
    read_gold_text,
    read_option_letter,
    strip_dollars,
)
from rewriting import Rewrite, choose_other_value, is_plain_list, write_in_box, write_number


def change_collection(change: Callable[[GoldCollection], GoldCollection | None]) -> Rewrite:
    """Return the rewrite of a tuple, set, interval or list into another."""

    def rewrite(gold: str) -> str | None:
        found = read_gold_collection(strip_dollars(gold))
        changed = None if found is None else change(found)
        return None if changed is None or changed == found else write_in_box(str(changed))

    return rewrite


def change_last_item(found: GoldCollection) -> GoldCollection | None:
    """Add one to the last item."""
    number = read_gold_number(found.items[-1])
    if number is None or (number + 1) in [read_gold_number(item) for item in found.items]:
        return None
    return found._replace(items=[*found.items[:-1], write_number(number + 1)])


def change_first_item(found: GoldCollection) -> GoldCollection | None:
    """Take two from the first item."""
    number = read_gold_number(found.items[0])
    if number is None or (number - 2) in [read_gold_number(item) for item in found.items]:
        return None
    return found._replace(items=[write_number(number - 2), *found.items[1:]])


def drop_last_item(found: GoldCollection) -> GoldCollection | None:
    """Leave the last item out."""
    kept = found.items[:-1]
    return None if found.is_interval or not kept or found.items[-1] in kept else found._replace(items=kept)


def add_item(found: GoldCollection) -> GoldCollection | None:
    """Add an item."""
    return None if found.is_interval else found._replace(items=[*found.items, "9173"])


def reverse_tuple(found: GoldCollection) -> GoldCollection | None:
    """Reverse the items of a tuple, which are numbers."""
    numbers = [read_gold_number(item) for item in found.items]
    if not found.is_tuple or None in numbers or numbers == numbers[::-1]:
        return None
    return found._replace(items=found.items[::-1])


def reverse_interval(found: GoldCollection) -> GoldCollection | None:
    """Reverse an interval with two finite ends."""
    numbers = [read_gold_number(item) for item in found.items]
    if not found.is_interval or None in numbers or numbers[0] == numbers[1]:
        return None
    return found._replace(items=found.items[::-1])


def turn_interval_bracket(found: GoldCollection) -> GoldCollection | None:
    """Turn the bracket at the finite end of an interval."""
    if not found.is_interval:
        return None
    if r"\infty" not in found.items[0]:
        return found._replace(opened=found.opened.translate(str.maketrans("([", "[(")))
    if r"\infty" not in found.items[1]:
        return found._replace(closed=found.closed.translate(str.maketrans(")]", "])")))
    return None


def write_tuple_as_set(found: GoldCollection) -> GoldCollection | None:
    """Write a tuple of three or more in the braces of a set; two may be an interval."""
    plain = found.is_tuple and len(found.items) > 1
    return found._replace(opened=r"\{", closed=r"\}") if plain else None


def write_set_as_tuple(found: GoldCollection) -> GoldCollection | None:
    """Write a set of two or more as a tuple."""
    return found._replace(opened="(", closed=")") if found.is_set and len(found.items) > 1 else None


def write_list_as_tuple(found: GoldCollection) -> GoldCollection | None:
    """Write a list backwards and in brackets."""
    plain = is_plain_list(found) and found.items != found.items[::-1]
    return GoldCollection("(", found.items[::-1], ")") if plain else None


def change_last_match(pattern: str, change: Callable[[re.Match[str]], str], where: Callable[[str], object]) -> Rewrite:
    """Return the rewrite that changes the last match of a pattern."""

    def rewrite(gold: str) -> str | None:
        value = strip_dollars(gold)
        places = list(re.finditer(pattern, value)) if where(value) else []
        if not places:
            return None
        last = places[-1]
        changed = f"{value[: last.start()]}{change(last)}{value[last.end() :]}"
        return None if changed == value else write_in_box(changed)

    return rewrite


_PERIODIC = re.compile(r"[_!|]|\\(?:overline|[pm]{2}|a?r?c?(?:sin|cos|tan|cot|sec|csc)h?)(?![a-z])|\b[01]\^|\(-1\)\^")
"""What may have the same value after a change."""


def is_open_formula(value: str) -> bool:
    """Whether a value is an expression with more than a number in it."""
    return is_unevaluated_scalar(value) and not _PERIODIC.search(value) and not re.search("[0-9](?:st|nd|rd|th)", value)


def is_matrix(value: str) -> bool:
    """Whether a value is a matrix."""
    return r"\begin" in value and "matrix" in value and is_formula(value)


def is_plain_equation(value: str) -> bool:
    """Whether a value is one plain equation."""
    return is_formula(value) and value.count("=") == 1 and not re.search("[,{]", value)


def increment_matched_number(found: re.Match[str]) -> str:
    """Return the number after the one that was matched."""
    return str(int(found[0]) + 1)


_ROW_END = r" \\ "


def swap_rows(gold: str) -> str | None:
    """Swap the first two rows of a matrix."""
    value = strip_dollars(gold)
    found = re.fullmatch(r"(\\begin\{[a-z]?matrix\})(.*)(\\end\{[a-z]?matrix\})", value, re.DOTALL)
    rows = [] if found is None or r"\begin" in found[2] else [row.strip() for row in found[2].split(r"\\")]
    if found is None or len(rows) < 2 or rows[0] == rows[1]:
        return None
    return write_in_box(f"{found[1]} {_ROW_END.join([rows[1], rows[0], *rows[2:]])} {found[3]}")


def reverse_word(gold: str) -> str | None:
    """Turn the letters of a word around."""
    text = read_gold_text(strip_dollars(gold))
    turned = None if text is None else text[::-1]
    return (
        None
        if text is None or turned is None or turned.lower() == text.lower()
        else write_in_box(rf"\text{{{turned}}}")
    )


def change_text(change: Callable[[str], str]) -> Rewrite:
    """Return the rewrite of a text into another."""

    def rewrite(gold: str) -> str | None:
        text = read_gold_text(strip_dollars(gold))
        return (
            None if text is None or change(text).lower() == text.lower() else write_in_box(rf"\text{{{change(text)}}}")
        )

    return rewrite


def change_option_letter(pattern: str) -> Rewrite:
    """Return the rewrite of the letter of an option into something that is another, or two."""

    def rewrite(gold: str) -> str | None:
        letter = read_option_letter(strip_dollars(gold))
        return None if letter is None else write_in_box(pattern.format(letter=letter, other=choose_other_value(letter)))

    return rewrite


_ORDER = re.compile(r"<|>|\\[lg]eq?(?:slant)?(?![a-z])")


_TURNED = {"<": ">", ">": "<", r"\le": r"\ge", r"\leq": r"\geq", r"\ge": r"\le", r"\geq": r"\leq"}
_OPENED_OR_CLOSED = {"<": r"\le ", ">": r"\ge ", r"\le": "<", r"\leq": "<", r"\ge": ">", r"\geq": ">"}


def replace_order_sign(others: Mapping[str, str]) -> Rewrite:
    """Return the rewrite that gives an inequality another sign."""

    def rewrite(gold: str) -> str | None:
        value = strip_dollars(gold)
        signs = _ORDER.findall(value)
        if len(signs) != 1 or not is_formula(value) or "slant" in signs[0] or ":" in value:
            return None
        return write_in_box(value.replace(signs[0], others[signs[0]]))

    return rewrite


def compute_dashed_value(gold: str) -> str | None:
    """Give what a date, a score or a range would be if it were computed."""
    parts = re.fullmatch(r"(\d+)([-:/])(\d+)(?:\2(\d+))?", strip_dollars(gold))
    if parts is None or (parts[2] == "/" and not parts[4]):
        return None
    numbers = [int(part) for part in (parts[1], parts[3], parts[4]) if part]
    if parts[2] == "-":
        return write_in_box(str(numbers[0] - sum(numbers[1:])))
    return write_in_box(write_number(Fraction(numbers[0], numbers[1]))) if numbers[1] else None


STRUCTURES: dict[str, Rewrite] = {
    "last item changed": change_collection(change_last_item),
    "first item changed": change_collection(change_first_item),
    "item dropped": change_collection(drop_last_item),
    "item added": change_collection(add_item),
    "tuple reversed": change_collection(reverse_tuple),
    "interval reversed": change_collection(reverse_interval),
    "bracket of an interval turned": change_collection(turn_interval_bracket),
    "set for a tuple": change_collection(write_tuple_as_set),
    "tuple for a set": change_collection(write_set_as_tuple),
    "tuple for a list, backwards": change_collection(write_list_as_tuple),
    "exponent changed": change_last_match(r"(?<=\^)\d|(?<=\^\{)\d+(?=\})", increment_matched_number, is_open_formula),
    "coefficient changed": change_last_match(r"(?<![\d^.{])\d+(?![\d.^])", increment_matched_number, is_open_formula),
    "sign in a sum flipped": change_last_match(
        r"(?<=[\w)}])(\s*)([-+])(?=\s*[\w\\])",
        lambda sign: f"{sign[1]}{'-' if sign[2] == '+' else '+'}",
        is_open_formula,
    ),
    "term added": lambda gold: write_in_box(f"{strip_dollars(gold)} + 1") if is_scalar(strip_dollars(gold)) else None,
    "whole negated": lambda gold: (
        write_in_box(f"-({strip_dollars(gold)})") if is_open_formula(strip_dollars(gold)) else None
    ),
    "entry of a matrix changed": change_last_match(r"(?<![\d^{])\d+", increment_matched_number, is_matrix),
    "rows of a matrix swapped": swap_rows,
    "number in an equation changed": change_last_match(
        r"(?<![\d^.{_])\d+(?![\d.^])", increment_matched_number, is_plain_equation
    ),
    "inequality turned": replace_order_sign(_TURNED),
    "end of an inequality": replace_order_sign(_OPENED_OR_CLOSED),
    "date, score or range computed": compute_dashed_value,
    "anagram": reverse_word,
    "text cut": change_text(lambda text: text[:-1]),
    "text with not": change_text(lambda text: f"not {text}"),
    "another text": change_text(lambda text: "Zanzibar"),
    "two texts": change_text(lambda text: f"{text} or Zanzibar"),
    "another letter": change_option_letter("{other}"),
    "another letter with the option": change_option_letter("{other}. {letter}"),
    "two letters": change_option_letter("{letter} or {other}"),
    "two letters in a row": change_option_letter("{letter}{other}"),
    "two letters in brackets": change_option_letter(r"\text{{({letter})}} \text{{({other})}}"),
}
"""Another thing of the same kind."""
