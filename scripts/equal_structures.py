"""Completions that answer the expression, collection or text that a gold answers, in another form."""

import re
from collections.abc import Callable
from fractions import Fraction

from gold_kinds import (
    Collection,
    bare_value,
    is_expression,
    is_formula,
    is_relation,
    is_scalar,
    read_collection,
    read_letter,
    read_number,
    read_text,
    split_items,
)
from rewriting import Rewrite, in_box, is_number, is_plain_list, rewrite_read


def permute(wanted: Callable[[Collection], bool]) -> Rewrite:
    """Return the rewrite that reverses items whose order means nothing."""

    def rewrite(gold: str) -> str | None:
        found = read_collection(bare_value(gold))
        if found is None or not wanted(found) or len(found.items) < 2 or found.items[::-1] == found.items:
            return None
        return in_box(str(found._replace(items=found.items[::-1])))

    return rewrite


def join_list(joint: str) -> Rewrite:
    """Return the rewrite that says a word between the last two items of a list."""

    def rewrite(gold: str) -> str | None:
        found = read_collection(bare_value(gold))
        if found is None or not is_plain_list(found):
            return None
        return in_box(f"{', '.join(found.items[:-1])}{joint}{found.items[-1]}")

    return rewrite


def name_items(gold: str) -> str | None:
    """Name every value of a list: ``x = 1, x = 2``."""
    found = read_collection(bare_value(gold))
    if found is None or not is_plain_list(found) or not all(map(is_scalar, found.items)):
        return None
    name = unused_name(bare_value(gold))
    return in_box(", ".join(f"{name} = {item}" for item in found.items))


def unused_name(value: str) -> str:
    """Return a letter that a value does not contain."""
    return next(name for name in "xyzkmn" + "ABCDEFGH" if name not in value)


def name_value(pattern: str, where: Callable[[str], object]) -> Rewrite:
    """Return the rewrite that names a scalar by a letter."""

    def rewrite(gold: str) -> str | None:
        value = bare_value(gold)
        return in_box(pattern.format(name=unused_name(value), value=value)) if where(value) else None

    return rewrite


def write_chain(number: Fraction) -> str | None:
    """Write an integer as what a sum comes to."""
    return f"m+n = {number - 7} + 7 = {number}" if number.denominator == 1 and number > 7 else None


def name_tuple(gold: str) -> str | None:
    """Name the coordinates of a pair or triple."""
    found = read_collection(bare_value(gold))
    if found is None or not found.is_tuple or len(found.items) > 3 or re.search("[xyz]", str(found)):
        return None
    return in_box(f"({', '.join('xyz'[: len(found.items)])}) = {bare_value(gold)}")


def drop_name(gold: str) -> str | None:
    """Leave the name of a value out."""
    value = bare_value(gold)
    named = re.fullmatch(r"[a-zA-Z]\s*=\s*([^=]+)", value)
    return in_box(named[1]) if named and is_scalar(named[1]) and value[0] not in named[1] else None


def say_member(gold: str) -> str | None:
    """Say that x is in an interval."""
    found = read_collection(bare_value(gold))
    return in_box(rf"x \in {bare_value(gold)}") if found and found.is_interval and "x" not in str(found) else None


def interval_to_inequality(gold: str) -> str | None:
    """Write an interval as an inequality of x."""
    found = read_collection(bare_value(gold))
    if found is None or not found.is_interval or "x" in str(found):
        return None
    low, high = found.items
    left, right = ("<" if bracket in "()" else r"\le" for bracket in found.brackets)
    if "infty" in low:
        return None if "infty" in high else in_box(f"x {right} {high}")
    if "infty" in high:
        return in_box(f"x {left.replace('<', '>').replace('le', 'ge')} {low}")
    return in_box(f"{low} {left} x {right} {high}")


def inequality_to_interval(gold: str) -> str | None:
    """Write an inequality of one letter as an interval."""
    value = bare_value(gold).replace(r"\leq", r"\le").replace(r"\geq", r"\ge")
    parts = [part.strip() for part in re.split(r"(<|>|\\le(?![a-z])|\\ge(?![a-z]))", value)]
    if not is_formula(value) or re.search(r"=|\\[{m]", value) or len(parts) not in (3, 5):
        return None
    if len(parts) == 3 and re.fullmatch("[a-z]", parts[0]) and is_scalar(parts[2]) and parts[0] not in parts[2]:
        sign, bound = parts[1], parts[2]
        if sign in ("<", r"\le"):
            return in_box(rf"(-\infty, {bound}{')' if sign == '<' else ']'}")
        return in_box(rf"{'(' if sign == '>' else '['}{bound}, \infty)")
    if len(parts) == 5 and re.fullmatch("[a-z]", parts[2]) and {parts[1], parts[3]} <= {"<", r"\le"}:
        brackets = ("(" if parts[1] == "<" else "["), (")" if parts[3] == "<" else "]")
        return in_box(f"{brackets[0]}{parts[0]}, {parts[4]}{brackets[1]}")
    return None


def expand_sign(gold: str) -> str | None:
    r"""Write both values of one ``\pm``."""
    value = bare_value(gold)
    if not is_formula(value) or is_relation(value) or value.count(r"\pm") != 1 or len(split_items(value)) > 1:
        return None
    plus, minus = (re.sub(r"\\pm\s*", sign, value).lstrip("+") for sign in ("+", "-"))
    return None if re.search(r"[(\[]|\\\{|\\frac.*\\pm", value) else in_box(f"{plus}, {minus}")


def swap_terms(gold: str) -> str | None:
    """Swap the terms of a sum of two."""
    value = bare_value(gold)
    if not is_expression(value) or value.startswith("-") or re.fullmatch(r"\d+\s*-\s*\d+", value):
        return None
    places = [place for place, sign in enumerate(value) if sign in "+-" and _depth_at(value, place) == 0]
    if len(places) != 1 or re.search(r"\\(?:sum|prod|int|lim|pm|mp|sin|cos|tan|log|ln|mod|pmod)|!|,", value):
        return None
    first, sign, second = value[: places[0]].strip(), value[places[0]], value[places[0] + 1 :].strip()
    return in_box(f"{'-' if sign == '-' else ''}{second} + {first}") if first and second else None


def _depth_at(value: str, place: int) -> int:
    return sum((character in "([{") - (character in ")]}") for character in value[:place])


def swap_sides(gold: str) -> str | None:
    """Swap the sides of an equation in which both have letters or sums."""
    value = bare_value(gold)
    sides = [side.strip() for side in value.split("=")]
    other = re.search(r"[<>(|]|\\n?[lg]e|\\[{m]|\\sum|\\prod|\\lim", value)
    if len(sides) != 2 or len(split_items(value)) > 1 or other or not is_formula(value):
        return None
    if not all(re.search("[a-zA-Z]", side) for side in sides):
        return None
    return in_box(f"{sides[1]} = {sides[0]}")


def write_case(change: Callable[[str], str]) -> Rewrite:
    """Return the rewrite of a text in other letters."""
    return rewrite_read(read_text, lambda text: rf"\text{{{change(text)}}}")


STRUCTURES: dict[str, Rewrite] = {
    "terms swapped": swap_terms,
    "sides swapped": swap_sides,
    "both signs written out": expand_sign,
    "name before a value": name_value("{name} = {value}", is_scalar),
    "function before a value": name_value("f(2) = {value}", is_number),
    "name of two letters' sum before a value": name_value("p+q = {value}", is_number),
    "chain of equalities": rewrite_read(read_number, write_chain),
    "name before a tuple": name_tuple,
    "name before every value of a list": name_items,
    "value without its name": drop_name,
    "member of an interval": say_member,
    "inequality for an interval": interval_to_inequality,
    "interval for an inequality": inequality_to_interval,
    "set in another order": permute(lambda found: found.is_set),
    "list in another order": permute(is_plain_list),
    "and in a list": join_list(r" \text{ and } "),
    "or in a list": join_list(r" \text{ or } "),
    "text in a text command": rewrite_read(read_text, lambda text: rf"\text{{{text}}}"),
    "text without a text command": rewrite_read(read_text, str),
    "text in bold": rewrite_read(read_text, lambda text: rf"\textbf{{{text}}}"),
    "text in upright letters": rewrite_read(read_text, lambda text: rf"\mathrm{{{text}}}" if " " not in text else None),
    "text in quotation marks": rewrite_read(read_text, lambda text: f'"{text}"'),
    "text with a full stop": rewrite_read(read_text, lambda text: rf"\text{{{text}.}}"),
    "text in small letters": write_case(str.lower),
    "text in capital letters": write_case(str.upper),
    "letter with a full stop": rewrite_read(read_letter, "{}.".format),
    "letter with a bracket": rewrite_read(read_letter, "{})".format),
    "letter in brackets": rewrite_read(read_letter, "({})".format),
    "letter in a text command": rewrite_read(read_letter, r"\text{{({})}}".format),
    "letter in bold with its option": rewrite_read(read_letter, r"\textbf{{({}) }} 12".format),
    "letter with its option": rewrite_read(read_letter, "{}. 12".format),
    "letter with a colon and its option": rewrite_read(read_letter, "{}: 12".format),
    "letter of the option": rewrite_read(read_letter, r"\text{{Option {}}}".format),
}
