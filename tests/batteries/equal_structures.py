"""Completions that answer the expression, collection or text that a gold answers, in another form."""

import re
from collections.abc import Callable
from fractions import Fraction

from gold_kinds import (
    GoldCollection,
    is_formula,
    is_relation,
    is_scalar,
    is_unevaluated_scalar,
    read_gold_collection,
    read_gold_number,
    read_gold_text,
    read_option_letter,
    split_at_outer_commas,
    strip_dollars,
)
from rewriting import Rewrite, is_gold_number, is_plain_list, rewrite_if_read, write_in_box


def reverse_unordered_items(wanted: Callable[[GoldCollection], bool]) -> Rewrite:
    """Return the rewrite that reverses items whose order means nothing."""

    def rewrite(gold: str) -> str | None:
        found = read_gold_collection(strip_dollars(gold))
        if found is None or not wanted(found) or len(found.items) < 2 or found.items[::-1] == found.items:
            return None
        return write_in_box(str(found._replace(items=found.items[::-1])))

    return rewrite


def join_last_items(joint: str) -> Rewrite:
    """Return the rewrite that says a word between the last two items of a list."""

    def rewrite(gold: str) -> str | None:
        found = read_gold_collection(strip_dollars(gold))
        if found is None or not is_plain_list(found):
            return None
        return write_in_box(f"{', '.join(found.items[:-1])}{joint}{found.items[-1]}")

    return rewrite


def name_list_items(gold: str) -> str | None:
    """Name every value of a list: ``x = 1, x = 2``."""
    found = read_gold_collection(strip_dollars(gold))
    if found is None or not is_plain_list(found) or not all(map(is_scalar, found.items)):
        return None
    name = choose_unused_letter(strip_dollars(gold))
    return write_in_box(", ".join(f"{name} = {item}" for item in found.items))


def choose_unused_letter(value: str) -> str:
    """Return a letter that a value does not contain."""
    return next(name for name in "xyzkmn" + "ABCDEFGH" if name not in value)


def name_value(pattern: str, where: Callable[[str], object]) -> Rewrite:
    """Return the rewrite that names a scalar by a letter."""

    def rewrite(gold: str) -> str | None:
        value = strip_dollars(gold)
        return write_in_box(pattern.format(name=choose_unused_letter(value), value=value)) if where(value) else None

    return rewrite


def write_equality_chain(number: Fraction) -> str | None:
    """Write an integer as what a sum comes to."""
    return f"m+n = {number - 7} + 7 = {number}" if number.denominator == 1 and number > 7 else None


def name_coordinates(gold: str) -> str | None:
    """Name the coordinates of a pair or triple."""
    found = read_gold_collection(strip_dollars(gold))
    if found is None or not found.is_tuple or len(found.items) > 3 or re.search("[xyz]", str(found)):
        return None
    return write_in_box(f"({', '.join('xyz'[: len(found.items)])}) = {strip_dollars(gold)}")


def drop_value_name(gold: str) -> str | None:
    """Leave the name of a value out."""
    value = strip_dollars(gold)
    named = re.fullmatch(r"[a-zA-Z]\s*=\s*([^=]+)", value)
    return write_in_box(named[1]) if named and is_scalar(named[1]) and value[0] not in named[1] else None


def write_as_membership(gold: str) -> str | None:
    """Say that x is in an interval."""
    found = read_gold_collection(strip_dollars(gold))
    return (
        write_in_box(rf"x \in {strip_dollars(gold)}") if found and found.is_interval and "x" not in str(found) else None
    )


def interval_to_inequality(gold: str) -> str | None:
    """Write an interval as an inequality of x."""
    found = read_gold_collection(strip_dollars(gold))
    if found is None or not found.is_interval or "x" in str(found):
        return None
    low, high = found.items
    left, right = ("<" if bracket in "()" else r"\le" for bracket in found.brackets)
    if "infty" in low:
        return None if "infty" in high else write_in_box(f"x {right} {high}")
    if "infty" in high:
        return write_in_box(f"x {left.replace('<', '>').replace('le', 'ge')} {low}")
    return write_in_box(f"{low} {left} x {right} {high}")


def inequality_to_interval(gold: str) -> str | None:
    """Write an inequality of one letter as an interval."""
    value = strip_dollars(gold).replace(r"\leq", r"\le").replace(r"\geq", r"\ge")
    parts = [part.strip() for part in re.split(r"(<|>|\\le(?![a-z])|\\ge(?![a-z]))", value)]
    if not is_formula(value) or re.search(r"=|\\[{m]", value) or len(parts) not in (3, 5):
        return None
    if len(parts) == 3 and re.fullmatch("[a-z]", parts[0]) and is_scalar(parts[2]) and parts[0] not in parts[2]:
        sign, bound = parts[1], parts[2]
        if sign in ("<", r"\le"):
            return write_in_box(rf"(-\infty, {bound}{')' if sign == '<' else ']'}")
        return write_in_box(rf"{'(' if sign == '>' else '['}{bound}, \infty)")
    if len(parts) == 5 and re.fullmatch("[a-z]", parts[2]) and {parts[1], parts[3]} <= {"<", r"\le"}:
        brackets = ("(" if parts[1] == "<" else "["), (")" if parts[3] == "<" else "]")
        return write_in_box(f"{brackets[0]}{parts[0]}, {parts[4]}{brackets[1]}")
    return None


def expand_plus_minus(gold: str) -> str | None:
    r"""Write both values of one ``\pm``."""
    value = strip_dollars(gold)
    if not is_formula(value) or is_relation(value) or value.count(r"\pm") != 1 or len(split_at_outer_commas(value)) > 1:
        return None
    plus, minus = (re.sub(r"\\pm\s*", sign, value).lstrip("+") for sign in ("+", "-"))
    return None if re.search(r"[(\[]|\\\{|\\frac.*\\pm", value) else write_in_box(f"{plus}, {minus}")


def swap_terms(gold: str) -> str | None:
    """Swap the terms of a sum of two."""
    value = strip_dollars(gold)
    if not is_unevaluated_scalar(value) or value.startswith("-") or re.fullmatch(r"\d+\s*-\s*\d+", value):
        return None
    places = [place for place, sign in enumerate(value) if sign in "+-" and _count_open_brackets(value, place) == 0]
    if len(places) != 1 or re.search(r"\\(?:sum|prod|int|lim|pm|mp|sin|cos|tan|log|ln|mod|pmod)|!|,", value):
        return None
    first, sign, second = value[: places[0]].strip(), value[places[0]], value[places[0] + 1 :].strip()
    return write_in_box(f"{'-' if sign == '-' else ''}{second} + {first}") if first and second else None


def _count_open_brackets(value: str, place: int) -> int:
    return sum((character in "([{") - (character in ")]}") for character in value[:place])


def swap_sides(gold: str) -> str | None:
    """Swap the sides of an equation in which both have letters or sums."""
    value = strip_dollars(gold)
    sides = [side.strip() for side in value.split("=")]
    other = re.search(r"[<>(|]|\\n?[lg]e|\\[{m]|\\sum|\\prod|\\lim", value)
    if len(sides) != 2 or len(split_at_outer_commas(value)) > 1 or other or not is_formula(value):
        return None
    if not all(re.search("[a-zA-Z]", side) for side in sides):
        return None
    return write_in_box(f"{sides[1]} = {sides[0]}")


def change_letter_case(change: Callable[[str], str]) -> Rewrite:
    """Return the rewrite of a text in other letters."""
    return rewrite_if_read(read_gold_text, lambda text: rf"\text{{{change(text)}}}")


STRUCTURES: dict[str, Rewrite] = {
    "terms swapped": swap_terms,
    "sides swapped": swap_sides,
    "both signs written out": expand_plus_minus,
    "name before a value": name_value("{name} = {value}", is_scalar),
    "function before a value": name_value("f(2) = {value}", is_gold_number),
    "name of two letters' sum before a value": name_value("p+q = {value}", is_gold_number),
    "chain of equalities": rewrite_if_read(read_gold_number, write_equality_chain),
    "name before a tuple": name_coordinates,
    "name before every value of a list": name_list_items,
    "value without its name": drop_value_name,
    "member of an interval": write_as_membership,
    "inequality for an interval": interval_to_inequality,
    "interval for an inequality": inequality_to_interval,
    "set in another order": reverse_unordered_items(lambda found: found.is_set),
    "list in another order": reverse_unordered_items(is_plain_list),
    "and in a list": join_last_items(r" \text{ and } "),
    "or in a list": join_last_items(r" \text{ or } "),
    "text in a text command": rewrite_if_read(read_gold_text, lambda text: rf"\text{{{text}}}"),
    "text without a text command": rewrite_if_read(read_gold_text, str),
    "text in bold": rewrite_if_read(read_gold_text, lambda text: rf"\textbf{{{text}}}"),
    "text in upright letters": rewrite_if_read(
        read_gold_text, lambda text: rf"\mathrm{{{text}}}" if " " not in text else None
    ),
    "text in quotation marks": rewrite_if_read(read_gold_text, lambda text: f'"{text}"'),
    "text with a full stop": rewrite_if_read(read_gold_text, lambda text: rf"\text{{{text}.}}"),
    "text in small letters": change_letter_case(str.lower),
    "text in capital letters": change_letter_case(str.upper),
    "letter with a full stop": rewrite_if_read(read_option_letter, "{}.".format),
    "letter with a bracket": rewrite_if_read(read_option_letter, "{})".format),
    "letter in brackets": rewrite_if_read(read_option_letter, "({})".format),
    "letter in a text command": rewrite_if_read(read_option_letter, r"\text{{({})}}".format),
    "letter in bold with its option": rewrite_if_read(read_option_letter, r"\textbf{{({}) }} 12".format),
    "letter with its option": rewrite_if_read(read_option_letter, "{}. 12".format),
    "letter with a colon and its option": rewrite_if_read(read_option_letter, "{}: 12".format),
    "letter of the option": rewrite_if_read(read_option_letter, r"\text{{Option {}}}".format),
}
