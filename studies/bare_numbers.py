"""Measured numbers that a template writes out by itself.

Measured looks whatever has a decimal point, a percent sign or a unit, and one count of another, as 3 of 8 runs. Exempt
are code, formulas and targets of links, versions and arXiv identifiers; every other number that was not measured is
marked as ``stated`` in the template.
"""

import re

OPEN = "\x02"
CLOSE = "\x03"

EXPRESSION = re.compile(f"{OPEN}[^{OPEN}{CLOSE}]*{CLOSE}")
EXEMPT = re.compile(
    r"^(```|~~~).*?^\1[^\n]*$"  # blocks of code
    r"|(?:\A|(?<=\n\n))(?: {4}[^\n]*\n)+"
    r"|(`+)(?:(?!\n\n).)+?\2"  # spans of code
    r"|\$[^$\n]+\$"  # formulas
    r"|(?<=\])\([^)\s]*\)|https?://\S+"  # targets of links
    r"|\bversions? [\d.]+|\barXiv[: ]*[\d.]+"
    r"|\b\d{4}\.\d{5}\b",
    re.DOTALL | re.MULTILINE,
)
WORD = "(?:no|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
UNIT = (
    "(?:percentage points?|points?|pp|degrees?|ms|s|seconds?|minutes?|hours?|times|nats?|KiB|MiB|GiB|kB|MB|GB"
    "|runs?|cases?|chains?|kills?|faults?|better|worse|equivalent|undecided)"
)
START = r"(?<![\w.@])(?<!\w-)"  # a number that is part of a name has a letter before it
MEASURED = re.compile(
    rf"{START}[+-]?\d[\d,]*\.\d+(?:e-?\d+)?(?: ?%| {UNIT}\b)?"
    rf"|{START}[+-]?\d[\d,]*(?: ?%| {UNIT}\b)"
    rf"|{START}\d[\d,]* of (?:the )?\d[\d,]*"
    rf"|\b(?:{WORD}|\d+) of (?:the )?(?:{WORD}|\d+) (?:runs|cases|pairs|seeds)\b",
    re.IGNORECASE,
)


def find_bare_numbers(text: str) -> list[str]:
    r"""Return the numbers that look measured and stand in no expression.

    Args:
        text: Page that was rendered with marks around its expressions.

    Example:
        >>> find_bare_numbers("ahead by \x025.1\x03 points, 3 of 9 runs at `0.5`, loses 2.5 pp")
        ['3 of 9', '2.5 pp']

    """
    while EXPRESSION.search(text):
        text = EXPRESSION.sub("", text)
    return [match[0] for match in MEASURED.finditer(EXEMPT.sub("", text))]
