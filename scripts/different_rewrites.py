r"""Completions that do not answer what a gold answers, however near they come.

A rewrite is a function of a gold; it gives a completion, or None where it does not apply or the value might stay.
"""

import re
from collections.abc import Callable
from fractions import Fraction

from equal_rewrites import (
    Rewrite,
    in_box,
    is_plain_list,
    is_sentence,
    other_value,
    read_base,
    write_finite_decimal,
    write_fraction,
)
from gold_kinds import (
    Collection,
    bare_value,
    is_formula,
    is_scalar,
    read_collection,
    read_letter,
    read_number,
    read_percentage,
    read_text,
)

_JOINTS = {
    "or": r" \text{ or } ",
    "or in plain words": " or ",
    "and": r" \text{ and } ",
    "and also": r", \text{ and also } ",
    "comma": ", ",
    "semicolon": "; ",
    "colon": " : ",
    "slash": " / ",
    "spaced slash in text": r"\text{ / }",
    "bar": " | ",
    "wide space": r" \quad ",
    "line end": "\n",
    "row end": r" \\ ",
    "sign of or": r" \lor ",
    "sign of and": r" \land ",
    "sign of equality": " = ",
    "sign of inequality": r" \neq ",
    "sign of equivalence": r" \equiv ",
    "sign of approximation": r" \approx ",
    "arrow": r" \to ",
    "implication": r" \implies ",
    "union": r" \cup ",
    "plus or minus": r" \pm ",
    "not": r" \text{ not } ",
    "but maybe": r" \text{ but maybe } ",
    "rather": r", \text{ or rather } ",
    "alternatively": r"; \text{alternatively } ",
    "respectively": r" \text{ resp. } ",
    "if not": r" \text{ if not } ",
    "dollars": "$ or $",
    "dollars alone": "$ $",
    "ampersand": " & ",
    "dots": r" \ldots ",
    "full stop": ". ",
    "dash": " -- ",
    "brackets": r" \text{ (or) } ",
    "times": r" \times ",
    "binary or": " || ",
}
"""What may stand between two answers."""

_DENIALS = {
    "not in the box": r"\boxed{\text{not } VALUE}",
    "not behind, in the box": r"\boxed{VALUE \text{ is not right}}",
    "sign of inequality in the box": r"\boxed{\neq VALUE}",
    "anything but, in the box": r"\boxed{\text{anything but } VALUE}",
    "not before the dollars": "The answer is not $VALUE$.",
    "definitely not": "The answer is definitely not VALUE.",
    "anything but": "The answer is anything but $VALUE$.",
    "not, in a label": "Answer: not $VALUE$",
    "not, in a tag": "<answer>not VALUE</answer>",
    "not, behind hashes": "#### not VALUE",
    "neither": "The answer is neither $VALUE$ nor $OTHER$.",
    "either": "The answer is either $VALUE$ or $OTHER$.",
    "one phrase, two answers": "The answer is $VALUE$ or $OTHER$.",
    "one phrase, two answers, the wrong one first": "The answer is $OTHER$ or $VALUE$.",
    "one label, two answers": "Answer: $VALUE$ or $OTHER$",
    "one tag, two answers": "<answer>VALUE or OTHER</answer>",
    "hashes, two answers": "#### VALUE or OTHER",
    "one of them": r"\boxed{\text{one of } VALUE, OTHER}",
}
"""What denies an answer, or takes two."""

_STATED_ELSEWHERE = {
    "empty box": r"It is VALUE. \boxed{}",
    "wrong box after the right one": r"\boxed{VALUE} is what one thinks. In truth it is \boxed{OTHER}.",
    "wrong phrase after the right one": "The answer is VALUE. No, wait. The answer is OTHER.",
    "wrong label after the right one": "Answer: VALUE\nAnswer: OTHER",
    "wrong tag after the right one": "<answer>VALUE</answer><answer>OTHER</answer>",
    "wrong hashes after the right ones": "#### VALUE\n#### OTHER",
    "only thought": r"<think>So \boxed{VALUE}.</think>So \boxed{OTHER}.",
    "thought in a box, another said": r"<think>So \boxed{VALUE}.</think>The answer is OTHER.",
    "thought, and nothing said": r"<think>So \boxed{VALUE}.</think>That was difficult.",
    "cut in the thought": r"<think>So it must be \boxed{VALUE}. But let me check",
    "last box cut": r"First \boxed{VALUE}. Then, corrected, \boxed{OTHER",
    "mentioned, not stated": "I thought of VALUE, but I do not know.",
    "in a phantom": r"\boxed{\phantom{VALUE}}",
    "phantom beside another": r"\boxed{OTHER\phantom{VALUE}}",
    "in a comment": "\\boxed{OTHER % VALUE\n}",
}
"""Where the gold occurs, and is not what is answered."""

_NUMBER_FORMS = {
    "power of ten more": lambda number: 10 * number if number else None,
    "power of ten less": lambda number: number / 10 if number else None,
    "one more": lambda number: number + 1,
    "one less": lambda number: number - 1,
    "sign flipped": lambda number: -number if number else None,
    "turned over": lambda number: 1 / number if number and abs(number) != 1 else None,
    "a thousandth more": lambda number: number + Fraction(1, 1000),
    "a millionth more": lambda number: number + Fraction(1, 10**6),
    "a trillionth of it more": lambda number: number * (1 + Fraction(1, 10**12)) if number else None,
}

_SUFFIXES = {
    "percent": r"\%",
    "word for percent": r"\text{ percent}",
    "million": r"\text{ million}",
    "thousand": r"\text{ thousand}",
    "dozen": r"\text{ dozen}",
    "lakh": r"\text{ lakh}",
    "crore": r"\text{ crore}",
    "bn": r"\text{ bn}",
    "twelfths": r"\text{ twelfths}",
    "hundredths": " hundredths",
    "half": r"\tfrac{1}{2}",
    "a variable": "x",
    "imaginary": r"\mathrm{i}",
    "pi": r"\pi",
    "e": r"\mathrm{e}",
    "square in unicode": "²",
    "power": "^{3}",
    "power by asterisks": "**4",
    "power of ten": r"\times 10^{2}",
    "factorial": "!!",
    "index": "_7",
    "and more": "+",
    "dots": r"\ldots",
    "remainder": r"\text{ remainder } 1",
    "minus one in words": r"\text{ minus one}",
    "question": r"\text{ times something}",
    "choose": r"\choose 2",
    "modulus": r" \pmod{4}",
    "period": r".\overline{3}",
}
"""What changes a number of three or more when it follows; others it might leave as they are."""

_PREFIXES = {
    "sign of order": "> ",
    "sign of order, or equal": r"\geq ",
    "at least": r"\text{at least } ",
    "less than": r"\text{less than } ",
    "about": r"\text{about } ",
    "root": r"\sqrt ",
    "minus": "- ",
    "twice": r"2 \cdot ",
    "half of": r"\text{half of } ",
    "plus or minus": r"\pm ",
    "cosine": r"\cos ",
    "between": r"0 < x < ",
}
"""What changes a number of three or more when it stands before it."""


def write_number(number: Fraction) -> str:
    """Write a number as an integer, a short decimal or a fraction."""
    if number.denominator == 1:
        return str(number)
    return write_finite_decimal(number) or write_fraction(number)


def change_number(change: Callable[[Fraction], Fraction | None]) -> Rewrite:
    """Return the rewrite of a number into another."""

    def rewrite(gold: str) -> str | None:
        number = read_number(bare_value(gold))
        changed = None if number is None else change(number)
        return None if changed is None or changed == number else in_box(write_number(changed))

    return rewrite


def extend_number(before: str, after: str) -> Rewrite:
    """Return the rewrite that puts something around a positive integer above two."""

    def rewrite(gold: str) -> str | None:
        value = bare_value(gold)
        number = read_number(value)
        plain = number is not None and number > 2 and re.fullmatch(r"[\d,]+", value)
        return in_box(f"{before}{value}{after}") if plain else None

    return rewrite


def swap_digits(gold: str) -> str | None:
    """Swap the first two digits that differ."""
    value = bare_value(gold)
    swapped = re.sub(r"(\d)(?!\1)(\d)", r"\2\1", value, count=1)
    number, changed = read_number(value), read_number(swapped)
    return None if number is None or changed is None or number == changed else in_box(swapped)


def round_decimal(gold: str) -> str | None:
    """Round what has no end as a decimal."""
    number = read_number(bare_value(gold))
    if number is None or write_finite_decimal(number) or number.denominator == 1:
        return None
    return in_box(f"{float(number):.3f}")


def round_root(gold: str) -> str | None:
    """Write a root as a decimal of five digits."""
    root = re.fullmatch(r"\\sqrt\{(\d+)\}", bare_value(gold))
    return in_box(f"{int(root[1]) ** 0.5:.4f}") if root and int(int(root[1]) ** 0.5) ** 2 != int(root[1]) else None


def round_pi(gold: str) -> str | None:
    """Write a multiple of pi as a decimal."""
    factor = re.fullmatch(r"(\d+)\s*\\pi", bare_value(gold))
    return in_box(f"{int(factor[1]) * 3.14:.2f}") if factor and int(factor[1]) else None


def drop_percent(gold: str) -> str | None:
    """Write a percentage a hundred times too large."""
    number = read_percentage(bare_value(gold))
    return None if not number else in_box(rf"{write_number(100 * number)}\%")


def change_collection(change: Callable[[Collection], Collection | None]) -> Rewrite:
    """Return the rewrite of a tuple, set, interval or list into another."""

    def rewrite(gold: str) -> str | None:
        found = read_collection(bare_value(gold))
        changed = None if found is None else change(found)
        return None if changed is None or changed == found else in_box(str(changed))

    return rewrite


def change_last(found: Collection) -> Collection | None:
    """Add one to the last item."""
    number = read_number(found.items[-1])
    if number is None or (number + 1) in [read_number(item) for item in found.items]:
        return None
    return found._replace(items=[*found.items[:-1], write_number(number + 1)])


def change_first(found: Collection) -> Collection | None:
    """Take two from the first item."""
    number = read_number(found.items[0])
    if number is None or (number - 2) in [read_number(item) for item in found.items]:
        return None
    return found._replace(items=[write_number(number - 2), *found.items[1:]])


def drop_last(found: Collection) -> Collection | None:
    """Leave the last item out."""
    kept = found.items[:-1]
    return None if found.is_interval or not kept or found.items[-1] in kept else found._replace(items=kept)


def add_item(found: Collection) -> Collection | None:
    """Add an item."""
    return None if found.is_interval else found._replace(items=[*found.items, "9173"])


def reverse_tuple(found: Collection) -> Collection | None:
    """Reverse the items of a tuple, which are numbers."""
    numbers = [read_number(item) for item in found.items]
    if not found.is_tuple or None in numbers or numbers == numbers[::-1]:
        return None
    return found._replace(items=found.items[::-1])


def repeat_interval(found: Collection) -> Collection | None:
    """Reverse an interval with two finite ends."""
    numbers = [read_number(item) for item in found.items]
    if not found.is_interval or None in numbers or numbers[0] == numbers[1]:
        return None
    return found._replace(items=found.items[::-1])


def open_end(found: Collection) -> Collection | None:
    """Turn the bracket at the finite end of an interval."""
    if not found.is_interval:
        return None
    if r"\infty" not in found.items[0]:
        return found._replace(opened=found.opened.translate(str.maketrans("([", "[(")))
    if r"\infty" not in found.items[1]:
        return found._replace(closed=found.closed.translate(str.maketrans(")]", "])")))
    return None


def set_of_tuple(found: Collection) -> Collection | None:
    """Write a tuple of three or more in the braces of a set; two may be an interval."""
    plain = found.is_tuple and len(found.items) > 1
    return found._replace(opened=r"\{", closed=r"\}") if plain else None


def tuple_of_set(found: Collection) -> Collection | None:
    """Write a set of two or more as a tuple."""
    return found._replace(opened="(", closed=")") if found.is_set and len(found.items) > 1 else None


def tuple_of_list(found: Collection) -> Collection | None:
    """Write a list backwards and in brackets."""
    plain = is_plain_list(found) and found.items != found.items[::-1]
    return Collection("(", found.items[::-1], ")") if plain else None


def change_match(pattern: str, change: Callable[[re.Match[str]], str], where: Callable[[str], object]) -> Rewrite:
    """Return the rewrite that changes the last match of a pattern."""

    def rewrite(gold: str) -> str | None:
        value = bare_value(gold)
        places = list(re.finditer(pattern, value)) if where(value) else []
        if not places:
            return None
        last = places[-1]
        changed = f"{value[: last.start()]}{change(last)}{value[last.end() :]}"
        return None if changed == value else in_box(changed)

    return rewrite


def is_open_formula(value: str) -> bool:
    """Whether a value is an expression with more than a number in it."""
    return is_scalar(value) and read_number(value) is None and not re.search(r"[_!|]|overline|\b1\^", value)


def is_matrix(value: str) -> bool:
    """Whether a value is a matrix."""
    return r"\begin" in value and "matrix" in value


def is_equation(value: str) -> bool:
    """Whether a value is one plain equation."""
    return is_formula(value) and value.count("=") == 1 and not re.search("[,{]", value)


def next_number(found: re.Match[str]) -> str:
    """Return the number after the one that was matched."""
    return str(int(found[0]) + 1)


_ROW_END = r" \\ "


def swap_rows(gold: str) -> str | None:
    """Swap the first two rows of a matrix."""
    value = bare_value(gold)
    found = re.fullmatch(r"(\\begin\{[a-z]?matrix\})(.*)(\\end\{[a-z]?matrix\})", value, re.DOTALL)
    rows = [] if found is None or r"\begin" in found[2] else [row.strip() for row in found[2].split(r"\\")]
    if found is None or len(rows) < 2 or rows[0] == rows[1]:
        return None
    return in_box(f"{found[1]} {_ROW_END.join([rows[1], rows[0], *rows[2:]])} {found[3]}")


def anagram(gold: str) -> str | None:
    """Turn the letters of a word around."""
    text = read_text(bare_value(gold))
    turned = None if text is None else text[::-1]
    return None if text is None or turned is None or turned.lower() == text.lower() else in_box(rf"\text{{{turned}}}")


def change_text(change: Callable[[str], str]) -> Rewrite:
    """Return the rewrite of a text into another."""

    def rewrite(gold: str) -> str | None:
        text = read_text(bare_value(gold))
        return None if text is None or change(text).lower() == text.lower() else in_box(rf"\text{{{change(text)}}}")

    return rewrite


def change_letter(pattern: str) -> Rewrite:
    """Return the rewrite of the letter of an option into something that is another, or two."""

    def rewrite(gold: str) -> str | None:
        letter = read_letter(bare_value(gold))
        return None if letter is None else in_box(pattern.format(letter=letter, other=other_value(letter)))

    return rewrite


def drop_base(gold: str) -> str | None:
    """Leave the base of a number out."""
    found = read_base(bare_value(gold))
    return None if found is None else in_box(found[0])


def change_base(gold: str) -> str | None:
    """Change the base of a number."""
    found = read_base(bare_value(gold))
    return None if found is None or len(found[0]) < 2 else in_box(f"{found[0]}_{{{int(found[1]) + 1}}}")


def flip_relation(gold: str) -> str | None:
    """Turn the sign of an inequality."""
    value = bare_value(gold)
    signs = re.findall(r"<|>|\\[lg]eq?(?![a-z])", value)
    if len(signs) != 1 or not is_formula(value):
        return None
    turned = {"<": ">", ">": "<", r"\le": r"\ge", r"\leq": r"\geq", r"\ge": r"\le", r"\geq": r"\leq"}[signs[0]]
    return in_box(value.replace(signs[0], turned))


def close_relation(gold: str) -> str | None:
    """Let an inequality hold at its end, or not."""
    value = bare_value(gold)
    signs = re.findall(r"<|>|\\[lg]eq?(?![a-z])", value)
    if len(signs) != 1 or not is_formula(value):
        return None
    turned = {"<": r"\le ", ">": r"\ge ", r"\le": "<", r"\leq": "<", r"\ge": ">", r"\geq": ">"}[signs[0]]
    return in_box(value.replace(signs[0], turned))


def compute_dashes(gold: str) -> str | None:
    """Give what a date, a score or a range would be if it were computed."""
    parts = re.fullmatch(r"(\d+)([-:/])(\d+)(?:\2(\d+))?", bare_value(gold))
    if parts is None or (parts[2] == "/" and not parts[4]):
        return None
    numbers = [int(part) for part in (parts[1], parts[3], parts[4]) if part]
    if parts[2] == "-":
        return in_box(str(numbers[0] - sum(numbers[1:])))
    return in_box(write_number(Fraction(numbers[0], numbers[1]))) if numbers[1] else None


def hedge(joint: str, gold_first: bool) -> Rewrite:
    """Return the rewrite that answers gold and another in one box."""

    def rewrite(gold: str) -> str | None:
        value = bare_value(gold)
        kept = joint in _CLOSE and (read_letter(value) or re.search(r"[<>,=]|\\[lg]eq?|\\[{lc]", value))
        if not is_sentence(value) or read_number(value) == 0 or kept:
            return None
        pair = (value, other_value(gold)) if gold_first else (other_value(gold), value)
        return in_box(joint.join(pair))

    return rewrite


_SAID = {("not", True), ("rather", False)}
"""What says the gold alone, if one reads it well."""

_CLOSE = (" = ", r" \cup ")
"""Joints that may be part of a value where it is a relation, a set or a letter."""


def state_other(pattern: str) -> Rewrite:
    """Return the rewrite that fills gold and another value into a text."""

    def rewrite(gold: str) -> str | None:
        value = bare_value(gold)
        if not is_sentence(value):
            return None
        return pattern.replace("VALUE", value).replace("OTHER", other_value(gold))

    return rewrite


NUMBERS: dict[str, Rewrite] = {
    **{name: change_number(change) for name, change in _NUMBER_FORMS.items()},
    "digits swapped": swap_digits,
    "decimal rounded": round_decimal,
    "root rounded": round_root,
    "pi rounded": round_pi,
    "percentage of percentages": drop_percent,
    **{f"number and {name}": extend_number("", suffix) for name, suffix in _SUFFIXES.items()},
    **{f"{name} before a number": extend_number(prefix, "") for name, prefix in _PREFIXES.items()},
    "base dropped": drop_base,
    "another base": change_base,
}
"""Another number."""

STRUCTURES: dict[str, Rewrite] = {
    "last item changed": change_collection(change_last),
    "first item changed": change_collection(change_first),
    "item dropped": change_collection(drop_last),
    "item added": change_collection(add_item),
    "tuple reversed": change_collection(reverse_tuple),
    "interval reversed": change_collection(repeat_interval),
    "bracket of an interval turned": change_collection(open_end),
    "set for a tuple": change_collection(set_of_tuple),
    "tuple for a set": change_collection(tuple_of_set),
    "tuple for a list, backwards": change_collection(tuple_of_list),
    "exponent changed": change_match(r"(?<=\^)\d|(?<=\^\{)\d+(?=\})", next_number, is_open_formula),
    "coefficient changed": change_match(r"(?<![\d^.{])\d+(?![\d.^])", next_number, is_open_formula),
    "sign in a sum flipped": change_match(
        r"(?<=[\w)}])(\s*)([-+])(?=\s*[\w\\])",
        lambda sign: f"{sign[1]}{'-' if sign[2] == '+' else '+'}",
        is_open_formula,
    ),
    "term added": lambda gold: in_box(f"{bare_value(gold)} + 1") if is_scalar(bare_value(gold)) else None,
    "whole negated": lambda gold: in_box(f"-({bare_value(gold)})") if is_open_formula(bare_value(gold)) else None,
    "entry of a matrix changed": change_match(r"(?<![\d^{])\d+", next_number, is_matrix),
    "rows of a matrix swapped": swap_rows,
    "number in an equation changed": change_match(r"(?<![\d^.{_])\d+(?![\d.^])", next_number, is_equation),
    "inequality turned": flip_relation,
    "end of an inequality": close_relation,
    "date, score or range computed": compute_dashes,
    "anagram": anagram,
    "text cut": change_text(lambda text: text[:-1]),
    "text with not": change_text(lambda text: f"not {text}"),
    "another text": change_text(lambda text: "Zanzibar"),
    "two texts": change_text(lambda text: f"{text} or Zanzibar"),
    "another letter": change_letter("{other}"),
    "another letter with the option": change_letter("{other}. {letter}"),
    "two letters": change_letter("{letter} or {other}"),
    "two letters in a row": change_letter("{letter}{other}"),
    "two letters in brackets": change_letter(r"\text{{({letter})}} \text{{({other})}}"),
}
"""Another thing of the same kind."""

STATED: dict[str, Rewrite] = {name: state_other(pattern) for name, pattern in {**_DENIALS, **_STATED_ELSEWHERE}.items()}
"""The gold denied, taken back, or only mentioned."""

HEDGES: dict[str, Rewrite] = {
    f"hedge by {name}, gold {'first' if first else 'last'}": hedge(joint, first)
    for name, joint in _JOINTS.items()
    for first in (True, False)
    if (name, first) not in _SAID
}
"""The gold and another answer."""

DIFFERENT = {**NUMBERS, **STRUCTURES, **STATED, **HEDGES}
