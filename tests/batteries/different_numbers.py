"""Completions that answer another number than a gold does, however near it comes."""

import re
from collections.abc import Callable
from fractions import Fraction

from gold_kinds import read_gold_number, read_percentage, strip_dollars
from rewriting import Rewrite, read_number_and_base, write_finite_decimal, write_in_box, write_number

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
    "factorial": "!",
    "index": "_7",
    "and more": "+",
    "dots": r"\ldots",
    "remainder": r"\text{ remainder } 1",
    "minus one in words": r"\text{ minus one}",
    "question": r"\text{ times something}",
    "choose": r"\choose 0",
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
    "choose": r"3 \choose ",
    "root": r"\sqrt[3]",
    "minus": "- ",
    "twice": r"2 \cdot ",
    "half of": r"\text{half of } ",
    "plus or minus": r"\pm ",
    "cosine": r"\cos ",
    "between": r"0 < x < ",
}
"""What changes a number of three or more when it stands before it."""


def change_number(change: Callable[[Fraction], Fraction | None]) -> Rewrite:
    """Return the rewrite of a number into another."""

    def rewrite(gold: str) -> str | None:
        number = read_gold_number(strip_dollars(gold))
        changed = None if number is None else change(number)
        return None if changed is None or changed == number else write_in_box(write_number(changed))

    return rewrite


def extend_number(before: str, after: str) -> Rewrite:
    """Return the rewrite that puts something around a positive integer above two."""

    def rewrite(gold: str) -> str | None:
        value = strip_dollars(gold)
        number = read_gold_number(value)
        plain = number is not None and number > 2 and re.fullmatch(r"[\d,]+", value)
        return write_in_box(f"{before}{value}{after}") if plain else None

    return rewrite


def swap_digits(gold: str) -> str | None:
    """Swap the first two digits that differ."""
    value = strip_dollars(gold)
    swapped = re.sub(r"(\d)(?!\1)(\d)", r"\2\1", value, count=1)
    number, changed = read_gold_number(value), read_gold_number(swapped)
    return None if number is None or changed is None or number == changed else write_in_box(swapped)


def round_decimal(gold: str) -> str | None:
    """Round what has no end as a decimal."""
    number = read_gold_number(strip_dollars(gold))
    if number is None or write_finite_decimal(number) or number.denominator == 1:
        return None
    return write_in_box(f"{float(number):.3f}")


def round_root(gold: str) -> str | None:
    """Write a root as a decimal of five digits."""
    root = re.fullmatch(r"\\sqrt\{(\d+)\}", strip_dollars(gold))
    return (
        write_in_box(f"{int(root[1]) ** 0.5:.4f}") if root and int(int(root[1]) ** 0.5) ** 2 != int(root[1]) else None
    )


def round_pi(gold: str) -> str | None:
    """Write a multiple of pi as a decimal."""
    factor = re.fullmatch(r"(\d+)\s*\\pi", strip_dollars(gold))
    return write_in_box(f"{int(factor[1]) * 3.14:.2f}") if factor and int(factor[1]) else None


def drop_percent(gold: str) -> str | None:
    """Write a percentage a hundred times too large."""
    number = read_percentage(strip_dollars(gold))
    return None if not number else write_in_box(rf"{write_number(100 * number)}\%")


def drop_base(gold: str) -> str | None:
    """Leave the base of a number out."""
    found = read_number_and_base(strip_dollars(gold))
    return None if found is None else write_in_box(found[0])


def change_base(gold: str) -> str | None:
    """Change the base of a number."""
    found = read_number_and_base(strip_dollars(gold))
    return None if found is None or len(found[0]) < 2 else write_in_box(f"{found[0]}_{{{int(found[1]) + 1}}}")


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
