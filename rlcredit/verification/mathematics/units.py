r"""What stands beside a number: units, currencies, and words that multiply it.

A unit is thrown away before numbers are compared, so it must be known to be one: from a table, or as a noun in the
plural. Whatever changes the value (``million``, ``dozen``, ``percent``, ``twelfths``) is multiplied; whatever else
stands beside a number makes the answer another one.
"""

import re
from fractions import Fraction
from typing import NamedTuple

from rlcredit.verification.mathematics.notation import UNIT_LETTERS

_UNITS = """
m meter metre|cm centimeter centimetre|mm millimeter millimetre|km kilometer kilometre|nm nanometer|micron micrometer
in inch inches|ft foot feet|yd yard|mi mile|ly lightyear|au|pc parsec|kpc|mpc|angstrom
s sec second|ms millisecond|ns nanosecond|min minute mins|h hr hour|d day|week wk|month mo|year yr|century centuries
g gram gm|kg kilogram kilo|mg milligram|lb pound lbs|oz ounce|ton tonne|amu
l liter litre|ml milliliter millilitre|cl|dl|gal gallon|qt quart|pt pint|cup|tsp teaspoon|tbsp tablespoon
mph|kmh kph|n newton|kn kilonewton|pa pascal|kpa|mpa|gpa|bar|atm|psi|torr|mmhg
j joule|kj kilojoule|mj|cal calorie|kcal|ev|kev|mev|gev|erg|wh|kwh|btu
w watt|kw kilowatt|mw megawatt|gw|hp horsepower|v volt|mv millivolt|kv|a amp ampere|ma milliampere
ohm|f farad|uf|nf|pf|c coulomb|t tesla|gauss|wb weber|henry|hz hertz|khz|mhz|ghz|k kelvin|celsius|fahrenheit
mol mole|mmol|molar|rad radian|sr steradian|deg degree|rev revolution|rpm|bit|byte|kb|mb|gb|tb
acre|hectare ha|sqft|cc|unit|cd|lm|lx|bpm|people person|man men|woman women|child children|fish|sheep|deer
tooth teeth|mouse mice|goose geese|box
dollar usd|cent|euro eur|gbp|rupee rs inr|yen jpy|yuan rmb cny|won krw|peso|franc|ruble rub|penny pence|quid|buck
"""
_SPELLINGS = [group.split() for group in re.split(r"[|\n]", _UNITS)]
_CANONICAL = {name: names[0] for names in _SPELLINGS for name in names}
_CURRENCIES = {r"\$": "dollar", "€": "euro", "£": "gbp", "¥": "yen", "₹": "rupee", "₽": "ruble"} | {
    **{"₩": "won", "¢": "cent"}
}
_CODES = {"USD": "dollar", "EUR": "euro", "GBP": "gbp", "JPY": "yen", "INR": "rupee", "Rs": "rupee", "CNY": "yuan"}
_CURRENCY = r"(?:(?:US|CA|AU|HK|NZ)?\s*\\\$|[€£¥₹₽₩¢])"
_CODE = rf"(?:\\text\{{\s*)?(?:{'|'.join(_CODES)})\.?\s*\}}?"

_ILLIONS = {"million": 6, "billion": 9, "trillion": 12, "quadrillion": 15, "milliard": 9, "thousand": 3, "hundred": 2}
_SCALES = {
    **{word: Fraction(10) ** power for word, power in _ILLIONS.items()},
    **{"lakh": Fraction(10**5), "lac": Fraction(10**5), "crore": Fraction(10**7), "dozen": Fraction(12)},
    **{"bn": Fraction(10**9), "mn": Fraction(10**6), "tn": Fraction(10**12)},
    **{"percent": Fraction(1, 100), "pct": Fraction(1, 100), "permille": Fraction(1, 1000)},
}
_PARTS = re.findall(
    r"\S+",
    "half third quarter fourth fifth sixth seventh eighth ninth "
    "tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth",
)
_SHARES = {
    **{word: Fraction(1, (*range(2, 5), *range(4, 17))[place]) for place, word in enumerate(_PARTS)},
    **{"hundredth": Fraction(1, 100), "thousandth": Fraction(1, 1000), "millionth": Fraction(1, 10**6)},
    "halve": Fraction(1, 2),
}
_NO_UNITS = frozenset(
    re.findall(
        r"\S+",
        """
        a about above accounting after all also am an and another approximately are around as at because
        before below between but by cannot choose cos cubed different divided does double each either
        else equal equals even exactly except exp factorial false few fewer first for from greater has
        hence her hers his how if in incorrect into is it its left less lets let ln log maybe minus mod
        modulo more most mult multiplied my nd negative neither no nor not odd of off on one ones only
        or other others otherwise our ours out over percentage percentages per pi plus pm power powers
        prime primes raised rd really remainder remainders right root roots round rounded score scores
        should sin since so some sometimes sqrt squared squares st tan than that the their theirs then
        there therefore these they this those though times to too true truths twice two unless up versus
        via vs wait was we when where whereas which while with without would wrong yes you yours zeros
        perhaps always digits base basis mistakes errors plusminus cf viz resp points bps ppm ppb ish approx
        """,
    )
)
"""Words that are no unit wherever they stand: they deny, go on, compare or compute."""

_NUMBER_WORD = re.compile(
    r"(?:illions?|illiards?|ieths?|eenths?|dths?|enths?)$|^(?:(?:one|two|three|four|five|six|seven|eight|nine|ten|zero"
    r"|eleven|twelve|\w*teen|(?:twen|thir|for|fif|six|seven|eigh|nine)t(?:y|ie)|gross|grand|score|myriad|googol"
    r"|single|double|triple|quadruple)(?:e?s)?|dos|tres|seis|deux|trois|six|dix|fois|moins|menos|veces|sans|jamais|mas)$"
)
"""Words that count in English, and what counts or goes on in French and Spanish and looks like a plural."""

_AFTERWARDS = frozenset(["old", "long", "tall", "wide", "high", "deep", "apart", "away", "each", "total", "altogether"])
"""What may follow a unit: five years old."""

_POWER_WORDS = {"square": "2", "squared": "2", "sq": "2", "cubic": "3", "cubed": "3"}
# Possessive throughout: nothing that a completion writes may be read in more than one way, one after the other.
_WORD = (
    r"(?:\\text\{[^{}]*+\}|(?<=[\d\s])\([A-Za-z][A-Za-z ]++\)|(?<![\\A-Za-z])[A-Za-z]++\s*+/\s*+[A-Za-z]++"
    r"|(?<![\\A-Za-z])[A-Za-z]{2,}+\.?|\\mu\s*+[A-Za-z]++|\\Omega|\\min(?![A-Za-z])|\^\{\\circ\}\s*+[CF]?)"
)
_RAISED = r"(?:\s*\^\{-?\d\})?"
_UNIT_FRACTION = re.compile(r"\\frac\{\s*\\text\{([A-Za-z]+)\}\s*\}\{\s*\\text\{([A-Za-z]+)\}(?:\^\{(\d)\})?\s*\}$")
_TAIL = re.compile(rf"(?:\s*+(?:(?:/|\\cdot)\s*+)?{_WORD}{_RAISED})++\s*+$")
_LEADING_CURRENCY = re.compile(rf"([+-]?)\s*(?:{_CURRENCY}|{_CODE}(?=\s*[\d.(+-]))\s*([+-]?)\s*")
_PIECES = re.compile(r"\^\{\\circ\}|\^\{-?\d\}|\\mu|\\Omega|[A-Za-z]+|/")
_MOST_WORDS = 8
_LAKHS = re.compile(r"(?<![\d.,(\[{])\d{1,2}(?:,\d{2})+(?:,|\{,\})\d{3}(?![\d,)\]])")
"""Numbers grouped as in India: ``10,00,000``."""
_NOT_ALONE = re.compile(
    r"(?<![\\A-Za-z])[A-Za-z]{3,}|\\text|[,;=<>%]|\\(?:le|ge|ne|in|cup|pm|sin|cos|tan|cot|sec|csc)(?![A-Za-z])"
)
"""What a value with a unit has not: further words, values or relations."""

PERCENT_UNIT, DEGREE_UNIT = "percent", "deg"
"""Names of the units that are a hundredth, and a part of pi."""


class Quantity(NamedTuple):
    r"""A value and what stands beside it.

    Attributes:
        value: Text of the value, in normal form.
        factor: Factor by which the words beside it multiply it.
        unit: Name of the unit, the same for all its spellings; empty without one.

    """

    value: str
    factor: Fraction = Fraction(1)
    unit: str = ""


def read_quantity(text: str) -> Quantity:
    r"""Split a text in normal form into its value and the unit beside it; what is no unit stays in the value.

    Example:
        >>> read_quantity(r"\$ 36") == read_quantity("36 dollars"), read_quantity(r"12 \text{km/h}").unit
        (True, 'km/h')
        >>> read_quantity("5 million").factor, read_quantity(r"90^{\circ}").unit, read_quantity("5 or 6").value
        (Fraction(1000000, 1), 'deg', '5 or 6')

    """
    currency = ""
    text = _UNIT_FRACTION.sub(
        lambda unit: rf"\text{{{unit[1]}/{unit[2]}}}" + (f"^{{{unit[3]}}}" if unit[3] else ""), text
    )
    text = _LAKHS.sub(lambda number: re.sub(r"\D", "", number[0]), text)
    if leading := _LEADING_CURRENCY.match(text):
        currency = _find_currency(leading[0])
        text = leading[1] + leading[2] + text[leading.end() :].strip()
    elif trailing := re.search(rf"{_CURRENCY}$", text):
        currency = _find_currency(trailing[0])
        text = text[: trailing.start()].strip()
    value, factor, unit = _split_unit_words(text)
    if value.endswith("%") and not unit:
        value, factor, unit = value.removesuffix("%").strip(), factor / 100, PERCENT_UNIT
    if not value or (currency and unit not in ("", currency)) or _NOT_ALONE.search(value):
        return Quantity(text)
    return Quantity(value, factor, currency or unit)


def _find_currency(text: str) -> str:
    return next(name for sign, name in {**_CURRENCIES, **_CODES}.items() if sign in text)


def _split_unit_words(text: str) -> tuple[str, Fraction, str]:
    whole = (text, Fraction(1), "")
    tail = _TAIL.search(text)
    if tail is None or not tail.start():
        return whole
    value = text[: tail.start()].strip()
    pieces = _PIECES.findall(tail[0].replace(r"\text{", " ").replace(r"\cdot", " "))
    factor = Fraction(1)
    percent = re.match(r"\W*(?:text\{)?(?:percent|pct|per cent)", tail[0], re.IGNORECASE) is not None
    while pieces and (scale := _read_scale_word(pieces, value)) is not None:
        factor *= scale
        pieces = pieces[1:]
    while pieces and pieces[-1].lower() in _AFTERWARDS and len(pieces) > 1:
        pieces = pieces[:-1]
    if pieces[:1] == ["of"]:
        pieces = pieces[1:]
    if not pieces:
        return value, factor, PERCENT_UNIT if percent else ""
    unit = _read_unit_name(pieces, value)
    return whole if unit is None else (value, factor, unit)


def _read_scale_word(pieces: list[str], value: str) -> Fraction | None:
    word = pieces[0].lower()
    if word == "per" and [piece.lower() for piece in pieces[1:2]] == ["cent"]:
        pieces.pop(0)
        return Fraction(1, 100)
    for table in (_SCALES, _SHARES):
        for name in (word, word.removesuffix("s")):
            if name in table and (table is _SCALES or re.search(r"\d$", value)):
                return table[name]
    return None


def _read_unit_name(pieces: list[str], value: str) -> str | None:
    """Return the name of a unit; None if it is none."""
    if len(pieces) > _MOST_WORDS:
        return None
    names, power, head = list[str](), "", False
    for place, piece in enumerate(pieces):
        word, is_last = piece.lower(), place == len(pieces) - 1
        if piece == r"^{\circ}":
            names.append("deg")
            head = True
        elif names[-1:] == ["deg"] and piece in ("C", "F"):
            names[-1] = {"C": "celsius", "F": "fahrenheit"}[piece]
        elif piece.startswith("^") and names:
            names[-1] += piece.strip("^{}")
        elif word in _POWER_WORDS and (names or not is_last):
            power = _POWER_WORDS[word]
            names[-1:] = [names[-1] + power] if is_last else names[-1:]
        elif piece == "/" or (word in ("per", "of") and head and not is_last):
            names.append("/" if word == "per" else word)
        else:
            ends = is_last or pieces[place + 1].lower() in ("/", "per", "of") or pieces[place + 1].startswith("^")
            name = _read_unit_noun(piece, head=ends and not head, value=value)
            if name is None:
                return None
            head |= ends
            names.append(name + power)
            power = ""
    return " ".join(names).replace(" / ", "/") if head else None


def _read_unit_noun(piece: str, head: bool, value: str) -> str | None:
    """Return the name of a word of a unit; None if it is none."""
    if piece.startswith("^"):
        return None
    word = piece.lower()
    if word in _NO_UNITS and word not in _CANONICAL:
        return None
    if piece in UNIT_LETTERS or piece.startswith("\\") or len(word) == 1:
        return _CANONICAL.get(word, piece) if piece in UNIT_LETTERS or piece.startswith("\\") else None
    for name in (word, word.removesuffix("s"), word.removesuffix("es")):
        if name in _CANONICAL:
            return _CANONICAL[name]
    if word.removesuffix("s") in {**_SCALES, **_SHARES} or _NUMBER_WORD.search(word):
        return None
    plural = word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3
    single = re.fullmatch(r"-?(?:1|0?\.\d+|\\frac\{\d\}\{\d+\})", value) is not None
    if head and not (plural or single):
        return None
    return word.removesuffix("s")
